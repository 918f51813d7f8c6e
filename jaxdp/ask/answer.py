"""The answer to a query about columns: a result with its query, and what result.json says of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from jaxdp import null_laws
from jaxdp._base import p_values
from jaxdp.ask import detectable, effects, level_rules
from jaxdp.ask.cautions import cautions
from jaxdp.ask.table_answer import TableAnswer, versions
from jaxdp.core import Result
from jaxdp.data import conditioning
from jaxdp.data.columns import Column
from jaxdp.data.records import levels_of
from jaxdp.independence import effect_sizes
from jaxdp.randomness import keys
from jaxdp.report.sections import describe_doubts
from jaxdp.spec import DEPENDENCE

MAX_VALUES_WRITTEN = 100


@dataclasses.dataclass(frozen=True, repr=False)
class Answer(TableAnswer, Result):
    """A test's result with the query, the verdict and the method in words; noisy and public values only.

    content: what result.json holds. test: the test that ran, with its public fields. schema: of the query.
    """

    files: ClassVar = ("result.json", "picture.png", "report.html")
    page: ClassVar = "Private independence test"

    content: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    test: Any = None
    schema: Any = None

    @property
    def dependence_found(self) -> bool:
        """Whether the p-value is at most the significance level."""
        return self.content["p_value"] <= self.content["level"]

    def page_title(self) -> str:
        """Of a test of one column its question."""
        return super().page_title() if self.test.spec.one_column is None else self.content["title"]

    def draw(self, path: Path) -> None:
        """The curves of the release, the released statistic against its null law, or the p-value on its scale.

        Below it the effect's interval.
        """
        import jax

        from jaxdp.independence.null_curve import null_curve
        from jaxdp.report import curves, figures

        content = self.content
        shared = {
            "p_value": content["p_value"],
            "level": content["level"],
            "title": content["title"],
            "effect": effects.drawn(content, self.test.no_effect),
            "simulation": content["mode"] == "simulation",
        }
        if "curves" in content:
            curves.draw(path, content["curves"], **shared)
            return
        with jax.enable_x64(True):  # as the p-value was computed
            curve = null_curve(self.test, self)
            if curve is None:
                figures.p_value_scale(path, **shared)
            else:
                figures.null_law(path, curve.statistic, curve.tail, label=curve.label, **shared)

    def missed(self, schema: str = "S.toml") -> dict[str, Any]:
        """Where no dependence was found: which effect would have been, with power 0.8, by the planner; public numbers.

        schema: its path, for the command that is told where the planner needs simulations.
        Returns detectable_effect (None where it needs them) and power, the sentence; {} where dependence was found or
        the planner has no formula or design of the test for such columns.
        """
        content = self.content
        if self.dependence_found or not math.isfinite(content["epsilon"]):
            return {}
        doubts = (content["level_rule"] or {}).get("sentence", "")
        if any(effect_sizes.NOTHING in text for text in (*content["effect_notes"].values(), doubts)):
            return detectable.nothing()
        if content.get("detectable_effect") == math.inf and null_laws.never_so_small(self.test, content["level"]):
            return detectable.below_ranks(self.test.num_null, content["level"])
        if "detectable_effect" in content:
            x, y = (tuple(self.schema.rule(name) for name in content[part]) for part in "xy")
            size = effects.size_of(self.test.spec, x, y)
            return detectable.by_release(content["detectable_effect"], size, content["level"])
        return detectable.by_plan(content, self.schema, schema)


def answer_of(result: Result, query: Any, test: Any, data: Any, *, recorded: bool = False) -> Answer:
    """The result as an answer to the query. recorded: an account was charged."""
    told, result = result.effect, effects.in_own_units(result, query)
    unsized = told is not None and result.effect is None
    fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    # plain numbers: float64 arrays of JAX would be cut to float32 wherever x64 is off
    fields |= {name: effects.numbers(fields[name]) for name in ("p_value", "effect", "interval")}
    fields["p_value"] = p_values.floored(fields["p_value"])
    with keys.precision(result.mode):  # where programs of the release are kept: elsewhere they are compiled anew
        content = describe(result, query, test, data, recorded=recorded, unsized=unsized)
    return Answer(**fields, content=content, test=test, schema=query.schema)


def describe(
    result: Result, query: Any, test: Any, data: Any, *, recorded: bool = False, unsized: bool = False
) -> dict[str, Any]:
    """What result.json holds: released and public values only.

    recorded: an account was charged. unsized: the test has an effect, but this release says nothing about its size.
    """
    import numpy as np

    from jaxdp import catalogue
    from jaxdp.core import public_shapes

    cost, level = result.cost, query.settings.level
    p_value = p_values.floored(float(result.p_value))
    smallest = p_values.smallest_of(test, p_value)
    statistic = np.asarray(result.statistic, float)
    found = p_value <= level
    given = [query.schema.rule(name) for name in query.given]
    raised = conditioning.flags(given, data.x.shape[0], bool(found)) | level_rules.released_flags(test, data, result)
    rule = level_rules.with_flags(level_rules.level_rule(test, data, query), raised, found)
    return {
        "title": query.sentence,
        "answer": verdict(found, p_value, level, smallest, rule["flags"] if rule else (), query.entry.spec.finds),
        "method": query.entry.name,
        "p_value": p_value,
        "smallest_p_value": smallest,
        "effect": effects.numbers(result.effect),
        "interval": effects.numbers(result.interval),
        "effect_is": effects.effect_is(result, query, test),
        **effects.parts_of_effects(result, query),
        "effect_notes": effects.notes(result, test, data, unsized),
        "statistic": statistic.item() if statistic.size == 1 else statistic,
        "epsilon": epsilon_shown(float(cost.epsilon), query.epsilon),
        "delta": float(cost.delta),
        "relation": cost.relation.value,
        "mode": result.mode,
        "n": data.x.shape[0],
        "level": level,
        **_found(query.entry.spec, bool(found)),
        "x": list(query.x),
        "y": list(query.y),
        "given": list(query.given),
        "public_columns": query.public_columns,
        "conditioned_on": conditioning.described(given),
        "unit": query.schema.describe_records(query.every_row and test.every_row(public_shapes(data))),
        "built": catalogue.described(test),
        "cells": _cells(test, data, result.release),
        "assumption": query.entry.spec.assumption if _counts_distances(query.entry.spec, data.domain.z) else "",
        "level_rule": rule,
        "sees": effects.without_z(query.entry.spec.alternatives, query),
        "cautions": [
            *maybe_times(query),
            *cautions(
                data.x.shape[0], cost, result.mode, recorded, sum(effects.rules_of(query), ()), query.entry.spec.finds
            ),
        ],
        "released": released_values(result.release),
        "versions": versions(),
        **effects.detectable_by_release(result, query, test, data, found),
        **effects.curves(result, query, test, data),
        **({"taken": query.taken} if query.taken else {}),
        **({} if query.margin is None else {"equivalence": effects.equivalence(result, query, test, data)}),
    }


def maybe_times(query: Any) -> list[str]:
    """A hint where a test that nobody named takes what may be a time to an event as plain columns; all public."""
    from jaxdp import catalogue

    if not query.chosen or query.entry.spec.of_times or len(query.y) != 2:
        return []
    times = [
        one for one in effects.rules_of(query)[1] if one.is_continuous and one.lower >= 0.0 and not one.notation.date
    ]
    tests = [one for one in catalogue.offered().values() if one.spec.of_times and one.spec.accepts(query.domain)]
    if not (times and tests):
        return []
    (event,) = (name for name in query.y if name != times[0].name)
    return [
        f"If {times[0].name} is a time to an event and {event} says whether it came, ask {tests[0].name} (--method "
        f'{tests[0].name}, or kind = "survival" in the schema): {query.entry.name} takes both for plain columns, and '
        "so takes for a dependence also that X goes with being censored."
    ]


def _counts_distances(spec: Any, z: Sequence[Column]) -> bool:
    """Whether the level rests on distances in Z: numbers, or ordered levels that the test takes for such."""
    return 0 in levels_of(z) or (spec.of_moments and any(one.levels > 2 and not one.unordered for one in z))


def _found(spec: Any, found: bool) -> dict[str, Any]:
    """Whether the test found what it looks for, and what that is where it is no dependence."""
    if spec.one_column is None:
        return {"dependence_found": found}
    return {f"{spec.finds.partition(' ')[0]}_found": found, "finds": spec.finds}


def verdict(
    found: bool,
    p_value: float,
    level: float,
    smallest: float | None = None,
    flags: Sequence[str] = (),
    finds: str = DEPENDENCE,
) -> str:
    """The answer in words. smallest: p-value that this test can give, where it gave that. flags: of its level rule.

    finds: what the test finds.
    """
    outcome = f"{finds[0].upper()}{finds[1:]} found" if found else f"No {finds} found"
    doubts = describe_doubts(flags) if found else ""
    return f"{outcome} at level {level:g} ({p_values.describe(p_value, smallest)}){doubts}."


def _cells(test, data, release) -> list[dict]:
    """How each column of Z was cut: bins, and their width on the column's scale (None for levels)."""
    found = test.axis_bins(data, release)
    return [{"column": axis.name, "number": axis.number, "levels": axis.levels, "width": axis.width} for axis in found]


def released_values(release) -> list[dict]:
    """The stages of a release: cost and noisy values; arrays of more than 100 numbers give their shape only."""
    import jax
    import numpy as np

    from jaxdp.independence.null_curve import stage_epsilons

    def plain(value):
        value = np.asarray(value)
        return value.tolist() if value.size <= MAX_VALUES_WRITTEN else {"shape": list(value.shape)}

    return [
        {"epsilon": epsilon, "value": jax.tree.map(plain, stage.value)}
        for epsilon, stage in zip(stage_epsilons(release), [*release.earlier, release], strict=True)
    ]


def epsilon_shown(cost: float, asked: float) -> float:
    """The cost; the budget asked for where the cost stays below it by rounding only."""
    return asked if asked * (1.0 - 1e-12) <= cost <= asked else cost
