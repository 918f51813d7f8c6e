"""How all pairs of a table are read: the table in chunks, and its columns as the features of one joint release."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxdp.data import streamed
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Data
from jaxdp.data.schema import Schema


@dataclasses.dataclass(frozen=True, repr=False)
class TableInChunks:
    """A table that is read once more for every release. rows: how many it has; a guess before it is read.

    chosen: those of them that are records, where not all are. kept: where the sums of its files are kept. records: how
    many it counts as, whatever it holds.
    """

    schema: Schema
    names: tuple[str, ...]
    table: Any
    memory: int
    strict: bool
    rows: int
    chosen: Any = None
    kept: Any = None
    records: int | None = None

    def chunks(self, columns: Any) -> Chunks:
        """Some of its columns; nothing is read yet."""
        how: dict[str, Any] = {"memory": self.memory, "strict": self.strict, "rows": self.rows, "kept": self.kept}
        return streamed.stream(self.table, columns, **how, chosen=self.chosen, records=self.records)


@dataclasses.dataclass(frozen=True)
class FeatureColumns:
    """The columns of a release of all pairs, as `jaxdp.data.streamed.Columns`. test: of one pair."""

    schema: Schema
    columns: tuple[str, ...]
    given: tuple[str, ...]
    test: Any

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.columns, *self.given)

    def of_values(self, values: np.ndarray) -> Data:
        """Coded rows (n, columns and given) as features and z."""
        from jaxdp.independence.features import Features

        features, count = self.schema.columns_of(self.columns), len(self.columns)
        given = self.schema.columns_of((), self.given)
        z = values[:, count:] if self.given else None
        return Features.admitted(self.test, values[:, :count], z, tuple(given) or None, tuple(features)).together()

    def coded(self, piece: Mapping[str, Any]) -> Data:
        """The rows of a piece."""
        return self.of_values(self.schema.coded_table(piece, self.columns, self.given))

    def shapes(self, num_records: int) -> Data:
        """The whole data, with shapes for arrays."""
        one = self.coded({name: np.zeros(1) for name in self.names})
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_records, *leaf.shape[1:]), np.float64), one)
