"""The null variance of `contrast-gcm` by its released squares beside the largest one: level, size of z and power.

    python -m experiments.evidence.level.squares [--cells 2:1000 3:1300] [--power] [--minutes 10]

One JSON line for each law, d, n and epsilon. `found`: shares rejected at level 0.05 (with the released squares, and, as
before, with the largest variance, `null_rate` = v); `rms`: root mean square of the two-sided p-values' normal scores,
about 1 where the p-value is uniform; `plain`: found without "curvature", where the release is checked. `rate`: variance
of T over n, `times`: that over the mean of Q/n. Laws "r" are no nulls: X and Y have that correlation given normal Z,
on bounds of so many residual sds. Statistics and p-values are the library's, with several draws of the noise.
"""

import argparse
import dataclasses
import functools
import math
import time
from pathlib import Path

import jax
import numpy as np
from scipy.stats import norm

import jaxdp
from experiments.evidence.level import curves, nulls, recipes
from experiments.record import append, rows
from jaxdp import core
from jaxdp.data import Data
from jaxdp.independence.continuous import roughness

RECORD = Path(__file__).parent / "squares.jsonl"
LEVEL, DRAWS, SEED, RECIPES = 0.05, 30, 20261127, 20
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
REPLICATES = {300: 200, 1000: 150, 4000: 60}
MEANS = {"linear": lambda z: z, "sine": np.sin}
DEPENDENT = [f"r {r:g} {mean} {sds}" for r in (0.0, 0.15) for mean in MEANS for sds in (4, 20)]


def laws() -> list[str]:
    of = {**nulls.NULLS, **nulls.UNSEEN}
    usual = [name for name, null in of.items() if not null.binary and not null.values]
    return [*DEPENDENT, *usual, *curves.TWINS, *(f"recipe {seed}" for seed in range(RECIPES))]


def drawn(law: str, depth: int, n: int, replicates: int):
    if law.startswith("r "):
        _, effect, mean, sds = law.split(" ")
        return dependent(float(effect), MEANS[mean], float(sds), depth, n, replicates)
    null = recipes.recipe(int(law.split()[1]))[0] if law.startswith("recipe ") else curves.TWINS.get(law)
    return nulls.samples(null or nulls.find(law), n, depth, replicates, abs(hash_of(law)), codes=False)


def hash_of(law: str) -> int:
    """A seed of its own for each law, so that errors of different laws are independent."""
    return SEED + sum(ord(letter) * 131**place for place, letter in enumerate(law)) % 1_000_003


def dependent(effect: float, mean, sds: float, depth: int, n: int, replicates: int):
    rng = np.random.default_rng(hash_of(f"{mean}{sds}"[-6:]))
    z = rng.standard_normal((replicates, n, depth))
    trend = nulls.SIZE * mean(z).sum(2) / math.sqrt(depth)
    own, other = rng.standard_normal((2, replicates, n))
    y = trend + effect * own + math.sqrt(1 - effect**2) * other
    return (
        *(nulls.scaled(values, (-sds, sds)) for values in (trend + own, y)),
        nulls.scaled(z, (-nulls.BOUND, nulls.BOUND)),
    )


@functools.cache
def forms(depth: int, n: int, epsilon: float, check: bool | None = None):
    """The test and, of "before" and "now", a compiled function: noisy sums (replicates, draws) -> p-values, clear.

    check: with the check of roughness or without it; None as it is by default.
    """
    domain = nulls.domain_of(nulls.NULLS["sine 3"], depth)
    rng = np.random.default_rng(SEED)
    x, y, z = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, depth))
    data = Data(x, y, z, domain)
    test = core.specialize(jaxdp.ContrastGCM(epsilon=epsilon, check_roughness=check), data)
    bare = dataclasses.replace(core.run(test, jax.random.key(0), data).release, certificates=(), earlier=())
    before = dataclasses.replace(test, null_rate=float(test._rate(depth, n)))
    return test, {"before": compiled(before, bare, n), "now": compiled(test, bare, n)}


def compiled(test, bare, n: int):
    def one(value):
        release = dataclasses.replace(bare, value=value)
        p_value = test.pair_p_values(None, release)
        if not test.check_roughness:
            return p_value, False
        largest = test._largest_variance(n)
        variance = test._null_variance(release)
        if test.null_rate is not None:  # as before: W was charged its largest variance
            variance = largest
        sums = {"windows": value["windows"][..., 0], "coarse": value["coarse"]}
        doubt = roughness.doubt(sums, test.mechanism_in_force(), bare.sensitivity, variance, largest, test.depth)
        return p_value, ~roughness.is_raised(doubt)

    return jax.jit(jax.vmap(jax.vmap(one)))


def measure(law: str, depth: int, n: int, replicates: int) -> list[dict]:
    """One row for each epsilon."""
    x, y, z = drawn(law, depth, n, replicates)
    domain = nulls.domain_of(nulls.NULLS["sine 3"], depth)
    sums: dict = {}
    found = []
    for epsilon in EPSILONS:
        test, of = forms(depth, n, epsilon)
        kind = test.check_roughness, None if test.closest is None else float(test.closest)
        if kind not in sums:
            sums[kind] = jax.tree.map(np.asarray, statistics(*jax.tree.flatten(test)[::-1], x, y, z, domain))
        exact, rng = sums[kind], np.random.default_rng(SEED)
        mechanism, bound = test.mechanism_in_force(), test.sensitivity(n)
        parts = exact if test.check_roughness else {"windows": exact}
        scales = {k: (mechanism[k].scale(bound[k]) if test.check_roughness else mechanism.scale(bound)) for k in parts}
        noisy = {
            name: part[:, None] + float(scales[name]) * rng.laplace(size=(len(x), DRAWS, *part.shape[1:]))
            for name, part in parts.items()
        }
        row = {"law": law, "d": depth, "n": n, "epsilon": epsilon, "replicates": len(x), "draws": DRAWS}
        for word, form in of.items():
            p, clear = map(np.asarray, form(noisy if test.check_roughness else noisy["windows"]))
            row[f"found_{word}"] = round(float(np.mean(p <= LEVEL)), 4)
            row[f"rms_{word}"] = round(float(np.sqrt(np.mean(norm.isf(np.clip(p, 1e-12, 1) / 2) ** 2))), 3)
            if test.check_roughness:
                row[f"plain_{word}"] = round(float(np.mean((p <= LEVEL) & clear)), 4)
        windows = parts["windows"]
        row["bias"] = round(float(windows[:, 0].mean() / max(windows[:, 0].std(), 1e-9)), 3)
        row["rate"] = round(float(windows[:, 0].var() / n), 4)
        row["times"] = round(float(windows[:, 0].var() / max(2 * windows[:, 1].mean(), 1e-9)), 3)
        found.append(row)
    return found


@functools.partial(jax.jit, static_argnums=(0, 5))
def statistics(structure, leaves, x, y, z, domain):
    """T and Q/2 of each sample, without noise; one program for each form of the test."""
    test = structure.unflatten(leaves)
    return jax.lax.map(lambda one: test.statistic(jax.random.key(1), Data(*one, domain)), (x, y, z), batch_size=16)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=["2:1000", "3:1300", "2:4000", "2:300", "5:2500"], help="d:n")
    parser.add_argument("--power", action="store_true", help='only the laws "r"')
    parser.add_argument("--minutes", type=float, default=10.0)
    args = parser.parse_args(arguments)
    ends = time.monotonic() + 60 * args.minutes
    done = {(row["law"], row["d"], row["n"]) for row in rows(RECORD)}
    with jax.enable_x64(True):
        for depth, n in (map(int, cell.split(":")) for cell in args.cells):
            for law in DEPENDENT if args.power else laws():
                if (law, depth, n) in done:
                    continue
                if time.monotonic() > ends:
                    return
                append(RECORD, measure(law, depth, n, REPLICATES.get(n, 100)))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
