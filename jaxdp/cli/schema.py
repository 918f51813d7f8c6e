"""`jaxdp schema draft`: a schema to be filled in, from the header of a data file alone."""

from __future__ import annotations

import argparse

from jaxdp.cli import options

EXAMPLE = "example: jaxdp schema draft trial.csv --out trial.toml"


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "schema",
        help="draft a schema from the header of a data file",
        description="A schema says what is public about the columns of a table.",
        epilog=EXAMPLE,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    draft = actions.add_parser(
        "draft",
        help="write a template with a TODO for everything that is public knowledge",
        description="Writes a TOML template from the names of the columns. No record is looked at. Every TODO "
        "has to be filled in from public knowledge before the schema is accepted.",
        epilog=EXAMPLE,
    )
    draft.add_argument("data", metavar="DATA", help="CSV file with a header line (.gz too), Parquet, Arrow, Excel")
    draft.add_argument("--out", metavar="S.toml", help="file to write; it must not exist (default: print)")


def run(args: argparse.Namespace) -> int:
    from jaxdp.data.draft import draft

    text = draft(args.data)
    if args.out is None:
        print(text, end="")
        return 0
    try:
        with open(args.out, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise options.UserError(f"{args.out} exists: give another name with --out.") from None
    print(
        f"wrote {args.out}: fill in every TODO from public knowledge, then jaxdp check {args.data} --schema {args.out}"
    )
    return 0
