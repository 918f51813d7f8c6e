"""What all pairs would have found: the smallest effect with power 0.8, and what a delta changes. Public numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxdp import null_laws
from jaxdp._base.amounts import spent
from jaxdp.ask import detectable


def of_joint_release(query: Any, test: Any, columns: tuple, rows: int, delta: float, worth: float) -> dict[str, Any]:
    """Of one release of `PairContrasts`. delta: of which is told what it would change; worth: from which share on."""
    from jaxdp.independence.tables.pair_contrasts_power import detectable_effect, named_effect

    level, classings = query.level / len(query.asked), test.classed(columns, rows)
    found = detectable_effect(test.mechanism_in_force(), classings, rows, level)
    power = (
        f"With power {detectable.POWER} {named_effect(classings)} of {found:.2g} or more would have been found in "
        f"a pair of columns with equally full classes (at level {query.level:g}/{len(query.asked)}, the strictest that "
        "the adjustment asks for); where a level or class is rare, only a larger effect, or none."
        if found < 1.0
        else "No effect, however strong, is found with power 0.8 in so few records at this budget: name fewer columns, "
        "or spend more."
    )
    if null_laws.never_so_small(test, level):
        enough = math.ceil(10.0 / level) - 1
        found, power = (
            math.inf,
            (
                f"No effect in one pair alone would have been found at level {query.level:g}/{len(query.asked)}, the "
                f"strictest that the adjustment asks for: p-values are ranks among {test.num_null} draws, "
                f"{1 / (1 + test.num_null):.2g} or more. --set num_null={enough} (in Python "
                f'fields={{"num_null": {enough}}}) would do.'
            ),
        )
    told = _told_delta(query, columns, rows, level, delta, worth)
    return {"detectable_effect": found if found < 1.0 else None, "power": f"{power} {told}"}


def _told_delta(query: Any, columns: tuple, rows: int, level: float, usual: float, worth: float) -> str:
    """What a delta changes, between two halves."""
    from jaxdp.accounting.renyi import zcdp_rho
    from jaxdp.independence.tables.pair_contrasts_power import effect_between_halves
    from jaxdp.mechanisms import Gaussian, MaxNorm

    delta = query.delta or usual
    pure = effect_between_halves(MaxNorm(query.epsilon), columns, rows, level)
    normal = effect_between_halves(Gaussian(zcdp_rho(query.epsilon, delta)), columns, rows, level)
    if normal > worth * pure:
        ending = ", so none was spent" if query.delta else ""
        return f"A delta of {delta:g} would not help: pure epsilon-DP has no more noise for these columns{ending}."
    shares = f"an effect of {normal:.3g} between halves in place of {pure:.3g}"
    if query.delta:
        return f"The delta of {delta:g} finds {shares}."
    return f"With --delta {delta:g} (in Python delta={delta:g}) it would be {shares}."


def of_single_pairs(asked: Sequence[Any], rows: int, level: float) -> dict[str, Any]:
    """Of pairs that are tested one by one, by the planner's formulas."""
    from jaxdp.plan.survival import SurvivalSetting

    found = []
    for query in asked:
        setting = SurvivalSetting.of_schema(query.schema, query.x[0], query.y[0], list(query.given))
        found.append(detectable.by_formula(query.entry.name, rows, query.epsilon, level, setting))
    known = [effect for effect in found if effect is not None]
    if not known:
        (query, *_) = asked
        words = [f"--method {query.entry.name} --n {rows} --epsilon {spent(query.epsilon)} --level {level:.3g}"]
        return {
            "detectable_effect": None,
            "power": "How small an effect a pair would have shown, at no cost, simulated in minutes: jaxdp plan "
            f"{words[0]} --power {detectable.POWER} --x {query.x[0]} --y {query.y[0]} with the schema.",
        }
    low, high = min(known), max(known)
    if math.isinf(low):
        return detectable.by_release(low, "", level) | {"detectable_effect": None}
    told = f"{low:.2g}" if high - low < 0.05 * low else f"{low:.2g} to {high:.2g}, by the pair,"
    return {
        "detectable_effect": high if math.isfinite(high) else None,
        "power": f"{detectable.with_power(level)} an effect of {told} or more would have been found (the change of Y's "
        "mean, in residual sds, per residual sd of X; by the planner for such columns).",
    }
