"""What the first release of `LogRank` says besides: the Kaplan-Meier curve of each group with its band, in words.

Theory: docs/theory/log_rank.md#curves. Post-processing: no budget, and nothing of the data but the noisy counts.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.kept_programs import kept_jit
from jaxdp.data.columns import level_name
from jaxdp.statistics.survival_curves import DRAWS, SEED, SurvivalCurves, survival_curves

OPPOSED = (
    "The hazard ratio and the difference of the restricted means point in opposite directions here. They come from "
    "releases with noise of their own and weigh times differently: rely on the direction of one only where its "
    "interval leaves out no difference."
)


@kept_jit
def estimated(query, sensitivity, counts, num_records, ends, step) -> SurvivalCurves:
    """From the release of `EventCounts`. query: it, whose mechanism says the law of the noise. ends: of its blocks.

    step: as `log_rank.step_lengths`.
    """
    noise = query.mechanism.noise(jax.random.key(SEED + 1), sensitivity, (DRAWS, *jnp.shape(counts)))
    return survival_curves(jnp.asarray(counts, float), jnp.asarray(num_records, float), noise, ends, step)


def told(found: SurvivalCurves, ends, x, y, hazard: float) -> dict[str, Any]:
    """`curves` of result.json. ends: of blocks. x, y: the schema's rules of the group; of the time and of the event.

    hazard: log ratio of the second group to the first in the same answer; NaN where there is none.
    """
    (group,) = x
    (time,) = (rule for rule in y if rule.is_continuous)
    (event,) = (rule for rule in y if not rule.is_continuous)
    found = jax.tree.map(lambda part: np.asarray(part, float), found)
    at = [time.unscaled(place) for place in 2.0 * ends - 1.0]
    came = f"{event.name} = {level_name(event.levels[1])}"
    groups = [
        {
            "name": f"{group.name} = {level_name(level)}",
            "at": at,
            "value": [None if math.isnan(one) else one for one in found.survival[place].tolist()],
            "low": found.low[place].tolist(),
            "high": found.high[place].tolist(),
        }
        for place, level in enumerate(group.levels)
    ]
    middle = int(np.argmin(np.abs(ends - 0.5)))
    shares = ", ".join(_at(one, middle) for one in groups)
    sentences = [
        f"Share without {came} at {time.name} {at[middle]:.4g}: {shares}.",
        "In the picture each band holds the whole true curve of its group with 95 % confidence, noise counted "
        "(Kaplan-Meier, from the counts that the test released; no further cost).",
    ]
    sentences += _apart_told(groups, time)
    found_means = _restricted_means(found, time)
    if found_means:
        sentences.insert(1, _means_told(found_means, groups, time, came))
        sentences[2:2] = [OPPOSED] * (hazard * found_means.get("difference", math.nan) > 0.0)
    return {
        "over": time.name,
        "of": f"share without {came}",
        "groups": groups,
        **({"restricted_means": found_means} if found_means else {}),
        "sentences": sentences,
    }


def _apart_told(groups, time) -> list[str]:
    """Where both bands lie apart: curves that cross may differ there beside a p-value that is not small."""
    if len(groups) != 2:
        return []
    ends = [np.array([group["low"], group["high"]]) for group in groups]
    gaps = np.maximum(ends[0][0] - ends[1][1], ends[1][0] - ends[0][1])
    if not np.any(gaps > 0.0):
        return []
    place = groups[0]["at"][int(np.nanargmax(gaps))]
    return [
        f"At {time.name} {place:.4g} the bands lie apart: there the curves differ, with 90 % confidence at least. Of "
        "differences that cancel over time, as where curves cross, the p-value and the hazard ratio say nothing."
    ]


def _restricted_means(found: SurvivalCurves, time) -> dict[str, Any]:
    """Means of the time or `until`, whichever comes first, and the others less the first; {} where not known."""
    if time.logarithmic or np.isnan(found.difference).any():
        return {}
    length = 2.0 * time.half_range
    differences = (length * found.difference).tolist()
    intervals = (length * np.stack([found.low_difference, found.high_difference], axis=1)).tolist()
    of_two = len(differences) == 1
    return {
        "until": time.unscaled(2.0 * float(found.until) - 1.0),
        "means": [time.lower + length * one for one in found.means.tolist()],
        **({"difference": differences[0], "interval": intervals[0]} if of_two else {}),
        **({} if of_two else {"differences": differences, "intervals": intervals}),
    }


def _means_told(means, groups, time, came: str) -> str:
    own = ", ".join(f"{group['name']} {mean:.4g}" for group, mean in zip(groups, means["means"], strict=True))
    start = f"Restricted mean {time.name} without {came}, up to {means['until']:.4g}: {own}; "
    if "interval" in means:
        low, high = means["interval"]
        return f"{start}the second less the first {means['difference']:.3g}, 95 % interval {low:.3g} to {high:.3g}."
    against = ", ".join(
        f"{group['name']} {mean:.3g} ({low:.3g} to {high:.3g})"
        for group, mean, (low, high) in zip(groups[1:], means["differences"], means["intervals"], strict=True)
    )
    return f"{start}less that of {groups[0]['name']}: {against}; all the intervals hold at once with 95 % confidence."


def _at(group, place: int) -> str:
    """The curve of a group at one place."""
    value, low, high = (group[name][place] for name in ("value", "low", "high"))
    shown = "not known" if value is None else f"{value:.2f}"
    return f"{group['name']} {shown} (band {low:.2f} to {high:.2f})"
