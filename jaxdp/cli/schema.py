"""`jaxdp schema draft`: a schema to be filled in, from the header of a data file alone, or with private bounds."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
from typing import TYPE_CHECKING

from jaxdp._base import arguments
from jaxdp.ask.calls import DraftOptions
from jaxdp.cli import asking, options

if TYPE_CHECKING:
    from jaxdp.ask.draft_schema import DraftedSchema

EXAMPLE = """examples:
  jaxdp schema draft trial.csv --out trial.toml
  jaxdp schema draft answers.csv --kind binary --levels 0,1 --out answers.toml
  jaxdp schema draft trial.csv --private --columns age,dose --epsilon 0.2 --ledger study.db --out trial.toml
  jaxdp schema draft trial.csv --private --columns age --levels-of clinic --epsilon 0.5 --delta 1e-6 \\
    --ledger study.db --out trial.toml"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "schema",
        help="draft a schema from the header of a data file",
        description="A schema says what is public about the columns of a table.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    draft = actions.add_parser(
        "draft",
        help="write a template with a TODO for everything that is public knowledge",
        description="Writes a TOML template from the names of the columns. No record is looked at. Every TODO "
        "has to be filled in from public knowledge before the schema is accepted. With --private, bounds of columns of "
        "numbers and levels of columns of texts are found in the records, with noise, and paid for.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    draft.add_argument(
        "data",
        metavar="DATA",
        help="CSV file with a header line (.gz too), Parquet, Arrow, Excel; folder or glob; a query",
    )
    draft.add_argument("--kind", help="kind of every column, where they are all alike, as coded answers are")
    draft.add_argument("--levels", type=arguments.names, metavar="A,B,C", help="public levels of every column")
    draft.add_argument("--bounds", type=arguments.names, metavar="LOW,HIGH", help="public limits of every column")
    draft.add_argument("--out", metavar="S.toml", help="file to write; it must not exist (default: print)")
    private = draft.add_argument_group("private bounds and levels")
    private.add_argument(
        "--private",
        action="store_true",
        help="find the bounds of --columns and the levels of --levels-of in the records, for --epsilon",
    )
    asking.add_keywords(private, DraftOptions, required=False)
    private.add_argument("--ledger", metavar="L.db", help="privacy ledger to charge before an answer is computed")
    private.add_argument("--decimal", choices=(".", ","), default=".", help="decimal mark of the numbers")
    private.add_argument(
        "--seed", type=arguments.seed, metavar="N", help="make the run a repeatable simulation, NOT PRIVATE"
    )


def run(args: argparse.Namespace) -> int:
    from jaxdp.data.draft import draft

    _require_writable(args.out)
    if args.private and args.levels and not args.kind:
        raise options.UserError("--levels are public ones, of every column: --levels-of names columns to find them of.")
    every = _every(args)
    if not args.private:
        _require_not_private(args)
    found = _private(args) if args.private else None
    text = (
        draft(args.data, every, unit=args.unit or "")
        if found is None
        else draft(args.data, every, found.sections(), args.unit or "", found.mark)
    )
    for line in [line for line in text.splitlines() if line.startswith("# unit = ")]:
        unit = line.removeprefix("# ").partition("    #")[0]
        options.note(f"if a person may have several rows, the schema must say {unit}; jaxdp check looks for repeats.")
    _write(text, args.out, found)
    if args.out is None:
        return 0
    open_ = any('"TODO"' in line and not line.startswith("#") for line in text.splitlines())
    task = "fill in every TODO from public knowledge, then" if open_ else "check the file against it:"
    print(f"wrote {args.out}: {task} {shlex.join(['jaxdp', 'check', args.data, '--schema', args.out])}")
    return 0


def _write(text: str, out: str | None, found: DraftedSchema | None) -> None:
    """Writes the draft to its file or to standard output. Errors: `UserError`, also with where else a paid one is."""
    try:
        if out is None:
            print(text, end="", flush=True)
            return
        with open(out, "x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                os.unlink(out)  # a part of it would stand in the way of the next draft
                raise
        return
    except BrokenPipeError:
        raise
    except FileExistsError:
        told = options.UserError(f"{out} exists: give another name with --out.")
    except OSError as error:
        told = options.UserError(f"{out or 'standard output'} cannot be written: {options.reason(error)}")
    if found is not None and found.mode == "release":
        from jaxdp import charge

        where = _shown_elsewhere(text, out)
        told.add_note(f"Bounds and levels were charged ({found.cost}). {charge.STANDS}; the draft is {where}.")
    raise told


def _shown_elsewhere(text: str, out: str | None) -> str:
    """Where a draft is printed that its file, or standard output, did not take."""
    for name in ("standard output", "standard error"):
        if out is None and name == "standard output":
            continue
        try:
            print(text, end="", flush=True, file=sys.stdout if name == "standard output" else sys.stderr)
        except OSError:
            continue
        return f"printed on {name}"
    return "lost, since nothing else can be written either"


def _require_writable(out: str | None) -> None:
    """Refuses a file that cannot be written, before anything is paid."""
    if out is None:
        return
    if os.path.exists(out):
        raise options.UserError(f"{out} exists: give another name with --out.")
    if not os.access(os.path.dirname(out) or ".", os.W_OK):
        raise options.UserError(f"{out} cannot be written: there is no such folder, or it is read-only.")


def _require_not_private(args: argparse.Namespace) -> None:
    """Refuses what only private bounds need."""
    for name in (*DraftOptions.__annotations__, "seed", "decimal"):
        if getattr(args, name, None) not in (None, "", (), 0.0, "."):
            flag = name.replace("_", "-")
            raise options.UserError(f"--{flag} goes with --private, which finds bounds and levels in the records.")


def _private(args: argparse.Namespace) -> DraftedSchema:
    """The columns whose bounds or levels were released."""
    from jaxdp._base.display import NOT_PRIVATE, listing
    from jaxdp.ask.draft_schema import DraftQuery
    from jaxdp.ask.reading import Reading, Table
    from jaxdp.ask.table_query import account_of
    from jaxdp.data import batches, draft
    from jaxdp.data.notation import PLAIN

    if not (args.columns or args.levels_of) or args.epsilon is None:
        raise options.UserError(
            "--private goes with --columns, the columns of numbers, or --levels-of, those of texts, and with --epsilon."
        )
    if args.ledger is None and args.seed is None:
        raise options.UserError(
            "--private goes with --ledger: bounds that were paid for without a record cannot be added to what later "
            "answers cost; create one with `jaxdp ledger create study.db --epsilon E`."
        )
    options.prefer_cpu(args)
    options.keep_programs(args)
    names, delimiter = draft.header_of(args.data)
    dates = dict(_date(text, names) for text in args.dates or ())
    for name in (*(args.columns or ()), *(args.levels_of or ()), *dates, *([args.unit] if args.unit else [])):
        if name not in names:
            raise options.UserError(f"{batches.called(args.data)} has no column {name!r}.")
    notation = dataclasses.replace(PLAIN, decimal=args.decimal)
    query = DraftQuery.of(notation, delimiter, **asking.given(args, DraftOptions) | {"dates": dates})
    ledger = options.open_ledger(args.ledger, args.seed, args.epsilon)
    table = Table(args.data, query.schema, Reading(**asking.ways(args)))
    found = query.ask(table, options.make_key(args.seed), account_of(ledger, table, query.short))
    left = "" if ledger is None else f"; {ledger.remaining} left in {ledger.path.name}"
    wanted = {"the bounds of": query.numeric, "the levels of": query.coded}
    told = " and ".join(f"{what} {listing(names)}" for what, names in wanted.items() if names)
    options.note(f"{told} cost {found.cost}{left}")
    for name, told in found.flags.items():
        options.note(f"{name}: {told}.")
    if found.mode == "simulation":
        options.note(NOT_PRIVATE)
    return found


def _date(text: str, names: list[str]) -> tuple[str, str]:
    """A column of dates and their format, of a text NAME or NAME=FORMAT."""
    from jaxdp.data.notation import ISO

    name, sign, form = (text, "", "") if text in names else text.partition("=")
    return name, form if sign else ISO


def _every(args: argparse.Namespace) -> dict | None:
    """The keys of every column, as in a schema; None where nothing is said of all of them."""
    keys = {"kind": args.kind, "levels": args.levels, "bounds": args.bounds}
    told = {name: value for name, value in keys.items() if value is not None}
    if told and args.kind is None:
        raise options.UserError(f"--{next(iter(told))} goes with --kind: say what kind of column all of them are.")
    lists: dict = {name: [_number(word) for word in told[name]] for name in ("levels", "bounds") if name in told}
    if told.get("levels", [""])[0].startswith("hashed") and len(lists["levels"]) == 1:  # no list
        lists["levels"] = lists["levels"][0]
    return {**told, **lists} or None


def _number(word: str) -> int | float | str:
    """A number where the word is one: levels 0,1 are numbers, no,yes are texts."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
