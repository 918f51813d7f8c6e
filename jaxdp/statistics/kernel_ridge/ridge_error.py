"""How far computed ridge residuals can be from the exact ones in float64: bounds that no data enter.

u = 2^-53, alpha = n ridge/2, kappa = (n + alpha)/alpha = 1 + 2/ridge >= |K + alpha I|/alpha, targets in [-1, 1], so
|x| <= sqrt n; all errors below are in units of sqrt n.

1. Gram matrix: entries off by at most c u (`kernel.entry_error`), so the matrix by n c u in operator norm. The exact
   residual of the computed matrix differs from the wanted one by theta/(1 - theta), theta = n c u/alpha = 2 c u/ridge.
2. Cholesky (Higham, Accuracy and Stability, theorem 10.4): a solve is exact for a matrix that is off by at most
   phi alpha, phi = 4 n (3n + 1) u kappa. Required: phi <= 1/4. With q = phi/(1 - phi) <= 1/3 the first weights leave
   rho_0 <= q of the targets unexplained.
3. One refinement step: rho <- q rho + f. Here f = (1 + q) g (2 kappa + 1) + 2 u kappa, g = (n + 3) u/(1 - (n + 3) u),
   covers the rounding of the residual of the system and of the update, with weights of norm <= 2/alpha.
   After two steps rho <= q^3 + (1 + q) f.
4. residual = alpha weights and |alpha (K + alpha I)^-1| <= 1/(1 - theta), so the residual is off by at most
   (rho + theta)/(1 - theta) + 6 u, the last term for alpha and the final product.
"""

import jax
import jax.numpy as jnp

from jaxdp._base import check
from jaxdp.statistics.kernel_ridge.ridge_bounds import norm_bound

UNIT_ROUNDOFF = 2.0**-53
MAX_CONTRACTION = 0.25


def residual_error(ridge, num_records: int, entry_error: float):
    """Bound e: computed and exact residuals differ by at most e sqrt n in L2, for every data set.

    ridge: in the objective's units. entry_error: `kernel.entry_error(d)`. Needs targets in [-1, 1].
    Errors: ValueError when float64 cannot solve the system safely (public numbers only); a traced ridge gives NaN.
    Outside float64 mode the value is what a release would carry, and nothing raises.
    """
    check.positive(ridge=ridge)
    ridge = check.positive_or_nan(jnp.asarray(ridge, float))
    n, u = num_records, UNIT_ROUNDOFF
    kappa = 1.0 + 2.0 / ridge
    phi = 4.0 * n * (3.0 * n + 1.0) * u * kappa
    theta = 2.0 * entry_error * u / ridge
    phi, theta = _checked(ridge, n, phi), _checked(ridge, n, theta)
    q = phi / (1.0 - phi)
    g = (n + 3.0) * u / (1.0 - (n + 3.0) * u)
    f = (1.0 + q) * g * (2.0 * kappa + 1.0) + 2.0 * u * kappa
    return (q**3 + (1.0 + q) * f + theta) / (1.0 - theta) + 6.0 * u


def _checked(ridge, num_records: int, contraction):
    """The contraction if it is at most 1/4; otherwise an error or NaN in float64, 1/4 in a simulation."""
    if not jax.config.jax_enable_x64:
        return jnp.minimum(contraction, MAX_CONTRACTION)
    if check.is_concrete(contraction) and bool(jnp.any(contraction > MAX_CONTRACTION)):
        raise ValueError(
            f"ridge={ridge} is too small to be solved reliably in float64 for n={num_records} records; "
            "use a larger ridge or fewer records."
        )
    return jnp.where(contraction <= MAX_CONTRACTION, contraction, jnp.nan)


def sum_error(ridge, num_records: int, entry_error: float):
    """Bound for the sum of products of two residuals: n (2 e + e^2) and the rounding of the sum."""
    error = residual_error(ridge, num_records, entry_error)
    return num_records * (2.0 * error + error**2) + _summation(num_records) * (1.0 + error) ** 2


def vector_error(ridge, num_records: int, entry_error: float):
    """Bound for each product of two residuals: residuals are at most 1 + N, each off by at most e sqrt n."""
    largest = 1.0 + norm_bound(ridge)
    error = residual_error(ridge, num_records, entry_error) * jnp.sqrt(1.0 * num_records)
    return 2.0 * largest * error + error**2 + 2.0 * UNIT_ROUNDOFF * (largest + error) ** 2


def one_sided_error(ridge, num_records: int, entry_error: float):
    """Bound for the sum of products of a number in [-1, 1] and a residual (CRT): n e and the rounding of the sum."""
    error = residual_error(ridge, num_records, entry_error)
    return num_records * error + _summation(num_records) * (1.0 + error)


def _summation(num_records: int) -> float:
    """Rounding of a sum of n products whose absolute values add up to at most n."""
    steps = (num_records + 1.0) * UNIT_ROUNDOFF
    return num_records * steps / (1.0 - steps)
