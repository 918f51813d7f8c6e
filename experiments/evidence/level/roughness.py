"""The check of roughness of `contrast-gcm` given two columns of Z: what is found, and what is found without a flag.

    python -m experiments.evidence.level.roughness [--kinds held_out recipes power] [--minutes 10]

One JSON line for each law, n and epsilon at which the check is the default: share of data sets and noise draws found
at level 0.05 without the check (`now`), with it (`found`), and found without "curvature" (`plain`). Nulls of the suite
of kind "tuned" chose the constants; `recipes.py` draws others. Laws "r" are no nulls: X and Y have that correlation
given Z.
"""

import argparse
import math
import time
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.evidence.level import nulls, recipes, squares
from experiments.record import append, rows
from jaxdp import core
from jaxdp.data import Data

RECORD = Path(__file__).parent / "roughness.jsonl"
DEPTH, LEVEL, DRAWS, SEED = 2, 0.05, 40, 20261126
SIZES = {1000: (2.0, 4.0, 8.0), 2000: (1.1, 2.0, 8.0), 4000: (0.8, 1.0, 4.0), 10_000: (0.5, 1.0, 8.0)}
REPLICATES = {1000: 200, 2000: 150, 4000: 100, 10_000: 40}
RECIPES = 300
MEANS = {"linear": lambda z: z, "sine": np.sin, "sine 3": lambda z: np.sin(3 * z)}
EFFECTS = (0.1, 0.15, 0.25)


def laws(kind: str) -> list[str]:
    if kind == "power":
        return [f"r {effect} {mean}" for mean in MEANS for effect in EFFECTS]
    if kind == "recipes":
        return [f"recipe {seed}" for seed in range(RECIPES)]
    of = {**nulls.NULLS, **nulls.UNSEEN}
    return [name for name, null in of.items() if not null.binary and (kind == "tuned") == (null.of == "tuned")]


def drawn(law: str, n: int, replicates: int):
    if law.startswith("recipe "):
        return nulls.samples(recipes.recipe(int(law.split()[1]))[0], n, DEPTH, replicates, SEED, codes=False)
    if law.startswith("r "):
        _, effect, mean = law.split(" ", 2)
        return dependent(float(effect), MEANS[mean], n, replicates)
    return nulls.samples(nulls.find(law), n, DEPTH, replicates, SEED, codes=False)


def dependent(effect: float, mean, n: int, replicates: int):
    rng = np.random.default_rng(SEED)
    z = rng.standard_normal((replicates, n, DEPTH))
    trend = nulls.SIZE * mean(z).sum(2) / math.sqrt(DEPTH)
    own, other = rng.standard_normal((2, replicates, n))
    y = trend + effect * own + math.sqrt(1 - effect**2) * other
    return [nulls.scaled(values, (-nulls.BOUND, nulls.BOUND)) for values in (trend + own, y, z)]


def measure(law: str, n: int, replicates: int) -> list[dict]:
    """One row for each epsilon."""
    x, y, z = drawn(law, n, replicates)
    domain = nulls.domain_of(nulls.NULLS["sine 3"], DEPTH)
    one = Data(x[0], y[0], z[0], domain)
    checked, _ = squares.forms(DEPTH, n, SIZES[n][0], True)
    sums = squares.statistics(*jax.tree.flatten(checked)[::-1], x, y, z, domain)
    sums = {name: np.asarray(part)[:, None] for name, part in sums.items()}
    rng, found = np.random.default_rng(SEED), []
    for epsilon in SIZES[n]:
        if not core.specialize(jaxdp.ContrastGCM(epsilon=epsilon), one).check_roughness:
            raise ValueError(f"no check at n = {n}, epsilon {epsilon}")
        noise = {name: rng.laplace(size=(len(x), DRAWS, *part.shape[2:])) for name, part in sums.items()}
        plain, without = squares.forms(DEPTH, n, epsilon, False)
        checked, within = squares.forms(DEPTH, n, epsilon, True)
        with_check = checked.mechanism_in_force()
        bound = {name: float(with_check[name].scale(part)) for name, part in checked.sensitivity(n).items()}
        noisy = {name: sums[name] + bound[name] * noise[name] for name in sums}
        whole = sums["windows"] + float(plain.mechanism_in_force().scale(plain.sensitivity(n))) * noise["windows"]
        today = np.asarray(without["now"](whole)[0]) <= LEVEL
        p_values, unflagged = map(np.asarray, within["now"](noisy))
        rejected = p_values <= LEVEL
        clear = rejected & unflagged
        sums_of_windows, coarse = sums["windows"][..., 0], sums["coarse"]
        row = {"law": law, "n": n, "epsilon": epsilon, "replicates": len(x), "draws": DRAWS}
        row |= {
            name: round(float(np.mean(part)), 4)
            for name, part in (("now", today), ("found", rejected), ("plain", clear))
        }
        row |= {
            "fine": round(float(sums_of_windows.mean() / math.sqrt(n)), 3),
            "coarse": round(float(coarse.mean() / math.sqrt(n)), 3),
        }
        row |= {"rate": round(float(sums_of_windows.var() / n), 2)}
        row |= {"rate_corrected": round(float(((4 * sums_of_windows - coarse) / 3).var() / n), 2)}
        found.append(row)
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=["power", "held_out", "tuned", "recipes"])
    parser.add_argument("--n", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--minutes", type=float, default=10.0)
    args = parser.parse_args(arguments)
    ends = time.monotonic() + 60 * args.minutes
    done = {(row["law"], row["n"]) for row in rows(RECORD)}
    with jax.enable_x64(True):
        for kind in args.kinds:
            for n in args.n:
                for law in laws(kind):
                    if (law, n) in done:
                        continue
                    if time.monotonic() > ends:
                        return
                    replicates = REPLICATES[n] // (5 if kind == "recipes" else 1)
                    append(RECORD, ({**row, "kind": kind} for row in measure(law, n, replicates)))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
