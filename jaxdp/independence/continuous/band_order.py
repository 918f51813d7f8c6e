"""What tests on pairs of records that are close in the order of one z share: the order, k, which pairs count.

Symbols: k = `num_neighbors`, h = `caliper` (docs/theory/ordered_neighbours.md#band).
"""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import method_of
from jaxdp.data.columns import RECORDS_A_DAY
from jaxdp.independence.continuous import validity
from jaxdp.independence.continuous.neighbour_test import (
    NeighbourTest,
    are_hourly,
    continuous_columns,
    count_columns,
    mass,
    num_days,
    num_strata,
    num_values,
    split_columns,
)
from jaxdp.statistics import partition
from jaxdp.statistics.neighbours import bands, neighbour_order

NEIGHBORS = ((500, 1), (5_000, 2), (50_000, 4), (math.inf, 8))  # below n: k
RECORDS_A_NEIGHBOUR = 4  # of one hour of one day: with fewer, most of the pairs that k allows do not exist


@frozen_pytree
class BandTest(NeighbourTest):
    """Base: records in the order of one continuous z (after its coded columns), pairs at most k ranks apart.

    num_neighbors, same_value: as in `BandGCM`.
    """

    leaves_out_clipped_z: ClassVar[bool] = True  # so that the owner of a file need not be refused for them

    num_neighbors: int | None = jax.tree.static(default=None)
    same_value: bool | None = jax.tree.static(default=None)

    flags: ClassVar[tuple[str, ...]] = validity.BAND_FLAGS
    for_several_columns: ClassVar[str] = "ContrastGCM"  # the test that takes two to five columns of z

    def __post_init__(self):
        super().__post_init__()
        if self.num_neighbors is not None:
            check.at_least(1, num_neighbors=self.num_neighbors)

    def specialize(self, shapes):
        continuous, _ = count_columns(shapes)
        if continuous > 1:
            raise ValueError(
                f"{method_of(self)} takes one continuous column of z, got {continuous}; use {self.for_several_columns}."
            )
        test = super().specialize(shapes)
        if test.num_neighbors is None and are_hourly(shapes):
            return dataclasses.replace(test, num_neighbors=test._neighbors_of_cells(shapes))
        return test

    def _neighbors_of_cells(self, shapes) -> int:
        """k where only records of one day (and one level of each coded column of z) are compared.

        S is 1/2k times a sum, so that a k for which there are no pairs lowers what the noise is compared with.
        """
        count = shapes.x.shape[0]
        records = count / (num_days(shapes) * num_strata(shapes))
        k = self.neighbors(count)
        while k > 1 and RECORDS_A_NEIGHBOUR * k > records:
            k //= 2
        return k

    def _compares_equal(self, data) -> bool:
        """Whether only pairs of equal z count, for data (or shapes) with these columns."""
        if self.same_value is not None:
            return self.same_value
        if any(column.labels for column in continuous_columns(data)):
            return True
        count = data.x.shape[0]
        if num_days(data):
            return count >= RECORDS_A_DAY * num_days(data)
        return 0 < num_values(data) <= count / (2 * self.neighbors(count))

    def _rule_of_equals(self, data) -> validity.Validity:
        """What is assumed where only records of equal z are compared: nothing, except within a part of an hour."""
        told = "Only records with equal Z are compared: no smoothness in Z is assumed."
        if are_hourly(data):
            told = (
                "Only records of the same hour of one day, or of the part of it that Z says, are compared. What comes "
                "and goes within it (an outage of minutes, a drift) is not conditioned on: where X and Y both follow "
                "it, true nulls are rejected."
            )
        return validity.Validity(validity.RUN, told)

    def validity(self, data):
        """The public rule on the level; that of pairs of neighbours, for this test's spread."""
        continuous, _ = count_columns(data)
        if continuous == 0 or self._compares_equal(data):
            return self._rule_of_equals(data)
        count = data.x.shape[0]
        return validity.band_rule(
            count,
            self.neighbors(count),
            self._public_variance(count) + self._noise_variance(count),
            narrow=self._narrow(data),
            labels=num_values(data) > 0,
            strata=num_strata(data),
        )

    def _public_variance(self, num_records: int) -> float:
        """Of S, in units of the largest product squared."""
        return bands.null_variance(num_records, self.neighbors(num_records))

    def _noise_variance(self, num_records: int) -> float:
        """The same of the noise on S; NaN for a traced budget."""
        raise NotImplementedError

    def _near(self, key, data):
        """The order of the records and the weight of a pair as a function of two slices of that order.

        Pairs at one bound, and pairs without z, have the weight 0 unless equal values are what is compared.
        """
        plain, codes = split_columns(data)
        count = data.x.shape[0]
        priority = neighbour_order.priorities(key, count)
        z = plain[:, 0] if plain.shape[1] else jnp.zeros(count, plain.dtype)
        largest = float(jnp.finfo(z.dtype).max)
        z = jnp.clip(jnp.nan_to_num(z, nan=-largest), -largest, largest)
        order = neighbour_order.order_by_value(z, priority, codes)
        codes = None if codes is None else codes[order]
        (values,) = neighbour_order.in_order(order, z)
        equal = self._compares_equal(data)
        at_bounds = num_days(data) > 0 or any(column.labels for column in continuous_columns(data))
        unknown = None if equal and not at_bounds else _unknown(values, data, largest)
        place, caliper = None if equal else self._places(values, data), self._caliper(data)

        def near(first, second):
            close = values[second] == values[first] if equal else jnp.ones(values[first].shape, bool)
            if place is not None:
                close = close & (place[second] - place[first] <= caliper)
            if unknown is not None:
                close = close & ~(unknown[first] & (values[first] == values[second]))
            if codes is not None:
                close = close & (codes[first] == codes[second])
            return close[:, None]

        return order, near

    def _places(self, values, data):
        """Places of the sorted z under the reference law, or None without a caliper."""
        reference = self.reference
        if reference is None and data.domain is not None:
            reference = partition.default_reference(data)
        if self.caliper is math.inf or reference is None:
            return None
        return mass(reference, values[:, None])[:, 0]

    def _caliper(self, data):
        """With V joint levels of coded columns neighbours are V times as far apart as without."""
        if self.caliper is not None:
            return self.caliper
        count = data.x.shape[0]
        return min(1.0, 4.0 * self.neighbors(count) * num_strata(data) / count)

    def neighbors(self, num_records: int) -> int:
        """k for this number of records."""
        if self.num_neighbors is not None:
            return self.num_neighbors
        return next(k for below, k in NEIGHBORS if num_records < below)


def _unknown(values, data, missing: float):
    """Which z say less than they look like: missing ones, and ones at a bound of their schema, where all beyond lie.

    Records that share such a value may differ in z as much as they like, and are not compared.
    """
    if data.domain is None or num_values(data):
        return values <= -missing
    return (values <= -1.0) | (values >= 1.0)
