"""Data: the arrays a test reads, with what is publicly known about their columns."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

CONTINUOUS, ORDINAL, CATEGORICAL, BINARY = "continuous", "ordinal", "categorical", "binary"


@dataclasses.dataclass(frozen=True)
class Column:
    """Public description of one column of `Data`, after scaling or coding.

    continuous: values lie in [-1, 1]; levels > 0 says that they take that many equally spaced values
    (a discrete column that was scaled). The other kinds: values are codes 0, ..., levels - 1.
    """

    kind: str = CONTINUOUS
    levels: int = 0
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Domain:
    """Public description of the columns of x, y and z."""

    x: tuple[Column, ...] = ()
    y: tuple[Column, ...] = ()
    z: tuple[Column, ...] = ()


KINDS_OF_DTYPES = {
    "b": "bool",
    "c": "complex",
    "O": "Python objects",
    "U": "text",
    "S": "text",
    "T": "text",
    "M": "dates",
    "m": "time spans",
}


def kind_of(dtype: Any) -> str:
    """The public kind of a dtype: "float", "int" or what else it holds. The length of texts is not told."""
    if jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        return "keys"
    if dtype == np.longdouble and np.dtype(np.longdouble).itemsize > 8:
        return "long floats"
    if np.dtype(dtype).kind in KINDS_OF_DTYPES:  # first: NumPy counts time spans among the integers
        return KINDS_OF_DTYPES[np.dtype(dtype).kind]
    if jnp.issubdtype(dtype, jnp.floating):
        return "float"
    return "int" if jnp.issubdtype(dtype, jnp.integer) else "other things"


def described(value: Any) -> str:
    """An array as its dtype and shape; anything else as its type. Never a value."""
    if value is None:
        return "None"
    if not isinstance(value, np.ndarray | np.generic | jax.Array | jax.ShapeDtypeStruct):
        return f"<{type(value).__name__}>"
    kind = kind_of(value.dtype)
    return f"{value.dtype if kind in ('float', 'int') else kind}{list(value.shape)}"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Data:
    """Records to test: is x independent of y (given z)?

    x, y: arrays (n,) or (n, p), (n, q). z: None, (n,) or (n, d).
    Values are already scaled or coded by public knowledge alone (`Schema.read` does it), never by
    statistics of the data themselves. domain: public column descriptions, if known.
    Lists and tuples of numbers are taken as arrays; `data.admit` refuses anything else when a test runs.
    Printed, it shows dtypes, shapes and the domain, never a value.
    """

    x: Any
    y: Any
    z: Any = None
    domain: Domain | None = jax.tree.static(default=None)

    def __repr__(self) -> str:
        fields = {name: described(getattr(self, name)) for name in ("x", "y", "z")}
        told = {**fields, **({} if self.domain is None else {"domain": repr(self.domain)})}
        return f"Data({', '.join(f'{name}={text}' for name, text in told.items())})"

    def nameless(self) -> "Data":
        """The same records with columns that have no names: names are no part of a compiled program's identity."""
        if self.domain is None or not any(column.name for part in _parts(self.domain) for column in part):
            return self
        bare = (tuple(dataclasses.replace(column, name="") for column in part) for part in _parts(self.domain))
        return dataclasses.replace(self, domain=Domain(*bare))


def _parts(domain: Domain):
    return domain.x, domain.y, domain.z
