"""Data: the arrays a test reads, with what is publicly known about their columns."""

import dataclasses
from typing import Any

import jax

from jaxdp._base.display import described
from jaxdp.data.columns import BINARY, CATEGORICAL, CONTINUOUS, ORDINAL, Column, Domain, equally_spaced

__all__ = ["BINARY", "CATEGORICAL", "CONTINUOUS", "ORDINAL", "Column", "Data", "Domain", "equally_spaced"]


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

    def without_names(self) -> "Data":
        """The same records with columns that have no names: names are no part of a compiled program's identity."""
        if self.domain is None or not any(column.name for part in _parts(self.domain) for column in part):
            return self
        bare = (tuple(dataclasses.replace(column, name="") for column in part) for part in _parts(self.domain))
        return dataclasses.replace(self, domain=Domain(*bare))


def _parts(domain: Domain):
    return domain.x, domain.y, domain.z
