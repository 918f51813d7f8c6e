"""Callables that hold a budget, in libraries that would copy them into worker processes."""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

from jaxdp.accounting.shared import Uncopied

WAY_OUT = (
    "run the search with n_jobs=1, or inside `with jaxdp.interop.in_threads():`, which makes joblib's workers threads."
)


class OneProcess(Uncopied):
    """Copies share the object itself. A pickled copy holds nothing, and refuses to answer in its own words.

    Libraries that send a callable to worker processes report an error of pickling as "could not pickle the task";
    an error of the first call reaches the user as it is.
    """

    def __reduce_ex__(self, protocol):
        return Elsewhere, (type(self).__name__,)


class Elsewhere:
    """What is left of such a callable in another process."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"a {self.name} was sent to another process, where its budget would be spent a second time: {WAY_OUT}"
        )

    is_independent = test = run_test = __call__


def in_threads() -> contextlib.AbstractContextManager:
    """A context in which libraries run joblib's workers as threads, not processes, so that they share one budget.

    For pgmpy's older `estimators.PC` and for dowhy, whose defaults start processes. Threads may ask together.
    """
    import joblib

    return joblib.parallel_config(backend="threading")
