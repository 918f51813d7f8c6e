"""Lower bounds on epsilon from runs on two neighbours.

Events are chosen on one half of the runs and counted on the other, so that choosing costs nothing.
Clopper-Pearson limits at level alpha then hold whatever the mechanism is.
"""

import dataclasses

import numpy as np

from jaxdp._base import check
from jaxdp._base.types import Array

QUANTILES = np.concatenate([[1e-4, 1e-3, 1e-2], np.linspace(0.05, 0.95, 19), [0.99, 0.999, 0.9999]])
LOW_BITS = 4
MAX_ATOMS = 64


@dataclasses.dataclass(frozen=True)
class Bound:
    """epsilon >= `epsilon` with confidence 1 - alpha; `event` is what told the neighbours apart."""

    epsilon: float
    alpha: float
    event: str
    runs: int


def lower_bound(
    first: Array, second: Array, *, alpha: float = 1e-6, delta: float = 0.0, low_bits: bool = True
) -> Bound:
    """Audit of released numbers, arrays (runs,) from two neighbouring data sets.

    Events: one-sided thresholds, frequent single values, and patterns of the lowest mantissa bits. The last give
    floating-point noise away whatever its scale; low_bits=False leaves them out, for simulations.
    Errors: ValueError if there are fewer than 100 runs or alpha is not in (0, 1).
    """
    check.in_range(0.0, 1.0, alpha=alpha)
    first, second = np.ravel(first), np.ravel(second)
    if min(first.size, second.size) < 100:
        raise ValueError(f"an audit needs at least 100 runs on each neighbour, got {min(first.size, second.size)}.")
    choose, count = zip(*(_halves(sample) for sample in (first, second)), strict=True)
    events = _events(np.concatenate(choose), low_bits)
    rates = [[np.mean(inside(sample)) for sample in choose] for _, inside in events]
    return _best(events, rates, count, alpha, delta)


def events_bound(first: Array, second: Array, *, alpha: float = 1e-6, delta: float = 0.0) -> Bound:
    """Audit from counts of discrete outcomes, arrays (runs,) of small integers or booleans."""
    return lower_bound(np.asarray(first, np.int64), np.asarray(second, np.int64), alpha=alpha, delta=delta)


def outcomes_bound(first: Array, second: Array, *, alpha: float = 1e-6, delta: float = 0.0) -> Bound:
    """Audit from outcomes of any kind, arrays (runs,) of whole numbers that name them.

    They are ranked by their likelihood ratio on the half of the runs that chooses, so that the events are the sets that
    tell the neighbours apart best.
    """
    first, second = np.ravel(first), np.ravel(second)
    count = 1 + max(int(first.max()), int(second.max()))
    seen = [np.bincount(_halves(sample)[0], minlength=count) for sample in (first, second)]
    rank = np.empty(count, np.int64)
    rank[np.argsort(np.log((seen[0] + 0.5) / (seen[1] + 0.5)), kind="stable")] = np.arange(count)
    found = lower_bound(rank[first], rank[second], alpha=alpha, delta=delta)
    return dataclasses.replace(found, event=found.event.replace("output", f"rank of {count} outcomes"))


def _halves(sample):
    return sample[::2], sample[1::2]


def _events(sample, with_low_bits: bool):
    """Pairs (name, indicator function)."""
    found = []
    for threshold in np.unique(np.quantile(sample, QUANTILES)):
        found.append((f"output <= {threshold:.6g}", lambda x, t=threshold: x <= t))
        found.append((f"output > {threshold:.6g}", lambda x, t=threshold: x > t))
    values, counts = np.unique(sample[: 1 << 16], return_counts=True)
    for value in values[np.argsort(-counts)[:MAX_ATOMS]]:
        if np.sum(values == value) and np.max(counts) > 20:
            found.append((f"output == {value:.17g}", lambda x, v=value: x == v))
    if with_low_bits and sample.dtype.kind == "f":
        for pattern in range(1 << LOW_BITS):
            found.append((f"low bits == {pattern}", lambda x, p=pattern: lowest_bits(x) == p))
    return found


def lowest_bits(values):
    """The lowest mantissa bits of floats, as integers."""
    width = values.dtype.itemsize
    return values.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[width]) & ((1 << LOW_BITS) - 1)


def _best(events, rates, samples, alpha: float, delta: float) -> Bound:
    """The bound of the most telling event in either direction, each at alpha/2."""
    runs = samples[0].size + samples[1].size
    best = Bound(0.0, alpha, "none", runs)
    for direction in ((0, 1), (1, 0)):
        guesses = [_guess(rate[direction[0]], rate[direction[1]], samples, delta) for rate in rates]
        name, inside = events[int(np.argmax(guesses))]
        hits = [int(np.sum(inside(samples[side]))) for side in direction]
        sizes = [samples[side].size for side in direction]
        epsilon = certain(hits, sizes, alpha / 2, delta)
        if epsilon > best.epsilon:
            best = Bound(epsilon, alpha, name, runs)
    return best


def _guess(p: float, q: float, samples, delta: float) -> float:
    """The bound that the event implies, from rates on the choosing half (five standard errors off)."""
    size = min(sample.size for sample in samples)
    low = p - delta - 5 * np.sqrt(p * (1 - p) / size) - 10 / size
    high = q + 5 * np.sqrt(q * (1 - q) / size) + 15 / size
    return float(np.log(low / high)) if low > 0 else -np.inf


def certain(hits, sizes, alpha: float, delta: float = 0.0) -> float:
    """log((p_low - delta)/q_high) with Clopper-Pearson limits at alpha/2 each; 0 if nothing is shown."""
    from scipy.special import betaincinv

    (hit, other), (size, second) = hits, sizes
    low = float(betaincinv(hit, size - hit + 1, alpha / 2)) if hit else 0.0
    high = 1.0 if other >= second else float(betaincinv(other + 1, second - other, 1 - alpha / 2))
    return max(0.0, float(np.log((low - delta) / high))) if low > delta else 0.0
