"""report.html: one self-contained page about the files of a results folder.

The page is a function of the files alone, so it can be rebuilt at any time: every folder (the one named and
its direct subfolders) that holds results becomes a section with its JSON values, PNG pictures and the CSV
tables beside them.
Two keys of a JSON file are special: "title" heads the section and "answer" opens it.
"""

from __future__ import annotations

import base64
import csv
import html
import itertools
import json
import string
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

REPORT_NAME = "report.html"
CSV_ROWS_SHOWN = 30
ITEMS_SHOWN = 12
BANNER = "NOT PRIVATE: this page shows a simulation."
PROMISES = (
    "A release protects each record by the stated epsilon for the stated neighbouring relation; the number of rows, "
    "the schema and the settings count as public. Not promised: protection against whoever can watch the run "
    "itself (time, memory, power), and correctness of bounds and levels that were not public knowledge."
)

_PAGE = string.Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #1c1f23; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #d5d9de; }
.banner { background: #b3261e; color: white; padding: .6rem 1rem; border-radius: 4px; font-weight: 600; }
.answer { font-size: 1.15rem; } figure { margin: 1rem 0; } img { max-width: 100%; }
figcaption, .small { color: #5b6168; font-size: .85rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .9rem; display: block; overflow-x: auto; }
td, th { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #e6e8eb; vertical-align: top; }
th { font-weight: 600; }
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


def write_report(folder: Path, title: str) -> Path:
    """Writes folder/report.html from the files below the folder; returns its path."""
    folder = Path(folder)
    subfolders = sorted(path for path in folder.iterdir() if path.is_dir())
    sections = [part for place in (folder, *subfolders) for part in _section(place)]
    results = [result for place in (folder, *subfolders) for _, result in _results(place)]
    simulated = any(isinstance(result, dict) and result.get("mode") == "simulation" for result in results)
    page = _PAGE.substitute(
        title=html.escape(title),
        banner=f'<p class="banner">{BANNER}</p>' if simulated else "",
        body="\n".join(sections) or "<p>This folder holds no results.</p>",
        promises=PROMISES,
    )
    path = folder / REPORT_NAME
    path.write_text(page, encoding="utf-8")
    return path


def _section(folder: Path) -> Iterator[str]:
    """The HTML of one folder, in parts."""
    results, pictures = _results(folder), sorted(folder.glob("*.png"))
    if not (results or pictures):
        return
    tables = sorted(folder.glob("*.csv"))
    heads = [result for _, result in results if isinstance(result, dict)]
    heading = next((head["title"] for head in heads if "title" in head), folder.name)
    yield f"<h2>{html.escape(str(heading))}</h2>"
    for head in heads:
        if "answer" in head:
            yield f'<p class="answer">{html.escape(str(head["answer"]))}</p>'
    yield from map(_figure, pictures)
    for name, result in results:
        yield f'<p class="small">{html.escape(name)}</p>'
        yield value_table(result)
    yield from map(_csv_table, tables)


def _results(folder: Path) -> list[tuple[str, Any]]:
    """(name, content) of every JSON file of a folder."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append((path.name, json.loads(path.read_text(encoding="utf-8"))))
        except ValueError:
            raise ValueError(f"{path} is not valid JSON: run the command that writes it again.") from None
    return found


def _figure(path: Path) -> str:
    encoded = base64.b64encode(path.read_bytes()).decode("ascii")
    caption = html.escape(path.stem.replace("_", " "))
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{encoded}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def value_table(content: Any) -> str:
    """A two-column HTML table of a JSON value; nested keys are joined by dots."""
    rows = [(name, value) for name, value in _flat("", content) if name not in ("title", "answer")]
    cells = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
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
        yield prefix, _text(content)


def _text(value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(_text, value[:ITEMS_SHOWN]))
        return shown if len(value) <= ITEMS_SHOWN else f"{shown}, … ({len(value)} in all)"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)


def _csv_table(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(itertools.islice(csv.reader(file), CSV_ROWS_SHOWN + 1)) or [[]]
    body = "".join(_row(row, "td") for row in rows)
    return f'<p class="small">{html.escape(path.name)}</p><table>{_row(header, "th")}{body}</table>'


def _row(cells: Sequence[str] | Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
