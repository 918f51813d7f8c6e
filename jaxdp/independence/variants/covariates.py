"""Functions of the covariates that the null model and the lines of the variants are made of, and their moments.

`Straight`: 1 and the covariates. `Hats`: functions of single covariates that are straight between equally spaced knots.
Both hold, released as one vector, the sums of products of these functions with each other and with the phenotype.
Theory: docs/theory/score_test.md#covariates.
"""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Norm
from jaxdp.data.dataset import Column
from jaxdp.independence.continuous import moment_columns
from jaxdp.statistics import moments, partition

# That are tried, the most first, each with the share of the variance of S and its noise that it may add to it.
KNOTS = ((65, 0.1), (33, 0.1), (17, 0.1), (9, 0.1), (5, 0.2), (3, 0.5))
MAX_VALUES = 10**8  # of functions times records


@dataclasses.dataclass(frozen=True)
class Straight:
    """1 and d covariates on [-1, 1], levels as `moment_columns` has them."""

    columns: tuple[Column, ...]

    @property
    def width(self) -> int:
        """Number of functions."""
        return moment_columns.widths(self.columns) + 1

    @property
    def constant(self) -> np.ndarray:
        """Coefficients of the function 1."""
        return np.eye(self.width)[0]

    def design(self, z, num_records: int, bound: ArrayLike):
        """The functions' values (n, w), from z (n, d) or None; continuous columns are divided by `bound`."""
        ones = jnp.ones((num_records, 1))
        if z is None:
            return ones
        values = _on_unit(partition.as_matrix(z).astype(float), self.columns, bound)
        return jnp.concatenate([ones, values], axis=1)

    def vector(self, design, phenotype, euclidean: bool):
        """What is released: the moment vector of (z, y)."""
        columns = jnp.concatenate([design[:, 1:], phenotype[:, None]], axis=1)
        return moments.vector(moments.on_grid(columns), euclidean)

    def weights(self, euclidean: bool) -> np.ndarray:
        """What each number of the vector is multiplied by."""
        return moments.weights(self.width, euclidean)

    def bound(self, euclidean: bool) -> float:
        """How far replacing one record moves the vector, at most (docs/theory/partial_correlation.md#sensitivity)."""
        return moments.frobenius_bound(self.width) if euclidean else moments.l1_bound(self.width)

    def matrix(self, entries, ones: float):
        """Entries of the vector, or variances of their noise, as (w + 1, w + 1); `ones`: what stands for sum 1."""
        p = self.width
        rows, columns = np.triu_indices(p)
        square = jnp.zeros((p, p), entries.dtype).at[rows, columns].set(entries[: len(rows)])
        square, sums = square + jnp.triu(square, 1).T, entries[len(rows) :]
        return jnp.block([[jnp.full((1, 1), ones, entries.dtype), sums[None]], [sums[:, None], square]])

    @property
    def couplings(self) -> float:
        """Noisy entries in a row of the matrix that meet the constant function: here none."""
        return 0.0

    def line_bound(self, norm: Norm, count: int) -> float:
        """How far replacing one record moves the sums of `count` variants times the functions, at most."""
        return _line_bound(norm, self.width, count)

    @property
    def blocks(self) -> list[np.ndarray]:
        """Places of the functions of each covariate, the constant apart."""
        widths = [moment_columns.width(column) for column in self.columns]
        return np.split(np.arange(1, self.width), np.cumsum(widths)[:-1]) if widths else []

    @property
    def unsaturated(self) -> tuple[int, ...]:
        """Places of the covariates that have more values than functions."""
        return _unsaturated(self.columns, [moment_columns.width(column) + 1 for column in self.columns])

    @property
    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each level that has a function of its own: the place of its covariate (L,), and the coefficients (L, w) of
        the function that is 1 for its records and 0 for others."""
        return _levels(self, 0.5 * (np.eye(self.width) + self.constant))

    def typical(self) -> np.ndarray:
        """Mean products of the functions where the covariates are independent and uniform."""
        return np.diag([1.0, *([1.0 / 3.0] * (self.width - 1))])


@dataclasses.dataclass(frozen=True)
class Hats:
    """Of each covariate `knots` hat functions that add up to 1 (of few levels: fewer; unordered levels: indicators).

    Of all covariates but the first the first function is left out, since it follows from the others.
    """

    columns: tuple[Column, ...]
    knots: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Functions of each covariate."""
        return tuple(self._size(column) for column in self.columns)

    def _size(self, column: Column) -> int:
        if moment_columns.width(column) > 1:
            return column.levels
        return min(self.knots, column.levels) if moment_columns.bounded(column) else self.knots

    @property
    def width(self) -> int:
        """Number of functions."""
        return sum(self.sizes) - len(self.sizes) + 1

    @property
    def constant(self) -> np.ndarray:
        """Coefficients of the function 1: those of the first covariate add up to it."""
        return (np.arange(self.width) < self.sizes[0]).astype(float)

    def design(self, z, num_records: int, bound: ArrayLike):
        """As `Straight.design`; multiples of 2^-13 that are exact."""
        z = partition.as_matrix(z).astype(float)
        made = [
            self._functions(z[:, k : k + 1], column, size, bound)[:, min(k, 1) :]
            for k, (column, size) in enumerate(zip(self.columns, self.sizes, strict=True))
        ]
        return jnp.concatenate(made, axis=1)

    @staticmethod
    def _functions(values, column: Column, size: int, bound: ArrayLike):
        places = jnp.arange(size)[None]
        if moment_columns.width(column) > 1:
            codes = jnp.round(jnp.clip(jnp.nan_to_num(values, nan=0.0), 0, size - 1))
            return (codes == places).astype(values.dtype)
        place = moments.on_grid(0.5 * (_on_unit(values, (column,), bound) + 1.0)) * (size - 1)
        return jnp.maximum(0.0, 1.0 - jnp.abs(place - places))

    @property
    def blocks(self) -> list[np.ndarray]:
        """As `Straight.blocks`; the functions of the first covariate add up to the constant."""
        sizes = [size - min(k, 1) for k, size in enumerate(self.sizes)]
        return np.split(np.arange(self.width), np.cumsum(sizes)[:-1])

    @property
    def unsaturated(self) -> tuple[int, ...]:
        """As `Straight.unsaturated`."""
        return _unsaturated(self.columns, self.sizes)

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the released products; two hats of one covariate that never meet have none."""
        block = np.concatenate([np.full(size - min(k, 1), k) for k, size in enumerate(self.sizes)] + [[-1]])
        rows, columns = np.triu_indices(self.width + 1)
        hats = np.array([moment_columns.width(column) == 1 for column in self.columns] + [False])
        apart = columns - rows > np.where(hats[block[rows]], 1, 0)
        kept = (block[rows] != block[columns]) | ~apart
        return rows[kept], columns[kept]

    def vector(self, design, phenotype, euclidean: bool):
        """What is released: sums of products of the functions and the phenotype, pairs that can be other than 0."""
        values = jnp.concatenate([design, moments.on_grid(phenotype)[:, None]], axis=1)
        found = jnp.matmul(values.T, values, precision="highest")[self._entries()]
        return found * jnp.asarray(self.weights(euclidean), found.dtype)

    def weights(self, euclidean: bool) -> np.ndarray:
        """As `Straight.weights`."""
        rows, columns = self._entries()
        return np.where(rows == columns, 1.0, math.sqrt(2.0) if euclidean else 1.0)

    def bound(self, euclidean: bool) -> float:
        """As `Straight.bound` (docs/theory/score_test.md#covariates)."""
        d = len(self.columns)
        if euclidean:
            return math.sqrt(2.0) * (d + 1.0)
        return d * (d + 1.0) + (2.25 if d == 1 else 2.0 * d)

    def matrix(self, entries, ones: float):
        """As `Straight.matrix`; 1 is no function of its own here."""
        found = jnp.zeros((self.width + 1,) * 2, entries.dtype).at[self._entries()].set(entries)
        return found + jnp.triu(found, 1).T

    def clearness(self) -> float:
        """Least eigenvalue of `typical` over how far noise of sd 1 in the entries moves an eigenvalue, about."""
        rows, columns = self._entries()
        beside = np.sum((rows != columns) & (columns < self.width))
        return float(np.linalg.eigvalsh(self.typical())[0]) / math.sqrt((2.0 * beside + self.width) / self.width)

    @property
    def couplings(self) -> float:
        """As `Straight.couplings`, on average: the first covariate's hats add up to the constant."""
        first = self.sizes[0]
        return (min(first, 3) * first + (self.width - first) * first) / self.width

    def line_bound(self, norm: Norm, count: int) -> float:
        """As `Straight.line_bound`: the functions of one covariate add up to 1."""
        return _line_bound(norm, len(self.columns), count)

    @property
    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """As `Straight.levels`."""
        return _levels(self, np.eye(self.width))

    def typical(self) -> np.ndarray:
        """As `Straight.typical`; levels equally likely."""
        blocks = [self._typical(column, size) for column, size in zip(self.columns, self.sizes, strict=True)]
        means = np.concatenate([block.sum(axis=0)[min(k, 1) :] for k, block in enumerate(blocks)])
        found, start = np.outer(means, means), 0
        for k, block in enumerate(blocks):
            part = block[min(k, 1) :, min(k, 1) :]
            found[start : start + len(part), start : start + len(part)] = part
            start += len(part)
        return found

    @staticmethod
    def _typical(column: Column, size: int) -> np.ndarray:
        if moment_columns.bounded(column):
            return np.eye(size) / size
        ends = np.isin(np.arange(size), (0, size - 1))
        side = np.diag(np.ones(size - 1), 1)
        return (np.diag(np.where(ends, 2.0, 4.0)) + side + side.T) / (6.0 * (size - 1))


def _unsaturated(columns, sizes) -> tuple[int, ...]:
    pairs = enumerate(zip(columns, sizes, strict=True))
    return tuple(k for k, (column, size) in pairs if not (moment_columns.bounded(column) and size == column.levels))


def _levels(basis: Straight | Hats, indicators: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """indicators: (w, w), in each row the coefficients of the level of one function; not of the functions of others."""
    places, found = [], [np.zeros((0, basis.width))]
    for place, (column, block) in enumerate(zip(basis.columns, basis.blocks, strict=True)):
        if place in basis.unsaturated:
            continue
        own = indicators[block]
        first = [basis.constant - own.sum(axis=0)] * (column.levels - len(block))
        found.extend([*first, *own])
        places.extend([place] * column.levels)
    return np.array(places, int), np.vstack(found)


def cut(z, columns: tuple[Column, ...], place: int, count: int, bound: ArrayLike):
    """The records' bins (n,) by the covariate of this place: `count` of equal width on [-1, 1]."""
    values = _on_unit(partition.as_matrix(z).astype(float)[:, place : place + 1], (columns[place],), bound)[:, 0]
    return jnp.clip((0.5 * (values + 1.0) * count).astype(jnp.int32), 0, count - 1)


def _line_bound(norm: Norm, weight: int, count: int) -> float:
    return 2.0 * (count * weight if norm is Norm.L1 else math.sqrt(count * weight))


def _on_unit(z, columns: tuple[Column, ...], bound: ArrayLike):
    """Covariates on [-1, 1], a missing one in the middle."""
    values = moment_columns.numbers(z, columns)
    units = jnp.asarray([1.0 if flag else bound for flag in moment_columns.flags(columns)])
    return jnp.clip(jnp.nan_to_num(values / units[None], nan=0.0), -1.0, 1.0)
