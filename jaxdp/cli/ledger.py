"""`jaxdp ledger create|show|verify|export`: a privacy budget on disk."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxdp._base import arguments
from jaxdp.cli import options

# Where no delta was granted, composed totals are shown at this one.
SHOWN_DELTA = 1e-6
MAX_ROWS = 20
FILES = ("ledger.csv", "ledger.json", "dp_event.json", "waterfall.png", "report.html")
REGISTRY = "registry.yaml"


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "ledger",
        help="create, show, verify or export a privacy budget",
        description="A privacy budget on disk: releases are charged to it before they are computed.",
        epilog="example: jaxdp ledger create study.db --epsilon 1 && jaxdp ledger show study.db",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser(
        "create", help="make a new ledger", epilog="example: jaxdp ledger create study.db --epsilon 1 --delta 1e-6"
    )
    create.add_argument("path", metavar="L.db", help="file to make; must not exist")
    create.add_argument("--epsilon", type=arguments.positive_number, metavar="E", help="total pure epsilon")
    create.add_argument("--delta", type=arguments.probability, default=0.0, metavar="D", help="total delta (default 0)")
    create.add_argument("--rho", type=arguments.positive_number, metavar="R", help="total rho of zCDP (Gaussian noise)")
    create.add_argument(
        "--relation",
        choices=("replace_one", "add_or_remove_one", "replace_attribute"),
        default="replace_one",
        help="neighbouring relation of every charge (default replace_one)",
    )
    show = actions.add_parser("show", help="print the charges", epilog="example: jaxdp ledger show study.db --out out")
    verify = actions.add_parser("verify", help="check that everything adds up; 0 if so, else 2")
    export = actions.add_parser(
        "export",
        help="write CSV, JSON, a dp-accounting event and a picture",
        epilog="example: jaxdp ledger export study.db --registry --out out/ledger",
    )
    for action in (show, verify, export):
        action.add_argument("path", metavar="L.db", help="ledger file")
    for action in (create, show, verify, export):
        options.add_json(action)
    verify.add_argument("--seal", metavar="HEX", help="a seal that an earlier verify printed; finds a rewritten file")
    show.add_argument("--out", metavar="DIR", help="also write what export writes")
    show.set_defaults(registry=False)
    options.add_out(export, "out/ledger")
    export.add_argument(
        "--registry",
        action="store_true",
        help=f"also write {REGISTRY}, a draft for the registry of deployments (registry.opendp.org), and list what "
        "the owner of the data must write in it",
    )


def run(args: argparse.Namespace) -> int:
    from jaxdp.accounting import privacy_unit, registry
    from jaxdp.accounting.ledger import Ledger
    from jaxdp.report import written

    if args.action == "create":
        ledger = Ledger.create(args.path, epsilon=args.epsilon, delta=args.delta, rho=args.rho, relation=args.relation)
        options.tell(args, content(ledger), f"created {args.path}: {ledger.total}, relation {ledger.relation}")
        return 0
    ledger = Ledger.open(args.path)
    if args.action == "verify":
        ledger.verify(args.seal)
        screen = (
            f"{args.path}: {len(ledger.rows())} charges add up, {ledger.spent} of {ledger.total}\n"
            f"seal {ledger.seal}: note it elsewhere and give it to a later verify --seal"
        )
        options.tell(args, content(ledger) | {"seal": ledger.seal}, screen)
        return 0
    notes = [*privacy_unit.mixed(ledger.rows()), *composed(ledger)]
    if args.action == "show":
        options.tell(args, content(ledger) | {"notes": notes}, summary(ledger, notes))
        ledger.verify()
    if args.out is not None:
        fields = registry.owners(registry.known(ledger)) if args.registry else []
        folder = options.output_folder(args.out, (*FILES, *([REGISTRY] if args.registry else [])))
        export(ledger, folder, notes)
        if args.registry:
            written.put(folder, REGISTRY, ledger.to_registry)
        if args.action == "export":
            told = content(ledger) | {"results": str(folder)}
            screen = f"results in {folder}"
            if args.registry:
                told["for_the_owner"] = dict(fields)
                screen += "\n" + for_the_owner(folder / REGISTRY, fields)
            options.tell(args, told, screen)
        elif not args.json:
            print(f"results in {folder}")
    return 0


def for_the_owner(path: Path, fields: list[tuple[str, str]]) -> str:
    """What the draft of an entry lacks, one line a field."""
    lines = [f"{path} is a draft. The ledger does not know, so that the owner of the data must write:"]
    return "\n".join([*lines, *(f"  {name.removeprefix('deployment.')}: {words}" for name, words in fields)])


def content(ledger) -> dict[str, Any]:
    """What ledger.json holds: the relation, the amounts, every charge."""
    import dataclasses

    amounts = {name: dataclasses.asdict(getattr(ledger, name)) for name in ("total", "spent", "remaining")}
    return {"relation": ledger.relation, **amounts, "charges": [dataclasses.asdict(row) for row in ledger.rows()]}


def summary(ledger, notes: list[str]) -> str:
    """One screen: totals, the latest charges, composed totals."""
    rows = ledger.rows()
    lines = [
        f"{ledger.path.name} ({ledger.relation})",
        f"  granted    {ledger.total}",
        f"  spent      {ledger.spent}",
        f"  remaining  {ledger.remaining}",
    ]
    if rows:
        header = (
            f"{'#':>5}  {'time (UTC)':19}  {'method':24}  {'epsilon':>10}  {'delta':>8}  {'rho':>8}  {'cumulative':>10}"
        )
        lines += ["", header]
    if len(rows) > MAX_ROWS:
        lines.append(f"  ... {len(rows) - MAX_ROWS} earlier charges: jaxdp ledger export")
    lines += [line for row in rows[-MAX_ROWS:] for line in _lines(row)]
    return "\n".join([*lines, "", *notes]).rstrip()


def _lines(row) -> list[str]:
    """A charge, and under it what was asked where that is known."""
    asked = [row.columns, f"of {row.source}" if row.source else "", f"-> {row.result}" if row.result else ""]
    shown = " ".join(part for part in asked if part)
    return [_line(row), *([f"{'':7}{shown}"] if shown else [])]


def _line(row) -> str:
    from jaxdp._base import amounts

    what = f"{row.method} {row.note}".strip()
    return (
        f"{row.number:>5}  {row.time[:19].replace('T', ' ')}  {what[:24]:24}  {amounts.spent(row.epsilon):>10}  "
        f"{amounts.spent(row.delta, 3):>8}  {amounts.spent(row.rho, 4):>8}  "
        f"{amounts.spent(row.cumulative_rho if row.rho else row.cumulative_epsilon):>10}"
    )


def composed(ledger) -> list[str]:
    """What the charges cost together: the sums that always hold, and what a list fixed in advance would cost."""
    from jaxdp._base import amounts
    from jaxdp.accounting import compose
    from jaxdp.core import Cost

    spent = ledger.spent
    delta = ledger.total.delta or SHOWN_DELTA
    costs = [
        Cost(epsilon=row.epsilon if row.epsilon or not row.rho else float("inf"), rho=row.rho or float("inf"))
        for row in ledger.rows()
    ]
    if not costs or spent.delta >= delta:
        return []
    total = compose(costs, delta=delta - spent.delta)
    claimed = any(row.epsilon and row.delta for row in ledger.rows())
    by_rho = "a charge with a delta counts by its epsilon, also of normal noise; a ledger of --rho alone counts its rho"
    return [
        f"sums, true for charges chosen one after the other: {spent}",
        f"had the list of charges been fixed in advance: epsilon={amounts.spent(total.epsilon)} at "
        f"delta={amounts.spent(delta)}",
        *([by_rho] if claimed else []),
    ]


def export(ledger, folder: Path, notes: list[str]) -> None:
    """Writes ledger.csv, ledger.json, dp_event.json, waterfall.png and report.html."""
    from jaxdp.accounting import convert
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    written.put(folder, "ledger.csv", ledger.to_csv)
    written.put_json(folder, "ledger.json", content(ledger))
    written.put_json(folder, "dp_event.json", convert.event_fields(ledger.to_dp_event()))
    written.put_picture(folder, "waterfall.png", draw, ledger, notes)
    write_report(folder, f"Privacy ledger {ledger.path.name}", ("waterfall.png", "ledger.csv"))


def draw(path: Path, ledger, notes: list[str]) -> Path:
    """The charges as a waterfall."""
    from jaxdp.report.waterfall import waterfall

    rows, total = ledger.rows(), ledger.total
    amounts = {
        name: ([getattr(row, name) for row in rows], getattr(total, name))
        for name in ("epsilon", "rho")
        if getattr(total, name) is not None
    }
    labels = [f"{row.number} {row.method} {row.note}".strip()[:32] for row in rows]
    return waterfall(path, labels, amounts, title=f"Privacy ledger {ledger.path.name}", notes=notes)
