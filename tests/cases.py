"""The contract table: every example of the catalogue, and queries that are not exported. No test is named here."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import numpy as np

import jaxdp
from jaxdp._base.pytree import frozen_pytree
from jaxdp.audit import cases
from jaxdp.catalogue import with_balanced_groups
from jaxdp.core import Norm, PrivateQuery, PrivateTest, Sensitivity, cost_of
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import default_query
from jaxdp.discovery.methods.marginal_pc import NoisyMarginals
from jaxdp.discovery.methods.table_pc import NoisyHistogram
from jaxdp.examples import BestKnown, Example, PairSearch, with_gaussian_noise
from jaxdp.simulate.examples import records
from jaxdp.spec import Columns

NUM_RECORDS = cases.RECORDS
SWEPT = ("epsilon", "ridge", "scale_x", "kernel")  # fields that a compiled program serves, where a test has them


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration of a test, or of a query that is no test (its release has no p-value): an example by its name.

    make: epsilon, number of records -> test. columns: how the test wants x and y.
    """

    name: str
    make: Callable[[Any, int], Any]
    example: Example
    private: bool = True
    columns: Columns = Columns.SCORES

    @property
    def data(self):
        """(key, n) -> Data."""
        return self.example.data

    def test(self, epsilon, n=NUM_RECORDS):
        """The test for n records."""
        return self.make(epsilon, n)

    @functools.cached_property
    def sweep(self) -> tuple[str, ...]:
        """Names of the fields that a compiled program must serve without recompiling."""
        test = self.test(1.0)
        if not test.one_program:
            return ()
        static = {field.name for field in dataclasses.fields(test) if field.metadata.get("static")}
        static -= {"epsilon"}  # which is to be a leaf of every test
        return tuple(name for name in SWEPT if name not in static and getattr(test, name, None) is not None)

    @property
    def fixed(self) -> tuple[str, ...]:
        """Columns that are public to the test: neighbours share them, and they hold no bad values."""
        return ("y",) if self.columns is Columns.GROUPS and not self.is_of_tables else ()

    @functools.cached_property
    def is_of_tables(self) -> bool:
        """Whether rows are tables, not records."""
        return not hasattr(jax.eval_shape(lambda key: self.data(key, 4), jax.random.key(0)), "y")

    @functools.cached_property
    def rho(self) -> bool:
        """Whether the budget is that of Gaussian noise."""
        shapes = jax.eval_shape(lambda key: self.data(key, NUM_RECORDS), jax.random.key(0))
        return not np.isfinite(cost_of(self.test(1.0), shapes).epsilon)


@frozen_pytree
class DecisionScores(PrivateQuery):
    """The scores that the private searches compare with a threshold, as one vector: Linf bound 1."""

    method: ClassVar[str] = "DecisionScores"
    one_program: ClassVar[bool] = False

    def mechanism_in_force(self):
        return jaxdp.ReportNoisyMax(epsilon=self.epsilon)

    def statistic(self, key, data):
        queries = [(0, 1, ()), (0, 2, ()), (1, 2, ()), (0, 1, (2,)), (0, 2, (1,))]
        return default_query(4.0, NUM_RECORDS).values(Counts(data), queries)

    def sensitivity(self, num_records):
        return Sensitivity(1.0, Norm.LINF, jaxdp.Relation.REPLACE_ONE, error=1e-12)


def decisions(n=101):
    """Worst pair for the queries of a search: a record concordant with all of a discordant stratum becomes discordant
    with all of another; one stratum is larger, so that U keeps its sign."""
    few, many = 2 * n // 5, n - 1 - 2 * n // 5
    x = np.concatenate([[2], np.arange(few) % 2, np.arange(many) % 2])
    y = np.concatenate([[2], (np.arange(few) + 1) % 2, np.arange(many) % 2 + 1])
    z = np.concatenate([[0], np.zeros(few, int), np.ones(many, int)])
    before = np.stack([x, y, z], axis=1)
    after = before.copy()
    after[0] = (2, 0, 1)
    return [tuple(as_records(side, (3, 3, 2)) for side in (before, after))]


def of_catalogue(found: cases.Configured) -> Case:
    """The case of an example of the catalogue."""
    return Case(found.name, found.build, found.example, found.private, found.entry.spec.columns)


def internal(name: str, cls: type, example: Example) -> Case:
    """The case of a query that is not exported: attacked, and nothing else."""
    return Case(name, lambda e, n: with_balanced_groups(example.build(cls, e), n), example)


JOINS = jaxdp.Relation.ADD_OR_REMOVE_ONE
TWO_PARTS = "U and V each have a bound, and the decision adds both; no record moves both all the way"
INTERNAL = [
    internal("noisy-histogram", NoisyHistogram, Example(records, fields={"levels": (2, 3)}, attack_tightness=1.0)),
    internal(
        "noisy-histogram-joins",
        NoisyHistogram,
        Example(records, fields={"levels": (2, 3), "relation": JOINS}, attack_tightness=1.0),
    ),
    internal(
        "noisy-marginals",
        NoisyMarginals,
        Example(
            functools.partial(records, levels=(2, 3, 2)),
            fields={"levels": (2, 3, 2), "width": 2},
            make=with_gaussian_noise,
            attack_tightness=1.0,
        ),
    ),
    internal(
        "decision-scores",
        DecisionScores,
        Example(
            functools.partial(records, levels=(3, 3, 2)),
            attack_tightness=BestKnown(0.67, TWO_PARTS),
            worst_pairs=decisions,
            search=PairSearch(rounds=3),
        ),
    ),
]

EVERY = [of_catalogue(found) for found in cases.all_examples().values()]
# Queries that are no tests, and configurations that differ in their bounds alone, are attacked and nothing else.
CASES = [case for case in EVERY if isinstance(case.test(1.0), PrivateTest) and not case.example.bounds_only]
BY_NAME = {case.name: case for case in [*EVERY, *INTERNAL]}
ATTACKED = [case for case in BY_NAME.values() if case.private]
