"""`jaxdp report`: builds report.html again from the files of a results folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from jaxdp.cli import options


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "report",
        help="build report.html from the files of a results folder",
        description=(
            "Builds DIR/report.html from the files that commands wrote into DIR and its direct subfolders; other files "
            "are never shown. For a folder of `jaxdp simulate`, the table and the pictures are built again from its "
            "records too. Several simulation folders are merged into --out."
        ),
        epilog="example: jaxdp report out/demo; jaxdp report out/new --against out/old",
    )
    parser.add_argument("folder", metavar="DIR", nargs="+", help="folder that another command wrote")
    parser.add_argument("--title", help="title of the page")
    parser.add_argument("--against", metavar="DIR", help="compare the simulation with that of another folder")
    parser.add_argument("--out", metavar="DIR", help="new folder for several simulations, merged")


def run(args: argparse.Namespace) -> int:
    from jaxdp.report.html import rebuild_report

    folders = [_existing(name) for name in args.folder]
    if args.out or len(folders) > 1:
        folders = [_merged(folders, args.out)]
    folder, title = folders[0], args.title or "jaxdp report"
    if args.against:
        from jaxdp.simulate.engine import pages

        print(compared(pages.compare(folder, _existing(args.against))))
    from jaxdp.simulate.engine import results

    if results.is_simulation(folder):
        from jaxdp.simulate.engine import pages

        print(pages.write_pages(folder, args.title or "jaxdp simulation"))
    else:
        print(rebuild_report(folder, title))
    return 0


def _existing(name: str) -> Path:
    folder = Path(name)
    if not folder.is_dir():
        raise options.UserError(f"{name} is not a folder: name one that another command wrote.")
    return folder


def _merged(folders: list[Path], out: str | None) -> Path:
    if out is None:
        raise options.UserError("several folders are merged into a new one: name it with --out.")
    from jaxdp.simulate.engine import results

    for folder in folders:
        if not (folder / results.CONFIG).is_file():
            raise options.UserError(
                f"{folder} holds no simulation, and only simulations are merged: of answers, put their folders into "
                "one folder DIR, and jaxdp report DIR makes one page of them."
            )
    merged = options.output_folder(out)
    results.merge(folders, merged)
    return merged


def compared(lines: list[dict]) -> str:
    """The comparison on one screen: the cells that differ most."""
    from jaxdp._base import p_values
    from jaxdp.simulate.engine import results

    level = 0.05 / len(lines)
    differ = [line for line in lines if line["p_value"] <= level]
    text = [f"{len(lines)} cells in both; {len(differ)} differ at family level 0.05 (Bonferroni)"]
    for line in sorted(lines, key=lambda line: line["p_value"])[:10]:
        cell = " ".join(f"{name}={line[name]}" for name in results.IDENTITY if name in line)
        text.append(
            f"  {cell}: {line['rate']:.4f} against {line['other_rate']:.4f}, difference {line['difference']:+.4f} "
            f"[{line['low']:+.4f}, {line['high']:+.4f}], {p_values.describe(line['p_value'])}"
        )
    same = [line for line in lines if line["same_experiment"]]
    if same:
        changed = sum(line["difference"] != 0 or line["replicates"] != line["other_replicates"] for line in same)
        text.append(
            f"{len(same)} cells have the same seed, so their replicates are the same; {changed} count otherwise"
        )
    return "\n".join(text)
