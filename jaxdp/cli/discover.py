"""`jaxdp discover`: which columns of a CSV file are directly related? One private causal graph."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdp._base import csv_files
from jaxdp.cli import options

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
    parser.add_argument(
        "--delta", type=options.probability, default=0.0, metavar="D", help="(epsilon, D)-DP (default: pure epsilon)"
    )
    parser.add_argument(
        "--directions",
        type=share,
        metavar="S",
        help="share of the budget for the arrows, 0 to below 1 (default: what the search chooses; 0 draws none)",
    )
    add_knowledge(parser)
    options.add_accept_coarse_cells(parser)
    parser.add_argument("--compare", "--truth", dest="truth", metavar="GRAPH.json", help="a graph to compare with")
    options.add_run(parser, "out/discover")


def share(text: str) -> float:
    """argparse type: a number from 0 to below 1."""
    value = float(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text}")
    return value


def add_knowledge(parser: argparse.ArgumentParser) -> None:
    """--require, --forbid and --tiers: what is known before data are read."""
    for name, meaning in (("require", "are joined by an edge in any case"), ("forbid", "are joined by no edge")):
        parser.add_argument(
            f"--{name}",
            type=options.names,
            action="append",
            default=[],
            metavar="A,B",
            help=f"two columns that {meaning} (may be given again)",
        )
    parser.add_argument(
        "--tiers",
        type=tiers,
        default=[],
        metavar='"A,B;C"',
        help="groups of columns, earliest first: an edge between two groups points to the later one",
    )


def tiers(text: str) -> list[list[str]]:
    """argparse type: groups of column names, separated by semicolons."""
    return [options.names(part) for part in text.split(";")]


def knowledge_of(args: argparse.Namespace):
    """The background knowledge of the arguments; None if there is none."""
    from jaxdp.discovery import Knowledge

    if not (args.require or args.forbid or args.tiers):
        return None
    return Knowledge(required=args.require, forbidden=args.forbid, tiers=args.tiers)


def run(args: argparse.Namespace) -> int:
    from jaxdp import discovery
    from jaxdp.discovery.choose import keeps
    from jaxdp.discovery.engine.kept import FILE
    from jaxdp.one_call.discover import GraphQuery

    options.keep_programs()
    table = options.table(args)
    schema = table.schema
    query = GraphQuery.of(
        schema,
        columns=args.columns and options.columns(schema, args.columns),
        epsilon=args.epsilon,
        method=args.method,
        max_order=args.max_order,
        accept_coarse_cells=args.accept_coarse_cells,
        delta=args.delta,
        knowledge=knowledge_of(args),
        directions=args.directions,
    )
    truth = discovery.read_graph(args.truth) if args.truth else None
    _require_same_columns(truth, list(query.names))
    goes_on = args.out is not None and (Path(args.out) / FILE).exists()  # then it may be paid for
    ledger = options.open_ledger(args.ledger, args.seed, 0.0 if goes_on else args.epsilon)
    folder = options.result_folder(args, WRITTEN, unfinished=[FILE])
    keep = folder / FILE if keeps(args.method) else None
    account = options.account(ledger, args.data, folder, query.short)
    key = options.make_key(args.seed)
    try:
        graph, num_records = dataclasses.replace(query, keep=keep).ask(table, key, account)
    except KeyboardInterrupt:
        if keep is not None and keep.exists():
            print(f"jaxdp: what was answered is kept: the same command with --out {folder} goes on.", file=sys.stderr)
        raise
    facts = {**options.for_the_page(args, ledger), "unit": schema.protects}
    content = write(graph, folder, num_records=num_records, truth=truth, facts=facts)
    if keep is not None:
        keep.unlink(missing_ok=True)  # the results are on disk: the next search is a new one
    options.tell(args, content, summary(content, folder) + options.pictures() + options.left(ledger))
    return 0


def write(graph, folder: Path, *, num_records: int, truth=None, facts: Mapping[str, Any] | None = None) -> dict:
    """Writes graph.json, edges.csv, graph.dot, graph.png, report.html and result.json; returns what the last holds."""
    from jaxdp.report import written
    from jaxdp.report.graphs import draw_graph
    from jaxdp.report.html import write_report

    written.put(folder, "graph.json", options.write_json, graph.to_dict())
    content = describe(graph, num_records, truth) | dict(facts or {})
    written.put(folder, "result.json", options.write_json, content)
    written.put_text(folder, "graph.dot", graph.to_dot())
    written.put(folder, "edges.csv", write_edges, graph)
    written.put_picture(
        folder,
        "graph.png",
        draw_graph,
        graph.names,
        graph.cpdag,
        truth=None if truth is None else _in_order(truth, graph.names),
        q_values=_q_values(graph),
        title=content["title"],
        simulation=graph.mode == "simulation",
    )
    write_report(folder, "Private causal discovery", WRITTEN)
    return content


def describe(graph, num_records: int, truth) -> dict:
    """What result.json holds: released and public values only."""
    import numpy as np

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
        "cautions": list(graph.cautions),
    } | ({"note": graph.note} if graph.note else {})
    if truth is not None:
        content["skeleton_f1"] = discovery.skeleton_f1(graph, truth)
        content["cpdag_f1"] = discovery.cpdag_f1(graph, truth)
        content["shd"] = discovery.shd(graph, truth)
        content["shd_of_no_edges"] = discovery.shd(np.zeros(graph.cpdag.shape, bool), truth)
        content |= _of_interventions(graph, truth)
    return content


def _of_interventions(graph, truth) -> dict:
    """The structural intervention distance to a DAG, beside that of a graph without edges; or why there is none."""
    from jaxdp import discovery

    if truth.undirected:
        return {}
    no_edges = dataclasses.replace(graph, cpdag=graph.cpdag & False, skeleton=graph.skeleton & False)
    try:
        return {"sid": discovery.sid(graph, truth), "sid_of_no_edges": discovery.sid(no_edges, truth)}
    except (ImportError, ValueError) as error:
        return {"no_sid": str(error)}


def write_edges(path: Path, graph) -> None:
    """One row per answered query: the pair, what was conditioned on, the answer, the released value, its cost.

    q_value: where the search has one, the share of edges expected to join independent columns, were this the weakest.
    share_a_to_b, share_b_to_a: of edges, how often the two arrows were sampled (no calibrated probability); an edge
    without a direction has the rest. A search on one noisy table answers by post-processing: its queries cost nothing
    on top of the table.
    """
    from jaxdp._base import amounts

    rows = []
    for item in graph.decisions:
        kept = bool(graph.skeleton[item.i, item.j])
        given = " ".join(graph.names[k] for k in item.given)
        numbers = (item.value, item.q_value, *_arrow_shares(graph, item.i, item.j))
        shown = [None if number is None else float(f"{number:.6g}") for number in numbers]
        shown.insert(1, None if item.epsilon is None else float(amounts.spent(item.epsilon)))
        rows.append([graph.names[item.i], graph.names[item.j], given, kept, item.independent, *shown])
    arrows = ["share_a_to_b", "share_b_to_a"]
    header = ["a", "b", "given", "edge", "independent", "released_value", "epsilon", "q_value", *arrows]
    csv_files.write(path, header, rows)


def _arrow_shares(graph, i: int, j: int) -> tuple[float | None, float | None]:
    if graph.arrow_shares is None or not graph.skeleton[i, j]:
        return None, None
    return float(graph.arrow_shares[i, j]), float(graph.arrow_shares[j, i])


def _q_values(graph):
    """What the picture shows by width: 0 where an edge has no number of its own; None where no edge has one."""
    import numpy as np

    found = graph.q_values
    return None if np.isnan(found).all() else np.nan_to_num(found, nan=0.0)


def summary(content: dict, folder: Path) -> str:
    """One screen for people."""
    from jaxdp._base import amounts

    lines = [
        content["title"],
        options.paragraph("edges", content["answer"]),
        f"  method     {content['method']}, n = {content['n']}, {content['num_tests']} queries"
        + ("" if content["complete"] else f", INCOMPLETE: {len(content['untested'])} pairs untested, edges kept"),
        f"  privacy    {amounts.cost(content, every=True)}, {content['relation']}, {content['mode']}",
        f"  files      {', '.join(str(folder / name) for name in FILES if (folder / name).exists())}",
    ]
    if content.get("unit"):
        lines.insert(-1, options.paragraph("records", content["unit"]))
    if content["cautions"]:
        lines.insert(-1, options.paragraph("caution", " ".join(content["cautions"])))
    if "note" in content:
        lines.insert(3, options.paragraph("note", content["note"]))
    if "skeleton_f1" in content:
        told = (
            f"F1 = {content['skeleton_f1']:.3f} of the edges, {content['cpdag_f1']:.3f} with their directions; "
            f"structural Hamming distance {content['shd']} (of a graph without edges: {content['shd_of_no_edges']})"
        )
        if "sid" in content:
            pairs = f"{content['sid']} (of a graph without edges: {content['sid_of_no_edges']})"
            told += f"; wrong effects among all ordered pairs, the structural intervention distance: {pairs}"
        elif "no_sid" in content:
            told += f"; {content['no_sid']}"
        lines.insert(2, options.paragraph("compared", told))
    return "\n".join([*lines, f"  {options.NOT_PRIVATE}"] if content["mode"] == "simulation" else lines)


def _require_same_columns(truth, names: list[str]) -> None:
    if truth is not None and sorted(truth.names) != sorted(names):
        other = sorted(set(truth.names) ^ set(names))[0]
        raise options.UserError(f"--compare and the data have different columns: {other!r} is in one only.")


def _in_order(truth, names):
    import numpy as np

    order = [truth.names.index(name) for name in names]
    return truth.cpdag[np.ix_(order, order)]
