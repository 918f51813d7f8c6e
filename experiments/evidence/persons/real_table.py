"""A real table with persons, through `jaxdp.test`: eight years of the wages of 545 men (docs/theory/persons.md).

    python -m experiments.evidence.persons.real_table --file wage_panel.csv [--replicates 100]
    python -m experiments.evidence.persons.real_table --table       # the table of the page, from the record

The table is `wage_panel` of the Python package linearmodels 7.1 (Vella and Verbeek 1998), which is not kept here; the
page has the commands that take it out of the wheel. One JSON line per query, epsilon and way of counting rows. `null`:
share of p < 0.05 where the whole list of X of each person (all have eight rows) is another person's, drawn at random,
in a random order, since hours and wages both change with the year: X has nothing to do with the rest, and keeps its
dependence within a person. Where the query has a Z, it goes with X. `found`: the same of the table as it is, over the
noise. `naive`: every row is a record, which protects rows and not persons. The test is what jaxdp chooses.
"""

import csv
import itertools
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxdp
from experiments.record import append, command_line, fill, rows

RECORD = Path(__file__).with_name("real_table.jsonl")
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "persons.md"
PERSON, YES_NO = "nr", ("union", "married")
BOUNDS = {"lwage": (-1.0, 4.0), "hours": (0.0, 5000.0), "educ": (0.0, 20.0), "exper": (0.0, 20.0)}
ASKED: dict[str, dict[str, Any]] = {
    "wage, member of a union": {"x": "union", "y": "lwage"},
    "wage, years of school": {"x": "educ", "y": "lwage"},
    "member of a union, married": {"x": "married", "y": "union"},
    "wage, hours, given years of school": {"x": "hours", "y": "lwage", "given": ["educ"]},
    "wage, hours, given married": {"x": "hours", "y": "lwage", "given": ["married"]},
    "wage, member of a union, given years of school and of work": {
        "x": "union",
        "y": "lwage",
        "given": ["educ", "exper"],
    },
}
WAYS = ("first", "all", "naive")
EPSILONS = (1.0, 4.0)
LEVEL, SEED = 0.05, 3407


def read(path: Path) -> dict[str, np.ndarray]:
    """The columns that the queries name, and the person."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    table: dict[str, np.ndarray] = {PERSON: np.array([line[PERSON] for line in lines])}
    table |= {name: np.array([float(line[name]) for line in lines]) for name in BOUNDS}
    return table | {name: np.where([line[name] == "1" for line in lines], "yes", "no") for name in YES_NO}


def schema(naive: bool) -> dict[str, Any]:
    """Public knowledge about the columns. naive: without the person."""
    columns: dict[str, Any] = {name: {"kind": "continuous", "bounds": list(ends)} for name, ends in BOUNDS.items()}
    for name in ("educ", "exper", "hours"):
        columns[name]["step"] = 1
    columns |= {name: {"kind": "binary", "levels": ["no", "yes"]} for name in YES_NO}
    return {"columns": columns} if naive else {"columns": columns, "unit": PERSON}


def exchanged(table: dict[str, np.ndarray], names: list[str], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The table with these columns of each person taken from another one, who has as many rows, in any order."""
    persons = np.unique(table[PERSON])
    of_person = np.stack([np.flatnonzero(table[PERSON] == one) for one in persons])
    source = np.empty(len(table[PERSON]), int)
    source[of_person] = rng.permuted(of_person[rng.permutation(len(persons))], axis=1)
    return table | {name: table[name][source] for name in names}


def measure(table, query: str, epsilon: float, way: str, replicates: int) -> dict[str, Any]:
    """One line of the record."""
    words = ASKED[query]
    public = {"schema": schema(way == "naive"), "epsilon": epsilon, **({} if way == "naive" else {"rows": way})}
    moved = [words["x"], *words.get("given", ())]
    rejected = {"null": 0, "found": 0}
    methods, flagged = set(), 0
    for place in range(replicates):
        rng = np.random.default_rng([SEED, place])
        for name, data in (("null", exchanged(table, moved, rng)), ("found", table)):
            answer = jaxdp.test(data, **words, **public, key=jax.random.key(int(rng.integers(2**31))))
            rejected[name] += float(answer.p_value) < LEVEL
            methods.add(answer.method)
            flagged += bool(answer.to_dict().get("flags"))
    shares = {name: count / replicates for name, count in rejected.items()}
    return {
        "query": query,
        "epsilon": epsilon,
        "rows": way,
        "method": sorted(methods),
        "replicates": replicates,
        **shares,
        "flagged": flagged / (2 * replicates),
    }


def page_table() -> str:
    """Rows of queries; columns of the ways of counting rows."""
    found = {(row["query"], row["epsilon"], row["rows"]): row for row in rows(RECORD)}
    ways = " | ".join(WAYS)
    lines = [f"| query | test | epsilon | null: {ways} | found: {ways} |", "|---" * 9 + "|"]
    for query in ASKED:
        for epsilon in EPSILONS:
            cells = [found[query, epsilon, way] for way in WAYS]
            numbers = " | ".join(f"{cell[part]:.2f}".removeprefix("0") for part in ("null", "found") for cell in cells)
            lines.append(f"| {query} | {', '.join(cells[1]['method'])} | {epsilon:g} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    """Measures, or writes the table."""
    parser = command_line(__doc__, 100)
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    if given.table:
        fill(PAGE, "real table", page_table())
        return
    table = read(given.file)
    cells = itertools.product(ASKED, EPSILONS, WAYS)
    append(RECORD, (measure(table, *cell, given.replicates) for cell in cells))


if __name__ == "__main__":
    main()
