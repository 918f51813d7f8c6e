"""Records that do not lie in memory: public shapes, and chunks that are read once more for every pass."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from jaxdp._base.display import described
from jaxdp.data.dataset import Data, Domain


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class RowsOfDraws:
    """A chunk of rows of persons. drawn: in which draws of one row per person each row is drawn, bool (m, draws).

    persons: the place of the person of each row, int (m,), from 0 to the number of persons.
    """

    rows: Data
    drawn: np.ndarray
    persons: np.ndarray

    def __len__(self) -> int:
        return len(self.rows.x)

    def without_names(self) -> RowsOfDraws:
        """As of `Data`."""
        return dataclasses.replace(self, rows=self.rows.without_names())

    def each(self) -> Iterator[Data]:
        """The rows of each draw."""
        for drawn in self.drawn.T:
            yield jax.tree.map(lambda leaf, drawn=drawn: leaf[drawn], self.rows)


@dataclasses.dataclass(frozen=True, repr=False)
class Chunks:
    """Records of one query in chunks: what `jaxdp.run` takes in place of `jaxdp.Data` where a test has sums.

    shapes: the whole data with `jax.ShapeDtypeStruct` leaves: the number of records and the columns, which are public.
    read: () -> iterator of chunks, `Data` with NumPy arrays (m, ...), the same records in every pass. Their order and
    sizes do not matter.
    add_up: (function, merge, read) -> what `merge` makes of function(chunk) of all chunks; default `in_turn`. Both
    functions can be pickled. It gets no key, no noise and no ledger.
    most: rows of chunks that may be summed as one, where the sums are larger than the chunks.
    draws: of one row per person, over which a statistic is averaged; then chunks are `RowsOfDraws`, records persons.
    Errors: TypeError or ValueError by type and shape. Printed, it shows shapes alone.
    """

    shapes: Data
    read: Callable[[], Iterator[Data | RowsOfDraws]]
    add_up: Callable[..., Any] | None = None
    most: int = 1 << 20
    draws: int = 1

    def __post_init__(self):
        if not isinstance(self.shapes, Data) or not all(
            isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(self.shapes)
        ):
            raise TypeError("shapes must be a jaxdp.Data of jax.ShapeDtypeStruct leaves, which hold no value.")

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={described(getattr(self.shapes, name))}" for name in ("x", "y", "z"))
        return f"Chunks({told})"

    @property
    def domain(self) -> Domain | None:
        """Public column descriptions, if known."""
        return self.shapes.domain

    @property
    def num_records(self) -> int:
        """Rows of all chunks together: public."""
        return self.shapes.x.shape[0]

    def total(self, function: Callable[[Any], Any], merge: Callable[[Any, Any], Any]) -> Any:
        """What `merge` makes of function(chunk) of all chunks, which have no names: one pass. Private.

        Errors: ValueError if the chunks, or a draw of them, hold another number of records than stated.
        """
        add_up = functools.partial(in_turn, most=self.most) if self.add_up is None else self.add_up
        rows, found = add_up(functools.partial(_counted, function), functools.partial(_merged, merge), self.read)
        if np.any(rows != self.num_records):
            raise ValueError(f"the chunks hold another number of records than the {self.num_records} that were stated.")
        return found

    def blank(self) -> Chunks:
        """One record of zeros in place of all: what a release is rehearsed on before it is paid."""
        row: Any = jax.tree.map(lambda leaf: np.zeros((1, *leaf.shape[1:]), leaf.dtype), self.shapes)
        row = row if self.draws == 1 else RowsOfDraws(row, np.ones((1, self.draws), bool), np.zeros(1, int))
        return dataclasses.replace(
            self, add_up=lambda function, merge, read: (self.num_records, function(row)[1]), read=lambda: iter([row])
        )


def in_turn(
    function: Callable[[Data], Any],
    merge: Callable[[Any, Any], Any],
    read: Callable[[], Iterator[Data]],
    most: int = 1 << 20,
) -> Any:
    """One chunk after the other, in this process; small ones together where sums are larger than they are."""
    found = None
    waiting: list[Data] = []
    for chunk in read():
        waiting.append(chunk)
        if found is None or sum(map(num_rows, waiting)) >= most or _bytes(waiting) >= _bytes(found):
            part = function(joined(waiting))
            found, waiting = part if found is None else merge(found, part), []
    if waiting:
        found = merge(found, function(joined(waiting)))
    return (0, None) if found is None else found


def joined(parts: list) -> Any:
    """Chunks as one."""
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *some: np.concatenate(some), *parts)


def _bytes(tree: Any) -> int:
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(tree))


def num_rows(chunk: Data | RowsOfDraws) -> int:
    """How many rows a chunk holds."""
    return len(chunk.x) if isinstance(chunk, Data) else len(chunk)


def _counted(function: Callable[[Any], Any], chunk: Data | RowsOfDraws) -> tuple[Any, Any]:
    """The number of records, of each draw where there are draws, and what the function makes of them."""
    records = len(chunk.x) if isinstance(chunk, Data) else chunk.drawn.sum(axis=0)
    return records, function(chunk.without_names())


def _merged(merge: Callable[[Any, Any], Any], one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    return one[0] + other[0], merge(one[1], other[1])


def shapes_of(data: Data) -> Data:
    """The data with every array replaced by its shape; floats count as float64."""

    def shape(leaf):
        kind = np.float64 if np.issubdtype(leaf.dtype, np.floating) else leaf.dtype
        return jax.ShapeDtypeStruct(leaf.shape, kind)

    return jax.tree.map(shape, data)
