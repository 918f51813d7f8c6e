"""A private transform of both axes to about uniform, for ranges that are wide or heavy-tailed, or for a p-value.

docs/theory/mic.md#private-ranges: noisy histograms on public bins, cumulated and interpolated.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.independence.mic import mic_common
from jaxdp.mechanisms import Geometric, Laplace

# A replaced record changes two bins of each of the two histograms by 1: 4 in L1, 2 in L2.
HISTOGRAMS_L1, HISTOGRAMS_L2 = 4.0, 2.0
FINEST = 1e-3  # bins near the centre resolve about this part of the public range
ASINH, EVEN = "asinh", "even"
BINS = {ASINH: 64, EVEN: 16}  # many to resolve heavy tails; few to even the margins out with little noise


@frozen_pytree
class Axis:
    """A released distribution function: edges (M + 1,) and its values there; maps values into [0, 1]."""

    edges: Any
    cdf: Any

    def __call__(self, values):
        filled = jnp.nan_to_num(values, nan=-jnp.inf, posinf=jnp.inf, neginf=-jnp.inf)
        filled = jnp.clip(filled, self.edges[0], self.edges[-1])
        return jnp.interp(filled, self.edges.astype(filled.dtype), self.cdf.astype(filled.dtype))


@frozen_pytree
class MarginalHistograms(PrivateQuery):
    """Releases noisy counts of x and of y on public bins, array (2, bins).

    Sensitivity: 4 in L1, 2 in L2, replace-one (two bins of each histogram change by 1).
    Privacy: that of the mechanism; Laplace budgets draw two-sided geometric noise, as counts are whole.
    grid: "asinh", 64 bins of equal widths in asinh of the distance from 0 (or from the range's end nearest to it), or
        "even", 16 bins of equal widths.
    """

    bounds: Any = jax.tree.static(default=None)
    grid: str = jax.tree.static(default=ASINH)

    method: ClassVar[str] = "MarginalHistograms"
    reads_missing: ClassVar[bool] = True

    def mechanism_in_force(self):
        epsilon: Any = self.epsilon
        mechanism = Laplace(epsilon) if self.mechanism is None else self.mechanism
        return Geometric(mechanism.epsilon) if isinstance(mechanism, Laplace) else mechanism

    def specialize(self, shapes):
        return dataclasses.replace(self, bounds=mic_common.public_bounds(self.bounds, shapes.domain))

    @property
    def bins(self) -> int:
        """Bins of each axis."""
        return BINS[self.grid]

    def edges(self, low: float, high: float) -> np.ndarray:
        """Public bin edges of [low, high], (bins + 1,)."""
        return np.linspace(low, high, self.bins + 1) if self.grid == EVEN else asinh_edges(low, high, self.bins)

    def statistic(self, key, data):
        counts = []
        for values, bounds in zip((data.x, data.y), mic_common.public_bounds(self.bounds, data.domain), strict=True):
            values = mic_common.column(values)
            values = jnp.nan_to_num(values, nan=-jnp.inf, posinf=jnp.inf, neginf=-jnp.inf)
            inner = jnp.asarray(self.edges(*bounds)[1:-1], values.dtype)
            counts.append(jnp.zeros(self.bins, int).at[jnp.searchsorted(inner, values, side="right")].add(1))
        return jnp.stack(counts)

    def sensitivity(self, num_records):
        norm = self.mechanism_in_force().norm
        return Sensitivity(
            HISTOGRAMS_L1 if norm is Norm.L1 else HISTOGRAMS_L2,
            norm,
            Relation.REPLACE_ONE,
            lower=0.0,
            upper=1.0 * num_records,
        )


def asinh_edges(low: float, high: float, bins: int) -> np.ndarray:
    """Public bin edges of [low, high], (bins + 1,), fine near 0 and coarse far from it."""
    centre, unit = min(max(0.0, low), high), FINEST * (high - low)
    first, last = (float(np.arcsinh((end - centre) / unit)) for end in (low, high))
    edges = centre + unit * np.sinh(np.linspace(first, last, bins + 1))
    edges[0], edges[-1] = low, high
    return edges


def transform(test, query, released):
    """The test with axes mapped through the released distribution functions (public post-processing)."""
    axes = []
    for counts, bounds in zip(released.value, query.bounds, strict=True):
        mass = jnp.maximum(counts, 0.0)
        total = jnp.sum(mass)
        flat = jnp.full_like(mass, 1.0 / mass.shape[0])
        share = jnp.where(total > 0, mass / jnp.maximum(total, 1.0), flat)
        cdf = jnp.clip(jnp.concatenate([jnp.zeros(1, mass.dtype), jnp.cumsum(share)]), 0.0, 1.0)
        axes.append(Axis(edges=jnp.asarray(query.edges(*bounds), mass.dtype), cdf=cdf))
    return dataclasses.replace(test, axes=tuple(axes))
