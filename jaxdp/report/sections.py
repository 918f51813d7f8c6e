"""A result in words: what was asked, the answer, what it rests on, what it cost and what is protected.

Every kind of answer is told here, once, for screens, notebooks and pages, from the values of result.json alone, so that
a page can be rebuilt from its files. A key that a result lacks is left out; nothing is guessed.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jaxdp._base import amounts, p_values, risk
from jaxdp._base.arguments import USUAL_DELTA

ASKED, STRENGTH, LIMITS = "What was asked", "How strong it is", "What to know about this answer"
SEES, RESTS_ON = "What this test can see", "What the answer rests on"
COST, PROTECTED, PLANNED = "What it cost", "What is protected", "What this plan rests on"
NOT_PRIVATE = "NOT PRIVATE: simulation; leave --seed out (in Python key) for a private release."
WIDTH, INDENT = 100, " " * 13  # of a screen
MAX_NUMBERS = 8  # of a statistic on a screen
MAX_EFFECTS = 12  # of several, in a sentence
NOISY = 0.3  # sd of a coefficient from which on the noise exceeds most of them
DROWNED = "; it exceeds most coefficients: name fewer columns, or increase epsilon"
RELATIONS = {
    "replace_one": "two files that differ in what one record says",
    "add_or_remove_one": "two files, one of which has one record more",
    "replace_attribute": "two files that differ in what one record says in columns that are not public",
}

FLAGS = {
    "curvature": "sharp bends in Z (curvature)",
    "low power": "few records for this epsilon (low power)",
    "narrow kernel": "a kernel that removes hardly any trend (narrow kernel)",
    "labels": "numbers that may be labels of groups (labels)",
    "cycles": "hours or weekdays that the schema leaves out of Z (cycles)",
    "few records a day": "days of the month that few records a day cannot set apart (few records a day)",
    "single days": "effects of single days, which a date with times leaves in (single days)",
    "heaps": "rounded numbers that the schema does not set apart (heaps)",
    "straight lines": "bends in Z, for which the records do not suffice (straight lines)",
    "jumps": "jumps at a value of Z (jumps)",
    "few records for the null model": "few records to fit Y on Z (few records for the null model)",
    "cells": "Z is cut into cells (cells)",
    "coarse cells": "cells that are too wide (coarse cells)",
    "fit": "a fit of X and Y on Z that may be poor (fit)",
    "small blocks": "blocks of few records (small blocks)",
    "margins": "columns that may be far from normal, Z among them (margins)",
    "uneven columns": "columns that may fill their bounds unevenly (uneven columns)",
    "narrow column": "a column far narrower than its bounds (narrow column)",
}

DOUBTS = {  # what a flagged test takes for a dependence; a flag about power alone has none
    "curvature": "X and Y bend sharply with Z",
    "narrow kernel": "X and Y bend with Z",
    "labels": "values of Z are labels of groups",
    "cycles": "X and Y follow the hour or the weekday",
    "few records a day": "X and Y follow the day of the month",
    "single days": "X and Y follow single days",
    "heaps": "rounded values of Z differ from others",
    "straight lines": "X and Y both bend with Z",
    "jumps": "X and Y both jump at the same value of Z",
    "few records for the null model": "the fit of Y on Z is poor",
    "cells": "X and Y vary with Z within a cell",
    "coarse cells": "X and Y vary with Z within a cell",
    "fit": "the fits of X and Y on Z are poor",
    "small blocks": "the blocks are too small for their test",
    "margins": "X and Y bend with Z, or a column is far from normal",
    "uneven columns": "a column fills its bounds unevenly",
}


def describe_doubts(flags: Sequence[str]) -> str:
    """What else could look like the dependence that a flagged test found; the empty text where there is nothing."""
    doubts = dict.fromkeys(DOUBTS[flag] for flag in flags if flag in DOUBTS)
    return f", unless {' or '.join(doubts)}" if doubts else ""


def describe_flags(flags: Sequence[str]) -> str:
    """Why an answer is flagged, in words; the name of the flag where there are none."""
    return ", ".join(FLAGS.get(flag, flag) for flag in flags)


class Section(NamedTuple):
    """A part of an answer. name: on screens and in notebooks. heading: on pages. "" where it is not shown."""

    name: str
    heading: str
    sentences: Sequence[str]


def sections(result: Mapping[str, Any]) -> list[Section]:
    """The parts of an answer in reading order; [] for a result that is no answer to a question."""
    if "answer" not in result or "epsilon" not in result:
        return []
    if "mode" not in result:  # nothing was run on data
        parts = [Section("", PLANNED, list(_planned(result)))] if "engine" in result else []
    else:
        writers = (_answered, _strength, _limits, _sees, _rests_on, _cost, _protected, _again)
        parts = [part for writer in writers for part in writer(result)]
    told = (part._replace(sentences=[sentence for sentence in part.sentences if sentence]) for part in parts)
    return [part for part in told if part.sentences]


def narrative(result: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Headings of a page with their sentences, in reading order."""
    told: dict[str, list[str]] = {}
    for part in sections(result):
        told.setdefault(part.heading, []).extend(part.sentences)
    return [(heading, sentences) for heading, sentences in told.items() if heading]


def paragraphs(result: Mapping[str, Any]) -> dict[str, str]:
    """The named paragraphs of a screen or a notebook, in reading order."""
    return {part.name: " ".join(part.sentences) for part in sections(result) if part.name}


COMMAND = ": jaxdp plan "  # what follows a sentence to its end


def screen(result: Mapping[str, Any], table: Sequence[str] = ()) -> str:
    """The answer as text: its title, a paragraph for each part, the table below the answer."""
    lines = [str(result["title"])]
    for name, text in paragraphs(result).items():
        lines.append(paragraph(name, text))
        lines += [f"{INDENT}{line}" for line in table] if name == "answer" else []
    return "\n".join([*lines, f"  {NOT_PRIVATE}"] if result["mode"] == "simulation" else lines)


def paragraph(name: str, text: str) -> str:
    """A named part of an answer on the screen, wrapped beside its name; a command at its end has a line to copy."""
    text, mark, command = text.partition(COMMAND)
    wrapped = textwrap.fill(text + mark[:1], WIDTH, initial_indent=f"  {name:11s}", subsequent_indent=INDENT)
    return f"{wrapped}\n{mark[2:]}{command}" if mark else wrapped


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


def _answered(result: Mapping[str, Any]) -> Iterator[Section]:
    what = "release" if "noise_sd" in result else "query" if {"num_tests", "pairs"} & result.keys() else "test"
    used = result.get("n_is") or (f"The {what} used {result['n']} records." if "n" in result else "")
    yield Section("answer", "", [str(result["answer"])])
    yield Section("", ASKED, [str(result.get("title", "")), used])
    yield Section("asked for", ASKED, [str(result.get("taken", ""))])
    if isinstance(result.get("p_value"), float):
        yield Section("p-value", "", [p_values.number(result["p_value"], 6)])
    if "statistic" in result:
        numbers = list(_flat(result["statistic"]))
        shown = [f"{number:.6g}" if len(numbers) == 1 else f"{number:.4g}" for number in numbers[:MAX_NUMBERS]]
        yield Section("statistic", "", [", ".join(shown) + ", ..." * (len(numbers) > MAX_NUMBERS)])
    if "method" in result:
        how = [f"{result['method']}{_built(result.get('built', {}))}"]
        how += [f"n = {result['n']}"] if "n" in result else []
        asked = result.get("num_tests")
        how += [] if asked is None else ["1 query" if asked == 1 else f"{asked} queries"]
        yield Section("method", "", [", ".join(how)])
    if "noise_sd" in result and "pairs" in result:
        drowned = DROWNED if result["noise_sd"] > NOISY else ""
        if drowned and "noise_sd_with_delta" in result:
            sd = f"{result['noise_sd_with_delta']:.3g}"
            drowned += f", or --delta {amounts.spent(USUAL_DELTA)}, with which the sd is {sd}"
        yield Section("noise", "", [f"sd {result['noise_sd']:.3g} on each coefficient{drowned}"])


def _flat(value: Any) -> Iterator[float]:
    for one in value if isinstance(value, list) else ():
        yield from _flat(one)
    if isinstance(value, int | float):
        yield value


def _built(fields: Mapping[str, Any]) -> str:
    """The settings that differ from the test's defaults, in brackets; of several tests none."""
    told = ", ".join(f"{name} {value}" for name, value in fields.items() if not isinstance(value, Mapping))
    return f" ({told})" if told else ""


def _strength(result: Mapping[str, Any]) -> Iterator[Section]:
    effect = describe_effect(result)
    notes = result.get("effect_notes") or {}
    yield Section("effect", STRENGTH, [f"{effect}." if effect else "", *notes.values()])
    if effect and result["interval"] is not None:
        yield Section("", STRENGTH, ["The noise that was added is counted in the interval."])
    yield Section("curves", STRENGTH, result.get("curves", {}).get("sentences", ()))
    yield Section("margin", STRENGTH, [str(result.get("equivalence", {}).get("sentence", ""))])


def describe_effect(content: Mapping[str, Any]) -> str:
    """The effect size with its interval in words; the empty text where there is none."""
    effect, interval = content.get("effect"), content.get("interval")
    if "effect_rows" in content and interval is not None:
        return _describe_effects(content)
    if not isinstance(effect, float):
        return ""
    ends = "" if interval is None else ", 95 % interval {:.3g} to {:.3g}".format(*interval)
    return f"{effect:.3g}{ends}: {content.get('effect_is') or 'as the test defines it'}"


def listed_effects(content: Mapping[str, Any]) -> list[tuple[str, float, float, float]]:
    """Name, value and ends of the interval of each of several effects that the release gives."""
    return [
        (f"{x}, {y}", effect, low, high)
        for x, *row in zip(content["effect_rows"], content["effect"], *content["interval"], strict=True)
        for y, effect, low, high in zip(content["effect_columns"], *row, strict=True)
        if None not in (effect, low, high)
    ]


def _describe_effects(content: Mapping[str, Any]) -> str:
    """Of several columns, the first `MAX_EFFECTS` by name."""
    found = [f"{name}: {effect:.3g}, {low:.3g} to {high:.3g}" for name, effect, low, high in listed_effects(content)]
    more = f"; {len(found) - MAX_EFFECTS} more in result.json" if len(found) > MAX_EFFECTS else ""
    named = content.get("effect_is") or "as the test defines it"
    together = content.get("intervals_hold_together")
    told = f"{named}, with {'intervals that hold together with 95 % confidence' if together else '95 % intervals'}: "
    return told + "; ".join(found[:MAX_EFFECTS]) + more if found else ""


def _limits(result: Mapping[str, Any]) -> Iterator[Section]:
    withheld = "The p-value is withheld: the test's own condition does not hold for this question."
    yield Section("withheld", LIMITS, [withheld if result.get("withheld") else ""])
    if result.get("complete") is False:
        kept = len(result.get("untested", ()))
        ended = (
            f"The search ended before every question was answered: {kept} pairs have an edge because it was not "
            "removed, not because it was found."
        )
        yield Section("INCOMPLETE", LIMITS, [ended])
    yield Section("note", LIMITS, [str(result.get("note", ""))])
    if "skeleton_f1" in result:
        found = (
            f"F1 = {result['skeleton_f1']:.3f} of the edges, {result['cpdag_f1']:.3f} with their directions; "
            f"structural Hamming distance {result['shd']} (of a graph without edges: {result['shd_of_no_edges']})"
        )
        if "sid" in result:
            pairs = f"{result['sid']} (of a graph without edges: {result['sid_of_no_edges']})"
            found += f"; wrong effects among all ordered pairs, the structural intervention distance: {pairs}"
        yield Section("compared", "", [f"{found}; {result['no_sid']}" if "no_sid" in result else found])
    yield Section("caution", LIMITS, result.get("cautions", ()))


def _sees(result: Mapping[str, Any]) -> Iterator[Section]:
    sees, power = str(result.get("sees") or ""), result.get("power")
    if sees:
        several = sees.partition(": ")[0] in result["method"]  # each test with what it sees
        yield Section("sees", "", [sees])
        yield Section("", SEES, [f"{sees}." if several else f"{result['method']} sees {sees}."])
    elif "sees" in result:
        yield Section("sees", "", ["not said by the test"])
    yield Section("power", SEES, [power if isinstance(power, str) else ""])
    finds = str(result.get("finds", "dependence"))
    if result.get(f"{finds.partition(' ')[0]}_found") is False:
        yield Section("", SEES, [f"Not finding a {finds} does not show that there is none."])


def _rests_on(result: Mapping[str, Any]) -> Iterator[Section]:
    rule, public = result.get("level_rule") or {}, result.get("public_columns")
    flags = rule.get("flags") or result.get("flags", ())
    yield Section("given", RESTS_ON, [str(result.get("conditioned_on", ""))])
    yield Section("cells", "", [_told_cells(result["cells"]) if result.get("cells") else ""])
    rests = (str(result.get("assumption", "")), str(rule.get("sentence", "")))
    yield Section("assumes", RESTS_ON, list(dict.fromkeys(rests)))  # some tests have one sentence for both
    yield Section("flagged", RESTS_ON, [f"Take care: {describe_flags(flags)}." if flags else ""])
    told = f"{', '.join(map(str, public))}: not protected, known to everyone." if public else ""
    yield Section("public", RESTS_ON, [told])


def _told_cells(cells: Sequence[Mapping[str, Any]]) -> str:
    """The cells in words: how many, and how wide."""

    def axis(cut: Mapping[str, Any]) -> str:
        if cut["levels"]:
            return f"{cut['column']} by its {cut['number']} levels"
        width = "" if cut["width"] is None else f", each {cut['width']:.3g} wide"
        return f"{cut['column']} (scaled to [-1, 1]) into {cut['number']} bins{width}"

    total = math.prod(cut["number"] for cut in cells)
    return f"{total} of Z, which cut {'; '.join(axis(cut) for cut in cells)}"


def _cost(result: Mapping[str, Any]) -> Iterator[Section]:
    together = " for all pairs together" if len(result.get("pairs", ())) > 1 else ""
    paid = f"{amounts.cost(result, every=True)}{together}, {result.get('relation')}, {result['mode']}"
    yield Section("privacy", "", [paid])
    if result["mode"] == "simulation":
        told = "Nothing: this was a simulation with a key that can be guessed. It is not private."
        yield Section("", COST, [told])
        yield Section("drafted", COST, describe_drafts(result))
        return
    yield Section("", COST, [f"{amounts.cost(result)}."])
    yield Section("drafted", COST, describe_drafts(result))
    budget = result.get("budget")
    if isinstance(budget, Mapping):
        left = f"{budget['left']} is left of {budget['granted']} in the ledger {budget['ledger']}."
        yield Section("", COST, [left])
        yield Section("budget", "", [f"{budget['left']} left in {budget['ledger']}"])


def describe_drafts(result: Mapping[str, Any]) -> list[str]:
    """What was paid for bounds and levels that private drafts found, a sentence for each of them."""
    return [_describe_draft(draft) for draft in result.get("drafted", ())]


def _describe_draft(draft: Mapping[str, Any]) -> str:
    found = f"Bounds or levels of {', '.join(draft['columns'])} were found by a private draft"
    if draft.get("simulated"):
        return f"{found} with a seed, which is not private."
    count = draft["columns_of_draft"]
    for_all = f" for {count} columns together" if count > 1 else ""
    return (
        f"{found}, which cost {amounts.cost(draft)}{for_all}: it comes on top of this answer's cost, once for all "
        "answers that use them."
    )


def _protected(result: Mapping[str, Any]) -> Iterator[Section]:
    yield Section("records", "", [str(result.get("unit", ""))])
    yield Section("", PROTECTED, list(_told_protected(result)))


def _told_protected(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("mode") == "simulation":
        return
    from jaxdp.data.schema import LEFT_OUT

    files = RELATIONS.get(str(result.get("relation")))
    if files and math.isfinite(float(result["epsilon"])):
        times = f"exp({amounts.spent(result['epsilon'])}) = {_factor(float(result['epsilon']))}"
        yield (
            f"Each record. Take {files}, both accepted by the owner's checks: what is published here is at "
            f"most {times} times as likely for the one as for the other{', plus delta' if result.get('delta') else ''}."
        )
    guess = risk.sentence(float(result["epsilon"]), float(result.get("delta") or 0.0), str(result.get("relation")))
    yield guess
    yield _guess_with_drafts(result) if guess else ""
    if files and (result.get("unit") or LEFT_OUT) == LEFT_OUT:  # no column says whose a record is
        worse = " and a larger delta" if result.get("delta") else ""
        yield (
            f"A person with k records in the file is protected at k times this epsilon{worse} only. If a person may "
            "have several, name the column that tells whose a record is, unit = ..., in the schema."
        )
    yield str(result.get("unit", ""))
    yield f"Not protected: the number of records, {the_schema(result)} and the settings, which count as public."


def the_schema(result: Mapping[str, Any]) -> str:
    """The schema, of which what private drafts released is not public knowledge."""
    names = dict.fromkeys(name for draft in result.get("drafted", ()) for name in draft["columns"])
    return f"the schema{f' (but for what was released of {listed})' if (listed := ', '.join(names)) else ''}"


def _guess_with_drafts(result: Mapping[str, Any]) -> str:
    """What the guess is after this answer and the private drafts that it rests on; "" without drafts."""
    if not any(not draft.get("simulated") for draft in result.get("drafted", ())):
        return ""
    total = result.get("with_drafts")
    if total is None:
        return (
            "This is about the answer alone: the private draft of bounds or levels adds to it, by an amount that is "
            "not known here, since it protects other neighbours or another unit."
        )
    right = risk.of_100(risk.best_guess(total["epsilon"], total["delta"]))
    return f"This is about the answer alone: with the private draft, {amounts.cost(total)} in all, in {right}."


def _again(result: Mapping[str, Any]) -> Iterator[Section]:
    told = []
    if result.get("command"):
        told.append(str(result["command"]).replace(" --overwrite", ""))
        if result["mode"] == "release":
            told.append(
                "This answer is kept in its folder and costs nothing to read again. Running the command again draws "
                "new noise and spends its epsilon again."
            )
    versions = result.get("versions")
    if isinstance(versions, Mapping):
        told.append(", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    yield Section("", "How to run it again", told)


def _factor(epsilon: float) -> str:
    if epsilon >= 20:
        return "more than a hundred million"
    factor = math.exp(epsilon)
    return f"{factor:.3g}" if factor < 100 else f"{float(f'{factor:.3g}'):,.0f}".replace(",", " ")
