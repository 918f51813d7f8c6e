"""What a call about a table takes, declared once: its keywords in Python are the options of its command. No JAX.

A keyword with a text is an option, and the text its help. The query of a call completes what is given from the same
declaration.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict

from jaxdp._base import arguments
from jaxdp._base.keywords import Keyword
from jaxdp.discovery.abilities import Abilities, Count, Share
from jaxdp.spec import KINDS_OF_ALTERNATIVES

if TYPE_CHECKING:
    from jaxdp.data.known import HasSchema
    from jaxdp.data.schema import Schema

ADJUSTMENTS = {"holm": "Holm (family-wise error)", "bh": "Benjamini-Hochberg (false discovery rate)"}

Switch = Annotated[bool, Keyword(default=False)]
Columns = Annotated[Sequence[str] | None, Keyword("A,B,C", arguments.names)]
OneOrMore = str | Sequence[str]


class InMemory(TypedDict, total=False):
    """How any table is read, as fields of `jaxdp.ask.reading.Reading`."""

    strict: Annotated[
        Switch,
        "for callers who are not trusted: charge first and never refuse because of what a record holds (each line is "
        "one record, and a malformed line counts as missing)",
    ]
    records: Annotated[Count, "the number of records, if it is public"]
    force: Annotated[Switch, "continue although a column does not parse (see `jaxdp check`)"]
    memory: Annotated[
        int | str | None,
        Keyword("SIZE", arguments.memory),
        "memory limit of reading, such as 2GB (default: half of this machine's memory)",
    ]


class ByPerson(InMemory, total=False):
    """How a table is read whose persons may have several rows."""

    rows: Annotated[
        str | None,
        Keyword(choices=("all", "random", "first")),
        "which rows of a person count where the schema has a `unit`: all of them where the query can average over them "
        "and one drawn at random elsewhere, always one drawn at random, or the first (default: as the schema says, "
        "else all)",
    ]


class Complete(ByPerson, total=False):
    """How a table is read whose records may be left out."""

    missing: Annotated[
        str | None,
        Keyword(choices=("refuse", "drop")),
        "how to treat records without a value in a column of the query: refuse if they could be mistaken for "
        "dependence, or drop them, which makes the number of complete records public (default: as the schema says, "
        "else refuse)",
    ]


class ReadingOptions(Complete, total=False):
    """How a table is read of which sums may be enough: every field of `jaxdp.ask.reading.Reading`."""

    keep_sums: Annotated[
        str | os.PathLike | None,
        Keyword("DIR"),
        "for a table larger than --memory, which is read in chunks if the test can be computed from sums: keep the "
        "sums of the files already read in this folder, so that the same command continues an interrupted pass; the "
        "sums are PRIVATE (no noise), the folder has mode 0700, and they are deleted once the answer is there",
    ]


class Known(TypedDict, total=False):
    """What is publicly known of a table."""

    schema: "Schema | HasSchema | str | os.PathLike | Mapping | None"
    bounds: Mapping[str, Sequence[float]] | None
    levels: Mapping[str, Sequence[Any]] | None


class Paid(TypedDict, total=False):
    """What an answer is paid from, and the key."""

    ledger: Any
    key: Any


class CallOptions(ReadingOptions, Known, Paid, total=False):
    """The keywords that calls about a table share: how it is read, what is known of it, the account and the key."""


READING = tuple(ReadingOptions.__annotations__)
SHARED = tuple(CallOptions.__annotations__)


class Budgeted(TypedDict, total=False):
    """A query with a budget of its own."""

    epsilon: Required[Annotated[float, Keyword("E", arguments.budget), "privacy budget of this run, a number > 0"]]


class TestsOptions(Budgeted, CallOptions, total=False):
    """The keywords that `jaxdp.test` and `jaxdp.test_pairs` share; the last ones are those of `jaxdp.spec.Options`."""

    given: Annotated[
        OneOrMore,
        Keyword("C,D", arguments.names, (), more={"action": "append"}),
        "columns Z to condition on; may be repeated",
    ]
    method: Annotated[
        str | None,
        Keyword("M"),
        "test to use, by its own name or that of a classical test (default: chosen by the kinds of columns)",
    ]
    sees: Annotated[
        str | None,
        Keyword("KIND", choices=KINDS_OF_ALTERNATIVES),
        "kind of dependence that the test must be built to detect: linear, monotone or any",
    ]
    level: Annotated[float, Keyword("LEVEL", arguments.probability, 0.05), "significance level (default 0.05)"]
    fields: Annotated[
        Mapping[str, Any] | None,
        Keyword("NAME=VALUE", arguments.setting, gather=dict, flag="--set", more={"action": "append"}),
        "a public setting of the test, such as num_cells=8, residual_scale=0.3,0.5 or num_null=9999: any field of its "
        "class (the refusal of an unknown name lists them); may be repeated",
    ]
    residual_scale: Any
    num_cells: int | None
    ridge: float | None
    lengthscale: float | None
    law: Any


class TestOptions(TestsOptions, total=False):
    """The keywords of `jaxdp.test`."""

    x: Required[Annotated[OneOrMore, Keyword("A", arguments.names), "column(s) X, separated by commas"]]
    y: Annotated[
        OneOrMore,
        Keyword("B", arguments.names, ()),
        "column(s) Y; left out for a test of X alone, which --method names",
    ]
    margin: Annotated[
        float | None,
        Keyword("M", arguments.positive_number),
        "also test, at no further cost, whether the effect is smaller than M in size, in its own units (equivalence)",
    ]


class PairsOptions(TestsOptions, total=False):
    """The keywords of `jaxdp.test_pairs`."""

    columns: Annotated[Columns, "columns of --all-pairs (default: all)"]
    adjust: Annotated[
        str,
        Keyword(default="holm", choices=tuple(ADJUSTMENTS)),
        "with --all-pairs: how p-values are adjusted for the number of pairs: holm (family-wise error, the default) or "
        "bh (false discovery rate)",
    ]
    delta: Annotated[Share, "with --all-pairs: use (epsilon, D)-DP if that needs less noise (default: pure epsilon)"]


class MICOptions(Budgeted, Complete, Known, Paid, total=False):
    """The keywords of `jaxdp.mic`."""

    x: Annotated[str | None, Keyword("A"), "first column"]
    y: Annotated[str | None, Keyword("B"), "second column"]
    columns: Annotated[Columns, "columns of --all-pairs (default: all)"]
    delta: Annotated[Share, "with --all-pairs: Gaussian noise under (epsilon, D)-DP, far less noise for many pairs"]
    max_cells: Annotated[
        float | None, Keyword("B", arguments.positive_number, flag="--cells"), "grid cells allowed, >= 4"
    ]
    range_share: Annotated[
        Share, "with --x and --y: share D of the budget for private ranges, for heavy tails (0.3 is good)"
    ]


class DescribeOptions(Budgeted, ByPerson, Known, Paid, total=False):
    """The keywords of `jaxdp.describe`."""

    columns: Annotated[Columns, "columns to describe; they share epsilon (default: all)"]
    delta: Annotated[Share, "use Gaussian noise under (epsilon, D)-DP, for many columns"]


class SearchOptions(Abilities, Budgeted, CallOptions, total=False):
    """The keywords of `jaxdp.discover`: those that not every search has are `Abilities`."""

    columns: Annotated[Columns, "columns to use (default: all of the schema)"]
    method: Annotated[
        Any,
        Keyword("M", default="auto"),
        "search, such as table_pc, or a test for PC, also as package.module:Class (default: chosen by the kinds of "
        "columns)",
    ]


class GwasOptions(Budgeted, Paid, total=False):
    """The keywords of `jaxdp.gwas`."""

    covariates: Annotated[str | os.PathLike | None, Keyword("FILE"), "table of persons with a header FID IID ..."]
    names: Annotated[Sequence[str], Keyword("A,B", arguments.names, (), flag="--given"), "its columns to adjust for"]
    phenotype: Annotated[str, Keyword("NAME", default=""), "its column that is the phenotype (default: that of .fam)"]
    bounds: Annotated[
        Mapping[str, Sequence[float]] | None,
        Keyword("NAME=LOW:HIGH", arguments.interval, {}, gather=dict, more={"nargs": "+"}),
        "public bounds of every covariate, and of a phenotype that is a quantity (that of .fam: phenotype=LOW:HIGH; "
        "without: cases 2, controls 1)",
    ]
    count: Annotated[int | None, Keyword("M", arguments.count, 4), "variants that are chosen and tested (4)"]


class DraftOptions(Budgeted, InMemory, Paid, total=False):
    """The keywords of `jaxdp.draft_schema`."""

    columns: Annotated[Sequence[str], Keyword("A,B", arguments.names, ()), "columns of numbers, whose bounds are found"]
    levels_of: Annotated[
        Sequence[str],
        Keyword("A,B", arguments.names, ()),
        "columns of texts or codes, whose levels are found, with --delta; they share epsilon with --columns",
    ]
    delta: Annotated[Share, "needed by --levels-of; of bounds alone, spent where it means less noise"]
    dates: Annotated[
        Sequence[str] | Mapping[str, str],
        Keyword("A,B", arguments.names, ()),
        "those of --columns that hold dates (2024-12-31), or A=%%d.%%m.%%Y",
    ]
    unit: Annotated[str, Keyword("COLUMN", default=""), "column that says whose a row is"]


class SessionOptions(CallOptions, total=False):
    """The keywords of `jaxdp.Session`."""

    epsilon: float | None
    delta: Annotated[float, Keyword(default=0.0)]
    queries: int | None
