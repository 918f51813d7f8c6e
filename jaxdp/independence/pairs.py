"""All pairs of many features given one Z, p-values as a matrix: one release where the test knows how, else one each."""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core, null_laws
from jaxdp._base.check import is_concrete
from jaxdp._base.display import Readable, titled
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Account, Cost, PrivateTest, Release, Sequential
from jaxdp.data.dataset import Column
from jaxdp.independence import pair_by_pair
from jaxdp.independence.features import Features
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key
from jaxdp.spec import TestSpec
from jaxdp.statistics import sums


@frozen_pytree
class AllPairs(PrivateTest):
    """A test of every pair i < j of the columns of x, released together.

    Privacy: what `test` costs, for all pairs: the sensitivity is that of one pair times the number of pairs
    (its root in L2), so each pair gets its share of the budget. test: one with `pairwise`, the statistic of all pairs,
    and `pair_p_values`, such as PartitionGCM; `jaxdp.all_pairs` takes every other test too.
    """

    test: Any = None
    many_columns: ClassVar[bool] = True
    spec: ClassVar[TestSpec] = TestSpec(
        name="all-pairs",
        summary="a test of every pair of many columns, released together",
        needs=("test",),
        alternatives="what the test of one pair sees",
        theory="docs/theory/partition_gcm.md",
    )

    def __post_init__(self):
        if not releases_together(self.test) and isinstance(self.test, PrivateTest | None):
            raise ValueError(
                f"{type(self.test).__name__} has no statistic of all pairs together (`pairwise`); use "
                "jaxdp.all_pairs(test, key, features, z), which takes any test."
            )

    @property
    def uses_z(self) -> bool:  # type: ignore[override]
        """Whether the test of one pair conditions on z."""
        return self.test is not None and self.test.uses_z

    def specialize(self, shapes):
        """The inner test's stages, with this test at their end."""
        inner = self.test.among().specialize(shapes)
        if isinstance(inner, Sequential):
            return Sequential(first=inner.first, second=AllPairs(test=inner.second), then=_then_inside(inner.then))
        count = shapes.x.shape[1]
        if inner.num_columns is not None:
            inner = dataclasses.replace(inner, num_columns=(1, count * (count - 1) // 2, inner.num_columns[2]))
        return AllPairs(test=inner)

    def mechanism_in_force(self):
        return self.test.mechanism_in_force()

    def statistic(self, key, data):
        return self.test.pairwise(data)

    @property
    def lattice(self) -> float:  # type: ignore[override]
        """That of the test of one pair."""
        return self.test.lattice

    def partial(self, chunk, num_records=None):
        """The sums of every pair: those that the test takes of several columns x and y."""
        return self.test.partial(chunk, num_records)

    def finish(self, totals):
        return self.test.pairwise_of_sums(totals)

    def needs_all(self, shapes, of_persons=False):
        if self.test.pairwise_of_sums is None:
            return self.test.needs_all(shapes, of_persons) or core.NO_SUM
        pairs = shapes.x.shape[1] ** 2
        return self.test.needs_all(shapes, of_persons) or sums.too_large(getattr(self.test, "total_cells", 1) * pairs)

    def sensitivity(self, num_records):
        return self.test.sensitivity(num_records)

    def no_gradient(self, name):
        return self.test.no_gradient(name)

    def p_value(self, key, release):
        """One p-value for each pair, array (pairs,)."""
        return self.test.pair_p_values(key, release)

    def estimate(self, release):
        return self.test.pair_statistics(release)


def releases_together(test) -> bool:
    """Whether the test has a statistic of all pairs together; a class without one says `pairwise = None`."""
    return isinstance(test, PrivateTest) and test.pairwise is not None


@functools.lru_cache(maxsize=64)
def _then_inside(then):
    # cached: a static field must be the same object every time, or each call would recompile
    def configure(second, query, released):
        return dataclasses.replace(second, test=then(second.test, query, released))

    return configure


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class PairwiseResult(Readable):
    """P-values of all pairs as a symmetric (d, d) matrix; the diagonal is NaN.

    cost: of all pairs together. releases: what was released, one for all pairs together or one for each pair i < j, in
    the order of `numpy.triu_indices(d, k=1)`.
    """

    p_values: Any
    cost: Cost
    releases: tuple[Release, ...]
    mode: str = jax.tree.static(default="")
    method: str = jax.tree.static(default="")

    def _display(self) -> tuple[str, dict[str, Any]]:
        return titled(self.method or "all pairs", self.mode), {
            "p-values": self.p_values,
            "smallest": self._smallest(),
            "privacy": f"{self.cost}, for all pairs",
            "records": self.releases[0].num_records if self.releases else None,
        }

    def _smallest(self) -> str | None:
        """The smallest p-value and its pair, None while traced or batched."""
        if not is_concrete(self.p_values) or np.ndim(self.p_values) != 2:
            return None
        table = np.asarray(self.p_values)
        if np.isnan(table).all():
            return None
        i, j = np.unravel_index(np.nanargmin(table), table.shape)
        return f"{table[i, j]:.6g}, of features {i} and {j}"

    def holm(self):
        """Holm-adjusted p-values (family-wise error over the pairs), (d, d).

        A rank among the `num_null` draws of a test is at least 1/(1 + num_null): of m pairs none is found at level a
        unless num_null is at least m/a - 1. `jaxdp.test_pairs` draws so many by itself.
        """
        return self._adjust(null_laws.holm)

    def benjamini_hochberg(self):
        """Benjamini-Hochberg adjusted p-values (false discovery rate over the pairs), (d, d)."""
        return self._adjust(null_laws.benjamini_hochberg)

    def _adjust(self, rule):
        count = self.p_values.shape[0]
        with keys.precision(self.mode):
            adjusted = keys.settle(self.mode, rule(self.p_values[np.triu_indices(count, k=1)]))
        return as_matrix(adjusted, count)


def as_matrix(values, count: int):
    """Values of pairs i < j, (pairs,), as a symmetric (count, count) matrix with NaN on the diagonal."""
    rows, columns = np.triu_indices(count, k=1)
    if isinstance(values, np.ndarray):  # of a release: float64, whatever JAX is set to
        table = np.full((count, count), np.nan, values.dtype)
        table[rows, columns] = table[columns, rows] = values
        return table
    matrix = jnp.full((count, count), jnp.nan, values.dtype)
    return matrix.at[rows, columns].set(values).at[columns, rows].set(values)


def all_pairs(
    test: Any,
    key: Key,
    features: Any,
    z: Any = None,
    *,
    columns: tuple[Column, ...] | None = None,
    feature_columns: tuple[Column, ...] | None = None,
    ledger: Account | None = None,
) -> PairwiseResult:
    """Tests every pair of the d columns of features given the same z; the budget of `test` is that of all pairs.

    test: any test of one x and one y. One with `pairwise` (PartitionGCM, PrivateGCM, BandGCM, GCM, ...) makes one
    release of all pairs; any other runs pair by pair, each pair with an equal share of the budget.
    features: (n, d), d >= 2, scaled as x is in `Data`, or codes. feature i of a pair i < j is x, feature j is y.
    z: None, (n,) or (n, c). columns: public descriptions of the columns of z. feature_columns: those of the features;
    with them, features with levels reach a test of scores as equally spaced numbers on [-1, 1].
    ledger: charged once for all pairs, before the data are read.
    Privacy: that of `test` for everything together, by its own sensitivity for all pairs or by sequential composition.
    Errors: ValueError for tests whose y is a public group, tests whose mechanism cannot be divided, and by shapes.
    """
    mode = keys.admit(key, features, z)
    made = Features.admitted(test, features, z, columns, feature_columns)
    if releases_together(test):
        result = core.run(AllPairs(test=test), key, made.together(), ledger=ledger)
        values, cost, releases = result.p_value, result.cost, (result.release,)
    else:
        values, cost, releases = pair_by_pair.run(test, key, mode, made, ledger=ledger)
    return PairwiseResult(
        p_values=as_matrix(values, made.count), cost=cost, releases=releases, mode=mode, method=core.method_of(test)
    )
