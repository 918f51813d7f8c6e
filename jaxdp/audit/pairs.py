"""Worst-case neighbours of every mechanism: what the sampled audits run on.

Each function takes the claimed epsilon and returns five pairs of un-noised values; the first is the most telling.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.discovery.spec import AUDITED_DELTA
from jaxdp.mechanisms import ExponentialMechanism, Gaussian, Geometric, Laplace, MaxNorm, RankThreshold, ReportNoisyMax
from jaxdp.mechanisms.random_stopping import RandomStopping
from jaxdp.mechanisms.selection import TopK
from jaxdp.mechanisms.smooth_sensitivity import SmoothCauchy, SmoothGaussian, SmoothLaplace, SmoothStudent
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.noise import lattice

FAR = 100.0  # half width of the public range, in units of the bound


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Pair:
    """Worst-case neighbours of a mechanism: un-noised values, their sensitivity, the mechanism.

    delta: of the claim. view: output -> the number that tells the neighbours apart (default `project`).
    plan: (size, sensitivity, epsilon) -> plan of many exact draws at once, where the law has one.
    """

    first: Any
    second: Any
    sensitivity: Any
    mechanism: Any
    delta: float = jax.tree.static(default=0.0)
    view: Callable | None = jax.tree.static(default=None)
    plan: Callable | None = jax.tree.static(default=None)


def project(output, pair: Pair):
    """One number per release that tells the neighbours apart best: the privacy loss of Laplace noise.

    Additive parts: sum over coordinates of the output, cut between the two un-noised values, in units of the noise
    scale. Selections and decisions: the outcome itself.
    """
    if pair.view is not None:
        return pair.view(output)
    parts = output if isinstance(output, dict) else {"": output}
    total = 0.0
    for name, part in parts.items():

        def pick(tree, name=name):
            return tree[name] if isinstance(output, dict) else tree

        mechanism = pair.mechanism[name] if isinstance(output, dict) else pair.mechanism
        if not hasattr(mechanism, "noise"):
            total = total + part
            continue
        first, second = (jnp.asarray(pick(side), float) for side in (pair.first, pair.second))
        inside = jnp.clip(part, jnp.minimum(first, second), jnp.maximum(first, second))
        total = total + jnp.sum(jnp.sign(second - first) * inside) / mechanism.scale(pick(pair.sensitivity))
    return total


def _scalar(bound: float, norm: Norm) -> Sensitivity:
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, lower=-FAR * bound, upper=FAR * bound)


def _additive(bound: float, norm: Norm, mechanism, *, fraction: float = 0.3, **more) -> list[Pair]:
    """A step of the whole bound: from zero, back, at both ends of the public range, and off the lattice."""
    end = FAR * bound
    starts = ((0.0, bound), (bound, 0.0), (-end, bound - end), (end - bound, end), (fraction, bound + fraction))
    return [Pair(first, second, _scalar(bound, norm), mechanism, **more) for first, second in starts]


def _gaussian(epsilon: float) -> list[Pair]:
    """rho whose exact curve passes through (epsilon, AUDITED_DELTA); the cost says rho alone."""
    mechanism = Gaussian(rho=gaussian_rho(epsilon, AUDITED_DELTA))
    return _additive(2.0, Norm.L2, mechanism, delta=AUDITED_DELTA, view=_itself)


def _max_norm(epsilon: float) -> list[Pair]:
    """Two coordinates, each of which moves by the whole bound or not at all."""
    mechanism, bound = MaxNorm(epsilon=epsilon), 2.0
    sensitivity, end = _scalar(bound, Norm.LINF), FAR * bound
    starts = [((0.0, 0.0), (2.0, 2.0)), ((2.0, 0.0), (0.0, 0.0)), ((-end, -end), (2.0 - end, -end))]
    starts += [((end - 2.0, end), (end, end - 2.0)), ((0.3, 0.3), (2.3, 2.3))]
    return [
        Pair(first, second, sensitivity, mechanism, view=functools.partial(_loss, first=first, second=second))
        for first, second in (map(jnp.array, pair) for pair in starts)
    ]


def _loss(output, first, second):
    """The privacy loss of max-norm noise, in units of the bound over epsilon, rounded.

    Most of its law lies on the two ends; differences of floats scatter these, and not alike on both sides.
    """
    loss = jnp.max(jnp.abs(output - first)) - jnp.max(jnp.abs(output - second))
    return jnp.round(loss * 64.0) / 64.0


def _itself(output):
    return output


def gaussian_rho(epsilon: float, delta: float) -> float:
    """rho at which normal noise is exactly (epsilon, delta)-DP (Balle and Wang 2018, Theorem 8)."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def curve(m):
        return norm.cdf(m / 2 - epsilon / m) - math.exp(epsilon) * norm.cdf(-m / 2 - epsilon / m)

    return brentq(lambda m: curve(m) - delta, 1e-3, 20.0 + 2.0 * epsilon) ** 2 / 2.0


def _moves(scores, move, mechanism, sensitivity, view=None) -> Pair:
    first = jnp.asarray(scores, float)
    return Pair(first, first + jnp.asarray(move, float), sensitivity, mechanism, view=view)


def _noisy_max(epsilon: float) -> list[Pair]:
    # from a tie, both scores move: the loser's probability falls from 1/2 to exp(-epsilon)/2
    build = functools.partial(_moves, mechanism=ReportNoisyMax(epsilon=epsilon), sensitivity=_scalar(1.0, Norm.LINF))
    gap = 2.0 / epsilon
    return [
        build([0.0, 0.0], [1.0, -1.0]),
        build([1.0, -1.0], [-1.0, 1.0]),
        build([0.0, 0.0, 0.0, 0.0], [1.0, -1.0, -1.0, -1.0]),
        build([gap, 0.0], [-1.0, 1.0]),
        build([0.3, 0.3], [1.0, -1.0]),
    ]


def _exponential(epsilon: float) -> list[Pair]:
    build = functools.partial(
        _moves, mechanism=ExponentialMechanism(epsilon=epsilon), sensitivity=_scalar(1.0, Norm.LINF)
    )
    gap = 8.0 / max(1.0, epsilon) + 2.0
    return [
        build([0.0, -gap], [-1.0, 1.0]),
        build([0.0, gap], [1.0, -1.0]),
        build([0.0, -gap, -gap], [-1.0, 1.0, 1.0]),
        build([0.0, 0.0], [1.0, -1.0]),
        build([0.3, 0.3 - gap], [-1.0, 1.0]),
    ]


def _top(epsilon: float) -> list[Pair]:
    """Two of three; the outcome is the ordered pair of indices."""
    build = functools.partial(
        _moves, mechanism=TopK(epsilon=epsilon, count=2), sensitivity=_scalar(1.0, Norm.LINF), view=_ordered_pair
    )
    gap = 8.0 / max(1.0, epsilon) + 2.0
    return [
        build([0.0, -gap, -2.0 * gap], [-1.0, 1.0, 1.0]),
        build([0.0, 0.0, 0.0], [1.0, 0.0, -1.0]),
        build([0.0, 0.0, -gap], [-1.0, -1.0, 1.0]),
        build([gap, 0.0, 0.0], [-1.0, 1.0, -1.0]),
        build([0.3, 0.3 - gap, 0.3 - gap], [-1.0, 1.0, 1.0]),
    ]


def _ordered_pair(indices):
    return 3 * indices[0] + indices[1]


def _rank(epsilon: float) -> list[Pair]:
    # many copies: their median is nearly fixed, so the reference's noise alone decides
    bounds = (_scalar(1.0, Norm.LINF), _scalar(1.0, Norm.LINF))

    def build(reference, copies, move, level=0.5):
        first = (jnp.asarray(reference, float), jnp.asarray(copies, float))
        second = (first[0] - move, first[1] + move)
        return Pair(first, second, bounds, RankThreshold(epsilon=epsilon, level=level))

    return [
        build(-2.0, jnp.zeros(99), 1.0),
        build(2.0, jnp.zeros(99), -1.0),
        build(0.0, jnp.zeros(9), 1.0),
        build(-2.0, jnp.linspace(-1.0, 1.0, 39), 1.0, level=0.05),
        build(-1.7, jnp.full(99, 0.3), 1.0),
    ]


@frozen_pytree
class _Queries:
    """`SparseVector` asked a fixed list of queries at threshold 0; the answers as one number: sum of fired places."""

    sieve: SparseVector

    def perturb(self, source, value, sensitivity):
        fired = self.sieve.answers_opened(source, value)
        return jnp.sum(jnp.where(fired, 1.0 + jnp.arange(fired.shape[0]), 0.0))


def _sparse_vector(epsilon: float) -> list[Pair]:
    def build(queries, move, above=1, noise="exponential"):
        sieve = SparseVector(epsilon=epsilon, max_above=above, noise=noise)
        return _moves(queries, move, _Queries(sieve=sieve), _scalar(1.0, Norm.LINF))

    # "no" to the first and "yes" to the last query: both noises move against each other
    top = 2.0 / epsilon
    return [
        build([top, 0.0], [1.0, -1.0]),
        build([top, 0.0], [-1.0, 1.0]),
        build([0.0] * 8 + [0.0], [1.0] * 8 + [-1.0]),
        build([top, 0.0, 0.0], [1.0, -1.0, -1.0], above=2),
        build([top, 0.0], [1.0, -1.0], noise="laplace"),
    ]


def _smooth(law: Callable, epsilon: float, **delta: Any) -> list[Pair]:
    """(value, smooth sensitivity): apart by the smaller sensitivity, the sensitivities by a factor e^decay."""
    mechanism = law(epsilon=epsilon, **delta)
    grow = float(jnp.exp(mechanism.decay()))
    bounds = Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, lower=0.0, upper=1.0)
    size = 1.0 / 64.0
    values = (
        ((0.5, size), (0.5 + size, size)),
        ((0.5, size), (0.5 + size, size * grow)),
        ((0.5, size * grow), (0.5 + size, size)),
        ((0.5, size), (0.5, size * grow)),
        ((1.0, size), (1.0 - size, size)),
    )
    return [Pair(first, second, bounds, mechanism, view=_itself, **delta) for first, second in values]


def _random_stopping(epsilon: float) -> list[Pair]:
    """Whether the best of a random number of runs is the first of ten candidates."""
    mechanism = RandomStopping(epsilon=epsilon, mean_runs=4.0)
    build = functools.partial(_moves, mechanism=mechanism, sensitivity=_scalar(1.0, Norm.LINF), view=_is_first)
    gap = 2.0 / epsilon
    return [
        build([0.0] * 10, [1.0] + [-1.0] * 9),
        build([0.0] * 10, [-1.0] + [1.0] * 9),
        build([gap] + [0.0] * 9, [-1.0] + [1.0] * 9),
        build([0.0, gap] + [0.0] * 8, [1.0] + [-1.0] * 9),
        build([0.3] * 10, [1.0] + [-1.0] * 9),
    ]


def _is_first(index):
    return (index == 0).astype(float)


MECHANISMS: dict[str, Callable[[float], list[Pair]]] = {
    "laplace": lambda epsilon: _additive(2.0, Norm.L1, Laplace(epsilon), plan=lattice.plan_laplace),
    "geometric": lambda epsilon: _additive(3.0, Norm.L1, Geometric(epsilon), fraction=1.0, plan=lattice.plan_geometric),
    "gaussian": _gaussian,
    "max-norm": _max_norm,
    "noisy-max": _noisy_max,
    "exponential": _exponential,
    "top-k": _top,
    "rank": _rank,
    "sparse-vector": _sparse_vector,
    "cauchy": functools.partial(_smooth, SmoothCauchy),
    "student": functools.partial(_smooth, SmoothStudent),
    "smooth-laplace": functools.partial(_smooth, SmoothLaplace, delta=AUDITED_DELTA),
    "smooth-gaussian": functools.partial(_smooth, SmoothGaussian, delta=AUDITED_DELTA),
    "random-stopping": _random_stopping,
}
