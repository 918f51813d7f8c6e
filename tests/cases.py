"""The contract table: every test of the package with data it can run on. A new test is one row here."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxdp
from jaxdp.statistics.kernels import RBF


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration of a test.

    make: epsilon -> test. data: key, n -> Data. attack: whether the declared bound applies to the statistic for a
    fixed key (not so when the statistic resamples: then neighbours are coupled, not equal-keyed).
    sweep: field names that a compiled program must serve without recompiling.
    """

    name: str
    make: Callable[[Any], Any]
    data: Callable[[Any, int], Any]
    attack: bool = True
    private: bool = True
    decision: bool = False
    sweep: tuple[str, ...] = ("epsilon",)


def continuous(key, n, dim=1):
    return jaxdp.simulate.sine_confounder(key, n, effect=0.5, dim=dim)


def bounded(key, n, dim=1):
    data = continuous(key, n, dim)
    return jaxdp.Data(jnp.clip(data.x / 4, -1, 1), jnp.clip(data.y / 4, -1, 1), data.z)


def several(key, n):
    first, second = (continuous(k, n) for k in jax.random.split(key))
    return jaxdp.Data(jnp.stack([first.x, second.x], 1), jnp.stack([first.y, second.y, first.x], 1), first.z)


LAW = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)
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
    Case("partition_gcm_axes", lambda e: PartitionGCM(epsilon=e), lambda k, n: continuous(k, n, 5)),
    Case("partition_gcm_standardized", lambda e: PartitionGCM(epsilon=e, standardize=True), bounded),
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
