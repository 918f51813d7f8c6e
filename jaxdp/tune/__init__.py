"""Public parameters by gradient, on simulated or public data only; private data never enter here.

tuned = jaxdp.tune.tune(jaxdp.PartitionGCM(epsilon=1.0), ["winsorize", "split"], design=design, key=key)
tuned.test, tuned.values, tuned.tuned_on
"""

from jaxdp.tune.objective import Sample, SoftPower
from jaxdp.tune.result import LevelCheck, Tuned
from jaxdp.tune.search import null_family, tune
from jaxdp.tune.sieve import SieveSettings, expected_errors, order_budgets, order_errors, sieve_settings
from jaxdp.tune.subsample import noise_objective, signal_to_noise, subsample_size, subsample_size_closed_form
from jaxdp.tune.tunable import LEAVES, Leaf, offered
from jaxdp.tune.winsorising import epsilon_split, winsorising_level

__all__ = [
    "LEAVES",
    "Leaf",
    "LevelCheck",
    "Sample",
    "SieveSettings",
    "SoftPower",
    "Tuned",
    "epsilon_split",
    "expected_errors",
    "noise_objective",
    "null_family",
    "offered",
    "order_budgets",
    "order_errors",
    "sieve_settings",
    "signal_to_noise",
    "subsample_size",
    "subsample_size_closed_form",
    "tune",
    "winsorising_level",
]
