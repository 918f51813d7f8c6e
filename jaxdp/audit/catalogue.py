"""What can be audited by name: every mechanism, test and causal search, and published flawed variants."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core
from jaxdp._base import check
from jaxdp._base.display import Readable
from jaxdp._base.places import loaded
from jaxdp.audit import bounds, cases, sensitivity
from jaxdp.audit.epsilon import Bound, lower_bound
from jaxdp.audit.pairs import MECHANISMS, Pair, project
from jaxdp.audit.searches import FLAWED_SEARCHES, SEARCHES, sampled_bound, worst_neighbours
from jaxdp.audit.sensitivity import Attack, falsify, neighbour
from jaxdp.core import Relation
from jaxdp.discovery.spec import SearchAudit
from jaxdp.noise import lattice
from jaxdp.noise.source import FloatNoise, LatticeNoise
from jaxdp.published import true_losses
from jaxdp.randomness import keys

BATCH = 1 << 18
LANES = 1 << 11  # runs of one compiled batch
RUNS, SEARCH_RUNS = 1_000_000, 100_000
CANDIDATES = 12  # neighbours of a pilot, for tests that resample
PILOT_RUNS = 1 << 13  # of each, on each side


@dataclasses.dataclass(frozen=True, repr=False)
class Audit(Readable):
    """Claimed epsilon against what was found. `holds` is False if the claim is refuted.

    lower: a lower bound on the true epsilon at confidence 1 - alpha (exact by quadrature for flawed variants,
    where runs = 0). sensitivity: largest change found, as a share of the declared bound (None if not searched).
    pair: which pair of neighbours of the mechanism. delta: of the claim.
    """

    method: str
    claimed: float
    lower: float
    alpha: float
    runs: int
    event: str
    mode: str
    sensitivity: float | None = None
    pair: int = 0
    delta: float = 0.0

    def _display(self) -> tuple[str, dict[str, Any]]:
        doubt = f"with confidence 1 - {self.alpha:g}" if self.runs else "exactly, by quadrature"
        share = None if self.sensitivity is None else f"{self.sensitivity:.4g} of the declared bound reached"
        values = {
            "claimed": f"epsilon={self.claimed}" + (f", delta={self.delta}" if self.delta else ""),
            "found": f"epsilon >= {self.lower:.4g} {doubt}",
            "event": self.event,
            "sensitivity": share,
            "runs": f"{self.runs} on made-up data, {self.mode}",
        }
        verdict = "claim not refuted" if self.holds else "CLAIM REFUTED"
        return f"audit of {self.method}: {verdict}", {name: values[name] for name in values if values[name]}

    @property
    def holds(self) -> bool:
        """Whether the claim stands."""
        slack = 1e-3 if self.sensitivity is not None else 0.0
        return self.lower <= self.claimed and (self.sensitivity is None or self.sensitivity <= 1.0 + slack)


def subjects() -> list[str]:
    """Names of mechanisms, flawed variants, examples of tests (`jaxdp.audit.cases`) and searches."""
    tests = (name for name, found in cases.all_examples().items() if found.claims_epsilon)
    return [*MECHANISMS, *FLAWED, *tests, *SEARCHES, *FLAWED_SEARCHES]


def audit(
    method: str,
    epsilon: float,
    *,
    runs: int | None = None,
    key: jax.Array | None = None,
    alpha: float = 1e-6,
    generate: Callable[..., Any] | None = None,
    pair: int = 0,
    release: bool | None = None,
    attack: Any = None,
) -> Audit:
    """Audits a mechanism, an example of a test, a causal search, or a flawed variant by name (`subjects()`).

    method: "package.module:Class" too, a test of one's own, on the first example of its spec.

    epsilon: the claim. runs: in all, half on each neighbour; default 1e6, of searches 1e5. key: of simulations, default
    fresh entropy. pair: which of five pairs of neighbours: of a mechanism they are fixed, of a test each is the worst
    of an attack of its own, of a causal search they are the best of one attack.
    generate: key -> Data, the domain in which a test is attacked. attack: what `attacked` found, instead of a new one.
    release: exact noise from a fresh release key, or simulated noise, which has the same law;
    default: exact for mechanisms with a plan of many draws, whose exact draws are fast.
    """
    check.positive(epsilon=epsilon)
    epsilon = float(epsilon)
    if method in FLAWED:
        loss, event = FLAWED[method](epsilon)
        return Audit(method, epsilon, loss, 0.0, 0, event, "quadrature")
    if method not in subjects() and ":" not in method:
        raise ValueError(f"method must be one of {', '.join(subjects())}, got {method!r}.")
    search = _search(method)
    runs = (RUNS if search is None else SEARCH_RUNS) if runs is None else runs
    check.at_least(400, runs=runs)
    key = jax.random.key(int.from_bytes(np.random.default_rng().bytes(4), "little")) if key is None else key
    keys.require_simulation(key)
    key_search, key_runs = jax.random.split(key)
    pairs = MECHANISMS[method](epsilon) if method in MECHANISMS else []
    planned = any(each.plan for each in pairs)
    mode = keys.RELEASE if (planned if release is None else release) else keys.SIMULATION
    if mode == keys.RELEASE:
        keys.require_releasable()
    if not pairs and attack is None:
        attack = attacked(method, jax.random.fold_in(key_search, pair) if search is None else key_search, generate)
    share, delta = None, 0.0
    if search is not None:
        neighbours = _numbered(attack, pair)
        exact = mode == keys.RELEASE
        found = sampled_bound(search, search.build(epsilon), neighbours, key_runs, runs, alpha=alpha, release=exact)
        delta = search.delta
    elif not pairs and cases.find(method).whole:
        test, view = cases.find(method).audited(epsilon), loaded(cases.find(method).settings.view)
        sides = zip(jax.random.split(key_runs), attack, strict=True)
        found = lower_bound(
            *(whole_runs(test, part, data, runs // 2, view) for part, data in sides), alpha=alpha, low_bits=False
        )
    else:
        if pairs:
            chosen = _numbered(pairs, pair)
        else:
            test = cases.find(method).audited(epsilon)
            if cases.find(method).settings.neighbours is None:
                chosen, share = _pair_of(test, attack), attack.ratio
            else:
                chosen, share = _pair_between(test, *attack)
        delta = chosen.delta
        found = _of_pair(chosen, key_runs, runs, epsilon, mode, alpha)
    return Audit(method, epsilon, found.epsilon, alpha, runs, found.event, mode, share, pair, delta)


def attacked(method: str, key: jax.Array, generate: Callable[..., Any] | None = None) -> Any:
    """What the audits of a test or a causal search attack, at epsilon 1; serves every epsilon.

    A test: `Attack`, the worst pair for its sensitivity, or the two data sets that its example names. A test that
    resamples or has stages, so that no pair is worst for one fixed randomness: the two data sets that a pilot of whole
    runs tells apart best. A search: five pairs of records, best first.
    """
    search = _search(method)
    if search is not None:
        return worst_neighbours(search, key)
    subject = cases.find(method)
    generate = generate or subject.searched
    if subject.settings.neighbours is not None:
        made = loaded(subject.settings.neighbours)()
        return made[0] if isinstance(made, list) else made
    if subject.example.coupled:
        return _pilot(subject.audited(1.0), key, generate)
    test = _one_stage(subject.audited(1.0), jax.eval_shape(generate, key))
    return falsify(test, key, generate, weights=_shares(test))


def _search(method: str) -> SearchAudit | None:
    return SEARCHES.get(method) or FLAWED_SEARCHES.get(method)


def _numbered(pairs, number: int):
    if not 0 <= number < len(pairs):
        raise ValueError(f"pair must be between 0 and {len(pairs) - 1}, got {number}.")
    return pairs[number]


def _of_pair(chosen: Pair, key, runs: int, epsilon: float, mode: str, alpha: float) -> Bound:
    """Lower bound from a mechanism's outputs on two un-noised values."""
    if mode == keys.RELEASE:
        first, second = _released(chosen, runs // 2, epsilon)
    else:
        first, second = (
            sample(chosen, part, value, runs // 2)
            for part, value in zip(jax.random.split(key), (chosen.first, chosen.second), strict=True)
        )
    return lower_bound(first, second, alpha=alpha, delta=chosen.delta, low_bits=mode == keys.RELEASE)


def _pilot(test, key, generate):
    """The neighbours, of a few at random, that short runs of the whole test tell apart best."""
    box = functools.partial(sensitivity._pair, generate, 1.0, 0.5)
    relation = _relation_of(test, jax.eval_shape(generate, key))
    best, found = -1.0, None
    for number in range(CANDIDATES):
        key_pair, *sides = jax.random.split(jax.random.fold_in(key, number), 3)
        data, replacement = box(key_pair)
        pair = data, neighbour(data, replacement, relation)
        outputs = (whole_runs(test, part, side, PILOT_RUNS) for part, side in zip(sides, pair, strict=True))
        bound = lower_bound(*outputs, alpha=0.05, low_bits=False).epsilon
        if bound > best:
            best, found = bound, pair
    return found


def _relation_of(test, shapes) -> Relation:
    test = core.specialize(test, shapes)
    while isinstance(test, core.Sequential):
        test = core.specialize(test.first, shapes)
    return core.relation_of(test.sensitivity(core.num_records(shapes)))


def whole_runs(test, key, data, runs: int, view=None):
    """What independent runs of a test release, statistics resampled and noise drawn anew: array (runs,).

    view: result -> the number that is looked at; default the largest statistic.
    """
    lanes = min(runs, LANES)
    with jax.debug_key_reuse(False):
        return np.asarray(_whole(test, key, data, -(-runs // lanes), lanes, view or _largest)).ravel()[:runs]


def _largest(result):
    return jnp.max(jnp.asarray(result.statistic, float))


@functools.partial(jax.jit, static_argnums=(3, 4, 5))
def _whole(test, key, data, count: int, lanes: int, view):
    def one(key):
        return view(core.run(test, key, data))

    return jax.lax.map(one, jax.random.split(key, count * lanes), batch_size=lanes)


def _released(pair: Pair, runs: int, epsilon: float):
    """Projected outputs of exact releases on both neighbours, arrays (runs,)."""
    roots = keys.fresh_key().split(2)
    values = (pair.first, pair.second)
    sides = zip(roots, values, strict=True)
    if pair.plan is not None:
        return tuple(_repeated(pair.plan, part, value, pair.sensitivity, epsilon, runs) for part, value in sides)
    return tuple(_released_one_by_one(pair, part, value, runs) for part, value in sides)


def _released_one_by_one(pair: Pair, root, value, runs: int):
    """Independent releases, each with its own key; budgets and bounds are concrete, as exact noise needs them."""
    with keys.precision(keys.RELEASE):

        def whole(part):
            return jnp.issubdtype(jnp.result_type(part), jnp.integer)

        value = jax.tree.map(lambda part: jnp.asarray(part, np.int64 if whole(part) else np.float64), value)

        def once(key, value):
            return project(pair.mechanism.perturb(LatticeNoise(key), value, pair.sensitivity), pair)

        lanes = min(runs, LANES)
        batch = jax.jit(lambda key, value: jax.vmap(lambda k: once(k, value))(jax.random.split(key, lanes)))
        parts = root.split(-(-runs // lanes))
        found = [np.asarray(batch(keys.open_key(part), value)) for part in parts]
    return np.concatenate(found)[:runs].astype(np.float64)


def _repeated(plan, root, value, sensitivity, epsilon: float, runs: int):
    """`runs` independent releases of one number: one plan, many draws."""
    found = []
    with keys.precision(keys.RELEASE):
        one = plan(1, sensitivity, epsilon)
        pieces = [min(BATCH, runs - start) for start in range(0, runs, BATCH)]
        for number, part in zip(pieces, root.split(len(pieces)), strict=True):
            found.append(lattice.add(keys.open_key(part), jnp.full(number, value, np.float64), one))
        return np.concatenate([np.asarray(piece) for piece in found])


def sample(pair: Pair, key, value, runs: int):
    """Projected outputs of independent simulated runs on one value, array (runs,)."""
    batch = min(runs, 1 << 12)
    return np.asarray(_sampled(pair, key, value, -(-runs // batch), batch)).ravel()[:runs]


@functools.partial(jax.jit, static_argnums=(3, 4))
def _sampled(pair, key, value, count: int, batch: int):
    def one(key):
        return project(pair.mechanism.perturb(FloatNoise(key), value, pair.sensitivity), pair)

    return jax.lax.map(lambda key: jax.vmap(one)(jax.random.split(key, batch)), jax.random.split(key, count))


def _one_stage(test, shapes):
    test = core.specialize(test, shapes)
    if isinstance(test, core.Sequential):
        raise ValueError(f"{core.method_of(test.second)} has stages; audit it with stages switched off.")
    return test


def _pair_of(test, attack: Attack) -> Pair:
    """The un-noised values on the neighbours that an attack found."""
    first = jax.tree.map(jnp.asarray, attack.data)
    test = _one_stage(test, first)
    bounds = test.sensitivity(core.num_records(attack.data))
    second = neighbour(first, jax.tree.map(jnp.asarray, attack.replacement), core.relation_of(bounds))
    first_value, second_value = (core.exact_statistic(test, jax.random.key(0), version) for version in (first, second))
    return Pair(first_value, second_value, bounds, test.mechanism_in_force())


def _pair_between(test, first, second) -> tuple[Pair, float]:
    """The un-noised values on two given neighbours, and the largest share of a bound that they reach."""
    test = _one_stage(test, first)
    reached = bounds.reached_by(test, [(first, second)])
    before, after = (core.exact_statistic(test, jax.random.key(0), version) for version in (first, second))
    pair = Pair(before, after, test.sensitivity(core.num_records(first)), test.mechanism_in_force())
    return pair, max(found.share for found in reached.values())


def _shares(test) -> tuple[float, ...] | None:
    """What share of epsilon each released part has, in the order of the parts; None for one part."""
    parts = getattr(test.mechanism_in_force(), "parts", None)
    if parts is None:
        return None
    spent = [float(parts[name].cost(Relation.REPLACE_ONE).epsilon) for name in sorted(parts)]
    return tuple(part / sum(spent) for part in spent)


def _flawed_rank(epsilon: float) -> tuple[float, str]:
    scales = (1.0, 1.0 / epsilon)  # the witness was found at epsilon 1
    losses = [true_losses.noisy_rank_loss(epsilon, np.array(true_losses.WITNESS) * scale) for scale in scales]
    return max(losses), "whole noisy rank, m = 5"


# claimed epsilon -> the true loss, and where it is attained
FLAWED: dict[str, Callable[[float], tuple[float, str]]] = {
    "micr-geom": lambda epsilon: (true_losses.published_mic_loss(epsilon), "coefficient 0, n = 8, three tables"),
    "noisy-permutation": _flawed_rank,
    "algorithm-2": lambda epsilon: (
        true_losses.algorithm_2_loss(epsilon, 20.0),
        "one above-threshold answer after a refresh, n/m = 20",
    ),
    "algorithm-3": lambda epsilon: (true_losses.algorithm_3_loss(epsilon, 16), "16 accepted tests"),
}
