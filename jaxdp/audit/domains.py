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
    neighbours: () -> worst pair of data sets, in the place of a search. view: result of a run -> the number that whole
    runs on that pair are told apart by; without one the mechanism runs on the two statistics.
    """

    build: Callable[..., Any]
    generate: Callable[..., Any]
    coupled: bool = False
    least: int = 2
    neighbours: Callable[[], tuple[Any, Any]] | None = None
    view: Callable[[Any], Any] | None = None

    @property
    def whole(self) -> bool:
        """Whether whole runs are audited, not the mechanism on two statistics."""
        return self.coupled and (self.neighbours is None or self.view is not None)


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


def _plane(key, records: int = RECORDS):
    """Two columns of z, between whose records planes are fitted."""
    return jaxdp.simulate.sine_confounder(key, records, effect=0.5, dim=2)


def features(key, records: int = RECORDS):
    """A table of three columns in [-1, 1]."""
    return jax.random.uniform(key, (records, 3), minval=-1.0, maxval=1.0)


def outlier():
    """All records of `features` in one corner, and one of them in the opposite corner: every coefficient moves."""
    low = jnp.full((RECORDS, 3), -0.9)
    return low, low.at[0].set(0.9)


def outlier_of_one_pair():
    """The first pair of `features` alone moves: the record goes to the opposite corner in two columns."""
    low = jnp.full((RECORDS, 3), -0.9)
    return low, low.at[0, :2].set(0.9)


def two_features(key, records: int = RECORDS):
    """Two features and one z."""
    data = continuous(key, records)
    pair = jnp.stack([data.x, data.y], axis=1)
    return jaxdp.Data(pair, pair, data.z)


def moved():
    """A record that adds to the covariance of its cell moves to a cell from which it takes as much."""
    half, far = RECORDS // 2, 1e3
    z = jnp.concatenate([jnp.full(half, -far), jnp.full(half, far), jnp.array([-far])])
    x = jnp.full(2 * half + 1, -far).at[-1].set(far)
    y = jnp.where(z < 0, -far, far).at[-1].set(far)
    sides = (jnp.stack([x, y], axis=1), z), (jnp.stack([x, y.at[-1].set(-far)], axis=1), z.at[-1].set(far))
    return tuple(jaxdp.Data(pair, pair, where) for pair, where in sides)


TABLES, GROUP = 4, 20  # case/control tables of one person's genotype, and people of each group


def many_tables(key, records: int = TABLES):
    """Counts of case/control tables without effect."""
    return jaxdp.Tables(*jnp.sum(jax.random.bernoulli(key, 0.3, (2, records, GROUP)), axis=2))


def one_genotype():
    """One person's genotype changes and moves every table by the whole bound of `UnitCircle`: 19 cases become 20."""
    controls = jnp.full(TABLES, 2)
    return tuple(jaxdp.Tables(jnp.full(TABLES, cases), controls) for cases in (GROUP - 1, GROUP))


def one_rare_genotype():
    """One person's genotype leaves all tables but the first alone."""
    controls = jnp.full(TABLES, 2)
    return tuple(jaxdp.Tables(jnp.full(TABLES, 8).at[0].set(cases), controls) for cases in (GROUP - 1, GROUP))


def _genome(name: str, **options):
    def build(epsilon: float, records: int = RECORDS):
        del records
        each = epsilon / TABLES if name == "EveryTable" else epsilon  # K tables cost K epsilon
        sizes = {"num_cases": GROUP, "num_controls": GROUP, "kind": jaxdp.UnitCircle}
        return getattr(jaxdp, name)(epsilon=each, **sizes, **options)

    return build


def answers(result):
    """Places of the reported tables, as one number."""
    fired = result.release.value == 1
    return jnp.sum(jnp.where(fired, 2.0 ** jnp.arange(TABLES), 0.0))


def chosen(result):
    """Released scores of the table that moves, less the half way; 0 if it was not chosen."""
    place = result.release.earlier[0].value
    return jnp.sum(jnp.where(place == 0, result.release.value, 0.0))


def _all_pairs(epsilon: float, records: int = RECORDS):
    del records
    return jaxdp.AllPairs(test=jaxdp.PartitionGCM(epsilon=epsilon))


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
    "ProjectedGoodnessOfFit": Subject(
        _plain("ProjectedGoodnessOfFit", probabilities=[0.25, 0.5, 0.25], num_null=19), table
    ),
    "BandGCM": Subject(_plain("BandGCM", enforce_rule=False), continuous),
    "ContrastGCM": Subject(_plain("ContrastGCM", enforce_rule=False), _plane, least=20),
    "AllPairs": Subject(_all_pairs, two_features, coupled=True, neighbours=moved),
    "MICrPairs": Subject(_plain("MICrPairs", max_cells=6), features, coupled=True, neighbours=outlier),
    "MICrTopPair": Subject(_plain("MICrTopPair", max_cells=6), features, coupled=True, neighbours=outlier_of_one_pair),
    "EveryTable": Subject(_genome("EveryTable"), many_tables, coupled=True, neighbours=one_genotype),
    "FirstTables": Subject(
        _genome("FirstTables", count=1), many_tables, coupled=True, neighbours=one_genotype, view=answers
    ),
    "BestTables": Subject(
        _genome("BestTables", count=2), many_tables, coupled=True, neighbours=one_rare_genotype, view=chosen
    ),
}
