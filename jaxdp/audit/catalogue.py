"""What can be audited by name: every mechanism, every test of the package, and published flawed variants."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import _check, core
from jaxdp.audit import flawed
from jaxdp.audit.domains import SUBJECTS
from jaxdp.audit.epsilon import Bound, lower_bound
from jaxdp.audit.pairs import MECHANISMS, Pair, project
from jaxdp.audit.sensitivity import falsify, neighbour
from jaxdp.core import Relation
from jaxdp.mechanisms import Geometric, Laplace
from jaxdp.noise import keys, lattice

BATCH = 1 << 18
_BARE: dict[str, Any] = {"laplace": Laplace, "geometric": Geometric}  # audited by many draws of one plan
LANES = 1 << 11  # runs of one compiled batch


@dataclasses.dataclass(frozen=True)
class Audit:
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

    @property
    def holds(self) -> bool:
        slack = 1e-3 if self.sensitivity is not None else 0.0
        return self.lower <= self.claimed and (self.sensitivity is None or self.sensitivity <= 1.0 + slack)


def subjects() -> list[str]:
    """Names of mechanisms, flawed variants and tests."""
    return [*MECHANISMS, *FLAWED, *SUBJECTS]


def audit(
    method: str,
    epsilon: float,
    *,
    runs: int = 1_000_000,
    key=None,
    alpha: float = 1e-6,
    generate=None,
    pair: int = 0,
    release: bool | None = None,
) -> Audit:
    """Audits a mechanism, a flawed variant, or a test of the package by its class name (`subjects()`).

    epsilon: the claim. runs: in all, half on each neighbour. key: simulation key (default: fresh entropy).
    pair: which of a mechanism's five pairs of neighbours. generate: key -> Data, the domain in which a worst pair of a
    test is searched. release: exact noise from a fresh release key, or simulated noise, which has the same law;
    default: exact for laplace and geometric, whose exact draws are fast.
    """
    _check.positive(epsilon=epsilon)
    _check.at_least(400, runs=runs)
    if method in FLAWED:
        loss, event = FLAWED[method](float(epsilon))
        return Audit(method, float(epsilon), loss, 0.0, 0, event, "quadrature")
    key = jax.random.key(int.from_bytes(np.random.default_rng().bytes(4), "little")) if key is None else key
    key_search, key_runs = jax.random.split(key)
    share = None
    if method in MECHANISMS:
        pairs = MECHANISMS[method](float(epsilon))
        if not 0 <= pair < len(pairs):
            raise ValueError(f"pair must be between 0 and {len(pairs) - 1}, got {pair}.")
        chosen = pairs[pair]
    else:
        build, generate = _test(method, epsilon, generate)
        chosen, share = worst_pair(build, key_search, generate)
    bare = method in ("laplace", "geometric")
    mode = keys.RELEASE if (bare if release is None else release) else keys.SIMULATION
    if mode == keys.RELEASE:
        first, second = _released(method, chosen, runs // 2, float(epsilon))
    else:
        mechanism = _BARE[method](epsilon) if bare else chosen.mechanism
        chosen = dataclasses.replace(chosen, mechanism=mechanism)
        first, second = (
            sample(chosen, part, value, runs // 2)
            for part, value in zip(jax.random.split(key_runs), (chosen.first, chosen.second), strict=True)
        )
    found: Bound = lower_bound(first, second, alpha=alpha, delta=chosen.delta, low_bits=mode == keys.RELEASE)
    return Audit(method, float(epsilon), found.epsilon, alpha, runs, found.event, mode, share, pair, chosen.delta)


def _test(method: str, epsilon: float, generate):
    """(test, domain) of a class name. Errors: ValueError for names that aren't subjects."""
    if method not in SUBJECTS:
        raise ValueError(f"method must be one of {', '.join(subjects())}, got {method!r}.")
    subject = SUBJECTS[method]
    if subject.coupled and generate is None:
        raise ValueError(
            f"{method} resamples: its neighbours are coupled, so no pair is worst for one fixed randomness; "
            "its mechanism is audited as rank."
        )
    return subject.build(epsilon), generate or subject.generate


def _released(method: str, pair: Pair, runs: int, epsilon: float):
    """Projected outputs of exact releases on both neighbours, arrays (runs,)."""
    roots = keys.fresh_key().split(2)
    values = (pair.first, pair.second)
    if method in _BARE:
        plan = getattr(lattice, f"plan_{method}")
        return tuple(
            _repeated(plan, part, value, pair.sensitivity, epsilon, runs)
            for part, value in zip(roots, values, strict=True)
        )
    return tuple(_released_one_by_one(pair, part, value, runs) for part, value in zip(roots, values, strict=True))


def _released_one_by_one(pair: Pair, root, value, runs: int):
    """Independent releases, each with its own key; budgets and bounds are concrete, as exact noise needs them."""
    with keys.precision(keys.RELEASE):
        whole = lambda part: jnp.issubdtype(jnp.result_type(part), jnp.integer)  # noqa: E731
        value = jax.tree.map(lambda part: jnp.asarray(part, np.int64 if whole(part) else np.float64), value)
        once = lambda key, value: project(pair.mechanism.perturb(key, value, pair.sensitivity), pair)  # noqa: E731
        lanes = min(runs, LANES)
        batch = jax.jit(lambda key, value: jax.vmap(lambda k: once(k, value))(jax.random.split(key, lanes)))
        parts = root.split(-(-runs // lanes))
        found = [np.asarray(batch(part.consume("audit"), value)) for part in parts]
    return np.concatenate(found)[:runs].astype(np.float64)


def _repeated(plan, root, value, sensitivity, epsilon: float, runs: int):
    """`runs` independent releases of one number: one plan, many draws."""
    found = []
    with keys.precision(keys.RELEASE):
        one = plan(1, sensitivity, epsilon)
        pieces = [min(BATCH, runs - start) for start in range(0, runs, BATCH)]
        for number, part in zip(pieces, root.split(len(pieces)), strict=True):
            found.append(lattice.add(part.consume("audit"), jnp.full(number, value, np.float64), one))
        return np.concatenate([np.asarray(piece) for piece in found])


def sample(pair: Pair, key, value, runs: int):
    """Projected outputs of independent simulated runs on one value, array (runs,)."""
    batch = min(runs, 1 << 12)
    return np.asarray(_sampled(pair, key, value, -(-runs // batch), batch)).ravel()[:runs]


@functools.partial(jax.jit, static_argnums=(3, 4))
def _sampled(pair, key, value, count: int, batch: int):
    def one(key):
        return project(pair.mechanism.perturb(key, value, pair.sensitivity), pair)

    return jax.lax.map(lambda key: jax.vmap(one)(jax.random.split(key, batch)), jax.random.split(key, count))


def worst_pair(test, key, generate, **search) -> tuple[Pair, float]:
    """The pair of statistics that a search found, and its share of the declared bound."""
    test = core.resolve(test, jax.eval_shape(generate, key))
    if isinstance(test, core.Sequential):
        raise ValueError(f"{core.method_of(test.second)} has stages; audit it with stages switched off.")
    attack = falsify(test, key, generate, weights=_shares(test), **search)
    sensitivity = test.sensitivity(core.num_records(attack.data))
    first = jax.tree.map(jnp.asarray, attack.data)
    second = neighbour(first, jax.tree.map(jnp.asarray, attack.replacement), core._relation(sensitivity))
    values = (test.statistic(jax.random.key(0), version) for version in (first, second))
    first_value, second_value = values
    return Pair(first_value, second_value, sensitivity, test.budget()), attack.ratio


def _shares(test) -> tuple[float, ...] | None:
    """What share of epsilon each released part has, in the order of the parts; None for one part."""
    parts = getattr(test.budget(), "parts", None)
    if parts is None:
        return None
    spent = [float(parts[name].cost(Relation.REPLACE_ONE).epsilon) for name in sorted(parts)]
    return tuple(part / sum(spent) for part in spent)


def _flawed_rank(epsilon: float) -> tuple[float, str]:
    scales = (1.0, 1.0 / epsilon)  # the witness was found at epsilon 1
    losses = [flawed.noisy_rank_loss(epsilon, np.array(flawed.WITNESS) * scale) for scale in scales]
    return max(losses), "whole noisy rank, m = 5"


def _flawed_sieve(epsilon: float) -> tuple[float, str]:
    return flawed.algorithm_2_loss(epsilon, 20.0), "one firing after a refresh, n/m = 20"


def _flawed_threshold(epsilon: float) -> tuple[float, str]:
    return flawed.algorithm_3_loss(epsilon, 16), "16 accepted tests"


def _flawed_mic(epsilon: float) -> tuple[float, str]:
    return flawed.published_mic_loss(epsilon), "coefficient 0, n = 8, three tables"


FLAWED: dict[str, Callable[[float], tuple[float, str]]] = {
    "micr-geom": _flawed_mic,
    "noisy-permutation": _flawed_rank,
    "algorithm-2": _flawed_sieve,
    "algorithm-3": _flawed_threshold,
}
