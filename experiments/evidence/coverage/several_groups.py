"""Coverage and width of the average chance of several groups (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.several_groups [--replicates 1000]
    python -m experiments.evidence.coverage.several_groups --table      # the table of the page, from the record

One JSON line per design, n and epsilon. The truth is 1/2 + the mean over groups of |theta_g - 1/2|, weighed by p_g (1 -
p_g), theta_g = P(a value of group g is above one of the other groups) + P(they are equal)/2, by quantiles. `answered`:
share of data sets with an interval; `covered`: of these, those whose interval holds the truth; `agree`: where it leaves
out 0.5 exactly if p <= 0.05.
"""

import dataclasses
import functools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from experiments.evidence.coverage import mann_whitney
from experiments.record import keys_of
from jaxdp import catalogue, core
from jaxdp.data.dataset import CATEGORICAL, Column, Data, Domain
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "several_groups.jsonl"
QUANTILES = 200_000
SEED = 41


@dataclasses.dataclass(frozen=True)
class Design:
    """law: of the values, as of `mann_whitney`. shifts, ratios, shares: of each group, as there of the second."""

    law: int
    shifts: tuple[float, ...]
    ratios: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def numbers(self) -> tuple:
        """law, shifts, ratios and shares, arrays."""
        ones = np.ones(len(self.shifts))
        return (
            float(self.law),
            np.asarray(self.shifts),
            np.asarray(self.ratios or ones),
            np.asarray(self.shares or ones / len(ones)),
        )


NORMAL, LOGNORMAL, TIES = mann_whitney.NORMAL, mann_whitney.LOGNORMAL, mann_whitney.TIES
DESIGNS = {
    "3 normal, no shift": Design(NORMAL, (0.0, 0.0, 0.0)),
    "3 normal, 0, 0.2, 0.4 sd": Design(NORMAL, (0.0, 0.2, 0.4)),
    "3 normal, one 0.5 sd": Design(NORMAL, (0.0, 0.0, 0.5)),
    "3 normal, 0, 1, 2 sd": Design(NORMAL, (0.0, 1.0, 2.0)),
    "3 normal, sds 1, 1, 3, no shift": Design(NORMAL, (0.0, 0.0, 0.0), (1.0, 1.0, 3.0)),
    "3 normal, sds 1, 1, 3, 0.5 sd": Design(NORMAL, (0.0, 0.0, 0.5), (1.0, 1.0, 3.0)),
    "3 normal, 10/20/70, small one 0.5 sd": Design(NORMAL, (0.5, 0.0, 0.0), (), (0.1, 0.2, 0.7)),
    "3 normal, 10/20/70, small one 1.5 sd, sds 3, 1, 1": Design(
        NORMAL, (1.5, 0.0, 0.0), (3.0, 1.0, 1.0), (0.1, 0.2, 0.7)
    ),
    "3 lognormal, one 0.5": Design(LOGNORMAL, (0.0, 0.0, 0.5)),
    "3 with four fifths equal, one two thirds": Design(TIES, (0.0, 0.0, 2.0 / 15.0)),
    "5 normal, no shift": Design(NORMAL, (0.0,) * 5),
    "5 normal, one 0.5 sd": Design(NORMAL, (0.0, 0.0, 0.0, 0.0, 0.5)),
    "5 normal, 0 to 1 sd": Design(NORMAL, (0.0, 0.25, 0.5, 0.75, 1.0)),
    "8 normal, half 0.5 sd": Design(NORMAL, (0.0,) * 4 + (0.5,) * 4),
}


def domain(groups: int) -> Domain:
    return Domain((Column(CATEGORICAL, groups),), (Column(),))


def draw(key, n: int, numbers):
    """Data as the schema scales them."""
    law, shifts, ratios, shares = numbers
    keys = jax.random.split(key)
    group = jnp.searchsorted(jnp.cumsum(shares)[:-1], jax.random.uniform(keys[0], (n,)), side="right")
    p = jax.random.uniform(keys[1], (n,), minval=1e-12)
    values = mann_whitney.quantile(law, p, shifts[group], ratios[group])
    return Data(group, values / mann_whitney.LIMIT, None, domain(len(shifts)))


def truth(design: Design) -> float:
    """1/2 + the mean distance of the theta_g from it."""
    p = (np.arange(QUANTILES) + 0.5) / QUANTILES
    law, shifts, ratios, shares = design.numbers
    made = [mann_whitney.quantile(law, p, s, r, np, special.ndtri) for s, r in zip(shifts, ratios, strict=True)]

    def above(first, second):
        return (np.searchsorted(second, first, "left") + np.searchsorted(second, first, "right")).mean() / (2 * p.size)

    sizes = [share * (1.0 - share) for share in shares]
    off = [
        sum(shares[h] * (above(one, made[h]) - 0.5) for h in range(len(made)) if h != g) / (1.0 - shares[g])
        for g, one in enumerate(made)
    ]
    return float(0.5 + np.dot(sizes, np.abs(off)) / sum(sizes))


@functools.cache
def program(n: int, groups: int, batch: int):
    """(keys, epsilon, numbers) -> p-value, estimate, low, high."""
    entry = catalogue.find("kruskal-wallis")

    @jax.jit
    def found(keys, epsilon, numbers):
        def one(key):
            key_data, key_run = jax.random.split(key)
            test = entry.build(epsilon, domain(groups), Options(num_records=n))
            result = core.run(test, key_run, draw(key_data, n, numbers))
            return result.p_value, result.effect, *result.interval

        return jax.lax.map(one, keys, batch_size=batch)

    return found


def measure(name: str, design: Design, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start = time.process_time()
    keys = keys_of(SEED, f"{name} {n} {epsilon:g}", replicates)
    numbers = jax.tree.map(lambda number: jnp.asarray(number, float), design.numbers)
    made = program(n, len(design.shifts), 20)(keys, epsilon, numbers)
    p, effect, low, high = (np.asarray(values, float) for values in made)
    true, answered = truth(design), np.isfinite(low)
    inside = (low <= true) & (true <= high)
    some = bool(answered.any())
    return {
        "design": name,
        "n": n,
        "epsilon": epsilon,
        "truth": round(true, 5),
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside[answered].mean()), 4) if some else None,
        "above": round(float((low > true)[answered].mean()), 4) if some else None,
        "agree": round(float(((p <= 0.05 * (1.0 + 1e-6)) == (low > 0.5))[answered].mean()), 4) if some else None,
        "rejected": round(float((p < 0.05).mean()), 4),
        "estimate": round(float(np.median(effect[answered])), 4) if some else None,
        "width": round(float(np.median((high - low)[answered])), 4) if some else None,
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def told(row: dict) -> str:
    """Coverage, median estimate and width."""
    if row["answered"] < 0.1:
        return "none"
    return f"{mann_whitney.shared(row)}, {row['estimate']:.3f}, {row['width']:.2f}"


if __name__ == "__main__":
    mann_whitney.run(__doc__, 1000, RECORD, DESIGNS, measure, told)
