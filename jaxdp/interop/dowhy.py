"""dowhy: a private test where it takes a function of arrays.

    ask = jaxdp.interop.dowhy_test(queries)
    falsify_graph(graph, jaxdp.interop.stand_in(queries), independence_test=ask, conditional_independence_test=ask,
                  n_jobs=1)

dowhy hands its test the values of columns, so it is given a stand-in table that holds their numbers; records are never
handed over. dowhy is not imported: the callable follows its protocol.
"""

from __future__ import annotations

from typing import Any

from jaxdp.interop.one_process import OneProcess
from jaxdp.interop.queries import PrivateQueries
from jaxdp.interop.stand_in_table import columns_of


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
