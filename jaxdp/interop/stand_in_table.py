"""A table in place of the records, for libraries that hand a test arrays and not names of columns.

Every column holds its own number, so that a test that is given arrays knows which columns they are, and no record
is handed over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxdp.interop.queries import PrivateQueries

ROWS = 8


def stand_in(queries: PrivateQueries) -> Any:
    """A data frame without records, to give to another library in their place; it has the columns of the queries."""
    import pandas

    return pandas.DataFrame(np.tile(np.arange(len(queries.names), dtype=float), (ROWS, 1)), columns=queries.names)


def columns_of(values: Any, queries: PrivateQueries) -> tuple[int, ...]:
    """Which columns an array of the stand-in holds. Errors: ValueError for any other array."""
    table = np.asarray(values)
    table = table.reshape(len(table), -1) if table.size else np.empty((ROWS, 0))
    found = table[0] if len(table) == ROWS else np.array([np.nan])
    known = np.isin(found, np.arange(len(queries.names)))
    if table.dtype.kind not in "fiu" or not np.all(known) or not np.all(table == found):
        raise ValueError(
            "the test was given other data than jaxdp.interop.stand_in(queries): give the library that table; the "
            "records stay in the queries."
        )
    return tuple(found.astype(int).tolist())
