"""The caliper factor C and null rate v of ContrastGCM: rejections of the suite's nulls for several of each.

    python -m experiments.evidence.level constants --depth 2 --n 1000 --calipers 2 3 [--nulls NAME ...]

One JSON line per null and caliper: mean and variance of T without noise, per root record and per record, and the share
rejected at level 0.05 for each v and epsilon, the noise of a release integrated out. Nulls "of" the tuned half chose
the constants; the held-out half was looked at afterwards.
"""

import argparse
from pathlib import Path

import jax
import numpy as np
from scipy.optimize import brentq
from scipy.stats import laplace

import jaxdp
from experiments.evidence.level import curves, nulls
from experiments.record import append
from jaxdp import core, null_laws
from jaxdp.data import Data

RECORD = Path(__file__).parent / "constants.jsonl"
LEVEL, EPSILONS, RATES = 0.05, (0.5, 1.0, 8.0), (2.0, 1.7, 1.5, 1.3)


def rejections(values, scale: float, sd: float) -> float:
    """Share of these values plus Laplace noise that a test at level 0.05 rejects, the noise integrated out."""
    high = 60.0 * (scale + sd)
    critical = brentq(lambda t: float(null_laws.normal_plus_laplace(t, sd, scale)) - LEVEL, 0.0, high, xtol=1e-3)
    return float(np.mean(laplace.sf(critical - values, scale=scale) + laplace.cdf(-critical - values, scale=scale)))


def measure(name: str, depth: int, n: int, factor: float, drawn) -> dict:
    """One row; "planes, effect 0.25" is no null: it shows power."""
    x, y, z = drawn
    domain = nulls.domain_of(nulls.NULLS["sine 3"], depth)
    plain = jaxdp.ContrastGCM(epsilon=1.0, enforce_rule=False, caliper=factor * n ** (-1.0 / depth))
    test = core.specialize(plain, Data(x[0], y[0], z[0], domain))
    found = np.asarray(curves.statistics(test, x, y, z, domain))[:, 0]
    bound = float(test.sensitivity(n).bound)
    of = nulls.NULLS[name].of if name in nulls.NULLS else "power"
    row = {"null": name, "of": of, "d": depth, "n": n, "caliper": factor, "replicates": len(found)}
    row |= {"mean": round(float(found.mean() / np.sqrt(n)), 3), "variance": round(float(found.var() / n), 3)}
    for rate in RATES:
        shares = [rejections(found, bound / epsilon, float(np.sqrt(rate * n))) for epsilon in EPSILONS]
        row[f"rejected_v{rate:g}"] = [round(share, 3) for share in shares]
    return row


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--calipers", type=float, nargs="+", default=[2.0, 3.0])
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--nulls", nargs="+")
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args(arguments)
    usual = [name for name, null in nulls.NULLS.items() if not null.binary and not null.values]
    with jax.enable_x64(True):
        for name in args.nulls or [*usual, "planes, effect 0.25"]:
            if name in curves.PLANES:
                drawn = curves.samples(name, args.n, args.depth, args.replicates)
            else:
                drawn = nulls.samples(nulls.NULLS[name], args.n, args.depth, args.replicates, seed=177, codes=False)
            append(args.out, [measure(name, args.depth, args.n, factor, drawn) for factor in args.calipers])
