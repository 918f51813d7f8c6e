"""Configurations of the continuous tests for audits and the contract: one tuple a test, by the test's name."""

import dataclasses
import functools
import math

from jaxdp.examples import AuditSettings, BestKnown, Example, PairSearch, in_zcdp, without_noise
from jaxdp.independence.continuous import moment_examples, partition_examples, regression_examples
from jaxdp.independence.continuous.chosen_cells import CellChoice
from jaxdp.simulate import examples
from jaxdp.simulate.designs import confounder
from jaxdp.statistics import partition
from jaxdp.statistics.kernel_ridge.kernels import RBF

EXAMPLE = {"enforce_rule": False}

WORST = "jaxdp.independence.continuous.worst_pairs"

_BAND = Example(
    examples.continuous,
    null=examples.gradual,
    fields=EXAMPLE,
    attack_tightness=1.0,
    worst_pairs=f"{WORST}:between",
    search=PairSearch(records=13),
)

band_gcm = (
    _BAND,
    dataclasses.replace(
        _BAND,
        data=examples.several_columns,
        null=functools.partial(examples.gradual, count=(2, 3)),
        label="columns",
        worst_pairs=f"{WORST}:between_columns",
    ),
    in_zcdp(
        _BAND,
        fields={"variance": "released", **EXAMPLE},
        label="released-zcdp",
        attack_tightness={"band": 1.0, "squares": 1.0},
    ),
)


def _first_stage(cls, epsilon, **fields):
    """The choice of cells alone. A record moves all scores together, so that the choice hardly tells neighbours apart;
    its sensitivity is searched."""
    return CellChoice(epsilon=epsilon, **fields)


chosen_cells = (
    Example(
        examples.continuous,
        null=confounder.sine_confounder,
        fields={"candidates": (2, 4)},
        attack_tightness=partition_examples.after("CellChoice", **{"": 0.98}),
        worst_pairs=f"{partition_examples.WORST}:cells",
        search=partition_examples.SEARCH,
        coupled=True,
    ),
    Example(
        examples.continuous,
        without_null="the first stage alone tests nothing",
        fields={"candidates": (2, 4), "reference": partition.Uniform()},
        make=_first_stage,
        label="choice",
        attack_tightness=0.98,
        worst_pairs=f"{partition_examples.WORST}:cells",
        search=partition_examples.SEARCH,
        audit=AuditSettings(),
        bounds_only=True,
    ),
)

FIELDS = {"num_rotations": 1, "enforce_rule": False, "caliper": math.inf}

_CONTRAST_FEATURES = Example(
    functools.partial(examples.continuous, dim=2),
    null=functools.partial(examples.gradual, dim=2),
    fields=FIELDS,
    attack_tightness=0.99,
    worst_pairs=f"{WORST}:found",
    search=PairSearch(records=16),
    min_records=16,
)

contrast_features = (
    _CONTRAST_FEATURES,
    in_zcdp(
        _CONTRAST_FEATURES,
        null=None,
        attack_tightness=BestKnown(
            0.84, "found by search alone: every window would have to see the linear entry alone"
        ),
        bounds_only=True,
    ),
)

_WINDOWS = "found by search alone: no pair is known in which all windows of a record change sign"
_CURVES = "found by search alone: windows of four curves would all have to change sign together"

_contrasts = functools.partial(
    Example, functools.partial(examples.continuous, dim=2), search=PairSearch(records=20), min_records=20
)

contrast_gcm = (
    _contrasts(
        null=functools.partial(examples.gradual, dim=2),
        fields={"num_rotations": 1, "enforce_rule": False},
        attack_tightness=BestKnown(0.84, _WINDOWS),
    ),
    _contrasts(
        fields={"enforce_rule": False}, label="curves", attack_tightness=BestKnown(0.54, _CURVES), bounds_only=True
    ),
    _contrasts(
        fields={"num_rotations": 1, "closest": 0.5, "enforce_rule": False},
        label="closest",
        attack_tightness=BestKnown(0.5, _WINDOWS),
        bounds_only=True,
    ),
    _contrasts(
        null=functools.partial(examples.gradual, dim=2),
        fields={"num_rotations": 1, "check_roughness": True, "enforce_rule": False},
        label="roughness",
        attack_tightness={
            "windows": BestKnown(0.5, _WINDOWS),
            "coarse": BestKnown(0.28, "16 classes need 300 records; tests/independence/continuous attacks two of 12"),
        },
        search=PairSearch(records=80),
        min_records=80,
    ),
)

crt = (
    Example(
        examples.continuous,
        null=confounder.sine_confounder,
        fields={"law": examples.LAW, "num_resamples": 39},
        make=without_noise,
    ),
)

_FEATURES = Example(
    examples.continuous,
    null=examples.gradual,
    fields={"enforce_rule": False},
    attack_tightness={"sums": 1.0, "squares": 0.98},
    worst_pairs=f"{WORST}:between_features",
    search=PairSearch(records=13),
)

feature_gcm = (
    _FEATURES,
    in_zcdp(_FEATURES),
    dataclasses.replace(
        _FEATURES,
        data=examples.in_a_schema,
        null=examples.gradual_in_a_schema,
        label="centred",
        attack_tightness={
            "QuantileCuts.x1": 1.0,
            "QuantileCuts.y1": 1.0,
            "FeatureGCM.sums": 1.0,
            "FeatureGCM.squares": BestKnown(0.9, "noisy centres are in nobody's hands; 0.98 about known ones"),
        },
        worst_pairs=f"{WORST}:between_features_in_a_schema",
        coupled=True,
    ),
)

gcm = (
    Example(examples.continuous, null=confounder.sine_confounder, fields={"ridge": 0.1}, make=without_noise),
    Example(
        examples.several_columns,
        null=examples.separate_columns,
        fields={"ridge": 0.1, "num_null": 99},
        make=without_noise,
        label="columns",
    ),
)

linear_regression = moment_examples.REGRESSION
logistic_regression = regression_examples.LOGISTIC
poisson_regression = regression_examples.POISSON_EXAMPLES
m_estimator = regression_examples.M_ESTIMATOR
local_permutation = (
    Example(
        examples.continuous,
        null=functools.partial(examples.leaning_codes, levels=(5, 7, 4)),
        fields={"num_permutations": 39},
        attack_tightness={"greater.0": 1.0, "greater.1": 1.0, "less.0": 1.0, "less.1": 1.0},
        worst_pairs=f"{WORST}:permutations",
        search=PairSearch(held=("z",), view=f"{WORST}:sorted_copies"),
        audit=AuditSettings(data=examples.twins),
        coupled=True,
    ),
)

mean_difference = moment_examples.MEANS
partial_correlation = moment_examples.CORRELATIONS
partition_gcm = partition_examples.EXAMPLES
_DRAWN = "the same bound as of the observed sum, but residuals of resamples are drawn, not chosen"

private_crt = (
    Example(
        examples.continuous,
        null=confounder.sine_confounder,
        fields={"law": examples.LAW, "num_resamples": 39},
        attack_tightness={"0": 1.0, "1": 1.0},
        worst_pairs=f"{WORST}:rows_turned",
        search=PairSearch(records=13),
        audit=AuditSettings(examples.strong, fields={"law": examples.LAW, "num_resamples": 19}),
        coupled=True,
    ),
    Example(
        examples.continuous,
        null=confounder.sine_confounder,
        fields={"law": examples.LAW, "kernel": RBF(lengthscale=1.0), "ridge": 1.0, "num_resamples": 39},
        label="kernel",
        attack_tightness={"0": 0.98, "1": BestKnown(0.7, _DRAWN)},
        worst_pairs=f"{WORST}:clusters",
        coupled=True,
    ),
)

private_crt_normal = (
    dataclasses.replace(
        private_crt[0],
        fields={"law": examples.LAW},
        attack_tightness={"statistic": 1.0, "variance": 1.0},
        audit=AuditSettings(examples.strong),
    ),
)

_JOINT = "sum of two bounds not attained together; 0.78 is the largest share known (docs/theory/kernel_ridge.md)"

private_gcm = (
    Example(
        examples.bounded,
        null=confounder.sine_confounder,
        fields={"ridge": 1.0},
        attack_tightness=BestKnown(0.75, _JOINT),
        worst_pairs=f"{WORST}:clusters",
        audit=AuditSettings(data=examples.continuous),
    ),
)

winsorised_mean_difference = moment_examples.GROUPS
winsorised_partial_correlation = moment_examples.PARTIAL
