"""Ten thousand variants in a structured population: score tests adjusted for covariates beside tests of counts alone.

    python -m experiments.evidence.variants [--replicates 20] [--out experiments/evidence/variants/variants.jsonl]

One JSON line per (law, n, epsilon, method); a run goes on where the file ends. Two populations of equal size,
frequencies by Balding and Nichols (F = 0.03, ancestral ones uniform on 0.1 to 0.5), prevalences 0.35 and 0.65;
covariates a principal component (population plus noise) and an age that raises the log odds. "null": no variant
matters. "planted": five do, log odds ratio 0.5 an allele. Methods: `best-variants` with both covariates, without any,
and `best-tables` of carriers (phenotype public, nothing to adjust by); four variants chosen, family-wise level 0.05.
"""

import argparse
import zlib
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.record import append, rows
from jaxdp import core
from jaxdp.data import Data
from jaxdp.data.dataset import CONTINUOUS, Column, Domain

VARIANTS, LEVEL, COUNT = 10_000, 0.05, 4
PLANTED, LOG_ODDS, DRIFT = 5, 0.5, 0.03
SETTINGS = ((4000, 3.0),)
LAWS, METHODS = ("null", "planted"), ("adjusted", "unadjusted", "counts")


def study(seed: int, n: int, planted: int):
    """Counts less one (n, K), cases (n,) bool, covariates (n, 2) on [-1, 1], places of the planted variants."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    ancestral = rng.uniform(0.1, 0.5, VARIANTS)
    spread = (1.0 - DRIFT) / DRIFT
    rates = rng.beta(ancestral * spread, (1.0 - ancestral) * spread, (2, VARIANTS)).astype(np.float32)
    x = np.empty((n, VARIANTS), np.int8)
    for start in range(0, n, 1000):
        rate = rates[group[start : start + 1000]]
        x[start : start + 1000] = (rng.random(rate.shape, np.float32) < rate).astype(np.int8)
        x[start : start + 1000] += rng.random(rate.shape, np.float32) < rate
    places = rng.choice(VARIANTS, planted, replace=False)
    age = rng.uniform(-1.0, 1.0, n)
    odds = np.where(group == 1, 0.62, -0.62) + 0.5 * age
    odds += LOG_ODDS * (x[:, places] - x[:, places].mean(axis=0)).sum(axis=1)
    case = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    component = np.clip(0.5 * (2.0 * group - 1.0) + 0.1 * rng.standard_normal(n), -1.0, 1.0)
    return x - np.int8(1), case, np.stack([component, age], axis=1), set(places.tolist())


def answer(method: str, x, case, z, epsilon: float, key) -> set[int]:
    """Places that are rejected at the family-wise level."""
    if method == "counts":
        tables = jaxdp.Tables((x[case] >= 0).sum(axis=0), (x[~case] >= 0).sum(axis=0))
        sizes = {"num_cases": int(case.sum()), "num_controls": int((~case).sum())}
        result = core.run(jaxdp.BestTables(epsilon=epsilon, count=COUNT, **sizes), key, tables)
        chosen = result.release.earlier[0].value
    else:
        z = z if method == "adjusted" else None
        domain = Domain((Column(),) * VARIANTS, (Column(CONTINUOUS, 2),), () if z is None else (Column(), Column()))
        data = Data(x, np.where(case, 1.0, -1.0), z, domain)
        result = core.run(jaxdp.BestVariants(epsilon=epsilon, count=COUNT), key, data)
        chosen = jaxdp.BestVariants.chosen(result)
    p_values = np.asarray(result.p_value)
    return {int(j) for j, p in zip(np.asarray(chosen), p_values, strict=True) if p <= LEVEL}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "variants.jsonl")
    args = parser.parse_args()
    done = {(row["law"], row["n"], row["epsilon"]) for row in rows(args.out)}
    for n, epsilon in SETTINGS:
        for law in LAWS:
            if (law, n, epsilon) in done:
                continue
            totals = {method: {"false": 0, "found": 0, "any_false": 0} for method in METHODS}
            for r in range(args.replicates):
                seed = zlib.crc32(f"{law}/{n}/{r}".encode())
                x, case, z, places = study(seed, n, PLANTED * (law == "planted"))
                for method in METHODS:
                    hits = answer(method, x, case, z, epsilon, jax.random.key(seed))
                    totals[method]["found"] += len(hits & places)
                    totals[method]["false"] += len(hits - places)
                    totals[method]["any_false"] += bool(hits - places)
            head, of = {"law": law, "n": n, "epsilon": epsilon}, {"variants": VARIANTS, "chosen": COUNT}
            counted = {"replicates": args.replicates, **of}
            append(args.out, [head | {"method": method} | counted | total for method, total in totals.items()])


if __name__ == "__main__":
    main()
