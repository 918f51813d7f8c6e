"""Coverage and width of the intervals of effect sizes (docs/theory/effect_sizes.md).

    python -m experiments.evidence.coverage [--replicates 300] [--n 2000] [--epsilon 1] [--only NAME]
    python -m experiments.evidence.coverage --table    # the table of README.md, from the record

One JSON line per test, true correlation r and residual sd, in half ranges of the bounds (the guess of tests that need
one is 0.25 or 0.2). X and Y are normal with correlation r given Z, after a trend in Z; codes cut normal columns into
levels. The truth is r, or the mean of the estimate without noise over many data sets of n records. `bound_held`: share
of the runs whose lower bound of the normal columns' correlation, where the test gives one, is at most r.
"""

import argparse
import dataclasses
import functools
import itertools
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import provenance
from jaxdp import core
from jaxdp.data.dataset import BINARY, ORDINAL, Column, Data, Domain
from jaxdp.mechanisms import Exact

RECORD = Path(__file__).parent / "coverage.jsonl"
EFFECTS = (0.0, 0.4, 0.8)
SPREADS = (0.05, 0.1, 0.2, 0.4)
LIMIT = 200  # data sets without noise that a limit is the mean of
TURNS = 5.0  # z is uniform: a sine of it turns about once


def pair(key, n: int, r: float):
    """Two standard normal columns of correlation r."""
    key_x, key_y = jax.random.split(key)
    common = jax.random.normal(key_x, (n,))
    return common, r * common + math.sqrt(1.0 - r * r) * jax.random.normal(key_y, (n,))


def continuous(key, n: int, r: float, sd: float, depth: int = 1, straight: bool = False):
    """Normal X and Y with residual sd `sd` on [-1, 1]; trends of half an sd in the first column of Z."""
    key_z, key_pair = jax.random.split(key)
    z = jax.random.uniform(key_z, (n, depth), minval=-1.0)
    trend = (z[:, 0] if straight else jnp.sin(TURNS * z[:, 0])) if depth else 0.0
    x, y = (jnp.clip(sd * (part + 0.5 * trend), -1.0, 1.0) for part in pair(key_pair, n, r))
    return Data(x, y, z if depth else None, Domain((Column(),), (Column(),), (Column(),) * depth))


def binary(key, n: int, r: float, sd: float):
    """Signs of normal columns, shifted by a sine of a continuous Z; the domain of the coded test is in numbers."""
    key_z, key_pair = jax.random.split(key)
    z = jax.random.uniform(key_z, (n, 1), minval=-1.0)
    x, y = (jnp.sign(part + 0.5 * jnp.sin(TURNS * z[:, 0])) for part in pair(key_pair, n, r))
    return Data(x, y, z, Domain((Column(levels=2),), (Column(levels=2),), (Column(),)))


def groups(key, n: int, r: float, sd: float):
    """Two groups of equal size whose means differ by r residual sds."""
    key_x, key_y = jax.random.split(key)
    x = jax.random.randint(key_x, (n,), 0, 2)
    y = jnp.clip(sd * (r * (x - 0.5) + jax.random.normal(key_y, (n,))), -1.0, 1.0)
    return Data(x, y, domain=Domain((Column(BINARY, 2),), (Column(),)))


def coded(key, n: int, r: float, sd: float, levels: int, strata: int = 0):
    """Normal columns cut into equally likely levels; the strata shift both."""
    key_z, key_pair = jax.random.split(key)
    z = jax.random.randint(key_z, (n,), 0, max(strata, 1))
    shift = 0.3 * (z - 0.5 * (strata - 1)) if strata else 0.0
    cuts = jax.scipy.stats.norm.ppf(jnp.arange(1, levels) / levels)
    x, y = (jnp.sum(part[:, None] + jnp.reshape(shift, (-1, 1)) > cuts, axis=1) for part in pair(key_pair, n, r))
    side = (Column(BINARY if levels == 2 else ORDINAL, levels),)
    return Data(x, y, z[:, None] if strata else None, Domain(side, side, (Column(ORDINAL, strata),) if strata else ()))


def natural(key, n: int, r: float, sd: float):
    """X normal about a known function of Z, with sd 1; Y correlated with its residual, with sd `sd`/0.2."""
    key_z, key_pair = jax.random.split(key)
    z = jax.random.normal(key_z, (n,))
    own, other = pair(key_pair, n, r)
    return Data(jnp.sin(z) + own, sd / SPREADS[2] * other, z)


LAW = jaxdp.GaussianLaw(function=jnp.sin)
straight = functools.partial(continuous, straight=True)
ANY, ONE = SPREADS, SPREADS[2:3]


def by_r(r, sd):
    return r


CASES = {  # name: (epsilon -> test, (key, n, r, sd) -> data, sds, (r, sd) -> the truth or None for the limit)
    "band-gcm": (lambda e: jaxdp.BandGCM(epsilon=e), continuous, ANY, None),
    "band-gcm, released": (lambda e: jaxdp.BandGCM(epsilon=e, variance="released"), continuous, ANY, None),
    "band-gcm, sign": (lambda e: jaxdp.BandGCM(epsilon=e, kernel="sign"), continuous, ONE, None),
    "band-gcm, sign, released": (
        lambda e: jaxdp.BandGCM(epsilon=e, kernel="sign", variance="released"),
        binary,
        ONE,
        None,
    ),
    "contrast-gcm": (lambda e: jaxdp.ContrastGCM(epsilon=e), functools.partial(continuous, depth=2), ANY, None),
    "partition-gcm": (
        lambda e: jaxdp.PartitionGCM(epsilon=e, scale_x=0.2, scale_y=0.2),
        continuous,
        ANY,
        None,
    ),
    "partition-gcm, no z": (
        lambda e: jaxdp.PartitionGCM(epsilon=e, scale_x=0.2, scale_y=0.2),
        functools.partial(continuous, depth=0),
        ANY,
        None,
    ),
    "private-crt-normal": (lambda e: jaxdp.CRTNormal(epsilon=e, law=LAW), natural, ANY, None),
    "winsorised-partial-correlation": (lambda e: jaxdp.WinsorisedPartialCorrelation(epsilon=e), straight, ANY, by_r),
    "linear-regression": (lambda e: jaxdp.LinearRegression(epsilon=e), straight, ANY, by_r),
    "mean-difference": (lambda e: jaxdp.MeanDifference(epsilon=e), groups, ANY, lambda r, sd: r * sd),
    "winsorised-mean-difference": (
        lambda e: jaxdp.WinsorisedMeanDifference(epsilon=e),
        groups,
        ANY,
        lambda r, sd: r * sd,
    ),
    "conditional-kendall": (
        lambda e: jaxdp.ConditionalKendall(epsilon=e),
        functools.partial(coded, levels=5, strata=4),
        ONE,
        None,
    ),
    "conditional-kendall, 2 x 2": (
        lambda e: jaxdp.ConditionalKendall(epsilon=e),
        functools.partial(coded, levels=2, strata=4),
        ONE,
        None,
    ),
    "conditional-spearman": (
        lambda e: jaxdp.ConditionalSpearman(epsilon=e),
        functools.partial(coded, levels=5, strata=4),
        ONE,
        None,
    ),
    "noisy-table": (
        lambda e: jaxdp.NoisyTableChi2(epsilon=e, num_null=19),
        functools.partial(coded, levels=2),
        ONE,
        None,
    ),
}


def measure(name: str, n: int, epsilon: float, r: float, sd: float, replicates: int) -> dict:
    """One row."""
    build, draw, _, known = CASES[name]
    test = build(epsilon)

    @jax.jit
    def found(keys):
        def one(key):
            key_data, key_run = jax.random.split(key)
            result = core.run(test, key_run, draw(key_data, n, r, sd))
            return result.effect, *result.interval

        return jax.lax.map(one, keys, batch_size=50)

    effect, low, high = (np.asarray(part) for part in found(jax.random.split(jax.random.key(5), replicates)))
    truth = limit(test, draw, n, r, sd) if known is None else known(r, sd)
    covered = float(np.mean((low <= truth) & (truth <= high)))
    return {
        "test": name,
        "n": n,
        "epsilon": epsilon,
        "r": r,
        "sd": sd,
        "truth": round(float(truth), 4),
        "covered": round(covered, 4),
        "standard_error": round(math.sqrt(max(covered * (1 - covered), 1e-9) / replicates), 4),
        "median_width": round(float(np.median(high - low)), 4),
        "median_effect": round(float(np.median(effect)), 4),
        **bound(name, low, high, r),
        "replicates": replicates,
    }


def bound(name: str, low, high, r: float) -> dict:
    """How often the lower bound of the normal columns' correlation holds, and its median; {} where there is none."""
    least = np.maximum(np.maximum(low, -high), 0.0)
    if name in ("band-gcm", "band-gcm, released", "band-gcm, sign", "contrast-gcm"):
        least = np.sin(0.5 * np.pi * least)
    elif not name.startswith("partition-gcm"):
        return {}
    held, middle = float(np.mean(least <= r + 1e-9)), float(np.median(least))
    return {"bound_held": round(held, 4), "median_bound": round(middle, 3)}


def limit(test, draw, n: int, r: float, sd: float) -> float:
    """Mean of the estimate without noise, from data clipped as the noisy test clips them."""
    if hasattr(test, "default_winsorize") and test.winsorize is None:
        test = dataclasses.replace(test, winsorize=float(test.default_winsorize(n)))
    elif getattr(test, "winsorize", 0.0) is None:  # its level follows from what it is asked, Z or none
        asked = test.resolve(jax.eval_shape(lambda key: draw(key, n, r, sd), jax.random.key(0)))
        test = dataclasses.replace(test, winsorize=float(asked.level(n)))
    exact = dataclasses.replace(test, epsilon=None, mechanism=Exact())

    @jax.jit
    def estimates(keys):
        return jax.lax.map(lambda key: core.run(exact, key, draw(key, n, r, sd)).effect, keys, batch_size=50)

    return float(jnp.mean(estimates(jax.random.split(jax.random.key(6), LIMIT))))


HEAD = "| test | r | sd | n | truth | covered | median width | bound | held |\n|---|---|---|---|---|---|---|---|---|\n"


def write_table(rows: list[dict], readme: Path) -> None:
    """The rows as the table of the README, in the place of the one it has."""
    lines = []
    for row in rows:
        held = [f"{row['median_bound']:.2f}", f"{row['bound_held']:.3f}"] if "bound_held" in row else ["", ""]
        facts = [f"{row['r']:g}", f"{row['sd']:g}" if "sd" in row else "", str(row["n"]), f"{row['truth']:.3f}"]
        figures = [f"{row['covered']:.3f}", f"{row['median_width']:.2f}"]
        lines.append("| " + " | ".join([row["test"], *facts, *figures, *held]) + " |")
    before, after = readme.read_text().split(HEAD)
    rest = after[after.index("\n\n") :]
    readme.write_text(before + HEAD + "\n".join(lines) + rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=tuple(CASES), choices=tuple(CASES))
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--table", action="store_true", help="measure nothing: write the table of README.md")
    args = parser.parse_args()
    if args.table:
        return write_table(
            [json.loads(line) for line in RECORD.read_text().splitlines()], RECORD.with_name("README.md")
        )
    commit = provenance()["commit"]
    with args.out.open("a") as file, jax.enable_x64(True):
        for name in args.only:
            for sd, r in itertools.product(CASES[name][2], EFFECTS):
                row = {**measure(name, args.n, args.epsilon, r, sd, args.replicates), "commit": commit}
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(row, flush=True)


if __name__ == "__main__":
    main()
