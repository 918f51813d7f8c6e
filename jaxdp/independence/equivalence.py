"""Is an effect surely small? Two one-sided tests of one release: equivalence and non-inferiority, at no further cost.

Theory: docs/theory/equivalence.md. M = margin, in units of the effect.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxdp.core import PrivateTest


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
