"""How far one record can move a kernel ridge regression: functions of the ridge alone.

Setting: feature map with |phi| <= 1, targets |x|, |y| <= 1, objective
J(w) = ridge/2 |w|^2 + (1/n) sum (w.phi(z_i) - x_i)^2, neighbours by replacing one record, the same ridge for
both fits. All constants hold for every n, every kernel with k(z, z) <= 1 and every data set.

Theory: docs/theory/kernel_ridge.md (proofs there); `paper_*` are Theorem 2.5, Lemma 3.4
and Lemma 4.5 of Kalemaj et al. (2023): true, but 1.6 to 1900 times larger. Symbols: N = `norm_bound`,
U(N) = `record_bound`, N1 = `shrunk_norm_bound`. Everything is differentiable in the ridge; a ridge that is not
finite and > 0 raises, or gives NaN when traced. Values are rounded up by 16 units of roundoff.
"""

import jax.numpy as jnp
import numpy as np

from jaxdp._base import check


def _ridge(ridge):
    check.positive(ridge=ridge)
    return check.positive_or_nan(jnp.asarray(ridge, float))


def _up(value):
    return value * (1.0 + 16.0 * jnp.finfo(value.dtype).eps)


def norm_bound(ridge):
    """N: bound of |w|, so |prediction| <= N and |residual| <= 1 + N (in-sample and leave-one-out)."""
    ridge = _ridge(ridge)
    return _up(jnp.where(ridge <= 2.0, 1.0 / jnp.sqrt(2.0 * ridge), 2.0 / (2.0 + ridge)))


def record_bound(ridge):
    """U(N) = max over 0 <= t <= pi/2 of 2 cos(t/2) + N sin(t): one record's push on the normal equations.

    The maximiser solves N cos t = sin(t/2), a quadratic in sin(t/2).
    """
    norm = norm_bound(ridge)
    half_sine = 2.0 * norm / (1.0 + jnp.sqrt(1.0 + 8.0 * norm**2))
    half_cosine = jnp.sqrt(1.0 - half_sine**2)
    return _up(2.0 * half_cosine + norm * 2.0 * half_sine * half_cosine)


def shrunk_norm_bound(ridge):
    """N1: what replaces N in the change of a signed sum over the common records."""
    ridge = _ridge(ridge)
    small = 9.0 / (16.0 * np.sqrt(3.0)) * jnp.sqrt(2.0 / ridge)
    return _up(jnp.where(ridge <= 6.0, small, 2.0 * ridge / (2.0 + ridge) ** 2))


def predictions_change(ridge):
    """L1 change of the n - 1 predictions of the common records: N U(N); attained for ridge <= 1.

    Proof: docs/theory/kernel_ridge.md#fit-change.
    """
    return norm_bound(ridge) * record_bound(ridge)


def delta_one(ridge):
    """Change of sum x_i r_i when only Y is regressed (CRT; x bounded by 1): 2 (1 + N/sqrt2)^2.

    Also the change of the replaced record's own product of residuals in `delta_vector` and `delta_sum`
    (docs/theory/kernel_ridge.md#own-record).
    """
    return 2.0 * (1.0 + norm_bound(ridge) / np.sqrt(2.0)) ** 2


def delta_vector(ridge):
    """L1 change of the vector of products of in-sample residuals: 2 N U(N) + 2 (1 + N/sqrt2)^2.

    Proof: docs/theory/kernel_ridge.md#residual-products.
    """
    return 2.0 * predictions_change(ridge) + delta_one(ridge)


def delta_sum(ridge):
    """Change of the sum of the products of in-sample residuals: 2 N1 U(N) + 2 (1 + N/sqrt2)^2.

    Proof: docs/theory/kernel_ridge.md#residual-products.
    """
    return 2.0 * shrunk_norm_bound(ridge) * record_bound(ridge) + delta_one(ridge)


def paper_delta(ridge):
    """Lemma 3.4 of Kalemaj et al.: L1 change of the residual products, 4 (1+s)(1+s+4 sqrt2/ridge^1.5+4/ridge)."""
    ridge = _ridge(ridge)
    scale = 1.0 + jnp.sqrt(2.0 / ridge)
    return _up(4.0 * scale * (scale + 4.0 * np.sqrt(2.0) / ridge**1.5 + 4.0 / ridge))


def paper_delta_one(ridge):
    """Lemma 4.5 of Kalemaj et al.: change of the CRT statistic, 2 (1 + s + 4 sqrt2/ridge^1.5 + 4/ridge)."""
    ridge = _ridge(ridge)
    return _up(2.0 * (1.0 + jnp.sqrt(2.0 / ridge) + 4.0 * np.sqrt(2.0) / ridge**1.5 + 4.0 / ridge))
