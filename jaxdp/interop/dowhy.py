"""dowhy: a private test where it takes a function of arrays.

    ask = jaxdp.interop.dowhy_test(queries)
    falsify_graph(graph, jaxdp.interop.stand_in(queries), independence_test=ask, conditional_independence_test=ask,
                  n_jobs=1)

dowhy hands its test the values of columns, so it is given a stand-in table that holds their numbers; records are never
handed over. dowhy is not imported: the callable follows its protocol.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxdp.interop.one_process import OneProcess
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


def dowhy_test(queries: PrivateQueries) -> DowhyTest:
    """For dowhy, as either of its tests: a callable (X, Y, Z=None) -> p-value on columns of `stand_in(queries)`."""
    return DowhyTest(queries)


class DowhyTest(OneProcess):
    """The protocol of dowhy's independence tests over `PrivateQueries`."""

    def __init__(self, queries: PrivateQueries):
        self.queries = queries

    def __call__(self, X: Any, Y: Any, Z: Any = None, **_) -> float:
        x, y = columns_of(X, self.queries), columns_of(Y, self.queries)
        if len(x) != 1 or len(y) != 1:
            raise ValueError(f"a private query is about two columns, got {len(x)} and {len(y)}.")
        return self.queries.p_value(x[0], y[0], () if Z is None else columns_of(Z, self.queries))
