"""`jaxdp test`: is X independent of Y (given Z)? One private answer about a CSV file."""

from __future__ import annotations

import argparse

from jaxdp.cli import options

SEES = ("linear", "monotone", "any")  # `jaxdp.spec.KINDS_OF_ALTERNATIVES`, without importing JAX
ADJUST = ("holm", "bh")  # `jaxdp.ask.pair_answers.ADJUSTMENTS`, without importing JAX
EXAMPLE = """examples:
  jaxdp test trial.csv --schema trial.toml --x dose --y response --given age,clinic --epsilon 1
  jaxdp test trial.csv --schema trial.toml --all-pairs --columns dose,response,age --adjust bh --epsilon 2"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "test",
        help="test whether X is independent of Y (given Z) in a CSV file",
        description="Tests whether X is independent of Y given Z, or every pair of columns, at a stated privacy cost.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_data(parser)
    options.add_reading(parser)
    parser.add_argument("--x", type=options.names, metavar="A", help="column(s) X, separated by commas")
    parser.add_argument("--y", type=options.names, metavar="B", help="column(s) Y")
    parser.add_argument("--all-pairs", action="store_true", help="every pair of columns, under one total epsilon")
    parser.add_argument("--columns", type=options.names, metavar="A,B,C", help="columns of --all-pairs (default: all)")
    parser.add_argument(
        "--adjust",
        choices=ADJUST,
        help="with --all-pairs: how p-values are adjusted for the number of pairs, holm (family-wise error, the "
        "default) or bh (false discovery rate)",
    )
    options.add_given(parser, "columns Z to condition on; may be repeated")
    options.add_epsilon(parser)
    parser.add_argument(
        "--delta",
        type=options.probability,
        default=0.0,
        metavar="D",
        help="with --all-pairs: (epsilon, D)-DP where that has less noise (default: pure epsilon)",
    )
    parser.add_argument(
        "--method",
        metavar="M",
        help="name of the test, or of a classical one that it answers for (default: what fits the columns)",
    )
    parser.add_argument(
        "--sees",
        choices=SEES,
        metavar="KIND",
        help="kind of dependence that the test must be built to see: linear, monotone or any",
    )
    parser.add_argument("--level", type=options.probability, default=0.05, help="significance level (default 0.05)")
    parser.add_argument(
        "--margin",
        type=options.positive_number,
        metavar="M",
        help="is the effect surely less than M in size, in its own units (equivalence)? At no further cost",
    )
    parser.add_argument(
        "--set",
        type=options.setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a public setting of the test, such as num_cells=8, residual_scale=0.3,0.5 or num_null=9999: any field of "
        "its class (jaxdp methods M lists them); may be repeated",
    )
    options.add_accept_coarse_cells(parser)
    options.add_run(parser, "out/test")


def run(args: argparse.Namespace) -> int:
    from jaxdp.cli import asking

    _require_consistent(args)
    options.require_known(args)
    options.keep_programs()
    table = options.table(args)
    return asking.ask(args, table, _query(args, table.schema))


def _require_consistent(args: argparse.Namespace) -> None:
    """Raises `UserError` for options that exclude each other."""
    if args.all_pairs and (args.x or args.y):
        raise options.UserError("give --x and --y, or --all-pairs, not both.")
    if not args.all_pairs and not (args.x and args.y):
        raise options.UserError("give --x A and --y B, or --all-pairs.")
    if args.all_pairs and args.margin is not None:
        raise options.UserError("--margin goes with --x and --y: it is about one effect.")
    for name in ("columns", "adjust", "delta"):
        if getattr(args, name) and not args.all_pairs:
            raise options.UserError(f"--{name} goes with --all-pairs.")


def _query(args: argparse.Namespace, schema):
    """The query about X and Y, or about all pairs."""
    from jaxdp.ask.independence import Query
    from jaxdp.ask.pairs import PairsQuery

    how = {
        "given": options.columns(schema, *args.given),
        "epsilon": args.epsilon,
        "method": args.method,
        "sees": args.sees,
        "simulated": args.seed is not None,
        "level": args.level,
        "fields": dict(args.set) | ({"accept_coarse_cells": True} if args.accept_coarse_cells else {}),
    }
    if args.all_pairs:
        columns = options.columns(schema, args.columns) if args.columns else None
        return PairsQuery.of(schema, columns=columns, adjust=args.adjust or ADJUST[0], delta=args.delta, **how)
    x, y = options.columns(schema, args.x), options.columns(schema, args.y)
    return Query.of(schema, x=x, y=y, margin=args.margin, **how)
