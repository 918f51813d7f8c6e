"""tigramite: a private test as its `cond_ind_test`, for tables without time.

    table = tigramite.data_processing.DataFrame(jaxdp.interop.stand_in(queries).to_numpy(), var_names=queries.names)
    search = PCMCI(table, cond_ind_test=jaxdp.interop.tigramite_test(queries))
    found = search.run_pcalg_non_timeseries_data(pc_alpha=0.01)

Links in time are refused: one moment enters several rows of a lagged table, so a test calibrated to one record would
protect less than it says. tigramite is not imported: the object follows its protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

from jaxdp.interop.one_process import OneProcess
from jaxdp.interop.queries import PrivateQueries

Node = tuple[int, int]  # column and lag
SMALLEST = 1e-300  # keeps the score of a p-value of 0 finite


def tigramite_test(queries: PrivateQueries) -> TigramiteTest:
    """For tigramite: an object for PCMCI's `cond_ind_test`. PCMCI copies it; the copies share one budget."""
    return TigramiteTest(queries)


class TigramiteTest(OneProcess):
    """The protocol of tigramite's tests over `PrivateQueries`. Its data are never read.

    The value beside a p-value is its normal score, |z| of a two-sided test: tigramite sorts by it.
    """

    measure = "jaxdp"
    significance = "analytic"
    confidence = None
    two_sided = True
    recycle_residuals = False
    mask_type = None
    verbosity = 0

    def __init__(self, queries: PrivateQueries):
        self.queries = queries
        self.dataframe: Any = None

    def set_dataframe(self, dataframe: Any) -> None:
        """What PCMCI calls first. Errors: ValueError for a table of other columns than the queries."""
        if len(dataframe.var_names) != len(self.queries.names):
            raise ValueError(
                f"the queries are about {len(self.queries.names)} columns, the data have {len(dataframe.var_names)}."
            )
        self.dataframe = dataframe

    def run_test(
        self,
        X: Sequence[Node],
        Y: Sequence[Node],
        Z: Sequence[Node] | None = None,
        tau_max: int = 0,
        cut_off: str = "2xtau_max",
        alpha_or_thres: float | None = None,
    ) -> tuple:
        """(score, p-value), and with a level whether they are dependent. Errors: ValueError for a lag."""
        given = list(Z or ())
        if tau_max or any(lag for _, lag in (*X, *Y, *given)):
            raise ValueError(
                "private tests take no lags, since one moment enters several rows of a lagged table: "
                "use run_pcalg_non_timeseries_data."
            )
        if len(X) != 1 or len(Y) != 1:
            raise ValueError(f"a private query is about two columns, got {len(X)} and {len(Y)}.")
        p_value = self.queries.p_value(X[0][0], Y[0][0], [column for column, _ in given])
        answer = score(p_value), p_value
        return answer if alpha_or_thres is None else (*answer, p_value <= alpha_or_thres)

    def get_measure(self, X, Y, Z=None, tau_max=0) -> float:
        """The score of `run_test`."""
        return self.run_test(X, Y, Z, tau_max)[0]

    def get_confidence(self, X, Y, Z=None, tau_max=0) -> None:
        """No interval: tigramite's `confidence` is None."""


def score(p_value: float) -> float:
    """|z| whose two-sided p-value this is."""
    return abs(NormalDist().inv_cdf(max(p_value, SMALLEST) / 2))
