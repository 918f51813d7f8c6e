"""`jaxdp methods`: every test and search: what it detects, how its columns are coded, what leaves, when to use it."""

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
        lines += [] if row["true_epsilon"] else _shown(row)
    lines.append("searches: jaxdp discover --method NAME")
    lines += [line for row in searches if not row["true_epsilon"] for line in _shown_search(row)]
    lines.append("as papers state them, and comparators (jaxdp.published), with the epsilon that they really have:")
    for row in [*tests, *searches]:
        if row["true_epsilon"]:
            lines += [f"  {row['name']:26s} {row['summary']}", f"{'':29s}true epsilon: {row['true_epsilon']}"]
    print("\n".join(lines))
    return 0


def _shown(row: dict) -> list[str]:
    parts = [f"sees {row['sees']}" if row["sees"] else "", f"publishes a {row['publishes']}", _needs(row["needs"])]
    chosen = f"for --sees {', '.join(row['chosen_for'])}" if row["chosen_for"] else ""
    told = "; ".join(part for part in [*parts, chosen] if part)
    known = [f"{'':25s}answers for {', '.join(row['known_as'])}"] if row["known_as"] else []
    return [f"  {row['name']:22s} {row['summary']}", f"{'':25s}{told}", *known]


def _shown_search(row: dict) -> list[str]:
    told = f"; {_needs(row['needs'])}, in Python" if row["needs"] else ""
    return [f"  {row['name']:22s} {row['summary']}{told}"]


def _needs(names: list[str]) -> str:
    return f"needs {' and '.join(names)}" if names else ""


def _tests() -> list[dict]:
    from jaxdp import catalogue

    return [
        {
            "name": entry.name,
            "class": entry.cls.__name__,
            "summary": entry.spec.summary,
            "known_as": list(entry.spec.known_as),
            "sees": entry.spec.alternatives,
            "chosen_for": _wishes(entry),
            "columns": entry.spec.columns.value,
            "publishes": entry.spec.publishes,
            "private": entry.spec.private,
            "needs": list(entry.spec.needs),
            "true_epsilon": entry.spec.true_epsilon,
            "assumption": entry.spec.assumption,
            "theory": entry.spec.theory,
        }
        for entry in catalogue.entries().values()
    ]


def _wishes(entry) -> list[str]:
    """Kinds of dependence for which the test can be chosen by `jaxdp test --sees KIND`, in some columns."""
    from jaxdp.data.dataset import CATEGORICAL, Column, Domain
    from jaxdp.spec import KINDS_OF_ALTERNATIVES

    number, code = Column(), Column(CATEGORICAL, 2)
    asked = [
        Domain((one,), (other,), given)
        for one, other in ((number, number), (number, code), (code, code))
        for given in ((), (number,), (number, number), (code,))
    ]
    served = {kind for domain in asked if entry.spec.accepts(domain) for kind in entry.spec.suitability(domain)}
    return [kind for kind in KINDS_OF_ALTERNATIVES if kind in served]


def _searches() -> list[dict]:
    from jaxdp.discovery.spec import searches

    specs = (found.spec for found in searches().values())
    return [
        {"name": spec.name, "summary": spec.summary, "needs": list(spec.needs), "true_epsilon": spec.true_epsilon}
        for spec in specs
    ]
