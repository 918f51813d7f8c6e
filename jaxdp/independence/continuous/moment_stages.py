"""Private centres and scales of columns, before their moments: medians by the exponential mechanism.

Both need not be accurate: the released moments tell where the clip fell (`clipped_normal`).
Theory: docs/theory/partial_correlation.md#centre-and-scale.
"""

import math
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.mechanisms import Split
from jaxdp.statistics import sums

CENTRES = 4096  # equally spaced candidates; a release of Gaussian budgets takes no more
SCALES = 128  # candidates, equally spaced on the logarithm
MIN_SCALE = 2.0**-12  # of the half range
NORMAL_QUARTILE = 0.6745  # median of |xi| of a standard normal xi
REACH = 2.0  # sds at which `PrivateSpreads` clips a normal column
SHARES_GRID = 2.0**16  # sums of multiples of its inverse are exact
LEFT = 15_082 / SHARES_GRID  # E min(xi^2/REACH^2, 1) of a standard normal xi, on that grid


def centre_grid() -> np.ndarray:
    """Candidates of a centre, in half ranges."""
    return (2.0 * (np.arange(CENTRES) + 0.5) / CENTRES) - 1.0


def scale_grid() -> np.ndarray:
    """Candidates of the median distance from the centre, in half ranges."""
    return np.exp(np.linspace(math.log(MIN_SCALE), math.log(2.0), SCALES))


def spread_shares() -> np.ndarray:
    """min(t/c, 1)^2 of each bin of distances (upper edge t) for each candidate c, on a grid on which sums are exact."""
    edges = scale_grid()
    return np.round(np.minimum(edges[:, None] / edges[None], 1.0) ** 2 * SHARES_GRID) / SHARES_GRID


@frozen_pytree
class PrivateMedian(PrivateQuery):
    """Base: one private selection per column, each with an equal share of the budget.

    Statistic: for each column and each public candidate c, minus the distance of #{values <= c} from n/2.
    Sensitivity: 1 per score in Linf, for replace-one neighbours: the count moves by at most 1.
    Privacy: epsilon-DP by report-noisy-max (rho-zCDP by the exponential mechanism), the columns' shares add up.

    columns: function data -> (n, p). bound: public half range, values outside are clipped.
    """

    columns: Any = jax.tree.static(default=None)
    num_columns: int = jax.tree.static(default=1)
    bound: ArrayLike = 1.0

    def mechanism_in_force(self):
        one = self.mechanism.share(Fraction(1, self.num_columns)).selector()
        return Split(parts={self.name(j): one for j in range(self.num_columns)})

    @staticmethod
    def name(column: int) -> str:
        """Of a column's part; names sort as the columns do."""
        return f"{column:03d}"

    def statistic(self, key, data):
        """Dict of scores (candidates,), one entry per column."""
        values = self.values(data)
        grid = jnp.asarray(self.grid(), values.dtype)

        def scores(column):
            below = jnp.searchsorted(jnp.sort(column), grid, side="right")
            return self.scores(below.astype(values.dtype), len(values))

        return {self.name(j): scores(values[:, j]) for j in range(self.num_columns)}

    def scores(self, below, num_records):
        """Of each candidate c, from #{values <= c}: -|#{values <= c} - n/2|, largest at the median."""
        return -abs(below - 0.5 * num_records)

    def partial(self, chunk, num_records=None):
        """How many values lie above each candidate's predecessor and not above it; a last entry above all."""
        grid = self.grid()

        def add(values):
            columns = [np.ascontiguousarray(values[:, j]) for j in range(self.num_columns)]
            return np.stack([sums.counts(sums.places(grid, column), len(grid) + 1) for column in columns])

        return sums.added(self, "in_half_ranges", chunk, num_records, add)

    def in_half_ranges(self, data, num_records):
        """`values` of a chunk."""
        return self.values(data)

    def finish(self, totals):
        below = np.cumsum(totals, axis=1)
        return {self.name(j): self.scores(1.0 * below[j, :-1], below[j, -1]) for j in range(self.num_columns)}

    def _within(self, data):
        return jnp.clip(self.columns(data) / self.bound, -1.0, 1.0)

    def values(self, data):
        """The columns whose medians are chosen, in half ranges."""
        raise NotImplementedError

    def grid(self) -> np.ndarray:
        """Candidates of a median."""
        raise NotImplementedError

    furthest: ClassVar[float] = 0.5  # that a score of n records lies below 0, over n

    def sensitivity(self, num_records):
        one = Sensitivity(1.0, Norm.LINF, Relation.REPLACE_ONE, lower=-self.furthest * num_records, upper=0.0)
        return {self.name(j): one for j in range(self.num_columns)}

    def chosen(self, release):
        """The released medians (p,), in half ranges."""
        grid = jnp.asarray(self.grid())
        return jnp.stack([grid[release.value[self.name(j)]] for j in range(self.num_columns)])


@frozen_pytree
class PrivateCentres(PrivateMedian):
    """Private medians of the columns, among 4096 equally spaced candidates."""

    method: ClassVar[str] = "PrivateCentres"

    def values(self, data):
        return self._within(data)

    def grid(self):
        return centre_grid()


@frozen_pytree
class PrivateScales(PrivateMedian):
    """Private median distances from released centres (p,), among 128 candidates on the logarithm."""

    centres: Any = 0.0

    method: ClassVar[str] = "PrivateScales"

    def values(self, data):
        centres = jnp.broadcast_to(jnp.asarray(self.centres, float), (self.num_columns,))
        return jnp.abs(self._within(data) - centres[None])

    def grid(self):
        return scale_grid()


@frozen_pytree
class PrivateSpreads(PrivateScales):
    """Private distances c from released centres at which min(distance/c, 1)^2 has a public mean, that of 2 sds.

    Unlike a median it is no jump of a count, so a column of few values has one. Distances are rounded up to
    candidates.
    Statistic: for each column and each candidate c, minus the distance of sum min(distance/c, 1)^2 from 0.2301 n.
    Sensitivity: 1 per score in Linf, for replace-one neighbours: a term lies in [0, 1].
    Privacy: that of `PrivateMedian` (docs/theory/logistic_regression.md#sensitivity).
    """

    method: ClassVar[str] = "PrivateSpreads"
    furthest: ClassVar[float] = 1.0 - LEFT

    def scores(self, below, num_records):
        counts = jnp.diff(below, prepend=0.0) if isinstance(below, jax.Array) else np.diff(below, prepend=0.0)
        return -abs(counts @ spread_shares() - LEFT * num_records)

    def chosen(self, release):
        """The released sds (p,), in half ranges."""
        return super().chosen(release) / REACH
