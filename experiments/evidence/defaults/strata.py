"""Rejections of `stratified-table` at level 0.05 where X and Y are independent within each stratum, into strata.jsonl.

    python -m experiments.evidence.defaults.strata [--replicates 500]
    python -m experiments.evidence.defaults.strata --table      # the table of the theory page, from the record

Margins: `tilt`, both lean with the number of the stratum, against each other; `turn`, one level of each has 0.95 of the
stratum's records, another level in each stratum; `rare`, all levels but one share 0.02; `random`, drawn for each
stratum. Strata: `even`; `tenth`, half of them share a tenth of the records; `lone`, one has six tenths of them. The
number of records is given by the clearance: records of an average stratum, in sds of the noise of its total. Below 5
the statistic is scaled, and the answer flagged.
"""

import dataclasses
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments import record
from experiments.evidence.defaults.shapes import EVEN, LEVEL
from jaxdp import catalogue
from jaxdp.data.dataset import CATEGORICAL, Column, Data, Domain

RECORD = Path(__file__).parent / "strata.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "stratified_table.md"
SHAPES = ((2, 3, 3), (4, 3, 4), (12, 3, 4), (30, 2, 3))  # strata, levels of x and of y
MARGINS, BALANCE = ("tilt", "turn", "rare", "random"), (EVEN, "tenth", "lone")
CELLS = ((1.0, 5.0), (4.0, 5.0), (0.5, 9.0), (1.0, 20.0))  # epsilon, clearance
NUM_NULL = 199


def cells(strata: int, r: int, c: int, margins: str, balance: str) -> np.ndarray:
    """Chances (strata, r, c)."""
    few, rng = strata // 2, np.random.default_rng(1)
    shares = {
        EVEN: np.full(strata, 1.0 / strata),
        "tenth": np.r_[np.full(few, 0.1 / few), np.full(strata - few, 0.9 / (strata - few))],
        "lone": np.r_[np.full(strata - 1, 0.4 / (strata - 1)), 0.6],
    }[balance]
    found = np.zeros((strata, r, c))
    for z, share in enumerate(shares):
        sides = []
        for levels, sign in ((r, 1.0), (c, -1.0)):
            if margins == "tilt":
                p = np.exp(sign * 1.5 * (z / (strata - 1) - 0.5) * np.arange(levels))
            elif margins == "random":
                p = rng.dirichlet(np.full(levels, 0.5))
            else:
                rest = 0.05 if margins == "turn" else 0.02
                p = np.full(levels, rest / (levels - 1))
                p[z % levels if margins == "turn" else 0] = 1.0 - rest
            sides.append(p / p.sum())
        found[z] = share * np.outer(*sides)
    return found


def design(key, *, n: int, shape: tuple[int, int, int], chances) -> Data:
    """Records of these cells."""
    cell = jnp.searchsorted(jnp.cumsum(chances)[:-1], jax.random.uniform(key, (n,)))
    z, x, y = jnp.unravel_index(cell, shape)
    return Data(x, y, z[:, None], domain(shape))


def domain(shape: tuple[int, int, int]) -> Domain:
    """Three columns of unordered levels."""
    z, x, y = (Column(CATEGORICAL, levels) for levels in shape)
    return Domain((x,), (y,), (z,))


def records(shape: tuple[int, int, int], epsilon: float, clearance: float) -> int:
    """Records at which an average stratum has this clearance."""
    strata, r, c = shape
    return math.ceil(clearance * strata * math.sqrt(r * c * 2.0 * (2.0 / epsilon) ** 2))


def measured(shape, epsilon: float, clearance: float, replicates: int):
    """chances -> share of true nulls rejected; one compiled program for all margins and strata."""
    test = catalogue.find("stratified-table").build(epsilon, domain(shape), coded=domain(shape))
    test, n = dataclasses.replace(test, num_null=NUM_NULL), records(shape, epsilon, clearance)

    @jax.jit
    def p_values(keys, chances):
        def one(key):
            key_data, key_test = jax.random.split(key)
            return jaxdp.run(test, key_test, design(key_data, n=n, shape=shape, chances=chances)).p_value

        return jax.lax.map(one, keys, batch_size=50)

    def rate(key, chances) -> float:
        return round(float(np.mean(np.asarray(p_values(jax.random.split(key, replicates), chances)) <= LEVEL)), 4)

    return rate


def rows(replicates: int):
    """One row for each shape, margins and balance of the strata."""
    keys = iter(jax.random.split(jax.random.key(61), 100))
    for shape in SHAPES:
        measure = [measured(shape, *cell, replicates) for cell in CELLS]
        for margins in MARGINS:
            for balance in BALANCE:
                chances, key = np.float32(cells(*shape, margins, balance).ravel()), next(keys)
                rates = [rate(key, chances) for rate in measure]
                head = {"shape": shape, "margins": margins, "strata": balance, "rates": rates}
                yield head | {"replicates": replicates}


def table() -> str:
    """One line for each null, a column for each n and epsilon."""
    found, lines = record.rows(RECORD), []
    for row in found:
        strata, r, c = row["shape"]
        lines.append([f"{strata}, {r} x {c}", row["margins"], row["strata"], *(f"{rate:.3f}" for rate in row["rates"])])
    names = (f"epsilon {epsilon:g}, clearance {clearance:g}" for epsilon, clearance in CELLS)
    return record.markdown(
        [f"strata, levels ({found[0]['replicates']} nulls a cell)", "margins", "strata", *names], lines
    )


def main() -> None:
    args = record.command_line(__doc__, 500).parse_args()
    if not args.table:
        record.write(RECORD, rows(args.replicates))
    record.fill(PAGE, "strata", table())


if __name__ == "__main__":
    main()
