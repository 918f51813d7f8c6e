"""What the private tests on maximal information coefficients share: columns, ranges, null laws."""

import dataclasses
import functools
import hashlib
import math
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base import check, programs
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest, Relation, Sensitivity
from jaxdp.data.dataset import CONTINUOUS
from jaxdp.independence.mic import mic_parameters, mic_sensitivity
from jaxdp.mechanisms import Laplace
from jaxdp.statistics.mic import coefficients, mic_bins, mic_grids, mic_pairs

NULL_SEED = 20220717  # of the tabulated null law: public randomness, the same for every run
_NULL_BATCH = 64
_NULL_PROGRAMS = 2  # a first answer waits for them; four run a quarter faster and take a second more to compile


@frozen_pytree
class MICTest(PrivateTest):
    """Fields and stages that the MIC tests share.

    max_cells: B, the number of cells k l that a grid may have, >= 4; default from the public table in (n, epsilon).
    c: master bins per segment, default from the table. grid: "capped" (appendix E.1) or "full" master sizes.
    num_null: simulated data sets of the null law.
    """

    max_cells: float | None = jax.tree.static(default=None)
    c: float | None = jax.tree.static(default=None)
    grid: str = jax.tree.static(default=mic_grids.CAPPED)
    num_null: int = jax.tree.static(default=499)

    reads_missing: ClassVar[bool] = True  # NaN lies in the lowest bin
    default_mechanism: ClassVar[type] = Laplace
    gradient_free = null_laws.RANK

    def __post_init__(self):
        super().__post_init__()
        mic_grids.check(
            4 if self.max_cells is None else self.max_cells, 1 if self.c is None else self.c, self.grid, "max_cells"
        )
        check.at_least(1, num_null=self.num_null)

    def specialize(self, shapes):
        """This test with B and c pinned: the statistic and its sensitivity must never read two different defaults."""
        for name in ("x", "y"):
            shape = getattr(shapes, name).shape
            if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
                raise ValueError(
                    f"{type(self).__name__} takes one column {name}, got shape {shape}; MICrPairs takes many columns."
                )
        if shapes.x.shape[0] < 4:
            raise ValueError(f"{type(self).__name__} needs at least 4 records, got {shapes.x.shape[0]}.")
        count = shapes.x.shape[0]
        pinned: Any = {"max_cells": self.cells_allowed(count), "c": self.master_factor(count)}
        return dataclasses.replace(self, **pinned)

    def cells_allowed(self, num_records: int) -> float:
        """B in force."""
        if self.max_cells is not None:
            return float(self.max_cells)
        corrected = getattr(self, "correct_bias", False)
        return mic_parameters.cells_allowed(num_records, self._nominal_epsilon(), corrected)

    def master_factor(self, num_records: int) -> float:
        """c in force."""
        return mic_parameters.MASTER_FACTOR if self.c is None else float(self.c)

    def _nominal_epsilon(self) -> float:
        """The budget that the table of defaults is read at: 1 where it is traced."""
        mechanism, value = self.mechanism, math.inf  # type: Any, Any
        if self.epsilon is not None:
            value = self.epsilon
        elif hasattr(mechanism, "rho"):
            value = jnp.sqrt(2.0 * mechanism.rho) if check.is_concrete(mechanism.rho) else mechanism.rho
        else:
            value = getattr(mechanism, "epsilon", value)
        return float(value) if check.is_concrete(value) and np.ndim(value) == 0 else 1.0

    def coefficient_sensitivity(self, bound: float, num_records: int) -> Sensitivity:
        """The sensitivity of one coefficient that moves by `bound` between neighbours."""
        return Sensitivity(
            bound=bound,
            norm=self.mechanism_in_force().norm,
            relation=Relation.REPLACE_ONE,
            error=mic_sensitivity.rounding(num_records, self.cells_allowed(num_records)),
            lower=LOWEST,
            upper=HIGHEST,
        )

    def null_statistics(self, key, num_records: int):
        """Statistics of `num_null` independent data sets under independence, before noise."""
        raise NotImplementedError

    def p_value(self, key, release):
        """Monte Carlo p-value (1 + #{null >= released})/(1 + num_null); the null carries the same noise."""
        key_null, key_noise = jax.random.split(key)
        null = self.null_statistics(key_null, release.num_records)
        noise = self.mechanism_in_force().noise(key_noise, release.sensitivity, jnp.shape(null))
        return null_laws.monte_carlo(jnp.clip(release.value, LOWEST, HIGHEST), jnp.clip(null + noise, LOWEST, HIGHEST))

    def estimate(self, release):
        """The released coefficient, clipped to [0, 1]."""
        return jnp.clip(release.value, 0.0, 1.0)


# The public range declared to the release. Wider than [0, 1], so that clipping spares the noise the p-value compares.
LOWEST, HIGHEST = -1.0, 2.0


def column(values):
    """(n,) or (n, 1) to (n,), floating point."""
    values = jnp.asarray(values)
    values = values if jnp.issubdtype(values.dtype, jnp.floating) else values.astype(float)
    return values.astype(jnp.result_type(float)).reshape(values.shape[0])


def public_bounds(bounds, domain) -> tuple[tuple[float, float], tuple[float, float]]:
    """The public range of x and y: given, or from the domain (codes get half a code of margin), or [-1, 1]."""
    if bounds is not None:
        return bounds
    if domain is None:
        return ((-1.0, 1.0), (-1.0, 1.0))
    return column_bounds(domain.x[0]), column_bounds(domain.y[0])


def column_bounds(description) -> tuple[float, float]:
    """Public range of a described column after scaling or coding."""
    return (-1.0, 1.0) if description.kind == CONTINUOUS else (-0.5, description.levels - 0.5)


def checked_bounds(bounds) -> Any:
    """Bounds as nested tuples of floats (static fields must hash), or ValueError."""
    return tuple((float(low), float(high)) for low, high in coefficients.check_bounds(bounds))


@functools.lru_cache(maxsize=64)
def null_table(num_records: int, budget: float, c: float, grid: str, kind: str, count: int) -> np.ndarray:
    """MICr of uniform (kind "range") or MICe of any continuous (kind "mass") independent pairs: (count,) float32.

    A function of public numbers alone, drawn with a fixed seed and kept, where programs are kept too.
    """
    code = b"".join(path.read_bytes() for path in sorted(Path(mic_pairs.__file__).parent.glob("*.py")))
    settings = (num_records, budget, c, grid, kind, count)
    name = f"{settings} {NULL_SEED} {jax.__version__} {hashlib.sha256(code).hexdigest()}"
    return programs.numbers_of(name, (count,), lambda: _draw_null_table(*settings))


def _draw_null_table(num_records: int, budget: float, c: float, grid: str, kind: str, count: int) -> np.ndarray:
    groups = mic_grids.buckets(mic_grids.grids(budget, c, grid), count, _NULL_PROGRAMS)
    found = []
    with jax.ensure_compile_time_eval(), jax.enable_x64(False):
        keys = jax.random.split(jax.random.key(NULL_SEED), -(-count // _NULL_BATCH))
        for key in [keys[i] for i in range(keys.shape[0])]:
            draws = jax.random.uniform(key, (num_records, 2 * _NULL_BATCH))
            if kind == mic_bins.MASS:
                draws = jnp.argsort(draws, axis=0).astype(jnp.int32)
            found.append(np.asarray(mic_pairs.halves(draws, groups, kind)))
    return np.concatenate(found)[:count]
