"""Every private test of the package as an audit's subject: how it is built, and the domain that is searched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxdp
from jaxdp.data.dataset import ORDINAL, Column, Domain

RECORDS = 24
LEVELS = 3


@dataclasses.dataclass(frozen=True)
class Subject:
    """build: epsilon, records -> test. generate: key, records -> Data; the number of records has a default.

    coupled: the statistic resamples or has stages, so that no search over one fixed randomness reaches the bound; whole
    runs are audited. least: records that the test needs.
    """

    build: Callable[..., Any]
    generate: Callable[..., Any]
    coupled: bool = False
    least: int = 2


def continuous(key, records: int = RECORDS):
    """Confounded columns and one z."""
    return jaxdp.simulate.sine_confounder(key, records, effect=0.5)


def box(key, records: int = RECORDS):
    """Two columns in [-1, 1], no z."""
    x, y = jax.random.uniform(key, (2, records), minval=-1.0, maxval=1.0)
    return jaxdp.Data(x, y)


def codes(key, records: int = RECORDS):
    """Two ordered columns of three levels, and two strata."""
    x, y = jax.random.randint(key, (2, records), 0, LEVELS)
    z = jnp.arange(records) % 2
    return jaxdp.Data(x, y, z, Domain(*((Column(ORDINAL, count),) for count in (LEVELS, LEVELS, 2))))


def table(key, records: int = RECORDS):
    """Two columns of three levels."""
    data = codes(key, records)
    return dataclasses.replace(data, z=None, domain=dataclasses.replace(data.domain, z=()))


def twins(key, records: int = RECORDS):
    """Two equal columns, and two strata."""
    data = codes(key, records)
    return dataclasses.replace(data, y=data.x)


def groups(key, records: int = RECORDS):
    """Exposure of cases (the first half, public) and controls."""
    exposed = jax.random.bernoulli(key, 0.4, (records,))
    return jaxdp.Data(exposed.astype(jnp.int32), (jnp.arange(records) < records // 2).astype(jnp.int32))


def _plain(name: str, **options):
    return lambda epsilon, records=RECORDS: getattr(jaxdp, name)(epsilon=epsilon, **options)


def _case_control(name: str) -> Subject:
    def build(epsilon: float, records: int = RECORDS):
        sizes = {"num_cases": records // 2, "num_controls": records - records // 2}
        return getattr(jaxdp, name)(epsilon=epsilon, **sizes)

    return Subject(build, groups)


def _mic(name: str) -> Subject:
    return Subject(_plain(name, max_cells=6, num_null=19), box, least=4)


def _cell_choice(epsilon: float, records: int = RECORDS):
    """The first stage of `ChosenCells`; the second is `PartitionGCM`. The sensitivity of its scores is searched; a
    record moves them together, so that the selected index hardly tells neighbours apart."""
    from jaxdp.independence.conditional.chosen_cells import CellChoice
    from jaxdp.statistics.partition import Uniform

    del records
    return CellChoice(epsilon=epsilon, candidates=(2, 4), reference=Uniform())


def _vote(epsilon: float, records: int = RECORDS):
    del records
    return jaxdp.TestOfTests(epsilon=epsilon, test=jaxdp.CorrelationTest(), num_blocks=4, shuffle=False)


def wave(key, records: int = RECORDS):
    """A confounder z in [-1, 1], its two children, strongly dependent."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (records,), minval=-1.0)
    x = jnp.sin(2.0 * z) + 0.5 * jax.random.normal(key_x, (records,))
    return jaxdp.Data(x, x + 0.5 * jax.random.normal(key_y, (records,)), z)


def _crt(**options) -> Subject:
    law = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)
    return Subject(_plain("PrivateCRT", law=law, **options), wave, coupled=True)


def _median(epsilon: float, records: int = RECORDS):
    del records
    statistic_of = jaxdp.CorrelationTest().value
    return jaxdp.SubsampleAggregate(epsilon=epsilon, statistic_of=statistic_of, num_blocks=4, num_null=19)


def _axes(key, records: int = RECORDS):
    """Five columns of z, of which the first stage chooses."""
    return jaxdp.simulate.sine_confounder(key, records, effect=0.5, dim=5)


SUBJECTS: dict[str, Subject] = {
    "PartitionGCM": Subject(_plain("PartitionGCM"), continuous),
    "PrivateGCM": Subject(_plain("PrivateGCM", ridge=1.0), continuous),
    "CellChoice": Subject(_cell_choice, continuous),
    "LocalPermutation": Subject(_plain("LocalPermutation", num_permutations=39), twins, coupled=True),
    "ConditionalKendall": Subject(_plain("ConditionalKendall"), codes),
    "ConditionalSpearman": Subject(_plain("ConditionalSpearman"), codes),
    "UnitCircle": _case_control("UnitCircle"),
    "MarginAdaptive": _case_control("MarginAdaptive"),
    "ChiSquaredLaplace": _case_control("ChiSquaredLaplace"),
    "DistanceScore": _case_control("DistanceScore"),
    "NoisyProportions": _case_control("NoisyProportions"),
    "NoisyTableChi2": Subject(_plain("NoisyTableChi2", num_null=19), table),
    "ProjectedChi2": Subject(_plain("ProjectedChi2", num_null=19), table),
    "TestOfTests": Subject(_vote, box, least=20),
    "MICeLaplace": _mic("MICeLaplace"),
    "MICrLaplace": _mic("MICrLaplace"),
    "MICrGeometric": _mic("MICrGeometric"),
    "PrivateCRT-threshold": _crt(num_resamples=19),
    "PrivateCRT-normal": _crt(variant="normal"),
    "PrivateCRT-paper": _crt(variant="paper", num_resamples=19),
    "PartitionGCM-axes": Subject(_plain("PartitionGCM", accept_coarse_cells=True), _axes, coupled=True),
    "ChosenCells": Subject(_plain("ChosenCells", candidates=(2, 4)), continuous, coupled=True),
    "TestOfTests-shuffled": Subject(
        lambda epsilon, records=RECORDS: jaxdp.TestOfTests(epsilon=epsilon, test=jaxdp.CorrelationTest(), num_blocks=4),
        box,
        coupled=True,
        least=20,
    ),
    "SubsampleAggregate": Subject(_median, box, coupled=True, least=20),
}
