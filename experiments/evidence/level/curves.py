"""One curve or four in ContrastGCM: bias and variance of T without noise, and rejections, on the nulls of the suite.

    python -m experiments.evidence.level curves [--depth 2] [--n 1000] [--replicates 300] [--out FILE]

One JSON line per null and number of curves, each with its default null rate, the largest: mean and variance of T per
root record and per record, rate of rejection at level 0.05 with the noise of each epsilon integrated out. "planes,
effect 0.25" and "minus planes" are no nulls: they show power.
"""

import argparse
import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
from scipy.stats import laplace

import jaxdp
from experiments.evidence.level import nulls
from experiments.record import append
from jaxdp import core, null_laws
from jaxdp.data import Data

RECORD = Path(__file__).parent / "curves.jsonl"
LEVEL, EPSILONS, EFFECT = 0.05, (0.5, 1.0, 8.0), 0.25


def twins_in(size: int):
    """A second record at the place of one in every `size`."""

    def z(generator, n, depth):
        rows = generator.standard_normal((n - n // size, depth))
        return np.concatenate([rows, rows[: n // size]])

    return z


TWINS = {f"twins in {size}": dataclasses.replace(nulls.NULLS["twins"], z=twins_in(size)) for size in (3, 4, 5)}
PLANES = {"planes, effect 0.25": 1.0, "minus planes, effect 0.25": -1.0}


def samples(name: str, n: int, depth: int, replicates: int):
    """x, y (replicates, n), z (replicates, n, d), on [-1, 1]."""
    if name not in PLANES:
        null = TWINS.get(name) or nulls.NULLS[name]
        return nulls.samples(null, n, depth, replicates, seed=77, codes=False)
    generator = np.random.default_rng(77)
    z, x, y = (generator.standard_normal((replicates, n, *shape)) for shape in ((depth,), (), ()))
    plane = nulls.SIZE * np.sum(z, axis=2) / np.sqrt(depth)
    bounds = (-nulls.BOUND, nulls.BOUND)
    return *(nulls.scaled(v, bounds) for v in (plane + x, PLANES[name] * plane + EFFECT * x + y)), nulls.scaled(
        z, bounds
    )


@functools.partial(jax.jit, static_argnums=4)
def statistics(test, x, y, z, domain):
    """T of each sample, without noise."""
    return jax.lax.map(lambda one: test.statistic(jax.random.key(1), Data(*one, domain)), (x, y, z), batch_size=16)


def rejections(values, mechanism, sensitivity, sd: float) -> float:
    """Share of rejections of these values plus Laplace noise, the noise integrated out."""
    scale = float(mechanism.scale(sensitivity))
    low, high = 0.0, 60.0 * (scale + sd)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(null_laws.normal_plus_laplace(middle, sd, scale)) > LEVEL else (low, middle)
    return float(np.mean(laplace.sf(high - values, scale=scale) + laplace.cdf(-high - values, scale=scale)))


def measure(name: str, curves: int, n: int, depth: int, drawn) -> dict:
    """One row."""
    x, y, z = drawn
    domain = nulls.domain_of(nulls.NULLS["sine 3"], depth)
    plain = jaxdp.ContrastGCM(epsilon=1.0, num_rotations=curves, enforce_rule=False)
    test = core.specialize(plain, Data(x[0], y[0], z[0], domain))
    found = np.asarray(statistics(test, x, y, z, domain))[:, 0]
    rate = test._rate(depth, n)
    row = {"null": name, "d": depth, "n": n, "curves": curves, "null_rate": rate, "replicates": len(found)}
    row |= {"bias_in_sd": round(float(found.mean() / found.std()), 3), "variance": round(float(found.var() / n), 3)}
    for epsilon in EPSILONS:
        budget = dataclasses.replace(test, epsilon=epsilon)
        share = rejections(found, budget.mechanism_in_force(), budget.sensitivity(n), float(np.sqrt(rate * n)))
        row[f"rejected_{epsilon:g}"] = round(share, 4)
    return row


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args(arguments)
    usual = [name for name, null in nulls.NULLS.items() if not null.binary]
    with jax.enable_x64(True):
        for name in [*usual, *TWINS, *PLANES]:
            drawn = samples(name, args.n, args.depth, args.replicates)
            append(args.out, [measure(name, curves, args.n, args.depth, drawn) for curves in (1, 4)])
