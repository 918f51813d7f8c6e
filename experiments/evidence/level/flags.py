"""How often each flag stands beside an answer: in cells whose level holds and in cells whose level does not.

Reads the records of the stress suite, of variants, and of the cells that were made for the
flags that none of these shows (`flag_cells.py`); measures nothing. A flag that doubts the level stands beside a
dependence that was found (`jaxdp.ask.level_rules.with_flags`), so that its share in a cell of true nulls is the share
rejected there; a flag about power stands whatever was found.

    python -m experiments.evidence.level.flags      # writes the table of docs/evidence/flags.md
"""

import collections
import json
from pathlib import Path

from experiments.evidence.level import suite
from jaxdp import catalogue
from jaxdp.data import conditioning
from jaxdp.report.sections import DOUBTS, FLAGS

HERE = Path(__file__).parent
SUITE, CELLS = HERE / "suite.jsonl", HERE / "flag_cells.jsonl"
VARIANTS = HERE.parent / "variants" / "level.jsonl"
PAGE = HERE.parents[2] / "docs" / "evidence" / "flags.md"
BEGIN, END = "<!-- flags: begin -->\n", "<!-- flags: end -->"
HOLDS, LOST = "inside", "flagged"
Found = dict[tuple[str, str], dict[str, list[float]]]  # (test, flag) -> verdict -> shares of the cells
ANY = "any test, from the schema"
NOTES = (
    "Notes about the effect and its interval (`PrivateTest.effect_notes`) say nothing about the level and are not "
    "flags. The level holds in each of these cells; the last column is the share of answers that carry the note:"
)
NOT_MEASURED = {  # (test, flag) that the table has no row of, and why
    ("subsample-aggregate", "fit"): "on the command line this test takes no Z; in Python the flag appears with every "
    "finding of a statistic that conditions on Z",
}


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def raised(row: dict, flag: str) -> float:
    """Share of a cell's answers that carry the flag."""
    if flag not in row["flags"]:
        return 0.0
    return (row["rejections"] - row.get("unflagged", 0)) / row["replicates"] if flag in DOUBTS else 1.0


def of_suite() -> Found:
    """Cells of every test that ever carries the flag."""
    cells = [row for row in rows(SUITE) if row["verdict"] in (HOLDS, LOST)]
    kinds = {(row["test"], flag) for row in cells for flag in row["flags"] if flag in FLAGS}
    found: dict = {kind: collections.defaultdict(list) for kind in kinds}
    for row in cells:
        for test, flag in kinds:
            if row["test"] == test:
                found[test, flag][row["verdict"]].append(raised(row, flag))
    return found


def of_variants() -> Found:
    """True nulls of variants, whose flags are public: they doubt the level and stand beside findings."""
    found: dict = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows(VARIANTS):
        test, share = row["cell"]["test"], row["rejected 0.05"]
        if row["code"] == "after" and not row["cell"]["effect"] and test in catalogue.offered():
            inside = suite.verdict(round(share * row["replicates"]), row["replicates"], []) == suite.INSIDE
            for flag in catalogue.find(test).cls.flags:
                found[test, flag][HOLDS if inside else LOST].append(share if flag in row["flags"] else 0.0)
    return found


def of_cells() -> Found:
    """The same of the cells that were made for flags; whatever its test, of a flag that the schema raises."""
    found: dict = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows(CELLS):
        named = dict.fromkeys(catalogue.find(row["method"]).cls.flags, row["method"])
        named |= {flag: ANY for flag in conditioning.FLAGS if flag in row["cell"]}
        for flag, test in named.items():
            if (test, flag) in NOT_MEASURED:
                continue
            verdict = HOLDS if row["verdict"] == HOLDS else LOST
            found[test, flag][verdict].append(row["flags"].get(flag, 0.0))
    return found


def of_notes() -> dict[tuple[str, str, str], float]:
    """(test, cell, note) -> share of the answers that say so in place of an effect or of its interval."""
    found = {}
    for row in rows(CELLS):
        place = f"{row['cell']}, n = {row['n']}, epsilon {row['epsilon']:g}"
        found |= {(row["method"], place, note): share for note, share in row["notes"].items()}
    return found


def named() -> list[tuple[str, str]]:
    """(test, flag) of every flag that an answer of the command line can carry."""
    tests = [(entry.name, flag) for entry in catalogue.offered().values() for flag in entry.cls.flags]
    return [*((ANY, flag) for flag in conditioning.FLAGS), *tests]


def measured() -> Found:
    """All records together."""
    found: Found = {}
    for record in (of_suite(), of_variants(), of_cells()):
        for kind, verdicts in record.items():
            kept = found.setdefault(kind, collections.defaultdict(list))
            for verdict, shares in verdicts.items():
                kept[verdict] += shares
    return found


def table() -> str:
    lines = [
        "| test | flag | cells, level holds | share of answers flagged | cells, level lost | share of answers flagged |"
    ]
    lines.append("|---|---|---|---|---|---|")
    found = measured()
    for test, flag in sorted(set(named()) & set(found)):
        shown = []
        for verdict in (HOLDS, LOST):
            shares = found[test, flag].get(verdict, [])
            shown += [str(len(shares)), f"{sum(shares) / len(shares):.3f}" if shares else "–"]
        lines.append(f"| {test if test == ANY else f'`{test}`'} | {flag} | {' | '.join(shown)} |")
    missing = [f"- `{test}`, {flag}: {NOT_MEASURED[test, flag]}." for test, flag in sorted(NOT_MEASURED)]
    notes = ["| test | cell | note about the effect | share |", "|---|---|---|---|"]
    notes += [f"| `{test}` | {cell} | {note} | {share:.3f} |" for (test, cell, note), share in of_notes().items()]
    return "\n".join([*lines, "", "Flags without a row:", "", *missing, "", NOTES, "", *notes]) + "\n"


def main() -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
