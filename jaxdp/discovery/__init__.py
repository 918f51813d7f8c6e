"""Which variables cause which? Searches for a causal graph at a stated privacy cost.

graph = jaxdp.discovery.table_pc(jaxdp.fresh_key(), schema.read_table("trial.csv"), epsilon=1.0)
"""

import importlib
from typing import Any

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "DSeparation": "search",
    "Decision": "graph",
    "Graph": "graph",
    "NoisyHistogram": "tables",
    "TableTest": "search",
    "adaptive_pc": "adaptive",
    "gaussian_pc": "gaussian",
    "cpdag_f1": "metrics",
    "cpdag_of": "orientation",
    "graph_from_dict": "graph",
    "marginal_pc": "marginals",
    "NoisyMarginals": "marginals",
    "partition_pc": "automatic",
    "recommended_pc": "automatic",
    "orient": "orientation",
    "pc": "search",
    "read_graph": "graph",
    "shd": "metrics",
    "skeleton_f1": "metrics",
    "table_pc": "tables",
    "demo": "automatic",
    "choose_method": "automatic",
    "discover": "automatic",
    "em_pc": "exponential",
    "priv_pc": "sieve",
    "svt_pc": "sieve",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.discovery.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'jaxdp.discovery' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
