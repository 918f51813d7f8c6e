"""An example of a test: data that it can run on, one configuration of it, and how audits attack its bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from jaxdp._base.places import loaded
from jaxdp.mechanisms import Gaussian


@dataclasses.dataclass(frozen=True)
class BestKnown:
    """The share of a bound that the best known attack reaches where it is not above `CAUGHT`, and why."""

    share: float
    because: str


CAUGHT = 0.92  # a bound that is reached beyond this share is passed if it is cut by a tenth


@dataclasses.dataclass(frozen=True)
class PairSearch:
    """How worst neighbours of an example are searched for, beyond the pairs made by hand.

    records: rows of the data sets that are searched; pairs made by hand of that size are where the search starts.
    rounds: moves of the search; None for the pairs made by hand alone.
    held: private columns that neighbours share in the search, because the statistic resamples and equal keys couple no
        others.
    view: of a batch of statistics, what the release depends on alone (`jaxdp.audit.bounds.reached_by`).
    replace: generator, data -> neighbour, where rows are not records.
    view and replace are functions or their place, "package.module:function".
    """

    records: int = 12
    rounds: int | None = 20
    held: tuple[str, ...] = ()
    view: Callable | str | None = None
    replace: Callable | str | None = None


@dataclasses.dataclass(frozen=True)
class AuditSettings:
    """What an audit of epsilon does otherwise than the example says; having them puts an example on record.

    data: (key, n) -> Data among which neighbours are searched. records: how many records they have.
    fields: fields of the test's class, in place of those of the example.
    neighbours: () -> one pair of data sets, or pairs, of which the first is taken, in place of a search. view: result
    of a run -> the number by which whole runs on that pair are told apart; without one the mechanism runs on the two
    statistics.
    neighbours and view are functions or their place, "package.module:function".
    """

    data: Callable[[Any, int], Any] | None = None
    records: int = 24
    fields: Mapping[str, Any] | None = None
    neighbours: Callable[[], tuple[Any, Any] | list[tuple[Any, Any]]] | str | None = None
    view: Callable[[Any], Any] | str | None = None


@dataclasses.dataclass(frozen=True)
class Example:
    """Data for a test and one configuration of the test, as used by the contract suite, audits and level checks.

    data: (key, n) -> Data on which the test has something to find.
    null: the same under its hypothesis; without_null: why there is none.
    fields: fields of the test's class that this configuration sets; keep them small, so that it runs in milliseconds.
    make: (class, epsilon, **fields) -> test, where the class does not take epsilon= itself.
    label: "" for the first configuration, a word for each further one.
    attack_tightness: share of each declared bound that an attack reaches, by the path of the bound ("covariance";
        "AxisSelection.x" where there are several stages); a number where there is one bound; `BestKnown`
        where it is not above `CAUGHT`.
    worst_pairs: () -> pairs (data, neighbour) made by hand, where a search does not find them; the function or its
        place, "package.module:function".
    search: how others are searched for. audit: what audits of epsilon do otherwise.
    coupled: the statistic resamples or has stages, so that no pair is worst for one fixed randomness.
    min_records: fewest records that the test takes.
    cost_ratio: smallest and largest cost in units of the epsilon asked for; not (1, 1) where a test states its true
        cost (published forms, tests of many tables).
    bounds_only: only its bounds are other numbers than those of another example; they are attacked, and nothing else.
    """

    data: Callable[[Any, int], Any]
    null: Callable[[Any, int], Any] | None = None
    without_null: str = ""
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    make: Callable[..., Any] | None = None
    label: str = ""
    attack_tightness: Any = None
    worst_pairs: Callable[[], list] | str | None = None
    search: PairSearch = PairSearch()
    audit: AuditSettings | None = None
    coupled: bool = False
    min_records: int = 2
    cost_ratio: tuple[float, float] = (1.0, 1.0)
    bounds_only: bool = False

    def build(self, cls: type, epsilon, fields: Mapping[str, Any] | None = None):
        """The test of this class. fields: in place of those of the example."""
        given = self.fields if fields is None else fields
        return self.make(cls, epsilon, **given) if self.make else cls(epsilon=epsilon, **given)

    def pairs(self) -> list:
        """The pairs made by hand."""
        made = loaded(self.worst_pairs)
        return [] if made is None else made()


def in_stages(whole: Example, known: Mapping, reached: Any, pairs: Callable[[], list], label: str = "scores"):
    """A test whose last stage rests on what the stage before it released, which no pair can know; and that stage alone.

    known: fields of the last stage, about public numbers. reached: what attacks reach of it. pairs: its worst pairs.
    """
    alone = dataclasses.replace(
        whole,
        null=None,
        without_null="its level is that of the whole test",
        fields=known,
        label=label,
        attack_tightness=reached,
        worst_pairs=pairs,
        bounds_only=True,
    )
    return dataclasses.replace(whole, audit=AuditSettings(fields=known, neighbours=pairs)), alone


def with_gaussian_noise(cls: type, rho, **fields):
    """`Example.make` of a test with Gaussian noise: its budget is rho of zCDP."""
    return cls(mechanism=Gaussian(rho), **fields)


def in_zcdp(example: Example, **changes: Any) -> Example:
    """The same with Gaussian noise, labelled "zcdp" and off the record of audits. changes: further fields."""
    return dataclasses.replace(example, make=with_gaussian_noise, **{"label": "zcdp", "audit": None, **changes})


def without_noise(cls: type, epsilon, **fields):
    """`Example.make` of a test that is not private."""
    return cls(**fields)
