"""How a planned power changes where the data are not as planned: tails, residual scale, means given Z; simulated."""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxdp.plan.compare import Row
from jaxdp.plan.methods import plan_of
from jaxdp.plan.setting import Setting
from jaxdp.plan.solve import MAX_SIMULATED_N, SIMULATION, PlannedTest

REPLICATES = 400


@dataclasses.dataclass(frozen=True)
class Change:
    """What the planned test finds where `words` hold: power with its 95 % interval, and what it was planned to be."""

    name: str
    words: str
    power: float
    interval: tuple[float, float]


def changes(row: Row, setting: Setting, *, level: float, replicates: int, key: Any) -> list[Change]:
    """One entry for each of the setting's departures that differs from it; none without an answer.

    The built test stays as it is: it does not know of the departure.
    """
    plan = plan_of(row.method)
    too_large = row.n is None or row.n > MAX_SIMULATED_N // (10 if plan.entry.spec.memory else 1)
    if row.reason or too_large or plan.planning.slow or not replicates:
        return []
    assert row.n is not None
    assert row.epsilon is not None
    assert row.effect is not None
    found = []
    for name, words, other in setting.departures():
        if other == setting:
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
