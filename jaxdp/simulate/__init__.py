"""Simulated designs, (key, n, ...) -> Data, rejection rates over replicates, and grids of them that can be resumed."""

from jaxdp._base import lazy

# name -> module that holds it; imported on first use, so that a test's example data cost no more than themselves.
_EXPORTS = {
    "SineLaw": "designs.confounder",
    "case_control": "designs.discrete",
    "discrete_confounder": "designs.discrete",
    "from_schema": "designs.shaped",
    "functional_relation": "designs.functions21",
    "grid": "grids",
    "heavy_tailed_confounder": "designs.confounder",
    "heteroscedastic_confounder": "designs.confounder",
    "mixed_confounder": "designs.discrete",
    "network_query": "designs.discrete",
    "post_nonlinear": "designs.confounder",
    "relation": "designs.functions21",
    "sample_network": "designs.networks",
    "shah_peters": "designs.confounder",
    "sine_confounder": "designs.confounder",
}
# modules of the rooms below, by their own names
_MODULES = {
    "confounder": "designs.confounder",
    "discrete": "designs.discrete",
    "examples": "examples",
    "functions21": "designs.functions21",
    "networks": "designs.networks",
    "shaped": "designs.shaped",
}

__all__, __getattr__, __dir__ = lazy.names(__name__, _EXPORTS, _MODULES)
