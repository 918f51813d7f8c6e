"""Records that do not lie in memory: public shapes, and chunks that are read once more for every pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from jaxdp._base.display import described
from jaxdp.data import admit
from jaxdp.data.dataset import Data, Domain


@dataclasses.dataclass(frozen=True, repr=False)
class Chunks:
    """Records of one question in chunks: what `jaxdp.run` takes in place of `jaxdp.Data` where a test has sums.

    shapes: the whole data with `jax.ShapeDtypeStruct` leaves: the number of records and the columns, which are public.
    read: () -> iterator of chunks, `Data` with NumPy arrays (m, ...), the same records in every pass. Their order and
    sizes do not matter.
    add_up: (function, merge, read) -> what `merge` makes of function(chunk) of all chunks; default: one after the other
    in this process. It gets no key, no noise and no ledger.
    Errors: TypeError or ValueError by type and shape. Printed, it shows shapes alone.
    """

    shapes: Data
    read: Callable[[], Iterator[Data]]
    add_up: Callable[..., Any] | None = None

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

    def total(self, function: Callable[[Data], Any], merge: Callable[[Any, Any], Any]) -> Any:
        """What `merge` makes of function(chunk) of all chunks: one pass. Private.

        Errors: ValueError if the chunks hold another number of records than stated.
        """
        if self.add_up is not None:
            return self.add_up(function, merge, self.read)
        found, rows = None, 0
        for chunk in self.read():
            chunk = chunk.nameless()
            rows += len(chunk.x)
            part = function(chunk)
            found = part if found is None else merge(found, part)
        if rows != self.num_records:
            raise ValueError(f"the chunks hold another number of records than the {self.num_records} that were stated.")
        return found

    def blank(self) -> Chunks:
        """One record of zeros in place of all: what a release is rehearsed on before it is paid."""
        row = jax.tree.map(lambda leaf: np.zeros((1, *leaf.shape[1:]), leaf.dtype), self.shapes)
        return dataclasses.replace(self, read=lambda: iter([row]), add_up=lambda function, merge, read: function(row))


def of_arrays(data: Data, rows: int) -> Chunks:
    """Records in memory, in chunks of so many rows."""
    data = admit.admitted(data)
    arrays = jax.tree.map(np.asarray, data)
    count = len(arrays.x)

    def read():
        for start in range(0, count, rows):
            yield jax.tree.map(lambda leaf, at=start: leaf[at : at + rows], arrays)

    return Chunks(shapes_of(arrays), read)


def shapes_of(data: Data) -> Data:
    """The data with every array replaced by its shape; floats count as float64."""

    def shape(leaf):
        kind = np.float64 if np.issubdtype(leaf.dtype, np.floating) else leaf.dtype
        return jax.ShapeDtypeStruct(leaf.shape, kind)

    return jax.tree.map(shape, data)
