"""The noise of a mechanism as a survival function, for exact null laws."""

from collections.abc import Callable

import jax.numpy as jnp
from jax.scipy.stats import norm

from jaxdp.mechanisms import Exact, Gaussian, Geometric, Laplace
from jaxdp.noise import survival as tail

_LAWS: dict[type, Callable] = {
    Geometric: tail.two_sided_geometric,
    Laplace: tail.laplace,
    Gaussian: lambda value, scale: norm.sf(value / scale),
    Exact: lambda value, scale: jnp.where(value <= 0.0, 1.0, 0.0) + 0.0 * scale,
}
WINDOW_SCALES = 20.0  # a public range is widened by this many noise scales: saturation below 1e-8


def survival(mechanism, sensitivity, method: str) -> Callable:
    """x -> P(noise >= x). Errors: TypeError for a mechanism whose law is not known here."""
    law = _LAWS.get(type(mechanism))
    if law is None:
        known = ", ".join(kind.__name__ for kind in _LAWS)
        raise TypeError(f"mechanism of {method} must be one of {known}, got {type(mechanism).__name__}.")
    scale = mechanism.scale(sensitivity)
    return lambda value: law(value, scale)


def margin(mechanism, sensitivity):
    """By how much a release window must exceed a statistic's range so that it hides nothing."""
    return jnp.ceil(WINDOW_SCALES * mechanism.scale(sensitivity)) + 1.0
