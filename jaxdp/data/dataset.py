"""Data: the arrays a test reads, with what is publicly known about their columns."""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxdp._base.display import described

CONTINUOUS, ORDINAL, CATEGORICAL, BINARY = "continuous", "ordinal", "categorical", "binary"


@dataclasses.dataclass(frozen=True)
class Column:
    """Public description of one column of `Data`, after scaling or coding.

    continuous: values lie in [-1, 1]; levels > 0 says that they take that many equally spaced values
    (a discrete column that was scaled). The other kinds: values are codes 0, ..., levels - 1.
    values: of a continuous column that is declared to take whole steps only, how many values that leaves; 0 if it may
    take any.
    labels: whether the values of a continuous column may label groups, so that only records of equal value are alike.
    """

    kind: str = CONTINUOUS
    levels: int = 0
    name: str = ""
    values: int = 0
    labels: bool = False

    @property
    def spread(self) -> "Column":
        """The description of this column's codes as `equally_spaced` numbers; a continuous column as it is."""
        return self if self.kind == CONTINUOUS else Column(CONTINUOUS, self.levels, self.name)


def equally_spaced(codes, levels):
    """Codes 0, ..., levels - 1 as equally spaced numbers on [-1, 1]; one level stays at -1. levels: int, or (d,)."""
    steps = max(levels - 1, 1) if isinstance(levels, int) else np.maximum(np.asarray(levels) - 1, 1)
    return 2.0 * codes / steps - 1.0


@dataclasses.dataclass(frozen=True)
class Domain:
    """Public description of the columns of x, y and z."""

    x: tuple[Column, ...] = ()
    y: tuple[Column, ...] = ()
    z: tuple[Column, ...] = ()


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
