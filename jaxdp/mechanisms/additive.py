"""Additive noise: Laplace and two-sided geometric for L1 bounds, Gaussian for L2, that of the cube for Linf."""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import as_pytree
from jaxdp.core import Cost, Norm, Relation
from jaxdp.mechanisms.law import Law, PureLaw
from jaxdp.mechanisms.selection import ExponentialMechanism, ReportNoisyMax
from jaxdp.noise import floats, lattice
from jaxdp.noise.floats import reach


@as_pytree
@dataclasses.dataclass(frozen=True)
class Laplace(PureLaw):
    """Adds independent Laplace noise of scale (bound + 2 error)/epsilon.

    Privacy: epsilon-DP for the relation of the sensitivity, L1 norm (Dwork et al. 2006, Prop. 1).
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise.
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = Norm.L1
    instead: ClassVar[str] = "; use Gaussian for L2"
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        return value + reach(sensitivity) / check.budget(self.epsilon) * floats.laplace(key, value.shape, value.dtype)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.laplace(key, value, sensitivity, check.budget(self.epsilon))

    def scale(self, sensitivity):
        """Noise scale b (sd sqrt(2) b)."""
        self.require(sensitivity)
        return reach(sensitivity) / check.positive_or_nan(self.epsilon)

    def variance(self, sensitivity):
        """Variance of the noise, 2 b^2."""
        return 2.0 * self.scale(sensitivity) ** 2

    def selector(self):
        """The selection mechanism that this budget buys."""
        return ReportNoisyMax(epsilon=check.budget(self.epsilon))

    def noise(self, key, sensitivity, shape=()):
        """Float draws of the noise alone, for null distributions (public post-processing)."""
        return self.scale(sensitivity) * floats.laplace(key, shape)

    def null_p_value(self, value, sd, sensitivity):
        """P(|N(0, sd^2) + noise| >= |value|), exact for the noise."""
        return null_laws.normal_plus_laplace(value, sd, self.scale(sensitivity))

    def combined_p_value(self, value, sd, scales):
        """P(|N(0, sd^2) + sum of noise of these scales (..., D)| >= |value|), exact for the noise."""
        return null_laws.normal_plus_laplaces(value, sd, scales)

    def widened(self, value, sd, sensitivity, variance_noise):
        """`sd` enlarged for the noise of this variance in sd^2, so that `null_p_value` keeps its level."""
        return null_laws.widened_for_laplace(value, sd, self.scale(sensitivity), variance_noise)


@as_pytree
@dataclasses.dataclass(frozen=True)
class Geometric(PureLaw):
    """Adds integer noise with P(k) proportional to exp(-epsilon |k| / bound) to integer values.

    Privacy: epsilon-DP for the relation of the sensitivity, L1 norm (Ghosh et al. 2012, Thm 3.1's mechanism).
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise and take integer dtypes
    only, since whole numbers can't be told from others in floats.
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "geometric"
    norm: ClassVar[Norm] = Norm.L1
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        scale = sensitivity.bound / check.budget(self.epsilon)
        return value + floats.two_sided_geometric(key, scale, value.shape, value.dtype)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.geometric(key, value, sensitivity, check.budget(self.epsilon))

    def scale(self, sensitivity):
        """Scale of the two-sided geometric law, bound/epsilon."""
        self.require(sensitivity)
        return sensitivity.bound / check.positive_or_nan(self.epsilon)

    def noise(self, key, sensitivity, shape=()):
        """Float-typed integer draws of the noise alone, for null distributions."""
        return floats.two_sided_geometric(key, self.scale(sensitivity), shape)


@as_pytree
@dataclasses.dataclass(frozen=True)
class Gaussian(Law):
    """Adds independent normal noise of sd (bound + 2 error)/sqrt(2 rho).

    Privacy: rho-zCDP for the relation of the sensitivity, L2 norm (Bun and Steinke 2016, Prop. 1.6);
    an L1 bound is accepted too, since the L2 norm is never larger.
    """

    rho: ArrayLike

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = Norm.L2
    outputs_released: ClassVar[bool] = True

    def __post_init__(self):
        check.positive(rho=self.rho)

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        noise = floats.gaussian(key, value.shape, value.dtype)
        return value + reach(sensitivity) / jnp.sqrt(2.0 * check.budget(self.rho)) * noise

    def lattice_draw(self, key, value, sensitivity):
        return lattice.gaussian(key, value, sensitivity, check.budget(self.rho))

    def parameters(self, sensitivity) -> tuple:
        return reach(sensitivity), check.budget(self.rho)

    def require(self, sensitivity) -> None:
        if sensitivity.norm is Norm.LINF:
            raise ValueError("Gaussian needs an L2 (or L1) bound, got linf.")

    def scale(self, sensitivity):
        """Noise standard deviation."""
        self.require(sensitivity)
        return reach(sensitivity) / jnp.sqrt(2.0 * check.positive_or_nan(self.rho))

    def variance(self, sensitivity):
        """Variance of the noise."""
        return self.scale(sensitivity) ** 2

    def share(self, fraction: float):
        """The mechanism that a fraction of this budget buys."""
        return Gaussian(check.share(self.rho, fraction))

    def selector(self):
        """The selection mechanism that this budget buys."""
        return ExponentialMechanism(epsilon=jnp.sqrt(8.0 * check.positive_or_nan(self.rho)))

    def noise(self, key, sensitivity, shape=()):
        """Float draws of the noise alone, for null distributions."""
        return self.scale(sensitivity) * floats.gaussian(key, shape)

    def null_p_value(self, value, sd, sensitivity):
        """P(|N(0, sd^2) + noise| >= |value|), exact for the noise."""
        return null_laws.normal(value, jnp.hypot(sd, self.scale(sensitivity)))

    def combined_p_value(self, value, sd, scales):
        """P(|N(0, sd^2) + sum of noise of these scales (..., D)| >= |value|), exact for the noise."""
        return null_laws.normal_plus_normals(value, sd, scales)

    def widened(self, value, sd, sensitivity, variance_noise):
        """`sd` enlarged for the noise of this variance in sd^2, so that `null_p_value` keeps its level."""
        return null_laws.widened_for_normal(value, sd, self.scale(sensitivity), variance_noise)

    def cost(self, relation: Relation) -> Cost:
        """rho-zCDP; no finite pure epsilon."""
        rho = check.budget(self.rho)
        return Cost(epsilon=jnp.full(jnp.shape(rho), jnp.inf, float), delta=0.0, rho=rho, relation=relation)


@as_pytree
@dataclasses.dataclass(frozen=True)
class MaxNorm(PureLaw):
    """Adds noise x of density proportional to exp(-epsilon max_k |x_k|/(bound + 2 error)) to a vector.

    Privacy: epsilon-DP for the relation of the sensitivity, Linf norm: the K-norm mechanism of the cube (Hardt and
    Talwar 2010; Steinke and Ullman 2016, section 3). Of d coordinates each has sd sqrt((d + 1)(d + 2)/3) bound/epsilon,
    where Laplace noise for an L1 bound of d times as much has sqrt(2) d: it suits statistics that move in most of them.
    Numerics: simulation keys draw floats (idealised); release keys draw exact lattice noise.
    """

    epsilon: ArrayLike

    name: ClassVar[str] = "max_norm"
    norm: ClassVar[Norm] = Norm.LINF
    instead: ClassVar[str] = "; use Laplace for L1"
    outputs_released: ClassVar[bool] = True

    def float_draw(self, key, value, sensitivity):
        value = jnp.asarray(value, float)
        noise = floats.max_norm(key, (value.size,), value.size, value.dtype)
        return value + reach(sensitivity) / check.budget(self.epsilon) * noise.reshape(value.shape)

    def lattice_draw(self, key, value, sensitivity):
        return lattice.max_norm(key, value, sensitivity, check.budget(self.epsilon))

    def scale(self, sensitivity):
        """Mean growth of the radius with a coordinate."""
        self.require(sensitivity)
        return reach(sensitivity) / check.positive_or_nan(self.epsilon)

    def variance(self, sensitivity, among: int = 1):
        """Variance of one of `among` coordinates."""
        return self.scale(sensitivity) ** 2 * (among + 1.0) * (among + 2.0) / 3.0

    def selector(self):
        """The selection mechanism that this budget buys."""
        return ReportNoisyMax(epsilon=check.budget(self.epsilon))

    def noise(self, key, sensitivity, shape=(1,), among: int | None = None):
        """Float draws (..., k) of the noise alone, of k of `among` coordinates (default: of all), for null laws."""
        shape = shape or (1,)
        return self.scale(sensitivity) * floats.max_norm(key, shape, shape[-1] if among is None else among)
