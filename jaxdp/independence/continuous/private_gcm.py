"""PrivGCM: the private GCM with kernel ridge regression, with the tight noise constant.

Source: GCM paper, Algorithm 1 and Lemma 3.4. Theory: docs/theory/private_gcm.md, docs/theory/kernel_ridge.md.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.independence import builders
from jaxdp.independence.continuous import validity
from jaxdp.independence.continuous.residual_products import residual_products, residuals_of
from jaxdp.mechanisms import Laplace
from jaxdp.spec import Options, Planning, TestSpec, continuous_given
from jaxdp.statistics import partition
from jaxdp.statistics.kernel_ridge import ridge_bounds, ridge_error
from jaxdp.statistics.kernel_ridge.kernels import RBF


def natural_scale(num_records: int) -> float:
    """A bound on the largest of n standard normal values, as the paper scales its data: 1 + sqrt(2 log n)."""
    return 1.0 + math.sqrt(2.0 * math.log(max(num_records, 2)))


def _from_domain(cls, epsilon, domain, options: Options):
    fields = builders.kernel_fields(options)
    if domain is None and options.num_records:
        scale = natural_scale(options.num_records)
        fields |= {"scale_x": scale, "scale_y": scale}
    return cls(epsilon=epsilon, **fields)


UNCHECKED = (
    "Nothing checks it, and noise hides less of what it leaves as n and epsilon grow; partition-gcm, band-gcm and "
    "contrast-gcm rest on no fit."
)


@frozen_pytree
class PrivateGCM(PrivateTest):
    """Private GCM test of X independent of Y given Z: noise on every residual product.

    Statistic: R_i = product of the kernel ridge residuals of x and of y, one ridge for both fits; the noisy
    vector R~ is released and T = sqrt(n) mean(R~)/sd(R~). p and q columns give (n, p, q) products.
    Sensitivity (L1 of R, replace-one, |x|, |y| <= 1, k(z, z) <= 1), times p q: 2 N U(N) + 2 (1 + N/sqrt2)^2
        (docs/theory/kernel_ridge.md#residual-products).
    Privacy: epsilon-DP, or zCDP with mechanism=Gaussian(rho) (L2 is never larger than L1). ridge and kernel must
    be public: choosing them on the private data is not covered.
    P-value: 2 Phi(-|T|) (Bonferroni for several products). Level: only while the noise hides the bias of the fit.

    WARNING (docs/theory/private_gcm.md#fixed-ridge). With a fixed ridge the bias does not vanish and the level is lost
    as n grows (type-I error 1.00 at n = 1e5, epsilon = 7), and ridge >= 10, which the noise constant needs to be small,
    shrinks the fit to nearly nothing (4 % of the regression function explained). `PartitionGCM` has neither problem and
    far more power.

    ridge: units of the objective (ridge/2)|w|^2 + mean squared error; scikit-learn's alpha is n ridge/2.
    kernel: of rows of z; one of your own must be positive semidefinite with k(z, z) <= 1 for every z: its word is taken
        for the sensitivity.
    scale_x, scale_y: public; x/scale_x and y/scale_y are clipped to [-1, 1].
    With the published noise: `jaxdp.published.PaperGCM`.
    """

    ridge: ArrayLike = 10.0
    kernel: Any = RBF(lengthscale=1.0)
    scale_x: ArrayLike = 1.0
    scale_y: ArrayLike = 1.0
    num_columns: tuple[int, int, int] = jax.tree.static(default=(1, 1, 1))

    uses_z: ClassVar[bool] = True
    flags: ClassVar[tuple[str, ...]] = (validity.FIT,)
    spec: ClassVar[TestSpec] = TestSpec(
        name="private-gcm",
        needs_all="its kernel compares each record with every other",
        summary="published private GCM with the tight noise constant; weak, loses its level as n grows",
        from_domain=_from_domain,
        options=builders.KERNEL_OPTIONS,
        assumption=builders.ACCURATE_FIT,
        alternatives="covariance of X and Y given Z",
        memory=builders.kernel_memory,
        accepts=continuous_given,
        shown=("", "statistic T"),
        planning=Planning("continuous:private_gcm_tight_power", gaussian_formula="always"),
        theory="docs/theory/private_gcm.md",
    )
    default_mechanism = Laplace

    def __post_init__(self):
        super().__post_init__()
        check.positive(ridge=self.ridge, scale_x=self.scale_x, scale_y=self.scale_y)

    def specialize(self, shapes):
        """Notes how many columns there are; refuses data without z."""
        if shapes.z is None:
            raise ValueError("PrivateGCM needs z; without one use PartitionGCM, whose single cell centres exactly.")
        return partition.with_column_counts(self, shapes)

    def validity(self, data) -> validity.Validity:
        """Flagged on all data: nothing checks the fit. Public."""
        return validity.Validity(validity.FLAG, f"{builders.ACCURATE_FIT} {UNCHECKED}", self.flags)

    def statistic(self, key, data):
        """Residual products, (n, p, q)."""
        return residual_products(data, self.kernel, self.ridge, (self.scale_x, self.scale_y))

    def sensitivity(self, num_records):
        products = self.num_columns[0] * self.num_columns[1]
        limit = (1.0 + ridge_bounds.norm_bound(self.ridge)) ** 2
        return Sensitivity(
            products * self.move_of_products(),
            Norm.L1,
            Relation.REPLACE_ONE,
            error=products
            * ridge_error.sum_error(self.ridge, num_records, self.kernel.entry_error(self.num_columns[2])),
            lower=-limit,
            upper=limit,
        )

    def move_of_products(self):
        """L1 bound of the products of one pair of columns."""
        return ridge_bounds.delta_vector(self.ridge)

    def pairwise(self, data):
        """Residual products of all pairs i < j of the columns of x (y is x): (n, pairs)."""
        fitted = residuals_of(data.z, partition.clip_to(data.x, self.scale_x), self.kernel, self.ridge)
        rows, columns = np.triu_indices(data.x.shape[1], k=1)
        return fitted[:, rows] * fitted[:, columns]

    def p_value(self, key, release):
        return null_laws.bonferroni(self.pair_p_values(key, release))

    def pair_p_values(self, key, release):
        """One p-value for each pair of columns."""
        return null_laws.normal(noisy_t(release.value), 1.0)

    def estimate(self, release):
        """T, scalar or (p, q)."""
        t = noisy_t(release.value)
        return t.reshape(()) if t.size == 1 else t


def noisy_t(products):
    """sqrt(n) mean/sd over the leading axis."""
    sd = jnp.std(products, axis=0)
    return jnp.sqrt(1.0 * products.shape[0]) * jnp.mean(products, axis=0) / jnp.maximum(sd, 1e-30)
