"""Level and power where a person has several rows, all of which count (docs/theory/persons.md).

    python -m experiments.evidence.persons [--only NAME ...] [--persons 200 1000 5000] [--null NAME ...]
    python -m experiments.evidence.persons --table        # the tables of the page, from the record

One JSON line per test, number of persons and correlation within a person, at epsilon 1. Numbers of rows are lognormal,
from 1 to 50, of which 16 are drawn: 1 to 16, mean 4.6. X, Y and Z of a row are sums of a part of the person and of one
of the row; `within` is the share of the person's part. `first`, `all`: share of p < 0.05 with the first row of each
person and with all of them, under the null and at the effect. `bound`: with all rows and the null variance of one row,
of tests that have another. `naive`: with every row as a record, under the null, which protects rows and not persons;
each person then has four rows.

Nulls besides that of independent persons' parts (`alike`): `counts`, a person of larger X has more rows; `crossed`, the
Y of a row is the X of the person's next row; `kinds`, of half of the persons X is the same in all rows, of the others
Y, and Z is of all.
"""

import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.record import append, command_line, fill, markdown
from experiments.record import rows as recorded
from jaxdp import catalogue
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.data.person_rows import DRAWS, PersonRows
from jaxdp.simulate import power
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "persons.jsonl"
SECOND = RECORD.with_name("second_moments.jsonl")  # of pairs and tables
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "persons.md"
WITHIN = (0.0, 0.5, 0.9)
REPLICATES = {200: 1000, 1000: 600, 1500: 400, 2000: 300, 5000: 200, 20000: 100}  # by the number of persons
EFFECT = {200: 0.4, 1000: 0.15, 1500: 0.1, 2000: 0.1, 5000: 0.06, 20000: 0.025}
TABLES = ("quantile-table", "noisy-table", "stratified-table")
PART_OF_EFFECT = dict.fromkeys(TABLES, 0.7)
ALIKE, COUNTS, CROSSED, KINDS = NULLS = ("alike", "counts", "crossed", "kinds")
# By the null variance of one row, instead of their default.
JUDGED = {"partition-gcm": {"by_person": False}, "band-gcm": {"by_person": False}}
MOST = 50  # rows of a person
NAIVE_ROWS, MAX_NAIVE = 4, 5000  # rows of a person; persons, of whom that is measured
SIDE = 5.0  # half of the width of the bounds, in sds of a row's own part
LINE, BOTH, LEVELS, HALF = Column(), (Column(), Column()), Column(ORDINAL, 5), Column(BINARY, 2)
NAMES = Column(CATEGORICAL, 3)
DOMAINS = {
    "band-gcm": Domain((LINE,), (LINE,), (LINE,)),
    "partition-gcm": Domain((LINE,), (LINE,), (LINE,)),
    "contrast-gcm": Domain((LINE,), (LINE,), BOTH),
    "partial-correlation": Domain((LINE,), (LINE,), (LINE,)),
    "winsorised-partial-correlation": Domain((LINE,), (LINE,), (LINE,)),
    "conditional-spearman": Domain((LINE,), (LINE,), ()),
    "conditional-kendall": Domain((LEVELS,), (LEVELS,), ()),
    "mean-difference": Domain((HALF,), (LINE,), ()),
    "quantile-table": Domain((LINE,), (LINE,), ()),
    "noisy-table": Domain((NAMES,), (NAMES,), ()),
    "stratified-table": Domain((NAMES,), (NAMES,), (HALF,)),
}


def _normal(key, persons: int, columns: int, within: float):
    """(persons, DRAWS, columns), unit variance, with this correlation of the rows of one person."""
    shared, own = jax.random.split(key)
    person = jax.random.normal(shared, (persons, 1, columns))
    return jnp.sqrt(within) * person + jnp.sqrt(1.0 - within) * jax.random.normal(own, (persons, DRAWS, columns))


def rows(
    key, *, domain: Domain, persons: int, within: float, effect: float, null: str = ALIKE, most: int | None = None
) -> PersonRows:
    """Draws of persons; most: all persons have so many rows."""
    keys = jax.random.split(key, 4)
    z = _normal(keys[1], persons, 2, 1.0 if null == KINDS else 0.5)
    own = _normal(keys[2], persons, 2, within)
    if null == CROSSED:
        own = jnp.stack([own[..., 0], jnp.roll(own[..., 0], -1, axis=1)], axis=-1)
    elif null == KINDS:
        same = jnp.arange(persons)[:, None, None] % 2 == jnp.arange(2)
        own = jnp.where(same, own[:, :1], own)
    size = own[:, 0, 0] if null == COUNTS else jax.random.normal(keys[0], (persons,))
    counts = jnp.clip(jnp.ceil(jnp.exp(1.0 + size)), 1, MOST).astype(int)
    counts = jnp.minimum(counts, DRAWS) if most is None else jnp.full(persons, most)
    z = _coded(z, domain.z[0]) if domain.z else z
    trend = 0.5 * z[..., 0] * (SIDE if domain.z == (LINE,) * len(domain.z) else 1.0) if domain.z else 0.0
    x, y = own[..., 0], own[..., 1] + effect * own[..., 0]
    parts = [_coded(x + trend, domain.x[0]), _coded(y + trend, domain.y[0]), z]
    turn = jnp.arange(DRAWS)[None] % counts[:, None]  # rows of a person are exchangeable: each is drawn in turn
    x, y, z = (jnp.take_along_axis(part, turn if part.ndim == 2 else turn[..., None], 1) for part in parts)
    return PersonRows(Data(x, y, z[..., : len(domain.z)] if domain.z else None, domain))


def _coded(values, column: Column):
    if column.kind == BINARY:
        return (values > 0).astype(float)
    if column.kind == ORDINAL:
        return jnp.clip(jnp.floor(1.2 * values + 2.5), 0, 4)
    if column.kind == CATEGORICAL:
        return jnp.digitize(values, jnp.array([-0.43, 0.43])).astype(float)
    return jnp.clip(values / SIDE, -1.0, 1.0)


def _draw(key, *, number: int | None, **how) -> Data | PersonRows:
    """All rows; one draw of them; or every row of persons who have `NAIVE_ROWS`, as a record (number -1)."""
    if number is None:
        return rows(key, **how)
    found = rows(key, **how, most=NAIVE_ROWS if number < 0 else None).draws
    if number < 0:
        return jax.tree.map(lambda leaf: leaf[:, :NAIVE_ROWS].reshape(-1, *leaf.shape[2:]), found)
    return jax.tree.map(lambda leaf: leaf[:, number], found)


def measure(
    name: str,
    persons: int,
    within: float,
    null: str = ALIKE,
    *,
    effect: float | None = None,
    replicates: int | None = None,
) -> dict:
    """One line of the record; with an effect or a number of data sets of its own, without `naive`."""
    domain, started, own = DOMAINS[name], time.perf_counter(), effect or replicates
    entry, replicates = catalogue.find(name), replicates or REPLICATES[persons]
    how = {"domain": domain, "persons": persons, "within": within, "null": null}
    size = effect or round(EFFECT[persons] * PART_OF_EFFECT.get(name, 1.0), 4)
    found = {}
    for label, number in (("first", 0), ("bound", None), ("all", None), ("naive", -1)):
        if label == "bound" and name not in JUDGED:
            continue
        if label == "naive" and (own or null != ALIKE or persons > MAX_NAIVE):
            continue
        fields = JUDGED[name] if label == "bound" else {}
        for what, effect in (("level", 0.0), ("power", size)):
            if effect and (label == "naive" or null != ALIKE):
                continue
            design = functools.partial(_draw, **how, number=number, effect=effect)
            count = persons * (NAIVE_ROWS if number == -1 else 1)
            test = entry.build(1.0, domain, Options(num_records=count, fields=fields), coded=domain)
            p = power.p_values(test, design, jax.random.key(34), replicates)
            found[f"{label} {what}"] = round(float(np.mean(np.asarray(p) <= 0.05)), 4)
    return {
        "test": name,
        "persons": persons,
        "within": within,
        **({} if null == ALIKE else {"null": null}),
        "effect": size,
        "replicates": replicates,
        **found,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _table() -> str:
    shown = ("first level", "all level", "naive level", "first power", "all power")
    lines = (_line(f"`{row['test']}`", row, shown) for row in recorded(RECORD) if "null" not in row)
    heads = ("test", "persons", "correlation within", "level: first", "all rows", "naive", "power: first", "all rows")
    return markdown(heads, lines)


def _moments_table() -> str:
    shown = [f"{label} {what}" for what in ("level", "power") for label in ("first", "bound", "all")]
    lines = (_line(row.get("null", ALIKE), row, shown) for row in recorded(RECORD) if "bound level" in row)
    heads = ("null", "persons", "correlation within", "level: first", "V", "Q", "power: first", "V", "Q")
    return markdown(heads, lines)


def _pairs_table() -> str:
    lines = []
    levels, powers = ([f"{label} {what}" for label in ("first", "bound", "all")] for what in ("level", "power"))
    for row in recorded(SECOND):
        name = f"`{row['test']}`" + (f", {row['null']}" if "null" in row else "")
        lines.append([*_line(name, row, [*levels, "naive level"]), f"{row['effect']:g}", *_rates(row, powers)])
    of_levels = ("level: first", "V", "all", "naive")
    return markdown(("test", "persons", "correlation within", *of_levels, "effect", "power: first", "V", "all"), lines)


def _line(first: str, row: dict, shown) -> list:
    return [first, row["persons"], f"{row['within']:g}", *_rates(row, shown)]


def _rates(row: dict, shown) -> list[str]:
    return [f"{row[key]:.3f}".removeprefix("0") if key in row else "" for key in shown]


def main() -> None:
    """Measures, or writes the table."""
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="*", default=list(DOMAINS), choices=list(DOMAINS))
    parser.add_argument("--persons", nargs="*", type=int, default=[200, 1000, 5000], choices=list(REPLICATES))
    parser.add_argument("--within", nargs="*", type=float, default=list(WITHIN))
    parser.add_argument("--null", nargs="*", default=[ALIKE], choices=NULLS)
    parser.add_argument("--effect", type=float)
    parser.add_argument("--replicates", type=int)
    asked = parser.parse_args()
    if asked.table:
        fill(PAGE, "rows", _table())
        fill(PAGE, "moments", _moments_table())
        return fill(PAGE, "pairs", _pairs_table())
    every = itertools.product(asked.only, asked.persons, asked.within, asked.null)
    for one in every:
        found = measure(*one, effect=asked.effect, replicates=asked.replicates)
        append(SECOND if one[0] in ("band-gcm", *TABLES) else RECORD, [found])


if __name__ == "__main__":
    main()
