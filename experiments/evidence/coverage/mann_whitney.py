"""Coverage, level and width of P(X > Y) of two groups (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.mann_whitney [--replicates 2000]
    python -m experiments.evidence.coverage.mann_whitney --table      # the table of the page, from the record

One JSON line per design, n and epsilon. The truth is P(a value of the second group is above one of the first) + P(they
are equal)/2, by two million pairs of quantiles. `answered`: share of data sets with an interval; `covered`: of these,
those whose interval holds the truth; `agree`: where it leaves out 0.5 exactly if p < 0.05. `plain_*`: the interval of
DeLong's variance without privacy, on the same data sets.
"""

import dataclasses
import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from experiments.record import append, command_line, fill, keys_of, markdown, rows, settings
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.spec import Options
from jaxdp.statistics import concordance

RECORD = Path(__file__).parent / "mann_whitney.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
RECORDS, EPSILONS = (200, 1000, 5000), (0.5, 1.0, 4.0)
DOMAIN = Domain((Column(BINARY, 2),), (Column(),))
NORMAL, LOGNORMAL, TIES, LEVELS = range(4)
EDGES = (-1.0, 0.0, 0.7, 1.5)  # of five ordered levels, cut from a normal variable
LIMIT = 12.0  # of the bounds
SEED = 37
TIED = 0.8  # share of equal values in `TIES`, the lowest


@dataclasses.dataclass(frozen=True)
class Design:
    """law: of the values. share: of the second group, whose law is `ratio` times that of the first plus `shift`; of
    `TIES` the shift is in the share of values that are not the lowest."""

    law: int
    shift: float = 0.0
    ratio: float = 1.0
    share: float = 0.5

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.law, self.shift, self.ratio, self.share)


DESIGNS = {
    f"{name}{place}": dataclasses.replace(design, share=share)
    for place, share in (("", 0.5), (", 10/90", 0.1), (", 90/10", 0.9), (", 25/75", 0.25), (", 75/25", 0.75))
    for name, design in {
        "normal, no shift": Design(NORMAL),
        "normal, 0.5 sd": Design(NORMAL, 0.5),
        "normal, 1.5 sd": Design(NORMAL, 1.5),
        "normal, sds 1:3, 0.5 sd": Design(NORMAL, 0.5, 3.0),
        "lognormal, no shift": Design(LOGNORMAL),
        "lognormal, 0.5": Design(LOGNORMAL, 0.5),
        "lognormal, times 2": Design(LOGNORMAL, ratio=2.0),
        "four fifths equal, no shift": Design(TIES),
        "four fifths equal, two thirds of the second": Design(TIES, 2.0 / 15.0),
        "five levels, no shift": Design(LEVELS),
        "five levels, 0.5 sd": Design(LEVELS, 0.5),
    }.items()
}


def quantile(law, p, shift, ratio, np=jnp, ppf=jax.scipy.special.ndtri):
    """Values of a group at these ranks of its law."""
    normal = ppf(p) * ratio + shift
    lognormal = np.exp(ppf(p)) * ratio + shift
    left = TIED - shift
    tied = np.where(p > left, (p - left) / (1.0 - left), 0.0)
    levels = sum(1.0 * (normal > edge) for edge in EDGES)
    found = np.where(law == NORMAL, normal, np.where(law == LOGNORMAL, lognormal, np.where(law == TIES, tied, levels)))
    return np.clip(found, -LIMIT, LIMIT)


def draw(key, n: int, numbers):
    """Data as the schema scales them."""
    law, shift, ratio, share = numbers
    keys = jax.random.split(key)
    group = jax.random.uniform(keys[0], (n,)) < share
    p = jax.random.uniform(keys[1], (n,), minval=1e-12)
    values = jnp.where(group, quantile(law, p, shift, ratio), quantile(law, p, 0.0, 1.0))
    return Data(group.astype(int), values / LIMIT, None, DOMAIN)


def truth(design: Design) -> float:
    """P(second > first) + P(equal)/2."""
    p = (np.arange(1_000_000) + 0.5) / 1_000_000
    made = [quantile(design.law, p, s, r, np, special.ndtri) for s, r in ((0.0, 1.0), (design.shift, design.ratio))]
    below = np.searchsorted(made[0], made[1], "left") + np.searchsorted(made[0], made[1], "right")
    return float(below.mean() / (2 * p.size))


def plain(data):
    """(theta, se) by DeLong's variance, without privacy."""
    second, values = data.x > 0, data.y
    start, equal = concordance.ranks(values)
    both = start + 0.5 * equal
    sizes = jnp.sum(~second), jnp.sum(second)

    def within(mask):
        own = concordance.ranks(jnp.where(mask, values, 9.0))
        return own[0] + 0.5 * own[1]

    placed = jnp.where(second, both - within(second), both - within(~second))
    parts = []
    for mask, other in ((~second, sizes[1]), (second, sizes[0])):
        share = placed / jnp.maximum(other, 1)
        mean = jnp.sum(jnp.where(mask, share, 0.0)) / jnp.sum(mask)
        squares = jnp.sum(jnp.where(mask, (share - mean) ** 2, 0.0)) / (jnp.sum(mask) - 1.0)
        parts.append((mean, squares / jnp.sum(mask)))
    return parts[1][0], jnp.sqrt(parts[0][1] + parts[1][1])


@functools.cache
def program(n: int, batch: int):
    """(keys, epsilon, numbers) -> p-value, estimate, low, high, and the plain estimate with its se."""
    entry = catalogue.find("kruskal-wallis")

    @jax.jit
    def found(keys, epsilon, numbers):
        def one(key):
            key_data, key_run = jax.random.split(key)
            data = draw(key_data, n, numbers)
            result = core.run(entry.build(epsilon, DOMAIN, Options(num_records=n)), key_run, data)
            return result.p_value, result.effect, *result.interval, *plain(data)

        return jax.lax.map(one, keys, batch_size=batch)

    return found


def measure(name: str, design: Design, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start = time.process_time()
    keys = keys_of(SEED, f"{name} {n} {epsilon:g}", replicates)
    made = program(n, 50)(keys, epsilon, jnp.asarray(design.numbers, float))
    p, _, low, high, middle, se = (np.asarray(values, float) for values in made)
    true, answered = truth(design), np.isfinite(low)
    inside = (low <= true) & (true <= high)
    agree = (p < 0.05) == ((low > 0.5) | (high < 0.5))
    some = bool(answered.any())
    reach = stats.norm.ppf(0.975) * se
    return {
        "design": name,
        **{field: value for field, value in dataclasses.asdict(design).items() if field != "law"},
        "n": n,
        "epsilon": epsilon,
        "truth": round(true, 5),
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside[answered].mean()), 4) if some else None,
        "agree": round(float(agree[answered].mean()), 4) if some else None,
        "rejected": round(float((p < 0.05).mean()), 4),
        "width": round(float(np.median((high - low)[answered])), 4) if some else None,
        "plain_covered": round(float((np.abs(middle - true) <= reach).mean()), 4),
        "plain_width": round(float(np.median(2.0 * reach)), 4),
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def told(row: dict) -> str:
    """Coverage and width, with DeLong's width."""
    if row["answered"] < 0.1:
        return "none"
    return f"{shared(row)}, {row['width']:.2f} ({row['plain_width']:.2f})"


def shared(row: dict) -> str:
    """Coverage, with the share that was answered where that is not all."""
    return f"{row['covered']:.3f}" + ("" if row["answered"] >= 0.995 else f" of {row['answered']:.2f}")


def run(doc: str, replicates: int, record: Path, designs: dict, measure, told) -> None:
    """The command of a record of designs, whose table has a column for each n and epsilon."""
    parser = command_line(doc, replicates)
    parser.add_argument("--only", nargs="*", default=tuple(designs), choices=tuple(designs))
    parser.add_argument("--records", nargs="*", type=int, default=RECORDS)
    args = parser.parse_args()
    if args.table:
        found = {(row["design"], row["n"], row["epsilon"]): row for row in rows(record)}
        columns = list(itertools.product(RECORDS, EPSILONS))
        every = {name: [found[name, *column] for column in columns] for name in designs}
        lines = ([name, f"{cells[0]['truth']:.3f}", *map(told, cells)] for name, cells in every.items())
        return fill(PAGE, record.stem, markdown(["design", "truth", *settings(columns)], lines) + "\n")
    cells = itertools.product(args.records, args.only, EPSILONS)
    with jax.enable_x64(True):
        append(record, (measure(name, designs[name], n, epsilon, args.replicates) for n, name, epsilon in cells))


if __name__ == "__main__":
    run(__doc__, 2000, RECORD, DESIGNS, measure, told)
