"""`jaxdp.draft_schema`: bounds and levels that are not public knowledge, found privately and paid for.

Its queries: which levels many records hold, and in which cells of a public grid quantiles lie.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import charge, core
from jaxdp._base import amounts, check
from jaxdp._base.display import NOT_PRIVATE, listing
from jaxdp._base.keywords import complete
from jaxdp._base.printed import is_setting, printed, printed_name
from jaxdp._base.pytree import frozen_pytree
from jaxdp.ask import reading
from jaxdp.ask.calls import DraftOptions
from jaxdp.ask.reading import Selection, Table
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import TableQuery, asked, budget
from jaxdp.core import Cost, Norm, PrivateQuery, Relation, Sensitivity
from jaxdp.data import draft, readers
from jaxdp.data.coding import ColumnRule, duplicates
from jaxdp.data.column_rules import STABILITY, notation_of
from jaxdp.data.columns import CATEGORICAL, CONTINUOUS
from jaxdp.data.identifiers import unit_line
from jaxdp.data.notation import DAYS_TO_1970, ISO, PLAIN, Notation
from jaxdp.data.private_drafts import DRAFT, RELEASED, SIMULATED, name_of
from jaxdp.data.schema import Schema, as_names
from jaxdp.data.vocabulary import OTHER, Vocabulary
from jaxdp.mechanisms import ReportNoisyMax, divide
from jaxdp.mechanisms.stability import MIN_DELTA, StabilityThreshold


@frozen_pytree
class ColumnLevels(PrivateQuery):
    """The noisy counts of the levels that occur in each of d columns, where they reach a threshold; else 0.

    Statistic: of each column the number of records with each code 0, ..., n - 1. data: (n, skipped + d), of which the
    first `skipped` columns are not looked at; codes are those of a numbering of the texts that occur, -1 counts not.
    Sensitivity: a replaced record leaves a level of each column and enters another: 2 in L1 for each column.
    Privacy: (epsilon, delta)-DP, the sum over the columns, which have equal shares (`StabilityThreshold`).
    Relation REPLACE_ONE. Source: docs/theory/private_levels.md.
    """

    delta: float = jax.tree.static(default=0.0)
    num_columns: int = jax.tree.static(default=1)
    skipped: int = jax.tree.static(default=0)

    method: ClassVar[str] = "private-levels"
    reads_missing: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, num_columns=self.num_columns)

    @property
    def parts(self) -> list[str]:
        """Names of the columns."""
        return [f"{column:05d}" for column in range(self.num_columns)]

    def mechanism_in_force(self):
        whole = self.mechanism
        if whole is None:
            whole = StabilityThreshold(epsilon=check.budget(self.epsilon), delta=self.delta)
        return divide(whole, dict.fromkeys(self.parts, Fraction(1, self.num_columns)))

    def statistic(self, key, data):
        """Counts (n,) for each column: as many places as there are records, however many levels occur."""
        codes = jnp.asarray(data)[:, self.skipped :]
        count = codes.shape[0]
        places = jnp.where(codes < 0.0, count, codes).astype(int)
        return {
            name: jnp.zeros(count + 1, int).at[places[:, column]].add(1)[:count]
            for column, name in enumerate(self.parts)
        }

    def sensitivity(self, num_records):
        two = Sensitivity(2.0, Norm.L1, Relation.REPLACE_ONE, lower=0.0, upper=1.0 * num_records)
        return dict.fromkeys(self.parts, two)

    def threshold(self) -> int:
        """The least noisy count that is released; public."""
        return self.mechanism_in_force()[self.parts[0]].threshold()

    def found(self, release) -> list[np.ndarray]:
        """The released counts of each column, (n,): 0 where a level is not named."""
        return [np.asarray(release.value[name]) for name in self.parts]


SMALLEST, LARGEST = -20, 40  # powers of two: the least and the greatest size of a place but 0
FINE, COARSE = 256, 2  # places for each doubling, of values and of distances


@functools.cache
def ends(signed: bool) -> np.ndarray:
    """The ends of the public cells, ascending: 0 and +-2^(j/256) for values, 2^(j/2) for distances.

    Cell k holds what is above end k - 1 and at most end k; there is one cell more than ends.
    """
    each = FINE if signed else COARSE
    sizes = 2.0 ** (np.arange(SMALLEST * each, LARGEST * each + 1) / each)
    return np.concatenate([-sizes[::-1], [0.0], sizes]) if signed else sizes


@functools.cache
def places(signed: bool) -> np.ndarray:
    """A place within each cell: the geometric mean of its ends; the outermost cells of values are at infinity."""
    grid = ends(signed)
    inner = np.where(grid[1:] * grid[:-1] > 0.0, np.sign(grid[1:]) * np.sqrt(np.abs(grid[1:] * grid[:-1])), 0.0)
    return np.concatenate([[-np.inf if signed else grid[0]], inner, [np.inf]])


@frozen_pytree
class ColumnQuantiles(PrivateQuery):
    """The cell of a public grid that holds each quantile of each of d columns.

    Statistic: for a column and a level a, the scores -max(#{values below the cell} - a n, a n - #{values not above
    it}, 0) of all cells. data: (n, d) or more columns, of which the first d count, in their own units; a missing value
    is below all cells or above, by the number of its record. about: (d,) public places; then the quantiles are those
    of the distances from them.
    Sensitivity: a replaced record moves every count by at most 1: 1 in Linf for each selection.
    Privacy: epsilon-DP, the sum over the selections, which have equal shares (report-noisy-max).
    Relation REPLACE_ONE. Source: docs/theory/private_bounds.md.

    levels: the quantiles of every column. num_columns: d.
    """

    about: ArrayLike | None = None

    levels: tuple[float, ...] = jax.tree.static(default=(0.5,))
    num_columns: int = jax.tree.static(default=1)

    method: ClassVar[str] = "private-bounds"
    reads_missing: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, num_columns=self.num_columns)

    @property
    def parts(self) -> dict[str, tuple[int, float]]:
        """name of a selection -> (column, level)."""
        return {
            f"{column:05d}-{place}": (column, level)
            for column in range(self.num_columns)
            for place, level in enumerate(self.levels)
        }

    def mechanism_in_force(self):
        mechanism = ReportNoisyMax(epsilon=check.budget(self.epsilon)) if self.mechanism is None else self.mechanism
        return divide(mechanism, dict.fromkeys(self.parts, Fraction(1, len(self.parts))))

    def statistic(self, key, data):
        """Scores of all cells, (cells,) for each selection."""
        values = jnp.asarray(data)[:, : self.num_columns]
        beyond = jnp.where(jnp.arange(values.shape[0]) % 2 == 0, -jnp.inf, jnp.inf)[:, None]
        missing = jnp.isnan(values)
        values = values if self.about is None else jnp.abs(values - jnp.asarray(self.about)[None, :])
        ordered = jnp.sort(jnp.where(missing, beyond, values), axis=0)
        grid, count = jnp.asarray(ends(self.about is None)), values.shape[0]
        scores = {}
        for name, (column, level) in self.parts.items():
            up_to = jnp.searchsorted(ordered[:, column], grid, side="right")
            below, through = jnp.append(0, up_to), jnp.append(up_to, count)
            off = jnp.maximum(below - level * count, level * count - through)
            scores[name] = -jnp.maximum(off, 0.0)
        return scores

    def sensitivity(self, num_records):
        one = Sensitivity(1.0, Norm.LINF, Relation.REPLACE_ONE, lower=-1.0 * num_records, upper=0.0)
        return dict.fromkeys(self.parts, one)

    def found(self, release) -> np.ndarray:
        """The released places, (d, levels)."""
        at = [int(release.value[name]) for name in self.parts]
        return places(self.about is None)[np.array(at)].reshape(self.num_columns, len(self.levels))


WIDEST, LEAST = 2.0 ** (LARGEST + 1), 2.0**SMALLEST  # what lies beyond the grid is told from its last cell
QUARTILES, CENTRE = "quartiles", "centre-spread"
QUARTILES_FROM, CENTRE_FROM = 300.0, 100.0  # records times epsilon of a column (docs/theory/private_bounds.md)
SHARES = {QUARTILES: (Fraction(1, 2), Fraction(1, 2)), CENTRE: (Fraction(3, 5), Fraction(2, 5))}
FENCE, SPREADS = 2.0, 6.0  # quartile ranges beyond the quartiles, spreads about the centre
LOG_RATIO = 8.0  # of the quartiles, from which a logarithm is proposed
LAST_DAY = datetime.date.max.toordinal()
NO_SPREAD = (
    "no spread was found, as where most values are equal, or differ by less than a cell of the public grid is wide, "
    "0.3 % of their size (then subtract a public number from them), or are all below 1e-6 in size (then change the "
    "unit): no bounds are given"
)
PLACES = {QUARTILES: "a quartile", CENTRE: "the median"}
ZEROS = (
    "{place} is exactly 0, as where many values are 0: the more of them are, the more of the others do these bounds "
    "clip, and nearly all where three quarters are 0; widen them by public knowledge"
)
NO_LEVEL = 'no level stands out: write public ones, or levels = "hashed:16" for a column that is not conditioned on'
TOLD_OTHERS = 0.05  # share of records with none of the levels, from which on it is told
AT_AN_END = "what was released is at an end of the public grid: no bounds are given"


@dataclasses.dataclass(frozen=True, repr=False)
class DraftedSchema:
    """A schema whose bounds and levels were released. Noisy and public values only.

    columns: name -> the entry of a schema, with `released`: what was paid for it and how it was found; a column for
    which no bounds or levels were found has none. flags: name -> what to take care of. text: the TOML of these columns.
    """

    columns: Mapping[str, Mapping[str, Any]]
    flags: Mapping[str, str]
    cost: Cost
    mode: str
    unit: str = ""

    @property
    def text(self) -> str:
        """TOML of the drafted columns."""
        mark = [self.mark, ""] if self.mark else []
        unit = [unit_line(self.unit), ""] if self.unit else []
        return "\n".join([*mark, *unit, *self.sections().values()])

    @property
    def mark(self) -> str:
        """The comment that begins the text of a simulation; else empty."""
        told = f"# {NOT_PRIVATE}. No release takes these columns: draft them again without a seed."
        return told if self.mode == "simulation" else ""

    @property
    def schema(self) -> Schema:
        """The schema. Errors: ValueError where a column has no bounds or levels."""
        for name, entry in self.columns.items():
            wanted = "bounds" if entry["kind"] == CONTINUOUS else "levels"
            if wanted not in entry:
                raise ValueError(
                    f"column {name!r}: {self.flags[name]}; write {wanted} from public knowledge, or leave "
                    "the column out, as in schema={'columns': {...}} with the other entries of `columns`."
                )
        return Schema.from_dict({"columns": self.columns} | ({"unit": self.unit} if self.unit else {}))

    def sections(self) -> dict[str, str]:
        """name -> TOML of the column."""
        return {name: draft.section(name, entry, self.flags.get(name, "")) for name, entry in self.columns.items()}

    def save(self, path: str | os.PathLike) -> None:
        """Writes `text` to a file that must not exist."""
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(self.text)

    def __repr__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class DraftQuery(TableQuery[DraftedSchema]):
    """Columns whose bounds or levels are wanted, at what budget; `DraftQuery.of` checks it.

    schema: the columns of numbers, then those of levels. timed: those of dates whose type has times of day.
    """

    keywords: ClassVar = DraftOptions
    lacks: ClassVar = "private bounds need no sums of records, and cells without a value do no harm to them"

    schema: Schema
    epsilon: float
    delta: float = 0.0
    timed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, notation: Notation = PLAIN, delimiter: str = ",", **given: Unpack[DraftOptions]) -> DraftQuery:
        """notation: of numbers. Errors: ValueError, before a table is opened."""
        own = complete(DraftOptions, given)
        columns, dates, unit, delta = own["columns"], own["dates"], own["unit"], own["delta"]
        names, coded = as_names("columns", columns), as_names("levels_of", own["levels_of"])
        if not names + coded or duplicates(names + coded):
            raise ValueError(
                "columns must name at least one column, each once: those with numbers or dates (and levels_of those "
                "with texts or codes)."
            )
        long = next((name for name in names + coded if not is_setting(name)), None)
        if long is not None:
            raise ValueError(f"columns names {printed(long)}, which is no name of a column.")
        dated = list(_formats(dates))
        for place, name in enumerate(dated):
            if name not in names:
                raise ValueError(f"dates names {printed_name(dated, place, names)}, which is not among the columns.")
        if not (isinstance(unit, str) and is_setting(unit)):
            raise TypeError(f"unit must be the name of a column, got {printed(unit)}.")
        if not 0.0 <= delta < 1.0:
            raise ValueError(f"delta must be at least 0 and below 1, got {amounts.spent(delta)}.")
        if coded and not delta:
            raise ValueError(
                f"the levels of {listing(coded)} cannot be found at delta 0, where a level that one person holds would "
                "have to be as likely as any text: give a delta (--delta 1e-6), write levels from public knowledge, "
                'or levels = "hashed:16" for a column that is not conditioned on.'
            )
        if coded and delta < MIN_DELTA * len(coded):
            raise ValueError(f"delta must be at least {MIN_DELTA:g} for each column, got {amounts.spent(delta)}.")
        forms = {
            name: notation_of(f"column {name!r}", {"date": True if form == ISO else form}, {})
            for name, form in _formats(dates).items()
        }
        rules = {name: _everything(name, forms.get(name, notation)) for name in names}
        rules |= {name: ColumnRule(name, CATEGORICAL, fills=True, collects=True, drafted=True) for name in coded}
        return cls(Schema(rules, delimiter, unit), budget(own["epsilon"]), delta)

    @property
    def short(self) -> str:
        """The query in one line, for ledgers."""
        parts = {"bounds": self.numeric, "levels": self.coded}
        return "; ".join(f"private {what} of {', '.join(names)}" for what, names in parts.items() if names)

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns whose bounds are wanted."""
        return tuple(name for name, rule in self.schema.rules.items() if rule.is_continuous)

    @property
    def coded(self) -> tuple[str, ...]:
        """The columns whose levels are wanted."""
        return tuple(name for name, rule in self.schema.rules.items() if not rule.is_continuous)

    def selection(self, table: Table) -> Selection:
        """The columns."""
        return Selection(table, self.schema.names)

    def loader(self, selection: Selection, key: Any) -> tuple[DraftQuery, Callable[..., Any]]:
        """Records in memory."""
        rows = selection.rows_beyond()
        if rows is not None:
            raise ValueError(f"private bounds need all records in memory: {selection.in_memory(rows)}.")
        query = dataclasses.replace(self, timed=frozenset(readers.with_times(selection.table.source)))
        return query, functools.partial(query._load, shuffled=reading.is_release(key))

    def _load(self, source: Any, **how: Any) -> tuple[np.ndarray, list[Callable[[Any], list[str]]]]:
        """The columns (n, d), numbers in their own units and levels as codes; and what makes texts of codes again."""
        seen = {name: Vocabulary() for name in self.coded}
        known = {name: dataclasses.replace(self.schema.rule(name), vocabulary=own) for name, own in seen.items()}
        schema = dataclasses.replace(self.schema, rules={**self.schema.rules, **known})
        values = np.array(schema.read_table(source, **how)[0])
        texts: list[Callable[[Any], list[str]]] = []
        first = len(self.numeric)
        values[:, :first] *= WIDEST  # a power of two: exact
        for place, vocabulary in enumerate(seen.values(), first):
            values[:, place], numbers = vocabulary.compact(values[:, place])
            texts.append(functools.partial(_texts, vocabulary, numbers))
        return values, texts

    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> DraftedSchema:
        """Bounds and levels of all columns, charged together before a value is used."""
        import jax

        from jaxdp.randomness import keys

        values, texts = data
        method = self.method(values.shape[0])
        cost = Cost(epsilon=self.epsilon, delta=self.paid_delta(method))
        on_stage("looking for bounds")
        with jax.enable_x64(True):
            query = self.query(method)
            mode = keys.admit(key, query, values)
            with charge.paid(
                account, self.charged_as, cost, key, mode=mode, rehearse=lambda: core.rehearse(query, values)
            ):
                released = core.release(query, key, values)
        columns, flags = {}, {}
        if self.numeric:
            for name, (first, second) in zip(self.numeric, self._places(method, released), strict=True):
                columns[name], flags[name] = self._entry(name, method, float(first), float(second))
        if self.coded:
            counts = self._levels.found(released.earlier[0] if self.numeric else released)
            for name, of_codes, own in zip(self.coded, texts, counts, strict=True):
                named, others = of_codes(np.flatnonzero(own)), 1.0 - float(own.sum()) / values.shape[0]
                columns[name], flags[name] = self._entry_of_levels(named, others)
        named = {DRAFT: name_of(columns)} | ({SIMULATED: True} if mode == keys.SIMULATION else {})
        for entry in columns.values():
            entry[RELEASED] |= named
        told = {name: flag for name, flag in flags.items() if flag}
        return DraftedSchema(columns, told, cost, released.mode, self.schema.unit)

    def method(self, num_records: int) -> str:
        """How the bounds are found, by public numbers. Errors: ValueError where the noise would decide them."""
        if self.coded:
            self._require_nameable(num_records)
        if not self.numeric:
            return STABILITY
        if num_records * self.column_epsilon(QUARTILES) >= QUARTILES_FROM:
            return QUARTILES
        if num_records * self.column_epsilon(CENTRE) >= CENTRE_FROM:
            return CENTRE
        count = len(self.schema.names)
        records = math.ceil(CENTRE_FROM / self.column_epsilon(CENTRE))
        raise ValueError(
            f"{num_records} records are too few for the bounds of {count} column{'s' if count > 1 else ''} at epsilon "
            f"{amounts.spent(self.epsilon)}: at least {records} are needed, or epsilon "
            f"{CENTRE_FROM * count / num_records:.2g}, or fewer columns."
        )

    def _require_nameable(self, num_records: int) -> None:
        """Raises ValueError where no two levels can be named, or one that a single record holds might be."""
        if self.delta * num_records > 1.0:
            raise ValueError(
                f"delta {amounts.spent(self.delta)} is more than one in {num_records} records, of which one may be "
                "named by it: give a delta far below, such as 1e-6."
            )
        least = self._levels.threshold()
        if 2 * least > num_records:
            raise ValueError(
                f"{num_records} records are too few for the levels of {listing(self.coded)}: a level is named from "
                f"about {least} records on. Give more epsilon, name fewer columns, write levels from public knowledge, "
                'or levels = "hashed:16" for a column that is not conditioned on.'
            )

    @property
    def charged_as(self) -> str:
        """The name of the release in ledgers."""
        stages = {ColumnQuantiles.method: self.numeric, ColumnLevels.method: self.coded}
        return "+".join(method for method, names in stages.items() if names)

    @property
    def _levels(self) -> ColumnLevels:
        """The release of levels."""
        each, count = Fraction(len(self.coded), len(self.schema.names)), len(self.coded)
        return ColumnLevels(
            epsilon=check.share(self.epsilon, each), delta=self.delta, num_columns=count, skipped=len(self.numeric)
        )

    def column_epsilon(self, method: str) -> float:
        """Epsilon of each column: an equal share, or what zCDP leaves for it where that is more."""
        count = len(self.schema.names)
        pure = self.epsilon / count
        if not self.delta or self.coded:  # levels take all of delta
            return pure
        from jaxdp.accounting.renyi import zcdp_rho

        # a selection of epsilon s e costs (s e)^2/2
        squares = float(sum(share**2 for share in SHARES[method]))
        return max(pure, math.sqrt(2.0 * zcdp_rho(self.epsilon, self.delta) / (count * squares)) * (1.0 - 1e-9))

    def paid_delta(self, method: str) -> float:
        """Of delta: all of it where levels need it or it buys less noise, else nothing."""
        return self.delta if self.coded or self.column_epsilon(method) > self.epsilon / len(self.schema.names) else 0.0

    def _stages(self, method: str) -> list[ColumnQuantiles]:
        """What is released, one after the other."""
        count = len(self.numeric)
        each, share = self.column_epsilon(method), Fraction(count, len(self.schema.names))
        total = check.share(self.epsilon, share) if each == self.epsilon / len(self.schema.names) else each * count
        if method == QUARTILES:
            return [ColumnQuantiles(epsilon=total, levels=(0.25, 0.75), num_columns=count)]
        return [ColumnQuantiles(epsilon=check.share(total, share), num_columns=count) for share in SHARES[method]]

    def query(self, method: str) -> core.PrivateQuery | core.Sequential:
        """All stages together: levels first."""
        if method == STABILITY:
            return self._levels
        first, *then = self._stages(method)
        bounds: Any = core.Sequential(first=first, second=then[0], then=_about) if then else first
        return core.Sequential(first=self._levels, second=bounds, then=_unchanged) if self.coded else bounds

    def _places(self, method: str, released: core.Release) -> np.ndarray:
        """Quartiles, or centre and spread, of each column, (d, 2)."""
        first, *then = self._stages(method)
        if not then:
            return first.found(released)
        centre = released.earlier[-1]
        return np.concatenate([first.found(centre), _about(then[0], first, centre).found(released)], axis=1)

    def _entry(self, name: str, method: str, first: float, second: float) -> tuple[dict[str, Any], str]:
        """The entry of a column, from its quartiles or its centre and spread, and what to take care of."""
        rule = self.schema.rule(name)
        entry: dict[str, Any] = {"kind": CONTINUOUS}
        if rule.is_date:
            entry["date"] = rule.notation.date == ISO or rule.notation.date
        elif rule.notation.decimal != PLAIN.decimal:
            entry["decimal"] = rule.notation.decimal
        paid = self._paid(method)
        if max(abs(first), abs(second)) == math.inf:
            told = AT_AN_END
        elif second == first if method == QUARTILES else second <= LEAST:
            told = NO_SPREAD
        else:
            low, high, told = _bounds(method, first, second)
            if 0.0 in ((first, second) if method == QUARTILES else (first,)):  # the cell beside 0, 2^-20 wide
                told = ZEROS.format(place=PLACES[method])
            entry["bounds"] = [_day(low, rule.notation), _day(high, rule.notation)] if rule.is_date else [low, high]
        if rule.notation.date == ISO and name in self.timed:
            entry["cycles"] = list(draft.CYCLES_OF_TIMES)
        return {**entry, RELEASED: paid}, told

    def _entry_of_levels(self, named: list[str], others: float) -> tuple[dict[str, Any], str]:
        """The entry of a column of levels, and what to take care of. others: noisy share of records without one."""
        paid = {**self._paid(STABILITY), "least": self._levels.threshold()}
        if not named:
            return {"kind": CATEGORICAL, RELEASED: paid}, NO_LEVEL
        told = f"about {min(others, 1.0):.0%} of the records hold other levels or none" if others > TOLD_OTHERS else ""
        return {"kind": CATEGORICAL, "levels": [*named, OTHER], "other": OTHER, RELEASED: paid}, told

    def _paid(self, method: str) -> dict[str, Any]:
        """What was paid for all columns, and how those of a kind were found."""
        paid: dict[str, Any] = {"epsilon": self.epsilon, "columns": len(self.schema.names), "method": method}
        paid |= {"delta": self.paid_delta(method)} if self.paid_delta(method) else {}
        return paid | ({"unit": self.schema.unit} if self.schema.unit else {})


def _texts(vocabulary: Vocabulary, numbers: np.ndarray, codes: Any) -> list[str]:
    """The texts of released codes of records."""
    return vocabulary.texts(numbers[codes])


def _unchanged(second: Any, first: core.PrivateQuery, released: core.Release) -> Any:
    """The second stage, whatever the first released."""
    return second


def _about(spread: ColumnQuantiles, centre: ColumnQuantiles, released: core.Release) -> ColumnQuantiles:
    """The query for distances from the released centres."""
    return dataclasses.replace(spread, about=centre.found(released)[:, 0])


def _everything(name: str, notation: Notation) -> ColumnRule:
    """A continuous column of which nothing is known: all numbers are within its bounds, a power of two."""
    return ColumnRule(
        name, CONTINUOUS, -WIDEST, WIDEST, missing=math.nan, fills=True, collects=True, notation=notation, drafted=True
    )


def _bounds(method: str, first: float, second: float) -> tuple[float, float, str]:
    """Bounds that leave out few values of most columns, rounded outward, and what to take care of."""
    if method == CENTRE:
        return *outward(first - SPREADS * second, first + SPREADS * second), ""
    low, high, told = min(first, second), max(first, second), ""
    if low > 0.0 and high > LOG_RATIO * low:
        ratio = (high / low) ** FENCE
        known = ", ".join(f"{end:.2g}" for end in (low / ratio, high * ratio))
        told = f'the quartiles differ by more than {LOG_RATIO:g} times: scale = "log" with bounds = [{known}] may suit'
    return *outward(low - FENCE * (high - low), high + FENCE * (high - low)), told


def _day(number: float, notation: Notation) -> str | datetime.date:
    """A day as a schema has it: a text, or a date where a text would have to be in the column's own format."""
    day = datetime.date.fromordinal(min(max(math.floor(number) + DAYS_TO_1970, 1), LAST_DAY))
    return day.isoformat() if notation.date == ISO else day


def _formats(dates: Any) -> dict[str, str]:
    """name -> format of the columns that hold dates."""
    if isinstance(dates, Mapping):
        return dict(dates)
    return dict.fromkeys(as_names("dates", dates), ISO)


def outward(low: float, high: float) -> tuple[float, float]:
    """The ends, rounded outward to a hundredth of the width at most."""
    unit = 10.0 ** math.floor(math.log10((high - low) / 10.0))
    return _plain(math.floor(low / unit) * unit), _plain(math.ceil(high / unit) * unit)


def _plain(number: float) -> float:
    """Without the digits that rounding left over, and a whole number where it is one."""
    short = float(f"{number:.12g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


@table_call(DraftOptions)
def draft_schema(table: Any, **how: Unpack[DraftOptions]) -> DraftedSchema:
    """Bounds and levels of columns that are not public knowledge, found privately.

        found = jaxdp.draft_schema(frame, columns=["income", "age"], epsilon=0.2, ledger=ledger)
        jaxdp.test(frame, x="income", y="age", schema=found, epsilon=0.8, ledger=ledger)

    columns: names of columns of numbers or dates. levels_of: of texts or codes, whose levels are found with a delta:
    those that many records hold are named, the others become the level "(other)". All columns share the budget.
    dates: those of numbers that hold dates, such as 2024-12-31; a mapping names another format, as
    {"visit": "%d.%m.%Y"}.
    unit: column that says whose a row is. delta: needed for levels; of bounds alone it is noise under
    (epsilon, delta)-DP where that is smaller, from about nine columns on, and for fewer nothing of it is spent.
    table, ledger, key, strict, records, force, memory: as in `jaxdp.test`.

    Let e be a column's share of epsilon. If n e is at least 300, its bounds lie two interquartile ranges beyond the
    quartiles; if n e is at least 100, six spreads to either side of the median, the spread being the median distance
    from the median. Below 100 the draft is refused before anything is charged.
    Bounds are paid for once, whatever the number of later answers; the p-values of these stay valid, since the bounds
    of a column follow from that column alone. Edit bounds by public knowledge, never after a look at the records.

    Privacy: epsilon-DP (or (epsilon, delta)-DP) under replace-one. Errors: as `jaxdp.test`. Source:
    docs/theory/private_bounds.md, docs/theory/private_levels.md.
    """
    return asked(DraftQuery, table, how)
