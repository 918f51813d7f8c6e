"""Curves of groups with bands, as a picture; all that is drawn is in result.json.

`curves` of result.json: over, the axis; of, what the curves show, a share; groups, each with name, at (where), value
(None where it is not known), low and high; sentences. Curves fall: between two places a band reaches from the low end
of the later one to the high end of the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxdp._base import p_values
from jaxdp.report.figures import BLUE, RED, Effect, Effects, over_effect, plain, save

COLOURS = (BLUE, RED, "#5a7d2a", "#7b4ea3", "#b07a1e", "#3b3f45")
DASHES = ("-", "--", "-.", ":")


def draw(
    path: Path,
    curves: Mapping[str, Any],
    *,
    p_value: float,
    level: float,
    title: str,
    effect: Effect | Effects | None = None,
    simulation: bool = False,
) -> Path:
    """The curves with their bands; below them the effect."""
    figure, axes = over_effect(4.6, effect)
    for place, group in enumerate(curves["groups"]):
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
        at, low, high = (np.array(group[name], float) for name in ("at", "low", "high"))
        value = np.array([np.nan if one is None else one for one in group["value"]], float)
        stairs = np.repeat(at, 2)[1:-1]
        axes.fill_between(stairs, np.repeat(low[1:], 2), np.repeat(high[:-1], 2), color=colour, alpha=0.16, linewidth=0)
        for edge in (np.repeat(low[1:], 2), np.repeat(high[:-1], 2)):
            axes.plot(stairs, edge, color=colour, linewidth=0.6, alpha=0.7)
        axes.plot(at, value, dash, color=colour, marker="o", markersize=3.0, label=plain(group["name"]))
    axes.set(title=plain(title), xlabel=plain(curves["over"]), ylabel=plain(curves["of"]), ylim=(0.0, 1.02))
    axes.set_xlim(curves["groups"][0]["at"][0], curves["groups"][0]["at"][-1])
    told = f"each band holds its whole curve with 95 % confidence, noise included; {p_values.describe(p_value)}"
    figure.legend(
        loc="outside lower left", ncols=2, frameon=False, fontsize=9, title=told, title_fontsize=9, alignment="left"
    )
    return save(figure, path, simulation)
