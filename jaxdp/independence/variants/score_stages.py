"""What a score test releases before its scores: a null model, its mean residual, a choice of variants, their lines.

Every stage asks the test (`of`) for its columns and for residuals about what was released so far.
Theory: docs/theory/score_test.md.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.statistics import moments, score_sums

SPREAD_OF_FIT = 3.0  # sds of the fitted means of a binary phenotype that are let through
FLOOR = 2.0  # least eigenvalue of the noisy Gram matrix, in sds of an entry's noise


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model:
    """A released null model: phenotype = design theta + residual; all public.

    gram: (d + 1, d + 1), noisy. limit: B, what a residual is divided by. fit_limit: fitted means are clipped there.
    gram_noise, moment_noise: variances of the noise in the entries of the Gram matrix and in design'y.
    """

    theta: Any
    gram: Any
    limit: Any
    fit_limit: Any
    gram_noise: Any
    moment_noise: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Lines:
    """Released lines of the tested variants: coefficients (m, w), and the variance (m,) that they add to S."""

    coefficients: Any
    product_variance: Any


def _sum(bound: float, norm: Norm, count: int, limit: float) -> Sensitivity:
    """Of `count` sums that a record moves by at most `bound` each."""
    total = {Norm.L1: count * bound, Norm.L2: math.sqrt(count) * bound, Norm.LINF: bound}[norm]
    return Sensitivity(total, norm, Relation.REPLACE_ONE, lower=-limit, upper=limit)


@frozen_pytree
class Stage(PrivateQuery):
    """Base: a query about the columns of a score test."""

    of: Any = None

    reads_missing: ClassVar[bool] = True

    def budget(self):
        return self.mechanism


@frozen_pytree
class NullModel(Stage):
    """Second moments and sums of covariates and phenotype on [-1, 1]: a linear null model by its normal equations.

    Sensitivity: that of `jaxdp.statistics.moments` for d + 1 columns (docs/theory/partial_correlation.md#sensitivity).
    """

    method: ClassVar[str] = "NullModel"

    @property
    def width(self) -> int:
        """Covariates and the phenotype."""
        return self.of.num_covariates + 1

    def statistic(self, key, data):
        """The vector of `moments.vector`, phenotype last."""
        del key
        columns = jnp.concatenate([self.of.design(data)[:, 1:], self.of.phenotype(data)[:, None]], axis=1)
        return moments.vector(moments.on_grid(columns), self._euclidean)

    @property
    def _euclidean(self) -> bool:
        return self.mechanism.norm is Norm.L2

    def sensitivity(self, num_records):
        p, limit = self.width, moments.weights(self.width, self._euclidean) * num_records
        bound = moments.frobenius_bound(p) if self._euclidean else moments.l1_bound(p)
        return Sensitivity(bound, self.mechanism.norm, Relation.REPLACE_ONE, lower=-limit, upper=limit)

    def model(self, release) -> Model:
        """The null model that the release says."""
        p, n = self.width, release.num_records
        weights = jnp.asarray(moments.weights(p, self._euclidean))
        found, noise = release.value / weights, self.mechanism.variance(release.sensitivity) / weights**2
        sums, whole, spread = _with_intercept(found, noise, p, n)
        floor = FLOOR * jnp.sqrt(self.mechanism.variance(release.sensitivity))
        gram = _floored(whole[:p, :p], jnp.minimum(floor, 0.25 * n))
        theta = jnp.linalg.solve(gram, whole[:p, p])
        explained = theta @ gram @ theta / n
        left = jnp.clip(whole[p, p] / n - explained, 1e-3, 1.0)
        between = jnp.sqrt(jnp.maximum(explained - (sums[-1] / n) ** 2, 0.0))
        binary_fit = jnp.clip(jnp.abs(theta[0]) + SPREAD_OF_FIT * between, 0.0, 1.0)
        if self.of.binary:
            limit, fit_limit = 1.0 + binary_fit, binary_fit
        else:
            limit, fit_limit = jnp.minimum(self.of.winsorize * jnp.sqrt(left), 2.0), jnp.ones_like(left)
        return Model(theta, gram, limit, fit_limit, spread[:p, :p], spread[:p, p])


def _with_intercept(found, noise, p: int, n: int):
    """Sums, Gram matrix of (1, columns), and the variances of the noise in it."""
    rows, columns = np.triu_indices(p)

    def whole(entries, corner):
        square = jnp.zeros((p, p), entries.dtype).at[rows, columns].set(entries[: len(rows)])
        square = square + jnp.triu(square, 1).T
        sums = entries[len(rows) :]
        return jnp.block([[jnp.full((1, 1), corner, entries.dtype), sums[None]], [sums[:, None], square]])

    return found[len(rows) :], whole(found, float(n)), whole(noise, 0.0)


def _floored(gram, floor):
    values, vectors = jnp.linalg.eigh(gram)
    return (vectors * jnp.maximum(values, floor)[None]) @ vectors.T


@frozen_pytree
class ResidualMean(Stage):
    """The sum of the residuals about the null model, each within [-1, 1]; the intercept again, with little noise.

    Sensitivity: 2.
    """

    method: ClassVar[str] = "ResidualMean"

    def statistic(self, key, data):
        """One number."""
        del key
        return jnp.sum(self.of.residuals(data))

    def sensitivity(self, num_records):
        return _sum(2.0, self.mechanism.norm, 1, float(num_records))


@frozen_pytree
class VariantChoice(Stage):
    """The variants with a large unadjusted score |sum x r|, by exponential mechanisms.

    Sensitivity: each score moves by at most 2.
    """

    method: ClassVar[str] = "VariantChoice"

    def statistic(self, key, data):
        """Scores (K,)."""
        del key
        return jnp.abs(score_sums.products(self.of.variants(data), self.of.residuals(data)[:, None])[:, 0])

    def sensitivity(self, num_records):
        return _sum(2.0, Norm.LINF, 1, float(num_records))


@frozen_pytree
class VariantLines(Stage):
    """Sums of variant times (1, covariates) for each tested variant: its linear regression on the covariates.

    Sensitivity: every product lies in [-1, 1], so each of the m (d + 1) sums moves by at most 2.
    """

    method: ClassVar[str] = "VariantLines"

    def statistic(self, key, data):
        """Sums (m, d + 1)."""
        del key
        return score_sums.products(self.of.tested(data), moments.on_grid(self.of.line_design(data)))

    def sensitivity(self, num_records):
        count = self.of.num_tested * self.of.line_width
        return _sum(2.0, self.mechanism.norm, count, float(num_records))
