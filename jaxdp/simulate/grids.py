"""Grids of simulations by one call: `jaxdp.simulate.grid`, and the settings that `jaxdp simulate` runs too."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from jaxdp import catalogue
from jaxdp._base.layout import device_list
from jaxdp.core import PrivateQuery
from jaxdp.data.columns import Domain
from jaxdp.data.schema import Schema
from jaxdp.simulate.designs import by_name
from jaxdp.simulate.designs.shaped import from_schema
from jaxdp.simulate.engine import grid as engine
from jaxdp.simulate.engine import pages, results
from jaxdp.simulate.engine.estimate import Estimate, estimated
from jaxdp.simulate.engine.fingerprints import fingerprint, program
from jaxdp.simulate.engine.replicates import Design
from jaxdp.simulate.engine.settings import Setting
from jaxdp.spec import Options

AUTO = "auto"


class _Grid[**P, R]:
    """The call, with what reads its folders beside it."""

    def __init__(self, function: Callable[P, R]):
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **options: P.kwargs) -> R:
        return self._function(*arguments, **options)

    @staticmethod
    def load(folder: str | os.PathLike) -> list[results.Row]:
        """The rows of a folder, finished or not, from its records. Errors: ValueError where it holds no simulation."""
        return results.read_rows(folder)

    @staticmethod
    def plot(rows: Sequence[results.Row]) -> Any:
        """The rejection rates of rows against effect (or n, or epsilon), with bands: what `rejection_rates.png` shows.

        Errors: ValueError where no two rows differ in one of these, and without the `plot` extra.
        """
        from jaxdp.report.picture import Picture
        from jaxdp.report.simulation import power_curves

        axis, lines = pages.curves(rows)
        if not lines:
            raise ValueError("there is nothing to draw: give rows with replicates that differ in effect, n or epsilon.")
        return Picture.drawn(power_curves, axis, lines, rows[0].level, pages.RATES_TITLE)


@_Grid
def grid(
    tests: Any,
    designs: Any,
    *,
    n: int | Sequence[int],
    epsilon: float | Sequence[float] = 1.0,
    effect: float | Sequence[float] = 0.0,
    replicates: int = 1000,
    folder: str | os.PathLike,
    level: float = 0.05,
    seed: int = 0,
    precision: str = "float32",
    fields: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
    chunk: int | str = AUTO,
    interval_width: float | None = None,
    keep_p_values: bool = False,
    task: int = 0,
    of: int = 1,
    batch_size: int | str = AUTO,
    memory: int | None = None,
    devices: Any = None,
    estimate: bool = False,
) -> list[results.Row] | Estimate:
    """Rejection rates of every test on every design at every n, epsilon and effect: `jaxdp simulate` in Python.

        rows = jaxdp.simulate.grid(
            ["partition-gcm", jaxdp.PrivateGCM(epsilon=1.0, ridge=20.0)], "sine",
            n=[300, 1000], epsilon=[0.5, 1], effect=[0, 0.2], replicates=10_000, folder="out/power")
        rows = jaxdp.simulate.grid.load("out/power")
        jaxdp.simulate.grid.plot(rows)

    tests: names, classes, or tests whose epsilon the grid replaces; one, or a sequence. designs: names of
    `jaxdp simulate --list`, or functions (key, n, effect, ...) -> Data for which effect 0 is the null. fields: of all
    named tests. constants: of all designs. folder: chunks of replicates go there as they are counted; the same call
    goes on with what the folder holds, adds settings and replicates, and counts none twice. chunk, interval_width,
    keep_p_values, task, of: as in `jaxdp simulate`; chunk "auto" is that of the folder, else chosen for the platform.
    batch_size: replicates in flight, halved where their memory cannot be allocated. memory: limit in bytes. estimate:
    compile, time one launch of each program, and return what the rest will take; nothing is written.
    Returns the rows that `results.csv` and, where pyarrow is installed, `results.parquet` in the folder hold.
    Errors: ValueError on public mistakes, before anything is simulated.
    """
    settings = make_settings(
        _listed(tests),
        [named(design, constants) for design in _listed(designs)],
        n=_listed(n),
        epsilon=_listed(epsilon),
        effect=_listed(effect),
        level=level,
        seed=seed,
        precision=precision,
        fields=fields,
    )
    devices = device_list(devices) or tuple(jax.devices())
    if chunk == AUTO:
        chunk = engine.auto_chunk(replicates, len(settings), folder, devices[0].platform)
    plan = engine.Plan(replicates, int(chunk), interval_width, keep_p_values, task, of)
    how: dict[str, Any] = {"batch_size": batch_size, "memory": memory, "devices": devices}
    if estimate:
        return estimated(settings, folder, plan, **how)
    return engine.run(settings, Path(folder), plan, resume=True, **how)


def _listed(value: Any) -> list[Any]:
    alone = isinstance(value, str | PrivateQuery) or callable(value) or not isinstance(value, Iterable)
    return [value] if alone else list(value)


@dataclasses.dataclass(frozen=True)
class NamedDesign:
    """A design of a grid. at(n, effect, entry of a test) -> the design, the law of X given Z, more of its identity."""

    name: str
    at: Callable[[int, float, Any], tuple[Design, Any, dict[str, Any]]]


def named(design: Any, constants: Mapping[str, Any] | None = None) -> NamedDesign:
    """A design by its name, or a function (key, n, effect, ...) -> Data."""
    found = by_name.design(design) if isinstance(design, str) else by_name.of_function(design)
    chosen = dict(constants or {})

    def at(n: int, effect: float, entry: Any):
        law = found.law(found.settings(chosen)) if found.law else None
        return found.build(n, effect, chosen), law, {"design_options": chosen} if chosen else {}

    return NamedDesign(found.name, at)


def shaped(schema: Schema, roles: Mapping[str, Sequence[str]], constants: Mapping[str, Any]) -> NamedDesign:
    """Data shaped like a schema. roles: columns of x, y and given."""

    def at(n: int, effect: float, entry: Any):
        coded = entry.spec.columns.coded
        known = _as_taken(schema, roles, n, entry)
        design = from_schema(known, n, effect=effect, codes=coded, **{**roles, **constants})
        rules = {name: repr(known.rule(name)) for names in roles.values() for name in names}
        told = {**roles, "columns": rules, **({"design_options": dict(constants)} if constants else {})}
        return Design.of(design), None, told

    return NamedDesign("schema", at)


def _as_taken(schema: Schema, roles: Mapping[str, Sequence[str]], n: int, entry: Any) -> Schema:
    """The schema with dates with times hour by hour, where the test takes them in no other way."""
    hourly = schema.hour_by_hour(roles["given"], n)

    def accepted(known: Schema) -> bool:
        x, y, given = (roles[role] for role in ("x", "y", "given"))
        return entry.spec.accepts(Domain(known.columns_of(x), known.columns_of(y), known.columns_of((), given)))

    return hourly if hourly.rules != schema.rules and accepted(hourly) and not accepted(schema) else schema


def make_settings(
    tests: Sequence[Any],
    designs: Sequence[NamedDesign],
    *,
    n: Sequence[int],
    epsilon: Sequence[float],
    effect: Sequence[float],
    level: float = 0.05,
    seed: int = 0,
    precision: str = "float32",
    fields: Mapping[str, Any] | None = None,
) -> list[Setting]:
    """The settings of a grid, in the order of the arguments. A test without noise has no budget to sweep."""
    shape_of = _remember_last(lambda design: jax.eval_shape(design, jax.eval_shape(jax.random.key, 0)))
    settings = []
    # 1 and 1.0 are one setting: its replicates follow from the text of its identity
    numbers = [operator.index(count) for count in n], [float(budget) for budget in epsilon], [float(e) for e in effect]
    for test, design, count, budget, size in itertools.product(map(_of, tests), designs, *numbers):
        built, law, told = design.at(count, size, test.entry)
        with jax.enable_x64(precision == "float64"):
            made = test.build(budget, lambda drawn=built: shape_of(drawn).domain, law, level, count, fields)
            made = catalogue.with_balanced_groups(made, count)
        if not test.swept and budget != numbers[1][0]:
            continue
        config = {"method": test.name, "design": design.name, "n": count, "epsilon": budget, "effect": size, **told}
        config |= test.identity(fields)
        if not test.swept:
            config["epsilon"] = None
        settings.append(Setting(config, made, built, float(level), precision, seed, program=program(built)))
    return settings


class _Named:
    """A test by its name in the catalogue or its class."""

    def __init__(self, name: str, entry: catalogue.Entry):
        self.name, self.entry = name, entry
        self.swept = self.entry.spec.private

    def build(self, epsilon, domain, law, level, n, fields):
        law = law if self.entry.takes("law") else None
        return self.entry.build(epsilon, domain(), Options(level=level, law=law, num_records=n, fields=fields or {}))

    def identity(self, fields) -> dict[str, Any]:
        return {"method_options": dict(fields)} if fields else {}


class _Given:
    """A test as it was made, but for its budget."""

    def __init__(self, test: Any):
        self.test, self.entry = test, catalogue.Entry(catalogue.spec_of(test), type(test))
        self.name = self.entry.name
        self.swept = self.entry.spec.private and getattr(test, "epsilon", None) is not None

    def build(self, epsilon, domain, law, level, n, fields):
        return dataclasses.replace(self.test, epsilon=epsilon) if self.swept else self.test

    def identity(self, fields) -> dict[str, Any]:
        return {"test": fingerprint(dataclasses.replace(self.test, epsilon=1.0) if self.swept else self.test)}


def _of(test: Any) -> _Named | _Given:
    if isinstance(test, PrivateQuery):
        return _Given(test)
    if isinstance(test, type):
        entry = catalogue.Entry(catalogue.spec_of(test), test)
        known = catalogue.entries().get(entry.name) == entry
        return _Named(entry.name if known else f"{test.__module__}:{test.__qualname__}", entry)
    name = catalogue.own_name(test) if isinstance(test, str) else test
    return _Named(name, catalogue.find(name))


def _remember_last(function):
    """The last answer, kept while the argument stays the same object."""
    kept: list[Any] = [None, None]

    def call(argument):
        if kept[0] is not argument:
            kept[:] = [argument, function(argument)]
        return kept[1]

    return call
