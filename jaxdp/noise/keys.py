"""Keys and modes: the type of the key decides between simulation and release."""

import contextlib

import jax

SIMULATION = "simulation"
RELEASE = "release"


def mode_of(key) -> str:
    """'simulation' for a built-in typed JAX key, 'release' for a key of `fresh_key()`.

    Errors: TypeError for anything else, integer seeds and legacy uint32 keys included.
    """
    dtype = getattr(key, "dtype", None)
    if dtype is None or not jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"key must be jaxdp.fresh_key() (release) or jax.random.key(seed) (simulation), got {type(key).__name__}."
        )
    return RELEASE if "cc20" in str(dtype) else SIMULATION


def open_key(key):
    """The JAX key behind what the caller gave."""
    return key


def precision(mode: str):
    """Releases compute in float64; simulations in whatever the caller has set."""
    return jax.enable_x64(True) if mode == RELEASE else contextlib.nullcontext()


def require_release_path(key, mechanism) -> None:
    """Raises if the key is a release key and the mechanism adds no noise."""
    if mode_of(key) == RELEASE and not getattr(mechanism, "private", True):
        raise ValueError(
            f"{type(mechanism).__name__} adds no noise, so nothing may be released with it; "
            "use a simulation key, jax.random.key(seed)."
        )
