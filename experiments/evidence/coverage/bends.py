"""How far the weights of `logistic-regression` move a slope where log odds bend, without noise (its theory page).

    python -m experiments.evidence.coverage.bends [--shares 0.4 0.1]     # prints the table

Designs that bend of `experiments.evidence.coverage.logistic`, records with their chances in place of
answers: slope of X by the weights of reach r, over that of maximum likelihood, less 1.
"""

import argparse

import jax
import numpy as np

from experiments.evidence.coverage import logistic
from jaxdp.independence.continuous.regression_test import CLIP
from jaxdp.statistics.regression_scores import FARTHEST, OTHERS, radius

RECORDS, STEPS = 200_000, 25
REACHES = (1.0, 1.25, 1.6)
MIDDLE = 0.23  # mean of min(distance/c, 1)^2 at c = 2 scales (docs/theory/logistic_regression.md)


def scale(values) -> float:
    """Of one column about its median, as `PrivateSpreads` releases it."""
    distances, ends = np.abs(values), [1e-3, 20.0]
    for _ in range(40):
        middle = 0.5 * sum(ends)
        ends[int(np.mean(np.minimum(distances / middle, 1.0) ** 2) < MIDDLE)] = middle
    return 0.25 * sum(ends)


def whitened(values):
    """z (n, p) by the moments of the columns as clipped for them."""
    centred = values - np.median(values, axis=0)
    centred = centred / (CLIP * np.array([scale(column) for column in centred.T]))
    clipped = np.clip(centred, -1.0, 1.0)
    root = np.linalg.inv(np.linalg.cholesky(np.cov(clipped.T)))
    return np.column_stack([np.ones(len(values)), (centred - clipped.mean(0)) @ root.T])


def weights(z, reach: float):
    """(n,), where the norm is one of L1."""
    norm = np.abs(z[:, -1]) + OTHERS * np.abs(z[:, :-1]).sum(1)
    farthest = np.abs(z[:, 1:]).max(1)
    limit = reach * radius(z.shape[1] - 1, euclidean=False)
    return np.minimum(1.0, np.minimum((limit / norm) ** 2, (reach * FARTHEST / farthest) ** 2))


def slope(z, chance, weight) -> float:
    """Of the last coordinate, by weighed scores."""
    slopes = np.zeros(z.shape[1])
    for _ in range(STEPS):
        mean = 1.0 / (1.0 + np.exp(-z @ slopes))
        information = (z * (weight * mean * (1.0 - mean))[:, None]).T @ z
        slopes += np.linalg.solve(information, z.T @ (weight * (chance - mean)))
    return slopes[-1]


def row(name: str, share: float) -> str:
    """A line of the table."""
    design = logistic.DESIGNS[name]
    values = design.clipped(jax.random.key(5), RECORDS)
    along, low, high = np.asarray(design.along(values)), -20.0, 20.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.mean(jax.nn.sigmoid(middle + along)) < share else (low, middle)
    z, chance = whitened(np.asarray(values)), np.asarray(jax.nn.sigmoid(low + along))
    whole = slope(z, chance, np.ones(len(z)))
    moved = [100.0 * (slope(z, chance, weights(z, reach)) / whole - 1.0) for reach in REACHES]
    return f"| {name} | {share:g} | " + " | ".join(f"{one:+.1f} %" for one in moved) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.4, 0.1])
    asked = parser.parse_args()
    print("| design | share of yes | " + " | ".join(f"r = {reach:g}" for reach in REACHES) + " |")
    print("|" + "---|" * (len(REACHES) + 2))
    with jax.enable_x64(True):
        for name in (name for name, design in logistic.DESIGNS.items() if design.bend is not None):
            for share in asked.shares:
                print(row(name, share), flush=True)


if __name__ == "__main__":
    main()
