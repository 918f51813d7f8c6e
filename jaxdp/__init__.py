"""Differentially private dependence testing in JAX.

    test = jaxdp.PartitionGCM(epsilon=1.0)
    result = jaxdp.run(test, jaxdp.fresh_key(), jaxdp.Data(x, y, z))
    statistic, p_value = result

Key of `fresh_key()`: a release, in plain Python, never inside `jax.jit` or another transformation.
Key of `jax.random.key(seed)`: a simulation, not private, which all transformations take.
"""

import importlib
from typing import Any

# name -> module that holds it; imported on first use, so that `import jaxdp` costs no more than JAX.
_EXPORTS = {
    "AllPairs": "independence.pairs",
    "BandGCM": "independence.conditional.band_gcm",
    "BernoulliLaw": "statistics.conditional_law",
    "BestTables": "independence.marginal.gwas",
    "BudgetExhausted": "accounting.ledger",
    "CRT": "independence.conditional.crt",
    "CRTNormal": "independence.conditional.private_crt",
    "CRTRank": "independence.conditional.private_crt",
    "CRTThreshold": "independence.conditional.private_crt",
    "ChiSquaredLaplace": "independence.marginal.chi2_laplace",
    "ChosenCells": "independence.conditional.chosen_cells",
    "Columns": "spec",
    "ConditionalKendall": "independence.conditional.conditional_kendall",
    "ConditionalLaw": "statistics.conditional_law",
    "ConditionalSpearman": "independence.conditional.conditional_spearman",
    "ContrastGCM": "independence.conditional.contrast_gcm",
    "CorrelationTest": "statistics.association",
    "Cost": "core",
    "Data": "data",
    "DistanceScore": "independence.marginal.chi2_laplace",
    "EveryTable": "independence.marginal.gwas",
    "Example": "spec",
    "ExponentialMechanism": "mechanisms",
    "FirstTables": "independence.marginal.gwas",
    "GCM": "independence.conditional.gcm",
    "Gaussian": "mechanisms",
    "GaussianLaw": "statistics.conditional_law",
    "Geometric": "mechanisms",
    "Laplace": "mechanisms",
    "LaplaceKernel": "statistics.kernels",
    "Ledger": "accounting.ledger",
    "Linear": "statistics.kernels",
    "LocalPermutation": "independence.conditional.local_permutation",
    "MICeLaplace": "independence.marginal.mic_equipartition",
    "MICrGeometric": "independence.marginal.mic_geometric",
    "MICrLaplace": "independence.marginal.mic_laplace",
    "MICrPairs": "independence.marginal.mic_pairs",
    "MICrTopPair": "independence.marginal.mic_pairs",
    "MarginAdaptive": "independence.marginal.margin_adaptive",
    "NoisyProportions": "independence.marginal.noisy_proportions",
    "NoisyTableChi2": "independence.marginal.noisy_table_chi2",
    "Mechanism": "core",
    "Norm": "core",
    "PartitionGCM": "independence.conditional.partition_gcm",
    "PermuteAndFlip": "mechanisms",
    "Planning": "spec",
    "PrivateQuery": "core",
    "PrivateCRT": "independence.conditional.private_crt",
    "PrivateGCM": "independence.conditional.private_gcm",
    "PrivateTest": "core",
    "ProjectedChi2": "independence.marginal.projected_chi2",
    "ProjectedGoodnessOfFit": "independence.marginal.projected_chi2",
    "RBF": "statistics.kernels",
    "RandomStopping": "mechanisms.random_stopping",
    "Relation": "core",
    "Release": "core",
    "ReportNoisyMax": "mechanisms",
    "Result": "core",
    "Schema": "data",
    "Sensitivity": "core",
    "SmoothCauchy": "mechanisms.smooth_sensitivity",
    "SmoothGaussian": "mechanisms.smooth_sensitivity",
    "SmoothLaplace": "mechanisms.smooth_sensitivity",
    "SmoothStudent": "mechanisms.smooth_sensitivity",
    "Split": "mechanisms",
    "SubsampleAggregate": "independence.subsample_aggregate",
    "TableTest": "statistics.association",
    "Tables": "independence.marginal.gwas",
    "TestOfTests": "independence.conditional.test_of_tests",
    "TestSpec": "spec",
    "TopK": "mechanisms.top_k",
    "UnitCircle": "independence.marginal.unit_circle",
    "all_pairs": "independence.pairs",
    "fresh_key": "noise.keys",
    "kernels": "statistics",
    "private_test": "_pytree",
    "release": "core",
    "run": "core",
}
_MODULES = [
    "audit",
    "tune",
    "discovery",
    "accounting",
    "calibrate",
    "catalogue",
    "cluster",
    "core",
    "data",
    "interop",
    "mechanisms",
    "noise",
    "plan",
    "power",
    "simulate",
    "statistics",
]

__all__ = sorted([*_EXPORTS, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.{_EXPORTS[name]}"), name)
    if name == "__version__":
        return _version()
    if name == "power":
        return importlib.import_module("jaxdp.simulate.power")
    if name in _MODULES:
        return importlib.import_module(f"jaxdp.{name}")
    raise AttributeError(f"module 'jaxdp' has no attribute {name!r}")


def _version() -> str:
    """The installed version; "0+unknown" in a copy of the sources that was not installed."""
    from importlib import metadata

    try:
        return metadata.version("jaxdp-dependence")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def exported_names() -> tuple[str, ...]:
    """Names of the exported classes and functions; modules are not among them."""
    return tuple(_EXPORTS)


def __dir__() -> list[str]:
    return __all__
