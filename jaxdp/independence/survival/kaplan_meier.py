"""What the first release of `LogRank` says besides: the Kaplan-Meier curve of each group with its band, in words.

Theory: docs/theory/log_rank.md#curves. Post-processing: no budget, and nothing of the data but the noisy counts.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.statistics.survival_curves import DRAWS, SEED, SurvivalCurves, survival_curves


@jax.jit
def estimated(query, sensitivity, counts, num_records) -> SurvivalCurves:
    """From the release of `EventCounts`. query: it, whose mechanism says the law of the noise."""
    noise = query.mechanism.noise(jax.random.key(SEED + 1), sensitivity, (DRAWS, *jnp.shape(counts)))
    return survival_curves(jnp.asarray(counts, float), jnp.asarray(num_records, float), noise)


def told(found: SurvivalCurves, x, y) -> dict[str, Any]:
    """`curves` of result.json. x, y: the schema's rules of the group; of the time and of the event."""
    (group,) = x
    (time,) = (rule for rule in y if rule.is_continuous)
    (event,) = (rule for rule in y if not rule.is_continuous)
    found = jax.tree.map(lambda part: np.asarray(part, float), found)
    at = [time.unscaled(place) for place in np.linspace(-1.0, 1.0, found.survival.shape[1])]
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
    middle = len(at) // 2
    shares = ", ".join(_at(one, middle) for one in groups)
    sentences = [
        f"Share without {came} at {time.name} {at[middle]:.4g}: {shares}.",
        "In the picture each band holds the whole true curve of its group with 95 % confidence, noise counted "
        "(Kaplan-Meier, from the counts that the test released; no further cost).",
    ]
    return {"over": time.name, "of": f"share without {came}", "groups": groups, "sentences": sentences}


def level_name(level) -> str:
    """A level as sentences name it."""
    return level if isinstance(level, str) else f"{level:.12g}"


def _at(group, place: int) -> str:
    """The curve of a group at one place."""
    value, low, high = (group[name][place] for name in ("value", "low", "high"))
    shown = "not known" if value is None else f"{value:.2f}"
    return f"{group['name']} {shown} (band {low:.2f} to {high:.2f})"
