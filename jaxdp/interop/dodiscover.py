"""dodiscover: a private test where it takes a conditional independence test.

    PC(ci_estimator=jaxdp.interop.dodiscover_test(queries)).learn_graph(frame, context)

The frame's columns are the names of the queries; its values are never read (`stand_in(queries)` will do).
dodiscover is not imported: the object follows its protocol.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from jaxdp.interop.one_process import OneProcess
from jaxdp.interop.queries import PrivateQueries


def dodiscover_test(queries: PrivateQueries) -> DodiscoverTest:
    """For dodiscover: an object with test(df, x_vars, y_vars, z_covariates) -> (nan, p-value)."""
    return DodiscoverTest(queries)


class DodiscoverTest(OneProcess):
    """The protocol of dodiscover's conditional independence tests over `PrivateQueries`."""

    def __init__(self, queries: PrivateQueries):
        self.queries = queries

    def test(
        self,
        df: Any,
        x_vars: Collection[str] | str,
        y_vars: Collection[str] | str,
        z_covariates: Collection[str] | str | None = None,
    ) -> tuple[float, float]:
        """(nan, p-value): tests differ in what their statistic means, so none is passed on. `df` is not read."""
        x, y, given = _names(x_vars), _names(y_vars), _names(z_covariates or ())
        if len(x) != 1 or len(y) != 1:
            raise ValueError(f"a private query is about two columns, got {len(x)} and {len(y)}.")
        return math.nan, self.queries.by_name(x[0], y[0], given)

    __call__ = test


def _names(columns: Collection[str] | str) -> list[str]:
    return [columns] if isinstance(columns, str) else sorted(columns)
