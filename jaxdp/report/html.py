"""report.html: one self-contained page about the files of a results folder.

The page is a function of the files alone, so it can be rebuilt at any time: every folder that a command wrote becomes
a section with its answer, its PNG pictures, its result in words (`report.sections`), and its JSON values and CSV tables
folded away. Only files that the command itself wrote are shown, by the
record that it keeps of them (`report.written`): a file that lies beside them, data above all, never is.
Two keys of a JSON file are special: "title" heads the section and "answer" opens it.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import itertools
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxdp._base import amounts, csv_files
from jaxdp._base.display import html_row
from jaxdp.report import written
from jaxdp.report.sections import COST, narrative, the_schema, waterfall

REPORT_NAME = "report.html"
CSV_ROWS_SHOWN = 30
ITEMS_SHOWN = 12
GRAPH = "graph.png"
CAPTIONS = {
    "picture.png": "",  # it has a title of its own
    GRAPH: "The graph that was found.",
    "columns.png": "Each column: noisy counts; bars with intervals for levels, quartiles with intervals for numbers.",
    "pairs.png": "Each pair: how small its adjusted p-value is, and a dot where a dependence was found.",
    "heatmap.png": "MIC of every pair: 0 unrelated, 1 one column determines the other.",
    "power.png": "Power against the number of records.",
    "epsilon_curve.png": "Power, and the best guess of one record, against the total epsilon.",
}
LONG_NUMBER = re.compile(r"-?\d+\.\d{5,}(?:e[-+]?\d+)?")
TRUTH = {"True": "yes", "False": "no"}
UNBROKEN = re.compile(r"(?<!\S)(?:--[a-z-]+|(?:-&gt;|--)(?!\S))")  # options, and the marks of edges
UNFOLDED = ("pairs.csv", "top_pairs.csv", "columns.csv")  # part of the answer
UNSHOWN = ("statistic", "smallest_p")  # of them: the file holds these
PAGE_WIDTH = 736  # pixels of the text, 46rem
READABLE = 0.68  # of a picture's own size: its letters are then 11 pixels high
BANNER = "NOT PRIVATE: this page shows a simulation."
PROMISES = (
    "A release protects each record by the stated epsilon for the stated neighbouring relation; the number of rows, "
    "{schema} and the settings count as public. Not guaranteed: protection against whoever can watch the run "
    "itself (time, memory, power), and correctness of bounds and levels that were not public knowledge."
)

_PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 17px/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1c1f23;
  background: #fff; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.4rem; border-bottom: 1px solid #d5d9de; }
h3 { font-size: 1rem; margin: 1.3rem 0 .2rem; color: #24567a; } p { margin: .3rem 0; }
.banner { background: #b3261e; color: white; padding: .6rem 1rem; border-radius: 4px; font-weight: 600; }
.answer { font-size: 1.2rem; background: #eef4f8; border-left: 4px solid #2a6f97;
  padding: .7rem 1rem; margin: .8rem 0; }
figure { margin: 1.2rem 0; overflow-x: auto; } img { max-width: 100%; height: auto; }
.bar { display: flex; height: .9rem; border: 1px solid #50565d; margin: .5rem 0 .1rem; print-color-adjust: exact; }
.bar i + i { border-left: 1px solid #fff; }
.wide { width: max-content; min-width: 100%; max-width: 94vw; position: relative; left: 50%;
  transform: translateX(-50%); }
.wide img { max-width: none; display: block; margin: 0 auto; }
figcaption, .small, summary { color: #50565d; font-size: .85rem; }
code { font-size: .85rem; background: #f2f3f5; padding: .1rem .3rem; overflow-wrap: anywhere; }
.unbroken { white-space: nowrap; }
details { margin: .8rem 0; } summary { cursor: pointer; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .85rem; display: block; overflow-x: auto; }
td { white-space: nowrap; } td:only-of-type { white-space: normal; }
td, th { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #e6e8eb; vertical-align: top; }
th { font-weight: 600; }
@media (max-width: 30rem) { body { font-size: 16px; margin: 1rem auto; } h1 { font-size: 1.35rem; }
  table { font-size: .72rem; } td, th { padding-right: .5rem; } }
@media print { body { max-width: none; font-size: 11pt; margin: 0; } h2 { break-before: auto; }
  h3, figure { break-inside: avoid; break-after: avoid; } summary { display: none; }
  .wide { width: 100%; left: 0; transform: none; } .wide img { max-width: 100%; max-height: 22cm; }
  .banner { border: 2px solid #b3261e; color: #b3261e; } }
</style>
</head>
<body>
<h1>$title</h1>
$banner
$body
<p class="small">$promises</p>
</body>
</html>
""")


def write_report(folder: Path, title: str, names: Iterable[str], sections: Iterable[Path] = ()) -> Path:
    """Writes folder/report.html about these files of the folder and about the pages of other folders.

    Only files that `report.written` knows as ours are shown, in this order. sections: folders that commands wrote.
    """
    folder = Path(folder)
    written.show(folder, [name for name in names if name != REPORT_NAME])
    return _write(folder, title, (folder, *sections))


def rebuild_report(folder: Path, title: str) -> Path:
    """Writes folder/report.html again, from the records of the folder and of its direct subfolders."""
    folder = Path(folder)
    return _write(folder, title, (folder, *(path for path in sorted(folder.iterdir()) if written.has_record(path))))


def _write(folder: Path, title: str, places: Iterable[Path]) -> Path:
    pages = [(place, *written.shown(place)) for place in places]
    results = {place: _results(place, contents) for place, contents, _ in pages}
    sections = [
        part for place, contents, changed in pages for part in _section(place, contents, results[place], changed, title)
    ]
    each = [result for found in results.values() for result in found.values() if isinstance(result, dict)]
    simulated = any(result.get("mode") == "simulation" for result in each)
    drafts = [draft for result in each for draft in result.get("drafted", ())]
    page = _PAGE.substitute(
        title=html.escape(title),
        banner=f'<p class="banner">{BANNER}</p>' if simulated else "",
        body="\n".join(sections) or "<p>This folder holds no results.</p>",
        promises=PROMISES.format(schema=html.escape(the_schema({"drafted": drafts}))),
    )
    return written.put_text(folder, REPORT_NAME, page)


def _results(folder: Path, contents: Mapping[str, bytes]) -> dict[str, Any]:
    """Content of every JSON file by name."""
    found = {}
    for name in contents:
        if name.endswith(".json"):
            try:
                found[name] = json.loads(contents[name])
            except ValueError:
                raise ValueError(f"{folder / name} is not valid JSON: run the command that writes it again.") from None
    return found


def _section(
    folder: Path, contents: Mapping[str, bytes], results: Mapping[str, Any], changed: Sequence[str], title: str
) -> Iterator[str]:
    """The HTML of one folder, in parts; without a heading of its own where that is the title of the page."""
    if not (contents or changed):
        return
    heads = [result for result in results.values() if isinstance(result, dict)]
    heading = next((head["title"] for head in heads if "title" in head), folder.name)
    yield f"<h2>{html.escape(str(heading))}</h2>" if heading != title else ""
    for head in heads:
        if "answer" in head:
            yield f'<p class="answer">{_kept_together(str(head["answer"]))}</p>'
    yield from (_figure(name, content, str(heading)) for name, content in contents.items() if name.endswith(".png"))
    tables = {
        name: _csv_table(content, UNSHOWN if name in UNFOLDED else ())
        for name, content in contents.items()
        if name.endswith(".csv")
    }
    yield from (_folded(name, table) for name, table in tables.items() if name in UNFOLDED)
    for head in heads:
        for part, sentences in narrative(head):
            told = [sentence for sentence in sentences if sentence != heading]
            yield _part(part, told, str(head.get("command", ""))) if told else ""
            yield _bar(waterfall(head)) if part == COST else ""
    yield from (_folded(name, value_table(result)) for name, result in results.items())
    yield from (_folded(name, table) for name, table in tables.items() if name not in UNFOLDED)
    for name in changed:
        yield f'<p class="small">{html.escape(name)} was changed since it was written and is not shown.</p>'


def _part(heading: str, sentences: Sequence[str], command: str) -> str:
    """A part of the story: its heading and a paragraph for each sentence; a command as code."""
    tags = (
        f"<p><code>{_kept_together(text)}</code></p>" if text == command else f"<p>{_kept_together(text)}</p>"
        for text in sentences
    )
    return f"<h3>{html.escape(heading)}</h3>{''.join(tags)}"


def _kept_together(text: str) -> str:
    """Escaped text in which no line ends within an option or the mark of an edge, -> or --."""
    return UNBROKEN.sub(r'<span class="unbroken">\g<0></span>', html.escape(text))


def _bar(shares: Sequence[tuple[str, float]]) -> str:
    """The budget as one bar, in the order in which it is spent."""
    words = [f"{name} {amounts.left(value) if name == 'left' else amounts.spent(value)}" for name, value in shares]
    parts = [(text, value) for text, (_, value) in zip(words, shares, strict=True) if value > 0.0]
    if not parts:
        return ""
    colours = dict(zip(words, ("#50565d", "#24567a", "#dfe7ee"), strict=True))
    bars = "".join(f'<i style="flex-grow:{value:g};background:{colours[text]}"></i>' for text, value in parts)
    told = ", ".join(text for text, _ in parts)
    return f'<div class="bar">{bars}</div><p class="small">epsilon: {html.escape(told)}</p>'


def _folded(name: str, table: str) -> str:
    """Numbers for those who want them."""
    shown = " open" if name in UNFOLDED else ""
    return f"<details{shown}><summary>{html.escape(name)}</summary>{table}</details>"


def _figure(name: str, content: bytes, heading: str) -> str:
    """A picture of the page's width; a wider graph keeps letters that can be read, and scrolls on small screens."""
    encoded = base64.b64encode(content).decode("ascii")
    caption = html.escape(CAPTIONS.get(name, name.removesuffix(".png").replace("_", " ")))
    wide, size = "", ""
    if name == GRAPH and (width := int.from_bytes(content[16:20])) > PAGE_WIDTH / READABLE:  # of the PNG's header
        wide, size = ' class="wide"', f' width="{round(READABLE * width)}"'
    told = f"<figcaption>{caption}</figcaption>" if caption else ""
    return (
        f'<figure{wide}><img alt="{caption or html.escape(heading)}"{size} src="data:image/png;base64,{encoded}">'
        f"{told}</figure>"
    )


def value_table(content: Any) -> str:
    """A two-column HTML table of a JSON value; nested keys are joined by dots."""
    rows = [(name, value) for name, value in _flat("", content) if name not in ("title", "answer")]
    cells = (f"<tr><th>{html.escape(name)}</th><td>{_kept_together(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def _flat(prefix: str, content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), value)
    elif isinstance(content, list) and any(isinstance(item, dict) for item in content):
        for position, item in enumerate(content[:ITEMS_SHOWN], start=1):
            yield from _flat(f"{prefix}.{position}", item)
        if len(content) > ITEMS_SHOWN:
            yield f"{prefix}.…", f"{len(content) - ITEMS_SHOWN} more"
    else:
        yield prefix, _text(content, amounts.is_cost(prefix.rpartition(".")[2]))


def _text(value: Any, is_cost: bool = False) -> str:
    if isinstance(value, list):
        shown = ", ".join(_text(item, is_cost) for item in value[:ITEMS_SHOWN])
        return shown if len(value) <= ITEMS_SHOWN else f"{shown}, … ({len(value)} in all)"
    if isinstance(value, float):
        return amounts.spent(value) if is_cost else f"{value:.6g}"
    return "-" if value is None else str(value)


def _csv_table(content: bytes, unshown: Sequence[str] = ()) -> str:
    """unshown: columns that are left out, so that the others fit the page; so is a method that every row names."""
    lines = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    header, *rows = [list(map(csv_files.text, line)) for line in itertools.islice(lines, CSV_ROWS_SHOWN + 1)] or [[]]
    if unshown:
        same = {name for k, name in enumerate(header) if name == "method" and len({row[k] for row in rows}) == 1}
        kept = [k for k, name in enumerate(header) if name not in same | set(unshown)]
        header, *rows = ([line[k] for k in kept] for line in (header, *rows))
    costs = [amounts.is_cost(name) for name in header]
    body = "".join(html_row(map(_shortened, row, costs), "td") for row in rows)
    more = sum(1 for _ in lines)
    rest = f'<p class="small">{more} rows more are in the file.</p>' if more else ""
    return f"<table>{html_row((name.replace('_', ' ') for name in header), 'th')}{body}</table>{rest}"


def _shortened(cell: str, is_cost: bool) -> str:
    """A number of many digits to four of them, and a truth value in words; the file keeps what it holds."""
    if LONG_NUMBER.fullmatch(cell):
        return amounts.spent(cell, 4) if is_cost else f"{float(cell):.4g}"
    return TRUTH.get(cell, cell)
