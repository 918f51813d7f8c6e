"""The maximal information coefficients of many pairs of columns, released together under one budget."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.independence.mic import mic_common, mic_parameters, mic_sensitivity
from jaxdp.mechanisms import Laplace
from jaxdp.spec import COEFFICIENTS, SELECTION, TestSpec
from jaxdp.statistics.mic import mic_grids, mic_pairs


@frozen_pytree
class MICrPairs(PrivateQuery):
    """Private MICr of every pair (or given pairs) of columns of a table (n, d), one budget for all.

    Data: the array (n, d) itself. Statistic: the m coefficients, in the order of `pairs`.
    Sensitivity: with s the bound of one coefficient (`MICrLaplace`), m s in L1 and sqrt(m) s in L2; replace-one.
    Privacy: epsilon-DP for the whole vector, so each pair gets epsilon/m; mechanism=Gaussian(rho) gives rho-zCDP
    for the whole vector, so that the noise of a pair grows with sqrt(m) only: the choice for many pairs.

    bounds: public ranges, array-like (d, 2), default [-1, 1] each. pairs: int (m, 2), default all i < j.
    max_cells, c, grid: as `MICrLaplace`. progress: a bar on standard error.
    """

    bounds: Any = jax.tree.static(default=None)
    pairs: Any = jax.tree.static(default=None)
    max_cells: float | None = jax.tree.static(default=None)
    c: float = jax.tree.static(default=mic_parameters.PAIRS_MASTER_FACTOR)
    grid: str = jax.tree.static(default=mic_grids.CAPPED)
    progress: bool = jax.tree.static(default=False)

    spec: ClassVar[TestSpec] = TestSpec(
        name="micr-pairs",
        summary="maximal information coefficient of every pair of many columns",
        publishes=COEFFICIENTS,
        needs=("columns",),
        alternatives="any dependence of two columns",
        needs_all="it looks for the best cuts between sorted records",
        theory="docs/theory/mic.md",
    )
    one_program: ClassVar[bool] = False
    reads_missing: ClassVar[bool] = True
    default_mechanism = Laplace
    gradient_free = null_laws.RANK

    def __post_init__(self):
        super().__post_init__()
        mic_grids.check(4 if self.max_cells is None else self.max_cells, self.c, self.grid, "max_cells")
        for name in ("bounds", "pairs"):
            if getattr(self, name) is not None:
                rows = tuple(tuple(row) for row in np.asarray(getattr(self, name)).tolist())
                object.__setattr__(self, name, rows)

    def specialize(self, shapes):
        if len(shapes.shape) != 2 or shapes.shape[0] < 4 or shapes.shape[1] < 2:
            raise ValueError(f"MICrPairs takes a table (n, d), n >= 4 and d >= 2, got shape {shapes.shape}.")
        if self.bounds is not None and len(self.bounds) != shapes.shape[1]:
            raise ValueError(f"bounds must have one row per column: {shapes.shape[1]}, got {len(self.bounds)}.")
        if self.pairs is not None:
            return self
        return dataclasses.replace(self, pairs=mic_pairs.all_pairs(shapes.shape[1]))

    def cells_allowed(self, num_records: int) -> float:
        """B in force: the default is that of epsilon = 1."""
        default = mic_parameters.cells_allowed(num_records, 1.0, corrected=False)
        return default if self.max_cells is None else float(self.max_cells)

    def statistic(self, key, data):
        """Coefficients (m,)."""
        table = jnp.asarray(data).astype(jnp.result_type(float))
        bounds = self.bounds or ((-1.0, 1.0),) * table.shape[1]
        budget = self.cells_allowed(table.shape[0])
        return mic_pairs.mic_r_pairs(
            table, self.pairs, bounds=bounds, budget=budget, c=self.c, grid=self.grid, progress=self.progress
        )

    def sensitivity(self, num_records):
        budget, count = self.cells_allowed(num_records), len(self.pairs)
        norm = self.mechanism_in_force().norm
        one = mic_sensitivity.range_bound(num_records, budget)
        return Sensitivity(
            one * (count if norm is Norm.L1 else count**0.5),
            norm,
            Relation.REPLACE_ONE,
            error=mic_sensitivity.rounding(num_records, budget),
            lower=mic_common.LOWEST,
            upper=mic_common.HIGHEST,
        )

    def p_values(self, key, release, num_null: int = 199) -> "PairPValues":
        """P-values of a release, post-processing: no further budget.

        Null: `num_null` tables of independent columns, uniform on their ranges, with the same noise; costs as much as
        num_null calls of the statistic. Exact for such tables; see `MICrLaplace` for other margins.
        """
        check.at_least(1, num_null=num_null)
        null = _null_tables(self, key, release.sensitivity, release.num_records, num_null)
        value = jnp.clip(release.value, mic_common.LOWEST, mic_common.HIGHEST)
        null = jnp.clip(null, mic_common.LOWEST, mic_common.HIGHEST)
        reached = [jnp.sum(values >= value[None], axis=0) for values in (null, jnp.max(null, axis=1, keepdims=True))]
        return PairPValues(*((1.0 + count) / (1.0 + num_null) for count in reached))


class PairPValues(NamedTuple):
    """each: (m,), every pair by itself. family: (m,), against the largest of all null values.

    When all columns are independent and uniform, the chance that any family value is <= a is at most a (weak control).
    """

    each: jax.Array
    family: jax.Array


def _null_tables(test, key, sensitivity, num_records: int, count: int):
    """Noisy coefficients of independent columns, (count, m)."""
    columns = 1 + max(max(pair) for pair in test.pairs)
    key_data, key_noise = jax.random.split(key)
    test = dataclasses.replace(test, bounds=((0.0, 1.0),) * columns, progress=False)

    def one(number):
        draws = jax.random.uniform(jax.random.fold_in(key_data, number), (num_records, columns))
        return test.statistic(None, draws)

    if isinstance(key, jax.core.Tracer):
        values = jax.lax.map(one, jnp.arange(count))
    else:
        values = jnp.stack([one(number) for number in range(count)])
    return values + test.mechanism_in_force().noise(key_noise, sensitivity, values.shape)


@frozen_pytree
class MICrTopPair(MICrPairs):
    """Privately selects a pair whose MICr is close to the largest; releases its index in `pairs`.

    Sensitivity: that of one coefficient, Linf over the pairs, replace-one (docs/theory/mic.md#many-pairs).
    Privacy: epsilon-DP by permute-and-flip, whatever the number of pairs.
    """

    spec: ClassVar[TestSpec] = dataclasses.replace(
        MICrPairs.spec,
        name="micr-top-pair",
        summary="the pair of many columns with the largest coefficient",
        publishes=SELECTION,
    )

    def p_values(self, key, release, num_null: int = 199):
        raise TypeError("MICrTopPair releases a name, not values: p-values need MICrPairs.")

    def mechanism_in_force(self):
        epsilon: Any = self.epsilon
        return Laplace(epsilon).selector() if self.mechanism is None else self.mechanism

    def sensitivity(self, num_records):
        budget = self.cells_allowed(num_records)
        return Sensitivity(
            mic_sensitivity.range_bound(num_records, budget),
            Norm.LINF,
            Relation.REPLACE_ONE,
            error=mic_sensitivity.rounding(num_records, budget),
            lower=mic_common.LOWEST,
            upper=mic_common.HIGHEST,
        )


def noise_scale(test: MICrPairs, num_records: int) -> float:
    """Noise standard deviation of each released coefficient: a public number for users to look at first."""
    check.at_least(4, num_records=num_records)
    return float(jnp.sqrt(test.mechanism_in_force().variance(test.sensitivity(num_records))))
