"""A result in words: what was asked, the answer, what it rests on, what it cost and what is protected.

Made from the values of result.json alone, so that a page can be rebuilt from its files. A key that a result lacks is
left out; nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxdp._base import amounts, risk

COST, PLANNED = "What it cost", "What this plan rests on"
RELATIONS = {
    "replace_one": "two files that differ in what one record says",
    "add_or_remove_one": "two files, one of which has one record more",
}

FLAGS = {
    "curvature": "sharp bends in Z (curvature)",
    "low power": "few records for this epsilon (low power)",
    "narrow kernel": "a kernel that forgives hardly any trend (narrow kernel)",
    "labels": "numbers that may be labels of groups (labels)",
    "cycles": "hours or weekdays that the schema leaves out of Z (cycles)",
    "heaps": "rounded numbers that the schema does not set apart (heaps)",
    "straight lines": "bends in Z, for which the records do not suffice (straight lines)",
    "jumps": "jumps at a value of Z (jumps)",
    "few records for the null model": "few records to fit Y on Z (few records for the null model)",
    "cells": "Z is cut into cells (cells)",
    "coarse cells": "cells that are too wide (coarse cells)",
    "fit": "a fit of X and Y on Z that may be poor (fit)",
    "small blocks": "blocks of few records (small blocks)",
    "margins": "columns that may be far from normal, Z among them (margins)",
    "few records for intervals": "few records for intervals",
    "narrow column": "a column far narrower than its bounds (narrow column)",
    "small group": "a group with too few records for this epsilon (small group)",
    "spread hidden by noise": "noise that hides the spread of the response (spread hidden by noise)",
    "wide bounds": "bounds that are wide for so few records at this epsilon (wide bounds)",
}

DOUBTS = {  # what a flagged test takes for a dependence; a flag about power alone has none
    "curvature": "X and Y bend sharply with Z",
    "narrow kernel": "X and Y bend with Z",
    "labels": "values of Z are labels of groups",
    "cycles": "X and Y follow the hour or the weekday",
    "heaps": "rounded values of Z differ from others",
    "straight lines": "X and Y both bend with Z",
    "jumps": "X and Y both jump at the same value of Z",
    "few records for the null model": "the fit of Y on Z is poor",
    "cells": "X and Y vary with Z within a cell",
    "coarse cells": "X and Y vary with Z within a cell",
    "fit": "the fits of X and Y on Z are poor",
    "small blocks": "the blocks are too small for their test",
    "margins": "X and Y bend with Z, or a column is far from normal",
}


def told_doubts(flags: Sequence[str]) -> str:
    """What else could look like the dependence that a flagged test found; the empty text where there is nothing."""
    doubts = dict.fromkeys(DOUBTS[flag] for flag in flags if flag in DOUBTS)
    return f", unless {' or '.join(doubts)}" if doubts else ""


def told_flags(flags: Sequence[str]) -> str:
    """Why an answer is flagged, in words; the name of the flag where there are none."""
    return ", ".join(FLAGS.get(flag, flag) for flag in flags)


def story(result: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Headings with their sentences, in reading order; [] for a result that is no answer to a question."""
    if "answer" not in result or "epsilon" not in result:
        return []
    if "mode" not in result:  # nothing was run on data
        return [(PLANNED, [sentence for sentence in _planned(result) if sentence])] if "engine" in result else []
    parts = (
        ("What was asked", _asked(result)),
        ("How strong it is", _strength(result)),
        ("What to know about this answer", _limits(result)),
        ("What this test can see", _sees(result)),
        ("What the answer rests on", _rests_on(result)),
        (COST, _cost(result)),
        ("What is protected", _protected(result)),
        ("How to run it again", _again(result)),
    )
    told = [(heading, [sentence for sentence in sentences if sentence]) for heading, sentences in parts]
    return [(heading, sentences) for heading, sentences in told if sentences]


def waterfall(result: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Epsilon of a ledger before this answer, of this answer, and left; [] where they are not known."""
    budget = result.get("budget")
    if not isinstance(budget, Mapping) or not {"epsilon_left", "epsilon_granted"} <= set(budget):
        return []
    granted, left = float(budget["epsilon_granted"]), float(budget["epsilon_left"])
    cost = float(result["epsilon"])
    before = max(granted - left - cost, 0.0)
    if not all(map(math.isfinite, (granted, left, cost))) or granted <= 0.0:
        return []
    return [("before", before), ("this answer", cost), ("left", left)]


def _planned(result: Mapping[str, Any]) -> Iterator[str]:
    yield "Public numbers and made-up data. No record was read, and nothing was spent."
    if result.get("engine"):
        how = "a formula" if result["engine"] == "formula" else "simulation"
        yield f"Computed by {how}, for a test at level {result.get('level', 0.05):g}."
    checked = result.get("simulated")
    if isinstance(checked, Mapping):
        low, high = checked["power_interval"]
        yield (
            f"Checked on {checked['replicates']} made-up data sets with the effect and as many without it. The test "
            f"found {checked['power']:.3f} of the first (95 % interval {low:.3f} to {high:.3f}), and "
            f"{checked['level']:.3f} of the second, which are false findings."
        )


def _asked(result: Mapping[str, Any]) -> Iterator[str]:
    yield str(result.get("title", ""))
    what = "release" if "noise_sd" in result else "test"  # of numbers that are shown with their noise
    yield f"The {what} used {result['n']} records." if "n" in result else ""
    yield str(result.get("taken", ""))


def _strength(result: Mapping[str, Any]) -> Iterator[str]:
    effect, interval = result.get("effect"), result.get("interval")
    if isinstance(effect, int | float) and not isinstance(effect, bool):
        yield f"Effect size {effect:.3g}: {result.get('effect_is') or 'as the test defines it'}."
        if isinstance(interval, Sequence) and len(interval) == 2:
            yield f"95 % interval {interval[0]:.3g} to {interval[1]:.3g}; the noise that was added is counted."
    yield str(result.get("equivalence", {}).get("sentence", ""))


def _limits(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("withheld"):
        yield "The p-value is withheld: the test's own condition does not hold for this question."
    if result.get("complete") is False:
        kept = len(result.get("untested", ()))
        yield f"The search ended before every question was answered: {kept} pairs keep their edge."
    yield str(result.get("note", ""))
    yield from result.get("cautions", ())


def _sees(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("sees"):
        several = str(result["sees"]).partition(": ")[0] in result["method"]  # each test with what it sees
        yield f"{result['sees']}." if several else f"{result['method']} sees {result['sees']}."
    yield str(result.get("power", "")) if isinstance(result.get("power"), str) else ""
    if result.get("dependence_found") is False:
        yield "Not finding a dependence does not show that there is none."


def _rests_on(result: Mapping[str, Any]) -> Iterator[str]:
    rule = result.get("level_rule") or {}
    yield str(result.get("conditioned_on", ""))
    yield str(result.get("assumption", ""))
    yield str(rule.get("sentence", ""))
    if rule.get("flags"):
        yield f"Take care: {told_flags(rule['flags'])}."
    public = result.get("public_columns")
    yield f"Known to everyone, and not protected: {', '.join(map(str, public))}." if public else ""


def _cost(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("mode") == "simulation":
        yield "Nothing: this was a simulation with a key that can be guessed. It is not private."
        return
    yield f"{amounts.cost(result)}."
    budget = result.get("budget")
    if isinstance(budget, Mapping):
        yield f"{budget['left']} is left of {budget['granted']} in the ledger {budget['ledger']}."


def _protected(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("mode") == "simulation":
        return
    from jaxdp.data.schema import LEFT_OUT

    files = RELATIONS.get(str(result.get("relation")))
    if files and math.isfinite(float(result["epsilon"])):
        times = f"exp({amounts.spent(result['epsilon'])}) = {_factor(float(result['epsilon']))}"
        yield (
            f"Each record. Take {files}: what is published here is at most {times} times as likely for the one as for "
            + ("the other, but for a probability of delta." if result.get("delta") else "the other.")
        )
    yield risk.sentence(float(result["epsilon"]), float(result.get("delta") or 0.0), str(result.get("relation")))
    if files and (result.get("unit") or LEFT_OUT) == LEFT_OUT:  # no column says whose a record is
        worse = " and a larger delta" if result.get("delta") else ""
        yield (
            f"A person with k records in the file is protected at k times this epsilon{worse} only. If a person may "
            "have several, name the column that tells whose a record is, unit = ..., in the schema."
        )
    yield str(result.get("unit", ""))
    yield "Not protected: the number of records, the schema and the settings, which count as public."


def _again(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("command"):
        yield str(result["command"]).replace(" --overwrite", "")
        if result.get("mode") == "release":
            yield (
                "This answer is kept in its folder and costs nothing to read again. Running the command again draws "
                "new noise and spends its epsilon again."
            )
    versions = result.get("versions")
    if isinstance(versions, Mapping):
        yield ", ".join(f"{name} {version}" for name, version in versions.items()) + "."


def _factor(epsilon: float) -> str:
    if epsilon >= 20:
        return "more than a hundred million"
    factor = math.exp(epsilon)
    return f"{factor:.3g}" if factor < 100 else f"{float(f'{factor:.3g}'):,.0f}".replace(",", " ")
