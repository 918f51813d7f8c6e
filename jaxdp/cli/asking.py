"""The one runner of commands that ask something of a table: they ask, write the answer and print it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from jaxdp._base import json_files
from jaxdp.cli import options
from jaxdp.report import sections

EVERY = 10.0  # seconds between two lines about a run of many parts, where there is no terminal


def ask(args: argparse.Namespace, table: Any, query: Any) -> int:
    """The answer of a `jaxdp.ask.table_query.TableQuery` about the table, in a folder and on the screen."""
    # what an interrupted run left may be paid for
    paid = args.out is not None and any((Path(args.out) / name).exists() for name in query.unfinished)
    ledger = options.open_ledger(args.ledger, args.seed, 0.0 if paid else query.epsilon)
    folder = options.result_folder(args, query.form.files, query.unfinished)
    account = options.account(ledger, table.source, folder, query.short)
    key, query = options.make_key(args.seed), query.in_folder(folder)
    with options.stages(query.parts + 4, EVERY if query.parts > 1 else None) as on_stage:
        try:
            found = query.ask(table, key, account, on_stage=on_stage, on_estimate=options.note)
        except KeyboardInterrupt:
            if any((folder / name).exists() for name in query.unfinished):
                told = f"what was answered is kept: the same command with --out {folder} goes on."
                print(f"jaxdp: {told}", file=sys.stderr)
            raise
        content = write(found, folder, options.for_the_page(args, ledger), on_stage, getattr(args, "schema", ""))
    for name in query.unfinished:
        (folder / name).unlink(missing_ok=True)  # the results are on disk: the next run is a new one
    files = ", ".join(str(folder / name) for name in found.files if (folder / name).exists())
    shown = f"{sections.screen(content, found.table())}\n  files      {files}{options.pictures()}"
    options.tell(args, content, shown)
    return 0


def write(found: Any, folder: Path, facts: dict, on_stage: Any, schema: str = "") -> dict:
    """Writes the files of a `TableAnswer` and report.html; returns what result.json holds."""
    from jaxdp.report import written
    from jaxdp.report.html import REPORT_NAME, write_report

    on_stage("asking the planner")
    content = {**found.to_dict(), **found.missed(schema), **facts}
    on_stage("writing")
    files = {"result.json": (json_files.write, content), **found.written()}
    for name, (writer, *what) in files.items():
        written.put(folder, name, writer, *what)
    written.put_picture(folder, found.picture, found.draw)
    for name in set(found.files) - {*files, found.picture, REPORT_NAME}:
        written.drop(folder, name)  # of an earlier answer of another form
    write_report(folder, found.page or content["title"], found.files)
    return content
