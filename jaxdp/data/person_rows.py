"""Every row of a person: draws of one row for each person, over which a statistic is averaged.

Theorem (docs/theory/persons.md): the mean over draws has the sensitivity of the statistic of one record per person,
whatever the numbers of rows are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.display import described
from jaxdp.data import admit
from jaxdp.data.chunks import Chunks
from jaxdp.data.dataset import Data, Domain

DRAWS = 16  # a power of two, by which a mean is divided without an error


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class PersonRows:
    """Records of persons with several rows: what `jaxdp.run` takes in place of `jaxdp.Data` where a test averages.

    draws: `Data` of arrays (m, draws) or (m, draws, columns): for each of m persons the row that stands for it in each
    draw. Which rows are drawn must not depend on what they hold, and each row of a person must be as likely as any.
    Privacy: one person is replaced, with all rows. Errors: as `jaxdp.Data`. Printed, it shows shapes alone.
    """

    draws: Data

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={described(getattr(self.draws, name))}" for name in ("x", "y", "z"))
        return f"PersonRows({told})"

    @property
    def domain(self) -> Domain | None:
        """Public column descriptions, if known."""
        return self.draws.domain

    @property
    def shapes(self) -> Data:
        """One draw, with `jax.ShapeDtypeStruct` leaves: what a test of one record per person would get."""
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((leaf.shape[0], *leaf.shape[2:]), jnp.result_type(leaf)), self.draws
        )

    @classmethod
    def of_draws(cls, draws: Sequence[Data]) -> PersonRows:
        """From the records that stand for the persons in each draw, the persons in one order."""
        return cls(jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves], 1), *draws))

    def without_names(self) -> PersonRows:
        """As of `Data`."""
        return PersonRows(self.draws.without_names())

    def admitted(self, *, many_columns: bool = False) -> PersonRows:
        """The rows with every field an array. Errors: TypeError by type or dtype, ValueError by shape."""
        names = [name for name in ("x", "y", "z") if name != "z" or self.draws.z is not None]
        arrays = {name: admit.real_array(name, getattr(self.draws, name)) for name in names}
        shapes = {name: array.shape for name, array in arrays.items()}
        if any(len(shape) < 2 for shape in shapes.values()) or len({shape[1] for shape in shapes.values()}) != 1:
            raise ValueError(
                "x, y and z of rows by person must have shape (persons, draws) or (persons, draws, columns), with as "
                f"many draws in each, got {', '.join(f'{name} {shape}' for name, shape in shapes.items())}."
            )
        rows = PersonRows(dataclasses.replace(self.draws, **arrays))
        admit.admitted(rows.shapes, many_columns=many_columns)
        return rows

    def mean(self, function: Callable[[Any, Data], Any], key: Any) -> Any:
        """The mean of function(key, draw) over the draws, a pytree of float arrays: private."""
        moved = jax.tree.map(lambda leaf: jnp.moveaxis(jnp.asarray(leaf), 1, 0), self.draws)
        again = _copies(key)
        values = jax.lax.map(lambda draw: function(again(), draw), moved)
        return jax.tree.map(lambda value: jnp.mean(value.astype(jnp.result_type(value, float)), axis=0), values)


def draws_of(data: Any) -> int:
    """Draws of one row per person over which a statistic of these data is averaged; 0 where a record is one row."""
    if isinstance(data, PersonRows):
        return data.draws.x.shape[1]
    return data.draws if isinstance(data, Chunks) and data.draws > 1 else 0


def rounding(draws: int, largest: Any) -> Any:
    """Bound on the rounding of a mean over draws, in float64, of numbers of at most this size."""
    return draws * np.finfo(np.float64).eps * largest


def _copies(key: Any) -> Callable[[], Any]:
    """Makes a key with the same numbers for each draw; words go through the loop, which keys would be reused in."""
    if key is None:
        return lambda: None
    words, law = jax.random.key_data(key), jax.random.key_impl(key)
    return lambda: jax.random.wrap_key_data(words, impl=law)
