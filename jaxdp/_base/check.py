"""Validators with one wording: public mistakes raise at once, traced ones become NaN.

Pytrees are rebuilt with tracers and placeholders, so every check here looks only at
concrete numbers and lets everything else pass.
"""

import functools
import math
import numbers

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.printed import is_setting, printed
from jaxdp._base.rounding import as_fraction, round_down


def is_concrete(value) -> bool:
    """True for Python numbers and for arrays whose values can be read now."""
    if isinstance(value, jax.core.Tracer):
        return False
    return isinstance(value, numbers.Number | np.ndarray | np.generic | jax.Array)


def is_known(tree) -> bool:
    """Whether the numbers of a pytree are known, one each."""
    return all(is_concrete(leaf) and np.ndim(leaf) == 0 for leaf in jax.tree.leaves(tree))


def _check(values, accept, wanted: str, hint: str) -> None:
    for name, value in values.items():
        numeric = np.ndim(value) == 0 or np.issubdtype(getattr(value, "dtype", np.float64), np.number)
        if isinstance(value, str | bool | bytes) or not numeric:
            raise TypeError(f"{name} must be {wanted}, got {printed(value)}{hint}.")
        if is_concrete(value) and not all(accept(float(item)) for item in np.ravel(np.asarray(value))):
            raise ValueError(f"{name} must be {wanted}, got {_shown(value)}{hint}.")


def _shown(value) -> str:
    return f"others in an array of shape {np.shape(value)}" if np.ndim(value) else f"{value}"


def positive(hint: str = "", **values) -> None:
    """Raises unless every concrete value is finite and > 0 (subnormals count as 0)."""
    smallest = float(np.finfo(np.float32).tiny)
    _check(values, lambda v: math.isfinite(v) and v >= smallest, "a finite number > 0", hint)


def non_negative(hint: str = "", **values) -> None:
    """Raises unless every concrete value is finite and >= 0."""
    _check(values, lambda v: math.isfinite(v) and v >= 0, "a finite number >= 0", hint)


def in_range(low: float, high: float, hint: str = "", **values) -> None:
    """Raises unless every concrete value lies strictly between low and high."""
    _check(values, lambda v: low < v < high, f"strictly between {low} and {high}", hint)


def at_least(low: int, hint: str = "", **values) -> None:
    """Raises unless every value is a whole number >= low."""
    for name, value in values.items():
        if not _is_whole(value, low):
            raise ValueError(f"{name} must be a whole number >= {low}, got {printed(value)}{hint}.")


def all_at_least(low: int, **values) -> None:
    """Raises unless every value is a tuple or a list of whole numbers >= low."""
    for name, items in values.items():
        if not isinstance(items, tuple | list) or not all(_is_whole(item, low) for item in items):
            raise ValueError(f"{name} must be whole numbers >= {low}, got {printed(items)}.")


def _is_whole(value, low: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= low


def one_of(options, **values) -> None:
    """Raises unless every value is one of the options."""
    for name, value in values.items():
        if is_setting(value) and value in options:
            continue
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {printed(value)}.")


def positive_or_nan(value):
    """The value where it is finite and > 0, NaN elsewhere: a bad traced budget poisons the result."""
    value = jnp.asarray(value)
    return _positive_or_nan(value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float))


@functools.partial(jax.jit, inline=True)  # one program instead of four where it runs by itself
def _positive_or_nan(value):
    return jnp.where((value > 0) & jnp.isfinite(value), value, jnp.nan)


def delta(value) -> None:
    """Raises unless it is a delta of (epsilon, delta)-DP."""
    if not 0 <= value < 1:
        raise ValueError(f"delta must be at least 0 and less than 1, got {value}.")


def budget(value):
    """A budget as mechanisms use it: concrete numbers stay exact, traced ones become NaN if not > 0.

    Exactness matters in a release, where epsilon becomes a fraction.
    """
    if is_concrete(value) and np.ndim(value) == 0:
        return float(value)
    return positive_or_nan(value)


def share(value, fraction):
    """A fraction of a budget, rounded down as the decimals they are written as: shares never add up to more.

    A traced fraction becomes NaN if not > 0; releases, which need exact shares, refuse what is traced.
    """
    value = budget(value)
    if isinstance(fraction, jax.core.Tracer):
        return value * positive_or_nan(fraction)
    if isinstance(value, float):
        return round_down(as_fraction(value) * as_fraction(fraction))
    return value * float(fraction)
