"""Rejections given one Z that is a time, a rounded amount or a label, through `jaxdp.test`, epsilon 1, level 0.05.

    python -m experiments.evidence.strata --quick | --full [--ccpp CCPP.csv] [--only NAME ...] [--out DIR]

Tables: a year of timestamps (season, a wave of the hour of 1.5 sd, weekday effects; or steps at rush hours, or during
working hours), dates with weekday effects, with those of every other week, or of the turn of the month, a day beside
its hour in 24 levels, incomes of which 30 % are rounded to 1000 and 15 % to 500 by people who differ by 1.2 sd in X and
Y; the same without effects of cycles or rounding; and the column V of CCPP (--ccpp) with X and Y of the group means of
AT and of PE by its value and noise of their sd within groups. X and Y are independent given Z where effect = 0, else
correlated by it. `schema`: what the schema says of Z; what switches an expansion off (`cycles = []`, `heaps = []`,
caliper = 4k/n) is what the package did before it knew of it. Writes strata.jsonl.
"""

import argparse
import csv
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.record import Recorder

START = np.datetime64("2023-01-01", "us")
EPSILON, LEVEL = 1.0, 0.05
WEEKDAYS = np.array([1.0, -0.5, 0.7, -1.0, 0.9, -0.8, 0.0])  # effects of Sunday (the first day of 2023) to Saturday
YEAR = ["2023-01-01", "2024-01-01"]


@dataclasses.dataclass(frozen=True)
class Cell:
    """One line of the table: a design and what is said of it."""

    name: str
    z: dict
    also: dict = dataclasses.field(default_factory=dict)  # further columns of Z
    fields: dict = dataclasses.field(default_factory=dict)


DATE = {"date": True, "bounds": YEAR}
HOUR = {"hour": {"kind": "ordinal", "levels": list(range(24))}}
CELLS = [
    *(
        Cell(name, DATE | {"cycles": cycles})
        for name in ("timestamps", "rush hours", "working hours")
        for cycles in ([], ["day", "week"])
    ),
    Cell("dates", DATE | {"cycles": []}),
    *(Cell(name, DATE | more) for name in ("fortnights", "month ends") for more in ({"cycles": []}, {})),
    Cell("dates", DATE),
    Cell("day and hour", {"bounds": [0, 365]}, HOUR, {"caliper": "4k/n"}),
    Cell("day and hour", {"bounds": [0, 365]}, HOUR),
    *(Cell("incomes", {"bounds": [0, 200_000], **more}) for more in ({"heaps": []}, {"heaps": [1000, 500]})),
    *(Cell("incomes", {"bounds": [0, 200_000], "step": 1, **more}) for more in ({"heaps": []}, {})),
    Cell("incomes", {"bounds": [0, 200_000]}),
    *(Cell("no cycle, timestamps", DATE | {"cycles": cycles}) for cycles in ([], ["day", "week"])),
    *(Cell("no cycle, dates", DATE | more) for more in ({"cycles": []}, {})),
    *(Cell("no effect of rounding", {"bounds": [0, 200_000], "step": 1, **more}) for more in ({"heaps": []}, {})),
    *(Cell("V", {"bounds": [20, 90], **more}) for more in ({"heaps": []}, {"labels": True}, {})),
]


@dataclasses.dataclass(frozen=True)
class Config:
    """The grid of one run; the data sets of a cell are drawn from `seed`, the noise of the r-th from key r."""

    num_records: tuple[int, ...] = (1000, 10_000)
    effects: tuple[float, ...] = (0.0, 0.125, 0.25)
    replicates: int = 300
    seed: int = 1


QUICK = Config(num_records=(1000,), effects=(0.0,), replicates=20)


def times(name: str, rng, n: int):
    """Days since the start of the year, and the common trend."""
    days = rng.uniform(0.0, 365.0, n)
    if name == "working hours":
        days = np.floor(days) + (8.0 + 10.0 * rng.beta(2.0, 2.0, n)) / 24.0
    if name.endswith("dates") or name in ("fortnights", "month ends"):
        days = np.floor(days)
    hour = 24.0 * (days % 1.0)
    trend = np.sin(2.0 * np.pi * days / 365.0)
    if name == "day and hour":
        return days, trend + 1.5 * np.sin(2.0 * np.pi * np.floor(hour) / 24.0)
    if name.startswith("no cycle"):
        return days, trend
    if name == "fortnights":
        return days, 1.5 * (days % 14.0 < 7.0)
    if name == "month ends":
        date = START.astype("datetime64[D]") + days.astype(int)
        of_month = (date - date.astype("datetime64[M]")).astype(int)
        return days, 1.5 * ((of_month >= 27) | (of_month < 2))
    trend += WEEKDAYS[np.floor(days).astype(int) % 7]
    if name in ("timestamps", "working hours"):
        trend += 1.5 * np.sin(2.0 * np.pi * hour / 24.0 + 0.7)
    if name == "rush hours":
        trend += 1.5 * ((np.abs(hour - 8.0) < 1.0) | (np.abs(hour - 17.5) < 1.5))
    return days, trend


def table(name: str, rng, n: int, effect: float, ccpp) -> dict[str, np.ndarray]:
    """x, y and z (and hour)."""
    own, other = rng.normal(size=(2, n))
    other = effect * own + np.sqrt(1.0 - effect**2) * other
    if name == "V":
        values, mean_x, mean_y, sd_x, sd_y = ccpp
        rows = rng.integers(0, len(values), n)
        return {"x": mean_x[rows] + sd_x * own, "y": mean_y[rows] + sd_y * other, "z": values[rows]}
    if name in ("incomes", "no effect of rounding"):
        z, kind = np.exp(rng.normal(10.5, 0.5, n)), rng.uniform(size=n)
        z = np.where(kind < 0.3, np.round(z, -3), np.where(kind < 0.45, 500.0 * np.round(z / 500.0), np.round(z)))
        trend = np.log(z) - 10.5 + 1.2 * (kind < 0.45) * (name == "incomes")
        return {"x": trend + own, "y": trend + other, "z": z}
    days, trend = times(name, rng, n)
    found = {"x": trend + own, "y": trend + other}
    if name == "day and hour":
        return {**found, "z": days, "hour": np.floor(24.0 * (days % 1.0))}
    return {**found, "z": START + np.round(days * 86_400e6).astype("timedelta64[us]")}


def read_ccpp(path: str):
    """V, and for each row the means of AT and PE of its value of V; the sds within values."""
    with open(path) as file:
        rows = list(csv.DictReader(file))
    v, at, pe = (np.array([float(row[name]) for row in rows]) for name in ("V", "AT", "PE"))
    _, group = np.unique(v, return_inverse=True)
    at_mean, pe_mean = (np.bincount(group, column) / np.bincount(group) for column in (at, pe))
    return v, at_mean[group], pe_mean[group], np.std(at - at_mean[group]), np.std(pe - pe_mean[group])


def rejections(cell: Cell, n: int, effect: float, replicates: int, seed: int, ccpp) -> dict:
    """How many data sets are rejected, and how many refused by the owner's channel."""
    limits = ([-10, 50], [400, 520]) if cell.name == "V" else ([-7, 9], [-7, 9])
    both = {name: {"kind": "continuous", "bounds": b} for name, b in zip("xy", limits, strict=True)}
    schema = jaxdp.Schema.from_dict({"columns": {**both, "z": {"kind": "continuous", **cell.z}, **cell.also}})
    k = jaxdp.BandGCM(epsilon=1.0).neighbors(n)
    fields = dict.fromkeys(cell.fields, 4.0 * k / n)
    rng, found, refused, answer = np.random.default_rng(seed), 0, 0, None
    for replicate in range(replicates):
        how = {"given": ["z", *cell.also], "epsilon": EPSILON, "fields": fields, "key": jax.random.key(replicate)}
        try:
            answer = jaxdp.test(table(cell.name, rng, n, effect, ccpp), x="x", y="y", schema=schema, **how)
        except ValueError as error:
            if "nothing was charged" not in str(error):
                raise
            refused += 1
        else:
            found += answer.p_value <= LEVEL
    rule = {} if answer is None else answer.content["level_rule"]
    method = None if answer is None else answer.content["method"]
    return {"rejections": found, "refused": refused, "method": method, "flags": rule.get("flags", [])}


def main(config: Config, ccpp=None, only=()) -> Iterator[dict]:
    """One row per cell."""
    for cell in CELLS:
        if (only and cell.name not in only) or (cell.name == "V" and ccpp is None):
            continue
        for n in config.num_records:
            for effect in config.effects:
                row = rejections(cell, n, effect, config.replicates, config.seed, ccpp)
                said = {**{k: v for k, v in cell.z.items() if k != "bounds"}, **cell.fields}
                yield {"z": cell.name, "schema": said, "n": n, "effect": effect, "replicates": config.replicates} | row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true")
    size.add_argument("--full", action="store_true")
    parser.add_argument("--ccpp", metavar="CSV", help="the UCI table of the combined cycle power plant")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("out/strata"))
    args = parser.parse_args()
    recorder = Recorder(args.out, "strata")
    for row in main(QUICK if args.quick else Config(), args.ccpp and read_ccpp(args.ccpp), args.only):
        print(recorder.add(**row))
