"""The stages of a score test in their order, and what the test is about once each has released.

Theory: docs/theory/score_test.md.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdp.independence.variants.score_stages import Lines, NullModel, ResidualMean, VariantChoice, VariantLines

MODEL, MEAN, CHOICE, LINES = "model", "mean", "choice", "lines"  # stages, in this order


def with_model(test, query, released):
    return dataclasses.replace(test, model=query.model(released))


def with_mean(test, query, released):
    """The test with residuals about their noisy mean."""
    return dataclasses.replace(test, offset=released.value / released.num_records)


def with_choice(test, query, released):
    return dataclasses.replace(test, indices=released.value)


def with_lines(test, query, released):
    """The test about the lines; the product of their errors with those of the null model has a known variance."""
    noise, count = query.mechanism.variance(released.sensitivity), released.num_records
    if test.null_model is not None:
        means = jnp.clip(released.value / count, -1.0, 1.0)
        return dataclasses.replace(
            test, lines=Lines(means, jnp.zeros(len(means)), _jump(means[:, 0], 1.0), jnp.zeros(len(means)))
        )
    model, constant = test.model, jnp.asarray(test.basis.constant)
    inverse = model.inverse
    means = released.value @ constant / count
    coefficients = released.value @ inverse + means[:, None] * model.hidden[None]
    errors = noise + coefficients**2 @ model.gram_noise  # of the normal equations of each variant, (m, w)
    left = model.moment_noise + model.gram_noise @ model.theta**2  # of those of the phenotype, (w,)
    of_mean = ResidualMean(mechanism=test.parts[MEAN], of=test).sensitivity(count)
    mean_noise = 2.0 * test.parts[MEAN].variance(of_mean) * model.limit**2
    share = model.gram @ constant / count  # of a shift of the mean in each normal equation
    centred = jnp.eye(len(left)) - jnp.outer(share, constant)
    joint = centred @ (left[:, None] * centred.T) + mean_noise * jnp.outer(share, share)
    variance = errors @ jnp.diagonal(inverse @ joint @ inverse) / model.limit**2
    mean, more = _shared_noise(coefficients, model, inverse - jnp.outer(constant, constant) / count)
    jump = _jump(means, model.skewness)
    if test.bins is not None:
        mean = jnp.zeros_like(mean)
    if test.holds_any_shape:
        variance, more = jnp.zeros_like(variance), 0.0
    else:
        more = more + _unheld(released.value, noise, means, model, test.basis.levels[1]) ** 2
    return dataclasses.replace(test, lines=Lines(coefficients, variance + more, jump, mean))


def _shared_noise(coefficients, model, between):
    """Mean and further variance, (m,) each, that the noise E of the Gram matrix adds to S since it bends both lines.

    The mean of gamma' E M E theta for the noise E of symmetric matrices with independent entries, M = `between`
    (docs/theory/score_test.md#null-law).
    """
    noise, theta = model.gram_noise, model.theta
    twice = noise @ jnp.diagonal(between)
    apart = noise * between * (1.0 - jnp.eye(len(theta)))
    mean = coefficients @ (twice * theta) + coefficients @ (apart @ theta)
    of_x, of_y = coefficients**2 @ noise, noise @ theta**2
    return mean / model.limit, of_x @ (between**2 @ of_y) / model.limit**2


def _unheld(sums, noise, means, model, functions: np.ndarray):
    """How far S may be off by the levels that are not held fixed, (m,); sums: noisy, of x times the functions (m, w).

    For each of them the number of its records times the deviations of the means of h and of r there: |r| <= 1, and what
    deviates in x is known up to noise, or else |h| <= 1. Of what is known up to noise counts the root of its mean
    square (docs/theory/score_test.md#rare).
    """
    off = sums @ functions.T - means[:, None] * model.counts[None]
    off_noise = noise * jnp.sum(functions**2, axis=1)[None] + means[:, None] ** 2 * model.counts_noise[None]
    most = jnp.maximum(model.counts, 0.0) ** 2 + model.counts_noise
    left = jnp.sqrt(jnp.minimum(off**2 + off_noise, most[None]))
    return jnp.sum(jnp.where(model.rare[None], left, 0.0), axis=1)


def _jump(means, skewness):
    """Third moment of h r as a share of its second, (m,), from the means of x and that of the phenotype's residuals.

    Of a column of two values with mean a, h has the share -2 a, of allele counts -a; nothing has more than 1.
    """
    return jnp.clip(2.0 * jnp.abs(means), 0.0, 1.0) * skewness


STAGES: dict[str, tuple[Any, Any]] = {
    MODEL: (NullModel, with_model),
    MEAN: (ResidualMean, with_mean),
    CHOICE: (VariantChoice, with_choice),
    LINES: (VariantLines, with_lines),
}
