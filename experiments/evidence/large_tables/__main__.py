"""Measures tests on Parquet beyond memory against DuckDB and pandas; cases that are on record are not measured again.

    python -m experiments.evidence.large_tables --rows 1e7 --folder FOLDER   (for its data, outside the repository)
    python -m experiments.evidence.large_tables --table                      (of the record)

Each case runs in a process of its own, so that its peak memory is its own. Rates by processor time hold on a busy
machine, those by wall time only on a quiet one; `load` says which it was.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RECORD = Path(__file__).parent / "results.json"
SPEC = {
    "columns": {
        **{name: {"kind": "continuous", "bounds": [-1, 2]} for name in "xyz"},
        "g": {"kind": "ordinal", "levels": list(range(16))},
        "b": {"kind": "binary", "levels": [0, 1]},
    }
}
CODED = {f"c{number}": {"kind": "binary", "levels": [0, 1]} for number in range(20)}
CODED |= {name: {"kind": "ordinal", "levels": [0, 1, 2]} for name in ("c3", "c11")}
PART = 10**6
TURNS = 5  # of sums and of DuckDB, in turn; the best of each counts
MEMORY = "2GB"
MOMENTS = "count(*), sum({0}), sum({1}), sum({0}*{0}), sum({1}*{1}), sum({0}*{1})"
CASES = {  # what is asked, the same sums in SQL, and in pandas
    "partition-gcm-codes": (
        {"x": "x", "y": "y", "given": "g", "method": "partition-gcm"},
        f"select g, {MOMENTS.format('x', 'y')} from t group by g",
    ),
    "partition-gcm-million-cells": (
        {"x": "x", "y": "y", "given": "z", "method": "partition-gcm", "num_cells": 10**6},
        f"select cast(floor((z + 1)/3*1000000) as int) c, {MOMENTS.format('x', 'y')} from t group by c",
    ),
    "winsorised-partial-correlation": (
        {"x": "x", "y": "y", "given": "z", "method": "winsorised-partial-correlation"},
        f"select {MOMENTS.format('x', 'y')}, sum(z), sum(z*z), sum(x*z), sum(y*z) from t",
    ),
    "conditional-kendall": (
        {"x": "b", "y": "g", "method": "conditional-kendall"},
        "select b, g, count(*) from t group by b, g",
    ),
    "noisy-table": ({"x": "b", "y": "g", "method": "noisy-table"}, "select b, g, count(*) from t group by b, g"),
}


def make(folder: Path, rows: int) -> Path:
    """The table of five columns as Parquet files of a million rows, all rows drawn."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    place = folder / f"five-{rows}"
    place.mkdir(parents=True, exist_ok=True)
    for number in range(-(-rows // PART)):
        path, size = place / f"{number:04d}.parquet", min(PART, rows - number * PART)
        if path.exists():
            continue
        rng = np.random.default_rng(number)
        g, z = rng.integers(0, 16, size), rng.random(size)
        shared = 0.5 * z + 0.02 * g
        columns = {name: shared + 0.2 * rng.normal(size=size) for name in "xy"}
        b = (rng.random(size) < 0.3 + 0.02 * g).astype(np.int8)
        table = pa.table(columns | {"z": z, "g": g.astype(np.int8), "b": b})
        parquet.write_table(table, path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    return place


def make_csv(folder: Path, rows: int) -> Path:
    """The same table as one CSV file, plain as engines write it."""
    import pyarrow as pa
    from pyarrow import csv, dataset

    path = folder / f"five-{rows}.csv"
    if path.exists():
        return path
    source = dataset.dataset(make(folder, rows), format="parquet")
    bare = csv.WriteOptions(quoting_style="none")
    with csv.CSVWriter(path.with_suffix(".part"), source.schema, write_options=bare) as writer:
        for batch in source.to_batches():
            writer.write_table(pa.Table.from_batches([batch]))
    path.with_suffix(".part").rename(path)
    return path


def make_coded(folder: Path, rows: int) -> Path:
    """Twenty coded columns, each depending on the one before it and on the one five before."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    place = folder / f"coded-{rows}"
    place.mkdir(parents=True, exist_ok=True)
    for number in range(-(-rows // PART)):
        path, size = place / f"{number:04d}.parquet", min(PART, rows - number * PART)
        if path.exists():
            continue
        rng, found = np.random.default_rng(1000 + number), []
        for column, rule in enumerate(CODED.values()):
            parents = sum((found[k] for k in (column - 1, column - 5) if k >= 0), np.zeros(size))
            found.append((rng.random(size) < 0.25 + 0.2 * parents).astype(np.int8))
            if len(rule["levels"]) == 3:
                found[-1] += (rng.random(size) < 0.3).astype(np.int8)
        parquet.write_table(pa.table(dict(zip(CODED, found, strict=True))), path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    return place


def measured(work) -> tuple[dict, object]:
    """Wall and processor seconds of work()."""
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return {
        "wall_s": round(time.perf_counter() - wall, 3),
        "processor_s": round(time.process_time() - processor, 3),
        "load": round(os.getloadavg()[0], 1),
    }, found


def answer(place: Path, case: str) -> dict:
    """The whole answer, every pass of it, with compiled programs as a first call finds them."""
    import jax

    import jaxdp

    asked, _ = CASES[case]
    found, result = measured(
        lambda: jaxdp.test(
            str(place), schema=SPEC, epsilon=1.0, key=jax.random.key(1), memory=MEMORY, force=True, **asked
        )
    )
    return found | {"p_value": float(result.p_value), "passes": len(result.release.earlier) + 1}


def sums(place: Path, case: str) -> dict:
    """One pass of the statistic's sums, after its stages and compiled before, in turn with DuckDB's own aggregates."""
    import duckdb
    import jax

    from jaxdp import catalogue, core
    from jaxdp.data import streamed
    from jaxdp.data.schema import Schema
    from jaxdp.noise.source import source_from_key
    from jaxdp.spec import Options

    asked = dict(CASES[case][0])
    entry = catalogue.find(asked.pop("method"))
    x, y, given = ((asked.pop(name),) if name in asked else () for name in ("x", "y", "given"))
    columns = streamed.Columns(Schema.from_dict(SPEC), x, y, given, entry.spec.columns.coded)
    stream = streamed.stream(str(place), columns, memory=2 * 10**9)
    duckdb.sql(f"create view t as select * from read_parquet('{place}/*.parquet')")
    with jax.enable_x64(True):
        test = entry.within(1.0, stream, Options(num_records=stream.num_records, **asked))
        first = stream.blank()
        core.release_opened(test, source_from_key(jax.random.key(0)), first)
        query = core.specialize(test, stream)
        while isinstance(query, core.Sequential):
            released = core.release_opened(query.first, source_from_key(jax.random.key(0)), stream)
            query = core.specialize(query.then(query.second, query.first, released), stream)
        core.summed(query, stream)  # compiles
        turns = [
            (
                measured(lambda: jax.block_until_ready(core.summed(query, stream)))[0],
                measured(lambda: duckdb.sql(CASES[case][1]).fetchall())[0],
            )
            for _ in range(TURNS)
        ]
    ours, theirs = (min((turn[k] for turn in turns), key=lambda one: one["processor_s"]) for k in (0, 1))
    return ours | {
        "duckdb_processor_s": theirs["processor_s"],
        "rate_to_duckdb": round(theirs["processor_s"] / ours["processor_s"], 2),
    }


def duckdb(place: Path, case: str) -> dict:
    """DuckDB's own aggregates of the same sums, in a fresh process."""
    import duckdb

    duckdb.sql(f"create view t as select * from read_parquet('{place}/*.parquet')")
    found, _ = measured(lambda: duckdb.sql(CASES[case][1]).fetchall())
    return found


def text(path: Path, case: str) -> dict:
    """One pass over all cells of a CSV file, from bytes to codes."""
    from jaxdp.data import readers, streamed
    from jaxdp.data.schema import Schema

    columns = streamed.Columns(Schema.from_dict(SPEC), ("x",), ("y",), ("z", "g", "b"))

    def work():
        pieces = readers.pieces(str(path), columns.names, in_batches=True)
        return sum(len(columns.coded(piece).x) for piece in pieces)

    found, rows = measured(work)
    return found | {"rows_read": rows, "file_mb": path.stat().st_size // 10**6}


def pandas(place: Path, case: str) -> dict:
    """pandas: the columns read, products formed, grouped."""
    import pandas

    asked = CASES[case][0]
    names = [asked[name] for name in ("x", "y", "given") if name in asked]

    def work():
        frame = pandas.read_parquet(place, columns=names)
        if case in ("conditional-kendall", "noisy-table"):
            return frame.groupby(names).size()
        if case == "winsorised-partial-correlation":
            return frame.to_numpy().T @ frame.to_numpy(), frame.sum()
        if "cells" in case:
            frame["z"] = np.floor((frame["z"] + 1) / 3 * 1e6).astype(np.int32)
        frame["xx"], frame["yy"], frame["xy"] = frame["x"] ** 2, frame["y"] ** 2, frame["x"] * frame["y"]
        return frame.groupby(names[2])[["x", "y", "xx", "yy", "xy"]].agg("sum"), frame.groupby(names[2]).size()

    found, _ = measured(work)
    return found


def search(place: Path, case: str) -> dict:
    """Discovery on twenty coded columns."""
    import jax

    import jaxdp

    found, graph = measured(
        lambda: jaxdp.discover(
            str(place),
            schema={"columns": CODED},
            epsilon=1.0,
            method=case,
            key=jax.random.key(2),
            memory=MEMORY,
            force=True,
        )
    )
    return found | {"edges": len(graph.edges), "method": graph.method}


def equality(place: Path, case: str) -> dict:
    """The released numbers of chunks against those of the table in memory, with the same key and so the same noise."""
    import jax

    import jaxdp

    asked, _ = CASES[case]
    values = []
    for memory in ("100MB", "200GB"):
        key = jax.random.key(1)
        result = jaxdp.test(str(place), schema=SPEC, epsilon=1.0, key=key, memory=memory, force=True, **asked)
        values.append([np.asarray(leaf, float) for leaf in jax.tree.leaves(result.release.value)])
    apart = max(float(np.max(np.abs(one - other))) for one, other in zip(*values, strict=True))
    sensitivities = jax.tree.leaves(result.release.sensitivity, is_leaf=lambda node: hasattr(node, "error"))
    rounding = max(float(np.max(part.error)) for part in sensitivities)
    return {"largest_difference": apart, "bound": rounding + type(result.test).lattice * result.release.num_records}


KINDS = {
    "answer": answer,
    "sums": sums,
    "duckdb": duckdb,
    "pandas": pandas,
    "search": search,
    "equality": equality,
    "text": text,
}
MADE = {"search": make_coded, "text": make_csv}


def wanted(rows: int):
    """(kind, case, rows) in the order in which they are measured."""
    yield from (("equality", case, 10**6) for case in CASES)
    kinds = ("sums", "pandas") if rows <= 10**7 else ("answer", "duckdb")
    yield from ((kind, case, rows) for case in reversed(CASES) for kind in kinds)
    if rows <= 10**7:
        yield "text", "five columns", rows
        yield "search", "max_min_pc", rows


def table(rows: list[dict]) -> str:
    """The record as a table for the page: rates by processor time, in million rows a second, and peaks."""
    known = {(row["kind"], row["case"], row["rows"]): row for row in rows}
    lines = [
        "| test | sums | DuckDB | pandas | answer of 1e8 rows, processor s | peak MB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for case in CASES:
        ours, other = (known.get((kind, case, 10**7), {}) for kind in ("sums", "pandas"))
        theirs = 10**7 / ours["duckdb_processor_s"] if ours else None
        rates = [ours.get("rows_per_processor_s"), theirs, other.get("rows_per_processor_s")]
        whole = known.get(("answer", case, 10**8), {})
        cells = ["" if rate is None else f"{rate / 1e6:.1f}" for rate in rates]
        cells += [f"{whole['processor_s']:.0f}" if whole else "", str(whole.get("peak_mb", ""))]
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="prints the record as a table, and measures nothing")
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**7)
    parser.add_argument("--folder", type=Path, help="of the tables that are made; needed to measure")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "CASE"), help="measures one case and prints it")
    args = parser.parse_args()
    if args.folder is None and not args.table:
        parser.error("--folder is needed to measure")
    if args.one:
        kind, case = args.one
        place = MADE.get(kind, make)(args.folder, args.rows)
        found = KINDS[kind](place, case)
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps(found))
        return
    rows = json.loads(RECORD.read_text()) if RECORD.exists() else []
    if args.table:
        print(table(rows))
        return
    known = {(row["kind"], row["case"], row["rows"]) for row in rows}
    for kind, case, count in wanted(args.rows):
        if (kind, case, count) in known:
            continue
        MADE.get(kind, make)(args.folder, count)
        words = ["--rows", str(count), "--folder", str(args.folder), "--one", kind, case]
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name.removesuffix(".__main__"), *words], capture_output=True, text=True
        )
        if done.returncode:
            print(kind, case, count, done.stderr.strip().splitlines()[-1], file=sys.stderr)
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        if "processor_s" in found:
            passes = found.get("passes", 1)
            found["rows_per_processor_s"] = round(passes * count / found["processor_s"])
            found["rows_per_wall_s"] = round(passes * count / found["wall_s"])
        rows.append({"kind": kind, "case": case, "rows": count, **found})
        print(rows[-1], flush=True)
        RECORD.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
