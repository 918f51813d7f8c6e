"""Whether compiled arithmetic is that of IEEE 754, as sensitivities and their error bounds assume."""

import functools
import os
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_FAST = re.compile(r"xla_(?:cpu_|gpu_)?enable_fast_(?:math|min_max)")
_HONOR = re.compile(r"xla_(?:cpu_|gpu_)?fast_math_honor_\w+")


def require_exact() -> None:
    """Raises RuntimeError if this process compiles with shortcuts that lose NaNs, infinities or rounding errors."""
    asked = fast_flags(os.environ.get("XLA_FLAGS", ""))
    if asked or not _keeps_ieee(*_setting()):
        cause = f"XLA_FLAGS ask for {asked[0]}" if asked else "JAX is set to imprecise arithmetic"
        raise RuntimeError(
            f"a release needs IEEE arithmetic and {cause}, which breaks the sensitivity; start Python without "
            "fast-math flags in XLA_FLAGS and with JAX's default matmul precision."
        )


def fast_flags(flags: str) -> list[str]:
    """Fast-math flags among XLA's, the last value of each in force."""
    values = {}
    for word in flags.split():
        name, _, value = word.lstrip("-").partition("=")
        values[name] = value.lower() not in ("false", "0", "no", "f", "n")
    return [
        name for name, on in values.items() if (_FAST.fullmatch(name) and on) or (_HONOR.fullmatch(name) and not on)
    ]


def _setting() -> tuple:
    """What decides how a program is compiled and where it runs."""
    config = jax.config
    contextual = config.jax_default_device, config.jax_default_matmul_precision, config.jax_disable_jit
    return jax.default_backend(), *contextual, config.values.get("jax_disable_most_optimizations")


@functools.lru_cache(maxsize=64)
def _keeps_ieee(*setting) -> bool:
    del setting  # the key of the cache
    special, big, one = np.array([np.nan, np.inf, -np.inf, 2.0]), np.float64(2.0**53), np.float64(1.0)
    with jax.enable_x64(True), jax.debug_nans(False), jax.debug_infs(False):
        found = jax.jit(_program)(special, big, one)
    return all(np.array_equal(value, wanted, equal_nan=True) for value, wanted in zip(found, _EXPECTED, strict=True))


def _program(special, big, one):
    """Operations that a shortcut changes."""
    odd = jnp.stack([one * 2.0**26 + one, one])
    return (
        jnp.isnan(special),
        special != special,
        jnp.where(jnp.isnan(special), 0.0, special),
        jnp.clip(special, -1.0, 1.0),
        jnp.maximum(special, 0.0),
        jnp.isfinite(special),
        special - special,
        special * 0.0,
        (big + one) - big,
        jnp.dot(odd, odd),
    )


_EXPECTED: tuple[Any, ...] = (
    [True, False, False, False],
    [True, False, False, False],
    [0.0, np.inf, -np.inf, 2.0],
    [np.nan, 1.0, -1.0, 1.0],
    [np.nan, np.inf, 0.0, 2.0],
    [False, False, False, True],
    [np.nan, np.nan, np.nan, 0.0],
    [np.nan, np.nan, np.nan, 0.0],
    0.0,
    2.0**52 + 2.0**27 + 2.0,
)
