"""dodiscover: a private test where it wants a conditional independence test.

    PC(ci_estimator=jaxdp.interop.dodiscover_test(questions)).learn_graph(frame, context)

The frame's columns are the names of the questions; its values are never read (`stand_in(questions)` will do).
dodiscover is not imported: the object follows its protocol.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from jaxdp.interop.one_process import OneProcess
from jaxdp.interop.questions import PrivateQuestions


def dodiscover_test(questions: PrivateQuestions) -> DodiscoverTest:
    """An object with test(df, x_vars, y_vars, z_covariates) -> (nan, p-value)."""
    return DodiscoverTest(questions)


class DodiscoverTest(OneProcess):
    """The protocol of dodiscover's conditional independence tests over `PrivateQuestions`."""

    def __init__(self, questions: PrivateQuestions):
        self.questions = questions

    def test(
        self,
        df: Any,
        x_vars: Collection[str] | str,
        y_vars: Collection[str] | str,
        z_covariates: Collection[str] | str | None = None,
    ) -> tuple[float, float]:
        """(nan, p-value): tests differ in what their statistic means, so none is passed on. `df` is not read."""
        del df
        x, y, given = _names(x_vars), _names(y_vars), _names(z_covariates or ())
        if len(x) != 1 or len(y) != 1:
            raise ValueError(f"a private question is about two columns, got {len(x)} and {len(y)}.")
        return math.nan, self.questions.by_name(x[0], y[0], given)

    __call__ = test


def _names(columns: Collection[str] | str) -> list[str]:
    return [columns] if isinstance(columns, str) else sorted(columns)
