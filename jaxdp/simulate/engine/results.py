"""Folders of simulation results: configuration, record files of one or several tasks, and the rows they add up to.

    DIR/config.json            the grid, the chunk size, the stopping rule
    DIR/records/task_0_of_1    checked records, one file per task (`record_file`)
    DIR/results.csv            one row per setting

Rows, pictures and the page are functions of the first two.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp._base import csv_files
from jaxdp._base.display import listed, shown
from jaxdp.report import written
from jaxdp.simulate.engine import record_file
from jaxdp.simulate.engine.record_file import Record
from jaxdp.simulate.engine.replicates import RejectionRate

CONFIG, RECORDS, TABLE, PARQUET = "config.json", "records", "results.csv", "results.parquet"
PROGRAMS = "programs"  # of config.json: a hash of the caller's functions by setting
IDENTITY = ("method", "design", "n", "epsilon", "effect")  # columns that every table starts with


@dataclasses.dataclass(frozen=True, repr=False)
class Row:
    """One setting: its identity, its counts, the Wilson 95 % interval of its rejection probability.

    stopped: the stopping rule ended it. complete: all wanted replicates are there (or it stopped).
    failures: replicates whose p-value was NaN; they count as not rejected. seconds: summed over chunks.
    """

    identity: Mapping[str, Any]
    hash: str
    rejections: int
    replicates: int
    failures: int
    seconds: float
    stopped: bool
    complete: bool
    histogram: np.ndarray
    p_values: np.ndarray

    def __repr__(self) -> str:
        named = listed(f"{name}={shown(value)}" for name, value in self.identity.items())
        state = "complete" if self.complete else "unfinished"
        low, high = self.interval
        rate = f"{self.rate:.4g} ({low:.4g} to {high:.4g}) of {self.replicates} simulated"
        return f"Row({named}: rejects {rate}, {state})"

    @property
    def level(self) -> float:
        """Significance level."""
        return float(self.identity["level"])

    @property
    def rate(self) -> float:
        """Share of rejections, NaN without replicates."""
        return self.rejections / self.replicates if self.replicates else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson interval; (0, 1) without replicates."""
        if not self.replicates:
            return 0.0, 1.0
        return RejectionRate(self.rejections, self.replicates, self.level).interval()

    @property
    def is_null(self) -> bool:
        """Whether the setting simulates independence."""
        return self.identity.get("effect") == 0

    def as_dict(self) -> dict[str, Any]:
        """What a CSV line holds."""
        low, high = self.interval
        counts = {
            "rejections": self.rejections,
            "replicates": self.replicates,
            "rate": self.rate,
            "low": low,
            "high": high,
            "failures": self.failures,
            "seconds": round(self.seconds, 3),
            "complete": self.complete,
            "stopped": self.stopped,
            "cell": self.hash,
        }
        first = {name: self.identity[name] for name in IDENTITY if name in self.identity}
        return {**first, **{name: value for name, value in self.identity.items() if name not in first}, **counts}


class RejectionCounts:
    """Counts of a setting in chunk order, and whether its stopping rule has ended it.

    The rule looks at whole chunks in order, from the first on, so that neither resuming nor the number of devices
    changes where a setting stops: after the first chunk with which the Wilson interval is at most `width` wide.
    """

    def __init__(self, level: float, chunk: int, width: float | None):
        self.level, self.chunk, self.width = level, chunk, width
        self.stop = self.rejections = 0
        self.stopped = False

    def add(self, record: Record) -> bool:
        """Counts the record if it is the next one; returns whether the setting goes on."""
        if self.stopped or record.start != self.stop:
            return not self.stopped
        self.stop, self.rejections = record.stop, self.rejections + record.rejections
        if self.width is not None and self.stop % self.chunk == 0:
            low, high = RejectionRate(self.rejections, self.stop, self.level).interval()
            self.stopped = high - low <= self.width
        return not self.stopped


def write_json(path: Path, content: Any) -> None:
    """Replaces a JSON file in one step: readers see the old or the new one."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replaces a text file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with fresh.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def read_config(folder: str | os.PathLike) -> dict[str, Any]:
    """config.json of a folder. Errors: ValueError if the folder holds no simulation."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise ValueError(f"{folder} holds no simulation: it has no {CONFIG}.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        found = isinstance(config, dict) and {"cells", "chunk", "replicates"} <= config.keys()
    except ValueError:
        found = False
    if not found:
        raise ValueError(f"{path} is not the configuration of a simulation: run `jaxdp simulate` again.")
    return config


def programs(configs: Sequence[tuple[str | os.PathLike, Mapping[str, Any]]]) -> dict[str, Any]:
    """What config.json says of the caller's functions, of some folders together; {} where there are none.

    Errors: ValueError where one setting has several.
    """
    found: dict[str, str] = {}
    for folder, config in configs:
        for setting in config["cells"]:
            one = config.get(PROGRAMS, {}).get(setting["hash"], "")
            if found.setdefault(setting["hash"], one) != one:
                raise ValueError(
                    f"{folder} holds counts of another function that is called {setting.get('design')}, or does not "
                    "say of which: its code, its closure, a global that it uses or the version of Python is another. "
                    "Name another folder."
                )
    named = {setting: one for setting, one in found.items() if one}
    return {PROGRAMS: named} if named else {}


def is_simulation(folder: str | os.PathLike) -> bool:
    """Whether a folder was written by a simulation."""
    try:
        read_config(folder)
    except (ValueError, OSError):
        return False
    return True


def record_files(folder: str | os.PathLike) -> list[Path]:
    return sorted(path for path in (Path(folder) / RECORDS).glob("*") if path.is_file())


def read_records(folders: Iterable[str | os.PathLike]) -> list[Record]:
    """All records of some folders, sorted, each replicate once.

    Errors: ValueError if two records of the same replicates differ: versions or machines disagree.
    """
    return _each_once(record for contents in _contents(folders) for record in contents.records)


def _contents(folders: Iterable[str | os.PathLike]) -> Iterator[record_file.Contents]:
    """What every record file of some folders holds."""
    return (record_file.read(path) for folder in folders for path in record_files(folder))


def _each_once(found: Iterable[Record]) -> list[Record]:
    """`read_records` of records in any order."""
    kept: list[Record] = []
    for record in sorted(found, key=lambda record: (record.cell, record.start, -record.stop)):
        last = kept[-1] if kept and kept[-1].cell == record.cell else None
        if last is None or record.start >= last.stop:
            kept.append(record)
        elif record.stop > last.stop:
            raise ValueError(
                f"replicates {record.start} to {last.stop} of setting {record.cell} overlap: the folders used "
                "different chunk sizes and cannot be merged."
            )
        elif record.start == last.start and record.stop == last.stop and _counts(record) != _counts(last):
            raise ValueError(
                f"two records of replicates {record.start} to {record.stop} of setting {record.cell} differ: they come "
                "from different versions or machines; keep one of them."
            )
    return kept


def _counts(record: Record) -> tuple:
    # not the histogram: a p-value at the edge of a bin may fall on either side where programs round differently
    return record.rejections, record.failures


def runs(folder: str | os.PathLike) -> list[dict[str, Any]]:
    """Versions, device and commit of every run that wrote into a folder."""
    return [run for contents in _contents([folder]) for run in contents.runs]


def summarise(config: Mapping[str, Any], records: Sequence[Record]) -> list[Row]:
    """One row per setting of the configuration, in its order, from sorted records."""
    by_setting: dict[str, list[Record]] = {}
    for record in records:
        by_setting.setdefault(record.cell, []).append(record)
    return [_row(config, setting, by_setting.get(setting["hash"], [])) for setting in config["cells"]]


def _row(config: Mapping[str, Any], setting: Mapping[str, Any], records: Sequence[Record]) -> Row:
    identity = {name: value for name, value in setting.items() if name != "hash"}
    tally = RejectionCounts(float(identity["level"]), config["chunk"], config.get("interval_width"))
    for record in records:
        if not tally.add(record):
            records = [earlier for earlier in records if earlier.stop <= tally.stop]
            break
    replicates = sum(record.stop - record.start for record in records)
    kept = bool(records) and all(record.p_values for record in records)
    return Row(
        identity=identity,
        hash=setting["hash"],
        rejections=sum(record.rejections for record in records),
        replicates=replicates,
        failures=sum(record.failures for record in records),
        seconds=sum(record.seconds for record in records),
        stopped=tally.stopped,
        complete=tally.stopped or replicates >= config["replicates"],
        histogram=np.sum([record.histogram for record in records], axis=0, dtype=np.int64)
        if records
        else np.zeros(record_file.BINS, np.int64),
        p_values=np.concatenate([record_file.unpack(record.p_values) for record in records]) if kept else np.zeros(0),
    )


def read_rows(folder: str | os.PathLike) -> list[Row]:
    """The rows of a folder, from its records."""
    return summarise(read_config(folder), read_records([folder]))


def write_table(folder: str | os.PathLike, rows: Sequence[Row]) -> Path:
    """results.csv, and where pyarrow is installed results.parquet: one line per setting."""
    lines = [row.as_dict() for row in rows]
    if importlib.util.find_spec("pyarrow"):
        histograms = [row.histogram.tolist() for row in rows]
        written.put(Path(folder), PARQUET, _write_parquet, lines, histograms)
    else:
        written.drop(Path(folder), PARQUET)
    return write_csv(Path(folder), TABLE, lines)


def _write_parquet(path: Path, lines: Sequence[Mapping[str, Any]], histograms: Sequence[Sequence[int]]) -> None:
    """Typed columns: numbers stay numbers, what a setting lacks is null, lists and tables are JSON as in the CSV."""
    import pyarrow as pa
    from pyarrow import parquet

    names = list(dict.fromkeys(name for line in lines for name in line))
    columns = {name: [_text(line.get(name)) for line in lines] for name in names}
    parquet.write_table(pa.table({**columns, "histogram": pa.array(histograms, pa.list_(pa.int64()))}), path)


def write_csv(folder: Path, name: str, lines: Sequence[Mapping[str, Any]]) -> Path:
    """A CSV file with the union of the lines' columns, in order of appearance."""
    names = list(dict.fromkeys(name for line in lines for name in line))
    return written.put_text(
        folder, name, csv_files.lines(names, ([_text(line.get(name)) for name in names] for line in lines))
    )


def _text(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list | tuple) else value


def merge(folders: Sequence[str | os.PathLike], out: str | os.PathLike) -> list[Row]:
    """One folder from several that simulated with the same chunk size: all settings, every replicate once.

    Errors: ValueError if the folders disagree on the chunk size, the stopping rule or a result, or if `out` holds
    records already.
    """
    configs = [read_config(folder) for folder in folders]
    for name in ("chunk", "interval_width"):
        values = {config.get(name) for config in configs}
        if len(values) != 1:
            raise ValueError(f"the folders have different {name.replace('_', ' ')}s {sorted(map(str, values))}.")
    if record_files(out):
        raise ValueError(f"{out} holds records already: merge into a new folder.")
    if (Path(out) / CONFIG).exists():
        raise ValueError(f"{out} holds a file {CONFIG} already: merge into a new folder.")
    settings = {setting["hash"]: setting for config in configs for setting in config["cells"]}
    most = max(config["replicates"] for config in configs)
    together = programs(list(zip(folders, configs, strict=True)))
    config = {**configs[0], "cells": list(settings.values()), "replicates": most, **together}
    found = list(_contents(folders))  # each file is read once
    records = _each_once(record for contents in found for record in contents.records)
    write_json(Path(out) / CONFIG, config)
    with record_file.RecordFile(Path(out) / RECORDS / "task_0_of_1") as file:
        file.begin_all(run for contents in found for run in contents.runs)
        file.append(records)
    rows = summarise(config, records)
    write_table(out, rows)
    return rows
