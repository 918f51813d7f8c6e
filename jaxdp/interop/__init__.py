"""Private tests inside other libraries: one file per library, one budget for all of them.

queries = jaxdp.interop.PrivateQueries(jaxdp.PartitionGCM(epsilon=0.1), records, epsilon=2.0)
ci_test = jaxdp.interop.pgmpy_ci_test(queries)
"""

import importlib
from typing import Any

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "PrivateQueries": "queries",
    "causal_learn_test": "causal_learn",
    "dodiscover_test": "dodiscover",
    "dowhy_test": "dowhy",
    "dp_event": "dp_accounting",
    "in_threads": "one_process",
    "opendp_measurement": "opendp",
    "pgmpy_ci_test": "pgmpy",
    "stand_in": "stand_in_table",
    "tigramite_test": "tigramite",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.interop.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'jaxdp.interop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
