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
    survival, low, high = (np.asarray(part, float) for part in (found.survival, found.low, found.high))
    at = [time.unscaled(place) for place in np.linspace(-1.0, 1.0, survival.shape[1])]
    names = [f"{group.name} = {level}" for level in group.levels]
    came = f"{event.name} = {event.levels[1]}"
    groups = [
        {
            "name": name,
            "at": at,
            "value": [None if math.isnan(one) else one for one in survival[k].tolist()],
            "low": low[k].tolist(),
            "high": high[k].tolist(),
        }
        for k, name in enumerate(names)
    ]
    half = survival.shape[1] // 2
    shares = ", ".join(_at(one, half) for one in groups)
    return {
        "over": time.name,
        "of": f"share without {came}",
        "groups": groups,
        "sentences": [
            f"Share without {came} at {time.name} {at[half]:.4g}: {shares}.",
            "In the picture each band holds the whole true curve of its group with 95 % confidence, noise counted "
            "(Kaplan-Meier, from the counts that the test released; no further cost).",
        ],
    }


def _at(group, place: int) -> str:
    """The curve of a group at one place."""
    value, low, high = (group[name][place] for name in ("value", "low", "high"))
    shown = "not known" if value is None else f"{value:.2f}"
    return f"{group['name']} {shown} (band {low:.2f} to {high:.2f})"
