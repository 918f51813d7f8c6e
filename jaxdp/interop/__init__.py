"""Private tests inside other libraries: one file per library, one budget for all of them.

queries = jaxdp.interop.PrivateQueries(jaxdp.PartitionGCM(epsilon=0.1), records, epsilon=2.0)
ci_test = jaxdp.interop.pgmpy_ci_test(queries)
"""

from jaxdp._base import lazy

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "PrivateQueries": "queries",
    "PrivateSelector": "sklearn",
    "acro_output": "acro",
    "causal_learn_test": "causal_learn",
    "dodiscover_test": "dodiscover",
    "dowhy_test": "dowhy",
    "dp_event": "dp_accounting",
    "in_threads": "one_process",
    "lomas_querier": "lomas",
    "opendp_measurement": "opendp",
    "pgmpy_ci_test": "pgmpy",
    "stand_in": "dowhy",
    "tigramite_test": "tigramite",
}

__all__, __getattr__, __dir__ = lazy.names(__name__, _EXPORTS)
