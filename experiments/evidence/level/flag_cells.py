"""How often answers of `jaxdp.test` carry each flag under true nulls, for flags that no other record shows.

    python -m experiments.evidence.level.flag_cells [--replicates 40] [--only METHOD ...]    # adds lines to the record

One line per method and cell: rejections at 0.05, the share of the answers that carry each flag, and whether the level
holds (`suite.verdict`). A null is put to every test that its line names, at numbers chosen to raise the flags of these
tests and not to raise them; `flags.py` makes the table of docs/evidence/flags.md of this record and the others. How
small an effect would have been found is left out of the answers: it says nothing about flags, and takes most of the
time.
"""

import argparse
import collections
import json
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import jax
import numpy as np

import jaxdp
from experiments.evidence.level import suite
from experiments.record import provenance
from jaxdp.ask import effects, level_rules

RECORD = Path(__file__).with_suffix(".jsonl")
BAND, CONTRAST = ("band-gcm", "feature-gcm"), ("contrast-gcm", "contrast-features")
CELLS = ("partition-gcm", "conditional-kendall", "conditional-kendall-paper", "conditional-spearman")
CELLS_OF_TWO = ("partition-gcm", "chosen-cells", "local-permutation")
RESIDUALS = ("linear-regression", "partial-correlation")
BLOCKS = ("subsample-aggregate", "test-of-tests")
DATES = np.datetime64("2023-01-01")


def real(low: float, high: float, **more) -> dict[str, Any]:
    return {"kind": "continuous", "bounds": [low, high], **more}


def levels(count: int) -> dict[str, Any]:
    return {"kind": "categorical", "levels": [str(level) for level in range(count)]}


WIDE = real(-8.0, 8.0)


class Cell(NamedTuple):
    """A true null and how it is asked. draw: (generator, n) -> columns."""

    name: str
    methods: tuple[str, ...]
    draw: Callable[..., Mapping[str, Any]]
    columns: Mapping[str, Any]
    n: int = 1000
    epsilon: float = 1.0
    given: tuple[str, ...] = ()
    y: tuple[str, ...] = ("y",)
    fields: Mapping[str, Any] = {}


def about(trend: Callable, spread: float = 0.5, *, low: float = -2.0, high: float = 2.0, count: int = 1) -> Callable:
    """X and Y follow the same trend of the columns z0, z1, ..., which are uniform."""

    def draw(rng, n):
        z = rng.uniform(low, high, (count, n))
        mean = trend(*z)
        noise = spread * rng.normal(size=(2, n))
        return {"x": mean + noise[0], "y": mean + noise[1], **{f"z{j}": one for j, one in enumerate(z)}}

    return draw


def sites(count: int) -> Callable:
    """Labels of 200 sites, each with a mean of its own for X and Y."""
    means = np.random.default_rng(7).normal(size=200)

    def draw(rng, n):
        z = rng.integers(0, 200, (count, n))
        noise = 0.5 * rng.normal(size=(2, n))
        return {"x": means[z[0]] + noise[0], "y": means[z[0]] + noise[1], **{f"z{j}": one for j, one in enumerate(z)}}

    return draw


def linear(explained: float, alike: float = 0.0) -> Callable:
    """Z explains that share of X and of Y; two columns of Z with a correlation of `alike`."""

    def draw(rng, n):
        z = rng.normal(size=(2, n))
        z[1] = alike * z[0] + (1.0 - alike**2) ** 0.5 * z[1]
        noise = (1.0 / explained - 1.0) ** 0.5 * rng.normal(size=(2, n))
        return {"x": z[0] + noise[0], "y": z[0] + noise[1], "z0": z[0], "z1": z[1]}

    return draw


def apart(rng, n):
    return {"x": rng.normal(size=n), "y": rng.normal(size=n)}


def groups(share: float) -> Callable:
    def draw(rng, n):
        return {"x": (rng.random(n) < share).astype(int).astype(str), "y": rng.normal(size=n)}

    return draw


def survival(rate: float) -> Callable:
    def draw(rng, n):
        event, censored = rng.exponential(1.0 / rate, n), rng.uniform(0.0, 2.0, n)
        return {
            "x": rng.integers(0, 2, n).astype(str),
            "time": np.minimum(event, censored),
            "event": (event <= censored).astype(int).astype(str),
        }

    return draw


def strata(rng, n):
    z = rng.choice(5, n, p=(0.5, 0.25, 0.15, 0.07, 0.03))
    return {
        "x": ((z + rng.integers(0, 2, n)) % 3).astype(str),
        "y": rng.integers(0, 4, n).astype(str),
        "z0": z.astype(str),
    }


def hours(amount: float) -> Callable:
    """A year of minutes; X and Y move with the hour by that much."""

    def draw(rng, n):
        minutes = rng.integers(0, 365 * 1440, n)
        mean = amount * np.sin(2.0 * np.pi * minutes / 1440.0)
        stamp = np.datetime_as_string(DATES + minutes.astype("timedelta64[m]"), unit="m")
        noise = rng.normal(size=(2, n))
        return {"x": mean + noise[0], "y": mean + noise[1], "z0": stamp}

    return draw


def fortnights(amount: float) -> Callable:
    """A year of days; X and Y are higher by that much in every second week."""

    def draw(rng, n):
        days = rng.integers(0, 365, n)
        noise = rng.normal(size=(2, n))
        mean = amount * (days % 14 < 7)
        return {"x": mean + noise[0], "y": mean + noise[1], "z0": (DATES + days).astype(str)}

    return draw


def single_days(amount: float) -> Callable:
    """A year of minutes; X and Y move with a normal number of their day, drawn anew for each, times that."""

    def draw(rng, n):
        minutes, of_day = rng.integers(0, 365 * 1440, n), rng.normal(size=365)
        mean = amount * of_day[minutes // 1440]
        stamp = np.datetime_as_string(DATES + minutes.astype("timedelta64[m]"), unit="m")
        noise = rng.normal(size=(2, n))
        return {"x": mean + noise[0], "y": mean + noise[1], "z0": stamp}

    return draw


def month_ends(amount: float) -> Callable:
    """A year of days; X and Y are higher by that much from the 25th of a month on."""

    def draw(rng, n):
        days = DATES + rng.integers(0, 365, n)
        noise = rng.normal(size=(2, n))
        late = (days - days.astype("datetime64[M]")).astype(int) >= 24
        return {"x": amount * late + noise[0], "y": amount * late + noise[1], "z0": days.astype(str)}

    return draw


def rounded(amount: float) -> Callable:
    """Incomes of which four in ten are rounded; X and Y of those are higher by that much."""

    def draw(rng, n):
        z, rounds = rng.lognormal(10.0, 0.6, n), rng.random(n) < 0.4
        noise = rng.normal(size=(2, n))
        z = np.where(rounds, np.round(z / 1000.0) * 1000.0, np.round(z))
        return {"x": amount * rounds + noise[0], "y": amount * rounds + noise[1], "z0": z}

    return draw


def _bend(z):
    return np.sin(3.0 * z)


def _wave(z):
    return np.sin(12.0 * z)


def _fast(z):
    return np.sin(200.0 * z)


def _plane(first, second):
    return 0.5 * (first + second)


def _steps(first, second):
    return 1.0 * (np.floor(4.0 * first) % 2)


def _both(*columns: str, **kinds) -> dict[str, Any]:
    return dict.fromkeys(("x", "y", *columns), WIDE) | kinds


BARE, Z = _both(), _both("z0")
FOUR, FAR = real(-4.0, 4.0), {name: real(-4e4, 4e4) for name in ("x", "y", "z0")}
BETWEEN, BOX = _both(z0=real(-2.0, 2.0)), _both(z0=real(-2.0, 2.0), z1=real(-2.0, 2.0))
SITE = _both(z0=real(0, 199, step=1))
SITES = _both(z0=real(0, 199, step=1), z1=real(0, 199, step=1))
YEAR = ["2023-01-01T00:00", "2024-01-01T00:00"]
STAMPS = _both(z0={"kind": "continuous", "date": "%Y-%m-%dT%H:%M", "bounds": YEAR, "cycles": []})
TIMES_OF_DAY = _both(z0={"kind": "continuous", "date": "%Y-%m-%dT%H:%M", "bounds": YEAR})
DAYS = _both(z0={"kind": "continuous", "date": True, "bounds": ["2023-01-01", "2023-12-31"]})
INCOMES = _both(z0=real(0, 200_000, heaps=[]))
NARROW_KERNEL = {"scale_x": 0.02, "scale_y": 0.02}
ACCEPTED = {"accept_coarse_cells": True}
ONE, TWO = ("z0",), ("z0", "z1")
TABLE = {"x": levels(3), "y": levels(4), "z0": levels(5)}
TIMES = {"x": levels(2), "time": real(0.0, 2.0), "event": levels(2)}
PAIR = {"x": levels(2), "y": real(-5.0, 5.0)}

CELLS_OF_RECORD = (
    Cell("gentle trend", BAND, about(_bend), BETWEEN, given=ONE),
    Cell("gentle trend, few records", BAND, about(_bend), BETWEEN, 150, 0.1, ONE),
    Cell("gentle trend, kernels of 1/50", BAND, about(_bend), BETWEEN, given=ONE, fields=NARROW_KERNEL),
    Cell("waves, kernels of 1/50", BAND, about(_fast, 0.02), BETWEEN, 2000, 4.0, ONE, fields=NARROW_KERNEL),
    Cell("200 sites as numbers", BAND, sites(1), SITE, given=ONE),
    Cell("plane", CONTRAST, about(_plane, count=2), BOX, given=TWO),
    Cell("plane, kernels of 1/50", CONTRAST, about(_plane, count=2), BOX, given=TWO, fields=NARROW_KERNEL),
    Cell("steps", CONTRAST, about(_steps, count=2), BOX, 4000, 1.0, TWO),
    Cell("200 sites as numbers", CONTRAST, sites(2), SITES, 4000, 1.0, TWO),
    Cell("gentle trend", CELLS, about(_bend), BETWEEN, given=ONE, fields=ACCEPTED),
    Cell("steep trend", CELLS, about(_wave), BETWEEN, 4000, 1.0, ONE, fields=ACCEPTED),
    Cell("steep trend, few records", CELLS, about(_wave, 0.1), BETWEEN, 600, 1.0, ONE, fields=ACCEPTED),
    Cell("plane", CELLS_OF_TWO, about(_plane, 2.0, count=2), BOX, given=TWO, fields=ACCEPTED),
    Cell("steep plane", CELLS_OF_TWO, about(_plane, 0.1, count=2), BOX, 4000, 4.0, TWO, fields=ACCEPTED),
    Cell("half and half", ("kruskal-wallis",), groups(0.5), PAIR),
    Cell("5 in 100", ("kruskal-wallis",), groups(0.05), PAIR, 3000),
    Cell("5 in 100, few records", ("kruskal-wallis",), groups(0.05), PAIR, 500, 0.5),
    *(
        Cell(name, RESIDUALS, linear(explained, alike), dict.fromkeys(("x", "y", *given), FOUR), n, epsilon, given)
        for name, explained, alike, given in (
            ("z explains half", 0.5, 0.0, ONE),
            ("z explains 0.95", 0.95, 0.0, ONE),
            ("z correlated 0.99", 0.5, 0.99, TWO),
        )
        for n, epsilon in ((1000, 1.0), (5000, 1.0), (5000, 4.0))
    ),
    Cell("nothing given, wide bounds", RESIDUALS, apart, {"x": real(-40, 40), "y": real(-40, 40)}, 3000),
    Cell("half have events", ("log-rank",), survival(0.5), TIMES, y=("time", "event")),
    Cell("few have events", ("log-rank",), survival(0.02), TIMES, 500, 0.5, y=("time", "event")),
    Cell("uneven strata", ("stratified-table",), strata, TABLE, 4000, given=ONE),
    Cell("uneven strata, few records", ("stratified-table",), strata, TABLE, 150, given=ONE),
    Cell("gentle trend", ("test-of-tests",), about(_bend), BETWEEN, 6000, 1.0, ONE),
    Cell("gentle trend", ("private-gcm", "private-gcm-paper"), about(_bend), BETWEEN, 500, 1.0, ONE),
    Cell("steep trend, little noise", ("private-gcm", "private-gcm-paper"), about(_wave, 0.1), BETWEEN, 500, 10.0, ONE),
    Cell("nothing in common", ("test-of-tests",), about(lambda z: 0.0 * z), BETWEEN, 6000, 1.0, ONE),
    Cell("nothing given, blocks of 8", BLOCKS, apart, BARE, 808, fields={"num_blocks": 101}),
    Cell("z explains half", ("winsorised-partial-correlation",), linear(0.5), Z, 4000, given=ONE),
    Cell("bend", ("winsorised-partial-correlation",), about(lambda z: z**2), BETWEEN, 4000, given=ONE),
    Cell("bounds of 40 000 sds", ("winsorised-partial-correlation",), linear(0.5), FAR, 4000, given=ONE),
    Cell("half and half", ("winsorised-mean-difference",), groups(0.5), PAIR),
    Cell("bounds of 40 000 sds", ("winsorised-mean-difference",), groups(0.5), {"x": levels(2), "y": real(-4e4, 4e4)}),
    Cell("no cycle, cycles = []", ("band-gcm",), hours(0.0), STAMPS, 2000, given=ONE),
    Cell("a daily cycle, cycles = []", ("band-gcm",), hours(1.0), STAMPS, 2000, given=ONE),
    Cell("fortnights alike, few records a day", ("band-gcm",), fortnights(0.0), DAYS, 500, given=ONE),
    Cell("fortnights differ, few records a day", ("band-gcm",), fortnights(5.0), DAYS, 150, 8.0, ONE),
    Cell("turn of the month, few records a day", ("band-gcm",), month_ends(2.0), DAYS, 500, given=ONE),
    Cell("single days alike", ("contrast-gcm",), single_days(0.0), TIMES_OF_DAY, 4000, given=ONE),
    Cell("single days differ", ("contrast-gcm",), single_days(1.0), TIMES_OF_DAY, 4000, given=ONE),
    Cell("rounders alike, heaps = []", ("band-gcm",), rounded(0.0), INCOMES, 2000, given=ONE),
    Cell("rounders differ, heaps = []", ("band-gcm",), rounded(3.0), INCOMES, 2000, given=ONE),
)


def measure(cell: Cell, method: str, replicates: int) -> dict[str, Any]:
    """The line of the record: how often nulls are rejected, and which flags answers carry."""
    raised: collections.Counter[str] = collections.Counter()
    noted: collections.Counter[str] = collections.Counter()
    doubtful: set[str] = set()
    rejections, shown, started = 0, 0, time.monotonic()
    schema = jaxdp.Schema.from_dict({"columns": dict(cell.columns)})
    for replicate in range(replicates):
        seed = zlib.crc32(f"{cell.name}/{cell.n}/{cell.epsilon}/{replicate}".encode())
        drawn = cell.draw(np.random.default_rng(seed), cell.n)
        told = jaxdp.test(
            {name: drawn[name] for name in cell.columns},
            schema=schema,
            x="x",
            y=list(cell.y),
            given=list(cell.given),
            epsilon=cell.epsilon,
            method=method,
            fields=dict(cell.fields),
            key=jax.random.key(seed),
        )
        rejections += bool(told.dependence_found)
        shown += told.interval is not None
        flags = (told.content["level_rule"] or {}).get("flags", ())
        raised.update(flags)
        noted.update(list(told.content["effect_notes"]))
        doubtful.update(set(flags) & set(level_rules.DOUBTS))
    verdict = suite.verdict(rejections, replicates, [])
    return {
        "method": method,
        "cell": cell.name,
        "n": cell.n,
        "epsilon": cell.epsilon,
        "replicates": replicates,
        "rejections": rejections,
        "intervals": shown,
        "verdict": suite.INSIDE if verdict == suite.INSIDE else suite.FLAGGED if doubtful else suite.OUTSIDE,
        "flags": {flag: round(count / replicates, 4) for flag, count in sorted(raised.items())},
        "notes": {note: round(count / replicates, 4) for note, count in sorted(noted.items())},
        "seconds": round(time.monotonic() - started, 1),
        **provenance(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=())
    asked = parser.parse_args()
    known = [json.loads(line) for line in RECORD.read_text().splitlines()] if RECORD.exists() else []
    done = {(row["method"], row["cell"], row["n"], row["epsilon"]) for row in known}
    with mock.patch.object(effects, "detectable_by_release", return_value={}):
        record(asked, done)


def record(asked: argparse.Namespace, done: set) -> None:
    """Measures what is not yet done, cell by cell."""
    for cell in CELLS_OF_RECORD:
        for method in cell.methods:
            if (method, cell.name, cell.n, cell.epsilon) in done or (asked.only and method not in asked.only):
                continue
            row = measure(cell, method, asked.replicates)
            with RECORD.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(
                row["method"],
                row["cell"],
                row["n"],
                row["rejections"],
                row["verdict"],
                row["flags"],
                row["seconds"],
                flush=True,
            )


if __name__ == "__main__":
    main()
