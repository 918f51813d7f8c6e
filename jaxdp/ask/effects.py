"""What the effect of an answer is: in the columns' own units, in words, with the names of its parts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp._base import p_values
from jaxdp.core import Result, public_shapes
from jaxdp.data.columns import CATEGORICAL, ORDINAL
from jaxdp.data.dataset import Domain
from jaxdp.report import sections
from jaxdp.spec import BY_STRATUM

NOMINAL_OR_CODED = ((CATEGORICAL,), (CATEGORICAL, ORDINAL))  # which columns a test takes level by level
ANY_SIZE = "any size"
ANY_SIZE_TOLD = (
    "No size of the effect is given: with the noise of this release and so few records every size is possible."
)


def in_own_units(result: Result, query: Any) -> Result:
    """The result with its effect in the units of the schema, where the test says that it has units."""
    result = _without_unknown(result)
    if query.entry.spec.own_units is None or result.effect is None:
        return result
    size = _own_unit(query, getattr(result.effect, "shape", ()))
    effect, interval = jax.tree.map(lambda number: number * size, (result.effect, result.interval))
    return dataclasses.replace(result, effect=effect, interval=interval)


def _without_unknown(result: Result) -> Result:
    """The result, without the effect, or without its interval, where the release cannot say them (NaN)."""

    def unknown(value) -> bool:
        return np.size(value) == 1 and bool(np.isnan(float(np.ravel(value)[0])))

    if result.effect is None:
        return result
    if unknown(result.effect):
        return dataclasses.replace(result, effect=None, interval=None)
    if result.interval is not None and any(map(unknown, result.interval)):
        return dataclasses.replace(result, interval=None)
    return result


def equivalence(result: Result, query: Any, test: Any, data: Any) -> dict[str, Any]:
    """Whether the effect is surely smaller than the query's margin, in the columns' own units; post-processing."""
    from jaxdp.independence import equivalence as of_test

    margin, level, unit = query.margin, query.settings.level, _own_unit(query)
    found = of_test.equivalence(test, public_shapes(data), result.release, margin / unit)
    above, below = p_values.floored(found.above), p_values.floored(found.below)
    p_value = max(above, below)
    what = without_z(query.entry.spec.effect, query).partition(",")[0]
    none = test.no_effect
    small = f"the {what} is less than {margin:g} " + (f"away from {none:g}" if none else "in size")
    small += "" if query.entry.spec.own_units is None else steps_of(sum(rules_of(query), ()), ", where ")
    told = f"{small[0].upper()}{small[1:]}" if p_value <= level else f"It is not shown at level {level:g} that {small}"
    told = f"{told} ({p_values.describe(p_value)})"
    low, high = none - margin, none + margin
    content = {"margin": margin, "p_value": p_value, "above": above, "below": below, "found": p_value <= level}
    if result.interval is not None and level < 0.5:
        of_test_units = tuple(float(number) / unit for number in (result.effect, *result.interval))
        ends = of_test.interval(test, public_shapes(data), result.release, level, of_test_units)
        # halvings may end a little beyond a margin that is shown
        first = max(ends[0] * unit, low) if above <= level else ends[0] * unit
        last = min(ends[1] * unit, high) if below <= level else ends[1] * unit
        content["coverage"] = 1.0 - 2.0 * level
        content |= {"interval": [end if math.isfinite(end) else None for end in (first, last)]}
        told += f": its {100.0 * content['coverage']:g} % interval, {first:.3g} to {last:.3g}, "
        told += f"{'lies' if p_value <= level else 'does not lie'} between {low:g} and {high:g}"
    sides = f"above {low:g} with {p_values.describe(above)}, below {high:g} with {p_values.describe(below)}"
    return {**content, "sentence": f"{told}. One side alone, as for non-inferiority: {sides}."}


def curves(result: Result, query: Any, test: Any, data: Any) -> dict[str, Any]:
    """The curves that the test's release gives besides, in the columns' own units."""
    x, y = rules_of(query)
    found = test.released_curves(public_shapes(data), result.release, x, y)
    return {"curves": dict(found)} if found else {}


def rules_of(query: Any) -> tuple[tuple, tuple]:
    """The schema's rules of the columns of x, and of those of y."""
    x, y = (tuple(query.schema.rule(name) for name in part) for part in (query.x, query.y))
    return x, y


def _own_unit(query: Any, shape: Sequence[int] = ()) -> Any:
    """What 1 of the test's effect means in the columns' own units; an array of this shape for several effects.

    shape: (parts of x,) or (parts of x, parts of y), each with the range of its own column.
    """
    factor = query.entry.spec.own_units
    if factor is None or math.prod(shape) == 1:
        return 1.0 if factor is None else factor(*rules_of(query))
    counts = (*shape, 1)[:2]
    x, y = ([rule for rule, _ in _parts(*part, "")] for part in zip(rules_of(query), counts, strict=True))
    return np.array([[factor((one,), (other,)) for other in y] for one in x]).reshape(shape)


def effect_is(result: Result, query: Any, test: Any) -> str:
    """What the effect is; of one pair with what its interval says."""
    spec = query.entry.spec
    if result.effect is None:
        return ""
    told = size_of(query.entry.spec, *rules_of(query)) or spec.effect
    described = spec.describe_effect is not None and math.prod(getattr(result.effect, "shape", ())) == 1
    if described:
        told += spec.describe_effect(test, *rules_of(query), result.interval)
    told = without_z(told, query) + _units_of(query)
    return told if described or spec.own_units is None else f"{told}{steps_of(sum(rules_of(query), ()), '; ')}"


def _units_of(query: Any) -> str:
    """Of which columns an effect with units counts the logarithm, and of which days; "" where of none."""
    if query.entry.spec.own_units is None:
        return ""
    rules = [rule for part in rules_of(query) for rule in part]
    logarithms = " and of ".join(rule.name for rule in rules if rule.logarithmic)
    dates = " and ".join(rule.name for rule in rules if rule.is_date)
    told = f"; units are those of the natural logarithm of {logarithms}" if logarithms else ""
    return told + (f"; {dates} in days" if dates else "")


def steps_of(rules: Sequence[Any], lead: str) -> str:
    """Of which columns with these rules the unit is a step between levels, after `lead`; "" where of none."""
    names = [rule.name for rule in rules if rule.counts_in_steps]
    told = f"{' and '.join(names)} count{'s' if len(names) == 1 else ''} in steps from one level to the next"
    return f"{lead}{told}, all taken as equal" if names else ""


def parts_of_effects(result: Result, query: Any) -> dict[str, Any]:
    """What the rows and the columns of several effects are of, and whether their intervals hold together; {} of one."""
    counts = getattr(result.effect, "shape", ())
    if len(counts) != 2 or math.prod(counts) == 1:
        return {}
    told = (" against {}", "")  # a level of X is compared with the first, one of Y is there or not
    x, y = ([name for _, name in _parts(*part)] for part in zip(rules_of(query), counts, told, strict=True))
    together = {"intervals_hold_together": query.entry.spec.together}
    return {"effect_rows": x, "effect_columns": y} | together if all((*x, *y)) else {}


def _parts(rules: Sequence[Any], count: int, told: str) -> list[tuple[Any, str]]:
    """Rules and names of the `count` columns that a test makes of these: of nominal ones each level, or but the first.

    Of ordered levels too where the count says so. told: what a level is compared with, where the first is none of them.
    """
    together = [(rules[0], " and ".join(rule.name for rule in rules))]  # one part of several columns
    ways = [(first, said, kinds) for kinds in NOMINAL_OR_CODED for first, said in ((0, ""), (1, told))]
    found = [_levels_of(rules, *way) for way in ways]
    found.append(together if count == 1 < len(rules) else [])
    unknown = [(rules[0], "")] * count  # a paid answer is not lost for a name
    return next((parts for parts in found if len(parts) == count), unknown)


def _levels_of(rules: Sequence[Any], first: int, told: str, kinds: Sequence[str]) -> list[tuple[Any, str]]:
    parts = []
    for rule in rules:
        if rule.kind not in kinds or len(rule.levels) <= 2:
            parts.append((rule, rule.name))
        else:
            against = told.format(rule.levels[0])
            parts += [(rule, f"{rule.name} = {level}{against}") for level in rule.levels[first:]]
    return parts


def size_of(spec: Any, x: tuple, y: tuple) -> str:
    """The name of the test's effect of columns with these rules, where that is a size without a direction."""
    first, second = (tuple(column for rule in part for column in rule.code_column()) for part in (x, y))
    return spec.size(Domain(first, second))


def without_z(told: str, query: Any) -> str:
    """What a test says about itself, for a query that has no Z."""
    if query.given:
        return told
    return told.replace(" given Z", "").replace(" within cells of Z", "").replace(BY_STRATUM, "")


def numbers(values):
    """Released numbers as Python's; None stays None, and what the release cannot say (NaN) becomes None."""

    def known(number):
        if isinstance(number, list):
            return [known(one) for one in number]
        return None if math.isnan(number) else number

    return jax.tree.map(lambda value: known(np.asarray(value, float).tolist()), values)


def notes(result, test, data, unsized: bool) -> dict[str, str]:
    """Why the release has no effect or no interval, or a wide one, where the test or the missing effect says so."""
    told = dict(test.effect_notes(public_shapes(data), result.release))
    return told or ({ANY_SIZE: ANY_SIZE_TOLD} if unsized else {})


def detectable_by_release(result, query, test, data, dependence: bool) -> dict[str, float | None]:
    """Which effect the query's level would have found with power 0.8, in its units, where the release says it.

    None where the noise hides the scale of the effect, and where none could be found by the interval's law though the
    p-value found one; {} where the test cannot say.
    """
    if not query.entry.spec.effect:
        return {}
    found = test.detectable_effect(public_shapes(data), result.release, query.settings.level)
    if found is None:
        return {}
    effects = np.asarray(found, float)
    if effects.size != 1:  # of several pairs of columns
        return {}
    effect = _own_unit(query) * effects.item()
    unknown = math.isnan(effect) or (dependence and math.isinf(effect))
    return {"detectable_effect": None if unknown else effect}


def drawn(content: Mapping[str, Any], none: float):
    """The effect of one pair with its interval, or those of several, for the picture; None where there is none."""
    from jaxdp.report.figures import Effect, Effects

    if "effect_rows" in content and content["interval"] is not None:
        each = [Effect(effect, low, high, name) for name, effect, low, high in sections.listed_effects(content)]
        together = content["intervals_hold_together"]
        shown, named = each[: sections.MAX_EFFECTS], content["effect_is"]
        return Effects(shown, named, none=none, together=together) if each else None
    if not isinstance(content["effect"], float) or content["interval"] is None or None in content["interval"]:
        return None
    judged = content.get("equivalence", {})
    low, high = content["interval"]
    inner = judged.get("interval", (None, None))
    inner = None if None in inner else (*inner, judged["coverage"])
    return Effect(content["effect"], low, high, content["effect_is"], judged.get("margin"), none, inner)
