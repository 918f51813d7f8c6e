"""How objects are shown: a title and a few named values, as text and as a small HTML table.

Single numbers are shown; arrays, tracers and keys only by dtype and shape, everything unknown by its type.
"""

import dataclasses
import enum
import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import amounts, check

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
NOT_PRIVATE = "NOT PRIVATE: simulation"
ROWS_SHOWN = 10  # of a table; the rest is counted
NAMES_SHOWN = 8  # of an enumeration


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


def duration(seconds: float) -> str:
    """A time to wait, as precisely as one plans with: "4 s", "12 minutes", "3.5 hours"."""
    if seconds < 100:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def described(value: Any) -> str:
    """An array as its dtype and shape; anything else as its type. Never a value."""
    if value is None:
        return "None"
    if not isinstance(value, np.ndarray | np.generic | jax.Array | jax.ShapeDtypeStruct):
        return f"<{type(value).__name__}>"
    kind = kind_of(value.dtype)
    return f"{value.dtype if kind in ('float', 'int') else kind}{list(value.shape)}"


def shown(value: Any, digits: int | None = None) -> str:
    """A value of a public or released field as text.

    Single numbers as they are written (or with so many significant digits), arrays and tracers by `described`,
    dicts and tuples by their items, functions and classes by name.
    """
    if value is None or isinstance(value, bool | str):
        return printable(value) if isinstance(value, str) else str(value)
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, dict):
        return listed([f"{printable(str(name))}={shown(part, digits)}" for name, part in value.items()])
    if isinstance(value, tuple | list):
        return f"({listed([shown(part, digits) for part in value])})"
    if _is_number(value):
        return _number(value, digits)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return repr(value) if "\n" not in repr(value) else described(value)
    return getattr(value, "__name__", None) or described(value)


def unrounded(value: Any) -> str:
    """A part of a budget as it is, but for a rounding of a sum of shares: 1 - 2^-48 is read as 1.0."""
    if _is_number(value) and math.isfinite(float(value)):
        short = float(f"{float(value):.6g}")
        return shown(short if abs(short - float(value)) <= 1e-12 * short else value)
    return shown(value)


def _is_number(value: Any) -> bool:
    """Whether this is one real number that can be read now."""
    if not check.is_concrete(value) or np.ndim(value):
        return False
    if isinstance(value, jax.Array):
        readable = value.is_fully_addressable and not value.is_deleted()
        return readable and kind_of(value.dtype) in ("float", "int")
    return not isinstance(value, np.ndarray | np.generic) or value.dtype.kind in "fiub"


def _number(value: Any, digits: int | None) -> str:
    plain = np.asarray(value)[()] if hasattr(value, "dtype") else value
    if digits is None or not isinstance(plain, float | np.floating):
        return str(plain)
    return f"{float(plain):.{digits}g}"


def _cell(name: str, value: Any, digits: int = 6) -> str:
    """A named value of a table: numbers with so many digits, costs never rounded down."""
    is_cost = amounts.is_cost(name) and _is_number(value) and not isinstance(value, bool)
    return amounts.spent(value, digits) if is_cost else ("-" if value is None else shown(value, digits))


def printable(text: str) -> str:
    """The text, quoted if it holds line breaks or control characters."""
    return text if text.isprintable() else repr(text)


def listed(items: Iterable[Any], most: int = NAMES_SHOWN) -> str:
    """The first items, and how many there are in all."""
    items = list(map(str, items))
    return ", ".join(items) if len(items) <= most else f"{', '.join(items[:most])}, ... ({len(items)} in all)"


def listing(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def titled(name: str, mode: str) -> str:
    """The title of what a test or search published; a simulation says that it is not private."""
    return printable(name) if mode == "release" else f"{printable(name)} ({NOT_PRIVATE})"


def one_line(value: Any) -> str:
    """A dataclass in one line: its class and the fields that differ from their defaults."""
    fields = [field for field in dataclasses.fields(value) if field.repr]
    parts = [(field.name, getattr(value, field.name, None), field.default) for field in fields]
    told = [f"{name}={_quoted(part)}" for name, part, default in parts if not _is_default(part, default)]
    return f"{type(value).__name__}({', '.join(told)})"


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else shown(value)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, bool | int | float | str) and value == default)


class Compact:
    """A dataclass that prints in one line."""

    def __repr__(self) -> str:
        return one_line(self)


class Readable:
    """Prints as a title and named values, one line each; in notebooks as a table. Subclasses add `_display`."""

    def _display(self) -> tuple[str, dict[str, Any]]:
        """Title and named values."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return as_text(*self._display())

    def _repr_html_(self) -> str:
        return as_html(*self._display())


def as_text(title: str, values: dict[str, Any]) -> str:
    """The title and one indented line for each value."""
    width = max(map(len, values))
    return "\n".join([title, *(f"  {name.ljust(width)}  {_cell(name, value)}" for name, value in values.items())])


def as_html(title: str, values: dict[str, Any]) -> str:
    """The same as a table of two columns."""
    return _html_table(title, (), ((name, _cell(name, value)) for name, value in values.items()))


class Rows[T](list[T]):
    """A list of flat dataclasses that prints as a table, one line each."""

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells, without the columns that are empty or at their default in every row."""
        names = [field.name for field in dataclasses.fields(self[0]) if _is_used(self, field)]  # type: ignore[arg-type]
        return names, [[_cell(name, getattr(row, name), 4) for name in names] for row in self[:ROWS_SHOWN]]

    def __repr__(self) -> str:
        if not self:
            return "[]"
        header, cells = self._table()
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = (map(str.ljust, line, widths) for line in (header, *cells))
        return "\n".join(["  ".join(line).rstrip() for line in lines] + _rest(self))

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no rows</p>"
        header, cells = self._table()
        return _html_table("".join(_rest(self)), header, cells)


def _is_used(rows: Sequence[Any], field: dataclasses.Field) -> bool:
    return any(not _is_default(getattr(row, field.name), field.default) for row in rows)


def _rest(rows: Sequence[Any]) -> list[str]:
    return [f"... ({len(rows)} rows in all)"] if len(rows) > ROWS_SHOWN else []


def _html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its title as caption; every cell is escaped."""
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    body = "".join(html_row(row, "td") for row in rows)
    return f"<table>{caption}{html_row(header, 'th') if header else ''}{body}</table>"


def html_row(cells: Iterable[str], tag: str) -> str:
    """A row of a table; every cell is escaped."""
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
