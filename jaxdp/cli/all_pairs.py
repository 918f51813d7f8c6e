"""`jaxdp test --all-pairs`: the table of all pairs as files and on the screen."""

from __future__ import annotations

from pathlib import Path

from jaxdp.cli import options

FILES = ("pairs.csv", "result.json", "pairs.png", "report.html")


def write(found, folder: Path, facts: dict, begin) -> dict:
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
    write_report(folder, content["title"], FILES)
    return content


def summary(found, folder: Path) -> str:
    """One screen for people."""
    from jaxdp._base import amounts
    from jaxdp.report.story import told_flags

    content = found.content
    indent = " " * 13
    lines = [
        content["title"],
        options.paragraph("answer", content["answer"]),
        *(f"{indent}{line}" for line in found.table()),
        f"  sees       {content['sees'] or 'not said by the tests'}",
        f"  privacy    {amounts.cost(content, every=True)} for all pairs together, "
        f"{content['relation']}, {content['mode']}, n = {content['n']}",
    ]
    rule = content["level_rule"] or {"sentence": "", "flags": []}
    told = {
        "power": content["power"],
        "given": content["conditioned_on"],
        "assumes": content["assumption"] or rule["sentence"],
        "level": rule["sentence"] if content["assumption"] else "",
        "flagged:": told_flags(rule["flags"]),
        "caution": " ".join(content["cautions"]),
        "records": content["unit"],
    }
    lines += [options.paragraph(name, text) for name, text in told.items() if text]
    lines += [f"  {options.NOT_PRIVATE}"] if content["mode"] == "simulation" else []
    files = ", ".join(str(folder / name) for name in FILES if (folder / name).exists())
    return "\n".join([*lines, f"  files      {files}"])
