"""Coverage and width of the intervals of effect sizes (docs/theory/effect_sizes.md).

    python -m experiments.evidence.coverage [--replicates 300] [--n 2000] [--epsilon 1] [--only NAME]
    python -m experiments.evidence.coverage --table    # the table of README.md, from the record

One JSON line per test, true correlation r and residual sd, in half ranges of the bounds. X and Y are normal with
correlation r given Z, after a trend in Z. The truth is known, or the mean of the estimate without noise over many data
sets of n records. `bound_held`: share of the runs whose lower bound of the normal columns' correlation, where the test
gives one, is at most r. Other laws, budgets and tests: `laws.py`, `groups.py`, `slopes.py`.
"""

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
from experiments.record import command_line, provenance
from jaxdp import core
from jaxdp.data.dataset import BINARY, Column, Data, Domain
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
    return common, r * common + jnp.sqrt(1.0 - r * r) * jax.random.normal(key_y, (n,))


def continuous(key, n: int, r: float, sd: float, depth: int = 1):
    """Normal X and Y with residual sd `sd` on [-1, 1]; trends of half an sd in the first column of Z."""
    key_z, key_pair = jax.random.split(key)
    z = jax.random.uniform(key_z, (n, depth), minval=-1.0)
    trend = jnp.sin(TURNS * z[:, 0])
    x, y = (jnp.clip(sd * (part + 0.5 * trend), -1.0, 1.0) for part in pair(key_pair, n, r))
    return Data(x, y, z, Domain((Column(),), (Column(),), (Column(),) * depth))


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


def natural(key, n: int, r: float, sd: float):
    """X normal about a known function of Z, with sd 1; Y correlated with its residual, with sd `sd`/0.2."""
    key_z, key_pair = jax.random.split(key)
    z = jax.random.normal(key_z, (n,))
    own, other = pair(key_pair, n, r)
    return Data(jnp.sin(z) + own, sd / SPREADS[2] * other, z)


LAW = jaxdp.GaussianLaw(function=jnp.sin)
ANY, ONE = SPREADS, SPREADS[2:3]


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
    "private-crt-normal": (lambda e: jaxdp.CRTNormal(epsilon=e, law=LAW), natural, ANY, None),
    "winsorised-mean-difference": (
        lambda e: jaxdp.WinsorisedMeanDifference(epsilon=e),
        groups,
        ANY,
        lambda r, sd: r * sd,
    ),
}


@functools.cache
def program(name: str, epsilon: float, n: int):
    """(keys, r, sd) -> estimate and ends of the interval."""
    build, draw, *_ = CASES[name]
    test = build(epsilon)

    @jax.jit
    def found(keys, r, sd):
        def one(key):
            key_data, key_run = jax.random.split(key)
            result = core.run(test, key_run, draw(key_data, n, r, sd))
            return result.effect, *result.interval

        return jax.lax.map(one, keys, batch_size=50)

    return found


def measure(name: str, n: int, epsilon: float, r: float, sd: float, replicates: int) -> dict:
    """One row."""
    build, draw, _, known = CASES[name]
    test = build(epsilon)
    keys = jax.random.split(jax.random.key(5), replicates)
    effect, low, high = map(np.asarray, program(name, epsilon, n)(keys, r, sd))
    truth = limit(test, draw, n, r, sd) if known is None else known(r, sd)
    shown = np.isfinite(low)
    covered = float(np.mean(((low <= truth) & (truth <= high))[shown]))
    return {
        "test": name,
        "n": n,
        "epsilon": epsilon,
        "r": r,
        "sd": sd,
        "truth": round(float(truth), 4),
        "shown": round(float(shown.mean()), 4),
        "covered": round(covered, 4),
        "standard_error": round(math.sqrt(max(covered * (1 - covered), 1e-9) / replicates), 4),
        "median_width": round(float(np.median((high - low)[shown])), 4),
        "median_effect": round(float(np.median(effect)), 4),
        **bound(name, low, high, r),
        "replicates": replicates,
    }


def bound(name: str, low, high, r: float) -> dict:
    """How often the lower bound of the normal columns' correlation holds, and its median; {} where there is none."""
    least = np.maximum(np.maximum(low, -high), 0.0)
    if name in ("band-gcm", "band-gcm, released", "band-gcm, sign", "contrast-gcm"):
        least = np.sin(0.5 * np.pi * least)
    else:
        return {}
    held, middle = float(np.mean(least <= r + 1e-9)), float(np.median(least))
    return {"bound_held": round(held, 4), "median_bound": round(middle, 3)}


def limit(test, draw, n: int, r: float, sd: float) -> float:
    """Mean of the estimate without noise, from data clipped as the noisy test clips them."""
    if hasattr(test, "default_winsorize") and test.winsorize is None:
        test = dataclasses.replace(test, winsorize=float(test.default_winsorize(n)))
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
        share = row.get("shown", 1.0)
        figures = [f"{row['covered']:.3f}" + (f" ({share:.2f})" if share < 0.995 else ""), f"{row['median_width']:.2f}"]
        lines.append("| " + " | ".join([row["test"], *facts, *figures, *held]) + " |")
    before, after = readme.read_text().split(HEAD)
    rest = after[after.index("\n\n") :]
    readme.write_text(before + HEAD + "\n".join(lines) + rest)


def main() -> None:
    parser = command_line(__doc__, 300)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=tuple(CASES), choices=tuple(CASES))
    parser.add_argument("--out", type=Path, default=RECORD)
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
