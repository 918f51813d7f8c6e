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

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.statistics import moments, score_sums

SPREAD_OF_FIT = 3.0  # sds of the fitted means of a binary phenotype that are let through
# times the eigenvalue that counts, from which on a covariate is taken to vary, by one function and by several, whose
# noise adds up: of a covariate that varied too little to show it noise alone reached 1.55
VARIES, VARIES_OF_SEVERAL = 1.5, 2.25
LEAST = 4.0  # least eigenvalue of the noisy Gram matrix that counts, in sds of an entry's noise


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Model:
    """A released null model: phenotype = design theta + residual; all public.

    gram: (w, w), noisy, without the directions that noise hides; inverse: its
    pseudo-inverse. limit: B, what a residual is divided by. fit_limit: fitted means are clipped there.
    gram_noise, moment_noise: variances of the noise in the entries of the Gram matrix and in design'y.
    residual_variance: of the phenotype. skewness: third moment of r as a share of its second, at most.
    hidden: (w,), the part of the function 1 that lies in those directions; means are fitted there.
    lost: (d,), the covariates of which the noise hides that they vary at all, so that nothing of them is held fixed.
    entangled: whether the same holds of a combination of covariates. rare: (L,), levels (`levels` of the basis) that
    are not held fixed, since the noise hides how many records have them. counts, counts_noise: (L,), those numbers by
    the noisy Gram matrix, and the variances of their noise.
    """

    theta: Any
    gram: Any
    inverse: Any
    limit: Any
    fit_limit: Any
    gram_noise: Any
    moment_noise: Any
    residual_variance: Any
    skewness: Any
    hidden: Any
    lost: Any
    entangled: Any
    rare: Any
    counts: Any
    counts_noise: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Lines:
    """Released lines of the tested variants: coefficients (m, w), and the variance (m,) that they add to S.

    jump: third moment of h r as a share of its second, (m,), at most. mean: what errors of the lines add to S, (m,).
    """

    coefficients: Any
    product_variance: Any
    jump: Any
    mean: Any


def _sum(bound: float, norm: Norm, count: int, limit: float) -> Sensitivity:
    """Of `count` sums that a record moves by at most `bound` each."""
    total = {Norm.L1: count * bound, Norm.L2: math.sqrt(count) * bound, Norm.LINF: bound}[norm]
    return Sensitivity(total, norm, Relation.REPLACE_ONE, lower=-limit, upper=limit)


@frozen_pytree
class Stage(PrivateQuery):
    """Base: a query about the columns of a score test."""

    of: Any = None

    reads_missing: ClassVar[bool] = True


@frozen_pytree
class NullModel(Stage):
    """Products of functions of the covariates and the phenotype: a null model by its normal equations.

    Sensitivity: that of the basis (docs/theory/score_test.md#covariates).
    """

    method: ClassVar[str] = "NullModel"

    def statistic(self, key, data):
        """The vector of the basis."""
        return self.of.basis.vector(self.of.design(data), self.of.phenotype(data), self._euclidean)

    @property
    def _euclidean(self) -> bool:
        return self.mechanism.norm is Norm.L2

    def sensitivity(self, num_records):
        basis = self.of.basis
        limit = basis.weights(self._euclidean) * num_records
        bound = basis.bound(self._euclidean)
        return Sensitivity(bound, self.mechanism.norm, Relation.REPLACE_ONE, lower=-limit, upper=limit)

    def model(self, release) -> Model:
        """The null model that the release says."""
        basis, n = self.of.basis, release.num_records
        p, weights = basis.width, jnp.asarray(basis.weights(self._euclidean))
        noise = self.mechanism.variance(release.sensitivity)
        whole, spread = basis.matrix(release.value / weights, n), basis.matrix(noise / weights**2, 0.0)
        constant = jnp.asarray(basis.constant)
        least = jnp.minimum(LEAST * jnp.sqrt(noise), 0.25 * n)
        gram, inverse, hidden = _known(whole[:p, :p], least, constant)
        mean = constant @ whole[:p, p] / n
        theta = inverse @ whole[:p, p] + mean * hidden
        explained = theta @ gram @ theta / n
        left = jnp.clip((1.0 if self.of.binary else whole[p, p] / n) - explained, 1e-3, 1.0)
        between = jnp.sqrt(jnp.maximum(explained - mean**2, 0.0))
        binary_fit = jnp.clip(jnp.abs(mean) + SPREAD_OF_FIT * between, 0.0, 1.0)
        if self.of.binary:
            limit, fit_limit = 1.0 + binary_fit, binary_fit
        else:
            limit, fit_limit = jnp.minimum(self.of.winsorize * jnp.sqrt(left), 2.0), jnp.ones_like(left)
        if self.of.residual_limit is not None:
            limit = check.positive_or_nan(self.of.residual_limit) * jnp.ones_like(left)
        counts, counts_noise = _of_levels(whole[:p, :p], spread[:p, :p], basis)
        rare = counts < least * np.sum(basis.levels[1] ** 2, axis=1)
        skewness = 2.0 * jnp.abs(mean) / limit if self.of.binary else jnp.ones_like(left)
        return Model(
            theta=theta,
            gram=gram,
            inverse=inverse,
            limit=limit,
            fit_limit=fit_limit,
            gram_noise=spread[:p, :p],
            moment_noise=spread[:p, p],
            residual_variance=left,
            skewness=jnp.minimum(skewness, 1.0),
            hidden=hidden,
            lost=_lost(whole[:p, :p], least, basis),
            entangled=_entangled(whole[:p, :p], least, basis, rare),
            rare=rare,
            counts=counts,
            counts_noise=counts_noise,
        )


def _lost(gram, least, basis):
    """Of which covariates the noise hides that they vary: beside the constant no direction of their functions is clear.

    Not of those whose levels have functions of their own, of which a rare one holds few records (`Model.rare`), while a
    column in far wider bounds than its values holds all of them in one place.
    """
    lost = []
    for place, block in enumerate(basis.blocks):
        of_it = jnp.asarray(np.concatenate([basis.constant[None], np.eye(basis.width)[block]]), gram.dtype)
        sure = least * (VARIES if len(block) == 1 else VARIES_OF_SEVERAL)
        clear = jnp.sum(jnp.linalg.eigvalsh(of_it @ gram @ of_it.T) > sure)
        lost.append((clear < 2) & (place in basis.unsaturated))
    return jnp.stack(lost) if lost else jnp.zeros(0, bool)


def _of_levels(gram, spread, basis):
    """Numbers of the records of each level, (L,), by the noisy Gram matrix, and the variances of their noise."""
    functions = jnp.asarray(basis.levels[1], gram.dtype)
    # an entry off the diagonal stands in the sum twice, with one noise
    twice = 1.0 + jnp.triu(jnp.ones_like(spread), 1)
    entries = jnp.triu(jnp.ones_like(spread)) * twice**2 * spread
    counts = jnp.sum((functions @ gram) * functions, axis=1)
    return counts, jnp.sum((functions**2 @ entries) * functions**2, axis=1)


def _entangled(gram, least, basis, rare):
    """Whether the noise hides a combination of covariates: a direction beside all those that it hides in one of them.

    Those are rare levels, and of a continuous covariate hats where hardly a record lies.
    """
    apart = [jnp.asarray(basis.levels[1], gram.dtype) * rare[:, None]]
    for place, block in enumerate(basis.blocks):
        if place in basis.unsaturated:
            of_it = np.eye(basis.width)[block]
            if not np.any(basis.constant[block]):
                of_it = np.concatenate([basis.constant[None] / np.linalg.norm(basis.constant), of_it])
            values, vectors = jnp.linalg.eigh(of_it @ gram @ of_it.T)
            # of several that are weak each a combination may be hidden: then what is left is no more than theirs
            apart.append((vectors * (values <= least * (1.0 if len(block) == 1 else 2.0))[None]).T @ of_it)
    directions = jnp.concatenate(apart)
    values, vectors = jnp.linalg.eigh(directions.T @ directions)
    vectors = vectors * (values > 1e-6)[None]
    rest = jnp.eye(basis.width) - vectors @ vectors.T
    return jnp.any(jnp.linalg.eigvalsh(rest @ gram @ rest + 2.0 * least * (vectors @ vectors.T)) <= least)


def _known(gram, least, constant):
    """A noisy Gram matrix without the directions whose eigenvalues are below `least`, its pseudo-inverse, and the part
    of `constant` in those directions.

    What is left out, hats where hardly a record lies, adds no noise; the mean of all records is fitted there. With
    nothing in its place, residuals there would be as far from zero as that mean is: for rare alleles and rare cases
    a common sign, and a false finding.
    """
    values, vectors = jnp.linalg.eigh(gram)
    kept = values > least
    inverse = jnp.where(kept, 1.0 / jnp.where(kept, values, 1.0), 0.0)
    hidden = constant - vectors @ (kept * (vectors.T @ constant))
    return (vectors * (kept * values)[None]) @ vectors.T, (vectors * inverse[None]) @ vectors.T, hidden


@frozen_pytree
class ResidualMean(Stage):
    """The sum of the residuals about the null model, each within [-1, 1]; the intercept again, with little noise.

    Sensitivity: 2.
    """

    method: ClassVar[str] = "ResidualMean"

    def statistic(self, key, data):
        """One number."""
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
        return jnp.abs(score_sums.products(self.of.variants(data), self.of.residuals(data)[:, None])[:, 0])

    def sensitivity(self, num_records):
        return _sum(2.0, Norm.LINF, 1, float(num_records))


@frozen_pytree
class VariantLines(Stage):
    """Sums of variant times the functions of the covariates, for each tested variant: its regression on them.

    Sensitivity: 2 for each variant and function of `Straight`, 2 for each variant and covariate of `Hats`.
    """

    method: ClassVar[str] = "VariantLines"

    def statistic(self, key, data):
        """Sums (m, w)."""
        return score_sums.products(self.of.tested(data), moments.on_grid(self.of.line_design(data)))

    def sensitivity(self, num_records):
        norm, limit = self.mechanism.norm, float(num_records)
        bound = self.of.line_basis.line_bound(norm, self.of.num_tested)
        return Sensitivity(bound, norm, Relation.REPLACE_ONE, lower=-limit, upper=limit)
