"""Rows of an experiment: one JSON line each, with what it was run on; tables of them in pages of the documentation."""

import json
import pathlib
import platform
import subprocess
import time
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


def append(path: pathlib.Path, measured: Iterable[dict]) -> None:
    """Adds rows to a file as they are measured, each with what it was run on."""
    facts = provenance()
    with path.open("a", encoding="utf-8") as file:
        for row in measured:
            file.write(json.dumps({**row, **facts}) + "\n")
            file.flush()
            print(row, flush=True)


def fill(page: pathlib.Path, name: str, text: str) -> None:
    """Writes a text between `<!-- name: begin -->` and `<!-- name: end -->` of a page, in place of what is there."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
