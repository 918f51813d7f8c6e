"""ColumnQuantiles: in which cell of a public grid quantiles of columns lie, each by a private selection."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.mechanisms import ReportNoisyMax, divide

SMALLEST, LARGEST = -20, 40  # powers of two: the least and the greatest size of a place but 0
FINE, COARSE = 256, 2  # places for each doubling, of values and of distances


@functools.cache
def ends(signed: bool) -> np.ndarray:
    """The ends of the public cells, ascending: 0 and +-2^(j/256) for values, 2^(j/2) for distances.

    Cell k holds what is above end k - 1 and at most end k; there is one cell more than ends.
    """
    each = FINE if signed else COARSE
    sizes = 2.0 ** (np.arange(SMALLEST * each, LARGEST * each + 1) / each)
    return np.concatenate([-sizes[::-1], [0.0], sizes]) if signed else sizes


@functools.cache
def places(signed: bool) -> np.ndarray:
    """A place within each cell: the geometric mean of its ends; the outermost cells of values are at infinity."""
    grid = ends(signed)
    inner = np.where(grid[1:] * grid[:-1] > 0.0, np.sign(grid[1:]) * np.sqrt(np.abs(grid[1:] * grid[:-1])), 0.0)
    return np.concatenate([[-np.inf if signed else grid[0]], inner, [np.inf]])


@frozen_pytree
class ColumnQuantiles(PrivateQuery):
    """The cell of a public grid that holds each quantile of each of d columns.

    Statistic: for a column and a level a, the scores -max(#{values below the cell} - a n, a n - #{values not above
    it}, 0) of all cells. data: (n, d) or more columns, of which the first d count, in their own units; a missing value
    is below all cells or above, by the number of its record. about: (d,) public places; then the quantiles are those
    of the distances from them.
    Sensitivity: a replaced record moves every count by at most 1: 1 in Linf for each selection.
    Privacy: epsilon-DP, the sum over the selections, which have equal shares (report-noisy-max).
    Relation REPLACE_ONE. Source: docs/theory/private_bounds.md.

    levels: the quantiles of every column. num_columns: d.
    """

    about: ArrayLike | None = None

    levels: tuple[float, ...] = jax.tree.static(default=(0.5,))
    num_columns: int = jax.tree.static(default=1)

    method: ClassVar[str] = "private-bounds"
    reads_missing: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, num_columns=self.num_columns)

    @property
    def parts(self) -> dict[str, tuple[int, float]]:
        """name of a selection -> (column, level)."""
        return {
            f"{column:05d}-{place}": (column, level)
            for column in range(self.num_columns)
            for place, level in enumerate(self.levels)
        }

    def mechanism_in_force(self):
        mechanism = ReportNoisyMax(epsilon=check.budget(self.epsilon)) if self.mechanism is None else self.mechanism
        return divide(mechanism, dict.fromkeys(self.parts, Fraction(1, len(self.parts))))

    def statistic(self, key, data):
        """Scores of all cells, (cells,) for each selection."""
        values = jnp.asarray(data)[:, : self.num_columns]
        beyond = jnp.where(jnp.arange(values.shape[0]) % 2 == 0, -jnp.inf, jnp.inf)[:, None]
        missing = jnp.isnan(values)
        values = values if self.about is None else jnp.abs(values - jnp.asarray(self.about)[None, :])
        ordered = jnp.sort(jnp.where(missing, beyond, values), axis=0)
        grid, count = jnp.asarray(ends(self.about is None)), values.shape[0]
        scores = {}
        for name, (column, level) in self.parts.items():
            up_to = jnp.searchsorted(ordered[:, column], grid, side="right")
            below, through = jnp.append(0, up_to), jnp.append(up_to, count)
            off = jnp.maximum(below - level * count, level * count - through)
            scores[name] = -jnp.maximum(off, 0.0)
        return scores

    def sensitivity(self, num_records):
        one = Sensitivity(1.0, Norm.LINF, Relation.REPLACE_ONE, lower=-1.0 * num_records, upper=0.0)
        return dict.fromkeys(self.parts, one)

    def found(self, release) -> np.ndarray:
        """The released places, (d, levels)."""
        at = [int(release.value[name]) for name in self.parts]
        return places(self.about is None)[np.array(at)].reshape(self.num_columns, len(self.levels))
