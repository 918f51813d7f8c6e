"""Tables, pictures and report.html of simulation folders, as functions of their records."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxdp.report import simulation as pictures
from jaxdp.report import written
from jaxdp.report.html import REPORT_NAME, write_report
from jaxdp.simulate.engine import results
from jaxdp.simulate.engine.results import Row

AXES = ("effect", "n", "epsilon")  # what a curve may run along, in this order of preference
RESULT, COMPARISON = "result.json", "comparison"
PICTURES = P_VALUES, QUANTILES, RATES = "null_p_values.png", "null_qq.png", "rejection_rates.png"
RATES_TITLE = "rejection rates, Wilson 95 % bands"
FILES = (*PICTURES, f"{COMPARISON}.png", RESULT, results.TABLE, results.PARQUET, f"{COMPARISON}.csv", REPORT_NAME)


def write_pages(folder: str | os.PathLike, title: str = "jaxdp simulation") -> Path:
    """Builds results.csv, the pictures, result.json and report.html again; returns the page's path."""
    folder = Path(folder)
    rows = results.read_rows(folder)
    results.write_table(folder, rows)
    for old in PICTURES:
        written.drop(folder, old)
    level = rows[0].level
    nulls = [
        pictures.Nulls(label(row, rows), row.histogram, row.p_values) for row in rows if row.is_null and row.replicates
    ]
    if nulls:
        written.put_picture(folder, P_VALUES, pictures.null_p_values, nulls)
        written.put_picture(folder, QUANTILES, pictures.null_quantiles, nulls)
    axis, lines = curves(rows)
    if lines:
        written.put_picture(folder, RATES, pictures.power_curves, axis, lines, level, RATES_TITLE)
    written.put(folder, RESULT, results.write_json, _result(folder, rows, nulls, title))
    return write_report(folder, title, FILES)


def _result(folder: Path, rows: Sequence[Row], nulls, title: str) -> dict[str, Any]:
    ran = results.runs(folder)
    beyond = [row for row in rows if row.is_null and row.interval[0] > row.level]
    answer = f"{len(rows)} settings, {sum(row.replicates for row in rows)} replicates."
    if nulls:
        answer += (
            f" The interval of {len(beyond)} of {len(nulls)} null settings lies above the level"
            f"{': ' + '; '.join(label(row, rows) for row in beyond[:3]) if beyond else ''}."
        )
    if any(not row.complete for row in rows):
        answer += " Not finished: run it again with --resume."
    if any(row.failures for row in rows):
        answer += f" {sum(row.failures for row in rows)} p-values are NaN and count as not rejected."
    return {
        "title": title,
        "answer": answer,
        "mode": "simulation",
        "kolmogorov_p": {null.label: null.kolmogorov()[1] for null in nulls},
        "replicates": sum(row.replicates for row in rows),
        "seconds": round(sum(row.seconds for row in rows), 3),
        "runs": len(ran),
        "last_run": ran[-1] if ran else {},
    }


def curves(rows: Sequence[Row]) -> tuple[str, dict[str, list[pictures.Point]]]:
    """The axis with more than one value that comes first, and the settings as lines along it."""
    found = [axis for axis in AXES if len({row.identity.get(axis) for row in rows} - {None}) > 1]
    if not found:
        return "", {}
    axis = found[0]
    lines: dict[str, list[pictures.Point]] = {}
    for row in rows:
        if row.replicates and row.identity.get(axis) is not None:
            point = pictures.Point(float(row.identity[axis]), row.rate, *row.interval)
            lines.setdefault(label(row, rows, without=axis), []).append(point)
    return axis, lines


def label(row: Row, rows: Sequence[Row], without: str = "") -> str:
    """What tells a setting from the others: the parts of its identity that vary."""
    parts = []
    names = [*results.IDENTITY, *(name for name in row.identity if name not in results.IDENTITY)]
    for name in names:
        value = row.identity.get(name)
        varies = len({repr(other.identity.get(name)) for other in rows}) > 1
        if name != without and value is not None and (varies or name == "method"):
            parts.append(f"{value}" if name in ("method", "design") else f"{name} {_plain(value)}")
    return ", ".join(parts)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_plain(item)}" for name, item in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def compare(folder: str | os.PathLike, against: str | os.PathLike) -> list[dict[str, Any]]:
    """Cells that two folders share, by everything but seed and precision: writes comparison.csv and .png into `folder`.

    Each line: both rates, their difference with a 95 % interval (Newcombe's from the two Wilson intervals), the
    two-sided p-value of the difference (pooled normal), and whether the settings are the same experiment (same seed),
    in which case only versions and machines can make them differ.
    Errors: ValueError if the folders share no setting.
    """
    left, right = results.read_rows(folder), results.read_rows(against)
    known = {_query(row): row for row in right if row.replicates}
    pairs = [(row, known[_query(row)]) for row in left if row.replicates and _query(row) in known]
    if not pairs:
        raise ValueError(f"{folder} and {against} share no setting: nothing can be compared.")
    lines, points = [], []
    for one, other in pairs:
        low, high = _newcombe(one, other)
        lines.append(
            {
                **{name: one.identity[name] for name in results.IDENTITY if name in one.identity},
                "rate": one.rate,
                "other_rate": other.rate,
                "difference": one.rate - other.rate,
                "low": low,
                "high": high,
                "p_value": _p_value(one, other),
                "replicates": one.replicates,
                "other_replicates": other.replicates,
                "same_experiment": one.hash == other.hash,
                "cell": one.hash,
            }
        )
        points.append(pictures.Point(0.0, one.rate - other.rate, low, high))
    folder = Path(folder)
    results.write_csv(folder, f"{COMPARISON}.csv", lines)
    labels = [label(one, [pair[0] for pair in pairs]) for one, _ in pairs]
    names = (folder.resolve().name, Path(against).resolve().name)
    written.put_picture(folder, f"{COMPARISON}.png", pictures.differences, labels, points, names)
    return lines


def _query(row: Row) -> str:
    shared = {name: value for name, value in row.identity.items() if name not in ("seed", "precision")}
    return json.dumps(shared, sort_keys=True)


def _newcombe(one: Row, other: Row) -> tuple[float, float]:
    (l1, h1), (l2, h2) = one.interval, other.interval
    difference = one.rate - other.rate
    below = math.hypot(one.rate - l1, h2 - other.rate)
    above = math.hypot(h1 - one.rate, other.rate - l2)
    return difference - below, difference + above


def _p_value(one: Row, other: Row) -> float:
    total = one.replicates + other.replicates
    pooled = (one.rejections + other.rejections) / total
    variance = pooled * (1.0 - pooled) * (1.0 / one.replicates + 1.0 / other.replicates)
    return math.erfc(abs(one.rate - other.rate) / math.sqrt(2.0 * variance)) if variance > 0 else 1.0
