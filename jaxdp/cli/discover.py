"""`jaxdp discover`: which columns of a CSV file are directly related? One private causal graph."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

from jaxdp import _csv
from jaxdp.cli import options, reading

MIN_ROWS = 2
EXAMPLE = "example: jaxdp discover survey.csv --schema survey.toml --epsilon 1 --out out/graph"
AUTO = "auto"
FILES = ("graph.json", "edges.csv", "graph.png", "report.html")
WRITTEN = ("graph.png", "graph.json", "result.json", "edges.csv", "graph.dot", "report.html")


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "discover",
        help="find a causal graph of the columns of a CSV file",
        description="Searches for a causal graph (CPDAG) of the columns of the schema, at a stated privacy cost.",
        epilog=EXAMPLE,
    )
    options.add_data(parser)
    options.add_reading(parser)
    parser.add_argument(
        "--columns", type=options.names, metavar="A,B,C", help="columns to use (default: all of the schema)"
    )
    options.add_epsilon(parser)
    parser.add_argument(
        "--method",
        default=AUTO,
        metavar="M",
        help="search, such as table_pc, or a test for PC, package.module:Class too (default: what fits the columns)",
    )
    parser.add_argument(
        "--max-order", type=options.count, metavar="K", help="largest conditioning set (default: no limit)"
    )
    options.add_accept_coarse_cells(parser)
    parser.add_argument("--truth", metavar="GRAPH.json", help="a graph to compare with")
    options.add_run(parser, "out/discover")


def run(args: argparse.Namespace) -> int:
    from jaxdp import discovery
    from jaxdp.data.records import as_records
    from jaxdp.data.schema import Schema
    from jaxdp.discovery.automatic import named
    from jaxdp.discovery.skeleton import terminal_progress

    if args.method != AUTO:
        named(args.method)
    schema = Schema.load(args.schema)
    truth = discovery.read_graph(args.truth) if args.truth else None
    names = args.columns or list(schema.names)
    if len(names) < 2:
        raise options.UserError(f"a graph needs at least two columns, got {len(names)}.")
    _require_same_columns(truth, names)
    ledger = options.open_ledger(args.ledger, args.seed, args.epsilon)
    folder = options.output_folder(args.out, WRITTEN)
    key = options.make_key(args.seed)

    def search(records, account):
        if records.num_records < MIN_ROWS:
            raise options.UserError(f"the data have {records.num_records} rows; a search needs at least {MIN_ROWS}.")
        settings = {"epsilon": args.epsilon, "method": args.method, "max_order": args.max_order}
        settings["accept_coarse_cells"] = args.accept_coarse_cells
        with terminal_progress():
            return discovery.discover(key, records, ledger=account, **settings), records.num_records

    graph, num_records = reading.ask(
        search,
        lambda source, **how: as_records(schema.read_table(source, names, **how)),
        reading.Source.of(args, schema, names),
        options.account(ledger, args.data, folder, ", ".join(names)),
    )
    shown = write(graph, folder, num_records=num_records, truth=truth, seed=args.seed)
    print(shown + options.left(ledger))
    return 0


def write(graph, folder: Path, *, num_records: int, truth=None, seed: int | None = None) -> str:
    """Writes graph.json, result.json, edges.csv, graph.dot, graph.png and report.html; returns the summary."""
    from jaxdp.report import written
    from jaxdp.report.graphs import draw_graph
    from jaxdp.report.html import write_report

    written.put(folder, "graph.json", options.write_json, graph.to_dict())
    content = describe(graph, num_records, truth, seed)
    written.put(folder, "result.json", options.write_json, content)
    written.put_text(folder, "graph.dot", graph.to_dot())
    written.put(folder, "edges.csv", write_edges, graph)
    written.put(
        folder,
        "graph.png",
        draw_graph,
        graph.names,
        graph.cpdag,
        truth=None if truth is None else _in_order(truth, graph.names),
        title=content["title"],
        simulation=graph.mode == "simulation",
    )
    write_report(folder, "Private causal discovery", WRITTEN)
    return summary(content, folder)


def describe(graph, num_records: int, truth, seed: int | None) -> dict:
    """What result.json holds: released and public values only."""
    from jaxdp import discovery

    arcs = [f"{a} -> {b}" for a, b in graph.directed] + [f"{a} -- {b}" for a, b in graph.undirected]
    content = {
        "title": f"Causal graph of {len(graph.names)} columns",
        "answer": ", ".join(arcs) if arcs else "no edge found",
        "method": graph.method,
        "epsilon": float(graph.cost.epsilon),
        "delta": float(graph.cost.delta),
        "relation": graph.cost.relation.value,
        "mode": graph.mode,
        "n": num_records,
        "complete": graph.complete,
        "untested": [[graph.names[i], graph.names[j]] for i, j in graph.untested],
        "num_tests": graph.num_tests,
    } | ({"note": graph.note} if graph.note else {})
    if truth is not None:
        content["skeleton_f1"] = discovery.skeleton_f1(graph, truth)
        content["shd"] = discovery.shd(graph, truth)
    if seed is not None:
        content["seed"] = seed
    return content


def write_edges(path: Path, graph) -> None:
    """One row per answered question: the pair, what was conditioned on, the answer, the released value, its cost.

    A search on one noisy table answers by post-processing: its questions cost nothing on top of the table.
    """
    rows = []
    for item in graph.decisions:
        kept = bool(graph.skeleton[item.i, item.j])
        given = " ".join(graph.names[k] for k in item.given)
        value, cost = (None if number is None else float(f"{number:.6g}") for number in (item.value, item.epsilon))
        rows.append([graph.names[item.i], graph.names[item.j], given, kept, item.independent, value, cost])
    _csv.write(path, ["a", "b", "given", "edge", "independent", "released_value", "epsilon"], rows)


def summary(content: dict, folder: Path) -> str:
    """One screen for people."""
    lines = [
        content["title"],
        f"  edges      {content['answer']}",
        f"  method     {content['method']}, n = {content['n']}, {content['num_tests']} questions"
        + ("" if content["complete"] else f", INCOMPLETE: {len(content['untested'])} pairs untested, edges kept"),
        f"  privacy    epsilon = {content['epsilon']:g}, delta = {content['delta']:g}, {content['relation']}, "
        f"{content['mode']}",
        f"  files      {', '.join(str(folder / name) for name in FILES)}",
    ]
    if "note" in content:
        lines.insert(3, textwrap.fill(content["note"], 100, initial_indent="  note       ", subsequent_indent=" " * 13))
    if "skeleton_f1" in content:
        lines.insert(2, f"  truth      skeleton F1 = {content['skeleton_f1']:.3f}, SHD = {content['shd']}")
    return "\n".join([*lines, f"  {options.NOT_PRIVATE}"] if content["mode"] == "simulation" else lines)


def _require_same_columns(truth, names: list[str]) -> None:
    if truth is not None and sorted(truth.names) != sorted(names):
        other = sorted(set(truth.names) ^ set(names))[0]
        raise options.UserError(f"--truth and the data have different columns: {other!r} is in one only.")


def _in_order(truth, names):
    import numpy as np

    order = [truth.names.index(name) for name in names]
    return truth.cpdag[np.ix_(order, order)]
