"""ProjectedChi2: the chi-squared statistic rebuilt around the noise, for independence and goodness of fit.

Source: Rogers and Kifer 2017; docs/theory/table_tests.md#projected-chi-squared. Symbols: H~ = noisy table, sigma^2 =
noise variance per cell, C = diag(p) - p p^T + (sigma^2/n) I, Pi = I - 1 1^T/d, M = Pi C^-1 Pi.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.printed import printed
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import method_of
from jaxdp.independence.tables.noisy_table import (
    NoisyTableTest,
    margins,
    of_noisy_tables,
    product,
    project_to_simplex,
    require_one_column,
)
from jaxdp.mechanisms import Gaussian
from jaxdp.spec import Columns, OneColumn, Planning, TestSpec, one_column_of_levels
from jaxdp.statistics import sums
from jaxdp.statistics.tables import contingency
from jaxdp.statistics.tables.association import chi_squared_tail

FIT_STEPS = 12  # Gauss-Newton steps; the fit is quadratic, so 12 reach the last digit from the margins


@frozen_pytree
class ProjectedChi2(NoisyTableTest):
    """Private independence test of two coded columns by the projected chi-squared statistic.

    Statistic: the r x c table; released with noise per cell, everything else is post-processing.
    Sensitivity: 2 in L1, sqrt(2) in L2. Relation REPLACE_ONE.
    Privacy: epsilon-DP by Laplace noise of scale 2/epsilon, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: Q = min over product laws p of n (H~/n - p)^T M (H~/n - p). With Gaussian noise Q has the
    chi-squared law with (r - 1)(c - 1) degrees of freedom in the limit (measured size 0.047 to 0.056 at 0.05);
    with Laplace noise the null is simulated at the fitted margins. 1 where some expected count is at most
    `min_expected`.
    effect: Cramer's V, of a 2 x 2 table the phi coefficient, with an interval that leaves out 0 exactly where p <= 0.05
    (docs/theory/effect_sizes.md#cramers-v); NaN where noise hides the rarest cells.
    """

    spec: ClassVar[TestSpec] = of_noisy_tables(
        name="projected-chi2",
        summary="projected chi-squared of a noisy table; two discrete columns",
        known_as=("chi-square", "chi-squared", "chi2", "chi2_contingency", "fisher-exact"),
        planning=Planning("tables:projected_power", table=True, unordered=True, reference="tables:chi_squared_power"),
    )

    def no_gradient(self, name):
        return "" if isinstance(self.mechanism_in_force(), Gaussian) else null_laws.RANK

    def table_p_value(self, key, release, table):
        value, fitted = self._distance(table, release)
        usable = jnp.min(fitted) * release.num_records > self.min_expected
        if isinstance(self.mechanism_in_force(), Gaussian):
            return jnp.where(usable, chi_squared_tail(value, self.degrees), 1.0)
        null_tables = self.null_tables(key, release, fitted)
        null = jax.vmap(lambda table: self._distance(table, release)[0])(null_tables)
        return jnp.where(usable, null_laws.monte_carlo(value, null), 1.0)

    def fitted(self, release):
        return self._distance(jnp.asarray(release.value, float), release)[1]

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the limit law."""
        return (self.shape[0] - 1) * (self.shape[1] - 1)

    def _distance(self, table, release):
        """(Q, fitted product law)."""
        total = 1.0 * release.num_records
        clean = project_to_simplex(jnp.ravel(table), total).reshape(self.shape)
        rows, columns = margins(clean)
        metric = projected_metric(jnp.ravel(product(rows, columns)), self._noise_share(release))

        def fit(_, law):
            return _gauss_newton(law, jnp.ravel(table) / total, metric)

        rows, columns = jax.lax.fori_loop(0, FIT_STEPS, fit, (rows, columns))
        residual = jnp.ravel(table) / total - jnp.ravel(product(rows, columns))
        fitted = product(jnp.maximum(rows, 0.0), jnp.maximum(columns, 0.0))
        return jnp.maximum(total * _quadratic(metric, residual), 0.0), fitted

    def _noise_share(self, release):
        """sigma^2/n."""
        return self.mechanism_in_force().variance(release.sensitivity) / release.num_records


def _not_one_column(domain) -> str:
    """Why goodness of fit cannot be asked about these columns."""
    told = "goodness-of-fit asks about one column X of levels, by itself"
    if len(domain.x) != 1:
        return f"{told}, and there are {len(domain.x)}: ask about one at a time"
    if domain.z:
        return f"{told}: leave out the columns that are given"
    return f"{told}, and {domain.x[0].name or 'x'} holds numbers: declare levels in the schema if it has few values"


@frozen_pytree
class ProjectedGoodnessOfFit(ProjectedChi2):
    """Private goodness-of-fit test: do the codes x follow a public law?

    probabilities: public law of x, (d,), all > 0, one for each level. y is not read.
    Privacy and sensitivity as `ProjectedChi2`. P-value: the rank among `num_null` simulated tables, exact for any noise
    and any expected counts, since nothing of the null is estimated (`min_expected` is not read).
    """

    probabilities: ArrayLike | None = None
    num_null: int = jax.tree.static(default=999)  # a least p-value of .001

    spec: ClassVar[TestSpec] = TestSpec(
        name="goodness-of-fit",
        summary="projected chi-squared of one discrete column against public probabilities",
        columns=Columns.CODES,
        needs=("probabilities",),
        one_column=OneColumn("Does {x} have the stated probabilities?", "departure from the probabilities"),
        accepts=one_column_of_levels,
        why_not=lambda domain: _not_one_column(domain),
        alternatives="any departure from the probabilities",
        theory="docs/theory/table_tests.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.probabilities is None:
            raise ValueError("probabilities must give the public law of x, e.g. [0.25, 0.5, 0.25].")
        if check.is_concrete(self.probabilities) or isinstance(self.probabilities, list | tuple | str):
            law = np.asarray(self.probabilities)
            is_law = law.dtype.kind in "iuf" and law.ndim == 1 and law.size >= 2 and np.all(law > 0)
            if not is_law or abs(law.sum() - 1.0) > 1e-5:
                raise ValueError(
                    f"probabilities must be at least two numbers > 0 with sum 1, got {printed(self.probabilities)}."
                )
            object.__setattr__(self, "probabilities", jnp.asarray(law, float))

    def no_gradient(self, name):
        return null_laws.RANK

    def specialize(self, shapes):
        require_one_column(method_of(self), shapes, "x")
        levels = shapes.domain.x[0].levels if shapes.domain is not None else 0
        if levels and levels != self._law().size:
            raise ValueError(
                f"x has {levels} levels, and there are {self._law().size} probabilities: give one for each level, in "
                "the order of the levels."
            )
        return self

    def table_p_value(self, key, release, table):
        value, law = self._distance(table, release)
        null = jax.vmap(lambda table: self._distance(table, release)[0])(self.null_tables(key, release, law))
        return null_laws.monte_carlo(value, null)

    def _law(self):
        return jnp.asarray(self.probabilities, float)

    def statistic(self, key, data):
        """Counts (d,) as floats."""
        return contingency.table([data.x], (self._law().size,)).astype(float)

    def partial(self, chunk, num_records=None):
        """The counts of a chunk."""
        return sums.table([chunk.x], (self._law().size,))

    def finish(self, totals):
        return totals.astype(float)

    def _distance(self, table, release):
        metric = projected_metric(self._law(), self._noise_share(release))
        residual = table / release.num_records - self._law()
        return release.num_records * _quadratic(metric, residual), self._law()


def projected_metric(probabilities, noise_share):
    """M = Pi C^-1 Pi for a law p (d,), where C = diag(p) - p p^T + noise_share I."""
    size = probabilities.shape[0]
    covariance = jnp.diag(probabilities) - jnp.outer(probabilities, probabilities) + noise_share * jnp.eye(size)
    inverse = jnp.linalg.inv(covariance)
    projection = jnp.eye(size) - 1.0 / size

    def dot(a, b):
        return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)

    return dot(projection, dot(inverse, projection))


def _quadratic(metric, residual):
    return jnp.dot(residual, jnp.matmul(metric, residual, precision=jax.lax.Precision.HIGHEST))


def _gauss_newton(law, observed, metric):
    """One step for the product law: the last share of each margin follows from the others."""
    rows, columns = law
    residual = observed - jnp.ravel(product(rows, columns))
    move_rows = jnp.eye(rows.shape[0])[:, :-1] - jnp.eye(rows.shape[0])[:, -1:]
    move_columns = jnp.eye(columns.shape[0])[:, :-1] - jnp.eye(columns.shape[0])[:, -1:]
    by_rows = (move_rows[:, None, :] * columns[None, :, None]).reshape(observed.shape[0], -1)
    by_columns = (rows[:, None, None] * move_columns[None, :, :]).reshape(observed.shape[0], -1)
    slope = jnp.concatenate([by_rows, by_columns], axis=1)
    weighted = jnp.matmul(slope.T, metric, precision=jax.lax.Precision.HIGHEST)
    step = jnp.linalg.solve(
        jnp.matmul(weighted, slope, precision=jax.lax.Precision.HIGHEST), jnp.matmul(weighted, residual)
    )
    count = rows.shape[0] - 1
    return rows + jnp.matmul(move_rows, step[:count]), columns + jnp.matmul(move_columns, step[count:])
