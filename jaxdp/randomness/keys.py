"""Keys and modes: the type of the key decides between simulation and release."""

import contextlib
import dataclasses
import hashlib
import hmac
import secrets
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check, programs
from jaxdp.randomness import arithmetic, chacha, traces
from jaxdp.randomness.single_use import SingleUse

SIMULATION = "simulation"
RELEASE = "release"


class ReleaseKey(SingleUse):
    """A secret 256-bit key for one release.

    `run` and the other entry points consume it once; a second use raises. Its children by `split` are independent of
    each other. It can't be printed, copied, pickled, used in another process, used inside `jax.jit` or another
    transformation, or put into a pytree.
    """

    __slots__ = ("__fingerprint",)

    _what = "this release key"
    _way_out = (
        "give a jaxdp.fresh_key() to jaxdp.run, jaxdp.release or a search for every release, "
        "or key.split(n) for n releases"
    )

    def __init__(self, material: bytes):
        if not isinstance(material, bytes) or len(material) != 32:
            raise TypeError("a release key is made by jaxdp.fresh_key(), not from a value of yours.")
        super().__init__(material)
        self.__fingerprint = hashlib.sha256(_derive(material, "fingerprint")).hexdigest()

    def split(self, count: int) -> list["ReleaseKey"]:
        """`count` independent release keys, for a batch of releases; this key is spent."""
        check.at_least(1, count=count)
        root = self._take()
        return [ReleaseKey(_derive(root, f"split {index}")) for index in range(count)]

    @property
    def fingerprint(self) -> str:
        """SHA-256 digest (hex) that identifies the key in a ledger without revealing it."""
        return self.__fingerprint

    def _take(self) -> bytes:
        return _derive(super()._take(), "use run")


def _derive(material: bytes, label: str) -> bytes:
    """HMAC-SHA256 of a labelled purpose: an independent 256-bit key per label."""
    return hmac.digest(material, f"jaxdp release key: {label}".encode(), "sha256")


def fresh_key() -> ReleaseKey:
    """A release key from 32 bytes of the operating system's entropy, for exactly one release.

    For n releases: `jaxdp.fresh_key().split(n)`. Errors: RuntimeError inside `jax.jit` or another transformation.
    """
    traces.require_plain_python("jaxdp.fresh_key()")
    return ReleaseKey(secrets.token_bytes(32))


@dataclasses.dataclass(frozen=True)
class RecordedKey:
    """A key whose draws an audit writes on a tape (`jaxdp.noise.recorder.Tape`); given to an entry point as its key."""

    key: Any
    tape: Any


type Key = jax.Array | ReleaseKey | RecordedKey  # what entry points take as their key


def admit(key, *data) -> str:
    """The mode of a caller's key, 'release' or 'simulation': what every entry point asks first of all.

    Errors: TypeError for what is no key, integer seeds, legacy keys and keys derived from a release key included;
    for a release ValueError if the key is spent, RuntimeError under a trace or where arithmetic is not that of IEEE.
    """
    if isinstance(key, RecordedKey):
        return admit(key.key, *data)
    if isinstance(key, ReleaseKey):
        require_releasable(*data)
        key.require_unused()
        return RELEASE
    if mode_of(key) == RELEASE:
        raise TypeError(
            "this key was taken out of a release key, which works once; give a jaxdp.fresh_key() for every release, "
            "or key.split(n) for n releases."
        )
    return SIMULATION


def require_releasable(*data) -> None:
    """Raises RuntimeError where nothing may be released: under a trace, of traced data, or under fast-math flags."""
    traces.require_plain_python("a release", *data)
    arithmetic.require_exact()


def mode_of(key) -> str:
    """'simulation' for a built-in typed JAX key, 'release' for an opened release key.

    Errors: TypeError for anything else, integer seeds, legacy uint32 keys and unopened release keys included.
    """
    if isinstance(key, ReleaseKey):
        raise TypeError("a release key is opened by jaxdp.run, jaxdp.release or a search, not by a mechanism itself.")
    dtype = getattr(key, "dtype", None)
    if dtype is None or not jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        legacy = ", or jax.random.wrap_key_data(key) of a legacy key" if dtype == np.uint32 else ""
        raise TypeError(
            f"key must be jaxdp.fresh_key() (release) or jax.random.key(seed) (simulation){legacy}, "
            f"got {type(key).__name__}."
        )
    return RELEASE if jax.random.key_impl(key) == chacha.IMPLEMENTATION else SIMULATION


def require_simulation(key) -> None:
    """Raises TypeError for a release key: simulations and audits draw many times from one key."""
    if isinstance(key, ReleaseKey) or mode_of(key) != SIMULATION:
        raise TypeError("simulations take a built-in key, jax.random.key(seed); release keys are for releases.")


def open_key(key):
    """The JAX key behind what the caller gave; a release key is spent by it. Never handed to a caller."""
    return chacha.wrap(key._take()) if isinstance(key, ReleaseKey) else key


@contextlib.contextmanager
def precision(mode: str):
    """Releases compute in float64, with programs kept in their owner's folder; simulations as the caller set."""
    if mode != RELEASE:
        yield
        return
    with programs.of_a_release(), jax.enable_x64(True):
        yield


def widen(mode: str, data):
    """The data as a release reads them: floats become float64, so that stated rounding errors hold."""
    if mode != RELEASE:
        return data

    def leaf(array):
        array = array if isinstance(array, jax.Array) else np.asarray(array)
        if jnp.issubdtype(array.dtype, jnp.floating):
            # NumPy's is widened by NumPy: on the device every number of records would be a program
            return jnp.asarray(array if isinstance(array, jax.Array) else array.astype(np.float64), np.float64)
        return jnp.asarray(array) if array.dtype != object else array

    return jax.tree.map(leaf, data)


def settle(mode: str, result):
    """A release's float64 numbers as NumPy arrays, which stay float64 wherever they are read."""
    if mode != RELEASE:
        return result

    def leaf(value):
        traced = isinstance(value, jax.core.Tracer)
        return np.asarray(value)[()] if isinstance(value, jax.Array) and not traced else value

    return jax.tree.map(leaf, result)
