"""`jaxdp.draft_schema`: bounds of columns that are not public knowledge, found privately and paid for."""

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

import numpy as np

from jaxdp import charge, core
from jaxdp._base import amounts, check
from jaxdp._base.keywords import complete
from jaxdp._base.printed import is_setting, printed, printed_name
from jaxdp.ask import reading
from jaxdp.ask.calls import DraftOptions
from jaxdp.ask.column_quantiles import LARGEST, SMALLEST, ColumnQuantiles
from jaxdp.ask.reading import Selection, Table
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import TableQuery, asked, budget
from jaxdp.core import Cost
from jaxdp.data import draft
from jaxdp.data.coding import ColumnRule, duplicates
from jaxdp.data.dataset import CONTINUOUS
from jaxdp.data.notation import DAYS_TO_1970, ISO, PLAIN, Notation
from jaxdp.data.schema import Schema, as_names, notation_of

WIDEST, LEAST = 2.0 ** (LARGEST + 1), 2.0**SMALLEST  # what lies beyond the grid is told from its last cell
QUARTILES, CENTRE = "quartiles", "centre-spread"
QUARTILES_FROM, CENTRE_FROM = 300.0, 100.0  # records times epsilon of a column (docs/theory/private_bounds.md)
SHARES = {QUARTILES: (Fraction(1, 2), Fraction(1, 2)), CENTRE: (Fraction(3, 5), Fraction(2, 5))}
FENCE, SPREADS = 2.0, 6.0  # quartile ranges beyond the quartiles, spreads about the centre
LOG_RATIO = 8.0  # of the quartiles, from which a logarithm is proposed
LAST_DAY = datetime.date.max.toordinal()
NO_SPREAD = "no spread was found, as where most values are equal: no bounds are given"
AT_AN_END = "what was released is at an end of the public grid: no bounds are given"


@dataclasses.dataclass(frozen=True, repr=False)
class DraftedSchema:
    """A schema whose bounds were released. Noisy and public values only.

    columns: name -> the entry of a schema, with `released`: what was paid for it and how it was found; a column for
    which no bounds were found has none. flags: name -> what to take care of. text: the TOML of these columns.
    """

    columns: Mapping[str, Mapping[str, Any]]
    flags: Mapping[str, str]
    cost: Cost
    mode: str
    unit: str = ""

    @property
    def text(self) -> str:
        """TOML of the drafted columns."""
        top = [f'unit = "{self.unit}"', ""] if self.unit else []
        return "\n".join([*top, *self.sections().values()])

    @property
    def schema(self) -> Schema:
        """The schema. Errors: ValueError where a column has no bounds."""
        for name, entry in self.columns.items():
            if "bounds" not in entry:
                raise ValueError(f"column {name!r}: {self.flags[name]}; write bounds from public knowledge.")
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
    """Columns whose bounds are wanted, at what budget; `DraftQuery.of` checks it."""

    keywords: ClassVar = DraftOptions
    lacks: ClassVar = "private bounds need no sums of records, and cells without a value do no harm to them"

    schema: Schema
    epsilon: float
    delta: float = 0.0

    @classmethod
    def of(cls, notation: Notation = PLAIN, delimiter: str = ",", **given: Unpack[DraftOptions]) -> DraftQuery:
        """notation: of numbers. Errors: ValueError, before a table is opened."""
        own = complete(DraftOptions, given)
        columns, dates, unit, delta = own["columns"], own["dates"], own["unit"], own["delta"]
        names = as_names("columns", columns)
        if not names or duplicates(names):
            raise ValueError("columns must name at least one column, each once: those with numbers or dates.")
        long = next((name for name in names if not is_setting(name)), None)
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
        forms = {name: _form(name, form) for name, form in _formats(dates).items()}
        rules = {name: _everything(name, forms.get(name, notation)) for name in names}
        return cls(Schema(rules, delimiter, unit), budget(own["epsilon"]), delta)

    @property
    def short(self) -> str:
        """The query in one line, for ledgers."""
        return f"private bounds of {', '.join(self.schema.names)}"

    def selection(self, table: Table) -> Selection:
        """The columns."""
        return Selection(table, self.schema.names)

    def loader(self, selection: Selection, key: Any) -> tuple[DraftQuery, Callable[..., Any]]:
        """Records in memory."""
        rows = selection.rows_beyond()
        if rows is not None:
            raise ValueError(f"private bounds need all records in memory: {selection.in_memory(rows)}.")
        return self, functools.partial(self.schema.read_table, shuffled=reading.is_release(key))

    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> DraftedSchema:
        """Bounds of all columns, charged together before a value is used."""
        import jax

        from jaxdp.randomness import keys

        values = np.asarray(data[0]) * WIDEST  # a power of two: exact
        method = self.method(values.shape[0])
        cost = Cost(epsilon=self.epsilon, delta=self.paid_delta(method))
        on_stage("looking for bounds")
        with jax.enable_x64(True):
            query = self.query(method)
            mode = keys.admit(key, query, values)
            with charge.paid(
                account, ColumnQuantiles.method, cost, key, mode=mode, rehearse=lambda: core.rehearse(query, values)
            ):
                released = core.release(query, key, values)
        found = self._places(method, released)
        columns, flags = {}, {}
        for name, (first, second) in zip(self.schema.names, found, strict=True):
            columns[name], flags[name] = self._entry(name, method, float(first), float(second))
        told = {name: flag for name, flag in flags.items() if flag}
        return DraftedSchema(columns, told, cost, released.mode, self.schema.unit)

    def method(self, num_records: int) -> str:
        """How the bounds are found, by public numbers. Errors: ValueError where the noise would decide them."""
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

    def column_epsilon(self, method: str) -> float:
        """Epsilon of each column: an equal share, or what zCDP leaves for it where that is more."""
        count = len(self.schema.names)
        pure = self.epsilon / count
        if not self.delta:
            return pure
        from jaxdp.accounting.renyi import zcdp_rho

        # a selection of epsilon s e costs (s e)^2/2
        squares = float(sum(share**2 for share in SHARES[method]))
        return max(pure, math.sqrt(2.0 * zcdp_rho(self.epsilon, self.delta) / (count * squares)) * (1.0 - 1e-9))

    def paid_delta(self, method: str) -> float:
        """Of delta: all of it where it buys less noise, else nothing."""
        return self.delta if self.column_epsilon(method) > self.epsilon / len(self.schema.names) else 0.0

    def _stages(self, method: str) -> list[ColumnQuantiles]:
        """What is released, one after the other."""
        count = len(self.schema.names)
        each = self.column_epsilon(method)
        total = self.epsilon if each == self.epsilon / count else each * count
        if method == QUARTILES:
            return [ColumnQuantiles(epsilon=total, levels=(0.25, 0.75), num_columns=count)]
        return [ColumnQuantiles(epsilon=check.share(total, share), num_columns=count) for share in SHARES[method]]

    def query(self, method: str) -> ColumnQuantiles | core.Sequential:
        """All stages together."""
        first, *then = self._stages(method)
        return core.Sequential(first=first, second=then[0], then=_about) if then else first

    def _places(self, method: str, released: core.Release) -> np.ndarray:
        """Quartiles, or centre and spread, of each column, (d, 2)."""
        first, *then = self._stages(method)
        if not then:
            return first.found(released)
        centre = released.earlier[0]
        return np.concatenate([first.found(centre), _about(then[0], first, centre).found(released)], axis=1)

    def _entry(self, name: str, method: str, first: float, second: float) -> tuple[dict[str, Any], str]:
        """The entry of a column, from its quartiles or its centre and spread, and what to take care of."""
        rule = self.schema.rule(name)
        entry: dict[str, Any] = {"kind": CONTINUOUS}
        if rule.is_date:
            entry["date"] = rule.notation.date == ISO or rule.notation.date
        elif rule.notation.decimal != PLAIN.decimal:
            entry["decimal"] = rule.notation.decimal
        paid: dict[str, Any] = {"epsilon": self.epsilon, "columns": len(self.schema.names), "method": method}
        paid |= {"delta": self.paid_delta(method)} if self.paid_delta(method) else {}
        paid |= {"unit": self.schema.unit} if self.schema.unit else {}
        if max(abs(first), abs(second)) == math.inf:
            told = AT_AN_END
        elif second == first if method == QUARTILES else second <= LEAST:
            told = NO_SPREAD
        else:
            low, high, told = _bounds(method, first, second)
            entry["bounds"] = [_day(low, rule.notation), _day(high, rule.notation)] if rule.is_date else [low, high]
        return {**entry, "released": paid}, told


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


def _form(name: str, form: Any) -> Notation:
    return notation_of(f"column {name!r}", {"date": True if form == ISO else form}, {})


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
    """Bounds of numeric columns that are not public knowledge, found privately.

        found = jaxdp.draft_schema(frame, columns=["income", "age"], epsilon=0.2, ledger=ledger)
        jaxdp.test(frame, x="income", y="age", schema=found.schema, epsilon=0.8, ledger=ledger)

    columns: names of columns of numbers or dates, which share the budget. dates: those of them that hold dates, such as
    2024-12-31; a mapping names another format, as {"visit": "%d.%m.%Y"}.
    unit: the column that says whose record a row is. delta: allows (epsilon, delta)-DP, which is used if it gives less
    noise, from about nine columns on; for fewer columns no delta is spent.
    table, ledger, key, strict, records, force, memory: as in `jaxdp.test`.

    Let e be a column's share of epsilon. If n e is at least 300, its bounds lie two interquartile ranges beyond the
    quartiles; if n e is at least 100, six spreads to either side of the median, the spread being the median distance
    from the median. Below 100 the draft is refused before anything is charged.
    Bounds are paid for once, whatever the number of later answers; the p-values of these stay valid, since the bounds
    of a column follow from that column alone. Edit bounds by public knowledge, never after a look at the records.

    Privacy: epsilon-DP (or (epsilon, delta)-DP) under replace-one. Errors: as `jaxdp.test`. Source:
    docs/theory/private_bounds.md.
    """
    return asked(DraftQuery, table, how)
