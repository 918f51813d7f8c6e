"""Known laws of X given Z (model-X): what conditional randomisation tests resample from.

A law offers `mean(z)`, `sample(key, z)` and `clipped_moments(z, limit)`: mean and variance of
clip((X - mean(z))/limit, -1, 1) given z, all of shape (n,). Laws are public.

Units: `jaxdp.test` and all pairs of a table ask a law in the columns' own units, as the schema states them (numbers,
dates as days since 1970, levels as 0, 1, 2, ...; docs/theory/crt.md#units). `jaxdp.run` asks it in the numbers of its
`Data`, whatever these are; those that a schema has read lie on [-1, 1].

A law is any function, so a test asks it through `means`, `draws`, `bounded_moments` and `moment_bound` below: one
record at a time, and clipped to what a residual in [-1, 1] can have. Privacy never rests on a law being right.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.randomness import normals
from jaxdp.statistics.per_record import per_record

NAME = "the law of x given z"  # in errors


@frozen_pytree
class ConditionalLaw:
    """Base of the laws of X given Z, in their own units. Subclasses are pytrees and plain jax.numpy.

    Through `jaxdp.test`, x and z are numbers in the units of the schema, levels 0, 1, 2, ... in its order or, of
    ordered levels that are equally spaced numbers, these (docs/theory/crt.md#units); through `jaxdp.run`, those of the
    data. z has a column for each given one, (n, d), unless the data are made by hand with (n,).
    A test hands over one record at a time: z of shape (1,) or (1, d), so n = 1 in the methods below. Returned
    values that are impossible are clipped; a mean that is NaN leaves the record out.
    """

    def mean(self, z):
        """E[X | z], shape (n,)."""
        raise NotImplementedError

    def sample(self, key, z):
        """One fresh X for each record, shape (n,)."""
        raise NotImplementedError

    def clipped_moments(self, z, limit):
        """Mean and variance of clip((X - mean(z))/limit, -1, 1) given z."""
        raise NotImplementedError

    def variance_bound(self, limit):
        """Public upper bound of the variance in `clipped_moments`."""
        return 1.0

    @property
    def symmetric(self) -> bool:
        """Whether clipping leaves the residual's mean at 0."""
        return False

    def spread(self):
        """A public guess of the residual's standard deviation, for the default clipping limit."""
        raise NotImplementedError


@frozen_pytree
class GaussianLaw(ConditionalLaw):
    """X | z ~ N(function(z), noise_sd^2). function: public, static, maps z to shape (n,).

    Units: as in `ConditionalLaw`; noise_sd in units of X.
    """

    function: Any = jax.tree.static(default=None)
    noise_sd: ArrayLike = 1.0

    def __post_init__(self):
        check.positive(noise_sd=self.noise_sd)

    def mean(self, z):
        return self.function(z)

    def sample(self, key, z):
        return _normal_about(self, key, self.mean(z))

    def clipped_moments(self, z, limit):
        tau = limit / self.noise_sd
        inside = 1.0 - 2.0 * norm.sf(tau)
        second = inside - 2.0 * tau * norm.pdf(tau) + 2.0 * tau**2 * norm.sf(tau)
        zero = jnp.zeros(z.shape[0])
        return zero, zero + second / tau**2

    def variance_bound(self, limit):
        return self.clipped_moments(jnp.zeros(1), limit)[1][0]

    @property
    def symmetric(self) -> bool:
        return True

    def spread(self):
        return self.noise_sd


@frozen_pytree
class BernoulliLaw(ConditionalLaw):
    """X | z is 1 with probability function(z), else 0: a randomised treatment with a known propensity.

    function: public, static, maps z to shape (n,); clipped to [0, 1], and a record where it is NaN is left out.
    Units: as in `ConditionalLaw`; through `jaxdp.test` 1 is the second level of X in the schema and 0 the first.
    """

    function: Any = jax.tree.static(default=None)

    def mean(self, z):
        return jnp.clip(self.function(z), 0.0, 1.0)

    def sample(self, key, z):
        return _coin_about(self, key, self.mean(z))

    def clipped_moments(self, z, limit):
        chance = self.mean(z)
        high = jnp.minimum((1.0 - chance) / limit, 1.0)
        low = jnp.maximum(-chance / limit, -1.0)
        mean = chance * high + (1.0 - chance) * low
        return mean, chance * high**2 + (1.0 - chance) * low**2 - mean**2

    def spread(self):
        return 0.5


@frozen_pytree
class ScaledLaw(ConditionalLaw):
    """A law in the columns' own units, of x and z as a schema scales them.

    x: (middle, half range): middle + half range x is in its own units. z: what 0 and a step of 1 are of each column,
    (2, d). places: of the columns of the scaled z that the law is given. logarithms: which of them are logarithms.
    """

    law: Any
    x: tuple[float, float]
    z: Any
    places: tuple[int, ...] = jax.tree.static()
    logarithms: tuple[bool, ...] = jax.tree.static()

    def mean(self, z):
        return self.scaled(self.law.mean(self.own_z(z)))

    def sample(self, key, z):
        return self.scaled(self.law.sample(key, self.own_z(z)))

    def clipped_moments(self, z, limit):
        return self.law.clipped_moments(self.own_z(z), limit * self.x[1])

    def variance_bound(self, limit):
        return self.law.variance_bound(limit * self.x[1])

    @property
    def symmetric(self) -> bool:
        return self.law.symmetric

    def spread(self):
        return self.law.spread() / self.x[1]

    @property
    def __name__(self) -> str:
        """By which an answer names it: that of the law that was given."""
        return type(self.law).__name__

    def scaled(self, x):
        """x from its own units."""
        return (x - self.x[0]) / self.x[1]

    def own_x(self, x):
        """x in its own units."""
        return self.x[0] + self.x[1] * x

    def own_z(self, z):
        """z (n, columns) in its own units, (n, d); each value by itself."""
        zero, step = self.z[:1], self.z[1:]
        own = zero + step * z[:, self.places]
        logarithms = jnp.asarray([self.logarithms])
        return jnp.where(logarithms, jnp.exp(jnp.where(logarithms, own, 0.0)), own)


def means(law, z):
    """E[X | z], (n,), each from its own record; NaN where the law knows no mean."""
    return per_record(law.mean, z, name=NAME)


def draws(law, key, z, mean):
    """One fresh X for each record, (n,), each from its own record; mean: `means` of the same z."""
    if isinstance(law, ScaledLaw):
        return law.scaled(draws(law.law, key, law.own_z(z), law.own_x(mean)))
    about = _ABOUT.get(getattr(type(law), "sample", None))
    if about is not None:
        return about(law, key, mean)
    return per_record(lambda key, z: law.sample(key[0], z), jax.random.split(key, mean.shape[0]), z, name=NAME)


def bounded_moments(law, z, limit):
    """`clipped_moments`, each from its own record: mean within [-1, 1], variance within [0, moment_bound].

    What is NaN counts as 0.
    """
    mean, variance = per_record(lambda z: law.clipped_moments(z, limit), z, name=NAME)
    mean, variance = (jnp.nan_to_num(values, nan=0.0) for values in (mean, variance))
    return jnp.clip(mean, -1.0, 1.0), jnp.clip(variance, 0.0, moment_bound(law, limit))


def moment_bound(law, limit):
    """`variance_bound` where it is a number in (0, 1], else 1: no residual in [-1, 1] has a larger variance."""
    bound = jnp.asarray(law.variance_bound(limit), float)
    return jnp.where((bound > 0.0) & (bound <= 1.0), bound, 1.0)


def _normal_about(law, key, mean):
    return mean + law.noise_sd * _standard_normals(key, mean)


def _standard_normals(key, like):
    """Of the shape and type of an array; of a simulation key in float32 the fast ones of simulated data."""
    fast = normals.for_data(key)
    if like.dtype == jnp.float32 and normals.are_fast(fast):
        return normals.normal(fast, like.shape)
    return jax.random.normal(key, like.shape, like.dtype)


def _coin_about(law, key, mean):
    return (jax.random.uniform(key, mean.shape) < mean).astype(mean.dtype)


# These draw from the key and the record's own mean alone, so they need no key per record.
_ABOUT: dict[Any, Any] = {GaussianLaw.sample: _normal_about, BernoulliLaw.sample: _coin_about}
