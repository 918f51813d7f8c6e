"""The answer to a query about columns: a Result with the question that was asked, and says it in sentences."""

from __future__ import annotations

import dataclasses
import functools
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from jaxdp._base import amounts, p_values
from jaxdp.ask.cautions import cautions
from jaxdp.ask.table_answer import TableAnswer, versions
from jaxdp.core import Result
from jaxdp.data import conditioning
from jaxdp.data.columns import CATEGORICAL, ORDINAL
from jaxdp.data.records import levels_of
from jaxdp.report import sections
from jaxdp.report.sections import DOUBTS, describe_doubts
from jaxdp.spec import BY_STRATUM, DEPENDENCE

MAX_VALUES_WRITTEN = 100
POWER = 0.8
NOMINAL_OR_CODED = ((CATEGORICAL,), (CATEGORICAL, ORDINAL))  # which columns a test takes level by level
ANY_SIZE = "any size"
ANY_SIZE_TOLD = (
    "No size of the effect is given: with the noise of this release and so few records every size is possible."
)


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
            "effect": _drawn_effect(content, self.test.no_effect),
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
        if "detectable_effect" in content:
            x, y = (tuple(self.schema.rule(name) for name in content[part]) for part in "xy")
            return _told_by_release(content["detectable_effect"], _size(self.test.spec, x, y))
        if not len(content["x"]) == len(content["y"]) == 1:
            return {}
        from jaxdp.plan.methods import MIN_N, plans  # the planner is a third of the package: none of it until here
        from jaxdp.plan.survival import SurvivalSetting

        numbers = content["n"], content["epsilon"], content["level"]
        setting = SurvivalSetting.of_schema(self.schema, content["x"][0], content["y"][0], content["given"])
        found = _detectable(content["method"], *numbers, setting)
        if found == math.inf:
            text = f"With power {POWER} no effect, however strong, is found in so few records at this epsilon."
            return {"detectable_effect": found, "power": text}
        if found is None:
            plan = plans().get(content["method"])
            if plan is None or not plan.applies(setting):
                return {}
            if content["n"] < (least := max(MIN_N, plan.smallest_n)):
                text = f"The planner needs at least {least} records to say how small an effect would have been found."
                return {"detectable_effect": None, "power": text}
            asked = [
                "--method",
                content["method"],
                "--n",
                str(content["n"]),
                "--epsilon",
                amounts.spent(content["epsilon"]),
            ]
            asked += ["--power", f"{POWER}", "--schema", schema, "--x", *content["x"], "--y", *content["y"]]
            asked += [word for name in content["given"] for word in ("--given", name)]
            command = shlex.join(["jaxdp", "plan", *asked])
            told = f"How small an effect it would have found, at no cost, simulated in minutes: {command}"
            return {"detectable_effect": None, "power": told}
        linear = content["given"] and plans()[content["method"]].planning.linear
        weak = ", where Z explains little of X and of Y; the interval shows what holds for these data" if linear else ""
        return {
            "detectable_effect": found,
            "power": f"With power {POWER} an effect of {found:.2g} or more would have been found (the change of Y's "
            f"mean, in residual sds, per residual sd of X; by the planner for such columns{weak}).",
        }


def _told_by_release(found: float | None, size: str) -> dict[str, Any]:
    """What `Answer.missed` returns where the release itself says how small an effect would have been found.

    size: the name of an effect without a direction, or "".
    """
    text = "Nothing could have been found, however strong; the answer says why."
    if found is None:
        text = "The noise hides the scale of the effect, so how small an effect would have been found is not known."
    elif math.isfinite(found):
        what = f"{size} of {found:.3g} or more" if size else f"an effect size of {found:.3g} or more, up or down,"
        text = f"With power {POWER} {what} would have been found."
    return {"detectable_effect": found, "power": text}


@functools.lru_cache(maxsize=256)
def _detectable(method: str, n: int, epsilon: float, level: float, setting: Any) -> float | None:
    """What the planner says by formula; None where it has none, infinity where it finds no effect however large."""
    from jaxdp.plan.methods import plans
    from jaxdp.plan.solve import detectable_effect

    plan = plans().get(method)
    if plan is None or not plan.applies(setting) or not plan.has_formula(setting, 0.0):
        return None
    try:
        return detectable_effect(method, n=n, epsilon=epsilon, power=POWER, level=level, setting=setting)
    except ValueError as error:  # fewer records than the planner takes, or no effect within reach
        return math.inf if "finds no effect" in str(error) else None


def answer_of(result: Result, query: Any, test: Any, data: Any, *, recorded: bool = False) -> Answer:
    """The result as an answer to the query. recorded: an account was charged."""
    told, result = result.effect, in_own_units(result, query)
    unsized = told is not None and result.effect is None
    fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    # plain numbers: float64 arrays of JAX would be cut to float32 wherever x64 is off
    fields |= {name: _numbers(fields[name]) for name in ("p_value", "effect", "interval")}
    fields["p_value"] = p_values.floored(fields["p_value"])
    return Answer(
        **fields,
        content=describe(result, query, test, data, recorded=recorded, unsized=unsized),
        test=test,
        schema=query.schema,
    )


def in_own_units(result: Result, query: Any) -> Result:
    """The result with its effect in the units of the schema, where the test says that it has units."""
    import jax

    result = _without_unknown(result)
    if query.entry.spec.own_units is None or result.effect is None:
        return result
    size = _own_unit(query, getattr(result.effect, "shape", ()))
    effect, interval = jax.tree.map(lambda number: number * size, (result.effect, result.interval))
    return dataclasses.replace(result, effect=effect, interval=interval)


def _without_unknown(result: Result) -> Result:
    """The result, without the effect, or without its interval, where the release cannot say them (NaN)."""
    import numpy as np

    def unknown(value) -> bool:
        return np.size(value) == 1 and bool(np.isnan(float(np.ravel(value)[0])))

    if result.effect is None:
        return result
    if unknown(result.effect):
        return dataclasses.replace(result, effect=None, interval=None)
    if result.interval is not None and any(map(unknown, result.interval)):
        return dataclasses.replace(result, interval=None)
    return result


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
    raised = conditioning.flags(given, data.x.shape[0], bool(found)) | _released_flags(test, data, result)
    rule = with_flags(_level_rule(test, data, query), raised, found)
    return {
        "title": query.sentence,
        "answer": verdict(found, p_value, level, smallest, rule["flags"] if rule else (), query.entry.spec.finds),
        "method": query.entry.name,
        "p_value": p_value,
        "smallest_p_value": smallest,
        "effect": _numbers(result.effect),
        "interval": _numbers(result.interval),
        "effect_is": effect_is(result, query, test),
        **_effects_of(result, query),
        "effect_notes": _effect_notes(result, test, data, unsized),
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
        "assumption": query.entry.spec.assumption if 0 in levels_of(data.domain.z) else "",
        "level_rule": rule,
        "sees": without_z(query.entry.spec.alternatives, query),
        "cautions": [
            *maybe_times(query),
            *cautions(data.x.shape[0], cost, result.mode, recorded, sum(_rules(query), ()), query.entry.spec.finds),
        ],
        "released": released_values(result.release),
        "versions": versions(),
        **_detectable_by_release(result, query, test, data, found),
        **_curves(result, query, test, data),
        **({"taken": query.taken} if query.taken else {}),
        **({} if query.margin is None else {"equivalence": _equivalence(result, query, test, data)}),
    }


def maybe_times(query: Any) -> list[str]:
    """A hint where a test that nobody named takes what may be a time to an event as plain columns; all public."""
    from jaxdp import catalogue

    if not query.chosen or query.entry.spec.of_times or len(query.y) != 2:
        return []
    times = [one for one in _rules(query)[1] if one.is_continuous and one.lower >= 0.0 and not one.notation.date]
    tests = [one for one in catalogue.offered().values() if one.spec.of_times and one.spec.accepts(query.domain)]
    if not (times and tests):
        return []
    (event,) = (name for name in query.y if name != times[0].name)
    return [
        f"If {times[0].name} is a time to an event and {event} says whether it came, ask {tests[0].name} (--method "
        f'{tests[0].name}, or kind = "survival" in the schema): {query.entry.name} takes both for plain columns, and '
        "so takes for a dependence also that X goes with being censored."
    ]


def _equivalence(result: Result, query: Any, test: Any, data: Any) -> dict[str, Any]:
    """Whether the effect is surely smaller than the query's margin, in the columns' own units; post-processing."""
    from jaxdp.core import public_shapes
    from jaxdp.independence.equivalence import equivalence

    margin, level = query.margin, query.settings.level
    found = equivalence(test, public_shapes(data), result.release, margin / _own_unit(query))
    above, below = p_values.floored(found.above), p_values.floored(found.below)
    p_value = max(above, below)
    what = without_z(query.entry.spec.effect, query).partition(",")[0]
    none = test.no_effect
    small = f"the {what} is less than {margin:g} " + (f"away from {none:g}" if none else "in size")
    small += "" if query.entry.spec.own_units is None else steps_of(sum(_rules(query), ()), ", where ")
    told = f"{small[0].upper()}{small[1:]}" if p_value <= level else f"It is not shown at level {level:g} that {small}"
    low, high = none - margin, none + margin
    sides = f"above {low:g} with {p_values.describe(above)}, below {high:g} with {p_values.describe(below)}"
    return {
        "margin": margin,
        "p_value": p_value,
        "above": above,
        "below": below,
        "found": p_value <= level,
        "sentence": f"{told} ({p_values.describe(p_value)}). One side alone, as for non-inferiority: {sides}.",
    }


def _curves(result: Result, query: Any, test: Any, data: Any) -> dict[str, Any]:
    """The curves that the test's release gives besides, in the columns' own units."""
    from jaxdp.core import public_shapes

    x, y = _rules(query)
    found = test.released_curves(public_shapes(data), result.release, x, y)
    return {"curves": dict(found)} if found else {}


def _rules(query: Any) -> tuple[tuple, tuple]:
    """The schema's rules of the columns of x, and of those of y."""
    x, y = (tuple(query.schema.rule(name) for name in part) for part in (query.x, query.y))
    return x, y


def _own_unit(query: Any, shape: Sequence[int] = ()) -> Any:
    """What 1 of the test's effect means in the columns' own units; an array of this shape for several effects.

    shape: (parts of x,) or (parts of x, parts of y), each with the range of its own column.
    """
    import numpy as np

    factor = query.entry.spec.own_units
    if factor is None or math.prod(shape) == 1:
        return 1.0 if factor is None else factor(*_rules(query))
    counts = (*shape, 1)[:2]
    x, y = ([rule for rule, _ in _parts(*part, "")] for part in zip(_rules(query), counts, strict=True))
    return np.array([[factor((one,), (other,)) for other in y] for one in x]).reshape(shape)


def effect_is(result: Result, query: Any, test: Any) -> str:
    """What the effect is; of one pair with what its interval says."""
    spec = query.entry.spec
    if result.effect is None:
        return ""
    told = _size(query.entry.spec, *_rules(query)) or spec.effect
    described = spec.describe_effect is not None and math.prod(getattr(result.effect, "shape", ())) == 1
    if described:
        told += spec.describe_effect(test, *_rules(query), result.interval)
    told = without_z(told, query) + _units_of(query)
    return told if described or spec.own_units is None else f"{told}{steps_of(sum(_rules(query), ()), '; ')}"


def _units_of(query: Any) -> str:
    """Of which columns an effect with units counts the logarithm, and of which days; "" where of none."""
    if query.entry.spec.own_units is None:
        return ""
    rules = [rule for part in _rules(query) for rule in part]
    logarithms = " and of ".join(rule.name for rule in rules if rule.logarithmic)
    dates = " and ".join(rule.name for rule in rules if rule.is_date)
    told = f"; units are those of the natural logarithm of {logarithms}" if logarithms else ""
    return told + (f"; {dates} in days" if dates else "")


def steps_of(rules: Sequence[Any], lead: str) -> str:
    """Of which columns with these rules the unit is a step between levels, after `lead`; "" where of none."""
    names = [rule.name for rule in rules if rule.counts_in_steps]
    told = f"{' and '.join(names)} count{'s' if len(names) == 1 else ''} in steps from one level to the next"
    return f"{lead}{told}, all taken as equal" if names else ""


def _effects_of(result: Result, query: Any) -> dict[str, list[str]]:
    """What the rows and the columns of several effects are of; nothing of one."""
    counts = getattr(result.effect, "shape", ())
    if len(counts) != 2 or math.prod(counts) == 1:
        return {}
    told = (" against {}", "")  # a level of X is compared with the first, one of Y is there or not
    x, y = ([name for _, name in _parts(*part)] for part in zip(_rules(query), counts, told, strict=True))
    return {"effect_rows": x, "effect_columns": y} if all((*x, *y)) else {}


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


def _size(spec: Any, x: tuple, y: tuple) -> str:
    """The name of the test's effect of columns with these rules, where that is a size without a direction."""
    from jaxdp.data.dataset import Domain

    first, second = (tuple(column for rule in part for column in rule.code_column()) for part in (x, y))
    return spec.size(Domain(first, second))


def without_z(told: str, query: Any) -> str:
    """What a test says about itself, for a query that has no Z."""
    if query.given:
        return told
    return told.replace(" given Z", "").replace(" within cells of Z", "").replace(BY_STRATUM, "")


def _numbers(values):
    """Released numbers as Python's; None stays None, and what the release cannot say (NaN) becomes None."""
    import jax
    import numpy as np

    def known(number):
        if isinstance(number, list):
            return [known(one) for one in number]
        return None if math.isnan(number) else number

    return jax.tree.map(lambda value: known(np.asarray(value, float).tolist()), values)


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


def _level_rule(test, data, query) -> dict | None:
    """What is publicly known about the level of this run, where the test says so."""
    from jaxdp.core import public_shapes

    rule = test.validity(public_shapes(data))
    if rule is None:
        return None
    numbers = ("jumps", "deviation", "curvature", "side", "law_error")
    known = {name: getattr(rule, name) for name in numbers if math.isfinite(getattr(rule, name))}
    sentence = _in_units(rule, test, query)
    return {"verdict": rule.verdict, "flags": list(rule.flags), "sentence": sentence, **known}


def with_flags(rule: dict | None, flags: Mapping[str, str], found: bool) -> dict | None:
    """What is publicly known about the level, with further flags and their sentences.

    Without those that doubt a dependence, where none was found: they concern false findings alone.
    """
    if rule is not None and not found:
        kept = [flag for flag in rule["flags"] if flag not in DOUBTS]
        rule = {**rule, "verdict": "flag" if kept else "run", "flags": kept}
    flags = {flag: told for flag, told in flags.items() if found or flag not in DOUBTS}
    if not flags:
        return rule
    known: dict = rule or {"flags": [], "sentence": ""}
    sentences = [known["sentence"], *flags.values()]
    return {
        **known,
        "verdict": "flag",
        "flags": [*known["flags"], *flags],
        "sentence": " ".join(sentence for sentence in sentences if sentence),
    }


def _released_flags(test, data, result) -> dict[str, str]:
    """What the release itself says about the answer, where the test says so."""
    from jaxdp.core import public_shapes

    return dict(test.released_flags(public_shapes(data), result.release))


def _effect_notes(result, test, data, unsized: bool) -> dict[str, str]:
    """Why the release has no effect or no interval, or a wide one, where the test or the missing effect says so."""
    from jaxdp.core import public_shapes

    told = dict(test.effect_notes(public_shapes(data), result.release))
    return told or ({ANY_SIZE: ANY_SIZE_TOLD} if unsized else {})


def _detectable_by_release(result, query, test, data, dependence: bool) -> dict[str, float | None]:
    """Which effect would have been found with power 0.8, in the units of the effect, where the release says it.

    None where the noise hides the scale of the effect, and where none could be found by the interval's law though the
    p-value found one; {} where the test cannot say.
    """
    import numpy as np

    from jaxdp.core import public_shapes

    if not query.entry.spec.effect:
        return {}
    found = test.detectable_effect(public_shapes(data), result.release)
    if found is None:
        return {}
    effects = np.asarray(found, float)
    if effects.size != 1:  # of several pairs of columns
        return {}
    effect = _own_unit(query) * effects.item()
    unknown = math.isnan(effect) or (dependence and math.isinf(effect))
    return {"detectable_effect": None if unknown else effect}


def level_rule_of_all(tests: Iterable[Any], data: Iterable[Any]) -> dict | None:
    """What is publicly known about the level of several runs together; None where no test says anything."""
    from jaxdp.core import public_shapes

    told = (test.validity(public_shapes(one)) for test, one in zip(tests, data, strict=True))
    rules = [rule for rule in told if rule is not None]
    if not rules:
        return None
    flags = list(dict.fromkeys(flag for rule in rules for flag in rule.flags))
    sentences = dict.fromkeys(rule.sentence for rule in rules if rule.sentence)
    return {"verdict": "flag" if flags else "run", "flags": flags, "sentence": " ".join(sentences)}


def _in_units(rule, test, query) -> str:
    """The rule's sentence, with what it admits in the units of the columns (half of their bounds' width is 1)."""
    from jaxdp.independence.continuous.validity import JUMP

    names = [*query.x, *query.y]
    rules = [query.schema.rule(name) for name in names]
    scaled = all(one.is_continuous and not one.logarithmic for one in rules) and len(names) == 2
    if not scaled or not hasattr(test, "widths") or not (math.isfinite(rule.deviation) or math.isfinite(rule.jumps)):
        return rule.sentence
    scales = [float(scale) for scale in (test.scale_x, test.scale_y)]
    share = rule.deviation / scales[0] if math.isfinite(rule.deviation) else 0.5  # of a scale; the kernel is half of it
    told = [
        (f"{0.5 * (one.upper - one.lower) * scale * share:.3g}", name)
        for name, one, scale in zip(names, rules, scales, strict=True)
    ]
    if math.isfinite(rule.deviation):
        strays = " and ".join(f"{size} units of {name}" for size, name in told)
        return f"{rule.sentence} They may stray by {strays}."
    sizes = " or ".join(f"{size} in {name}" for size, name in told)
    return rule.sentence.replace(JUMP, f"a jump is a change of more than {sizes}")


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


def _drawn_effect(content: Mapping[str, Any], none: float):
    """The effect of one pair with its interval, or those of several, for the picture; None where there is none."""
    from jaxdp.report.figures import Effect, Effects

    if "effect_rows" in content and content["interval"] is not None:
        each = [Effect(effect, low, high, name) for name, effect, low, high in sections.listed_effects(content)]
        return Effects(each[: sections.MAX_EFFECTS], content["effect_is"], none=none) if each else None
    if not isinstance(content["effect"], float) or content["interval"] is None or None in content["interval"]:
        return None
    margin = content.get("equivalence", {}).get("margin")
    low, high = content["interval"]
    return Effect(content["effect"], low, high, content["effect_is"], margin, none)


def epsilon_shown(cost: float, asked: float) -> float:
    """The cost; the budget asked for where the cost stays below it by rounding only."""
    return asked if asked * (1.0 - 1e-12) <= cost <= asked else cost
