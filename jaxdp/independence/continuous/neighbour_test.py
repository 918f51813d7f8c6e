"""What the tests that compare neighbours in Z share: columns, priorities, p-values."""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest
from jaxdp.data.dataset import CONTINUOUS
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous.validity import SMALL_WIDTH, Validity
from jaxdp.statistics import partition
from jaxdp.statistics.neighbours.soft_sign import GRID, finite
from jaxdp.statistics.per_record import per_record

DEFAULT_SCALE = 0.25  # c = 1/8 for data in [-1, 1]
NATURAL_SCALE = 1.0  # of residuals in units of their own
MAX_GRID_SUM = 2**53


def scales(domain, options) -> dict[str, float]:
    """`scale_x` and `scale_y` of a builder: as asked for, or the defaults of natural units and of a schema's."""
    default = NATURAL_SCALE if domain is None else DEFAULT_SCALE
    scale_x, scale_y = options.residual_scale or (default, default)
    return {"scale_x": scale_x, "scale_y": scale_y}


AGREEMENT = (  # what the effect is
    "agreement of X and Y among records with nearly the same Z, from -1 (X is higher where Y is lower) through 0 (no "
    "tendency) to 1 (both are higher together)"
)


@frozen_pytree
class NeighbourTest(PrivateTest):
    """Base: kernel widths, public columns of Z, and p-values of one noisy sum per pair of columns.

    scale_x, scale_y: public guesses of the residual sd of x and y given z; the kernel's half width c is half of it.
    reference: public law of each column of Z whose distribution function measures closeness (default: uniform on
        [-1, 1] where the data have a domain; see the test for data without).
    caliper: largest distance of neighbours, as a share of the reference law's mass; math.inf for none.
    enforce_rule: False runs the test even where the public rule on the level refuses.
    """

    scale_x: ArrayLike = DEFAULT_SCALE
    scale_y: ArrayLike = DEFAULT_SCALE
    reference: object = None
    caliper: ArrayLike | None = None
    enforce_rule: bool = jax.tree.static(default=True)
    num_columns: tuple[int, int, int] = jax.tree.static(default=(1, 1, 1))

    reads_missing: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True
    smooth_above: ClassVar[float] = 0.01  # ten steps of the grid that values are rounded to

    def __post_init__(self):
        super().__post_init__()
        check.positive(scale_x=self.scale_x, scale_y=self.scale_y)
        if self.caliper is not None and self.caliper is not math.inf:
            check.positive(caliper=self.caliper)

    def specialize(self, shapes):
        """This test with its columns counted. Errors: ValueError where the public rule on the level refuses."""
        test = partition.with_column_counts(self, shapes)
        count = shapes.x.shape[0]
        if self.enforce_rule:
            test.validity(shapes).require()
        if test.largest_sum(count) * GRID**2 >= MAX_GRID_SUM:
            raise ValueError(f"{count} records are too many for exact sums: use fewer neighbours or fewer records.")
        return test

    def validity(self, data) -> Validity:
        """The public rule on the level for data (or shapes) with these columns: verdict, flags, sentence."""
        raise NotImplementedError

    def largest_sum(self, num_records: int) -> float:
        """Bound on the sum of kernel products, for `num_records` records."""
        raise NotImplementedError

    def widths(self):
        """Half widths c of the two kernels."""
        return tuple(0.5 * check.positive_or_nan(scale) for scale in (self.scale_x, self.scale_y))

    def pairwise(self, data):
        """`statistic` for all pairs i < j of the columns of x (y is x)."""
        count = data.x.shape[1]
        totals = dataclasses.replace(self, num_columns=(count, count, self.num_columns[2])).statistic(None, data)
        rows, columns = jnp.triu_indices(count, k=1)
        return jax.tree.map(lambda total: total[rows, columns], totals)

    def pair_p_values(self, key, release):
        """One p-value for each pair of columns: array (p, q), scalar for one pair."""
        raise NotImplementedError

    def _matrix(self, total):
        """(p, q), or a scalar for one pair."""
        return total[0, 0] if math.prod(self.num_columns[:2]) == 1 else total

    def _miss(self) -> float:
        """One minus the coverage of each interval, so that those of all pairs hold together."""
        return effect_sizes.MISS / math.prod(self.num_columns[:2])

    def _poison(self):
        """0, or NaN where a traced scale is not a positive number."""
        return 0.0 * sum(self.widths())

    def _narrow(self, data) -> bool:
        """Whether a kernel is narrower than the rule allows, for data in [-1, 1]."""
        concrete = all(map(check.is_concrete, (self.scale_x, self.scale_y)))
        if getattr(data, "domain", None) is None or not concrete:
            return False
        # NumPy: inside a traced function jax.numpy would trace even what is concrete
        return bool(min(np.min(np.asarray(scale)) for scale in (self.scale_x, self.scale_y)) < 2 * SMALL_WIDTH)


def sides(data, trend_x=None, trend_y=None):
    """x and y as finite matrices (n, p), (n, q), less public trends of z."""
    x = _detrended(partition.as_matrix(data.x), trend_x, data, "trend_x")
    y = _detrended(partition.as_matrix(data.y), trend_y, data, "trend_y")
    return finite(x), finite(y)


def _detrended(values, trend, data, name: str):
    """Values (n, p) less a public trend, asked about one record at a time."""
    if trend is None:
        return values
    fitted = per_record(trend, partition.as_matrix(data.z), name=name)
    fitted = jnp.stack(jax.tree.leaves(fitted), axis=1)
    if fitted.shape[1] != values.shape[1]:
        raise ValueError(f"{name} gives {fitted.shape[1]} numbers per record for {values.shape[1]} columns.")
    return values - fitted.astype(values.dtype)


def split_columns(data):
    """(continuous columns of z (n, d), joint code (n,) of its coded columns or None)."""
    if data.z is None:
        return jnp.zeros((data.x.shape[0], 0), float), None
    columns = partition.columns_of_z(data)
    z = partition.as_matrix(data.z)
    if len(columns) != z.shape[1]:
        raise ValueError(f"the domain describes {len(columns)} columns of z, the data have {z.shape[1]}.")
    coded = [j for j, column in enumerate(columns) if column.kind != CONTINUOUS]
    plain = [j for j, column in enumerate(columns) if column.kind == CONTINUOUS]
    codes = None
    if coded:
        levels = tuple(columns[j].levels for j in coded)
        if math.prod(levels) >= 2**31:
            raise ValueError(f"the coded columns of z have {math.prod(levels)} joint levels: at most 2^31 are coded.")
        codes = partition.cell_index(z[:, jnp.array(coded)], tuple(columns[j] for j in coded), None, levels)
    return z[:, jnp.array(plain, dtype=int)], codes


def count_columns(data) -> tuple[int, int]:
    """(continuous, coded) columns of z; public."""
    if data.z is None:
        return 0, 0
    kinds = [column.kind for column in partition.columns_of_z(data)]
    continuous = sum(kind == CONTINUOUS for kind in kinds)
    return continuous, len(kinds) - continuous


def num_strata(data) -> int:
    """Joint levels of the coded columns of z; 1 without one. Public."""
    if data.z is None:
        return 1
    return math.prod(max(1, column.levels) for column in partition.columns_of_z(data) if column.kind != CONTINUOUS)


def num_values(data) -> int:
    """Most joint values that the continuous columns of z with a declared step can take; 0 where none has one."""
    if data.z is None:
        return 0
    found = [column.values for column in continuous_columns(data) if column.values]
    return math.prod(found) if found else 0


def num_days(data) -> int:
    """Days that a column of dates without times in z can take; 0 without one. Public."""
    return 0 if data.z is None else max((column.days for column in continuous_columns(data)), default=0)


def are_hourly(data) -> bool:
    """Whether z holds the day of dates with times, whose records are compared within a part of an hour. Public."""
    return data.z is not None and any(column.days and column.labels for column in continuous_columns(data))


def continuous_columns(data) -> list:
    """Public descriptions of the continuous columns of z."""
    return [column for column in partition.columns_of_z(data) if column.kind == CONTINUOUS]


def as_number(value) -> float:
    """A public number, NaN where it is traced or an array."""
    return float(np.asarray(value)) if check.is_concrete(value) and np.ndim(value) == 0 else math.nan


def mass(reference, z):
    """Places of z (n, d) under the reference law of each column, in [0, 1]; a missing value has place 0."""
    places = [partition.share_below(reference, z[:, j]) for j in range(z.shape[1])]
    return jnp.clip(jnp.nan_to_num(jnp.stack(places, axis=1), nan=0.0), 0.0, 1.0)
