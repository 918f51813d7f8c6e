"""Many case/control tables against one phenotype: all of them, the first that fire, or the best few.

Source: Kakizaki, Fukuchi and Sakuma 2017, Algorithms 3 and 4; docs/theory/gwas.md. All tables share the
public groups, so one threshold serves all. Neighbours: one person's whole genotype is replaced, so in every
table one of the two counts moves by at most 1.
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.display import described
from jaxdp._base.kept_programs import kept_jit
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Cost, Norm, PrivateQuery, PrivateTest, Relation, Sensitivity, Sequential, method_of
from jaxdp.independence.tables.case_control import CaseControlTest
from jaxdp.independence.tables.margin_adaptive import BISECTED, MarginAdaptive, distance_scores
from jaxdp.mechanisms import Laplace
from jaxdp.mechanisms.selection import AUTO, TopK
from jaxdp.mechanisms.sparse_vector import SparseVector, exponential_gap_tail
from jaxdp.noise import survival as tail
from jaxdp.noise.source import Source, require_source
from jaxdp.randomness import keys, threefry_words
from jaxdp.spec import P_VALUE, SELECTION, Columns, TestSpec
from jaxdp.statistics.tables import binomial
from jaxdp.statistics.tables.unit_circle import Groups

CURVE_POINTS = 512  # values at which a null tail shared by many tables is computed exactly


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Tables:
    """Counts of K case/control tables with the same public groups: exposed cases and exposed controls, (K,).

    Private: the counts are exact. Printed, it shows no count.
    """

    exposed_cases: Any
    exposed_controls: Any

    def __repr__(self) -> str:
        cases, controls = described(self.exposed_cases), described(self.exposed_controls)
        return f"Tables(exposed_cases={cases}, exposed_controls={controls})"

    def within(self, groups: Groups):
        """Both counts, clipped to what the public groups allow."""
        parts = (self.exposed_cases, self.exposed_controls)
        return tuple(jnp.clip(jnp.asarray(part), 0, most) for part, most in zip(parts, groups, strict=True))

    @classmethod
    def from_genotypes(cls, chunks, case, *, at_least: int = 1):
        """Counts carriers in a stream of genotype blocks; only the counts stay in memory.

        chunks: iterable of arrays (n, k) of minor-allele counts 0, 1, 2 (missing: NaN or negative, counts
        as 0). case: public labels (n,), 1 for cases. at_least: alleles that make a carrier (1 dominant, 2 recessive).
        """
        case = jnp.asarray(np.asarray(case) > 0.5)
        counts = [_carriers(jnp.asarray(chunk), case, at_least) for chunk in chunks]
        if not counts:
            raise ValueError("chunks must hold at least one block of genotypes (n, k).")
        return cls(*(jnp.concatenate(part) for part in zip(*counts, strict=True)))


@kept_jit
def _carriers(genotypes, case, at_least):
    if genotypes.ndim != 2 or genotypes.shape[0] != case.shape[0]:
        raise ValueError(f"a genotype block must have shape ({case.shape[0]}, k), got {genotypes.shape}.")
    carrier = genotypes >= at_least  # NaN compares false: not a carrier

    def count(rows):
        return jnp.sum(carrier & rows[:, None], axis=0, dtype=jnp.int32)

    return count(case), count(~case)


@frozen_pytree
class GenomeTest(PrivateTest):
    """Base: tests of many tables that share public groups; `Tables` are the data.

    num_cases, num_controls: public group sizes. level: family-wise error rate.
    """

    num_cases: int | None = jax.tree.static(default=None)
    num_controls: int | None = jax.tree.static(default=None)
    level: float = jax.tree.static(default=0.05)
    tested: CaseControlTest | None = None  # the test of one table, made by `specialize`: sensitivity and score agree
    gradient_free = BISECTED

    def __post_init__(self):
        super().__post_init__()
        for name in ("num_cases", "num_controls"):
            if getattr(self, name) is None:
                raise ValueError(f"{name} must be given: the public size of the group.")
            check.at_least(1, **{name: getattr(self, name)})
        check.in_range(0.0, 0.5, level=self.level)
        if self.epsilon is None:
            raise ValueError(f"{method_of(self)} takes epsilon=.")

    @property
    def groups(self) -> Groups:
        """The public group sizes."""
        return Groups(int(self.num_cases or 0), int(self.num_controls or 0))

    def single(self) -> CaseControlTest:
        """The test of one table."""
        if self.tested is None:
            raise ValueError(f"{method_of(self)} learns the number of tables from the data: call specialize first.")
        return self.tested

    def statistic(self, key, data):
        """Scores (K,)."""
        return self.single().score(*self.counts(data))

    def counts(self, tables: Tables):
        """Counts as floats, clipped to what the public groups allow."""
        return tuple(part.astype(float) for part in tables.within(self.groups))


_of_tables = functools.partial(
    TestSpec,
    columns=Columns.GROUPS,
    options=("level",),
    needs=("tables",),
    alternatives="any dependence of two binary columns",
    theory="docs/theory/gwas.md",
)


@frozen_pytree
class EveryTable(GenomeTest):
    """One 2x2 test on every table, `epsilon` for each: K tables cost K epsilon.

    test: a `CaseControlTest` class, e.g. `UnitCircle` (default `MarginAdaptive`), at level/K.
    Privacy: K epsilon-DP (Laplace noise for the L1 bound K move). Relation REPLACE_ATTRIBUTE.
    P-value: (K,), Bonferroni-adjusted: at most `level` for any true null with probability <= level over the family.
    """

    kind: Any = jax.tree.static(default=MarginAdaptive)
    num_tables: int = jax.tree.static(default=1)

    spec: ClassVar[TestSpec] = _of_tables(
        name="every-table", summary="a test of every one of many case/control tables", publishes=P_VALUE
    )

    def specialize(self, shapes):
        num_tables = shapes.exposed_cases.shape[0]
        tested = _single(self.kind, self.epsilon, self.groups, self.level / num_tables)
        return dataclasses.replace(self, num_tables=num_tables, tested=tested)

    def mechanism_in_force(self):
        return Laplace(check.budget(self.epsilon) * self.num_tables)

    def sensitivity(self, num_records):
        return _joint(self.single(), self.num_tables)

    def p_value(self, key, release):
        single = self.single()
        return jnp.minimum(1.0, self.num_tables * null_curve(single, release.value))


@frozen_pytree
class BestTables(GenomeTest):
    """Selects the `count` tables with the strongest association, then tests them: Algorithm 4.

    Stage one: half of epsilon picks `count` tables by the exact distance score (people who must change until
    chi-squared crosses its quantile at level/K; sensitivity 1) by `TopK` (law: with Gumbel noise in one shot, of more
    than 4096 tables by permute-and-flip). Stage two: the other half tests each of them at level/K, K tables in all.
    Privacy: epsilon-DP, relation REPLACE_ATTRIBUTE; the selection is eps/2 by peeling, the tests eps/(2 count) each.
    P-value: (count,), times K (Bonferroni over all K tables, selected or not): family-wise error <= level under
    any selection, because the noise of the tests is independent of it. The indices are
    `Result.release.earlier[0].value`.
    """

    count: int = jax.tree.static(default=10)
    kind: Any = jax.tree.static(default=MarginAdaptive)
    law: str = jax.tree.static(default=AUTO)

    spec: ClassVar[TestSpec] = _of_tables(
        name="best-tables", summary="the tables that depend most, and a test of each", publishes=SELECTION
    )

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, count=self.count)

    def specialize(self, shapes):
        num_tables = shapes.exposed_cases.shape[0]
        half = 0.5 * check.budget(self.epsilon)
        shared: dict[str, Any] = {"num_cases": self.num_cases, "num_controls": self.num_controls, "level": self.level}
        if num_tables < self.count:
            raise ValueError(f"count must be at most the number of tables, got {self.count} of {num_tables}.")
        first = TableSelection(epsilon=half, count=self.count, law=self.law, num_tables=num_tables, **shared)
        tested = _single(self.kind, half / self.count, self.groups, self.level / num_tables)
        second = ChosenTables(epsilon=half, count=self.count, num_tables=num_tables, tested=tested, **shared)
        return Sequential(first=first, second=second, then=_chosen)


def _chosen(second, first, released):
    return dataclasses.replace(second, indices=released.value)


@frozen_pytree
class TableSelection(PrivateQuery):
    """Stage one of `BestTables`: indices of tables with a large distance score."""

    count: int = jax.tree.static(default=10)
    law: str = jax.tree.static(default=AUTO)
    num_cases: int = jax.tree.static(default=1)
    num_controls: int = jax.tree.static(default=1)
    num_tables: int = jax.tree.static(default=1)
    level: float = jax.tree.static(default=0.05)

    method: ClassVar[str] = "TableSelection"

    def mechanism_in_force(self):
        return TopK(epsilon=check.budget(self.epsilon), count=self.count, law=self.law)

    def statistic(self, key, data):
        """Distance scores (K,)."""
        groups = Groups(self.num_cases, self.num_controls)
        return distance_scores(groups, self.level / self.num_tables, *data.within(groups))

    def sensitivity(self, num_records):
        total = float(self.num_cases + self.num_controls)
        return Sensitivity(1.0, Norm.LINF, Relation.REPLACE_ATTRIBUTE, 0.0, -total, total)


@frozen_pytree
class ChosenTables(GenomeTest):
    """Stage two of `BestTables`: the 2x2 test on each chosen table."""

    count: int = jax.tree.static(default=10)
    num_tables: int = jax.tree.static(default=1)
    indices: Any = None

    method: ClassVar[str] = "ChosenTables"

    def mechanism_in_force(self):
        return Laplace(check.budget(self.epsilon))

    def statistic(self, key, data):
        """Scores of the chosen tables (count,)."""
        cases, controls = self.counts(data)
        return self.single().score(cases[self.indices], controls[self.indices])

    def sensitivity(self, num_records):
        return _joint(self.single(), self.count)

    def p_value(self, key, release):
        single = self.single()
        sensitivity = single.sensitivity(self.groups.total)
        return jnp.minimum(1.0, self.num_tables * single.null_tail(release.value, sensitivity))


@frozen_pytree
class ThresholdNoise:
    """Sparse vector over a whole vector of queries at once; the law of `SparseVector` with exponential noise.

    Privacy: see `FirstTables`. threshold: public.
    """

    epsilon: Any
    count: int = jax.tree.static(default=1)
    outputs: int = jax.tree.static(default=1)
    threshold: Any = 0.0

    def scales(self, bound):
        """(b1, b2) of the threshold noise and of the query noise, for queries that move by `bound`."""
        return self._sparse(bound).scales()

    def survival(self, bound):
        """x -> P(query noise - fresh threshold noise >= x)."""
        first, second = self.scales(bound)
        return lambda x: exponential_gap_tail(x - first + second, first, second)

    def perturb(self, source: Source, value, sensitivity):
        """Answers (K,): 1 fired, 0 not, -1 after the stop."""
        require_source(source)
        asked = value[: self.outputs]
        fired = self.fired(source, asked, sensitivity)
        reached = jnp.cumsum(fired) - fired < self.count
        answers = jnp.where(reached, fired.astype(jnp.int32), -1)
        return jnp.pad(answers, (0, value.shape[0] - asked.shape[0]), constant_values=-1)

    def fired(self, source: Source, asked, sensitivity):
        """Which of the queries fire, at most `count`."""
        return self._sparse(sensitivity.bound, sensitivity.error).answers_opened(source, asked, self.threshold)

    def _sparse(self, bound, error=0.0) -> SparseVector:
        return SparseVector(epsilon=self.epsilon, bound=bound, max_above=self.count, error=error)

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP."""
        return Cost(epsilon=self.epsilon, delta=0.0, rho=self.epsilon**2 / 2, relation=relation)


@frozen_pytree
class FirstTables(GenomeTest):
    """Goes through the tables in order and reports those above a noisy threshold, at most `count`: Algorithm 3.

    Stops after `count` (s1) reports or `max_outputs` (s2) tables, whichever comes first.
    Privacy: epsilon-DP by the sparse vector technique with exponential noise, never refreshed: e1 + s1 e2 =
    epsilon (docs/theory/gwas.md#first-tables), relation REPLACE_ATTRIBUTE. Releases compare integers.
    Level: the threshold is the (1 - level/s2)-quantile, over all null rates, of score + query noise - FRESH
    threshold noise, so the family-wise error over the s2 outputs is <= level (Bonferroni).
    P-value: (K,), `level` for a reported table, 1 for the others (a decision). Value: int (K,), 1 reported, 0 not,
    -1 not reached.
    As published: `jaxdp.published.PaperFirstTables`, which costs more than it claims.
    """

    count: int = jax.tree.static(default=10)
    max_outputs: int | None = jax.tree.static(default=None)
    kind: Any = jax.tree.static(default=MarginAdaptive)
    num_tables: int = jax.tree.static(default=1)
    threshold: Any = None

    noise_law: ClassVar[type[ThresholdNoise]] = ThresholdNoise

    spec: ClassVar[TestSpec] = _of_tables(
        name="first-tables", summary="the first tables that depend, by sparse vector", publishes=SELECTION
    )

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, count=self.count)
        if self.max_outputs is not None:
            check.at_least(self.count, max_outputs=self.max_outputs)

    def specialize(self, shapes):
        test = dataclasses.replace(self, num_tables=shapes.exposed_cases.shape[0])
        # Tuned for a budget that gives the noise of a query.
        each = 1.0 / test.noise().scales(1.0)[1]
        level = self.level / test.outputs
        tested = _single(self.kind, each, self.groups, level)
        return dataclasses.replace(
            test, tested=tested, threshold=_threshold(self.kind, each, tested, test.noise(), level)
        )

    @property
    def outputs(self) -> int:
        """s2: tables answered at most."""
        return min(self.max_outputs or self.num_tables, self.num_tables)

    def noise(self) -> ThresholdNoise:
        """The noise of threshold and queries."""
        return self.noise_law(epsilon=check.budget(self.epsilon), count=self.count, outputs=self.outputs)

    def mechanism_in_force(self):
        return dataclasses.replace(self.noise(), threshold=self.threshold)

    def sensitivity(self, num_records):
        single = self.single()
        return Sensitivity(single.move(), Norm.LINF, Relation.REPLACE_ATTRIBUTE, single.rounding(single.score_range()))

    def p_value(self, key, release):
        return null_laws.decision(release.value == 1, self.level)


def first_threshold(single: CaseControlTest, noise: ThresholdNoise, level: float):
    """Smallest t with P(score + query noise - threshold noise >= t) <= level at every null rate."""
    bound = single.move()
    first, second = noise.scales(bound)
    lower, upper = single.score_range()
    bracket = (lower - 40.0 * (first + second), upper + 40.0 * (first + second))
    rates = binomial.rates(single.groups)
    return binomial.critical_value(single.score, noise.survival(bound), level, single.groups, rates, bracket)


def _threshold(kind, each, single: CaseControlTest, noise: ThresholdNoise, level: float):
    """`first_threshold`, computed once per budget and groups where the budget is concrete."""
    if not check.is_concrete(noise.epsilon) or np.ndim(noise.epsilon) != 0:
        return first_threshold(single, noise, level)
    fixed = (float(noise.epsilon), noise.count, noise.outputs)
    law: Any = type(noise)
    return _cached_threshold(kind, float(each), single.groups, level, law, fixed)


@functools.lru_cache(maxsize=64)
def _cached_threshold(kind: Any, each: float, groups: Groups, level: float, law: Any, fixed: tuple) -> float:
    epsilon, count, outputs = fixed
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        noise = law(epsilon=epsilon, count=count, outputs=outputs)
        single = _single(kind, each, groups, level)
        return float(jax.jit(lambda test: first_threshold(test, noise, level))(single))


def null_curve(single: CaseControlTest, values):
    """P-values of many released scores (k,): the exact tail on a grid, log-linear between its points.

    Beyond the last point (p below 1e-12 of it or so) the p-value stays that of the last point.
    """
    sensitivity = single.sensitivity(single.groups.total)
    scale = single.mechanism_in_force().scale(sensitivity)
    low = single.critical_value(0.5)
    high = single.critical_value(0.01) + 28.0 * scale
    grid = low + (high - low) * jnp.linspace(0.0, 1.0, CURVE_POINTS)
    tails = single.null_tail(grid, sensitivity)
    between = jnp.exp(jnp.interp(values, grid, jnp.log(jnp.maximum(tails, 1e-30))))
    return jnp.where(values < low, 1.0, between)


def decide(single: CaseControlTest, key, tables: Tables, critical_value, scale):
    """Rejections (K,) of one test on every table, with the law of score + Laplace(scale) > critical_value.

    For simulations. One comparison of 32 random bits with the probability to reject is cheaper than a Laplace draw.
    """
    if keys.mode_of(key) == keys.RELEASE:
        raise ValueError("decide is for simulations; release by jaxdp.run(EveryTable(...), key, tables).")
    score = single.score(jnp.asarray(tables.exposed_cases, float), jnp.asarray(tables.exposed_controls, float))
    probability = tail.laplace(critical_value - score, scale).astype(jnp.float32)
    threshold = jnp.minimum(2.0**32 * probability, 2.0**32 - 2.0**8).astype(jnp.uint32)
    return threefry_words.random_words(key, score.shape) < threshold


def _single(kind, epsilon, groups: Groups, level: float) -> CaseControlTest:
    test = kind(epsilon=epsilon, num_cases=groups.cases, num_controls=groups.controls, level=level)
    return test.prepared() if hasattr(test, "prepared") else test


def _joint(single: CaseControlTest, count: int) -> Sensitivity:
    """`count` scores at once: the L1 bound adds up."""
    one = single.sensitivity(single.groups.total)
    return dataclasses.replace(one, bound=count * one.bound)
