"""How often each flag stands beside an answer: in cells whose level holds and in cells whose level does not.

Reads `suite.jsonl` and the record of differences of means; measures nothing. A flag that doubts the level stands beside
a dependence that was found (`jaxdp.ask.answer.of_verdict`), so that its share in a cell of true nulls is the share
rejected there; a flag about power or width stands whatever was found.

    python -m experiments.evidence.level.flags      # writes the table of docs/evidence/flags.md
"""

import collections
import json
from pathlib import Path

from jaxdp.report.sections import DOUBTS, FLAGS

HERE = Path(__file__).parent
SUITE, GROUPS = HERE / "suite.jsonl", HERE.parent / "coverage" / "groups.jsonl"
PAGE = HERE.parents[2] / "docs" / "evidence" / "flags.md"
BEGIN, END = "<!-- flags: begin -->\n", "<!-- flags: end -->"
HOLDS, LOST = "inside", "flagged"


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def raised(row: dict, flag: str) -> float:
    """Share of a cell's answers that carry the flag."""
    if flag not in row["flags"]:
        return 0.0
    return (row["rejections"] - row.get("unflagged", 0)) / row["replicates"] if flag in DOUBTS else 1.0


def of_suite() -> dict[tuple[str, str], dict[str, list[float]]]:
    """(test, flag) -> verdict -> shares of the cells of every test that ever carries the flag."""
    cells = [row for row in rows(SUITE) if row["verdict"] in (HOLDS, LOST)]
    kinds = {(row["test"], flag) for row in cells for flag in row["flags"] if flag in FLAGS}
    found: dict = {kind: collections.defaultdict(list) for kind in kinds}
    for row in cells:
        for test, flag in kinds:
            if row["test"] == test:
                found[test, flag][row["verdict"]].append(raised(row, flag))
    return found


def of_groups() -> dict[tuple[str, str], dict[str, list[float]]]:
    """The same of `mean-difference`: the level of its nulls holds in every cell of the record."""
    found: dict = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows(GROUPS):
        for flag, share in row["flags"].items():
            found[row["method"], flag][HOLDS].append(share)
    return found


def table() -> str:
    lines = ["| test | flag | cells whose level holds | answers flagged there | cells whose level is lost | there |"]
    lines.append("|---|---|---|---|---|---|")
    for (test, flag), verdicts in sorted({**of_suite(), **of_groups()}.items()):
        shown = []
        for verdict in (HOLDS, LOST):
            shares = verdicts.get(verdict, [])
            shown += [str(len(shares)), f"{sum(shares) / len(shares):.3f}" if shares else "–"]
        lines.append(f"| `{test}` | {flag} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
