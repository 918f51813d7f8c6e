"""PartitionGCM whose number of cells is chosen on the private data, by permute-and-flip over a public grid.

Theory: docs/theory/partition_gcm.md#choosing-the-cells: the criterion comes from (X, Z) and (Y, Z) separately, never
from the test statistic or from products of x and y. Symbols: SSx_b = within-cell sum of squares of x.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.printed import printed
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity, Sequential
from jaxdp.independence import builders
from jaxdp.independence.continuous.coarse_cells import WithinCells
from jaxdp.independence.continuous.partition_gcm import PartitionGCM
from jaxdp.mechanisms import Laplace
from jaxdp.spec import TestSpec, continuous_columns_of_z, on_a_line
from jaxdp.statistics import partition, sums

# A record's arrival in a cell of m raises SSx_b by m/(m + 1) (x - mean)^2 < 4 for x in [-1, 1], its departure lowers
# it by less than 4; a replacement is one of each, so SSx moves by less than 4, and so does SSy.
SQUARES_SENSITIVITY = 8.0
SELECTION_SHARE = 0.15  # of the budget (as much as for an axis in `PartitionGCM`)
RESIDUAL_VARIANCE = 0.516  # of a standard normal variable clipped to [-1, 1]


@frozen_pytree
class Coarse:
    """A reference law seen through `bins` equal-mass bins; bins may be traced. Leaves at most `bins` cells occupied."""

    law: Any
    bins: ArrayLike

    def cdf(self, z):
        position = jnp.clip(jnp.floor(self.law.cdf(z) * self.bins), 0.0, self.bins - 1.0)
        return (position + 0.5) / self.bins

    def occupied(self, num_columns: int):
        """How many cells of `num_columns` columns can hold a record."""
        return self.bins**num_columns


@frozen_pytree
class CellChoice(PrivateQuery):
    """Privately chooses how many bins each column of Z gets, out of a public grid.

    Statistic: for each candidate, minus (SSx + SSy + 2 v K) for K cells, v the residual variance of both (Mallows):
    x and y about their cell means, each by itself, clipped to [-1, 1] by public scales.
    Sensitivity: 8 per score in Linf, replace-one: less than 4 each for SSx and SSy; K is public.
    Privacy: epsilon-DP by permute-and-flip, exact lattice noise in a release.
    """

    candidates: tuple[int, ...] = jax.tree.static(default=())
    reference: Any = None
    scale_x: ArrayLike = 1.0
    scale_y: ArrayLike = 1.0

    method: ClassVar[str] = "CellChoice"
    lattice: ClassVar[float] = sums.GRID_ERROR

    def mechanism_in_force(self):
        return (Laplace(self.epsilon) if self.mechanism is None else self.mechanism).selector()

    def statistic(self, key, data):
        """Scores (candidates,)."""
        x, y = (
            partition.clip_to(partition.as_matrix(values), scale)
            for values, scale in ((data.x, self.scale_x), (data.y, self.scale_y))
        )
        return jnp.stack([self._score(x, y, data, bins) for bins in self.candidates])

    def partial(self, chunk, num_records=None):
        """Moments within the cells of each candidate."""
        count = len(chunk.x) if num_records is None else num_records
        numbers = self._numbers(chunk)

        def add(cells, x, y):
            return tuple(sums.cell_moments(cells[:, j], x, y, number) for j, number in enumerate(numbers))

        return sums.added(self, "on_grid", chunk, count, add, max(numbers))

    def on_grid(self, data, num_records):
        """Cells (n, candidates), x and y on the grid."""
        cells = [partition.cells_of(data, number, self.reference)[0] for number in self._numbers(data)]
        sides = ((data.x, self.scale_x), (data.y, self.scale_y))
        x, y = (sums.to_grid(partition.clip_to(partition.as_matrix(values), scale)) for values, scale in sides)
        return jnp.stack(cells, axis=1), x, y

    def _numbers(self, data) -> list[int]:
        """Cells of each candidate."""
        return [bins ** partition.num_columns(data.z) for bins in self.candidates]

    def finish(self, totals):
        found = []
        for moments in totals:
            _, of_x, of_y = sums.centred_moments(moments)
            within = float(np.sum(of_x) + np.sum(of_y))
            found.append(-within - 2.0 * len(moments["count"]) * 2.0 * RESIDUAL_VARIANCE)
        return np.array(found)

    def needs_all(self, shapes, of_persons=False):
        return super().needs_all(shapes, of_persons) or sums.too_large(sum(self._numbers(shapes)), shapes.x.shape[0])

    def _score(self, x, y, data, bins: int):
        depth = partition.num_columns(data.z)
        cell, num_cells = partition.cells_of(data, bins**depth, self.reference)
        within = sum(jnp.sum(partition.sums_of_squares(values, cell, num_cells)) for values in (x, y))
        return -within - 2.0 * num_cells * 2.0 * RESIDUAL_VARIANCE

    def sensitivity(self, num_records):
        return Sensitivity(
            SQUARES_SENSITIVITY,
            Norm.LINF,
            Relation.REPLACE_ONE,
            error=32.0 * num_records**2 * 2.0**-53,
            lower=-8.0 * (num_records + 1) - 4.0 * max(self.candidates) ** 3,
            upper=0.0,
        )


def _from_domain(cls, epsilon, domain, options):
    """On a schema's [-1, 1] the values are winsorised wider than residuals need, for they are not centred."""
    if domain is None and options.residual_scale is None:
        return cls(epsilon=epsilon)
    scale_x, scale_y = options.residual_scale or (builders.DISCRETE_RESIDUAL_SCALE,) * 2
    return cls(epsilon=epsilon, scale_x=scale_x, scale_y=scale_y)


@frozen_pytree
class ChosenCells(WithinCells):
    """`PartitionGCM` after a private choice of its cells.

    15 % of the budget chooses the bins of each column of Z out of `candidates` (`CellChoice`), the rest runs
    `PartitionGCM` on these cells. Privacy: epsilon-DP, sequential composition; x, y: one column each, z: 1 to 3
    continuous columns. Level: the choice looks at (X, Z) and at (Y, Z) apart, so that under the hypothesis it does not
    favour chance products; the test is that of the chosen cells.

    candidates: public numbers of bins per column, increasing. Others: as in `PartitionGCM`, which refuses two
    continuous columns too.
    """

    candidates: tuple[int, ...] = jax.tree.static(default=(4, 8, 16, 32))
    reference: Any = None
    winsorize: ArrayLike | None = None
    scale_x: ArrayLike = 1.0
    scale_y: ArrayLike = 1.0

    spec: ClassVar[TestSpec] = TestSpec(
        name="chosen-cells",
        summary="partition-gcm after a private choice of its cells",
        from_domain=_from_domain,
        options=("residual_scale",),
        assumption=builders.WITHIN_CELLS,
        alternatives="covariance of X and Y given Z",
        effect=PartitionGCM.spec.effect,
        describe_effect=PartitionGCM.spec.describe_effect,
        accepts=lambda domain: on_a_line(domain) and 1 <= len(domain.z) == continuous_columns_of_z(domain) <= 3,
        theory="docs/theory/partition_gcm.md",
    )
    default_mechanism = Laplace

    def __post_init__(self):
        super().__post_init__()
        bins = self.candidates
        check.all_at_least(1, candidates=bins)
        if len(bins) < 2 or list(bins) != sorted(set(bins)):
            raise ValueError(f"candidates must be two or more increasing numbers of bins, got {printed(bins)}.")

    def specialize(self, shapes):
        depth = partition.num_columns(shapes.z)
        if not 1 <= depth <= 3 or any(column.levels for column in partition.columns_of_z(shapes)):
            raise ValueError(f"ChosenCells cuts 1 to 3 continuous columns of z, got {depth}; use PartitionGCM.")
        for name in ("x", "y"):
            if partition.num_columns(getattr(shapes, name)) != 1:
                raise ValueError(f"{name} must have one column for ChosenCells; use PartitionGCM for several.")
        self.refuse_coarse_cells(partition.columns_of_z(shapes))
        reference = partition.default_reference(shapes) if self.reference is None else self.reference
        choice = CellChoice(
            mechanism=self.mechanism_in_force().share(SELECTION_SHARE),
            candidates=self.candidates,
            reference=reference,
            scale_x=self.scale_x,
            scale_y=self.scale_y,
        )
        test = PartitionGCM(
            mechanism=self.mechanism_in_force().share(1.0 - SELECTION_SHARE),
            reference=reference,
            num_cells=self.candidates[-1] ** depth,
            winsorize=self.winsorize,
            scale_x=self.scale_x,
            scale_y=self.scale_y,
            select_axes=False,
            accept_coarse_cells=True,
        )
        return Sequential(first=choice, second=test, then=on_chosen_cells)


def on_chosen_cells(test, query, released):
    """The test on the released number of bins."""
    bins = jnp.asarray(query.candidates, float)[released.value]
    return dataclasses.replace(test, reference=Coarse(law=query.reference, bins=bins))
