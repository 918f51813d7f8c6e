"""Is an effect surely small? Two one-sided tests of one release: equivalence and non-inferiority, at no further cost.

Theory: docs/theory/equivalence.md. M = margin, in units of the effect.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from jaxdp._base.bisection import bisected
from jaxdp.core import PrivateTest

HALVINGS, DOUBLINGS = 16, 12


@dataclasses.dataclass(frozen=True)
class Equivalence:
    """What a release says about a margin M, the distance from the effect of no dependence.

    above: p-value of the hypothesis that it is -M or further below, so that a small one shows that it lies above.
    below: of the hypothesis that it is M or further above.
    """

    margin: float
    above: float
    below: float

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the distance is M or more in size: the larger of the two."""
        return max(self.above, self.below)


def takes_margins(cls: type) -> bool:
    """Whether a test has a p-value for every effect, so that it can be asked about a margin."""
    return issubclass(cls, PrivateTest) and cls.one_sided is not PrivateTest.one_sided


def equivalence(test: Any, shapes: Any, release: Any, margin: float) -> Equivalence:
    """Both one-sided tests of a release. test: as given to `run`, one that `takes_margins`."""
    above, _ = test.one_sided(shapes, release, test.no_effect - margin)
    _, below = test.one_sided(shapes, release, test.no_effect + margin)
    return Equivalence(margin, float(above), float(below))


def interval(test: Any, shapes: Any, release: Any, level: float, found: tuple[float, float, float]):
    """(low, high): the effects that neither one-sided test rejects at this level, of coverage 1 - 2 level.

    A margin is shown where they lie within it. found: the estimate and the ends of its interval. An end is infinite
    where no effect beyond it is rejected.
    """
    estimate, low, high = found
    ends = []
    for side, step in ((0, min(low - estimate, 0.0)), (1, max(high - estimate, 0.0))):

        def is_kept(effect, side=side):
            return float(test.one_sided(shapes, release, float(effect))[side]) > level

        steps = [step * 2.0**power for power in range(DOUBLINGS)]
        outside = next((estimate + one for one in steps if not is_kept(estimate + one)), math.copysign(math.inf, step))
        if math.isfinite(outside):
            outside = float(bisected(is_kept, estimate, outside, HALVINGS, xp=np)[1])
        ends.append(outside)
    return tuple(ends)
