"""Coverage and width of Cramer's V of two columns of levels given a column of levels (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.levels_in_strata [--replicates 200]
    python -m experiments.evidence.coverage.levels_in_strata --table      # the table of the page, from the record

One JSON line per shape, strata, law, V, n and epsilon, by `stratified-table` with 199 null tables. Strata: four alike,
or each half of the one before. The margins of x turn with the stratum, those of y the other way. Law: "coupled", the
same part of the records of each stratum has levels of the same rank; "half", only in every other stratum; "opposed",
there, and in the others a third of it the other way round; "rare", the last levels, of a tenth each, go together.
`answered`, `covered`, `agree` and `rejected` as in `levels.py`.
"""

import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.coverage.levels import margin, run, verdicts
from experiments.evidence.coverage.mann_whitney import shared
from experiments.record import keys_of
from jaxdp import StratifiedTable, core
from jaxdp.independence.tables.noisy_table import multinomial_by_binomials

RECORD = Path(__file__).parent / "levels_in_strata.jsonl"
RECORDS = (1000, 5000)
SHAPES = ((2, 2), (3, 4))
STRATA = {"alike": np.full(4, 0.25), "halving": np.array([8.0, 4.0, 2.0, 1.0]) / 15.0}
PARTS = {  # of the coupling, in each stratum
    "none": (0.0, 0.0, 0.0, 0.0),
    "coupled": (1.0, 1.0, 1.0, 1.0),
    "half": (1.0, 0.0, 1.0, 0.0),
    "opposed": (1.0, -0.33, 1.0, -0.33),
    "rare": (1.0, 1.0, 1.0, 1.0),
}
LAWS = (("none", 0.0), ("coupled", 0.1), ("coupled", 0.3), ("half", 0.15), ("opposed", 0.15), ("rare", 0.2))
TILT, SEED = 0.5, 43


def departure(p, q, law: str):
    """Of one stratum, with these margins."""
    product = p[:, None] * q[None, :]
    if law == "rare":
        away = np.zeros(product.shape)
        away[-1, -1] = 1.0
        away -= away.sum(1, keepdims=True) * q
        return away - p[:, None] * away.sum(0, keepdims=True)
    first, second = (np.r_[0.0, np.cumsum(part)] for part in (p, q))
    upper = np.minimum(first[1:, None], second[None, 1:])
    lower = np.maximum(first[:-1, None], second[None, :-1])
    return np.maximum(upper - lower, 0.0) - product


def chances(shape, strata: str, law: str, size: float):
    """A law (4, r, c) with this V within its strata."""
    margins = [margin(levels, "10/90" if law == "rare" else "even") for levels in shape]
    away, products = [], []
    for place, share, part in zip(np.linspace(-1.0, 1.0, 4), STRATA[strata], PARTS[law], strict=True):
        turned = []
        for sign, own in zip((1.0, -1.0), margins, strict=True):
            weights = own * np.exp(sign * TILT * place * np.linspace(-1.0, 1.0, own.size))
            turned.append(weights / weights.sum())
        products.append(share * np.outer(*turned))
        away.append(share * part * departure(*turned, law))
    away, products = np.array(away), np.array(products)
    whole = np.sqrt((away.sum(0) ** 2 / products.sum(0)).sum() / (min(shape) - 1.0))
    found = products + (size / whole if size else 0.0) * away
    assert found.min() >= -1e-12
    return found


@functools.cache
def program(shape, n: int):
    """(keys, epsilon, chances) -> p-value, low, high."""

    @jax.jit
    def found(keys, epsilon, chances):
        def one(key):
            keys = jax.random.split(key, 3)
            test = StratifiedTable(epsilon=epsilon, levels=shape, strata=(4,), num_null=199)
            counts = multinomial_by_binomials(keys[0], 1.0 * n, jnp.ravel(chances), 1).reshape(4, *shape)
            sensitivity = test.sensitivity(n)
            noise = test.mechanism_in_force().noise(keys[1], sensitivity, counts.shape)
            cost = core.Cost.none(core.Relation.REPLACE_ONE)
            told = test.interpret(keys[2], core.Release(counts + noise, sensitivity, cost, num_records=n))
            return told.p_value, *told.interval

        return jax.lax.map(one, keys, batch_size=20)

    return found


def measure(n: int, epsilon: float, replicates: int, shape, strata: str, law: str, size: float) -> dict:
    """One row."""
    start = time.process_time()
    table = chances(shape, strata, law, size)
    keys = keys_of(SEED, f"{shape} {strata} {law} {size:g} {n} {epsilon:g}", replicates)
    p, low, high = (np.asarray(part, float) for part in program(shape, n)(keys, epsilon, jnp.asarray(table, float)))
    return {
        "shape": "x".join(map(str, shape)),
        "strata": strata,
        "law": law,
        "v": size,
        "n": n,
        "epsilon": epsilon,
        **verdicts(p, low, high, size),
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def told(row: dict) -> str:
    """Coverage, width and the share of p <= 0.05."""
    rejected = f"{row['rejected']:.2f}"
    return f"none, {rejected}" if row["answered"] < 0.1 else f"{shared(row)}, {row['width']:.2f}, {rejected}"


if __name__ == "__main__":
    every = [(shape, strata, *law) for shape, strata, law in itertools.product(SHAPES, STRATA, LAWS)]
    run(__doc__, RECORD, ("strata", "g"), RECORDS, every, measure, told)
