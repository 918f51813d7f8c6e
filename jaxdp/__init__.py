"""Differentially private dependence testing in JAX.

    answer = jaxdp.test(frame, x="dose", y="response", given="age", epsilon=1.0, schema="trial.toml")

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
    "Answer": "ask.answer",
    "BandGCM": "independence.continuous.band_gcm",
    "BernoulliLaw": "statistics.conditional_law",
    "BestTables": "independence.tables.gwas",
    "BestVariants": "independence.variants.best_variants",
    "BudgetExhausted": "accounting.ledger",
    "CRT": "independence.continuous.crt",
    "CRTNormal": "independence.continuous.private_crt",
    "ChiSquaredLaplace": "independence.tables.chi2_laplace",
    "ChosenCells": "independence.continuous.chosen_cells",
    "Columns": "spec",
    "ConditionalKendall": "independence.ranks.conditional_kendall",
    "ConditionalLaw": "statistics.conditional_law",
    "ConditionalSpearman": "independence.ranks.conditional_spearman",
    "ContrastFeatures": "independence.continuous.contrast_features",
    "ContrastGCM": "independence.continuous.contrast_gcm",
    "CorrelationTest": "statistics.tables.association",
    "Cost": "core",
    "Data": "data",
    "DistanceScore": "independence.tables.chi2_laplace",
    "EveryTable": "independence.tables.gwas",
    "Example": "examples",
    "ExponentialMechanism": "mechanisms",
    "FirstTables": "independence.tables.gwas",
    "FeatureGCM": "independence.continuous.feature_gcm",
    "GCM": "independence.continuous.gcm",
    "Gaussian": "mechanisms",
    "GaussianLaw": "statistics.conditional_law",
    "Geometric": "mechanisms",
    "KruskalWallis": "independence.ranks.kruskal_wallis",
    "Laplace": "mechanisms",
    "LaplaceKernel": "statistics.kernel_ridge.kernels",
    "Ledger": "accounting.ledger",
    "Linear": "statistics.kernel_ridge.kernels",
    "LinearRegression": "independence.continuous.linear_regression",
    "LocalPermutation": "independence.continuous.local_permutation",
    "LogisticRegression": "independence.continuous.logistic_regression",
    "LogRank": "independence.survival.log_rank",
    "MICeLaplace": "independence.mic.mic_equipartition",
    "MICrGeometric": "independence.mic.mic_geometric",
    "MICrLaplace": "independence.mic.mic_laplace",
    "MICrPairs": "independence.mic.mic_pairs",
    "MICrTopPair": "independence.mic.mic_pairs",
    "MEstimator": "independence.continuous.m_estimator",
    "MarginAdaptive": "independence.tables.margin_adaptive",
    "NoisyProportions": "independence.tables.noisy_proportions",
    "NoisyTableChi2": "independence.tables.noisy_table_chi2",
    "MeanDifference": "independence.continuous.mean_difference",
    "Mechanism": "core",
    "Norm": "core",
    "PairContrasts": "independence.tables.pair_contrasts",
    "PartialCorrelation": "independence.continuous.partial_correlation",
    "PoissonRegression": "independence.continuous.poisson_regression",
    "StratifiedTable": "independence.tables.stratified_table",
    "WinsorisedPartialCorrelation": "independence.continuous.winsorised_rho",
    "PartitionGCM": "independence.continuous.partition_gcm",
    "PermuteAndFlip": "mechanisms",
    "Planning": "spec",
    "PrivateQuery": "core",
    "PrivateCRT": "independence.continuous.private_crt",
    "PrivateGCM": "independence.continuous.private_gcm",
    "PrivateTest": "core",
    "ProjectedChi2": "independence.tables.projected_chi2",
    "ProjectedGoodnessOfFit": "independence.tables.projected_chi2",
    "QuantileTable": "independence.tables.quantile_table",
    "RBF": "statistics.kernel_ridge.kernels",
    "RandomStopping": "mechanisms.random_stopping",
    "Relation": "core",
    "Release": "core",
    "ReportNoisyMax": "mechanisms",
    "Result": "core",
    "Schema": "data",
    "ScoreTest": "independence.variants.score_test",
    "Sensitivity": "core",
    "Session": "ask.session",
    "SmoothCauchy": "mechanisms.smooth_sensitivity",
    "SmoothGaussian": "mechanisms.smooth_sensitivity",
    "SmoothLaplace": "mechanisms.smooth_sensitivity",
    "SmoothStudent": "mechanisms.smooth_sensitivity",
    "Split": "mechanisms",
    "SubsampleAggregate": "independence.meta.subsample_aggregate",
    "ContingencyTest": "statistics.tables.association",
    "Tables": "independence.tables.gwas",
    "TestOfTests": "independence.meta.test_of_tests",
    "TestSpec": "spec",
    "TopK": "mechanisms.selection",
    "UnitCircle": "independence.tables.unit_circle",
    "WinsorisedMeanDifference": "independence.continuous.winsorised_means",
    "Description": "ask.describe",
    "describe": "ask.describe",
    "DraftedSchema": "ask.draft_schema",
    "draft_schema": "ask.draft_schema",
    "discover": "ask.graph",
    "mic": "ask.coefficients",
    "test": "ask.independence",
    "test_pairs": "ask.pairs",
    "PairAnswers": "ask.pair_answers",
    "all_pairs": "independence.pairs",
    "fresh_key": "randomness.keys",
    "gwas": "ask.variants",
    "kernels": "statistics",
    "private_test": "_base.pytree",
    "release": "core",
    "run": "core",
}
_MODULES = {
    "accounting": "accounting",
    "audit": "audit",
    "null_laws": "null_laws",
    "catalogue": "catalogue",
    "cluster": "cluster",
    "core": "core",
    "data": "data",
    "discovery": "discovery",
    "interop": "interop",
    "mechanisms": "mechanisms",
    "noise": "noise",
    "plan": "plan",
    "power": "simulate.power",
    "programs": "programs",
    "published": "published",
    "simulate": "simulate",
    "statistics": "statistics",
    "tune": "tune",
}

__all__ = sorted([*_EXPORTS, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.{_EXPORTS[name]}"), name)
    if name == "__version__":
        return importlib.import_module("jaxdp._base.version").version()
    if name in _MODULES:
        return importlib.import_module(f"jaxdp.{_MODULES[name]}")
    raise AttributeError(f"module 'jaxdp' has no attribute {name!r}")


def exported_names() -> tuple[str, ...]:
    """Names of the exported classes and functions; modules are not among them."""
    return tuple(_EXPORTS)


def __dir__() -> list[str]:
    return __all__
