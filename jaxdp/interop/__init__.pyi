"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.interop.acro import acro_output as acro_output
from jaxdp.interop.causal_learn import causal_learn_test as causal_learn_test
from jaxdp.interop.dodiscover import dodiscover_test as dodiscover_test
from jaxdp.interop.dowhy import dowhy_test as dowhy_test
from jaxdp.interop.dowhy import stand_in as stand_in
from jaxdp.interop.dp_accounting import dp_event as dp_event
from jaxdp.interop.lomas import lomas_querier as lomas_querier
from jaxdp.interop.one_process import in_threads as in_threads
from jaxdp.interop.opendp import opendp_measurement as opendp_measurement
from jaxdp.interop.pgmpy import pgmpy_ci_test as pgmpy_ci_test
from jaxdp.interop.queries import PrivateQueries as PrivateQueries
from jaxdp.interop.sklearn import PrivateSelector as PrivateSelector
from jaxdp.interop.tigramite import tigramite_test as tigramite_test
