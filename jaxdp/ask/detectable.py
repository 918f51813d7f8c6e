"""Which effect an answer without a finding would have found with power 0.8; public numbers and released ones."""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Mapping
from typing import Any

from jaxdp._base import amounts

POWER = 0.8
PAIR = "the test of one pair"  # of which the sentence before a command speaks


def by_release(found: float | None, size: str, level: float) -> dict[str, Any]:
    """`detectable_effect` and `power`, the sentence, where the release itself says how small an effect would do.

    found: None where the noise hides it. size: the name of an effect without a direction, or "".
    """
    text = f"{with_power(level)} no effect, however strong, is found in so few records at this epsilon."
    if found is None:
        text = "The noise hides the scale of the effect, so how small an effect would have been found is not known."
    elif math.isfinite(found):
        what = f"{size} of {found:.3g} or more" if size else f"an effect size of {found:.3g} or more, up or down,"
        text = f"{with_power(level)} {what} would have been found."
    return {"detectable_effect": found, "power": text}


def nothing() -> dict[str, Any]:
    """The same where the p-value of this release is 1, as the answer says elsewhere."""
    text = "Nothing could have been found, however strong; the answer says why."
    return {"detectable_effect": math.inf, "power": text}


def below_ranks(draws: int, level: float) -> dict[str, Any]:
    """The same of a p-value that is a rank among so few draws that it cannot fall to the level."""
    enough = math.ceil(10.0 / level) - 1  # the level is that of ten of them
    text = (
        f"Nothing could have been found at level {level:g}, however strong: the p-value is a rank among {draws} draws, "
        f"so that it is {1.0 / (1.0 + draws):.3g} or more. With --set num_null={enough} (in Python "
        f'fields={{"num_null": {enough}}}) it can be smaller.'
    )
    return {"detectable_effect": math.inf, "power": text}


def with_power(level: float) -> str:
    """How the sentence about an effect begins."""
    return f"With power {POWER} at level {level:.3g}"


def by_plan(content: Mapping[str, Any], schema: Any, path: str) -> dict[str, Any]:
    """The same by the planner, for one column of X and one of Y; {} where it has no plan for them.

    path: of the schema, for the command that is named where the planner needs simulations.
    """
    if not len(content["x"]) == len(content["y"]) == 1:
        return {}
    from jaxdp.plan.methods import plans  # the planner is a third of the package: none of it until here
    from jaxdp.plan.survival import SurvivalSetting

    setting = SurvivalSetting.of_schema(schema, content["x"][0], content["y"][0], content["given"])
    found = by_formula(content["method"], content["n"], content["epsilon"], content["level"], setting)
    if found is None:
        return by_simulation(content, setting, path)
    if found == math.inf:
        return by_release(found, "", content["level"])
    linear = content["given"] and plans()[content["method"]].planning.linear
    weak = ", where Z explains little of X and of Y" if linear else ""
    weak += "; the interval shows what holds for these data" if linear and content["interval"] is not None else ""
    return {
        "detectable_effect": found,
        "power": f"{with_power(content['level'])} an effect of {found:.2g} or more would have been found (the change "
        f"of Y's mean, in residual sds, per residual sd of X; by the planner for such columns{weak}).",
    }


def by_simulation(content: Mapping[str, Any], setting: Any, path: str, what: str = "it") -> dict[str, Any]:
    """The command that simulates it, where the planner has a design for such columns.

    content: method, n, epsilon, level, x, y, given. what: of which the sentence speaks.
    """
    from jaxdp.plan.methods import MIN_N, plans

    plan = plans().get(content["method"])
    if plan is None or not plan.applies(setting):
        return {}
    if content["n"] < (least := max(MIN_N, plan.planning.min_records)):
        text = f"The planner needs at least {least} records to say how small an effect would have been found."
        return {"detectable_effect": None, "power": text}
    return {"detectable_effect": None, "power": in_a_command(content, path, what)}


def in_a_command(content: Mapping[str, Any], path: str, what: str) -> str:
    """The sentence that ends with the planner's command, as a shell takes it."""
    asked = ["--method", content["method"], "--n", str(content["n"]), "--epsilon", amounts.spent(content["epsilon"])]
    asked += ["--level", f"{content['level']:g}", "--power", f"{POWER}", "--schema", path]
    for role in ("x", "y", "given"):
        for name in content[role]:
            asked += [f"--{role}={name}"] if name.startswith("-") else [f"--{role}", name]
    command = shlex.join(["jaxdp", "plan", *asked])
    return f"How small an effect {what} would have found, at no cost, simulated in minutes: {command}"


@functools.lru_cache(maxsize=256)
def by_formula(method: str, n: int, epsilon: float, level: float, setting: Any) -> float | None:
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
