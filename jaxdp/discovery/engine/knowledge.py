"""What is known about a graph before data are read: required edges, forbidden ones, and an order in time.

Knowledge is public, so it costs nothing, and a pair that it settles is never asked about.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from jaxdp._base.printed import printed, printed_name

Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Knowledge:
    """Background knowledge about columns, by name.

    required, forbidden: pairs of columns that are joined by an edge in any case, or by none; the order within a pair
    means nothing. tiers: groups of columns, earliest first: an edge between two tiers points from the earlier to the
    later one, and no conditioning set holds a column of a later tier than both columns asked about. Columns without a
    tier are free.
    Errors: ValueError for a pair of one column, a pair both required and forbidden, a column in two tiers.
    """

    required: tuple[Pair, ...] = ()
    forbidden: tuple[Pair, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self):
        for name in ("required", "forbidden"):
            object.__setattr__(self, name, tuple(_pair(pair, name) for pair in getattr(self, name)))
        object.__setattr__(self, "tiers", tuple(tuple(map(str, tier)) for tier in self.tiers))
        both = {frozenset(pair) for pair in self.required} & {frozenset(pair) for pair in self.forbidden}
        if both:
            a, b = sorted(next(iter(both)))
            raise ValueError(f"the edge {a!r} - {b!r} is both required and forbidden; leave one out.")
        placed = [column for tier in self.tiers for column in tier]
        for place, column in enumerate(placed):
            if column in placed[:place]:
                first = placed.index(column) + 1
                raise ValueError(f"the tiers name a column twice, as number {first} and number {place + 1}.")

    def over(self, names: Sequence[str]) -> Known:
        """The knowledge about columns of these names. Errors: ValueError for a name that is not among them."""
        position = {name: i for i, name in enumerate(names)}
        mentioned = [*self.required, *self.forbidden, *self.tiers]
        for group in mentioned:
            for place, column in enumerate(group):
                if column not in position:
                    told = repr(column) if len(group) == 2 else printed_name(group, place, names)
                    raise ValueError(f"the knowledge names {told}, which is none of the columns: {_some(names)}.")
        tier = np.full(len(names), -1)
        for number, group in enumerate(self.tiers):
            tier[[position[column] for column in group]] = number
        return Known(_matrix(self.required, position), _matrix(self.forbidden, position), tier)


@dataclasses.dataclass(frozen=True)
class Known:
    """`Knowledge` by column number. required, forbidden: bool (d, d), symmetric. tier: (d,), -1 where there is none."""

    required: np.ndarray
    forbidden: np.ndarray
    tier: np.ndarray

    @classmethod
    def nothing(cls, num_columns: int) -> Known:
        """No knowledge about so many columns."""
        empty = np.zeros((num_columns, num_columns), bool)
        return cls(empty, empty, np.full(num_columns, -1))

    def may_condition(self, i: int, j: int, given: Iterable[int]) -> bool:
        """Whether a set holds no column of a later tier than both i and j."""
        if self.tier[i] < 0 or self.tier[j] < 0:
            return True
        last = max(self.tier[i], self.tier[j])
        return all(self.tier[k] <= last for k in given)

    def against_time(self) -> np.ndarray:
        """Bool (d, d): arcs i -> j from a later to an earlier tier, which no graph has."""
        placed = (self.tier[:, None] >= 0) & (self.tier[None, :] >= 0)
        return placed & (self.tier[:, None] > self.tier[None, :])


def known(knowledge: Knowledge | None, names: Sequence[str]) -> Known:
    """The knowledge by column number. Errors: TypeError for what is no `Knowledge`; as `Knowledge.over`."""
    if knowledge is None:
        return Known.nothing(len(names))
    if not isinstance(knowledge, Knowledge):
        raise TypeError(f"knowledge must be jaxdp.discovery.Knowledge(...), got {type(knowledge).__name__}.")
    return knowledge.over(names)


def _pair(pair, name: str) -> Pair:
    columns = tuple(map(str, pair)) if isinstance(pair, tuple | list) else ()
    if len(columns) == 2 and columns[0] == columns[1]:
        twice = printed(columns[0])
        raise ValueError(f"{name}: an edge joins two different columns, and this pair names {twice} twice.")
    if len(columns) != 2:
        raise ValueError(
            f'{name} must hold pairs of two different column names, such as ("a", "b"), on the command line a,b.'
        )
    return columns[0], columns[1]


def _matrix(pairs: Sequence[Pair], position) -> np.ndarray:
    found = np.zeros((len(position), len(position)), bool)
    for a, b in pairs:
        found[position[a], position[b]] = found[position[b], position[a]] = True
    return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
