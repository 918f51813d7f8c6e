"""Mutants that were judged before the redesign, beside their counterparts in today's source and record.

    python -m experiments.evidence.mutants.compare         # the table of README.md

`before.csv` is the record as it stood at commit ad96907 and, per row, the place of the same change today: file, class,
function or constant, old and new text. "now" is what record.csv says of that place if the row was judged at another
commit than the old one; a row that only moved with its file is not judged yet.
"""

import csv
from pathlib import Path

from experiments.evidence.mutants.__main__ import reason_of, reasons
from experiments.evidence.mutants.run import KILLED

HERE = Path(__file__).parent
FIELDS = ("path", "owner", "name", "old", "new")
NOT_YET = "not judged yet"


def counterparts() -> list[tuple[dict, dict]]:
    """Per mutant judged before: its row, and its place today as fields of a row of the record."""
    return [(row, {field: row[f"{field}_now"] for field in FIELDS}) for row in _rows("before.csv")]


def compared() -> list[tuple[str, str, str, str, str]]:
    """Per mutant judged before: place then, place now, change now, status then, status now."""
    known = {tuple(row[field] for field in FIELDS): row for row in _rows("record.csv")}
    told = reasons()
    found = []
    for before, place in counterparts():
        row = known.get(tuple(place.values()))
        judged = row is not None and row["commit"] != before["commit"]
        change = f"`{place['old']}` to `{place['new']}`"
        now = _verdict(row, told) if judged else NOT_YET
        found.append((_place(before), _place(place), change, _verdict(before, told, place), now))
    return found


def table() -> str:
    """Markdown: one row per mutant judged before."""
    head = ("then", "now", "change", "before", "now")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in compared()])


def _verdict(row: dict, told: list[dict], place: dict | None = None) -> str:
    """killed, or survived and whether reasons.csv says why that is harmless."""
    harmless = reason_of(place or row, told)
    return row["status"] if row["status"] == KILLED or not harmless else f"{row['status']}, harmless"


def _place(row: dict) -> str:
    owner = f"{row['owner']}." if row["owner"] else ""
    return f"`{row['path'].removeprefix('jaxdp/')}` `{owner}{row['name']}`"


def _rows(name: str) -> list[dict]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print(table())
