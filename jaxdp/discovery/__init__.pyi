"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.discovery.adaptive import adaptive_pc as adaptive_pc
from jaxdp.discovery.automatic import choose_method as choose_method
from jaxdp.discovery.automatic import demo as demo
from jaxdp.discovery.automatic import discover as discover
from jaxdp.discovery.automatic import partition_pc as partition_pc
from jaxdp.discovery.automatic import recommended_pc as recommended_pc
from jaxdp.discovery.exponential import em_pc as em_pc
from jaxdp.discovery.gaussian import gaussian_pc as gaussian_pc
from jaxdp.discovery.graph import Decision as Decision
from jaxdp.discovery.graph import Graph as Graph
from jaxdp.discovery.graph import graph_from_dict as graph_from_dict
from jaxdp.discovery.graph import read_graph as read_graph
from jaxdp.discovery.marginals import NoisyMarginals as NoisyMarginals
from jaxdp.discovery.marginals import marginal_pc as marginal_pc
from jaxdp.discovery.metrics import cpdag_f1 as cpdag_f1
from jaxdp.discovery.metrics import shd as shd
from jaxdp.discovery.metrics import skeleton_f1 as skeleton_f1
from jaxdp.discovery.orientation import cpdag_of as cpdag_of
from jaxdp.discovery.orientation import orient as orient
from jaxdp.discovery.search import DSeparation as DSeparation
from jaxdp.discovery.search import TableTest as TableTest
from jaxdp.discovery.search import pc as pc
from jaxdp.discovery.sieve import priv_pc as priv_pc
from jaxdp.discovery.sieve import svt_pc as svt_pc
from jaxdp.discovery.tables import NoisyHistogram as NoisyHistogram
from jaxdp.discovery.tables import table_pc as table_pc
