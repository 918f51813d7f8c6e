"""MICr plus one noise draw: the recommended private maximal information coefficient."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Sequential
from jaxdp.data.dataset import CONTINUOUS
from jaxdp.independence.mic import mic_common, mic_sensitivity
from jaxdp.independence.mic.mic_common import MICTest
from jaxdp.independence.mic.mic_ranges import ASINH, BINS, EVEN, MarginalHistograms, transform
from jaxdp.spec import Planning, TestSpec, without_z
from jaxdp.statistics.mic import coefficients, mic_bins

TEST_SHARE = 0.2  # of the budget, for even margins, where the p-value is what is asked for


def for_its_p_value(cls, epsilon, domain, options):
    """The test on margins that are about uniform, as its null is; coded columns alone have none to even out."""
    columns = () if domain is None else (*domain.x, *domain.y)
    if not any(column.kind == CONTINUOUS for column in columns):
        return cls(epsilon=epsilon)
    return cls(epsilon=epsilon, range_share=TEST_SHARE, range_grid=EVEN)


@frozen_pytree
class MICrLaplace(MICTest):
    """Private maximal information coefficient of two columns with public ranges, and a test of independence.

    Statistic: MICr (Lazarsfeld et al. 2022, definition 4.1) of x, y of shape (n,) on grids of equal ranges of `bounds`.
    Sensitivity: h(n)/n if B < 9, else max(h(n), W(n)/log2 3)/n, h(a) = a log2 a - (a-1) log2(a-1),
    W(n) = h(ceil((n+1)/2)) + h(floor((n+1)/2)); replace-one, tight (docs/theory/mic.md#micr).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho).
    Result.statistic: the released MICr v, corrected for chance as (v - m)/(1 - m) and clipped to [0, 1], where m is
    the public mean of MICr for independent uniform columns of this n, B and c. This removes most of the bias
    of small dependence and allows a larger B. correct_bias=False leaves v; release.value is always v.
    P-value: the null is simulated for x and y uniform on their range, with the same noise: exact there on average over
    null tables, of which all answers of this n share one (docs/theory/mic.md#null-tables). Other margins made
    it conservative in all 8 cases tried (docs/mic.md), which is no proof; for a level that holds for every pair of
    margins use MICeLaplace.

    bounds: public ((x0, x1), (y0, y1)); default from the schema's domain, else [-1, 1]. Values outside are
        clipped to the boundary, NaN counts as the lower end.
    range_share: share of the budget (0.3 is good) spent on a private transform of both axes to about uniform,
        for wide or heavy-tailed public ranges (docs/theory/mic.md#private-ranges); 0 for none.
    range_grid: "asinh", for the strength on heavy tails, or "even", for the p-value: what `jaxdp test` asks for, with
        a share of 0.2, so that the null of uniform margins is nearly met (docs/theory/mic.md#p-values).
    With the published constant, 3.5 times more noise: `jaxdp.published.PaperMICrLaplace`.
    """

    bounds: Any = jax.tree.static(default=None)
    range_share: float = jax.tree.static(default=0.0)
    range_grid: str = jax.tree.static(default=ASINH)
    correct_bias: bool = jax.tree.static(default=True)
    axes: Any = None

    spec: ClassVar[TestSpec] = TestSpec(
        name="micr-laplace",
        summary="maximal information coefficient over public ranges, Laplace noise",
        known_as=("mic",),
        from_domain=for_its_p_value,
        alternatives="any dependence of two columns",
        accepts=without_z,
        planning=Planning(slow=True, without_z=True),
        needs_all="it looks for the best cuts between sorted records",
        theory="docs/theory/mic.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.range_share != 0.0:
            check.in_range(0.0, 1.0, range_share=self.range_share)
        check.one_of(tuple(BINS), range_grid=self.range_grid)
        if self.bounds is not None:
            object.__setattr__(self, "bounds", mic_common.checked_bounds(self.bounds))

    def specialize(self, shapes):
        pinned = super().specialize(shapes)
        if self.range_share == 0.0:
            return pinned
        first = MarginalHistograms(
            mechanism=self.mechanism_in_force().share(self.range_share), bounds=self.bounds, grid=self.range_grid
        )
        rest = self.mechanism_in_force().share(1.0 - self.range_share)
        second = dataclasses.replace(pinned, epsilon=None, mechanism=rest, range_share=0.0)
        return Sequential(first=first, second=second, then=transform)

    def positions(self, data):
        """x and y on the unit interval: scaled public ranges, or through the released transform."""
        bounds = mic_common.public_bounds(self.bounds, data.domain)
        columns = [mic_common.column(values) for values in (data.x, data.y)]
        if self.axes is not None:
            return tuple(axis(values) for axis, values in zip(self.axes, columns, strict=True))
        return tuple(mic_bins.unit_position(v, *b) for v, b in zip(columns, bounds, strict=True))

    def statistic(self, key, data):
        """MICr, a scalar."""
        x, y = self.positions(data)
        count = x.shape[0]
        unit = ((0.0, 1.0), (0.0, 1.0))
        return coefficients.mic_r(
            x, y, bounds=unit, budget=self.cells_allowed(count), c=self.master_factor(count), grid=self.grid
        )

    def sensitivity(self, num_records):
        return self.coefficient_sensitivity(self.move(num_records), num_records)

    def move(self, num_records: int) -> float:
        """How far MICr moves between neighbours."""
        return mic_sensitivity.range_bound(num_records, self.cells_allowed(num_records))

    def null_statistics(self, key, num_records):
        return jnp.asarray(self._null_table(num_records))

    def estimate(self, release):
        """The released coefficient in [0, 1], corrected for chance unless correct_bias=False."""
        if not self.correct_bias:
            return super().estimate(release)
        return corrected(release.value, self._null_table(release.num_records))

    def _null_table(self, num_records: int):
        settings = (self.cells_allowed(num_records), self.master_factor(num_records), self.grid)
        return mic_common.null_table(num_records, *settings, mic_bins.RANGE, self.num_null)


def corrected(value, null):
    """(value - m)/(1 - m) clipped to [0, 1], m the mean of the null draws: 0 for chance alone, 1 stays 1."""
    mean = float(null.mean())
    return jnp.clip((value - mean) / max(1.0 - mean, 1e-6), 0.0, 1.0)
