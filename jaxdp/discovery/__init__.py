"""Which variables cause which? Searches for a causal graph at a stated privacy cost.

graph = jaxdp.discovery.table_pc(jaxdp.fresh_key(), schema.read_table("trial.csv"), epsilon=1.0)
"""

from jaxdp._base import lazy

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "DSeparation": "methods.pc",
    "Decision": "graph",
    "Graph": "graph",
    "NoisyHistogram": "methods.table_pc",
    "StratifiedTest": "methods.pc",
    "cpdag_f1": "metrics",
    "cpdag_of": "engine.orientation",
    "graph_from_dict": "graph",
    "marginal_pc": "methods.marginal_pc",
    "Knowledge": "engine.knowledge",
    "max_min_pc": "methods.max_min_pc",
    "NoisyMarginals": "methods.marginal_pc",
    "neighbour_pc": "methods.neighbour_pc",
    "moment_pc": "methods.moment_pc",
    "partition_pc": "choose",
    "recommended_pc": "choose",
    "orient": "engine.orientation",
    "pc": "methods.pc",
    "read_graph": "graph",
    "shd": "metrics",
    "sid": "metrics",
    "skeleton_f1": "metrics",
    "table_pc": "methods.table_pc",
    "demo": "choose",
    "choose_method": "choose",
    "discover": "choose",
    "em_pc": "methods.em_pc",
    "Forecast": "spec",
    "Search": "spec",
    "forecast": "choose",
    "priv_pc": "methods.priv_pc",
    "svt_pc": "methods.svt_pc",
}

__all__, __getattr__, __dir__ = lazy.names(__name__, _EXPORTS)
