"""`jaxdp schema draft`: a schema to be filled in, from the header of a data file alone."""

from __future__ import annotations

import argparse
import shlex

from jaxdp.cli import options

EXAMPLE = """examples:
  jaxdp schema draft trial.csv --out trial.toml
  jaxdp schema draft answers.csv --kind binary --levels 0,1 --out answers.toml"""


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
        "has to be filled in from public knowledge before the schema is accepted.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    draft.add_argument(
        "data",
        metavar="DATA",
        help="CSV file with a header line (.gz too), Parquet, Arrow, Excel; folder or glob; a query",
    )
    draft.add_argument("--kind", help="kind of every column, where they are all alike, as coded answers are")
    draft.add_argument("--levels", type=options.names, metavar="A,B,C", help="public levels of every column")
    draft.add_argument("--bounds", type=options.names, metavar="LOW,HIGH", help="public limits of every column")
    draft.add_argument("--out", metavar="S.toml", help="file to write; it must not exist (default: print)")


def run(args: argparse.Namespace) -> int:
    from jaxdp.data.draft import draft

    text = draft(args.data, _every(args))
    for line in [line for line in text.splitlines() if line.startswith("# unit = ")]:
        unit = line.removeprefix("# ").partition("    #")[0]
        options.note(f"if a person may have several rows, the schema must say {unit}; jaxdp check looks for repeats.")
    if args.out is None:
        print(text, end="")
        return 0
    try:
        with open(args.out, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise options.UserError(f"{args.out} exists: give another name with --out.") from None
    task = "fill in every TODO from public knowledge, then" if '"TODO"' in text else "see whether the file fits it:"
    print(f"wrote {args.out}: {task} {shlex.join(['jaxdp', 'check', args.data, '--schema', args.out])}")
    return 0


def _every(args: argparse.Namespace) -> dict | None:
    """The keys of every column, as in a schema; None where nothing is said of all of them."""
    keys = {"kind": args.kind, "levels": args.levels, "bounds": args.bounds}
    told = {name: value for name, value in keys.items() if value is not None}
    if told and args.kind is None:
        raise options.UserError(f"--{next(iter(told))} goes with --kind: say what kind of column all of them are.")
    lists = {name: [_number(word) for word in told[name]] for name in ("levels", "bounds") if name in told}
    return {**told, **lists} or None


def _number(word: str) -> int | float | str:
    """A number where the word is one: levels 0,1 are numbers, no,yes are texts."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
