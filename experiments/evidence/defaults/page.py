"""The tables of docs/evidence/defaults.md, from the records: `python -m experiments.evidence.defaults.page`."""

import re
from pathlib import Path

from experiments.evidence.defaults import directions, groups
from experiments.evidence.defaults.rule import NULLS, RECORD, lost, shape_of
from experiments.evidence.defaults.shapes import EVEN, Z_KINDS, Z_WORDS, Shape
from experiments.record import markdown, rows
from jaxdp import catalogue
from jaxdp.data import Column
from jaxdp.data.dataset import CONTINUOUS, ORDINAL

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "evidence" / "defaults.md"
TABLES = "kinds_measured|records_needed|level_given_z|level_of_defaults|level_of_groups|coverage_of_directions"
MARKED = re.compile(rf"(<!-- made: ({TABLES}) -->\n).*?(\n?<!-- end -->)", flags=re.S)


AFTER = {  # tests of published work, for people who look for the best of them
    "conditional-kendall-paper": "Wang and others 2020",
    "kruskal-wallis": "Couch and others 2019",
    "noisy-table": "Gaboardi and others 2016",
    "private-gcm": "Kalemaj and others 2023",
    "private-gcm-paper": "Kalemaj and others 2023",
    "projected-chi2": "Rogers and Kifer 2017",
    "test-of-tests": "Kazan and others 2023",
}


SIDES = {"two levels": ("nominal", 2), "nominal": ("nominal", 3), "ordered": ("ordered", 3), "number": ("number", 0)}


def kinds_measured() -> str:
    """The default of each pair of kinds of columns and of Z, and the numbers of levels for which it is measured."""
    measured: dict[tuple, set[str]] = {}
    for row in (row for row in rows(RECORD) if "refused" not in row):
        shape = shape_of(row["shape"])
        counts = "x".join(str(count) for count in shape.levels if count)
        measured.setdefault((frozenset(map(_side, shape.columns)), shape.z), set()).add(counts or "measured")
    lines, names = [], list(SIDES)
    for i, first in enumerate(names):
        for second in names[i:]:
            kinds, levels = zip(SIDES[first], SIDES[second], strict=True)
            cells = []
            for z in Z_KINDS:
                default = catalogue.default(Shape(*kinds, levels, EVEN, "line", 0.3, z).domain(True)).name
                told = measured.get((frozenset((first, second)), z))
                cells.append(f"`{default}`: {', '.join(sorted(told))}" if told else f"`{default}`, not measured")
            lines.append([f"{first}, {second}", *cells])
    return markdown(["columns", "no Z", *Z_WORDS.values()], lines)


def _side(column: Column) -> str:
    if column.kind == CONTINUOUS:
        return "number"
    return "two levels" if column.levels == 2 else "ordered" if column.kind == ORDINAL else "nominal"


def records_needed() -> str:
    """One line for each shape and test: records at epsilon 0.5, 1 and 2; the default in bold, first."""
    found: dict[tuple, dict] = {}
    none = lost()
    for row in rows(RECORD):
        if "refused" not in row:
            shape = shape_of(row["shape"])
            head = (row["kind"], shape.balance, f"{shape.law} {shape.strength:g}", row["not_private"])
            default = row["test"] == catalogue.default(shape.domain(True)).name
            found.setdefault((*head, row["test"], default), {})[row["epsilon"]] = row["records"]
    lines = []
    for (kind, balance, law, plain, test, default), cells in found.items():
        name = (f"**`{test}`**" if default else f"`{test}`") + (f", {AFTER[test]}" if test in AFTER else "")
        name += " (level lost)" if test in none[kind] else ""
        told = [("more" if cells[e] is None else str(cells[e])) if e in cells else "" for e in (0.5, 1.0, 2.0)]
        lines.append([kind, balance, law, plain or "", name, *told])
    return markdown(("columns", "levels", "law", "not private", "test", "epsilon 0.5", "1", "2"), lines)


def level_given_z() -> str:
    """Rejections of true nulls given Z: one line for each kind of columns, null and test."""
    found: dict[tuple, dict] = {}
    for row in rows(NULLS):
        found.setdefault((row["kind"], row["null"], row["test"]), {})[row["epsilon"]] = row["rate"]
    epsilons = sorted({epsilon for cells in found.values() for epsilon in cells})
    lines = (
        [kind, null, f"`{test}`", *(f"{cells[epsilon]:.3f}" for epsilon in epsilons)]
        for (kind, null, test), cells in found.items()
    )
    return markdown(["columns", "null", "test", *(f"epsilon {e:g}" for e in epsilons)], lines)


def level_of_defaults() -> str:
    """Rejections of true nulls by the default: one line for each shape, a column for each n and epsilon."""
    found: dict[tuple, dict] = {}
    for row in rows(HERE / "level.jsonl"):
        shape = shape_of(row["shape"])
        head = (row["kind"], shape.balance, row["test"], row["replicates"])
        found.setdefault(head, {})[row["n"], row["epsilon"]] = row["rate"]
    places = sorted({place for cells in found.values() for place in cells})
    lines = []
    for (kind, balance, test, replicates), cells in found.items():
        told = [f"{cells[place]:.3f}" if place in cells else "" for place in places]
        lines.append([kind, balance, f"`{test}`", replicates, *told])
    names = (f"n {n}, epsilon {epsilon:g}" for n, epsilon in places)
    return markdown(["columns", "levels", "default", "nulls a cell", *names], lines)


def filled(text: str) -> str:
    """The page with its tables as the records have them."""
    makers = {"kinds_measured": kinds_measured, "records_needed": records_needed, "level_given_z": level_given_z}
    makers |= {"level_of_defaults": level_of_defaults}
    makers |= {"level_of_groups": groups.table, "coverage_of_directions": directions.table}
    return MARKED.sub(lambda mark: mark[1] + makers[mark[2]]() + mark[3], text)


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
