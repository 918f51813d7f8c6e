"""MICe plus one noise draw: a private coefficient that depends on ranks alone."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.mic import mic_common, mic_sensitivity
from jaxdp.independence.mic.mic_common import MICTest
from jaxdp.spec import Planning, TestSpec, without_z
from jaxdp.statistics.mic import coefficients, mic_bins, mic_grids


@frozen_pytree
class MICeLaplace(MICTest):
    """Private MICe of two columns (Lazarsfeld et al. 2022, mechanism 1), and a distribution-free test of independence.

    Statistic: MICe of x, y of shape (n,) on grids of equal numbers of records. Ties are split by a random
    priority per record, drawn for x and y before any value is read. NaN counts as the smallest value.
    Sensitivity: max over grids of (k + l - 1) h(ceil(n/l) + 1)/(n log2 k), replace-one (docs/theory/mic.md#mice), about
    (B/2 + 1)(log2(2n/B) + 1.5)/n; tight to a few per cent (neighbouring data sets reach 0.96 of it).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho).
    Accuracy: the noise is 10 times that of MICrLaplace; prefer that one wherever public ranges exist.
    P-value: exact for every pair of margins on average over null tables, since the ranks of independent columns are
    uniform; the table of `num_null` draws that all answers of this n share deviates (docs/theory/mic.md#null-tables).

    max_cells: B, default n**0.6; c: default 15 (the published settings).
    With the published constant: `jaxdp.published.PaperMICeLaplace`.
    """

    spec: ClassVar[TestSpec] = TestSpec(
        name="mice-laplace",
        summary="maximal information coefficient of equipartitions, Laplace noise",
        alternatives="any dependence of two columns",
        accepts=without_z,
        planning=Planning(slow=True, without_z=True),
        needs_all="it ranks each column, which is a sort",
        theory="docs/theory/mic.md",
    )

    def cells_allowed(self, num_records):
        return max(4.0, num_records**0.6) if self.max_cells is None else float(self.max_cells)

    def master_factor(self, num_records):
        return 15.0 if self.c is None else float(self.c)

    def statistic(self, key, data):
        """MICe, a scalar."""
        x, y = mic_common.column(data.x), mic_common.column(data.y)
        count = x.shape[0]
        priority = jax.random.bits(key, (2, count), jnp.uint32)
        settings = {"budget": self.cells_allowed(count), "c": self.master_factor(count), "grid": self.grid}
        return coefficients.mic_e(x, y, priority=(priority[0], priority[1]), **settings)

    def sensitivity(self, num_records):
        return self.coefficient_sensitivity(self.move(num_records), num_records)

    def move(self, num_records: int) -> float:
        """How far MICe moves between neighbours."""
        sizes = mic_grids.grids(self.cells_allowed(num_records), self.master_factor(num_records), self.grid)
        return mic_sensitivity.mass_bound(num_records, sizes)

    def null_statistics(self, key, num_records):
        settings = (self.cells_allowed(num_records), self.master_factor(num_records), self.grid)
        return jnp.asarray(mic_common.null_table(num_records, *settings, mic_bins.MASS, self.num_null))
