"""`jaxdp check`: does a CSV file say what its schema expects? For the owner of the file, not for release."""

from __future__ import annotations

import argparse
from typing import Any

from jaxdp._base import arguments
from jaxdp.cli import options

COUNTS = ("cells", "missing", "unreadable", "unknown", "outside")
EXAMPLE = "example: jaxdp check trial.csv --schema trial.toml"


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "check",
        help="count unreadable cells and malformed lines; for the owner of the file, not for release",
        description="Counts cells and lines that do not say what the schema expects. The counts are private: they are "
        "for the owner of the file and must not be published. Exit code 0 if every "
        "column parses and none has so many empty cells that a test would refuse it, else 2.",
        epilog=EXAMPLE,
    )
    options.add_data(parser)
    parser.add_argument(
        "--columns", type=arguments.names, metavar="A,B,C", help="columns to check (default: all of the schema)"
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    from jaxdp._base.owner import OWNER
    from jaxdp.data import batches, identifiers
    from jaxdp.data.parse_report import CODED, EMPTY_THEM, describe_ties
    from jaxdp.data.schema import DROP, Schema

    schema = Schema.load(args.schema)
    names = options.columns(schema, args.columns) if args.columns else list(schema.names)
    rules = {name: schema.rule(name) for name in names}
    units: set[str] = set()
    watch = identifiers.Watch.of(args.data, schema.delimiter, schema.unit)
    form, report = _counted(args.data, schema, rules, units, watch)
    by_line = report if batches.is_typed(args.data) else _counted(args.data, schema, rules, strict=True)[1]
    shown = by_line if form else report
    columns = shown.columns.values()
    records = shown if form or not schema.unit else _of_records(args.data, schema, names)
    asked = records.columns.values()
    of_times = {time for time, _ in schema.outcomes.values()}
    times = [column.unstepped for column in asked if column.rule.name in of_times]
    ties = [f"  {told}" for told in (*describe_ties(asked), *_as_z(asked))]
    ties += [f"  warning: {told}" for told in times if told]
    persons = "" if form else watch.describe()
    replaced = [f"  note: {told}" for column in columns if column.parses for told in column.replaced]
    replaced += [f"  note: {by_line.of_headings}"] if by_line.of_headings else []
    problems = [form.removesuffix("."), *(column.sentence for column in records.failing())]
    records.drops = schema.missing == DROP
    if not any(problems) and (harm := records.harm(())):
        ways = (
            'leave such records out (missing = "drop" at the top of the schema, or jaxdp test --missing drop), or '
            "write in the schema what such a cell means"
        )
        problems = [f"{harm}: {EMPTY_THEM if CODED in harm else ways}"]
    problems = [problem for problem in problems if problem]
    errors = [f"  error: {problem}" for problem in problems if len(problems) > 1]
    title = f"{args.data}: {OWNER}"
    screen = [
        title,
        *_lines(by_line.faults, not batches.is_typed(args.data)),
        *_units(schema.unit, len(units), records.without_id),
        *_table(columns),
        *_shapes(columns),
        *replaced,
        *ties,
        *([f"  {persons}"] if persons else []),
        *errors,
    ]
    notes = [note for note in (persons, by_line.of_headings) if note]
    options.tell(args, _content(title, form, by_line.faults, shown, records, notes), "\n".join(screen))
    if problems:
        more = f" (and {len(problems) - 1} more, listed above)" if len(problems) > 1 else ""
        owner = "" if OWNER in problems[0] else f" ({OWNER})"
        raise options.UserError(f"{problems[0]}{more}{owner}.")
    return 0


def _content(title: str, form: str, faults, shown, records, notes: list[str]) -> dict[str, Any]:
    """The same as the screen, for programs of the owner."""
    told = {
        name: {
            "kind": column.rule.kind,
            **{count: getattr(column, count) for count in COUNTS},
            "parses": column.parses,
            "notes": [text for text in (*_notes(records.columns[name]), *column.replaced) if text],
        }
        for name, column in shown.columns.items()
    }
    malformed = {kind: count for kind, count in faults.items() if count}
    return {"notice": title, "form": form, "malformed_lines": malformed, "columns": told, "notes": notes}


def _notes(column) -> list[str]:
    """What is wrong with a column, how its values lie, and what that means where it is conditioned on."""
    from jaxdp.data.parse_report import describe_ties

    return [column.sentence, column.crowding, *describe_ties([column]), *_as_z([column])]


def _as_z(columns) -> list[str]:
    """What it means to condition on the columns: what is added to them, and what the schema would have to say."""
    from jaxdp.data import conditioning

    told = []
    for column in columns:
        said, least = conditioning.described([column.rule]).removesuffix("."), conditioning.hourly_from([column.rule])
        told.append(said if least is None else f"{said}; alone and from {least} records on, by day and hour")
    warned = [text for column in columns for text in (column.untimed, column.piling) if text]
    return [*(f"as Z: {text}" for text in told if text), *(f"warning: {text}" for text in warned)]


def _counted(path: str, schema, rules, units: set[str] | None = None, watch=None, strict: bool = False):
    """What is wrong with the file's form (the empty text: nothing), and the counts up to there.

    units: gets the ids of the schema's unit. watch: looks for identifiers.
    """
    from jaxdp.data import readers
    from jaxdp.data.parse_report import ParseReport
    from jaxdp.data.units import id_of

    report = ParseReport(watch)
    ids = [schema.unit] if schema.unit and units is not None else []
    try:
        names = list(dict.fromkeys([*rules, *ids]))
        for piece in readers.counted(path, names, schema.delimiter, rules, report, strict=strict):
            if units is not None and ids:
                units.update(map(id_of, piece[schema.unit]))
    except readers.FormError as error:
        return str(error), report
    return "", report


def _of_records(path: str, schema, names):
    """The counts of the rows that a query reads, one for each unit."""
    from jaxdp.data import readers
    from jaxdp.data.chosen_rows import ChosenRows
    from jaxdp.data.parse_report import ParseReport

    report, chosen = ParseReport(), ChosenRows(schema, names)

    def pieces():
        return readers.pieces(path, chosen.read_with(names), schema.delimiter)

    chosen.find(pieces(), report).count(pieces(), report)
    return report


def _lines(faults, of_text: bool) -> list[str]:
    counts = {kind: count for kind, count in faults.items() if count}
    if not counts and not of_text:
        return []
    if not counts:
        return ["  no quoted line breaks: each line of the file is one row"]
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return [f"  lines that --strict, which reads each by itself, counts as records without values: {listed}"]


def _units(unit: str, count: int, without_id: int) -> list[str]:
    """How many records a query reads where several rows are one record."""
    if not unit:
        return []
    told = [f"  unit = {unit}: a query reads {count} records, one for each {unit}; below are cells of all rows"]
    if without_id > 1:
        told.append(f"  warning: {without_id} rows have no {unit}, and count together as one record")
    return told


def _table(columns) -> list[str]:
    width = _width(columns)
    lines = [f"  {'column':{width}} {'kind':12}" + "".join(f"{name:>12}" for name in COUNTS)]
    for column in columns:
        counts = "".join(f"{getattr(column, name):>12}" for name in COUNTS)
        note = "" if column.parses else "  does not parse"
        lines.append(f"  {column.rule.name:{width}} {column.rule.kind:12}{counts}{note}")
    return lines


def _width(columns) -> int:
    """Characters of the longest name, at least as many as a short table has."""
    return max([24, *(len(column.rule.name) for column in columns)])


def _shapes(columns) -> list[str]:
    """How the values of continuous columns lie in their bounds, and which crowd."""
    continuous = [column for column in columns if column.rule.is_continuous and column.histogram.sum()]
    width = _width(continuous)
    lines = [f"  between its bounds: {column.rule.name:{width}} |{_bars(column.histogram)}|" for column in continuous]
    return [*lines, *(f"  note: {column.crowding}" for column in continuous if column.crowding)]


def _bars(histogram) -> str:
    """A histogram in one line; nothing is drawn only where nothing is."""
    marks = " ▁▂▃▄▅▆▇█"
    top = max(histogram)
    return "".join(marks[-(-8 * int(count) // int(top))] for count in histogram)
