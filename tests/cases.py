"""The contract table: every test of the package with data it can run on. A new test is one row here."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxdp
from jaxdp.data.dataset import BINARY, ORDINAL, Column, Domain
from jaxdp.statistics.kernels import RBF

NUM_RECORDS = 60


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration of a test.

    make: epsilon -> test. data: key, n -> Data. attack: whether the declared bound applies to the statistic for a
    fixed key (not so when the statistic resamples: then neighbours are coupled, not equal-keyed).
    sweep: field names that a compiled program must serve without recompiling.
    fixed: columns that are public to the test: neighbours share them, and they hold no bad values.
    sized: `make` takes the number of records too.
    plain: whether the cost is the budget asked for (not so for published variants that state their true cost).
    """

    name: str
    make: Callable[[Any], Any]
    data: Callable[[Any, int], Any]
    attack: bool = True
    private: bool = True
    decision: bool = False
    sweep: tuple[str, ...] = ("epsilon",)
    fixed: tuple[str, ...] = ()
    plain: bool = True
    sized: bool = False

    def test(self, epsilon, n=NUM_RECORDS):
        """The test for n records."""
        return self.make(epsilon, n) if self.sized else self.make(epsilon)


def continuous(key, n, dim=1):
    return jaxdp.simulate.sine_confounder(key, n, effect=0.5, dim=dim)


def bounded(key, n, dim=1):
    data = continuous(key, n, dim)
    return jaxdp.Data(jnp.clip(data.x / 4, -1, 1), jnp.clip(data.y / 4, -1, 1), data.z)


def several(key, n):
    first, second = (continuous(k, n) for k in jax.random.split(key))
    return jaxdp.Data(jnp.stack([first.x, second.x], 1), jnp.stack([first.y, second.y, first.x], 1), first.z)


def coded(levels_x, levels_y, levels_z=0):
    """Codes 0, ..., levels - 1 of dependent columns, with their public description."""
    domain = Domain(*((Column(ORDINAL, count),) if count else () for count in (levels_x, levels_y, levels_z)))

    def draw(key, n):
        key_z, key_x, key_y = jax.random.split(key, 3)
        z = jax.random.randint(key_z, (n,), 0, max(levels_z, 1))
        x = jax.random.randint(key_x, (n,), 0, levels_x)
        y = jnp.minimum((x + jax.random.randint(key_y, (n,), 0, levels_y)) // 2, levels_y - 1)
        return jaxdp.Data(x, y, z if levels_z else None, domain)

    return draw


def groups(key, n):
    """Exposure of cases (the first half) and controls: y is public."""
    y = (jnp.arange(n) < n // 2).astype(jnp.int32)
    x = (jax.random.uniform(key, (n,)) < 0.3 + 0.3 * y).astype(jnp.int32)
    return jaxdp.Data(x, y, None, Domain((Column(BINARY, 2),), (Column(BINARY, 2),)))


def pair(key, n):
    """Two continuous columns, no z."""
    data = continuous(key, n)
    return jaxdp.Data(jnp.tanh(data.x), jnp.tanh(data.y))


def case_control(kind, **options):
    """A test of `groups`, whose sizes must be given inside `jit`."""
    return lambda e, n: kind(epsilon=e, num_cases=n // 2, num_controls=n - n // 2, **options)


LAW = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)
BandGCM, ContrastGCM = jaxdp.BandGCM, jaxdp.ContrastGCM
PartitionGCM, PrivateGCM, PrivateCRT = jaxdp.PartitionGCM, jaxdp.PrivateGCM, jaxdp.PrivateCRT

CASES = [
    Case("partition_gcm", lambda e: PartitionGCM(epsilon=e), continuous, sweep=("epsilon", "scale_x")),
    Case("partition_gcm_columns", lambda e: PartitionGCM(epsilon=e), several),
    Case("partition_gcm_zcdp", lambda e: PartitionGCM(mechanism=jaxdp.Gaussian(e)), continuous, sweep=()),
    Case("partition_gcm_regions", lambda e: PartitionGCM(epsilon=e, num_regions=3, num_null=99), continuous),
    Case("partition_gcm_weights", lambda e: PartitionGCM(epsilon=e, num_cells=5, weights=jnp.ones(5)), continuous),
    Case(
        "partition_gcm_marginal",
        lambda e: PartitionGCM(epsilon=e),
        lambda k, n: dataclasses.replace(continuous(k, n), z=None),
    ),
    Case(
        "partition_gcm_axes",
        lambda e: PartitionGCM(epsilon=e, accept_coarse_cells=True),
        lambda k, n: continuous(k, n, 5),
    ),
    Case("partition_gcm_standardized", lambda e: PartitionGCM(epsilon=e, standardize=True), bounded),
    Case("band_gcm", lambda e: BandGCM(epsilon=e, enforce_rule=False), continuous, sweep=("epsilon", "scale_x")),
    Case("band_gcm_columns", lambda e: BandGCM(epsilon=e, enforce_rule=False), several),
    Case(
        "band_gcm_released_zcdp",
        lambda e: BandGCM(mechanism=jaxdp.Gaussian(e), variance="released", enforce_rule=False),
        continuous,
        sweep=(),
    ),
    Case(
        "contrast_gcm",
        lambda e: ContrastGCM(epsilon=e, enforce_rule=False),
        lambda k, n: continuous(k, n, 2),
        sweep=("epsilon", "scale_x"),
    ),
    Case("chosen_cells", lambda e: jaxdp.ChosenCells(epsilon=e, candidates=(2, 4)), continuous),
    Case(
        "private_gcm_tight", lambda e: PrivateGCM(epsilon=e, ridge=1.0), bounded, sweep=("epsilon", "ridge", "kernel")
    ),
    Case("private_gcm_paper", lambda e: PrivateGCM(epsilon=e, variant="paper"), bounded, sweep=("epsilon", "ridge")),
    Case(
        "local_permutation",
        lambda e: jaxdp.LocalPermutation(epsilon=e, num_permutations=39),
        continuous,
        attack=False,
        decision=True,
    ),
    Case("crt_threshold", lambda e: PrivateCRT(epsilon=e, law=LAW, num_resamples=39), continuous, decision=True),
    Case("crt_normal", lambda e: PrivateCRT(epsilon=e, law=LAW, variant="normal"), continuous),
    Case("crt_paper", lambda e: PrivateCRT(epsilon=e, law=LAW, variant="paper"), continuous, decision=True),
    Case(
        "crt_kernel",
        lambda e: PrivateCRT(epsilon=e, law=LAW, kernel=RBF(lengthscale=1.0), ridge=1.0, num_resamples=39),
        continuous,
        decision=True,
    ),
    Case(
        "all_pairs",
        lambda e: jaxdp.AllPairs(test=PartitionGCM(epsilon=e)),
        lambda k, n: _features(several(k, n)),
        sweep=(),
    ),
    Case("kendall", lambda e: jaxdp.ConditionalKendall(epsilon=e), continuous),
    Case("kendall_codes", lambda e: jaxdp.ConditionalKendall(epsilon=e), coded(2, 3, 2)),
    Case("kendall_marginal_zcdp", lambda e: jaxdp.ConditionalKendall(mechanism=jaxdp.Gaussian(e)), pair, sweep=()),
    Case("kendall_paper", lambda e: jaxdp.ConditionalKendall(epsilon=e, variant="paper"), coded(3, 3, 2), plain=False),
    Case("spearman", lambda e: jaxdp.ConditionalSpearman(epsilon=e), continuous),
    Case("unit_circle", case_control(jaxdp.UnitCircle), groups, fixed=("y",), sized=True),
    Case("unit_circle_estimated", case_control(jaxdp.UnitCircle, null="estimated"), groups, fixed=("y",), sized=True),
    Case("margin_adaptive", case_control(jaxdp.MarginAdaptive), groups, fixed=("y",), sized=True),
    Case("chi2_laplace", case_control(jaxdp.ChiSquaredLaplace), groups, fixed=("y",), sized=True),
    Case("distance_score", case_control(jaxdp.DistanceScore), groups, fixed=("y",), sized=True),
    Case("noisy_proportions", case_control(jaxdp.NoisyProportions), groups, fixed=("y",), sized=True),
    Case("noisy_table", lambda e: jaxdp.NoisyTableChi2(epsilon=e, num_null=39), coded(3, 3)),
    Case("projected_chi2", lambda e: jaxdp.ProjectedChi2(epsilon=e, num_null=39), coded(2, 3)),
    Case(
        "goodness_of_fit",
        lambda e: jaxdp.ProjectedGoodnessOfFit(epsilon=e, probabilities=[0.25, 0.5, 0.25], num_null=39),
        coded(3, 3),
    ),
    Case(
        "vote",
        lambda e: jaxdp.TestOfTests(epsilon=e, test=jaxdp.CorrelationTest(), num_blocks=4),
        pair,
        attack=False,
    ),
    Case(
        "median",
        lambda e: jaxdp.SubsampleAggregate(
            epsilon=e, statistic_of=jaxdp.CorrelationTest().value, num_blocks=4, num_null=39
        ),
        pair,
        attack=False,
    ),
    Case("mic_e", lambda e: jaxdp.MICeLaplace(epsilon=e, max_cells=6, num_null=39), pair),
    Case("mic_r", lambda e: jaxdp.MICrLaplace(epsilon=e, num_null=39), pair),
    Case("mic_r_ranges", lambda e: jaxdp.MICrLaplace(epsilon=e, max_cells=6, num_null=39, range_share=0.3), pair),
    Case("mic_geometric", lambda e: jaxdp.MICrGeometric(epsilon=e, max_cells=6, num_null=39), pair),
    Case("gcm", lambda e: jaxdp.GCM(ridge=0.1), continuous, attack=False, private=False, sweep=("ridge", "kernel")),
    Case(
        "gcm_columns",
        lambda e: jaxdp.GCM(ridge=0.1, num_null=99),
        several,
        attack=False,
        private=False,
        sweep=("ridge",),
    ),
    Case("crt", lambda e: jaxdp.CRT(law=LAW, num_resamples=39), continuous, attack=False, private=False, sweep=()),
]


def _features(data):
    return dataclasses.replace(data, x=data.y)


BY_NAME = {case.name: case for case in CASES}
