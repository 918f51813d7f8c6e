"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""

from jaxdp.interop.causal_learn import causal_learn_test as causal_learn_test
from jaxdp.interop.pgmpy import pgmpy_ci_test as pgmpy_ci_test
from jaxdp.interop.questions import PrivateQuestions as PrivateQuestions
