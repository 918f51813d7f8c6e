"""Grids of simulations that can be interrupted at any time, split over tasks, and merged.

The replicates of a setting are cut into chunks; a finished chunk is a record in a file that survives `kill -9`
(`record_file`). Replicate r of a setting has the key fold_in(fold_in(root, setting), r), so that counts depend
neither on the batch size nor on devices, processes, tasks or interruptions.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxdp._base import check
from jaxdp._base.bounded import power_of_two
from jaxdp._base.layout import device_list
from jaxdp.report import written
from jaxdp.simulate.engine import record_file, results
from jaxdp.simulate.engine.chunks import AHEAD, Chunks
from jaxdp.simulate.engine.record_file import Record, RecordFile
from jaxdp.simulate.engine.settings import Setting, require_distinct

DEFAULT_CHUNK, ACCELERATOR_CHUNK = 1000, 100_000
MAX_RECORDS = 100_000  # of a folder: beyond, reading and merging take longer than most grids
SECONDS_BETWEEN_WRITES = 0.5


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a grid is run.

    replicates: wanted per setting. chunk: replicates per record; part of the folder's configuration.
    interval_width: a setting stops after the first chunk with which its Wilson interval is at most this wide.
    keep_p_values: store them (4 bytes each). task, of: this task does every of-th chunk, from `task` on; with an
    interval width every of-th setting, since the rule needs a setting's chunks in order.
    """

    replicates: int
    chunk: int = DEFAULT_CHUNK
    interval_width: float | None = None
    keep_p_values: bool = False
    task: int = 0
    of: int = 1

    def __post_init__(self):
        check.at_least(1, replicates=self.replicates, chunk=self.chunk, of=self.of)
        check.at_least(0, task=self.task)
        if self.task >= self.of:
            raise ValueError(f"task must be below the number of tasks {self.of}, got {self.task}; tasks count from 0.")
        if self.replicates >= 2**31:
            raise ValueError(f"replicates must be below 2^31, got {self.replicates}; use several seeds.")
        if self.interval_width is not None:
            check.in_range(0.0, 1.0, interval_width=self.interval_width)


def auto_chunk(replicates: int, settings: int, folder: str | os.PathLike, platform: str) -> int:
    """Replicates per record: that of a folder which is resumed, else by platform and number of records.

    A chunk is one launch, which is short on a CPU and must be long on an accelerator; whole thousands, so that a
    folder has at most `MAX_RECORDS`.
    """
    if results.is_simulation(folder):
        return int(results.read_config(folder)["chunk"])
    least = DEFAULT_CHUNK if platform == "cpu" else min(ACCELERATOR_CHUNK, replicates)
    return max(least, 1000 * -(-replicates * settings // (1000 * MAX_RECORDS)))


def run(
    settings: Sequence[Setting],
    folder: str | os.PathLike,
    plan: Plan,
    *,
    resume: bool = False,
    batch_size: int | str = "auto",
    memory: int | None = None,
    devices: jax.sharding.Mesh | Sequence[Any] | None = None,
    advance: Callable[[Setting, int], None] = lambda setting, replicates: None,
) -> list[results.Row]:
    """Simulates a grid into a folder and returns one row per setting of the folder, as far as records are there.

    resume: go on with what the folder holds; new settings and more replicates may be added. Without it a folder with
    records of this task is refused. batch_size, memory: as in `Chunks`. devices: default all, of every process under
    `jax.distributed` (process 0 writes; the others return no rows). advance: called with (setting, replicates) as
    chunks are counted.
    Errors: ValueError on public mistakes, before anything is simulated.
    """
    folder, devices = Path(folder), device_list(devices) or tuple(jax.devices())
    chunks = Chunks(size_of(plan), batch_size=batch_size, memory=memory, devices=devices)
    _check(settings, folder, chunks)
    path = folder / results.RECORDS / f"task_{plan.task}_of_{plan.of}"
    with _writer(path, folder, settings, plan, resume) as writer:
        if writer.file is not None:
            writer.file.begin(**environment(devices), processes=jax.process_count())
        for place, setting in enumerate(settings):
            _run_setting(setting, place, plan, chunks, writer, advance)
    if writer.file is None:
        return []
    rows = results.read_rows(folder)
    results.write_table(folder, rows)
    return rows


def size_of(plan: Plan) -> int:
    """Room for the replicates of a launch, which computes as many of them as are wanted."""
    return min(plan.chunk, power_of_two(plan.replicates))


def prepare(settings: Sequence[Setting], folder: str | os.PathLike, plan: Plan, *, resume: bool = False) -> None:
    """Checks a grid and writes its configuration, so that tasks can be started that only resume.

    Errors: ValueError on public mistakes, and for a folder that holds records, of any task, without `resume`.
    """
    folder = Path(folder)
    _check(settings, folder, Chunks(plan.chunk))
    if not resume and any(record_file.read(path).records for path in results.record_files(folder)):
        raise ValueError(f"{folder} holds records already: resume it, or name another folder.")
    _write_config(folder, settings, plan, resume)


def _check(settings: Sequence[Setting], folder: Path, chunks: Chunks) -> None:
    """Raises before anything is written: a test that does not fit its design leaves no folder."""
    require_distinct(settings)
    written.claim(folder, [results.TABLE, results.PARQUET])
    if not (folder / results.CONFIG).exists():
        chunks.check(settings)


def _run_setting(setting: Setting, place: int, plan: Plan, chunks: Chunks, writer: _Writer, advance) -> None:
    """The chunks of one setting that are missing and belong to this task, in order, some ahead of the writing."""
    tally = results.RejectionCounts(setting.level, plan.chunk, plan.interval_width)
    done = writer.done.get(setting.hash, [])
    for record in done:
        tally.add(record)
    advance(setting, sum(record.stop - record.start for record in done))
    in_flight: list[tuple[int, int, Any]] = []

    def settle() -> None:
        start, stop, running = in_flight.pop(0)
        record = chunks.finish(setting, start, stop, running, plan.keep_p_values)
        if tally.stopped:  # begun before the rule ended the setting
            return
        tally.add(record)
        writer.add(record)
        advance(setting, stop - start)

    for start, stop in missing(done, place, plan):
        if tally.stopped:
            break
        in_flight.append((start, stop, chunks.start(setting, start, stop)))
        if len(in_flight) >= AHEAD:
            settle()
    while in_flight:
        settle()


def missing(done: Sequence[Record], place: int, plan: Plan) -> Iterator[tuple[int, int]]:
    """(start, stop) of the replicates of a task that no record holds, within whole chunks, in order."""
    per_setting = -(-plan.replicates // plan.chunk)
    held: dict[int, list[tuple[int, int]]] = {}
    for record in done:
        held.setdefault(record.start // plan.chunk, []).append((record.start, record.stop))
    for number in range(per_setting):
        turn = place if plan.interval_width is not None else place * per_setting + number
        if turn % plan.of != plan.task:
            continue
        start, end = number * plan.chunk, min((number + 1) * plan.chunk, plan.replicates)
        for begun, ended in sorted(held.get(number, [])):
            if begun > start:
                yield start, min(begun, end)
            start = max(start, ended)
        if start < end:
            yield start, end


class _Writer:
    """Buffers records and writes them now and then; on other processes than the first it only forgets them."""

    def __init__(self, file: RecordFile | None, done: dict[str, list[Record]]):
        self.file, self.done = file, done
        self._waiting: list[Record] = []
        self._written = time.monotonic()

    def add(self, record: Record) -> None:
        self._waiting.append(record)
        if time.monotonic() - self._written >= SECONDS_BETWEEN_WRITES:
            self.flush()

    def flush(self) -> None:
        # forgotten first: an interrupt may come once they are on disk, and leaving must not write them again
        waiting, self._waiting = self._waiting, []
        if self.file is not None:
            self.file.append(waiting)
        self._written = time.monotonic()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_) -> None:
        try:
            self.flush()
        finally:
            if self.file is not None:
                self.file.close()


def _writer(path: Path, folder: Path, settings: Sequence[Setting], plan: Plan, resume: bool) -> _Writer:
    """The open file of this task and what is done already, the same on every process."""
    if jax.process_index() != 0:
        shared = _broadcast({})
        if "failed" in shared:
            raise ValueError(f"process 0 could not begin: {shared['failed']}")
        return _Writer(None, _grouped([Record(**fields) for fields in shared["records"]]))
    file = None
    try:
        if path.exists() and not resume and record_file.read(path).records:
            raise ValueError(f"{folder} holds records of this task already: resume it, or name another folder.")
        _write_config(folder, settings, plan, resume)
        file = RecordFile(path)
        done = results.read_records([folder])
    except BaseException as problem:
        if file is not None:
            file.close()
        _broadcast({"failed": str(problem)})  # the others must not wait for ever
        raise
    plain = [dataclasses.asdict(record) for record in done] if jax.process_count() > 1 else []
    _broadcast({"records": [{name: fields[name] for name in fields if name != "p_values"} for fields in plain]})
    return _Writer(file, _grouped(done))


def of_cell(records: Sequence[Record], setting: Setting) -> list[Record]:
    """Those of one setting."""
    return [record for record in records if record.cell == setting.hash]


def _grouped(records: Sequence[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.cell, []).append(record)
    return groups


def _broadcast(content: dict[str, Any]) -> dict[str, Any]:
    """What process 0 has, on every process."""
    if jax.process_count() == 1:
        return content
    from jax.experimental import multihost_utils

    text = np.frombuffer(json.dumps(content).encode(), np.uint8)
    size = int(multihost_utils.broadcast_one_to_all(np.int32(text.size)))
    padded = np.zeros(size, np.uint8)
    padded[: min(size, text.size)] = text[:size]
    return json.loads(np.asarray(multihost_utils.broadcast_one_to_all(padded), np.uint8).tobytes())


def _write_config(folder: Path, settings: Sequence[Setting], plan: Plan, resume: bool) -> None:
    """Writes config.json, or checks it against what is there."""
    listed = [{"hash": setting.hash, **setting.identity} for setting in settings]
    fixed = {"chunk": plan.chunk, "interval_width": plan.interval_width}
    config: dict[str, Any] = {**fixed, "cells": listed, "replicates": plan.replicates}
    named = {setting.hash: setting.program for setting in settings if setting.program}
    config |= {results.PROGRAMS: named} if named else {}
    if (folder / results.CONFIG).exists():
        before = results.read_config(folder)
        for name, value in fixed.items():
            if before[name] != value:
                raise ValueError(
                    f"{folder} was simulated with {name} {before[name]}, not {value}: keep it, or start anew."
                )
        hashes = {setting["hash"] for setting in before["cells"]}
        fresh = [setting for setting in listed if setting["hash"] not in hashes]
        if fresh and not resume:
            raise ValueError(f"{folder} holds another grid: name another folder, or resume to add settings to it.")
        config |= results.programs([(folder, before), (folder, config)])
        config["cells"] = [*before["cells"], *fresh]
        config["replicates"] = max(plan.replicates, before["replicates"])
        if config == before:
            return
    results.write_json(folder / results.CONFIG, config)


def environment(devices: Sequence[Any]) -> dict[str, Any]:
    """Versions, device, commit: stored with every run."""
    import jaxlib

    root = Path(__file__).parent
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return {
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "backend": devices[0].platform,
        "device": devices[0].device_kind,
        "devices": len(devices),
        "commit": git.stdout.strip() or None,
        "machine": platform.machine(),
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
