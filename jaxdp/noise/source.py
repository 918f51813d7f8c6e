"""Where noise comes from: an entry point opens its key once into a source, and every mechanism draws from the source.

`FloatNoise` serves simulations, `LatticeNoise` releases, with the same laws; `RecordedNoise` serves audits, around one
of these. `bound` and `error` of a sensitivity: the computed statistic moves by at most bound + 2 error (`reach`)
between neighbours.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp

from jaxdp._base.pytree import as_pytree
from jaxdp.noise import floats, lattice, random_runs
from jaxdp.noise.floats import reach
from jaxdp.noise.recorder import Tape
from jaxdp.noise.smooth import rungs
from jaxdp.randomness import keys


class Source(abc.ABC):
    """A stream of noise. Each use of a law draws all it needs; for several draws `split` the source.

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

    def note(self, law: str, value, parameters, key, output):
        """The output, or what a tape puts in its place."""
        del law, value, parameters, key
        return output

    def require_noise(self, mechanism) -> None:
        """Raises in a release by a mechanism that adds no noise."""
        del mechanism

    def require_certificates(self, mechanism) -> None:
        """Raises in a release by a mechanism that has left no certificate."""
        del mechanism

    @abc.abstractmethod
    def laplace(self, value, sensitivity, epsilon):
        """value + Laplace noise of scale reach/epsilon, independent over coordinates (L1 bound)."""

    @abc.abstractmethod
    def geometric(self, value, sensitivity, epsilon):
        """Integer value + two-sided geometric noise of scale bound/epsilon (L1 bound)."""

    @abc.abstractmethod
    def gaussian(self, value, sensitivity, rho):
        """value + normal noise of sd reach/sqrt(2 rho), independent over coordinates (L2 bound)."""

    @abc.abstractmethod
    def max_norm(self, value, sensitivity, epsilon):
        """value + noise with density proportional to exp(-epsilon max_k |x_k|/reach), one vector (Linf bound)."""

    @abc.abstractmethod
    def argmax_exponential(self, scores, sensitivity, epsilon):
        """argmax of scores + exponential noise of mean 2 reach/epsilon, over the last axis (Linf bound)."""

    @abc.abstractmethod
    def argmax_gumbel(self, scores, sensitivity, epsilon):
        """argmax of scores + Gumbel noise of scale 2 reach/epsilon: the exponential mechanism."""

    @abc.abstractmethod
    def largest_gumbel(self, scores, sensitivity, epsilon, count: int):
        """Indices of the `count` largest of scores + Gumbel noise of scale 2 reach/epsilon, best first (Linf bound).

        epsilon: of each of the `count` selections.
        """

    @abc.abstractmethod
    def best_of_runs(self, scores, sensitivity, mechanism):
        """Index of the best noisy score of a random number of runs (Linf bound). mechanism: a `RandomStopping`."""

    @abc.abstractmethod
    def rank_at_most(self, reference, others, scale_numerator, epsilon, count: int):
        """Whether at most `count` of the noisy `others` reach the noisy `reference` (scalar, vector).

        All values carry Laplace noise of scale scale_numerator/epsilon.
        """

    @abc.abstractmethod
    def sparse_threshold(self, threshold, sparse):
        """The public threshold of a `SparseVector` with its noise, as (center, noisy threshold).

        The certificate is that of the whole sparse vector. Releases count in lattice steps.
        """

    @abc.abstractmethod
    def sparse_answers(self, queries, center, noisy, sparse):
        """Whether each query (k,) with fresh noise reaches the noisy threshold; to be capped before it is released."""

    @abc.abstractmethod
    def sparse_answer(self, query, center, noisy, sparse):
        """`sparse_answers` for one query (), as one small program: searches ask thousands in turn."""

    @abc.abstractmethod
    def smooth(self, value, sensitivity, mechanism):
        """Noise of width S around a center, for value = (center, S), both private; on a public lattice.

        mechanism: gives `ladder_decay()`, `noise(key, scale, shape)` and, for releases, its exact `law()`.
        S is rounded up to the ladder of `rungs.smooth_grid`, outputs to the nearest step, and into the public range.
        """


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

    def laplace(self, value, sensitivity, epsilon):
        value = jnp.asarray(value, float)
        return value + reach(sensitivity) / epsilon * floats.laplace(self.key, value.shape, value.dtype)

    def geometric(self, value, sensitivity, epsilon):
        value = jnp.asarray(value, float)
        scale = sensitivity.bound / epsilon
        return value + floats.two_sided_geometric(self.key, scale, value.shape, value.dtype)

    def gaussian(self, value, sensitivity, rho):
        value = jnp.asarray(value, float)
        noise = floats.gaussian(self.key, value.shape, value.dtype)
        return value + reach(sensitivity) / jnp.sqrt(2.0 * rho) * noise

    def max_norm(self, value, sensitivity, epsilon):
        value = jnp.asarray(value, float)
        noise = floats.max_norm(self.key, (value.size,), value.size, value.dtype)
        return value + reach(sensitivity) / epsilon * noise.reshape(value.shape)

    def argmax_exponential(self, scores, sensitivity, epsilon):
        noise = floats.exponential(self.key, jnp.shape(scores), jnp.asarray(scores).dtype)
        return jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)

    def argmax_gumbel(self, scores, sensitivity, epsilon):
        noise = floats.gumbel(self.key, jnp.shape(scores), jnp.asarray(scores).dtype)
        return jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)

    def largest_gumbel(self, scores, sensitivity, epsilon, count: int):
        noise = floats.gumbel(self.key, scores.shape, scores.dtype)
        return jax.lax.top_k(scores + 2.0 * reach(sensitivity) / epsilon * noise, count)[1]

    def best_of_runs(self, scores, sensitivity, mechanism):
        return mechanism.simulated(self.key, scores, sensitivity)

    def rank_at_most(self, reference, others, scale_numerator, epsilon, count: int):
        values = jnp.concatenate([jnp.atleast_1d(reference), others])
        noisy = values + scale_numerator / epsilon * floats.laplace(self.key, values.shape, values.dtype)
        return jnp.sum(noisy[1:] >= noisy[0]) <= count

    def sparse_threshold(self, threshold, sparse):
        center = jnp.asarray(threshold, float)
        return center, center + sparse.scales()[0] * self._centred((), sparse)

    def sparse_answers(self, queries, center, noisy, sparse):
        del center
        queries = jnp.asarray(queries, float)
        return queries + sparse.scales()[1] * self._centred(queries.shape, sparse) >= noisy

    sparse_answer = sparse_answers

    def _centred(self, shape, sparse):
        """Noise of scale 1 and mean 0."""
        if sparse.noise == "laplace":
            return floats.laplace(self.key, shape)
        return floats.exponential(self.key, shape) - 1.0

    def smooth(self, value, sensitivity, mechanism):
        rungs.require_range(sensitivity)
        return rungs.smooth_draws(self.key, value, sensitivity.lower, sensitivity.upper, mechanism)


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
                "draw it by a law of the source that perturb is given, such as source.laplace."
            )

    def laplace(self, value, sensitivity, epsilon):
        return self._certified(lattice.laplace(self.key, value, sensitivity, epsilon))

    def geometric(self, value, sensitivity, epsilon):
        return self._certified(lattice.geometric(self.key, value, sensitivity, epsilon))

    def gaussian(self, value, sensitivity, rho):
        return self._certified(lattice.gaussian(self.key, value, sensitivity, rho))

    def max_norm(self, value, sensitivity, epsilon):
        return self._certified(lattice.max_norm(self.key, value, sensitivity, epsilon))

    def argmax_exponential(self, scores, sensitivity, epsilon):
        return self._certified(lattice.argmax_exponential(self.key, scores, sensitivity, epsilon))

    def argmax_gumbel(self, scores, sensitivity, epsilon):
        return self._certified(lattice.argmax_gumbel(self.key, scores, sensitivity, epsilon))

    def largest_gumbel(self, scores, sensitivity, epsilon, count: int):
        return peeled(self, "argmax_gumbel", scores, sensitivity, epsilon, count)

    def best_of_runs(self, scores, sensitivity, mechanism):
        if mechanism.eta != 1.0:
            raise ValueError(f"RandomStopping has exact noise for eta = 1 only, got eta = {mechanism.eta}.")
        drawn = random_runs.best_of_runs(self.key, scores, sensitivity, mechanism.epsilon, mechanism.mean_runs)
        return self._certified(drawn)

    def rank_at_most(self, reference, others, scale_numerator, epsilon, count: int):
        return self._certified(lattice.rank_at_most(self.key, reference, others, scale_numerator, epsilon, count))

    def sparse_threshold(self, threshold, sparse):
        plan = sparse.plan()
        return self._certified((lattice.sparse_threshold(self.key, threshold, plan), plan.facts))

    def sparse_answers(self, queries, center, noisy, sparse):
        return self._once(lattice.sparse_answers(self.key, queries, center, noisy, sparse.plan()))

    def sparse_answer(self, query, center, noisy, sparse):
        return self._once(_RELEASED_ANSWER(self.key, jnp.reshape(query, (1,)), center, noisy, sparse.plan())[0])

    def smooth(self, value, sensitivity, mechanism):
        rungs.require_range(sensitivity)
        law, decay, (center, scale) = mechanism.law(), mechanism.ladder_decay(), value
        steps, rung, *_ = rungs.smooth_grid(center, scale, sensitivity.lower, sensitivity.upper, decay)
        steps, rung = steps.astype(jnp.int64), rung.astype(jnp.int64)
        return self._certified(lattice.smooth(self.key, steps, rung, sensitivity, law))

    def _certified(self, drawn):
        """The released value; its certificate goes into the release being made."""
        output, facts = drawn
        self._found.found.append(facts)
        return self._once(output)

    def _once(self, output):
        """The output of this key, unless a program would give it again and again."""
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


_RELEASED_ANSWER = jax.jit(lattice.sparse_answers, static_argnums=4)


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

    def note(self, law: str, value, parameters, key, output):
        return self.tape.play(law, value, parameters, key, output)

    def require_noise(self, mechanism) -> None:
        self.inner.require_noise(mechanism)

    def require_certificates(self, mechanism) -> None:
        self.inner.require_certificates(mechanism)

    def laplace(self, value, sensitivity, epsilon):
        return self._draw("laplace", value, sensitivity, epsilon)

    def geometric(self, value, sensitivity, epsilon):
        return self._draw("geometric", value, sensitivity, epsilon)

    def gaussian(self, value, sensitivity, rho):
        return self._draw("gaussian", value, sensitivity, rho)

    def max_norm(self, value, sensitivity, epsilon):
        return self._draw("max_norm", value, sensitivity, epsilon)

    def argmax_exponential(self, scores, sensitivity, epsilon):
        return self._draw("argmax_exponential", scores, sensitivity, epsilon)

    def argmax_gumbel(self, scores, sensitivity, epsilon):
        return self._draw("argmax_gumbel", scores, sensitivity, epsilon)

    def largest_gumbel(self, scores, sensitivity, epsilon, count: int):
        return self._draw("largest_gumbel", scores, sensitivity, epsilon, count)

    def best_of_runs(self, scores, sensitivity, mechanism):
        output = self.inner.best_of_runs(scores, sensitivity, mechanism)
        return self.note("best_of_runs", scores, (reach(sensitivity), mechanism.epsilon), self.key, output)

    def rank_at_most(self, reference, others, scale_numerator, epsilon, count: int):
        output = self.inner.rank_at_most(reference, others, scale_numerator, epsilon, count)
        return self.note("rank_at_most", (reference, others), (scale_numerator, epsilon), self.key, output)

    def sparse_threshold(self, threshold, sparse):
        center, noisy = self.inner.sparse_threshold(threshold, sparse)
        parameters = (sparse.bound + 2.0 * sparse.error, *sparse.budgets())
        return center, self.note("sparse_threshold", threshold, parameters, self.key, noisy)

    # an answer is private until it is capped: `SparseVector` notes it then
    def sparse_answers(self, queries, center, noisy, sparse):
        return self.inner.sparse_answers(queries, center, noisy, sparse)

    def sparse_answer(self, query, center, noisy, sparse):
        return self.inner.sparse_answer(query, center, noisy, sparse)

    def smooth(self, value, sensitivity, mechanism):
        output = self.inner.smooth(value, sensitivity, mechanism)
        width = sensitivity.upper - sensitivity.lower
        return self.note("smooth", value, (width, mechanism.epsilon), self.key, output)

    def _draw(self, law: str, value, sensitivity, budget, *more):
        known = self.tape.ahead(law) if self.mode == keys.SIMULATION else None
        if known is not None:
            return known
        output = getattr(self.inner, law)(value, sensitivity, budget, *more)
        return self.note(law, value, (reach(sensitivity), budget), self.key, output)


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


def peeled(source: Source, law: str, scores, sensitivity, epsilon, count: int):
    """Indices of `count` selections by one law, best first, each at this epsilon from what is left of the scores (k,).

    What is taken is left out by shifting the places, without a shape that depends on the data.
    """
    remaining = jnp.arange(scores.shape[-1])
    chosen = []
    for part in source.split(count):
        index = getattr(part, law)(scores[remaining], sensitivity, epsilon)
        chosen.append(remaining[index])
        place = jnp.arange(remaining.shape[0] - 1)
        remaining = remaining[place + (place >= index)]
    return jnp.stack(chosen)
