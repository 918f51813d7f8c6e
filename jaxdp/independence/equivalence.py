"""Is an effect surely small? Two one-sided tests of one release: equivalence and non-inferiority, at no further cost.

Theory: docs/theory/equivalence.md. M = margin, in units of the effect.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxdp.core import PrivateTest


@dataclasses.dataclass(frozen=True)
class Equivalence:
    """What a release says about a margin M.

    above: p-value of the hypothesis that the effect is at most -M, so that a small one shows that it lies above.
    below: of the hypothesis that it is at least M.
    """

    margin: float
    above: float
    below: float

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the effect is M or more in size: the larger of the two."""
        return max(self.above, self.below)


def takes_margins(cls: type) -> bool:
    """Whether a test has a p-value for every effect, so that it can be asked about a margin."""
    return issubclass(cls, PrivateTest) and cls.one_sided is not PrivateTest.one_sided


def equivalence(test: Any, shapes: Any, release: Any, margin: float) -> Equivalence:
    """Both one-sided tests of a release. test: as given to `run`, one that `takes_margins`."""
    above, _ = test.one_sided(shapes, release, -margin)
    _, below = test.one_sided(shapes, release, margin)
    return Equivalence(margin, float(above), float(below))
