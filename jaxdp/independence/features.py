"""Many features and one Z: what is asked about every pair of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxdp import catalogue
from jaxdp.data import admit
from jaxdp.data.dataset import CONTINUOUS, Column, Data, Domain


@dataclasses.dataclass(frozen=True)
class Features:
    """Values (n, d) as a test takes them, z, and the public descriptions of both (None where nothing is known)."""

    values: Any
    z: Any
    columns: tuple[Column, ...] | None
    columns_of_z: tuple[Column, ...] | None

    @classmethod
    def admitted(cls, test, features, z, columns_of_z, columns) -> Features:
        """Features for this test. Errors: TypeError or ValueError, by types and shapes alone."""
        catalogue.require_any_pair(test)
        features = admit.real_array("features", features)
        if len(features.shape) != 2 or features.shape[1] < 2:
            raise ValueError(f"features must have shape (n, d) with d >= 2, got {features.shape}.")
        if columns is not None and len(columns) != features.shape[1]:
            raise ValueError(f"feature_columns must describe the {features.shape[1]} features, got {len(columns)}.")
        if columns and catalogue.wants_scores(test):
            features, columns = _scores(features, tuple(columns))
        described = (tuple(part) if part else None for part in (columns, columns_of_z))
        return cls(features, z, *described)

    @property
    def count(self) -> int:
        """d."""
        return self.values.shape[1]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """i < j, row by row."""
        return [(int(i), int(j)) for i, j in zip(*np.triu_indices(self.count, k=1), strict=True)]

    def domain(self, i: int, j: int) -> Domain | None:
        """What is public about a pair given z, without names."""
        x, y = ((self.columns[k],) if self.columns else () for k in (i, j))
        domain = Domain(x, y, self.columns_of_z or ())
        return Data(None, None, domain=domain).without_names().domain if self.columns or self.columns_of_z else None

    def query(self, i, j, domain: Domain | None) -> Data:
        """The data of a pair, which may be traced."""
        return Data(self.values[:, i], self.values[:, j], self.z, domain)

    def first(self, places: list[int], domain: Domain | None) -> Data:
        """The query of the first of these places among the pairs."""
        i, j = self.pairs[places[0]]
        return self.query(i, j, domain)

    def together(self) -> Data:
        """The data of all pairs: x and y are the features."""
        both = self.columns or ()
        domain = Domain(both, both, self.columns_of_z or ()) if self.columns or self.columns_of_z else None
        return Data(self.values, self.values, self.z, domain)


def _scores(values, columns: tuple[Column, ...]):
    """Coded columns as equally spaced numbers on [-1, 1]; a public map of each column."""
    coded = np.array([column.kind != CONTINUOUS for column in columns])
    steps = np.array([max(column.levels - 1, 1) for column in columns])
    return values * np.where(coded, 2.0 / steps, 1.0) - coded, tuple(column.spread for column in columns)
