"""`jaxdp.describe`: counts of levels, quantiles and missing shares of the columns of a table, from one release."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import amounts, check, csv_files
from jaxdp._base.arguments import USUAL_DELTA
from jaxdp._base.display import listing
from jaxdp._base.keywords import complete
from jaxdp._base.pytree import frozen_pytree
from jaxdp.ask.calls import DescribeOptions
from jaxdp.ask.reading import Selection, Table, is_release
from jaxdp.ask.table_answer import TableAnswer
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import ColumnsQuery, asked, budget
from jaxdp.core import Cost, Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.data.coding import ColumnRule
from jaxdp.data.person_rows import DRAWS as ROW_DRAWS
from jaxdp.data.person_rows import PersonRows
from jaxdp.data.schema import FIRST, REFUSE, Schema
from jaxdp.independence import noise_law
from jaxdp.mechanisms import Laplace
from jaxdp.statistics.tables import contingency


@dataclasses.dataclass(frozen=True)
class ValueCells:
    """Cells on [-1, 1], ascending, one beside the other: a value is in the last cell that starts at it or below.

    starts: of all cells but the first. low, high: between which the values of each cell lie; a single value has both.
    """

    starts: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.low)

    @classmethod
    def equal(cls, bins: int, points: Iterable[float] = ()) -> ValueCells:
        """Bins of equal width, and a cell of its own for each of some values."""
        points = set(points)
        breaks = sorted(points | set(np.linspace(-1.0, 1.0, bins + 1).tolist()))
        found: list[tuple[float, float, float]] = []  # start, low, high
        for place, here in enumerate(breaks):
            if here in points:
                found.append((here, here, here))
            if here < 1.0:
                start = math.nextafter(here, 2.0) if here in points else here
                found.append((start, here, breaks[place + 1]))
        starts, low, high = zip(*found, strict=True)
        return cls(starts[1:], low, high)

    @classmethod
    def of_values(cls, values: Iterable[float]) -> ValueCells:
        """A cell for each of the values, which are all that there are; others count as the closest one."""
        values = tuple(values)
        middles = tuple(0.5 * (a + b) for a, b in itertools.pairwise(values))
        return cls(middles, values, values)

    def in_bins(self, counts: np.ndarray, bins: int) -> np.ndarray:
        """The counts of equal bins, from those of the cells."""
        places = np.clip(np.floor(0.5 * (np.array(self.low) + 1.0) * bins), 0, bins - 1).astype(int)
        return np.bincount(places, np.asarray(counts, float), bins)


def points_of(rule: ColumnRule) -> Mapping[float, float]:
    """Single values of a column that are public: its bounds, on which what lies beyond counts, and 0.

    Returns their places on [-1, 1], with the values.
    """
    values = {rule.lower, rule.upper}
    if not rule.is_date and rule.lower < 0.0 < rule.upper:
        values.add(0.0)
    return _scaled(rule, values)


def values_of(rule: ColumnRule, most: int) -> Mapping[float, float]:
    """All values that the declared step leaves, by their places on [-1, 1]; none where there are more than `most`."""
    count = rule.code_column()[0].values
    if not 2 <= count <= most:
        return {}
    return _scaled(rule, [rule.lower + rule.step * place for place in range(count)])


def _scaled(rule: ColumnRule, values: Iterable[float]) -> dict[float, float]:
    known = sorted(min(float(value), rule.upper) for value in values)
    return dict(zip(rule.scaled_number(np.array(known)).tolist(), known, strict=True))


MISSING, UNKNOWN = -1.0, -2.0  # codes of cells without a value and of levels that the schema does not list
MIN_BINS, MAX_BINS = 4, 256


def default_bins(num_records: int, noise_sd: float) -> int:
    """Bins of a continuous column: a power of two, so many that the width of a bin costs as much as the noise.

    The median is off by half a bin, n/(2 bins) records where values are even, and by the noise of the sum of its
    halves, sd sqrt(bins)/2: the two are equal at bins^(3/2) = n/sd.
    """
    wanted = (num_records / noise_sd) ** (2.0 / 3.0)
    return int(min(max(2 ** round(math.log2(max(wanted, 1.0))), MIN_BINS), MAX_BINS))


@frozen_pytree
class ColumnCounts(PrivateQuery):
    """The number of records in each cell of each of d columns: its levels or equal bins, no value, an unknown level.

    Statistic: d histograms, one after the other. data: (n, d), codes or numbers on [-1, 1], NaN or -1 for no value,
    -2 for an unknown level. A record is in one cell of each column, whatever the cells are.
    Of persons with several rows it is the mean over draws of one row each, of the same sensitivity.
    Sensitivity: a replaced record leaves a cell of each column and enters another: 2 d in L1, sqrt(2 d) in L2.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho). Relation REPLACE_ONE.

    levels: of each column, 0 for a continuous one. bins: of each continuous column. cells: of each column, where they
    are not these bins.
    """

    levels: tuple[int, ...] = jax.tree.static(default=())
    bins: int = jax.tree.static(default=MIN_BINS)
    cells: tuple[ValueCells | None, ...] = jax.tree.static(default=())

    method: ClassVar[str] = "describe"
    reads_missing: ClassVar[bool] = True
    many_columns: ClassVar[bool] = True
    default_mechanism = Laplace

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, bins=self.bins)
        if not self.levels:
            raise ValueError("levels must hold the number of levels of at least one column, 0 for a continuous one.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column: its values, then "no value", then "unknown level"."""
        return tuple((count or len(self.cells_of(place))) + 2 for place, count in enumerate(self.levels))

    def cells_of(self, place: int) -> ValueCells:
        """The cells of the values of a continuous column."""
        cells = self.cells[place] if self.cells else None
        return cells or ValueCells.equal(self.bins)

    def statistic(self, key, data):
        """All counts (cells,), as floats."""
        values = jnp.asarray(data)
        counts = [
            contingency.table([self._cell(values[:, place], place, count)], (size,))
            for place, (count, size) in enumerate(zip(self.levels, self.sizes, strict=True))
        ]
        return jnp.concatenate(counts).astype(float)

    def statistic_of_persons(self, key, rows):
        """The mean counts over draws: each person counts once, by its rows in parts that are equal up to one draw."""
        return rows.mean(lambda _, draw: self.statistic(None, draw.x.reshape(len(draw.x), -1)), key)

    def _cell(self, values, place: int, levels: int):
        """The cell (n,) of each value."""
        if levels:
            return jnp.where(values >= 0.0, values, levels - 1.0 - values)  # -1, -2 -> levels, levels + 1
        cells = self.cells_of(place)
        found = jnp.searchsorted(jnp.asarray(cells.starts, values.dtype), values, side="right")
        return jnp.where(jnp.isnan(values), len(cells), found)

    def sensitivity(self, num_records):
        norm, moved = self.mechanism_in_force().norm, 2.0 * len(self.levels)
        bare = Sensitivity(moved if norm is Norm.L1 else moved**0.5, norm, Relation.REPLACE_ONE)
        room = noise_law.margin(self.mechanism_in_force(), bare)
        return dataclasses.replace(bare, lower=-room, upper=num_records + room)

    def noise_sd(self, num_records: int) -> float:
        """Of each count; public."""
        return float(jnp.sqrt(self.mechanism_in_force().variance(self.sensitivity(num_records))))

    def columns_of(self, counts: Any) -> list[np.ndarray]:
        return np.split(np.asarray(counts, float), np.cumsum(self.sizes)[:-1])


QUANTILES = (0.25, 0.5, 0.75)
MISS = 0.05  # one minus the coverage of each interval
DRAWS, SEED = 4000, 7  # of the noise alone, for the intervals: public
DROWNED = "the noise is as large as a tenth of the records or more: fewer columns or more budget"
MUCH_NOISE = 0.1
PILE_RATIO, PILE_SDS = 3.0, 4.0  # so many times the records of the bins beside it, and sds of the noise, are a pile
PILED = (
    "a quartile lies in a bin with far more records than the bins beside it, as where many share one value or the "
    "bounds are wide: take the interval, since where in the bin it lies was not counted (with step in the schema each "
    "value is counted by itself, if there are no more values than bins)"
)
OF_RECORDS = "each 95 % interval is for these records only."
OF_PERSONS = {
    1: "a {unit} counts by one of its rows, drawn at random, and each 95 % interval is for what the mean over all such "
    "draws would be: every {unit} counting once, all of its rows alike.",
    ROW_DRAWS: "a {unit} counts once, all of its rows alike, so that parts of it may count; each 95 % interval is for "
    "these records only, and allows for the draw of rows.",
}
FORGIVEN = "every record is counted, so records without a value are told, not left out"


@dataclasses.dataclass(frozen=True, repr=False)
class Description(TableAnswer):
    """What the columns of a table hold: noisy counts with intervals. Noisy and public values only.

    columns: one dict for each column, with name, kind, missing, unknown, and levels or quantiles; each number has an
    estimate and a 95 % interval (low, high) for these records; of persons with several rows, for what they are with
    all rows of a person alike. content: what result.json holds.
    """

    files: ClassVar = ("columns.png", "result.json", "columns.csv", "report.html")
    page: ClassVar = "Private description of columns"

    columns: list[dict[str, Any]]
    cost: Cost
    mode: str
    method: str
    content: Mapping[str, Any]

    def rows(self) -> list[tuple[str, str, float | str, float | str, float | str]]:
        """(column, what, estimate, low, high) of every number, in order."""
        return [(column["name"], *row) for column in self.columns for row in _rows(column)]

    def written(self) -> dict[str, Any]:
        """Every number with its interval."""
        return {"columns.csv": (csv_files.write, ("column", "what", "estimate", "low", "high"), self.rows())}

    def draw(self, path: Path) -> None:
        """The counts of every column."""
        from jaxdp.report.description import description

        description(path, self.columns, title=self.content["title"], simulation=self.mode == "simulation")

    def table(self) -> list[str]:
        """The numbers as lines of a screen."""
        lines, last = [], ""
        for name, what, *numbers in self.rows():
            estimate, low, high = (_shown(number) for number in numbers)
            lines.append(f"{'' if name == last else name:<20.20} {what:<24.24} {estimate:>12}  {low} to {high}")
            last = name
        return lines


@dataclasses.dataclass(frozen=True)
class DescribeQuery(ColumnsQuery[Description]):
    """Columns to describe, at what budget; `DescribeQuery.of` checks it."""

    form: ClassVar = Description
    name: ClassVar = "describe"
    keywords: ClassVar = DescribeOptions
    lacks: ClassVar = f"describe takes no sums of records, and {FORGIVEN}"

    schema: Schema
    names: tuple[str, ...]
    epsilon: float
    delta: float = 0.0

    @classmethod
    def of(cls, schema: Schema, /, **given: Unpack[DescribeOptions]) -> DescribeQuery:
        """columns: default all that the schema describes. Errors: ValueError, before a table is opened."""
        own = complete(DescribeOptions, given)
        columns, delta = own["columns"], own["delta"]
        names = list(schema.names) if columns is None else schema.named("columns", columns)
        if not names or len(set(names)) < len(names):
            raise ValueError("columns must name at least one column, each once.")
        if not 0.0 <= delta < 1.0:
            raise ValueError(f"delta must be at least 0 and below 1, got {amounts.spent(delta)}.")
        return cls(schema, tuple(names), budget(own["epsilon"]), delta)

    @property
    def short(self) -> str:
        """The query in one line, for ledgers."""
        return f"description of {', '.join(self.names)}"

    def selection(self, table: Table) -> Selection:
        """The columns, read such that cells without a value are seen."""
        return Selection(dataclasses.replace(table, schema=seeing(table.schema)), self.names, apart=True)

    @property
    def row_draws(self) -> int:
        """How many rows of each person are drawn and averaged; 0 where no row is drawn."""
        if not self.schema.unit or self.schema.rows == FIRST:
            return 0
        return ROW_DRAWS if self.schema.averages(True) else 1

    def loader(self, selection: Selection, key: Any) -> tuple[DescribeQuery, Callable[..., Any]]:
        """All records; of persons with several rows, draws of one row of each."""
        if self.row_draws <= 1:
            return super().loader(selection, key)  # type: ignore[return-value]
        each = 2 * 8 * ROW_DRAWS * len(self.names)
        if selection.rows_beyond(lambda rows: each * rows) is not None:
            raise ValueError(
                f"describe must have {ROW_DRAWS} rows of each {self.schema.unit} in memory: name fewer columns, give "
                'more memory, or take one row of each, drawn at random (--rows random, in Python rows="random").'
            )
        read = selection.table.schema.read

        def of_persons(source: Any, **how: Any) -> tuple[PersonRows, tuple]:
            drawn: dict[str, Any] = {"draws": ROW_DRAWS, "shuffled": is_release(key)}
            rows: Any = read(source, x=self.names, y=None, codes=True, **drawn, **how)
            return rows, rows.domain.x

        return self, of_persons

    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> Description:
        """All numbers from one release of counts."""
        import jax

        from jaxdp.core import num_records

        values, columns = data
        rows = num_records(values)
        self.require_rows(rows)
        on_stage("counting")
        with jax.enable_x64(True):
            query = ColumnCounts(**self.noise(), levels=tuple(column.levels for column in columns))
            query = dataclasses.replace(query, bins=default_bins(rows, query.noise_sd(rows)))
            rules = [self.schema.rule(name) for name in self.names]
            query = dataclasses.replace(query, cells=tuple(cells_of(rule, query.bins) for rule in rules))
            released = self.released(query, values, key, account)
        sd = query.noise_sd(rows)
        intervals = Intervals(query, rows, self.row_draws)
        described = [
            intervals.describe(rule, counts, query.cells_of(place))
            for place, (rule, counts) in enumerate(zip(rules, query.columns_of(released.value), strict=True))
        ]
        of = OF_PERSONS[self.row_draws].format(unit=self.schema.unit) if self.row_draws else OF_RECORDS
        told = f"The noise on each count has sd {sd:.3g}; {of}"
        if sd > MUCH_NOISE * rows:
            levels = query.levels
            normal = self.less_noise_with_delta(sd, lambda **how: ColumnCounts(**how, levels=levels).noise_sd(rows))
            delta = amounts.spent(USUAL_DELTA)
            with_delta = "" if normal is None else f", or --delta {delta}, with which the sd is {normal:.3g},"
            told += f" Take care: {DROWNED}{with_delta} would help."
        piled = [one["name"] for one in described if any(q.get("piled") for q in one.get("quantiles", ()))]
        if piled:
            told += f" Of {listing(piled)} {PILED}."
        content = {
            "title": f"{len(self.names)} column{'s' if len(self.names) > 1 else ''} of {rows} records.",
            "answer": told,
            "method": query.method,
            **self.common(rows, released, account),
            "noise_sd": sd,
            "bins": query.bins,
            "columns": described,
            "unit": self.schema.describe_records(self.row_draws > 1) if self.schema.unit else "",
        }
        return Description(described, released.cost, released.mode, query.method, content)


class Intervals:
    """Estimates and intervals from noisy counts: post-processing, by the law of the noise.

    row_draws: of persons with several rows, how many draws of one row of each were averaged; 0 where none was drawn.
    Then intervals are for what the mean over all draws would be (docs/describe.md#persons).
    """

    def __init__(self, query: ColumnCounts, num_records: int, row_draws: int = 0):
        import jax

        self._rows, self._bins = num_records, query.bins
        most = max(query.sizes)
        noise = query.mechanism_in_force().noise(jax.random.key(SEED), query.sensitivity(num_records), (DRAWS, most))
        self._noise = np.asarray(noise, float)
        self._sd = query.noise_sd(num_records)
        self._reach = float(np.quantile(np.abs(self._noise), 1.0 - MISS))
        self._row_draws = row_draws
        self._normals = np.random.default_rng(SEED).normal(size=self._noise.shape if row_draws else (0, most))

    def describe(self, rule: ColumnRule, counts: np.ndarray, cells: ValueCells) -> dict[str, Any]:
        """A column by its noisy counts: values, no value, unknown level. cells: of a continuous one."""
        values, missing, unknown = counts[:-2], counts[-2], counts[-1]
        found: dict[str, Any] = {"name": rule.name, "kind": rule.kind}
        if rule.is_continuous:
            found |= self._numbers(rule, values, cells)
        else:
            found["levels"] = [
                {"level": level if isinstance(level, str) else f"{level:.12g}", **self._count(count)}
                for level, count in zip(rule.levels, values, strict=True)
            ]
        if not rule.fills:
            found["missing"] = self._count(missing)
        if not rule.is_continuous and not rule.collects:
            found["unknown"] = self._count(unknown)
        return found

    def _count(self, count: float) -> dict[str, float]:
        """A count, with its interval, and as a share of the records."""
        reach = self._reach_of(count)
        low, high = (min(max(end, 0.0), self._rows) for end in (count - reach, count + reach))
        estimate = min(max(count, 0.0), self._rows)
        rounded = (math.floor, math.ceil) if self._row_draws else (math.ceil, math.floor)  # parts of persons may count
        whole = {"count": round(estimate), "low": rounded[0](low), "high": rounded[1](high)}
        if whole["low"] > whole["high"]:  # between two whole numbers
            whole["low"], whole["high"] = whole["high"], whole["low"]
        return {**whole, "share": estimate / self._rows}

    def _reach_of(self, count: float) -> float:
        """How far a count is off, with probability 0.95: by noise, and by the draw of rows.

        Of a share p_i of a person's rows in the cell, the mean of R draws has variance p_i (1 - p_i)/R at most, the
        sum over n persons n p (1 - p)/R at most, p their mean.
        """
        if not self._row_draws:
            return self._reach
        share = min(max(count + self._sd, 0.0) / self._rows, 0.5)
        drawn = math.sqrt(self._rows * share * (1.0 - share) / self._row_draws)
        return float(np.quantile(np.abs(self._noise[:, :8] + drawn * self._normals[:, :8]), 1.0 - MISS))

    def _numbers(self, rule: ColumnRule, values: np.ndarray, cells: ValueCells) -> dict[str, Any]:
        """Quantiles, the counts of single values, and of equal bins."""
        known = values_of(rule, self._bins) or points_of(rule)

        def own(place: float) -> float | str:
            """In the column's units: a single value as it is, without the rounding of its scale."""
            return in_own_units(rule, place, known.get(place))

        quantiles = []
        for at in QUANTILES:
            place, low, high = self.quantile(at, values, cells)
            quantiles.append({"at": at, "value": own(place), "low": own(low), "high": own(high)})
            if self._piled(place, values, cells):
                quantiles[-1]["piled"] = True
        single = [k for k in range(len(cells)) if cells.low[k] == cells.high[k]]
        return {
            "quantiles": quantiles,
            "single": [{"value": own(cells.low[k]), **self._count(values[k])} for k in single],
            "bins": cells.in_bins(values, self._bins).tolist(),
            "edges": [own(place) for place in np.linspace(-1.0, 1.0, self._bins + 1).tolist()],
        }

    def _piled(self, place: float, values: np.ndarray, cells: ValueCells) -> bool:
        """Whether a place lies in a bin with far more records than beside it, as where many have one value."""
        wide = [k for k in range(len(cells)) if cells.low[k] < cells.high[k]]
        at = next((j for j, k in enumerate(wide) if cells.low[k] < place < cells.high[k]), None)
        if at is None:
            return False
        beside = max((values[wide[j]] for j in (at - 1, at + 1) if 0 <= j < len(wide)), default=0.0)
        return values[wide[at]] > PILE_RATIO * max(beside, 0.0) + PILE_SDS * self._sd

    def quantile(self, at: float, values: np.ndarray, cells: ValueCells) -> tuple[float, float, float]:
        """Estimate and interval of a quantile of the values of a column, on [-1, 1].

        At each end of a cell: (1 - at) times what lies below less at times what lies above, which is below 0 left of
        the quantile and above 0 right of it, whatever the number of missing values. Its noise at all ends together
        gives the interval, from the last end that is surely left to the first one that is surely right: a single
        value, where the ends on both of its sides are sure.
        """
        count = len(cells)
        low, high = np.array(cells.low), np.array(cells.high)
        below = np.tri(count + 1, count, -1)  # of each end: which cells lie below
        weights = below - at
        noise, variance = self._noise[:, :count], np.ones(count)
        if self._row_draws:  # as much of each cell as if its records were drawn by themselves: exact at the quantile
            drawn = np.maximum(values, 0.0) / self._row_draws
            noise, variance = noise + np.sqrt(drawn) * self._normals[:, :count], variance + drawn / self._sd**2
        sds = np.sqrt(np.sum(weights**2 * variance, axis=1))
        noise = noise @ weights.T
        surely = np.quantile(np.max(np.abs(noise) / sds, axis=1), 1.0 - MISS) * sds
        found = weights @ values
        left, right = found[:-1] < -surely[:-1], found[1:] > surely[1:]  # of the end before, and after, each cell
        least, most = max(low[left], default=low[0]), min(high[right], default=high[-1])
        if least > most:  # the noise contradicts itself
            least, most = low[0], high[-1]
        place = _place(at, np.maximum(values, 0.0), low, high)
        return min(max(place, float(least)), float(most)), float(least), float(most)


def _place(at: float, counts: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Where a share of the counts lies below, as if the values of each cell were even in it."""
    total = np.cumsum(counts)
    if total[-1] <= 0.0:
        return 0.0
    k = int(np.searchsorted(total, at * total[-1]))
    share = (at * total[-1] - (total[k] - counts[k])) / counts[k]
    return float(low[k] + share * (high[k] - low[k]))


def cells_of(rule: ColumnRule, bins: int) -> ValueCells | None:
    """The cells of a continuous column; None of others."""
    if not rule.is_continuous:
        return None
    values = values_of(rule, bins)
    return ValueCells.of_values(values) if values else ValueCells.equal(bins, points_of(rule))


def seeing(schema: Schema) -> Schema:
    """The schema, such that cells of which nobody said what they mean keep a code of their own."""

    def one(rule: ColumnRule) -> ColumnRule:
        missing = rule.missing if rule.fills else math.nan if rule.is_continuous else MISSING
        other = rule.other if rule.collects or rule.is_continuous else int(UNKNOWN)
        return dataclasses.replace(rule, missing=missing, other=other, fills=True, collects=True)

    return dataclasses.replace(schema, rules={name: one(rule) for name, rule in schema.rules.items()}, missing=REFUSE)


def in_own_units(rule: ColumnRule, place: float, known: float | None = None) -> float | str:
    """A place on [-1, 1] as a value of the column; of dates the day. known: the value, where it is known."""
    return rule.shown(rule.unscaled(place) if known is None else known)


def _rows(column: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    for level in column.get("levels", ()):
        yield level["level"], level["count"], level["low"], level["high"]
    for quantile in column.get("quantiles", ()):
        name = "median" if quantile["at"] == 0.5 else f"quantile {quantile['at']:g}"
        yield name, quantile["value"], quantile["low"], quantile["high"]
    for key, words in (("missing", "no value"), ("unknown", "unknown level")):
        if key in column:
            yield f"({words})", column[key]["count"], column[key]["low"], column[key]["high"]


def _shown(number: float | str) -> str:
    if isinstance(number, float):
        return f"{number:.4g}" if abs(number) < 1e4 else f"{number:.0f}"
    return str(number)


@table_call(DescribeOptions)
def describe(table: Any, **how: Unpack[DescribeOptions]) -> Description:
    """What do the columns hold? Counts of levels, quartiles and missing values with intervals, from one release.

        jaxdp.describe(frame, epsilon=0.5, bounds={"dose": (0, 10)}, levels={"clinic": ["north", "south"]})

    table, schema, bounds, levels, ledger, key, strict, records, force, memory: as in `jaxdp.test`; all records of the
    columns must fit into memory. Every record counts, even one that other calls leave out under missing = "drop".
    rows: as in `jaxdp.test`: "all" counts each person once, all of its rows alike.
    columns: default: all in the schema. They share the budget, so fewer columns have less noise.
    delta: above 0, Gaussian noise under (epsilon, delta)-DP, which is smaller from about four columns on.

    Returns a `Description`: columns, rows(), `plot()`, `to_dict()`. It holds no record. Intervals are about these
    records, not about a population; each covers with probability 0.95. Of persons with several rows they allow for the
    draw of rows.
    Privacy: epsilon-DP (or (epsilon, delta)-DP) under replace-one. Errors: as `jaxdp.test`.
    """
    return asked(DescribeQuery, table, how)
