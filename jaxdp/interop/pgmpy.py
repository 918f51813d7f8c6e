"""pgmpy: a private test as its `ci_test` callable.

    ci_test = jaxdp.interop.pgmpy_ci_test(queries)
    PC(ci_test=ci_test, significance_level=0.01).fit(frame)      # the frame's columns are queries.names

pgmpy is not imported: the callable follows its protocol. `causal_discovery.PC` asks from several threads, which is
safe; the older `estimators.PC` starts processes by default, which is refused: run it inside
`jaxdp.interop.in_threads()`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxdp.interop.one_process import OneProcess
from jaxdp.interop.queries import PrivateQueries


def pgmpy_ci_test(queries: PrivateQueries) -> PgmpyTest:
    """For pgmpy: a callable (X, Y, Z, significance_level=0.05) of column names; True means independent.

    Z: names, one name, or None.
    """
    return PgmpyTest(queries)


class PgmpyTest(OneProcess):
    """The protocol of pgmpy's tests over `PrivateQueries`. The data that pgmpy holds are never read by it."""

    def __init__(self, queries: PrivateQueries):
        self.queries = queries
        self.p_value_: float | None = None
        self.statistic_: float | None = None
        self.effect_size_: float | None = None

    def __call__(
        self, X: str, Y: str, Z: str | Sequence[str] | None = (), significance_level: float = 0.05, **_
    ) -> bool:
        p_value = self.queries.by_name(X, Y, () if Z is None else Z)
        self.p_value_ = p_value
        return bool(p_value >= significance_level)

    is_independent = __call__
