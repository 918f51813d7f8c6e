"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.simulate import examples as examples
from jaxdp.simulate.designs import confounder as confounder
from jaxdp.simulate.designs import discrete as discrete
from jaxdp.simulate.designs import functions21 as functions21
from jaxdp.simulate.designs import networks as networks
from jaxdp.simulate.designs import shaped as shaped
from jaxdp.simulate.designs.confounder import SineLaw as SineLaw
from jaxdp.simulate.designs.confounder import heavy_tailed_confounder as heavy_tailed_confounder
from jaxdp.simulate.designs.confounder import heteroscedastic_confounder as heteroscedastic_confounder
from jaxdp.simulate.designs.confounder import post_nonlinear as post_nonlinear
from jaxdp.simulate.designs.confounder import shah_peters as shah_peters
from jaxdp.simulate.designs.confounder import sine_confounder as sine_confounder
from jaxdp.simulate.designs.discrete import case_control as case_control
from jaxdp.simulate.designs.discrete import discrete_confounder as discrete_confounder
from jaxdp.simulate.designs.discrete import mixed_confounder as mixed_confounder
from jaxdp.simulate.designs.discrete import network_query as network_query
from jaxdp.simulate.designs.functions21 import functional_relation as functional_relation
from jaxdp.simulate.designs.functions21 import relation as relation
from jaxdp.simulate.designs.networks import sample_network as sample_network
from jaxdp.simulate.designs.shaped import from_schema as from_schema
from jaxdp.simulate.grids import grid as grid
