"""`jaxdp test`: is X independent of Y (given Z)? One private answer about a CSV file."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import os
import platform
import textwrap
from pathlib import Path

from jaxdp.cli import options, reading

MIN_ROWS = 10
MOST_VALUES_WRITTEN = 100
FILES = ("result.json", "picture.png", "report.html")
EXAMPLE = "example: jaxdp test trial.csv --schema trial.toml --x dose --y response --given age,clinic --epsilon 1"


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "test",
        help="test whether X is independent of Y (given Z) in a CSV file",
        description="Tests whether X is independent of Y given Z, at a stated privacy cost.",
        epilog=EXAMPLE,
    )
    options.add_data(parser)
    options.add_reading(parser)
    parser.add_argument("--x", type=options.names, required=True, metavar="A", help="column(s) X, separated by commas")
    parser.add_argument("--y", type=options.names, required=True, metavar="B", help="column(s) Y")
    parser.add_argument("--given", type=options.names, default=[], metavar="C,D", help="columns Z to condition on")
    options.add_epsilon(parser)
    parser.add_argument("--method", metavar="M", help="name of the test (default: what fits the columns)")
    parser.add_argument("--level", type=options.probability, default=0.05, help="significance level (default 0.05)")
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
    from jaxdp import catalogue
    from jaxdp.data.dataset import Domain
    from jaxdp.data.schema import Schema
    from jaxdp.report.figures import require_matplotlib
    from jaxdp.spec import Options

    require_matplotlib()
    schema = Schema.load(args.schema)
    rules = [[schema.rule(name) for name in names] for names in (args.x, args.y, args.given)]
    domain = Domain(*(tuple(column for rule in part for column in rule.code_column()) for part in rules))
    method = catalogue.find(args.method) if args.method else catalogue.default(domain)
    if args.seed is None and not method.spec.private:
        raise options.UserError(f"{method.name} is not private and releases nothing: give --seed to simulate.")
    settings = Options(
        level=args.level,
        residual_scale=_pair(args.residual_scale),
        num_cells=args.num_cells,
        ridge=args.ridge,
        lengthscale=args.lengthscale,
        fields={"accept_coarse_cells": True} if args.accept_coarse_cells else {},
    )
    ledger = options.open_ledger(args.ledger, args.seed, args.epsilon)
    folder = options.output_folder(args.out, FILES)
    account = options.account(ledger, args.data, folder, _asked(args))
    question = functools.partial(schema.read, x=args.x, y=args.y, given=args.given, codes=method.spec.columns.coded)
    with options.stages(4) as begin:
        begin("reading the data")
        key = options.make_key(args.seed)
        content = reading.ask(
            lambda data, account: answer(data, method, settings, folder, args, key, account, begin),
            question,
            reading.Source.of(args, schema, [*args.x, *args.y, *args.given]),
            account,
            public=[name for role in getattr(method.cls, "public_columns", ()) for name in getattr(args, role)],
        )
    print(summary(content, folder) + options.left(ledger))
    return 0


def _asked(args: argparse.Namespace) -> str:
    """The question in one line, for the ledger."""
    given = f" | {', '.join(args.given)}" if args.given else ""
    return f"{', '.join(args.x)} ~ {', '.join(args.y)}{given}"


def answer(data, method, settings, folder: Path, args: argparse.Namespace, key, account, begin) -> dict:
    """Runs the test and writes result.json, the picture and report.html; returns what result.json holds."""
    import jax

    import jaxdp
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    _require_size(method, data.x.shape[0])
    with jax.enable_x64(True):  # a release computes in float64 anyway; one simulation may as well
        settings = dataclasses.replace(settings, num_records=data.x.shape[0])
        test = method.within(args.epsilon, data, settings)
        begin(f"testing {data.x.shape[0]} rows")
        result = jaxdp.run(test, key, data, ledger=account)
        content = describe(result, method, data, args, test)
        written.put(folder, "result.json", options.write_json, content)
        begin("drawing")
        written.put(folder, "picture.png", draw, test, result, content)
    begin("writing the report")
    write_report(folder, "Private independence test", FILES)
    return content


def describe(result, method, data, args: argparse.Namespace, test) -> dict:
    """What result.json holds: released and public values only."""
    import jax
    import numpy as np

    from jaxdp import catalogue

    cost, p_value = result.cost, float(result.p_value)
    statistic = np.asarray(result.statistic, float)
    found = p_value <= args.level
    question = f"{'Is' if len(args.x) == 1 else 'Are'} {_listing(args.x)} independent of {_listing(args.y)}"
    content = {
        "title": f"{question}{' given ' + _listing(args.given) if args.given else ''}?",
        "answer": _verdict(found, p_value, args.level),
        "method": method.name,
        "p_value": p_value,
        "statistic": float(statistic) if statistic.size == 1 else statistic,
        "epsilon": _epsilon(float(cost.epsilon), args.epsilon),
        "delta": float(cost.delta),
        "relation": cost.relation.value,
        "mode": result.mode,
        "n": data.x.shape[0],
        "level": args.level,
        "dependence_found": bool(found),
        "x": args.x,
        "y": args.y,
        "given": args.given,
        "public_columns": [name for role in getattr(test, "public_columns", ()) for name in getattr(args, role)],
        "built": catalogue.described(test),
        "cells": _cells(test, data, result.release),
        "assumption": method.spec.assumption if _has_continuous(data.domain.z) else "",
        "level_rule": _level_rule(test, data),
        "released": released_values(result.release),
        "versions": {"jaxdp": jaxdp_version(), "jax": jax.__version__, "python": platform.python_version()},
    }
    return content if args.seed is None else {**content, "seed": args.seed}


def built(fields: dict) -> str:
    """The settings that differ from the test's defaults, in brackets."""
    told = ", ".join(f"{name} {value}" for name, value in fields.items())
    return f" ({told})" if told else ""


def _cells(test, data, release) -> list[dict]:
    """How each column of Z was cut: bins, and their width on the column's scale (None for levels)."""
    if not hasattr(test, "axis_bins"):
        return []
    found = test.axis_bins(data, release)
    return [{"column": axis.name, "number": axis.number, "levels": axis.levels, "width": axis.width} for axis in found]


def _level_rule(test, data) -> dict | None:
    """What is publicly known about the level of this run, where the test says so."""
    from jaxdp.core import public_shapes

    if not hasattr(test, "level_rule"):
        return None
    rule = test.level_rule(public_shapes(data))
    numbers = ("jumps", "deviation", "curvature", "side", "law_error")
    known = {name: getattr(rule, name) for name in numbers if math.isfinite(getattr(rule, name))}
    return {"verdict": rule.verdict, "flags": list(rule.flags), "sentence": rule.sentence, **known}


def _told_cells(cells: list[dict]) -> str:
    """The cells in words: how many, and how wide."""

    def axis(cut: dict) -> str:
        if cut["levels"]:
            return f"{cut['column']} by its {cut['number']} levels"
        width = "" if cut["width"] is None else f", each {cut['width']:.3g} wide"
        return f"{cut['column']} (scaled to [-1, 1]) into {cut['number']} bins{width}"

    total = math.prod(cut["number"] for cut in cells)
    return f"{total} of Z, which cut {'; '.join(axis(cut) for cut in cells)}"


def _verdict(found: bool, p_value: float, level: float) -> str:
    outcome = "Dependence found" if found else "No dependence found"
    return f"{outcome} at level {level:g} (p = {p_value:.3g})."


def released_values(release) -> list[dict]:
    """The stages of a release: cost and noisy values; arrays of more than 100 numbers give their shape only."""
    import jax
    import numpy as np

    from jaxdp.independence.null_curve import stage_epsilons

    def plain(value):
        value = np.asarray(value)
        return value.tolist() if value.size <= MOST_VALUES_WRITTEN else {"shape": list(value.shape)}

    return [
        {"epsilon": epsilon, "value": jax.tree.map(plain, stage.value)}
        for epsilon, stage in zip(stage_epsilons(release), [*release.earlier, release], strict=True)
    ]


def draw(path: Path, test, result, content: dict) -> None:
    """The released statistic against its null law, or the p-value on its scale."""
    from jaxdp.independence.null_curve import null_curve
    from jaxdp.report import figures

    shared = {
        "p_value": content["p_value"],
        "level": content["level"],
        "title": content["title"],
        "simulation": content["mode"] == "simulation",
    }
    curve = null_curve(test, result)
    if curve is None:
        figures.p_value_scale(path, **shared)
    else:
        figures.null_law(path, curve.statistic, curve.tail, label=curve.label, **shared)


def summary(content: dict, folder: Path) -> str:
    """One screen for people."""
    statistic = content["statistic"]
    if isinstance(statistic, float):
        shown = f"{statistic:.6g}"
    else:
        shown = ", ".join(f"{value:.4g}" for value in statistic.ravel()[:8]) + ", ..." * (statistic.size > 8)
    lines = [
        content["title"],
        f"  answer     {content['answer']}",
        f"  p-value    {content['p_value']:.6g}",
        f"  statistic  {shown}",
        f"  method     {content['method']}{built(content['built'])}, n = {content['n']}",
        f"  privacy    epsilon = {content['epsilon']:g}, delta = {content['delta']:g}, {content['relation']}, "
        f"{content['mode']}",
        f"  files      {folder / 'result.json'}, {folder / 'picture.png'}, {folder / 'report.html'}",
    ]
    if content["public_columns"]:
        lines.insert(-1, f"  public     {_listing(content['public_columns'])}: not protected, known to everyone")
    rule = content["level_rule"] or {"sentence": "", "flags": []}
    told = {
        "cells": _told_cells(content["cells"]) if content["cells"] else "",
        "assumes": content["assumption"] or rule["sentence"],
        "level": rule["sentence"] if content["assumption"] else "",
        "flagged": ", ".join(rule["flags"]),
    }
    for name, text in told.items():
        if text:
            indent = f"  {name:11s}"
            lines.insert(-1, textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=" " * len(indent)))
    return "\n".join([*lines, f"  {options.NOT_PRIVATE}"] if content["mode"] == "simulation" else lines)


def _epsilon(cost: float, asked: float) -> float:
    """The cost; the budget asked for where the cost stays below it by rounding only."""
    return asked if asked * (1.0 - 1e-12) <= cost <= asked else cost


def _has_continuous(columns) -> bool:
    return any(column.levels == 0 for column in columns)


def jaxdp_version() -> str:
    """Version of the installed distribution."""
    from importlib import metadata

    try:
        return metadata.version("jaxdp-dependence")
    except metadata.PackageNotFoundError:
        return "not installed"


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    if values is None:
        return None
    if len(values) > 2:
        raise options.UserError(f"--residual-scale takes one number or two, got {len(values)}.")
    return values[0], values[-1]


def _require_size(method, num_rows: int) -> None:
    if num_rows < MIN_ROWS:
        raise options.UserError(f"the data have {num_rows} rows; a private test needs at least {MIN_ROWS}.")
    needed, installed = method.memory(num_rows), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > installed:
        raise options.UserError(
            f"{method.name} needs {needed / 1e9:.0f} GB for {num_rows} rows and this machine has "
            f"{installed / 1e9:.0f} GB: use partition-gcm, whose memory grows with the rows only."
        )


def _listing(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
