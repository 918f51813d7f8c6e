"""Which tests can be planned: what their specs say about power, resolved; how they are built for a simulation."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxdp import catalogue
from jaxdp._base.printed import printed
from jaxdp.data.dataset import ORDINAL, Column
from jaxdp.plan.setting import CLASSIC_COMPLEXITY, CODES, GROUPS, SCALED, Setting
from jaxdp.plan.survival import SurvivalSetting
from jaxdp.spec import Columns, Options, Planning

Formula = Callable[[Setting, int, Any, float, float], float]  # of setting, n, budget, effect, level
MIN_N = 20
CODED_LEVELS = 8  # of a Z that has to be coded, where nothing is said
MANY = 10**6  # records: what is refused with so many is refused with any number
FORMS = {Columns.SCORES: SCALED, Columns.CODES: CODES, Columns.GROUPS: GROUPS}


def narrow(setting: Setting) -> bool:
    """One continuous column of Z gets cells so narrow that means are constant in them; more of them do not."""
    return not setting.indicators and sum(column.levels == 0 for column in setting.z) <= 1


GAUSSIAN_FORMULA = {
    "never": lambda setting: False,
    "natural": lambda setting: not setting.scaled,
    "narrow": narrow,
    "always": lambda setting: True,
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """A test that can be planned: its entry of the catalogue, and what its spec says about planning."""

    entry: catalogue.Entry
    planning: Planning

    @property
    def name(self) -> str:
        """The test's name."""
        return self.entry.name

    @property
    def form(self) -> str:
        """The coding of its columns."""
        return FORMS[self.entry.spec.columns]

    @property
    def formula(self) -> Formula | None:
        """formula(setting, n, budget, effect, level) -> power; None where only simulation serves."""
        return formula_at(self.planning.formula)

    def reference(self, setting: Setting) -> Formula:
        """Power of the non-private test that its cost is measured against, where columns are those of the setting."""
        place = self.planning.reference if self.measures_as(setting) else Planning.reference
        found = formula_at(place)
        assert found is not None
        return found

    def measures_as(self, setting: Setting) -> bool:
        """Whether an effect of the setting is what this test estimates, and not one in sds beside log odds or rates."""
        return not self.planning.setting or type(setting) is type(self.setting)

    @property
    def setting(self) -> Setting:
        """The setting if none is given: a 2 x 2 table, two columns without Z or given codes, or continuous ones."""
        if self.planning.setting:
            return _at(self.planning.setting)()
        if self.planning.table:
            return Setting.table()
        if self.planning.coded_z:
            return Setting(z=(Column(ORDINAL, CODED_LEVELS),), scaled=True)
        return Setting(z=(), scaled=True) if self.planning.without_z else Setting()

    def granted(self, setting: Setting | None) -> Setting | None:
        """The setting for who names this test: with means linear in Z where the test rests on that."""
        if setting is None or not setting.scaled or not self.planning.linear:
            return setting
        return dataclasses.replace(setting, bent=False)

    def fitted(self, setting: Setting, n: int = 0) -> Setting:
        """The setting as the test takes n records: dates with times hour by hour if it takes them in no other way."""
        hourly = setting.hour_by_hour(n)
        accepts = self.entry.spec.accepts
        return hourly if accepts(hourly.domain(CODES)) and not accepts(setting.domain(CODES)) else setting

    def rests_on_lines(self, setting: Setting | None) -> bool:
        """Whether a plan for this setting counts on means that are linear in Z."""
        plain = type(setting) is Setting  # others say in `effect_is` what they count on
        return setting is not None and plain and bool(setting.z) and self.planning.linear and not setting.bent

    def applies(self, setting: Setting) -> bool:
        """Whether the test fits the columns; a known law of X given Z is there in the continuous model alone."""
        if type(setting) is not Setting and type(setting) is not type(self.setting):
            return False  # of outcomes that other tests' formulas and designs do not know
        known_law = not setting.scaled
        if self.entry.spec.needs and not known_law:
            return False
        if (self.planning.table or self.planning.without_z) and not setting.scaled:
            return False
        return self.entry.spec.accepts(self.fitted(setting).domain(CODES))

    def has_formula(self, setting: Setting, delta: float) -> bool:
        """Whether there is one for these columns and this noise."""
        if not self.measures_as(setting):
            return False
        fits = narrow(setting) or not self.planning.narrow
        fits = fits and (self.planning.unordered or not setting.indicators)
        noise = not delta or GAUSSIAN_FORMULA[self.planning.gaussian_formula](setting)
        return self.formula is not None and fits and noise and not setting.tails

    def make(self, setting: Setting, epsilon: float, level: float, n: int | None = None):
        """The test, by the one builder of the package."""
        setting = self.fitted(setting, n or 0)
        law = None
        if self.entry.takes("law"):
            from jaxdp.simulate.designs.confounder import SineLaw

            law = SineLaw(complexity=CLASSIC_COMPLEXITY)
        domain = setting.domain(self.form) if setting.scaled else None
        fields = {"accept_coarse_cells": True} if setting.accept_coarse_cells and self.entry.cls.cuts_z else {}
        options = Options(level=level, law=law, num_records=n, fields=fields)
        coded = setting.domain(CODES) if setting.scaled else None
        return self.entry.build(epsilon, domain, options, coded=coded)

    def refuse(self, setting: Setting) -> None:
        """Raises ValueError, which begins with the name, where the test itself would refuse to run."""
        if self.entry.cls.cuts_z:
            self.make(setting, 1.0, 0.05).refuse_coarse_cells(setting.z)
        elif self.entry.spec.rank(setting.domain(CODES)):
            design = setting.design(MANY, 0.0, self.form)
            rule = self.make(setting, 1.0, 0.05).validity(jax.eval_shape(design, jax.random.key(0)))
            if rule is not None:
                rule.require()


def formula_at(place: Any) -> Formula | None:
    """A formula, or the one at "file:function" of `jaxdp.plan`."""
    return place if place is None or callable(place) else _at(place)


def _at(place: str) -> Any:
    """What is at "file:name" of `jaxdp.plan`."""
    file, _, name = place.partition(":")
    return getattr(importlib.import_module(f"jaxdp.plan.{file}"), name)


@functools.cache
def plans() -> Mapping[str, Plan]:
    """All tests that the planner offers, by name: those whose spec says something about planning."""
    return {
        name: Plan(entry, entry.spec.planning)
        for name, entry in catalogue.entries().items()
        if entry.spec.planning is not None and set(entry.spec.needs) <= {"law"}
    }


def plan_of(method: str) -> Plan:
    """The plan of this name, or of "package.module:Class". Errors: ValueError for a test that has none, and one that
    lists the names for what is no test.
    """
    method = catalogue.own_name(method)
    if method in plans():
        return plans()[method]
    if method in catalogue.entries():
        if "loss" in catalogue.entries()[method].spec.needs:
            raise ValueError(
                f"{method} has no plan, since its loss is your own: plan logistic-regression (Y of two levels) or "
                "poisson-regression (counts), or simulate it with jaxdp.rejection_rate (docs/simulation.md)."
            )
        raise ValueError(f"{method} has no plan; these have one: {', '.join(plans())}.")
    if ":" not in method:
        raise ValueError(f"method must be one of {', '.join(plans())}, got {printed(method)}.")
    entry = catalogue.find(method)
    return Plan(entry, entry.spec.planning or Planning())


def setting_of(
    method: str | None, schema: Any, x: str | None, y: str | None, given: Any, fields: Mapping[str, Any]
) -> Setting | None:
    """The setting of a plan: of columns of a schema, or without one of the data that this method is made for.

    None where nothing is said. Errors: ValueError for fields that the setting does not have.
    """
    plan = None if method is None else plan_of(method)
    own = None if plan is None or not plan.planning.setting else type(plan.setting)
    if schema is None:
        if not fields:
            return None
        if own is None:
            raise ValueError(f"{', '.join(fields)} belongs to columns of a schema: give one, with x and y.")
        _require_fields(own, fields, ("covariates",))
        return own.of_fields(**fields)
    assert x is not None
    assert y is not None
    kind = own or SurvivalSetting
    _require_fields(kind, fields)
    setting = kind.of_schema(schema, x, y, given, **fields)
    return setting if plan is None else plan.granted(setting)


def _require_fields(kind: type[Setting], fields: Mapping[str, Any], more: tuple[str, ...] = ()) -> None:
    known = {field.name for field in dataclasses.fields(kind)} | set(more)
    if stray := [name for name in fields if name not in known]:
        raise ValueError(
            f"{', '.join(stray)}: no field of {kind.__name__}; logistic-regression and poisson-regression have some of "
            "their own."
        )


def default_method(setting: Setting | None = None, n: int = 0) -> str:
    """The test that `jaxdp test` takes for n records of this setting (None: the continuous model) if none is named."""
    return catalogue.default((setting or Setting()).of_records(n).domain(CODES)).name
