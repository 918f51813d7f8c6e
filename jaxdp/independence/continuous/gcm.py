"""Generalised covariance measure (Shah and Peters 2020), plain, max-type and weighted. NOT PRIVATE."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity, num_records
from jaxdp.independence import builders
from jaxdp.independence.continuous.residual_products import residual_products, residuals_of
from jaxdp.mechanisms import Exact
from jaxdp.spec import TestSpec
from jaxdp.statistics.kernel_ridge.kernels import RBF


@frozen_pytree
class GCM(PrivateTest):
    """Generalised covariance measure test of X independent of Y given Z. NOT PRIVATE: a reference.

    Statistic: T = sqrt(n) mean(R)/sd(R) of the products R_i of kernel ridge residuals, for each pair of the p
    columns of x and q columns of y, and for each weight function (weighted GCM, Scheidegger et al. 2022).
    P-value: 2 Phi(-|T|) for one product; for several, max |T| against the simulated maximum of correlated
    normals (Shah and Peters 2020, section 3.2). Privacy: none (epsilon infinite); refuses release keys.

    ridge: in the units of (ridge/2)|w|^2 + mean squared error (scikit-learn's alpha is n ridge/2), default 2/n
    (alpha = 1): a fixed one leaves a bias that the test finds sooner or later (ridge 0.01 on a wave of Z: 0.06 of
    the nulls at n = 1000, level 0.05). Below 100 records the normal limit is not reached (n = 50: 0.07; n = 20: 0.10).
    kernel: on rows of z. residuals: 'in_sample' or 'leave_one_out'.
    weights: static function z (n, d) -> (n, w) of public weights; None is the constant 1.
    """

    mechanism: Any = Exact()
    ridge: ArrayLike | None = None
    kernel: Any = RBF(lengthscale=1.0)
    residuals: str = jax.tree.static(default="in_sample")
    weights: Any = jax.tree.static(default=None)
    num_null: int = jax.tree.static(default=999)

    uses_z: ClassVar[bool] = True
    spec: ClassVar[TestSpec] = TestSpec(
        name="gcm",
        summary="non-private reference, NOT PRIVATE; needs --seed",
        private=False,
        from_domain=lambda cls, epsilon, domain, options: cls(**builders.kernel_fields(options)),
        options=builders.KERNEL_OPTIONS,
        assumption=builders.ACCURATE_FIT,
        alternatives="covariance of X and Y given Z",
        memory=builders.kernel_memory,
        shown=("", "statistic T"),
        needs_all="its kernel compares each record with every other",
        theory="docs/theory/private_gcm.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.ridge is not None:
            check.positive(ridge=self.ridge)
        check.one_of(("in_sample", "leave_one_out"), residuals=self.residuals)
        check.at_least(1, num_null=self.num_null)

    def ridge_of(self, num_records: int):
        """The ridge in force for so many records."""
        return 2.0 / num_records if self.ridge is None else self.ridge

    def statistic(self, key, data):
        """Dict of `t`, all normalised means flattened to (c,), and their `correlation` (c, c)."""
        products = residual_products(data, self.kernel, self.ridge_of(num_records(data)), residuals=self.residuals)
        products = products.reshape(products.shape[0], -1)
        if self.weights is not None:
            weights = self.weights(data.z if data.z.ndim == 2 else data.z[:, None])
            products = (products[:, :, None] * weights[:, None, :]).reshape(products.shape[0], -1)
        return _normalised(products)

    def pairwise(self, data):
        """`t` of all pairs i < j of the columns of x (y is x): dict of (pairs,); no n x pairs array is made."""
        ridge = self.ridge_of(data.x.shape[0])
        fitted = residuals_of(data.z, data.x, self.kernel, ridge, self.residuals)
        rows, columns = np.triu_indices(data.x.shape[1], k=1)
        mean = jnp.matmul(fitted.T, fitted, precision="highest") / fitted.shape[0]
        square = jnp.matmul((fitted**2).T, fitted**2, precision="highest") / fitted.shape[0]
        return {"t": _t(mean, square - mean**2, fitted.shape[0])[rows, columns]}

    def pair_p_values(self, key, release):
        """2 Phi(-|T|) of each product."""
        return null_laws.normal(release.value["t"], 1.0)

    def pair_statistics(self, release):
        """T of each product."""
        return release.value["t"]

    def sensitivity(self, num_records):
        return Sensitivity(jnp.inf, Norm.L1, Relation.REPLACE_ONE)

    def p_value(self, key, release):
        largest, correlation = jnp.max(jnp.abs(release.value["t"])), release.value["correlation"]
        if correlation.shape[0] == 1:
            return null_laws.normal(largest, 1.0)
        return null_laws.monte_carlo(largest, null_laws.max_normal(key, correlation, self.num_null))

    def estimate(self, release):
        """T of the product with the largest |T|."""
        t = release.value["t"]
        return t[jnp.argmax(jnp.abs(t))]


def _normalised(products):
    count = products.shape[0]
    centred = products - jnp.mean(products, axis=0, keepdims=True)
    covariance = jnp.matmul(centred.T, centred, precision="highest") / count
    variance = jnp.diagonal(covariance)
    sd = jnp.sqrt(jnp.where(variance <= 0.0, 1.0, variance))
    return {
        "t": _t(jnp.mean(products, axis=0), variance, count),
        "correlation": covariance / (sd[:, None] * sd[None, :]),
    }


def _t(mean, variance, count: int):
    # A constant product has no spread: its T is 0, not NaN.
    flat = variance <= 0.0
    return jnp.where(flat, 0.0, jnp.sqrt(1.0 * count) * mean / jnp.sqrt(jnp.where(flat, 1.0, variance)))
