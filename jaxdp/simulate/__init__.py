"""Simulated designs, (key, n, ...) -> Data, rejection rates over replicates, and grids of them that can be resumed."""

from jaxdp.simulate.confounder import (
    SineLaw,
    heavy_tailed_confounder,
    heteroscedastic_confounder,
    post_nonlinear,
    shah_peters,
    sine_confounder,
)
from jaxdp.simulate.discrete import case_control, discrete_confounder, mixed_confounder, network_question
from jaxdp.simulate.functions21 import functional_relation, relation
from jaxdp.simulate.networks import sample_network
from jaxdp.simulate.shaped import from_schema

__all__ = [
    "SineLaw",
    "case_control",
    "discrete_confounder",
    "from_schema",
    "functional_relation",
    "heavy_tailed_confounder",
    "heteroscedastic_confounder",
    "mixed_confounder",
    "network_question",
    "post_nonlinear",
    "relation",
    "sample_network",
    "shah_peters",
    "sine_confounder",
]
