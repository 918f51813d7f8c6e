"""Planning before anything is spent: power, records, budget, detectable effect, cost of privacy; public numbers only.

jaxdp.plan.required_n("partition-gcm", epsilon=1.0, effect=0.25, power=0.8)
jaxdp.plan("partition-gcm", epsilon=1.0, effect=0.25, power=0.8)    # the same in one call; `jaxdp.plan.call`
"""

import sys
import types
from typing import Any

from jaxdp.plan import call
from jaxdp.plan.compare import Row, answer, compare
from jaxdp.plan.epsilon_curve import EpsilonCurve, EpsilonPoint, epsilon_curve
from jaxdp.plan.methods import plans
from jaxdp.plan.odds import LogisticSetting
from jaxdp.plan.rates import PoissonSetting
from jaxdp.plan.setting import Setting
from jaxdp.plan.solve import cost_of_privacy, detectable_effect, minimum_epsilon, power, required_n
from jaxdp.plan.survival import SurvivalSetting

__all__ = [
    "METHODS",
    "EpsilonCurve",
    "EpsilonPoint",
    "LogisticSetting",
    "PoissonSetting",
    "Row",
    "Setting",
    "SurvivalSetting",
    "answer",
    "compare",
    "cost_of_privacy",
    "detectable_effect",
    "epsilon_curve",
    "minimum_epsilon",
    "power",
    "required_n",
]


def __getattr__(name: str):
    if name == "METHODS":  # names of all tests that can be planned; read from the catalogue when they are asked for
        return tuple(plans())
    raise AttributeError(f"module 'jaxdp.plan' has no attribute {name!r}")


class _Callable(types.ModuleType):
    """This module, which may be called: `jaxdp.plan(...)` is `jaxdp.plan.call.plan(...)`."""

    def __call__(self, *args: Any, **given: Any) -> Any:
        return call.plan(*args, **given)


sys.modules[__name__].__class__ = _Callable
