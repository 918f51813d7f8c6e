"""Keys and modes: the type of the key decides between simulation and release."""

import contextlib
import hashlib
import hmac
import os
import secrets
import threading
from typing import NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import _check
from jaxdp.noise import chacha

SIMULATION = "simulation"
RELEASE = "release"
RUN = "run"


class ReleaseKey:
    """A secret 256-bit key for one release.

    `run` and the other entry points consume it once; a second use raises. Its children by `split` or
    `consume` are independent of each other. It can't be printed, copied, pickled, used in another
    process or put into a pytree.
    """

    __slots__ = ("__lock", "__material", "__process", "__used")

    def __init__(self, material: bytes):
        if not isinstance(material, bytes) or len(material) != 32:
            raise TypeError("a release key is made by jaxdp.fresh_key(), not from a value of yours.")
        self.__material = material
        self.__used: set[str] = set()
        self.__process = os.getpid()
        self.__lock = threading.Lock()

    def consume(self, label: str):
        """The typed JAX key derived for one purpose; each label works once.

        Errors: ValueError on the second use of a label, and in a forked process.
        """
        return chacha.wrap(self.__take(label))

    def split(self, count: int) -> list["ReleaseKey"]:
        """`count` independent release keys, for a batch of releases; this key is spent."""
        _check.at_least(1, count=count)
        root = self.__take(RUN)
        return [ReleaseKey(_derive(root, f"split {index}")) for index in range(count)]

    @property
    def spent(self) -> bool:
        """Whether the key has been used for a release."""
        return RUN in self.__used

    @property
    def fingerprint(self) -> str:
        """SHA-256 digest (hex) that identifies the key in a ledger without revealing it."""
        return hashlib.sha256(_derive(self.__material, "fingerprint")).hexdigest()

    def __take(self, label: str) -> bytes:
        if os.getpid() != self.__process:
            raise ValueError("a release key works only in the process that made it; make a fresh key there.")
        with self.__lock:
            if label in self.__used:
                raise ValueError(
                    "this release key has been used already, and the same noise twice would reveal the data; "
                    "make a jaxdp.fresh_key() for every release, or key.split(n) for n releases."
                )
            self.__used.add(label)
        return _derive(self.__material, f"use {label}")

    def __repr__(self) -> str:
        return f"ReleaseKey(<secret>, {'spent' if self.spent else 'unused'})"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __refuse(self, *_) -> NoReturn:
        raise TypeError("a release key can't be copied, pickled or saved; make a jaxdp.fresh_key() where you need one.")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = __refuse


def _derive(material: bytes, label: str) -> bytes:
    """HMAC-SHA256 of a labelled purpose: an independent 256-bit key per label."""
    return hmac.digest(material, f"jaxdp release key: {label}".encode(), "sha256")


def fresh_key() -> ReleaseKey:
    """A release key from 32 bytes of the operating system's entropy, for exactly one release.

    For n releases: `jaxdp.fresh_key().split(n)`.
    """
    return ReleaseKey(secrets.token_bytes(32))


def mode_of(key) -> str:
    """'simulation' for a built-in typed JAX key, 'release' for a key of `fresh_key()`.

    Errors: TypeError for anything else, integer seeds and legacy uint32 keys included; ValueError for a
    release key that is spent.
    """
    if isinstance(key, ReleaseKey):
        if key.spent:
            raise ValueError("this release key has been used already; make a jaxdp.fresh_key() for every release.")
        return RELEASE
    dtype = getattr(key, "dtype", None)
    if dtype is None or not jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"key must be jaxdp.fresh_key() (release) or jax.random.key(seed) (simulation), got {type(key).__name__}."
        )
    return RELEASE if jax.random.key_impl(key) == chacha.IMPLEMENTATION else SIMULATION


def open_key(key):
    """The JAX key behind what the caller gave; a release key is spent by it."""
    return key.consume(RUN) if isinstance(key, ReleaseKey) else key


@contextlib.contextmanager
def precision(mode: str):
    """Releases compute in float64 and write no program to disk; simulations as the caller has set."""
    if mode != RELEASE:
        yield
        return
    cached = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        with jax.enable_x64(True):
            yield
    finally:
        jax.config.update("jax_enable_compilation_cache", cached)


def widen(mode: str, data):
    """The data as a release reads them: floats become float64, so that stated rounding errors hold."""
    if mode != RELEASE:
        return data

    def leaf(array):
        array = array if isinstance(array, jax.Array) else np.asarray(array)
        if jnp.issubdtype(array.dtype, jnp.floating):
            return jnp.asarray(array, np.float64)
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


def require_release_path(key, mechanism) -> None:
    """Raises if the key is a release key and the mechanism adds no noise."""
    if mode_of(key) == RELEASE and not getattr(mechanism, "private", True):
        raise ValueError(
            f"{type(mechanism).__name__} adds no noise, so nothing may be released with it; "
            "use a simulation key, jax.random.key(seed)."
        )


def require_certificates(key, mechanism, certificates) -> None:
    """Raises if a release drew no certified noise: the mechanism made its own."""
    if mode_of(key) == RELEASE and not certificates:
        raise ValueError(
            f"{type(mechanism).__name__} drew no certified noise, so nothing is released; draw it by jaxdp.noise.add."
        )
