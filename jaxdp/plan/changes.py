"""How a planned power changes where the data are not as planned: tails, residual scale, means given Z; simulated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxdp.plan.compare import Row
from jaxdp.plan.methods import plan_of
from jaxdp.plan.setting import Setting
from jaxdp.plan.solve import MAX_SIMULATED_N, SIMULATION, PlannedTest

REPLICATES = 400
HEAVY = 3.0  # degrees of freedom of Student's t


@dataclasses.dataclass(frozen=True)
class Change:
    """What the planned test finds where `words` hold: power with its 95 % interval, and what it was planned to be."""

    name: str
    words: str
    power: float
    interval: tuple[float, float]


_DEPARTURES: tuple[tuple[str, str, Callable[[Setting], Setting]], ...] = (
    ("heavy tails", "residuals have heavy tails (t, 3 df)", lambda s: dataclasses.replace(s, tails=HEAVY)),
    (
        "half the residual scale",
        "residuals have half the planned sd",
        lambda s: dataclasses.replace(s, residual_sd=0.5 * s.residual_sd),
    ),
    ("means of one sd", "Z moves the means by one sd", lambda s: dataclasses.replace(s, confounding=1.0)),
    ("means of three sds", "Z moves the means by three sds", lambda s: dataclasses.replace(s, confounding=3.0)),
)


def changes(row: Row, setting: Setting, *, level: float, replicates: int, key: Any) -> list[Change]:
    """One entry for each departure that differs from the setting; none without continuous x or y, or without an answer.

    The built test stays as it is: it does not know of the departure.
    """
    plan = plan_of(row.method)
    continuous = not (setting.x.levels and setting.y.levels)
    too_large = row.n is None or row.n > MAX_SIMULATED_N // (10 if plan.entry.spec.memory else 1)
    if row.reason or not setting.scaled or not continuous or too_large or plan.slow or not replicates:
        return []
    assert row.n is not None
    assert row.epsilon is not None
    assert row.effect is not None
    found = []
    for name, words, depart in _DEPARTURES:
        other = depart(setting)
        if other == setting or (other.confounding != setting.confounding and not setting.z):
            continue
        planned = PlannedTest.of(
            row.method,
            other,
            level=level,
            engine=SIMULATION,
            replicates=min(replicates, REPLICATES),
            key=key,
            delta=row.delta,
        )
        counted = planned.simulated(row.n, row.epsilon, row.effect)
        low, high = counted.interval()
        found.append(Change(name, words, counted.rate, (float(low), float(high))))
    return found
