"""What is publicly known about the level of an answer, and the flags that its release raises, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from jaxdp.core import public_shapes
from jaxdp.report.sections import DOUBTS


def level_rule(test, data, query) -> dict | None:
    """What is publicly known about the level of this run, where the test says so."""
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


def released_flags(test, data, result) -> dict[str, str]:
    """What the release itself says about the answer, where the test says so."""
    return dict(test.released_flags(public_shapes(data), result.release))


def level_rule_of_all(tests: Iterable[Any], data: Iterable[Any]) -> dict | None:
    """What is publicly known about the level of several runs together; None where no test says anything."""
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
