"""Non-private association statistics of one block, with their limit-law p-values: chi-squared, G, Pearson's r.

Each is a callable pytree: `ContingencyTest(...)(data)` is a p-value, `.value(data)` the statistic, as the private votes
(`TestOfTests`) and medians (`SubsampleAggregate`) take them.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaincc
from jax.scipy.stats import norm

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.statistics.tables import contingency

CHI_SQUARED, G = "chi-squared", "g"


def expected_counts(table):
    """Counts that independence predicts from the margins of a table (r, c)."""
    total = jnp.maximum(jnp.sum(table), 1.0)
    return jnp.sum(table, axis=1, keepdims=True) * jnp.sum(table, axis=0, keepdims=True) / total


def chi_squared(table):
    """Pearson's chi-squared of a table (r, c); 0 where nothing is expected."""
    expected = expected_counts(table)
    filled = expected > 0
    return jnp.sum(jnp.where(filled, (table - expected) ** 2 / jnp.where(filled, expected, 1.0), 0.0))


def g_statistic(table):
    """Likelihood-ratio statistic 2 sum O log(O/E) of a table (r, c)."""
    expected = expected_counts(table)
    filled = table > 0
    ratio = jnp.where(filled, table, 1.0) / jnp.where(filled, expected, 1.0)
    return jnp.maximum(2.0 * jnp.sum(jnp.where(filled, table * jnp.log(ratio), 0.0)), 0.0)


def chi_squared_tail(value, degrees: float):
    """P(chi-squared with `degrees` degrees of freedom >= value)."""
    return gammaincc(degrees / 2.0, value / 2.0)


@frozen_pytree
class ContingencyTest:
    """Independence of two coded columns by chi-squared or the G statistic, with (r - 1)(c - 1) degrees of freedom.

    levels: public numbers of levels (r, c); codes outside fall into the nearest level.
    """

    levels: tuple[int, int] = jax.tree.static(default=(2, 2))
    kind: str = jax.tree.static(default=CHI_SQUARED)

    def __post_init__(self):
        check.one_of((CHI_SQUARED, G), kind=self.kind)
        check.all_at_least(2, levels=self.levels)

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the limit law."""
        return (self.levels[0] - 1) * (self.levels[1] - 1)

    def value(self, data):
        """The statistic of a block."""
        table = contingency.table([data.x, data.y], self.levels).astype(float)
        return chi_squared(table) if self.kind == CHI_SQUARED else g_statistic(table)

    def __call__(self, data):
        """P-value of a block."""
        return chi_squared_tail(self.value(data), self.degrees)


@frozen_pytree
class CorrelationTest:
    """Pearson's correlation of two columns, by Fisher's z with its normal limit law."""

    def value(self, data):
        """|z| sqrt(m - 3) of a block of m records."""
        x, y = (jnp.asarray(a, float) for a in (data.x, data.y))
        x, y = x - jnp.mean(x), y - jnp.mean(y)
        spread = jnp.sqrt(jnp.sum(x**2) * jnp.sum(y**2))
        r = jnp.where(spread > 0, jnp.sum(x * y) / jnp.where(spread > 0, spread, 1.0), 0.0)
        limit = 1.0 - 1e-6
        return jnp.abs(jnp.arctanh(jnp.clip(r, -limit, limit))) * jnp.sqrt(1.0 * max(x.shape[0] - 3, 1))

    def __call__(self, data):
        """Two-sided p-value of a block."""
        return 2.0 * norm.sf(self.value(data))


def squared_correlation(block):
    """Squared correlation of one block without Z, as the square of a normal deviate (Wallace 1959, of Student's t).

    n r^2 is not one in small blocks: the median of 101 blocks of ten then rejects a fifth of the nulls.
    """
    x, y = (values - jnp.mean(values) for values in (block.x, block.y))
    share = jnp.sum(x * y) ** 2 / jnp.maximum(jnp.sum(x * x) * jnp.sum(y * y), 1e-30)
    freedom = max(x.shape[0] - 2, 1)
    factor = ((8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)) ** 2
    return -factor * freedom * jnp.log1p(-jnp.minimum(share, 1.0 - 1e-6))
