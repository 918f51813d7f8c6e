"""How each of many columns is put into two or four classes, about equally full, chosen privately once for all pairs.

Symbols: docs/theory/pair_contrasts.md.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column
from jaxdp.mechanisms import MaxNorm, Split, divide
from jaxdp.statistics import sums
from jaxdp.statistics.tables import contingency, quantile_bins

HALVES, QUARTERS = 2, 4
MAX_MERGED = 12  # levels that are split into any two groups; more are cut in their order
MAX_CLASSES = 8  # levels of an unordered column that stay apart where columns have four classes
SCORE_MOVE = 1.0  # of the number of records on one side, when one record is replaced
VALUES, LEVELS, GROUPS, ALL = "values", "levels", "groups", "all"


@dataclasses.dataclass(frozen=True)
class Classing:
    """How one column becomes classes, publicly. way: cuts of "values" or of "levels", two "groups" of levels, or "all".

    levels: of the column, 0 for a continuous one. classes: how many. ordered: whether they are (two always are).
    """

    way: str
    levels: int
    classes: int
    ordered: bool

    @property
    def cuts(self) -> int:
        """How many selections it takes."""
        return 0 if self.way == ALL else self.classes - 1


def classing(column: Column, most: int) -> Classing:
    """The classes of a column, about `most` of them."""
    if column.kind not in (ORDINAL, CATEGORICAL, BINARY):
        return Classing(VALUES, 0, most, True)
    levels, ordered = column.levels, column.kind != CATEGORICAL
    if levels <= most:
        return Classing(ALL, levels, levels, ordered or levels == HALVES)
    if ordered or levels > max(MAX_MERGED, MAX_CLASSES):
        return Classing(LEVELS, levels, most, ordered or most == HALVES)
    if most > HALVES and levels <= MAX_CLASSES:
        return Classing(ALL, levels, levels, False)
    return Classing(GROUPS, levels, HALVES, True)


@functools.lru_cache(maxsize=64)
def groups(levels: int) -> np.ndarray:
    """Every way to leave level 0 and others in the first class: 1 for the second, (2^(levels - 1) - 1, levels)."""
    rest = [row for row in itertools.product((0, 1), repeat=levels - 1) if any(row)]
    return np.array([(0, *row) for row in rest], np.int32)


@frozen_pytree
class ClassChoice(PrivateQuery):
    """Privately chosen classes of every column that has more values than classes.

    Statistic: for each cut, minus the distance of the number of records on its one side from the wanted number, for
    every candidate: places of a public grid, ends of levels, or groups of levels.
    Sensitivity: 1 in Linf for each cut, replace-one.
    Privacy: the budget is divided evenly over the cuts; each is an exact selection of one candidate.
    """

    classings: tuple[Classing, ...] = jax.tree.static(default=())
    reference: Any = None

    method: ClassVar[str] = "ClassChoice"

    def mechanism_in_force(self):
        names = [f"x{j}_{cut}" for j, one in enumerate(self.classings) for cut in range(one.cuts)]
        mechanism = MaxNorm(self.epsilon) if self.mechanism is None else self.mechanism
        shares = divide(mechanism, dict.fromkeys(names, 1.0)).parts
        return Split(parts={name: part.selector() for name, part in shares.items()})

    def statistic(self, key, data):
        """Scores of the candidates of each cut, by its name."""
        return self._scores([_counted(one, place) for one, place in self._placed(data)], data.x.shape[0])

    def partial(self, chunk, num_records=None):
        """How many records lie at each place of the grid, or have each level, for the columns that are cut."""
        count = len(chunk.x) if num_records is None else num_records
        sizes = [_places(one) for one in self.classings if one.cuts]
        add = lambda *found: tuple(map(sums.counts, found, sizes))  # noqa: E731
        return sums.added(self, "placed", chunk, count, add)

    def placed(self, data, num_records):
        """The place of each record (n,) in every column that is cut."""
        return tuple(place for one, place in self._placed(data) if one.cuts)

    def finish(self, totals):
        counts = iter(totals)
        return self._scores(
            [next(counts) if one.cuts else None for one in self.classings], int(np.sum(totals[0])) if totals else 0
        )

    def _placed(self, data):
        return [(one, place_of(one, data.x[:, j], self.reference)) for j, one in enumerate(self.classings)]

    def _scores(self, counted, num_records: int):
        return {
            f"x{j}_{cut}": row
            for j, (one, at) in enumerate(zip(self.classings, counted, strict=True))
            if one.cuts
            for cut, row in enumerate(_cut_scores(one, at, num_records))
        }

    def sensitivity(self, num_records):
        one = Sensitivity(SCORE_MOVE, Norm.LINF, Relation.REPLACE_ONE, lower=-1.0 * num_records, upper=0.0)
        return dict.fromkeys(self.mechanism_in_force().parts, one)


def place_of(one: Classing, values, reference):
    """Steps of the grid up to each value, or its level: int32 (n,)."""
    if one.way == VALUES:
        return quantile_bins.steps(jnp.asarray(values, float), reference)
    return contingency.as_codes(values, one.levels)


def _places(one: Classing) -> int:
    return quantile_bins.GRID + 1 if one.way == VALUES else one.levels


def _counted(one: Classing, place):
    return jax.ops.segment_sum(jnp.ones_like(place), place, _places(one)) if one.cuts else None


def _cut_scores(one: Classing, at, num_records: int):
    """Scores (cuts, candidates) of counts at each place."""
    wanted = np.array([round(j * num_records / one.classes) for j in range(1, one.classes)], np.int64)[:, None]
    if one.way == GROUPS:
        return -jnp.abs((jnp.asarray(groups(one.levels)) @ at)[None, :] - wanted).astype(float)
    first = 1 if one.way == VALUES else 0  # at step 0 of the grid lies the lower end itself
    return -jnp.abs(jnp.cumsum(at)[None, first:-1] - wanted).astype(float)


def chosen(classings: tuple[Classing, ...], released) -> tuple:
    """What each column's released selections mean: sorted cuts, or the class of each level; None for "all"."""
    found: list = []
    for j, one in enumerate(classings):
        picked = [released[f"x{j}_{cut}"] for cut in range(one.cuts)]
        if not picked:
            found.append(None)
        elif one.way == GROUPS:
            found.append(jnp.asarray(groups(one.levels))[picked[0]])
        else:
            found.append(jnp.sort(jnp.stack(picked).astype(jnp.int32)) + (1 if one.way == VALUES else 0))
    return tuple(found)


def classes_of(one: Classing, values, choice, reference):
    """The class of each record, int32 (n,)."""
    place = place_of(one, values, reference)
    if choice is None:
        return place
    if one.way == GROUPS:
        return choice[place]
    return quantile_bins.bins(place, choice)
