"""What got slower between two sets of results: ratios to the same peers, which do not depend on the machine's load.

    python -m experiments.benchmarks compare OLD NEW    # files or folders of results; exit code 1 if anything is slower
    ... compare OLD NEW --table FILE                    # every case of both, before and after, as a Markdown table

A case counts as slower where its processor time, relative to that of its peers, has grown by more than the factor; a
case without peers is compared by processor seconds, and only between runs on the same processor.
"""

import json
import pathlib
import statistics
from typing import Any, NamedTuple

FACTOR = 1.25


class Change(NamedTuple):
    """New processor time over the old one, for the same work; above 1 is slower."""

    name: str
    times: float
    against: str


def read(place: str | pathlib.Path) -> dict[str, dict[str, Any]]:
    """ "row/case" -> figures (with the processor), of a result file or of every one in a folder."""
    place = pathlib.Path(place)
    paths = sorted(place.glob("*.json")) if place.is_dir() else [place]
    found = {}
    for path in paths:
        report = json.loads(path.read_text())
        if not isinstance(report, dict) or "cases" not in report:
            continue
        for case, figures in report["cases"].items():
            found[f"{report['row']}/{case}"] = figures | {"processor": report["machine"]["processor"]}
    if not found:
        raise SystemExit(f"no results in {place}; scripts/bench writes them to experiments/benchmarks/results.")
    return found


def changes(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> list[Change]:
    """Of every case that both have measured, the slowest first; a case that fails now is infinitely slow."""
    found = []
    for name in old.keys() & new.keys():
        before, after = old[name], new[name]
        if "failed" in before:
            continue
        if "failed" in after:
            found.append(Change(name, float("inf"), after["failed"]))
            continue
        peers = sorted(before["peers"].keys() & after["peers"].keys())
        ratios = [before["peers"][peer]["processor_ratio"] / after["peers"][peer]["processor_ratio"] for peer in peers]
        if ratios:
            found.append(Change(name, statistics.median(ratios), ", ".join(peers)))
        elif before["processor"] == after["processor"]:
            times = after["processor_seconds_per_unit"] / before["processor_seconds_per_unit"]
            found.append(Change(name, times, "processor seconds"))
    return sorted(found, key=lambda change: -change.times)


def table(found: list[Change], factor: float = FACTOR) -> str:
    """One line for each case, the slower ones marked."""
    lines = [
        f"{'SLOWER' if one.times > factor else '':7s}{one.times:6.2f}x  {one.name}  ({one.against})" for one in found
    ]
    slower = sum(one.times > factor for one in found)
    return "\n".join([*lines, f"{slower} of {len(found)} cases take more than {factor:g} times as long."])


HEAD = """| row/case | before | after | against | its ratio before / after | work, after / before |
| --- | --- | --- | --- | --- | --- |
"""


def before_and_after(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> str:
    """Markdown: processor time of a unit in both sets and the ratios of the peers; cases of one set alone below."""
    relative = {change.name: change for change in changes(old, new)}
    lines = []
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name], new[name]
        change = relative.get(name)
        shared = sorted(before.get("peers", {}).keys() & after.get("peers", {}).keys())
        ratios = [f"{_ratio(before, peer)} / {_ratio(after, peer)}" for peer in shared]
        cells = [name, _unit(before), _unit(after), ", ".join(shared), ", ".join(ratios)]
        lines.append("| " + " | ".join([*cells, f"{change.times:.2f}" if change else ""]) + " |")
    apart = [
        f"\nOnly {word}: {', '.join(sorted(names))}.\n"
        for word, names in (("before", old.keys() - new.keys()), ("after", new.keys() - old.keys()))
        if names
    ]
    return HEAD + "\n".join(lines) + "\n" + "".join(apart)


def _ratio(figures: dict[str, Any], peer: str) -> str:
    return f"{figures['peers'][peer]['processor_ratio']:.3g}"


def _unit(figures: dict[str, Any]) -> str:
    if "failed" in figures:
        return "failed"
    return f"{figures['processor_seconds_per_unit'] * 1e3:.3g} ms/{figures['unit']}"


def main(old: str, new: str, factor: float = FACTOR, write: str | None = None) -> int:
    """Prints the table; 1 if anything got slower. write: file for the Markdown table of all cases."""
    before, after = read(old), read(new)
    found = changes(before, after)
    print(table(found, factor))
    if write:
        pathlib.Path(write).write_text(before_and_after(before, after))
    return int(any(one.times > factor for one in found))
