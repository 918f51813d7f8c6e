"""Rows of an experiment: one JSON line each, with what it was run on; tables of them in pages of the documentation."""

import argparse
import json
import pathlib
import platform
import subprocess
import time
import zlib
from collections.abc import Iterable

import jax


def provenance() -> dict:
    """Commit, versions and device of this run."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    device = jax.devices()[0]
    return {
        "commit": commit.stdout.strip() or None,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": device.device_kind,
        "platform": device.platform,
    }


def command_line(doc: str, replicates: int | None = None, of: str = "data sets of a row") -> argparse.ArgumentParser:
    """A command line with --table, and with --replicates where they have a default. of: what is replicated."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="measure nothing: show what is recorded as tables")
    if replicates is not None:
        parser.add_argument("--replicates", type=int, default=replicates, help=of)
    return parser


def keys_of(seed: int, row: str, replicates: int) -> jax.Array:
    """Keys of the data sets of a row, whatever other rows there are."""
    return jax.random.split(jax.random.fold_in(jax.random.key(seed), zlib.crc32(row.encode())), replicates)


class Recorder:
    """Appends rows to OUT/NAME.jsonl as they are measured."""

    def __init__(self, out: pathlib.Path, name: str):
        out.mkdir(parents=True, exist_ok=True)
        self.path = out / f"{name}.jsonl"
        self.path.write_text("")
        self.facts = provenance()
        self.rows: list[dict] = []
        self.clock = time.perf_counter()

    def add(self, **row) -> dict:
        """Writes one row; `seconds` is the time since the row before."""
        now = time.perf_counter()
        row = {**row, "seconds": round(now - self.clock, 3), **self.facts}
        self.clock = now
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row


def rows(path: pathlib.Path) -> list[dict]:
    """The rows of a file, none where there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write(path: pathlib.Path, measured: Iterable[dict]) -> None:
    """Puts rows in place of those of a file, as `append`."""
    path.write_text("")
    append(path, measured)


def append(path: pathlib.Path, measured: Iterable[dict]) -> None:
    """Adds rows to a file as they are measured, each with what it was run on."""
    facts = provenance()
    with path.open("a", encoding="utf-8") as file:
        for row in measured:
            file.write(json.dumps({**row, **facts}) + "\n")
            file.flush()
            print(row, flush=True)


def settings(cells: Iterable[tuple[int, float]]) -> list[str]:
    """Heads of the columns of these (n, epsilon)."""
    return [f"{n}, {epsilon:g}" for n, epsilon in cells]


def markdown(heads: Iterable[str], lines: Iterable[Iterable]) -> str:
    """A table in Markdown."""
    whole = [list(heads), *([str(cell) for cell in line] for line in lines)]
    head, *body = (f"| {' | '.join(line)} |" for line in whole)
    return "\n".join([head, "|" + "---|" * len(whole[0]), *body])


def fill(page: pathlib.Path, name: str, text: str) -> None:
    """Writes a text between `<!-- name: begin -->` and `<!-- name: end -->` of a page, in place of what is there."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
