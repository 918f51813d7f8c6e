"""Power of one Z against the level on rough nulls, for widths, lags and null variances of the band that were not taken.

    python -m experiments.evidence.level frontier [--data-sets 600]

n = 1000, epsilon 1, noise integrated out. Lag weights a_1, a_2, ... that sum to 1 and fall (a convex combination of
bands, so that one replacement still moves the sum by at most 3); k = 2 is (1/2, 1/2). The null variance is the public
n (1/9 + (7/36) sum a_j^2), or the released one (15 % of the budget) with its mean square q cut below at a floor. The
design is `jaxdp.simulate.sine_confounder` on bounds of four sds; c is half of the guess of the residual scale (1/4).
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
from scipy.stats import norm

from experiments.evidence.level import nulls
from experiments.record import provenance

RECORD = Path(__file__).parent / "frontier.jsonl"
N, EPSILON, LEVEL, LAGS = 1000, 1.0, 0.05, 4
SHARE = 0.85  # of the budget for the sum, where the variance is released
WIDTHS = (1 / 16, 1 / 8, 1 / 4)
FLOORS = (1e-4, 0.5, 0.6, 0.7)
WEIGHTS = {
    "k=1": (1.0,),
    "k=2": (0.5, 0.5),
    "k=3": (1 / 3, 1 / 3, 1 / 3),
    "k=4": (0.25, 0.25, 0.25, 0.25),
    "(.58,.33,.08)": (0.583, 0.333, 0.084),
    "(.67,.28,.05)": (0.67, 0.28, 0.05),
    "(.45,.3,.15,.1)": (0.45, 0.3, 0.15, 0.1),
}
LAWS = ("0.125", "0.25", "steps", "uniform, noise 0.1", "X, Y exact", "sine 6")  # two effects, four nulls


def columns(law: str, count: int):
    """x, y, z, each (count, N), on [-1, 1]."""
    if law in nulls.NULLS:
        x, y, z = nulls.samples(nulls.NULLS[law], N, 1, count, 5, codes=False)
        return x, y, z[..., 0]
    generator = np.random.default_rng(7)
    z = 2 * generator.standard_normal((count, N))
    wave = np.exp(-(z**2) / 2) * np.sin(2 * z)
    own, other = (generator.standard_normal((count, N)) for _ in range(2))
    x, y = (np.clip(part / 4, -1, 1) for part in (wave + own, -wave + float(law) * own + other))
    return x, y, np.clip(z / 8, -1, 1)


def lag_sums(law: str, width: float, count: int):
    """Sums of kernel products and of their squares at each lag, (count, LAGS) both."""
    generator, found = np.random.default_rng(9), []
    for x, y, z in zip(*columns(law, count), strict=True):
        order = np.lexsort((generator.random(N), z))
        x, y, z = x[order], y[order], z[order]
        both = []
        for lag in range(1, LAGS + 1):
            near = (z[lag:] - z[:-lag]) / 2 <= 4 * max(lag, 2) / N
            psi_x, psi_y = (np.clip((side[lag:] - side[:-lag]) / width, -1, 1) for side in (x, y))
            both.append((np.sum(near * psi_x * psi_y), np.sum(near * (psi_x * psi_y) ** 2)))
        found.append(both)
    return np.moveaxis(np.array(found), -1, 0)


def beyond(threshold, centre, scale):
    """P(|centre + Laplace(scale)| >= threshold)."""

    def upper(t):
        return np.where(t > 0, 0.5 * np.exp(-np.abs(t) / scale), 1 - 0.5 * np.exp(-np.abs(t) / scale))

    return upper(threshold - centre) + upper(threshold + centre)


def critical(sd: float, scale: float) -> float:
    """Where a normal of this sd plus the noise lies beyond with probability LEVEL."""
    places = np.linspace(-8, 8, 4001)
    mass = norm.pdf(places) * (places[1] - places[0])
    low, high = 0.0, 20 * (sd + scale)
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if beyond(middle, sd * places, scale) @ mass > LEVEL else (low, middle)
    return high


def released_variance(squares, weights, floor: float):
    """Null variance from Q without its noise, plus the guard of one scale."""
    share = float(np.sum(weights**2))
    mean = np.clip(squares / N + 3 / ((1 - SHARE) * EPSILON) / N, floor, 1.0)
    return N * (np.minimum(1 / 9, mean / 4) * (1 - 0.5 * share) + mean / 4 * share)


def rates(sums, squares, weights, floor: float | None) -> float:
    """Share rejected, noise integrated out; floor None for the public variance."""
    weights = np.array(weights)
    total = 0.5 * sums[:, : len(weights)] @ weights
    if floor is None:
        sd = math.sqrt(N * (1 / 9 + 7 / 36 * np.sum(weights**2)))
        return float(np.mean(beyond(critical(sd, 3 / EPSILON), total, 3 / EPSILON)))
    scale = 3 / (SHARE * EPSILON)
    variances = released_variance(squares[:, : len(weights)] @ weights, weights, floor)
    knots = np.linspace(variances.min(), variances.max() + 1e-9, 6)
    limits = np.interp(variances, knots, [critical(math.sqrt(v), scale) for v in knots])
    return float(np.mean(beyond(limits, total, scale)))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=600)
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args(arguments)
    commit = provenance()["commit"]
    with args.out.open("w") as file:
        for width in WIDTHS:
            drawn = {law: lag_sums(law, width, args.data_sets) for law in LAWS}
            for name, weights in WEIGHTS.items():
                for floor in (None, *FLOORS):
                    found = {law: round(rates(*both, weights, floor), 3) for law, both in drawn.items()}
                    row = {"c": width, "weights": name, "floor": floor, "rejected": found, "data_sets": args.data_sets}
                    file.write(json.dumps({**row, "commit": commit}) + "\n")
