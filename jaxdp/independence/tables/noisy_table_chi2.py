"""NoisyTableChi2: chi-squared of a noisy r x c table with a Monte Carlo null.

Source: Gaboardi, Lim, Rogers and Vadhan 2016 (MCIndep); docs/theory/table_tests.md#noisy-table.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.tables.noisy_table import NoisyTableTest, margins, of_noisy_tables, product, project_to_simplex
from jaxdp.spec import Planning, TestSpec


@frozen_pytree
class NoisyTableChi2(NoisyTableTest):
    """Private independence test of two coded columns: chi-squared of the noisy table, Monte Carlo null.

    Statistic: the r x c table H. Released: H + noise per cell; everything else is post-processing.
    Sensitivity: 2 in L1, sqrt(2) in L2 (a replaced record leaves a cell and enters one). Relation REPLACE_ONE.
    Privacy: epsilon-DP by Laplace noise of scale 2/epsilon, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: the noisy table is projected on {x >= 0, sum = n}; its margins give the null E = n pi1 pi2^T, from which
    `num_null` noisy tables are drawn and treated alike; Q = sum (noisy - E)^2/E. 1 where some E is at most
    `min_expected`. The margins are estimated, so the level is approximate (measured 0.045 to 0.054 at 0.05).
    effect: Cramer's V, of a 2 x 2 table the phi coefficient, with an interval that leaves out 0 exactly where p <= 0.05
    (docs/theory/effect_sizes.md#cramers-v); NaN where noise hides the rarest cells.
    """

    spec: ClassVar[TestSpec] = of_noisy_tables(
        name="noisy-table",
        summary="chi-squared of a noisy table, simulated null; two discrete columns",
        planning=Planning("tables:noisy_table_power", table=True, unordered=True, reference="tables:chi_squared_power"),
    )
    gradient_free = null_laws.RANK

    def table_p_value(self, key, release, table):
        total = 1.0 * release.num_records
        value, fitted = self._distance(table, total)
        null_tables = self.null_tables(key, release, fitted)
        null = jax.vmap(lambda table: self._distance(table, total)[0])(null_tables)
        return jnp.where(value < 0, 1.0, null_laws.monte_carlo(value, null))

    def _distance(self, table, total):
        """(Q, or -1 where an expected count is too small; fitted null probabilities)."""
        clean = project_to_simplex(jnp.ravel(table), total).reshape(self.shape)
        probabilities = product(*margins(clean))
        expected = total * probabilities
        usable = jnp.min(expected) > self.min_expected
        safe = jnp.where(expected > 0, expected, 1.0)
        return jnp.where(usable, jnp.sum((table - expected) ** 2 / safe), -1.0), probabilities
