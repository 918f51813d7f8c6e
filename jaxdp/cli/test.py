"""`jaxdp test`: is X independent of Y (given Z)? One private answer about a CSV file."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from jaxdp.cli import options

SEES = ("linear", "monotone", "any")  # `jaxdp.spec.KINDS_SEEN`, without importing JAX
ADJUST = ("holm", "bh")  # `jaxdp.one_call.pair_answers.ADJUSTMENTS`, without importing JAX
EVERY = 10.0  # seconds between two lines about the pairs of --all-pairs, where there is no terminal
FILES = ("result.json", "picture.png", "report.html")
FILES_OF_PAIRS = ("pairs.csv", "result.json", "pairs.png", "report.html")
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
    add_method_options(parser)
    options.add_run(parser, "out/test")


def add_method_options(parser: argparse.ArgumentParser) -> None:
    """Public settings of single methods."""
    parser.add_argument(
        "--residual-scale",
        type=options.positive_numbers,
        metavar="S",
        help="public guess of the residual sd of X and Y (or two: SX,SY) where bounds are scaled to [-1, 1]",
    )
    parser.add_argument("--num-cells", type=options.count, metavar="K", help="public cells that Z is cut into")
    options.add_accept_coarse_cells(parser)
    parser.add_argument("--ridge", type=options.positive_number, metavar="R", help="ridge of kernel methods")
    parser.add_argument("--lengthscale", type=options.positive_number, metavar="L", help="kernel length on [-1, 1]")


def run(args: argparse.Namespace) -> int:
    _require_consistent(args)
    options.keep_programs()
    table = options.table(args)
    query = _query(args, table.schema)
    ledger = options.open_ledger(args.ledger, args.seed, args.epsilon)
    folder = options.result_folder(args, FILES_OF_PAIRS if args.all_pairs else FILES)
    account = options.account(ledger, args.data, folder, query.short)
    told = {"foretell": options.note} if args.all_pairs else {}
    count = len(query.asked) + 4 if args.all_pairs else 5
    with options.stages(count, EVERY if args.all_pairs else None) as begin:
        answer = query.ask(table, options.make_key(args.seed), account, begin=begin, **told)
        facts = options.for_the_page(args, ledger)
        content = (
            write_pairs(answer, folder, facts, begin)
            if args.all_pairs
            else write(answer, folder, facts, begin, args.schema)
        )
    screen = summary_of_pairs(answer, folder) if args.all_pairs else summary(content, folder) + options.pictures()
    options.tell(args, content, screen + options.left(ledger))
    return 0


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
    from jaxdp.one_call.pairs_query import PairsQuery
    from jaxdp.one_call.query import Query

    how = {
        "given": options.columns(schema, *args.given),
        "epsilon": args.epsilon,
        "method": args.method,
        "sees": args.sees,
        "simulated": args.seed is not None,
        "level": args.level,
        "residual_scale": _pair(args.residual_scale),
        "num_cells": args.num_cells,
        "ridge": args.ridge,
        "lengthscale": args.lengthscale,
        "fields": {"accept_coarse_cells": True} if args.accept_coarse_cells else {},
    }
    if args.all_pairs:
        columns = options.columns(schema, args.columns) if args.columns else None
        return PairsQuery.of(schema, columns=columns, adjust=args.adjust or ADJUST[0], delta=args.delta, **how)
    x, y = options.columns(schema, args.x), options.columns(schema, args.y)
    return Query.of(schema, x=x, y=y, margin=args.margin, **how)


def write(answer, folder: Path, facts: dict, begin, schema: str) -> dict:
    """Writes result.json, the picture and report.html; returns what result.json holds."""
    from jaxdp.one_call.answer import draw
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    begin("asking the planner")
    content = {**answer.content, **answer.missed(schema), **facts}
    written.put(folder, "result.json", options.write_json, content)
    begin("drawing")
    written.put_picture(folder, "picture.png", draw, answer)
    begin("writing the report")
    write_report(folder, "Private independence test", FILES)
    return content


def _told_cells(cells: list[dict]) -> str:
    """The cells in words: how many, and how wide."""

    def axis(cut: dict) -> str:
        if cut["levels"]:
            return f"{cut['column']} by its {cut['number']} levels"
        width = "" if cut["width"] is None else f", each {cut['width']:.3g} wide"
        return f"{cut['column']} (scaled to [-1, 1]) into {cut['number']} bins{width}"

    total = math.prod(cut["number"] for cut in cells)
    return f"{total} of Z, which cut {'; '.join(axis(cut) for cut in cells)}"


def _paragraphs(content: dict) -> list[str]:
    """What an answer rests on, a named paragraph each."""
    from jaxdp.one_call.answer import told_effect, told_margin
    from jaxdp.report.story import told_flags

    rule = content["level_rule"] or {"sentence": "", "flags": []}
    told = {
        "asked for": content.get("taken", ""),
        "power": content.get("power", ""),
        "effect": told_effect(content) if "effect" in content else "",
        "margin": told_margin(content),
        "cells": _told_cells(content["cells"]) if content.get("cells") else "",
        "given": content["conditioned_on"],
        "assumes": content["assumption"] or rule["sentence"],
        "level": rule["sentence"] if content["assumption"] else "",
        "flagged:": told_flags(rule["flags"]),
        "caution": " ".join(content["cautions"]),
        "records": content["unit"],
    }
    return [options.paragraph(name, text) for name, text in told.items() if text]


def summary(content: dict, folder: Path) -> str:
    """One screen for people."""
    from jaxdp._base import amounts, p_values
    from jaxdp.one_call.answer import built
    from jaxdp.one_call.ask import listing

    statistic = content["statistic"]
    if isinstance(statistic, float):
        shown = f"{statistic:.6g}"
    else:
        shown = ", ".join(f"{value:.4g}" for value in statistic.ravel()[:8]) + ", ..." * (statistic.size > 8)
    lines = [
        content["title"],
        options.paragraph("answer", content["answer"]),
        f"  p-value    {p_values.number(content['p_value'], 6)}",
        f"  statistic  {shown}",
        f"  method     {content['method']}{built(content['built'])}, n = {content['n']}",
        options.paragraph("sees", content["sees"] or "not said by the test"),
        f"  privacy    {amounts.cost(content, every=True)}, {content['relation']}, {content['mode']}",
        f"  files      {', '.join(str(folder / name) for name in FILES if (folder / name).exists())}",
    ]
    if content["public_columns"]:
        lines.insert(-1, f"  public     {listing(content['public_columns'])}: not protected, known to everyone")
    lines[-1:-1] = _paragraphs(content)
    return "\n".join([*lines, f"  {options.NOT_PRIVATE}"] if content["mode"] == "simulation" else lines)


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    if values is None:
        return None
    if len(values) > 2:
        raise options.UserError(f"--residual-scale takes one number or two, got {len(values)}.")
    return values[0], values[-1]


def write_pairs(found, folder: Path, facts: dict, begin) -> dict:
    """Writes pairs.csv, result.json and report.html; returns what result.json holds."""
    from jaxdp._base import csv_files
    from jaxdp.one_call.pair_answers import COLUMNS, draw
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    content = {**found.to_dict(), **facts}
    begin("writing the table")
    written.put(folder, "result.json", options.write_json, content)
    table = [[pair[name] for name in COLUMNS] for pair in found.pairs]
    written.put(folder, "pairs.csv", csv_files.write, COLUMNS, table)
    written.put_picture(folder, "pairs.png", draw, found)
    begin("writing the report")
    write_report(folder, content["title"], FILES_OF_PAIRS)
    return content


def summary_of_pairs(found, folder: Path) -> str:
    """One screen for people."""
    from jaxdp._base import amounts

    content = found.content
    indent = " " * 13
    lines = [
        content["title"],
        options.paragraph("answer", content["answer"]),
        *(f"{indent}{line}" for line in found.table()),
        options.paragraph("sees", content["sees"] or "not said by the tests"),
        f"  privacy    {amounts.cost(content, every=True)} for all pairs together, "
        f"{content['relation']}, {content['mode']}, n = {content['n']}",
    ]
    lines += _paragraphs(content)
    lines += [f"  {options.NOT_PRIVATE}"] if content["mode"] == "simulation" else []
    files = ", ".join(str(folder / name) for name in FILES_OF_PAIRS if (folder / name).exists())
    return "\n".join([*lines, f"  files      {files}"])
