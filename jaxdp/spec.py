"""What a test says about itself, once: every command, planner, simulator, audit and plug-in reads it here.

A test carries its `TestSpec` as the class variable `spec`; `jaxdp.catalogue` finds it by name. Nothing else in the
package may hold a list of tests.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping
from typing import Any

from jaxdp.data.columns import CONTINUOUS, Domain

P_VALUE, DECISION, SELECTION, STAGE = "p-value", "decision", "selection", "stage"
COEFFICIENTS = "list of coefficients"
DEPENDENCE = "dependence"  # what tests find, but for those of one column


# Kinds of dependence that a user can ask for; each includes the ones before it.
LINEAR, MONOTONE, ANY = "linear", "monotone", "any"
BY_STRATUM = ", averaged over the strata of Z by their numbers of records"  # left out where there is no Z
KINDS_OF_ALTERNATIVES = (LINEAR, MONOTONE, ANY)


class Columns(enum.Enum):
    """The coding of x and y that a test takes.

    SCORES: numbers. Continuous columns lie on [-1, 1], coded ones are spread over [-1, 1], unordered levels become
    indicators. CODES: codes 0, ..., levels - 1 of discrete columns. GROUPS: codes, and y is a public group label.
    Z keeps its codes in every case.
    """

    SCORES = "scores"
    CODES = "codes"
    GROUPS = "groups"

    @property
    def coded(self) -> bool:
        """Whether discrete x and y arrive as codes."""
        return self is not Columns.SCORES


@dataclasses.dataclass(frozen=True)
class Options:
    """Public settings that a caller may give to a builder; None (or empty) leaves the test's default.

    level: significance level of tests that release a decision. residual_scale: (x, y) guesses of the residual sd in
    units of the [-1, 1] scaling. num_cells: cells of Z. ridge, lengthscale: of kernel methods. law: the known law of X
    given Z, for model-X tests. num_records: public number of records, for defaults that grow with it. of_many: one of
    many questions, whose answers show no doubts that a single release raises. fields: any further fields of the
    test's class, by name.
    """

    level: float = 0.05
    residual_scale: tuple[float, float] | None = None
    num_cells: int | None = None
    ridge: float | None = None
    lengthscale: float | None = None
    law: Any = None
    num_records: int | None = None
    of_many: bool = False
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def given(self) -> tuple[str, ...]:
        """Names of the settings that a test must read to obey."""
        always = ("level", "num_records", "of_many", "fields")
        named = (field.name for field in dataclasses.fields(self) if field.name not in always)
        return tuple(name for name in named if getattr(self, name) is not None)


Builder = Callable[[type, float, Domain | None, Options], Any]


def budget_only(cls: type, epsilon: float, domain: Domain | None, options: Options):
    """The builder of a test that needs nothing but its budget."""
    return cls(epsilon=epsilon)


def at_level(cls: type, epsilon: float, domain: Domain | None, options: Options):
    """The builder of a test that is tuned for, or decides at, a significance level."""
    return cls(epsilon=epsilon, level=options.level)


@dataclasses.dataclass(frozen=True)
class Planning:
    """What the planner needs about a test.

    formula: power as a function (setting, n, budget, effect, level), or its place "file:function" in `jaxdp.plan`; None
    where only simulation serves. narrow: the formula holds for at most one continuous column of Z. gaussian: whether
    the test takes Gaussian noise; gaussian_formula: where the formula knows it, "never", "natural" (no schema, units of
    the design), "narrow" or "always". min_records: minimum n for the
    asymptotic approximation.
    slow: simulated at seconds a point, so that comparisons leave it out. reference: the non-private test that its
    cost is measured against, by its formula's place in `jaxdp.plan`. table: planned for a 2 x 2 table if nothing is
    said; without_z: for two continuous columns on [-1, 1] without Z; coded_z: for such columns given a coded one.
    linear: it removes what is linear in Z and no more, so that whoever names it plans for means that are.
    setting: place of the setting in `jaxdp.plan` that it is planned for if nothing is said, where these do not serve.
    unordered: the formula holds for levels without an order, of which there are more than two.
    """

    formula: Any = None
    narrow: bool = False
    gaussian: bool = True
    gaussian_formula: str = "never"
    min_records: int = 20
    slow: bool = False
    reference: str = "continuous:gcm_power"
    table: bool = False
    without_z: bool = False
    coded_z: bool = False
    linear: bool = False
    setting: str = ""
    unordered: bool = False


@dataclasses.dataclass(frozen=True)
class OneColumn:
    """Words of a test that asks about X alone, without Y.

    asks: what it asks about "{x}", with a question mark. finds: what it finds, beside "dependence" of the other tests.
    """

    asks: str
    finds: str


@dataclasses.dataclass(frozen=True)
class TestSpec:
    """Everything the rest of the package needs to know about a test.

    name: its only name, in commands, results, ledgers, records. summary: one line for people.
    known_as: names of the classical tests that people look for and that this one stands in for ("t-test"); `find` takes
        them in any case, with any marks between words, and answers say what was taken. No two tests may claim one.
    columns: how x, y come. publishes: "p-value" or "decision" (a bit at `level`), "selection" (which of many),
    "list of coefficients" or "stage" (a public setting of a later test). private: False for references that only
    simulations may run.
    from_domain: (class, epsilon, domain, options) -> test, the only builder; domain is None for data in natural units.
    options: names of the `Options` that the builder reads. needs: options without which it cannot build ("law").
    assumption: what the level rests on beyond the hypothesis where Z is continuous. alternatives: the
    kinds of dependence that the test has power against, in words.
    effect: what `Result.effect` estimates, in words; empty where the test has no effect size. own_units: what it is
    multiplied by to be in the columns' own units, from the `ColumnRule`s of x and of y; None for a pure number.
    together: whether the intervals of several effects hold together with probability 0.95, not each by itself.
    describe_effect: more words about it, from the test, the rules of x and of y, and the interval of one pair.
    size: what it estimates of columns of this coded domain, where that is not `effect` and has no direction: 0 or more.
    of_columns: (rules of x, of y) -> fields of the test that the schema settles, unless a caller gives them.
    memory: number of records -> bytes beyond a few copies of the data.
    needs_all: why the test must have all records at once, in half a sentence; read where it has no sums.
    accepts: whether a query about columns of this coded domain can be asked. why_not: where it cannot, what the columns
        must be and what they are, as a sentence without a full stop; "" where the general words do.
    rank: among all tests for such a domain; the highest rank is the default, rank 0 is never chosen.
    one_column: of a test of X alone its words; its `accepts` is given the columns of X as those of Y too.
    of_times: whether it asks about times to an event; what a schema declares as such goes to no other test that is not
        named by its method.
    furthest: (rules of x, of y) -> the largest distance of an effect from that of no dependence, in its own units; a
        margin must be smaller.
    one_effect: whether its effect of columns of this coded domain is one number, which a margin can be about.
    suitability: for a user who names the kind of dependence (`KINDS_OF_ALTERNATIVES`), the rank of the test for each
        kind and such a domain among all tests; kinds that are left out are not covered.
    shown: (entry of the released value, its name for people) whose null law can be drawn; "entry/0" is the first number
        of an entry that is an array, an empty entry a statistic that is standard normal under the null.
    true_epsilon: of a published mechanism (`jaxdp.published`), the epsilon that it really has, in words; recommended
    tests cost what is asked for and leave it empty.
    planning: None for tests that the planner does not offer. theory: page of the documentation with proofs, without a
    heading: "docs/theory/partition_gcm.md".
    examples: configurations with data to run on (`jaxdp.Example`), the plainest first, of a test of another package;
    those of the package's own tests are in `jaxdp.audit.cases`.
    """

    __test__ = False  # no pytest collection

    name: str
    summary: str
    known_as: tuple[str, ...] = ()
    columns: Columns = Columns.SCORES
    publishes: str = P_VALUE
    private: bool = True
    from_domain: Builder = budget_only
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    assumption: str = ""
    alternatives: str = ""
    effect: str = ""
    own_units: Callable[[tuple, tuple], float] | None = None
    of_columns: Callable[[tuple, tuple], Mapping[str, Any]] = lambda x, y: {}
    together: bool = True
    describe_effect: Callable[[Any, tuple, tuple, tuple], str] | None = None
    size: Callable[[Domain], str] = lambda domain: ""
    memory: Callable[[int], int] | None = None
    needs_all: str = ""
    accepts: Callable[[Domain], bool] = lambda domain: True
    why_not: Callable[[Domain], str] = lambda domain: ""
    rank: Callable[[Domain], int] = lambda domain: 0
    one_column: OneColumn | None = None
    of_times: bool = False
    one_effect: Callable[[Domain], bool] = lambda domain: on_a_line(domain)
    furthest: Callable[[Any, Any], float] = lambda x, y: math.inf
    suitability: Callable[[Domain], Mapping[str, int]] = lambda domain: {}
    shown: tuple[str, str] | None = None
    true_epsilon: str = ""
    planning: Planning | None = None
    theory: str = ""
    examples: tuple[Any, ...] = ()

    def __post_init__(self):
        page, heading, _ = self.theory.partition("#")
        if heading and "://" not in page:
            raise ValueError(f"theory must name a page without its heading: {page!r}, got {self.theory!r}.")

    @property
    def finds(self) -> str:
        """What a small p-value says is there."""
        return DEPENDENCE if self.one_column is None else self.one_column.finds

    @property
    def of_moments(self) -> bool:
        """Whether a value counts by its distance, as in means and slopes; elsewhere by its rank, neighbours or cell."""
        return self.own_units is not None or bool(self.planning and self.planning.linear)

    def as_published(self, name: str, summary: str, *, true_epsilon: str, planning: Planning | None = None) -> TestSpec:
        """The spec of the form that a paper states: chosen by name alone, without an effect of its own."""
        return dataclasses.replace(
            self,
            name=name,
            summary=summary,
            known_as=(),
            true_epsilon=true_epsilon,
            planning=planning,
            rank=lambda domain: 0,
            suitability=lambda domain: {},
            effect="",
            own_units=None,
            describe_effect=None,
            size=lambda domain: "",
        )


# Predicates of a coded domain (`Setting.domain("codes")`, the rules of a schema), for `accepts` and `rank`.


def are_times(domain: Domain) -> bool:
    """Whether Y is a time and the event that a schema declares with it."""
    return len(domain.y) == 2 and any(column.event for column in domain.y)


def on_a_line(domain: Domain) -> bool:
    """One column of x and of y, no nominal column with more than two levels."""
    return all(len(part) == 1 and not part[0].unordered for part in (domain.x, domain.y))


def given_levels(domain: Domain) -> bool:
    """Something to condition on, and every column of it has levels."""
    return bool(domain.z) and all(column.levels for column in domain.z)


def discrete(domain: Domain) -> bool:
    """One column of x and of y, both with levels."""
    return all(len(part) == 1 and part[0].levels > 1 for part in (domain.x, domain.y))


def one_column_of_levels(domain: Domain) -> bool:
    """One column of x with levels, without Z."""
    return len(domain.x) == 1 and domain.x[0].levels > 1 and not domain.z


def one_of_each(domain: Domain) -> bool:
    """One column of x and one of y, of any kind."""
    return len(domain.x) == len(domain.y) == 1


def continuous_columns_of_z(domain: Domain) -> int:
    """How many columns of Z are continuous."""
    return sum(column.kind == CONTINUOUS and not column.levels for column in domain.z)


def two_columns_of_levels(domain: Domain) -> bool:
    """A table of x and y, without Z."""
    return discrete(domain) and not domain.z


def two_by_two(domain: Domain) -> bool:
    """A 2 x 2 table, without Z."""
    return two_columns_of_levels(domain) and domain.x[0].levels == domain.y[0].levels == 2


def continuous_given(domain: Domain) -> bool:
    """x and y continuous, and something to condition on."""
    return bool(domain.z) and all(len(part) == 1 and not part[0].levels for part in (domain.x, domain.y))


def without_z(domain: Domain) -> bool:
    """x and y on a line, at least one of them continuous, no Z."""
    return not domain.z and on_a_line(domain) and not discrete(domain)


def on_a_line_without_z(domain: Domain) -> bool:
    return not domain.z and on_a_line(domain)
