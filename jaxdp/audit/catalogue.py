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
from jaxdp.audit.epsilon import Bound, lower_bound
from jaxdp.audit.sensitivity import falsify, neighbour
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.mechanisms import ExponentialMechanism, RankThreshold, ReportNoisyMax
from jaxdp.noise import keys, lattice

BATCH = 1 << 18
SEARCH_RECORDS = 24


@dataclasses.dataclass(frozen=True)
class Audit:
    """Claimed epsilon against what was found. `holds` is False if the claim is refuted.

    lower: a lower bound on the true epsilon at confidence 1 - alpha (exact by quadrature for flawed variants,
    where runs = 0). sensitivity: largest change found, as a share of the declared bound (None if not searched).
    """

    method: str
    claimed: float
    lower: float
    alpha: float
    runs: int
    event: str
    mode: str
    sensitivity: float | None = None

    @property
    def holds(self) -> bool:
        slack = 1e-3 if self.sensitivity is not None else 0.0
        return self.lower <= self.claimed and (self.sensitivity is None or self.sensitivity <= 1.0 + slack)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Worst-case neighbours of a mechanism: un-noised values, their sensitivity, the mechanism."""

    first: Any
    second: Any
    sensitivity: Any
    mechanism: Any


def subjects() -> list[str]:
    """Names of mechanisms and flawed variants; tests are audited by their class name."""
    return [*MECHANISMS, *FLAWED]


def audit(method: str, epsilon: float, *, runs: int = 1_000_000, key=None, alpha: float = 1e-6, generate=None) -> Audit:
    """Audits a mechanism (`subjects()`), a flawed variant, or a test of the package by its class name.

    epsilon: the claim. runs: in all, half on each neighbour. key: simulation key (default: fresh entropy).
    Mechanisms with additive noise are audited in release mode, the others in simulation, which has the same law.
    generate: key -> Data, the domain in which a worst pair of a test is searched.
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
        pair = MECHANISMS[method](float(epsilon))
    else:
        pair, share = worst_pair(_test(method, epsilon), key_search, generate or _default_data)
    mode, first, second = _outputs(method, pair, key_runs, runs // 2, float(epsilon))
    found: Bound = lower_bound(first, second, alpha=alpha, low_bits=mode == keys.RELEASE)
    return Audit(method, float(epsilon), found.epsilon, alpha, runs, found.event, mode, share)


def _outputs(method: str, pair: Pair, key, runs: int, epsilon: float):
    """Mode, and projected outputs of both neighbours, arrays (runs,)."""
    if method in ("laplace", "geometric"):
        plan = getattr(lattice, f"plan_{method}")
        root = keys.fresh_key()
        first, second = (
            _repeated(plan, part, value, pair.sensitivity, epsilon, runs)
            for part, value in zip(root.split(2), (pair.first, pair.second), strict=True)
        )
        return keys.RELEASE, first, second
    key_first, key_second = jax.random.split(key)
    first = sample(pair, key_first, pair.first, runs)
    return keys.SIMULATION, first, sample(pair, key_second, pair.second, runs)


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
    """Projected outputs of independent runs on one value, array (runs,)."""
    batch = min(runs, 1 << 12)
    count = -(-runs // batch)
    out = _sampled(pair, key, value, count, batch)
    return np.asarray(out).ravel()[:runs]


@functools.partial(jax.jit, static_argnums=(3, 4))
def _sampled(fields, key, value, count: int, batch: int):
    def one(key):
        return project(fields.mechanism.perturb(key, value, fields.sensitivity), fields)

    return jax.lax.map(lambda key: jax.vmap(one)(jax.random.split(key, batch)), jax.random.split(key, count))


jax.tree_util.register_dataclass(Pair, ["first", "second", "sensitivity", "mechanism"], [])


def project(output, pair: Pair):
    """One number per release that tells the neighbours apart best: the privacy loss of Laplace noise.

    Additive parts: sum over coordinates of the output, cut between the two un-noised values, in units of the noise
    scale. Selections and decisions: the outcome itself.
    """
    parts = output if isinstance(output, dict) else {"": output}
    total = 0.0
    for name, part in parts.items():
        pick = lambda tree, name=name: tree[name] if isinstance(output, dict) else tree  # noqa: E731
        mechanism = pair.mechanism[name] if isinstance(output, dict) else pair.mechanism
        if not hasattr(mechanism, "noise"):
            total = total + part
            continue
        first, second = (jnp.asarray(pick(side), float) for side in (pair.first, pair.second))
        inside = jnp.clip(part, jnp.minimum(first, second), jnp.maximum(first, second))
        total = total + jnp.sum(jnp.sign(second - first) * inside) / mechanism.scale(pick(pair.sensitivity))
    return total


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


def _test(method: str, epsilon: float):
    import jaxdp

    known = getattr(jaxdp, method, None)
    if not (isinstance(known, type) and issubclass(known, core.PrivateQuery)):
        raise ValueError(f"method must be one of {', '.join(subjects())} or the name of a test, got {method!r}.")
    try:
        return known(epsilon=epsilon)
    except TypeError as error:
        raise ValueError(
            f"{method} needs more than epsilon: call jaxdp.audit.catalogue.worst_pair yourself ({error})."
        ) from None


def _default_data(key):
    from jaxdp.simulate import sine_confounder

    return sine_confounder(key, SEARCH_RECORDS, effect=0.5)


def _scalar(bound: float, norm: Norm) -> Sensitivity:
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, lower=-100.0 * bound, upper=100.0 * bound)


def _laplace(epsilon: float) -> Pair:
    return Pair(0.0, 2.0, _scalar(2.0, Norm.L1), None)


def _geometric(epsilon: float) -> Pair:
    return Pair(0.0, 3.0, _scalar(3.0, Norm.L1), None)


def _noisy_max(epsilon: float) -> Pair:
    # from a tie, both scores move: the loser's probability falls from 1/2 to exp(-epsilon)/2
    return Pair(jnp.array([0.0, 0.0]), jnp.array([1.0, -1.0]), _scalar(1.0, Norm.LINF), ReportNoisyMax(epsilon=epsilon))


def _exponential(epsilon: float) -> Pair:
    gap = 8.0 / max(1.0, epsilon)
    first = jnp.array([0.0, -gap - 2.0])
    return Pair(first, first + jnp.array([-1.0, 1.0]), _scalar(1.0, Norm.LINF), ExponentialMechanism(epsilon=epsilon))


def _rank(epsilon: float) -> Pair:
    # many copies: their median is nearly fixed, so the reference's noise alone decides
    reference, copies = jnp.asarray(-2.0), jnp.zeros(99)
    bounds = (_scalar(1.0, Norm.LINF), _scalar(1.0, Norm.LINF))
    return Pair((reference, copies), (reference - 1.0, copies + 1.0), bounds, RankThreshold(epsilon=epsilon, level=0.5))


MECHANISMS: dict[str, Callable[[float], Pair]] = {
    "laplace": _laplace,
    "geometric": _geometric,
    "noisy-max": _noisy_max,
    "exponential": _exponential,
    "rank": _rank,
}


def _flawed_rank(epsilon: float) -> tuple[float, str]:
    scales = (1.0, 1.0 / epsilon)  # the witness was found at epsilon 1
    losses = [flawed.noisy_rank_loss(epsilon, np.array(flawed.WITNESS) * scale) for scale in scales]
    return max(losses), "whole noisy rank, m = 5"


def _flawed_sieve(epsilon: float) -> tuple[float, str]:
    return flawed.algorithm_2_loss(epsilon, 20.0), "one firing after a refresh, n/m = 20"


def _flawed_threshold(epsilon: float) -> tuple[float, str]:
    return flawed.algorithm_3_loss(epsilon, 16), "16 accepted tests"


FLAWED: dict[str, Callable[[float], tuple[float, str]]] = {
    "noisy-permutation": _flawed_rank,
    "algorithm-2": _flawed_sieve,
    "algorithm-3": _flawed_threshold,
}
