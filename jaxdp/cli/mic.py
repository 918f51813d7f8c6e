"""`jaxdp mic`: how strongly are two columns related, or all pairs of columns? Private MIC of a CSV file."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from jaxdp import _csv
from jaxdp.cli import options, reading

MIN_ROWS = 10
TOP_PAIRS = 20
MOST_LABELS = 40
FILES_OF_ONE = ("picture.png", "result.json", "report.html")
FILES_OF_ALL = ("heatmap.png", "result.json", "matrix.csv", "top_pairs.csv", "report.html")
EXAMPLE = """examples:
  jaxdp mic trial.csv --schema trial.toml --x dose --y response --epsilon 1 --out out/mic
  jaxdp mic trial.csv --schema trial.toml --all-pairs --epsilon 5 --delta 1e-6 --out out/pairs"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "mic",
        help="maximal information coefficient of two columns, or of all pairs",
        description="Releases maximal information coefficients (MICr, 0 = unrelated, 1 = one determines the other).",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_data(parser)
    options.add_reading(parser)
    parser.add_argument("--x", metavar="A", help="first column")
    parser.add_argument("--y", metavar="B", help="second column")
    parser.add_argument("--all-pairs", action="store_true", help="every pair of columns, under one budget")
    parser.add_argument("--columns", type=options.names, metavar="A,B,C", help="columns of --all-pairs (default: all)")
    options.add_epsilon(parser)
    parser.add_argument(
        "--delta",
        type=options.probability,
        metavar="D",
        help="with --all-pairs: Gaussian noise under (epsilon, D)-DP, far less noise for many pairs",
    )
    parser.add_argument("--cells", type=options.positive_number, metavar="B", help="grid cells allowed, >= 4")
    parser.add_argument(
        "--range-share",
        type=options.probability,
        metavar="S",
        help="with --x and --y: share of the budget for private ranges, for heavy tails (0.3 is good)",
    )
    options.add_run(parser, "out/mic")


def run(args: argparse.Namespace) -> int:
    from jaxdp.data.schema import Schema

    _require_consistent(args)
    schema = Schema.load(args.schema)
    names = (args.columns or list(schema.names)) if args.all_pairs else [args.x, args.y]
    if len(names) < 2:
        raise options.UserError(f"--all-pairs needs at least two columns, got {len(names)}.")
    for name in names:
        schema.rule(name)
    ledger = options.open_ledger(args.ledger, args.seed, args.epsilon)
    folder = options.output_folder(args.out, FILES_OF_ALL if args.all_pairs else FILES_OF_ONE)
    answer, key = _all_pairs if args.all_pairs else _one_pair, options.make_key(args.seed)

    def measure(data, account):
        table, columns = data
        if table.shape[0] < MIN_ROWS:
            raise options.UserError(f"the data have {table.shape[0]} rows; `mic` needs at least {MIN_ROWS}.")
        return answer(args, names, table, columns, key, account, folder)

    shown = reading.ask(
        measure,
        lambda source, **how: schema.read_table(source, names, **how),
        reading.Source.of(args, schema, names),
        options.account(ledger, args.data, folder, ("all pairs of " if args.all_pairs else "") + ", ".join(names)),
    )
    print(shown + options.left(ledger))
    return 0


def _require_consistent(args) -> None:
    if args.all_pairs and (args.x or args.y):
        raise options.UserError("give --x and --y, or --all-pairs, not both.")
    if not args.all_pairs and not (args.x and args.y):
        raise options.UserError("give --x A and --y B, or --all-pairs.")
    if not args.all_pairs and args.x == args.y:
        raise options.UserError(f"--x and --y both name {args.x!r}: name two columns.")
    if args.cells and args.cells < 4:
        raise options.UserError(f"--cells must be at least 4, got {args.cells:g}.")
    if args.delta and not args.all_pairs:
        raise options.UserError("--delta goes with --all-pairs.")
    if args.range_share and args.all_pairs:
        raise options.UserError("--range-share goes with --x and --y.")
    if args.columns and not args.all_pairs:
        raise options.UserError("--columns goes with --all-pairs.")


def _one_pair(args, names, table, columns, key, account, folder: Path) -> str:
    """Releases one coefficient with its p-value; writes result.json, picture.png and report.html."""
    import jax

    import jaxdp
    from jaxdp.independence.marginal.mic_common import column_bounds
    from jaxdp.report import written
    from jaxdp.report.figures import p_value_scale, require_matplotlib
    from jaxdp.report.html import write_report

    require_matplotlib()
    test = jaxdp.MICrLaplace(
        epsilon=args.epsilon,
        bounds=tuple(column_bounds(column) for column in columns),
        max_cells=args.cells,
        range_share=args.range_share or 0.0,
    )
    with jax.enable_x64(True):
        data = jaxdp.Data(table[:, 0], table[:, 1])
        result = jaxdp.run(test, key, data, ledger=account)
    value, p_value = float(result.statistic), float(result.p_value)
    content = _common(args, table.shape[0], result.cost, result.mode, args.epsilon, 0.0) | {
        "title": f"How strongly are {names[0]} and {names[1]} related?",
        "answer": f"MIC = {value:.3f} (0 = unrelated, 1 = one determines the other), p = {p_value:.3g}",
        "method": result.method,
        "pairs": [{"x": names[0], "y": names[1], "mic": value}],
        "p_value": p_value,
        "noise_sd": _noise_sd(result.release.sensitivity, args.epsilon * (1.0 - (args.range_share or 0.0))),
    }
    written.put(folder, "result.json", options.write_json, content)
    shared = {"p_value": p_value, "level": 0.05, "title": content["title"], "simulation": result.mode == "simulation"}
    written.put(folder, "picture.png", p_value_scale, **shared)
    write_report(folder, "Private maximal information coefficient", FILES_OF_ONE)
    return _screen(content, folder)


def _noise_sd(sensitivity, epsilon: float) -> float:
    return math.sqrt(2.0) * float(sensitivity.bound) / epsilon


def _all_pairs(args, names, table, columns, key, account, folder: Path) -> str:
    """Releases every pair; writes result.json, matrix.csv, top_pairs.csv, heatmap.png and report.html."""
    import jax
    import numpy as np

    import jaxdp
    from jaxdp.core import Cost, cost_of, method_of
    from jaxdp.independence.marginal import mic_common, mic_laplace
    from jaxdp.independence.marginal.mic_pairs import noise_scale
    from jaxdp.report import figures, written
    from jaxdp.report.html import write_report
    from jaxdp.statistics.mic_pairs import all_pairs

    budget: dict[str, Any] = {"epsilon": args.epsilon}
    if args.delta:
        budget = {"mechanism": jaxdp.Gaussian(rho=concentrated(args.epsilon, args.delta))}
    test = jaxdp.MICrPairs(
        **budget,
        bounds=[mic_common.column_bounds(column) for column in columns],
        max_cells=args.cells,
        progress=sys.stderr.isatty(),
    )
    rows, pairs = table.shape[0], all_pairs(len(names))
    figures.require_matplotlib()
    with jax.enable_x64(True):
        test = test.resolve(jax.ShapeDtypeStruct(table.shape, table.dtype))
        cost = Cost(epsilon=args.epsilon, delta=args.delta) if args.delta else cost_of(test, table)
        if account is not None:
            account.charge(method_of(test), cost, key)
        released = jaxdp.release(test, key, table)
        sd = noise_scale(test, rows)
    null = mic_common.null_table(rows, test.cells_allowed(rows), test.c, test.grid, "range", 199)
    values = np.asarray(mic_laplace.corrected(np.asarray(released.value), null), float)
    matrix = np.eye(len(names))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = values
    found = [{"x": names[i], "y": names[j], "mic": float(v)} for (i, j), v in zip(pairs, values, strict=True)]
    found.sort(key=lambda pair: -pair["mic"])
    content = _common(args, rows, cost, released.mode, args.epsilon, args.delta or 0.0) | {
        "title": f"All {len(found)} pairs of {len(names)} columns",
        "answer": ", ".join(f"{p['x']} ~ {p['y']} {p['mic']:.2f}" for p in found[:3]),
        "method": method_of(test),
        "pairs": found,
        "noise_sd": sd,
    }
    written.put(folder, "result.json", options.write_json, content)
    write_tables(folder, names, matrix, found)
    written.put(folder, "heatmap.png", _heat_map, names, matrix, content, released.mode == "simulation")
    write_report(folder, "Private maximal information coefficients", FILES_OF_ALL)
    return _screen(content, folder)


def write_tables(folder: Path, names, matrix, found) -> None:
    """matrix.csv, all coefficients (d, d), and top_pairs.csv, the largest of `found`."""
    from jaxdp.report import written

    square = [[name, *row] for name, row in zip(names, matrix.round(6).tolist(), strict=True)]
    written.put(folder, "matrix.csv", _csv.write, ["", *names], square)
    top = [[pair["x"], pair["y"], round(pair["mic"], 6)] for pair in found[:TOP_PAIRS]]
    written.put(folder, "top_pairs.csv", _csv.write, ["x", "y", "mic"], top)


def concentrated(epsilon: float, delta: float) -> float:
    """The largest rho with rho + 2 sqrt(rho ln(1/delta)) <= epsilon (Bun and Steinke 2016, Prop. 1.3)."""
    tail = math.log(1.0 / delta)
    return (epsilon / (math.sqrt(tail + epsilon) + math.sqrt(tail))) ** 2 * (1.0 - 1e-12)


def _common(args, rows: int, cost, mode: str, epsilon: float, delta: float) -> dict:
    content = {"epsilon": epsilon, "delta": delta, "relation": cost.relation.value, "mode": mode, "n": rows}
    return content | ({} if args.seed is None else {"seed": args.seed})


def _heat_map(path: Path, names, matrix, content: dict, simulation: bool) -> None:
    from jaxdp.report import figures

    figure, axes = figures.canvas(6.4, 5.6)
    image = axes.imshow(matrix, vmin=0.0, vmax=1.0, cmap="viridis")
    figure.colorbar(image, ax=axes, label="private MIC")
    if len(names) <= MOST_LABELS:
        labels = [figures.plain(name) for name in names]
        axes.set_xticks(range(len(names)), labels, rotation=90)
        axes.set_yticks(range(len(names)), labels)
    axes.set_title(figures.plain(content["title"]))
    figures.save(figure, path, simulation)


def _screen(content: dict, folder: Path) -> str:
    """One screen for people."""
    lines = [
        content["title"],
        f"  answer     {content['answer']}",
        f"  noise      sd {content['noise_sd']:.3g} on each coefficient",
        f"  privacy    epsilon = {content['epsilon']:g}, delta = {content['delta']:g}, {content['relation']}, "
        f"n = {content['n']}",
    ]
    if content["noise_sd"] > 0.3:
        lines.append(
            "  warning    the noise drowns most coefficients: fewer columns, more budget or --delta would help"
        )
    if content["mode"] == "simulation":
        lines.append(f"  {options.NOT_PRIVATE}")
    return "\n".join([*lines, f"  files      {folder}"])
