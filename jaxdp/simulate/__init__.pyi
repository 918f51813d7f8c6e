"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.simulate import confounder as confounder
from jaxdp.simulate import discrete as discrete
from jaxdp.simulate import examples as examples
from jaxdp.simulate import functions21 as functions21
from jaxdp.simulate import networks as networks
from jaxdp.simulate import shaped as shaped
from jaxdp.simulate.confounder import SineLaw as SineLaw
from jaxdp.simulate.confounder import heavy_tailed_confounder as heavy_tailed_confounder
from jaxdp.simulate.confounder import heteroscedastic_confounder as heteroscedastic_confounder
from jaxdp.simulate.confounder import post_nonlinear as post_nonlinear
from jaxdp.simulate.confounder import shah_peters as shah_peters
from jaxdp.simulate.confounder import sine_confounder as sine_confounder
from jaxdp.simulate.discrete import case_control as case_control
from jaxdp.simulate.discrete import discrete_confounder as discrete_confounder
from jaxdp.simulate.discrete import mixed_confounder as mixed_confounder
from jaxdp.simulate.discrete import network_question as network_question
from jaxdp.simulate.functions21 import functional_relation as functional_relation
from jaxdp.simulate.functions21 import relation as relation
from jaxdp.simulate.networks import sample_network as sample_network
from jaxdp.simulate.shaped import from_schema as from_schema
