"""Where noise comes from: an entry point opens its key once into a source, and every mechanism draws from the source.

`FloatNoise` serves simulations, `LatticeNoise` releases, with the same laws (`jaxdp.mechanisms.law.Law`), of which each
knows its draw for either; `RecordedNoise` serves audits, around one of these.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Self

import jax

from jaxdp._base.pytree import as_pytree
from jaxdp.noise.recorder import Tape
from jaxdp.randomness import keys


class Source(abc.ABC):
    """A stream of noise. Each `draw` takes all it needs; for several draws `split` the source.

    mode: "simulation" or "release". compiles: whether a program around the draws may be compiled as one; a release
    needs its budgets concrete, and a tape every value. certificates: of what this source has drawn in a release.
    """

    key: Any
    mode: ClassVar[str]
    compiles: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def certificates(self) -> tuple: ...

    @abc.abstractmethod
    def at(self, key) -> Self:
        """The same source, which draws from this JAX key."""

    def split(self, count: int = 2) -> list[Self]:
        """Independent sources; this one is not to be used again."""
        return [self.at(key) for key in jax.random.split(self.key, count)]

    def fold_in(self, number) -> Self:
        """The source of this number; a search that draws an unknown number of times counts them."""
        return self.at(_FOLD_IN(self.key, number))

    def collecting(self) -> Self:
        """The same source, with no certificates yet."""
        return self

    def quiet(self) -> Source:
        """The source without a tape."""
        return self

    def with_noise_of(self, quiet: Source) -> Source:
        """A source that draws from `quiet`, and has the tape of this one."""
        return quiet

    def note(self, law, value, parameters, key, output):
        """The output, or what a tape puts in its place."""
        return output

    def require_noise(self, mechanism) -> None:
        """Raises in a release by a mechanism that adds no noise."""
        del mechanism

    def require_certificates(self, mechanism) -> None:
        """Raises in a release by a mechanism that has left no certificate."""
        del mechanism

    @abc.abstractmethod
    def draw(self, law, value, sensitivity=None):
        """What the law (`jaxdp.mechanisms.law.Law`) makes of the value; the caller has checked the sensitivity."""


_FOLD_IN = jax.jit(jax.random.fold_in)


@as_pytree
@dataclasses.dataclass(frozen=True)
class FloatNoise(Source):
    """Fast floating-point draws, for simulations only. key: a built-in JAX key, `jax.random.key(seed)`."""

    key: Any

    mode: ClassVar[str] = keys.SIMULATION
    compiles: ClassVar[bool] = True
    certificates: ClassVar[tuple] = ()  # type: ignore[misc]

    def __post_init__(self):
        keys.require_simulation(self.key)

    def at(self, key) -> FloatNoise:
        """The same source, which draws from this JAX key."""
        return FloatNoise(key)

    def draw(self, law, value, sensitivity=None):
        return law.float_draw(self.key, value, sensitivity)


@dataclasses.dataclass(eq=False)
class _Certificates:
    """Certificates of one release; equal to itself alone, as JAX requires of what stays outside programs."""

    found: list = dataclasses.field(default_factory=list)


@as_pytree
@dataclasses.dataclass(frozen=True, repr=False)
class LatticeNoise(Source):
    """Exact noise on a lattice, for releases: certified, and refused where one key would serve many calls.

    key: what `keys.open_key` took out of a release key. A program may draw from it only if it gets the source as an
    argument, as audits do; of a value that is traced around a fixed key nothing is released.
    """

    key: Any
    _found: _Certificates = dataclasses.field(default_factory=_Certificates, metadata={"static": True})

    mode: ClassVar[str] = keys.RELEASE

    def __post_init__(self):
        if keys.mode_of(self.key) != keys.RELEASE:
            raise TypeError("exact noise is drawn with a release key; a built-in key is for FloatNoise.")

    def __repr__(self):
        return "LatticeNoise()"

    @property
    def certificates(self) -> tuple:
        return tuple(self._found.found)

    def at(self, key) -> LatticeNoise:
        """The same source, which draws from this JAX key."""
        self._require_plain(key)
        return LatticeNoise(key, self._found)

    def collecting(self) -> LatticeNoise:
        return LatticeNoise(self.key)

    def require_noise(self, mechanism) -> None:
        if not getattr(mechanism, "private", True):
            raise ValueError(
                f"{type(mechanism).__name__} adds no noise, so nothing may be released with it; "
                "use a simulation key, jax.random.key(seed)."
            )

    def require_certificates(self, mechanism) -> None:
        if not self._found.found:
            raise ValueError(
                f"{type(mechanism).__name__} drew no certified noise, so nothing is released; "
                "draw it by a law from the source that perturb is given: jaxdp.Laplace(epsilon).perturb(source, ...)."
            )

    def draw(self, law, value, sensitivity=None):
        """The exact output; its certificates go into the release being made. Refused if a program would repeat it."""
        output, *facts = law.lattice_draw(self.key, value, sensitivity)
        self._found.found.extend(facts)
        self._require_plain(output)
        return output

    def _require_plain(self, found) -> None:
        """Raises RuntimeError for what is traced while the key is not: within a program that has a fixed key."""
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(found))
        if traced and not isinstance(self.key, jax.core.Tracer):
            raise RuntimeError(
                "exact noise can't be added to a traced value: a compiled program would add the same noise in every "
                "call. Draw it outside jax.jit and other JAX transformations."
            )


@as_pytree
@dataclasses.dataclass(frozen=True, repr=False)
class RecordedNoise(Source):
    """The draws of another source, each written on a tape, which may put another output in its place. For audits.

    A tape holds private values: only `jaxdp.audit` and tests make one, on data that are not secret.
    """

    inner: Any
    tape: Tape = dataclasses.field(metadata={"static": True})

    def __repr__(self):
        return "RecordedNoise()"

    @property
    def mode(self) -> str:  # type: ignore[override]
        return self.inner.mode

    @property
    def key(self):  # type: ignore[override]
        return self.inner.key

    @property
    def certificates(self) -> tuple:
        return self.inner.certificates

    def at(self, key) -> RecordedNoise:
        """The same source, which draws from this JAX key."""
        return RecordedNoise(self.inner.at(key), self.tape)

    def collecting(self) -> RecordedNoise:
        return RecordedNoise(self.inner.collecting(), self.tape)

    def quiet(self) -> Source:
        return self.inner

    def with_noise_of(self, quiet: Source) -> RecordedNoise:
        return RecordedNoise(quiet, self.tape)

    def note(self, law, value, parameters, key, output):
        return self.tape.play(law, value, parameters, key, output)

    def require_noise(self, mechanism) -> None:
        self.inner.require_noise(mechanism)

    def require_certificates(self, mechanism) -> None:
        self.inner.require_certificates(mechanism)

    def draw(self, law, value, sensitivity=None):
        known = self.tape.ahead(law) if self.mode == keys.SIMULATION else None
        if known is not None:
            return known
        output = self.inner.draw(law, value, sensitivity)
        return self.note(law, value, law.parameters(sensitivity), self.key, output)


def source_from_key(key) -> Source:
    """The source behind a key that an entry point has admitted; a release key is spent by it."""
    if isinstance(key, keys.RecordedKey):
        return RecordedNoise(source_from_key(key.key), key.tape)
    key = keys.open_key(key)
    return LatticeNoise(key) if keys.mode_of(key) == keys.RELEASE else FloatNoise(key)


def require_source(source) -> None:
    """Raises TypeError for what is no source, such as the key of a caller."""
    if isinstance(source, Source):
        return
    keys.mode_of(source)  # knows what to say to a release key
    raise TypeError("a mechanism draws from a source of noise: give it jaxdp.noise.source.FloatNoise(key).")
