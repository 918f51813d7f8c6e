"""Merging the folders of many tasks: `results.merge` over chunk records, linear in their number."""

import shutil
import tempfile
from pathlib import Path

import numpy as np

from experiments.benchmarks.harness import Case
from jaxdp.simulate.engine import record_file, results
from jaxdp.simulate.engine.record_file import Record, RecordFile

GOAL_PER_SECOND = 1e5 / 60.0
SIZE = 1000  # replicates of a chunk
CASES = {
    "n1e3": {"chunks": 1000, "tasks": 10},
    "n1e4": {"chunks": 10_000, "tasks": 100},
    "n1e5": {"chunks": 100_000, "tasks": 1000},
}
QUICK = ("n1e3",)


def build(chunks: int, tasks: int) -> Case:
    """One unit is a chunk; two settings, one folder per task, records as a run writes them."""
    place = tempfile.TemporaryDirectory()  # removed with the case, which holds it by `merge`
    folders = [Path(place.name) / f"task{task}" for task in range(tasks)]
    rejections = sum(write(folder, chunks, task, tasks) for task, folder in enumerate(folders))
    out = Path(place.name) / "merged"

    def merge(_=place):
        shutil.rmtree(out, ignore_errors=True)
        return results.merge(folders, out)

    def agree() -> dict[str, float]:
        rows = merge()
        lost = chunks * SIZE - sum(row.replicates for row in rows)
        wrong = rejections - sum(row.rejections for row in rows)
        return {"error": abs(lost) + abs(wrong) + sum(not row.complete for row in rows), "tolerance": 0}

    return Case(
        ours=merge,
        units=chunks,
        unit="chunk",
        agree=agree,
        compiled=False,
        goal_per_second=GOAL_PER_SECOND,
        extra=lambda: {"megabytes": sum(file.stat().st_size for file in out.rglob("*")) / 1e6},
    )


def write(folder: Path, chunks: int, task: int, tasks: int) -> int:
    """The folder of one task of a study; returns its rejections."""
    identity = {"method": "m", "design": "d", "n": 1000, "epsilon": 1.0, "level": 0.05}
    cells = [{"hash": f"{effect:016d}", "effect": float(effect), **identity} for effect in (0, 1)]
    config = {"cells": cells, "chunk": SIZE, "interval_width": None, "replicates": SIZE * chunks // 2}
    results.write_json(folder / results.CONFIG, config)
    rng = np.random.default_rng(task)
    records = []
    for number in range(task, chunks, tasks):
        cell, start = cells[number % 2]["hash"], SIZE * (number // 2)
        counts = tuple(rng.multinomial(SIZE, np.full(record_file.BINS, 1 / record_file.BINS)).tolist())
        records.append(Record(cell, start, start + SIZE, sum(counts[:5]), 0, counts, b"", 0.05))
    with RecordFile(folder / results.RECORDS / f"task_{task}_of_{tasks}") as file:
        file.begin(jax="0", commit="0")
        file.append(records)
    return sum(record.rejections for record in records)
