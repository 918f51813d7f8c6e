"""What tests on windows of records that are close in two to five columns of Z share: curves, contrasts, which count.

Symbols: m = records of a window, a = its contrast, h = `caliper`, C = half of the caliper's side times n^(1/d)
(docs/theory/ordered_neighbours.md#contrast).
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import method_of
from jaxdp.independence.continuous import validity
from jaxdp.independence.continuous.neighbour_test import (
    NeighbourTest,
    as_number,
    continuous_columns,
    count_columns,
    mass,
    num_strata,
    num_values,
    sides,
    split_columns,
)
from jaxdp.mechanisms import Laplace
from jaxdp.statistics import partition
from jaxdp.statistics.neighbours import contrasts, hilbert, neighbour_order

DEPTHS = (2, 3, 4, 5)
CALIPER = {2: 2.0, 3: 1.5, 4: 1.0, 5: 0.75}  # measured on simulated nulls, not proved (#null-rate)
CURVES = {2: 4, 3: 4, 4: 1, 5: 1}
MANY = 1000  # records, from which windows are small enough for sharper constants
CALIPER_OF_MANY = {2: 3.0}
FARTHEST = 1e6  # where values of z without bounds are cut, in units of the reference law


@frozen_pytree
class ContrastTest(NeighbourTest):
    """Base: windows of m records that follow each other along Hilbert curves through the box of Z, and their contrasts.

    trend_x, trend_y, symmetric, rotation, num_rotations, skewed, closest: as in `ContrastGCM`.
    """

    trend_x: Callable | None = jax.tree.static(default=None)
    trend_y: Callable | None = jax.tree.static(default=None)
    symmetric: bool | None = jax.tree.static(default=None)
    rotation: int = jax.tree.static(default=0)
    num_rotations: int | None = jax.tree.static(default=None)
    skewed: bool = jax.tree.static(default=False)
    closest: ArrayLike | None = None
    depth: int = jax.tree.static(default=2)

    leaves_out_clipped_z: ClassVar[bool] = True  # so that the owner of a file need not be refused for them

    flags: ClassVar[tuple[str, ...]] = validity.CONTRAST_FLAGS
    for_one_column: ClassVar[str] = "BandGCM"  # the test that takes one column of z
    default_mechanism = Laplace

    def __post_init__(self):
        super().__post_init__()
        check.at_least(0, rotation=self.rotation)
        if self.num_rotations is not None:
            check.one_of((1, 2, 4, 8), num_rotations=self.num_rotations)  # powers of two: their mean is exact
        if self.closest is not None:
            check.in_range(0.0, 1.0, closest=self.closest)

    def specialize(self, shapes):
        depth, _ = count_columns(shapes)
        if depth < min(DEPTHS):
            raise ValueError(
                f"{method_of(self)} takes two to five continuous columns of z, got {depth}; use {self.for_one_column}."
            )
        if depth > max(DEPTHS):
            self.too_deep(shapes).require()
        return dataclasses.replace(super().specialize(shapes), depth=depth)

    def too_deep(self, data) -> validity.Validity:
        """The public rule for a number of columns that no window serves."""
        depth, _ = count_columns(data)
        return validity.contrast_rule(data.x.shape[0], max(depth, 2), 0.0, 1.0, symmetric=False)

    def _rule(self, data, noise: float, null: float, *, symmetric: bool, **form: Any) -> validity.Validity:
        """The public rule on the level. noise: its variance on T. null: variance of T for each window that counts."""
        depth, _ = count_columns(data)
        count = data.x.shape[0]
        windows = as_number(self.most_windows(count))
        return validity.contrast_rule(
            count,
            depth,
            null * windows + noise,
            as_number(self._side(depth, count, num_strata(data))),
            windows=windows,
            symmetric=symmetric,
            scale=as_number(self.scale_x),
            narrow=self._narrow(data),
            skewed=self.skewed,
            labels=num_values(data) > 0,
            **form,
        )

    def statistic(self, key, data):
        """`window_sums`, the mean over the curves: (p, q), or a scalar for one pair."""
        return self.total(neighbour_order.priorities(key, data.x.shape[0]), data)

    def total(self, priority, data, classes: int = 1):
        """`window_sums`, the mean over the curves.

        classes: windows hold records of one of so many classes, chosen by the records' priorities.
        """
        x, y = sides(data, self.trend_x, self.trend_y)
        plain, codes = split_columns(data)
        count, depth = plain.shape
        reference = partition.default_reference(data) if self.reference is None else self.reference
        place = mass(reference, plain)
        known = _known(place, continuous_columns(data))
        if classes > 1:
            own = neighbour_order.classes(priority, classes)
            codes = own if codes is None else codes * classes + own
        scores = neighbour_order.normal_scores(priority, plain.dtype)
        table = (x, y, coordinates(reference, plain), scores, place, known)
        side = self._side(depth, count, num_strata(data) * classes)
        bits = min(hilbert.KEY_BITS // depth, hilbert.WORD_BITS, neighbour_order.spare_bits(count) // depth)

        def along_curve(rotation, shift):
            words = hilbert.hilbert_key(hilbert.moved(place, rotation, shift), bits)
            order = neighbour_order.order_by_words(words[0], words[1], bits * depth, priority, codes)
            in_order = neighbour_order.in_order(order, *table)
            return self._sum(in_order, side, None if codes is None else codes[order])

        curves = self.curves(depth)
        motions = [hilbert.public_motion(depth, self.rotation + r) for r in range(curves)]
        turns, shifts = (jnp.asarray(np.stack(part), place.dtype) for part in zip(*motions, strict=True))
        return self._matrix(jnp.sum(jax.vmap(along_curve)(turns, shifts), axis=0) / curves)

    def _sum(self, table, side, codes):
        """`window_sums` of records in the order of one curve."""
        x, y, points, scores, place, known = table
        count, depth = points.shape
        size = contrasts.window_size(depth, self.is_symmetric(count))
        wide = contrasts.ranges(place, size)
        kept = (wide <= side) & contrasts.all_of(known, size)
        if codes is not None:
            kept = kept & (contrasts.ranges(codes[:, None], size) == 0)
        if self.closest is not None:
            kept = kept & contrasts.closest(jnp.where(kept, wide, jnp.inf), self.most_windows(count))
        return self.window_sums(x, y, points, scores, kept)

    def window_sums(self, x, y, points, scores, kept):
        """Sums over the windows that are kept, (p, q, ...).

        x (n, p), y (n, q), points (n, d), scores (n,) in one order.
        """
        raise NotImplementedError

    def is_symmetric(self, num_records: int) -> bool:
        """Whether the symmetric form is used for this number of records."""
        raise NotImplementedError

    def _side(self, depth: int, num_records: int, strata: int = 1):
        """strata: joint levels of coded columns, in each of which windows hold that many times the volume."""
        if self.caliper is not None:
            return self.caliper
        factor = CALIPER_OF_MANY.get(depth, CALIPER[depth]) if num_records >= MANY else CALIPER[depth]
        return min(1.0, factor * (strata / num_records) ** (1.0 / depth))

    def most_windows(self, num_records: int):
        """How many windows of one curve may count."""
        return num_records if self.closest is None else jnp.maximum(1.0, jnp.floor(self.closest * num_records))

    def curves(self, depth: int) -> int:
        """How many curves the sums are the mean of."""
        return CURVES[depth] if self.num_rotations is None else self.num_rotations

    def largest_sum(self, num_records: int) -> float:
        return 1.0 * num_records

    def largest_change(self, num_records: int) -> float:
        """By how much a replacement moves a sum over windows of numbers in [-1, 1]: 2 (2m - 1)."""
        return 2.0 * (2 * contrasts.window_size(self.depth, self.is_symmetric(num_records)) - 1)


def _known(place, columns):
    """Whether each record says where it lies in Z, (n,): not at a bound, where all values beyond it were moved.

    Values of a column with a declared step end at its bounds, and say so there too. A missing value has place 0.
    """
    inside = [(place[:, j] > 0.0) & (place[:, j] < 1.0) for j, column in enumerate(columns) if not column.values]
    return jnp.all(jnp.stack([jnp.ones(place.shape[:1], bool), *inside]), axis=0)


def coordinates(reference, z):
    """z (n, d) in units in which planes are fitted: shares of the range between public bounds, or as given.

    Missing values lie at the lower end.
    """
    lower, upper = getattr(reference, "lower", None), getattr(reference, "upper", None)
    if lower is None or upper is None:
        return jnp.clip(jnp.nan_to_num(z, nan=-FARTHEST), -FARTHEST, FARTHEST)
    return jnp.clip(jnp.nan_to_num((z - lower) / (upper - lower), nan=0.0), 0.0, 1.0)
