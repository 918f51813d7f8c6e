"""`jaxdp methods`: every test and search: what it sees, how it wants its columns, what leaves, when to use it."""

from __future__ import annotations

import argparse
import json


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "methods",
        help="list every test and search",
        description="Every test and search by its only name, the one that all commands, results and ledgers use.",
        epilog="example: jaxdp methods --json",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")


def run(args: argparse.Namespace) -> int:
    tests, searches = _tests(), _searches()
    if args.json:
        print(json.dumps({"tests": tests, "searches": searches}, indent=2))
        return 0
    lines = ["tests: jaxdp test --method NAME, and in simulate, plan, audit, bench"]
    for row in tests:
        lines.append(f"  {row['name']:22s} {row['summary']}")
        parts = [f"sees {row['sees']}" if row["sees"] else "", f"publishes a {row['publishes']}", _needs(row["needs"])]
        lines.append(f"{'':25s}{'; '.join(part for part in parts if part)}")
    lines.append("searches: jaxdp discover --method NAME")
    for row in searches:
        told = f"; {_needs(row['needs'])}, in Python" if row["needs"] else ""
        lines.append(f"  {row['name']:22s} {row['summary']}{told}")
    print("\n".join(lines))
    return 0


def _needs(names: list[str]) -> str:
    return f"needs {' and '.join(names)}" if names else ""


def _tests() -> list[dict]:
    from jaxdp import catalogue

    return [
        {
            "name": entry.name,
            "class": entry.cls.__name__,
            "summary": entry.spec.summary,
            "sees": entry.spec.sees,
            "columns": entry.spec.columns.value,
            "publishes": entry.spec.publishes,
            "private": entry.spec.private,
            "needs": list(entry.spec.needs),
            "assumption": entry.spec.assumption,
            "theory": entry.spec.theory,
        }
        for entry in catalogue.entries().values()
    ]


def _searches() -> list[dict]:
    from jaxdp.discovery.spec import searches

    specs = (found.spec for found in searches().values())  # type: ignore[attr-defined]
    return [{"name": spec.name, "summary": spec.summary, "needs": list(spec.needs)} for spec in specs]
