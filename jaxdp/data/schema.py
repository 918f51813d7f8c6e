"""Schema: what is publicly known about the columns of a table, checked key by key.

[columns.age]
kind = "continuous"      # continuous | ordinal | categorical | binary
bounds = [18, 90]        # continuous: public limits, values outside are clipped
step = 1                 # continuous, optional: public distance of possible values (1: whole numbers)
missing = 18             # what an empty or unreadable value means (else: refused, or dropped)
decimal = ","            # how numbers are written; also thousands = ".", percent = true, date = "%d.%m.%Y"
cycles = ["day", "week"] # dates as Z: time of day and weekday are conditioned on too; [] for neither
heaps = [1000, 500]      # continuous as Z: so is whether a value is a multiple of these; or labels = true

[columns.smoker]
kind = "binary"
levels = ["no", "yes"]   # the other kinds: public levels, in order
other = "no"             # where an unknown level goes (default: first level)
levels = "hashed:16"     # categorical X or Y whose levels nobody may list: 16 cells of a public hash
boolean = true           # instead of levels: truth values in any usual spelling
"""

from __future__ import annotations

import dataclasses
import difflib
import errno
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from jaxdp._base.owner import OWNER, warn_owner
from jaxdp._base.printed import path_of, printed, printed_name
from jaxdp.data import conditioning, readers
from jaxdp.data.coding import ColumnRule, duplicates
from jaxdp.data.column_rules import SURVIVAL, column_rule, columns_of_outcome, outcome, reject_unknown_keys
from jaxdp.data.columns import CATEGORICAL, Column, Domain
from jaxdp.data.parse_report import CODED, EMPTY_THEM, ParseReport
from jaxdp.data.units import ALL, FIRST, ROWS, DrawnRows, Units, are_rounded

if TYPE_CHECKING:
    from jaxdp.data.dataset import Data
    from jaxdp.data.person_rows import PersonRows

SCHEMA_KEYS = ("columns", "delimiter", "decimal", "thousands", "unit", "rows", "missing")
REFUSE, DROP = "refuse", "drop"  # what becomes of records with cells that nobody said the meaning of
LEFT_OUT = (
    "Records without a value in one of these columns were left out: n counts the complete ones, whose values are "
    "protected. The number of complete records is public and not protected. The answer is about complete records. "
    "It also holds for all records if completeness depends on none of the columns that are asked about; for a test of "
    "independence it suffices that completeness depends on X or on Y alone (given Z), not on both."
)
WITHOUT_VALUES = (
    'leave such records out with missing = "drop" at the top of the schema, which makes the number of complete records '
    "public, or write in it what such a cell means (missing = ..., other = ...); report=ParseReport() counts them and "
    "fills them all the same"
)
BY_SOME = "by the tests for which jaxdp.test would refuse this table (docs/theory/missing.md)"
CODES, SCALED, GIVEN = "codes", "scaled", "given"  # the forms in which a column becomes numbers


@dataclasses.dataclass(frozen=True)
class Schema:
    """Public knowledge about the columns of a table: `Schema.load(path)` or `Schema.from_dict(mapping)`.

    rules: one checked rule per column. delimiter: what separates the fields of a CSV file. unit: column that says whose
    a row is, where a person has several rows. rows: which of a person's rows count: "all", the default, where the query
    can average over them, and one row drawn at random elsewhere; always one drawn at "random"; or the "first".
    missing: "drop" leaves out records without a value in a column that is asked about; "refuse" tells the owner where
    they would do harm.
    outcomes: name -> (times, events), of kind = "survival": y may name them by it.
    Privacy: everything here is public; bounds and levels must not be computed from the records.
    """

    rules: Mapping[str, ColumnRule]
    delimiter: str = ","
    unit: str = ""
    missing: str = REFUSE
    outcomes: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    rows: str = ALL

    def __post_init__(self):
        if self.missing not in (REFUSE, DROP):
            raise ValueError(f"missing must be {REFUSE!r} or {DROP!r} for a whole table, got {printed(self.missing)}.")
        if self.rows not in ROWS:
            raise ValueError(f"rows must be {', '.join(map(repr, ROWS))}, got {printed(self.rows)}.")

    @classmethod
    def load(cls, path: str | os.PathLike) -> Schema:
        """Reads a TOML file, or JSON with the same keys where the name ends in .json.

        Errors: OSError if the file cannot be opened, ValueError or TypeError with one sentence otherwise.
        """
        name = path_of("schema", path)
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            told = "there is no such schema (jaxdp schema draft writes a first one)"
            raise FileNotFoundError(errno.ENOENT, told, name) from None
        try:
            text = content.decode("utf-8-sig")
            spec = _parse_json(text) if Path(path).suffix.lower() == ".json" else tomllib.loads(text)
        except UnicodeDecodeError:
            raise ValueError(f"schema {name} is not UTF-8 text: save it as UTF-8.") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"schema {name} cannot be read: {error}.") from None
        return cls.from_dict(spec)

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any]) -> Schema:
        """A schema from a mapping of the shape {"columns": {name: {"kind": ..., ...}}}."""
        if not isinstance(spec, Mapping):
            raise TypeError(f"a schema must be a mapping with the key 'columns', got {type(spec).__name__}.")
        reject_unknown_keys("the schema", spec, SCHEMA_KEYS)
        columns = spec.get("columns")
        if not isinstance(columns, Mapping) or not columns:
            raise ValueError(
                'the schema describes no column: write [columns.NAME], kind = "continuous", bounds = [LOW, HIGH].'
            )
        delimiter = spec.get("delimiter", ",")
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
            raise ValueError(f'delimiter must be one character such as "," or ";" or "\\t", got {printed(delimiter)}.')
        unit = spec.get("unit", "")
        if not isinstance(unit, str):
            raise TypeError(f'unit must be the name of a column such as "patient_id", got {type(unit).__name__}.')
        shared = {key: spec[key] for key in ("decimal", "thousands") if key in spec}
        entries = {str(name): entry for name, entry in columns.items()}
        times = [
            name for name, entry in entries.items() if isinstance(entry, Mapping) and entry.get("kind") == SURVIVAL
        ]
        for name in times:
            entries |= columns_of_outcome(name, entries[name], entries)
        rules = {name: column_rule(name, entry, shared) for name, entry in entries.items() if name not in times}
        outcomes = {name: outcome(name, entries[name], rules) for name in times}
        for _, event in outcomes.values():
            rules[event] = dataclasses.replace(rules[event], event=True)
        return cls(rules, delimiter, unit, spec.get("missing", REFUSE), outcomes, spec.get("rows", ALL))

    @property
    def names(self) -> tuple[str, ...]:
        """The described columns."""
        return tuple(self.rules)

    @property
    def protects(self) -> str:
        """As `describe_records`, of a query that takes one row of each person."""
        return self.describe_records()

    def describe_records(self, every_row: bool = False) -> str:
        """What one record is where a person may have several rows or lack values, in words; else the empty text.

        every_row: the query averages over the rows of each person (`averages`).
        """
        told = []
        if self.unit:
            told.append(self._describe_unit(every_row))
        if self.missing == DROP:
            told.append(LEFT_OUT)
        return " ".join(told)

    def _describe_unit(self, every_row: bool) -> str:
        protected = "n counts these records, and each of them is protected with all of its rows."
        if every_row:
            told = f"One record per {self.unit}, which counts once with all of its rows, whatever their number"
            return f"{told}: {protected} The answer is about one row of each {self.unit}, drawn at random."
        if self.rows == FIRST:
            rows = "complete rows" if self.missing == DROP else "rows"
            return f"One record per {self.unit}, the first of its {rows}: {protected}"
        return f"One record per {self.unit}, one of its rows, drawn at random: {protected}"

    def averages(self, able: bool) -> bool:
        """Whether a query that is able to average over the rows of each person does so."""
        return bool(self.unit) and self.rows == ALL and able

    def read(
        self,
        source: Any,
        *,
        x: str | Sequence[str],
        y: str | Sequence[str] | None,
        given: str | Sequence[str] = (),
        codes: bool = False,
        strict: bool = False,
        records: int | None = None,
        report: ParseReport | None = None,
        shuffled: bool = False,
        draws: int = 1,
    ) -> Data | PersonRows:
        """Reads the columns of one query and returns arrays that public knowledge alone has scaled.

        source: path of a CSV file, a pandas, polars or pyarrow table, or a mapping of name -> (n,) values.
        x, y, given: column names, one or several; y: None for a test of x alone, whose y is x. Returns float64
        arrays: x, y of shape (n,), or (n, p) for several columns; z (n, d), or None without `given`.
        Continuous columns are clipped to their bounds and scaled to [-1, 1]. In x and y, ordered and two-level
        columns are equally spaced on [-1, 1] and other categorical ones become one -1/1 indicator per level;
        with codes=True all of these are codes 0, ..., L - 1, as in z.

        strict: nothing that a record holds is an error or changes n, for callers who may see errors but not records.
        A record of a CSV file is then one line, parsed by itself: a line break inside quotes ends it. A malformed
        line (empty, not UTF-8, badly quoted, too long, other fields than the header's) is a record of empty cells.
        records: the public number of records. strict drops and fills rows up to it; without strict, another number is
        an error. report: counts what did not say what the schema expects; private.
        Without strict and without a report of your own, more than sqrt(n)/4 cells of a column without a value are
        refused (`FormError`), as by `jaxdp.test`: filled with one value they would be taken for dependence.
        With a `unit` there is one record per unit, in the order of the ids; that protects what their rows hold while
        the ids count as public. shuffled: in a random order from the operating system, which protects ids as well.
        draws: more than one makes `jaxdp.data.person_rows.PersonRows` of so many draws of one row per unit.
        Errors: OSError, ValueError or TypeError on public mistakes (file, header, names), quoting no value.
        Without strict also `readers.FormError` where a record has a wrong form: such an error, and that there was
        none, depends on records and must not be published.
        """
        x, y, given = self.roles(x, y, given)
        forms = _forms(x, y, given, codes)
        how: dict[str, Any] = {"strict": strict, "records": records, "report": report, "shuffled": shuffled}
        table = self._checked_table(source, forms, given, draws=draws, **how)
        data = self._data(table, x, y, given, forms)
        if draws == 1:
            return data
        from jaxdp.data.person_rows import PersonRows

        return PersonRows(data)

    def coded(
        self, piece: Mapping[str, Any], x: Sequence[str], y: Sequence[str], given: Sequence[str], codes: bool
    ) -> Data:
        """The rows of one piece of a table (`readers.pieces`) as `read` returns them; each row by itself."""
        forms = _forms(x, y, given, codes)
        table = {name: self._coded(piece, name, form) for name, form in forms.items()}
        return self._data(table, x, y, given, forms)

    def roles(self, x: Any, y: Any, given: Any) -> tuple[list[str], list[str], list[str]]:
        """The columns of x, y and z as lists. Errors: as `read`."""
        alone = y is None
        x, y, given = self.named("x", x), self.named("y", () if alone else y), self.named("given", given)
        for role, names in (("x", x), ("y", y)):
            if not names and not (alone and role == "y"):
                raise ValueError(f"{role} names no column: give at least one of {_listing(self.names)}.")
        repeated = duplicates([*x, *y, *given])
        if repeated:
            raise ValueError(f"column {repeated[0]!r} is used twice among x, y and given: name every column once.")
        return x, y, given

    def _data(self, table: Mapping[str, np.ndarray], x, y, given, forms: Mapping[str, str]) -> Data:
        from jaxdp.data.dataset import Data  # with JAX, which the schema alone does not need

        def take(names):
            return table[names[0]] if len(names) == 1 else np.concatenate([table[name] for name in names], axis=-1)

        def columns(names):
            return tuple(c for n in names for c in self._columns(n, forms[n]))

        y = y or x  # of a test of x alone
        return Data(
            _squeeze(take(x)),
            _squeeze(take(y)),
            take(given) if given else None,
            domain=Domain(columns(x), columns(y), columns(given)),
        )

    def _coded(self, piece: Mapping[str, Any], name: str, form: str) -> np.ndarray:
        """The cells of a column as numbers (n, columns)."""
        rule = self.rule(name)
        cells = piece[name]
        if form == GIVEN:
            return conditioning.values(rule, cells)
        values = rule.scaled(cells) if form == SCALED else rule.codes(cells)
        return values.reshape(len(values), len(self._columns(name, form)))

    def read_table(
        self,
        source: Any,
        names: Sequence[str] | None = None,
        *,
        given: Sequence[str] = (),
        strict: bool = False,
        records: int | None = None,
        report: ParseReport | None = None,
        shuffled: bool = False,
    ) -> tuple[np.ndarray, tuple[Column, ...]]:
        """All described columns (or the named ones) as one float64 array (n, d), and their descriptions.

        Continuous columns are scaled to [-1, 1], the other kinds are codes 0, ..., L - 1. given: further columns, as
        `read` codes those that are conditioned on. strict, records, report, shuffled and errors: as in `read`; any of
        the columns may be conditioned on, as in a search.
        """
        names = self.named("names", self.names if names is None else names)
        if not names or duplicates([*names, *given]):
            raise ValueError("name at least one column, and each column once.")
        forms = _forms(names, (), given, codes=True)
        how: dict[str, Any] = {"strict": strict, "records": records, "report": report, "shuffled": shuffled}
        table = self._checked_table(source, forms, (*names, *given), **how)
        return np.concatenate([table[name] for name in forms], axis=1), self.columns_of(names, given)

    def columns_of(self, names: Sequence[str], given: Sequence[str] = ()) -> tuple[Column, ...]:
        """Public descriptions of columns as `read_table` codes them."""
        forms = _forms(names, (), given, codes=True)
        return tuple(column for name, form in forms.items() for column in self._columns(name, form))

    def coded_table(self, piece: Mapping[str, Any], names: Sequence[str], given: Sequence[str] = ()) -> np.ndarray:
        """The rows of one piece of a table as `read_table` returns them, float64 (n, d)."""
        forms = _forms(names, (), given, codes=True)
        return np.concatenate([self._coded(piece, name, form) for name, form in forms.items()], axis=1)

    def rule(self, name: str) -> ColumnRule:
        """The rule of a column; ValueError if the schema does not describe it."""
        if name not in self.rules:
            self._refuse([name], 0)
        return self.rules[name]

    def conditioned_on(self, given: Sequence[str]) -> Schema:
        """This schema for a question given these columns.

        Levels of which nobody has said that they have an order are conditioned on as unordered ones; the level of a
        draft for all others is one like any of the columns that are asked about.
        """

        def within(name: str, rule: ColumnRule) -> ColumnRule:
            if name in given:
                return dataclasses.replace(rule, kind=CATEGORICAL) if rule.guessed else rule
            return dataclasses.replace(rule, asked=True) if rule.pools else rule

        return dataclasses.replace(self, rules={name: within(name, rule) for name, rule in self.rules.items()})

    def hour_by_hour(self, given: Sequence[str], num_records: int = 0) -> Schema:
        """This schema with dates with times among these columns conditioned on by day and hour (`conditioning`).

        num_records: of so many, parts of an hour are compared.
        """
        parts = conditioning.parts_of(map(self.rule, given), num_records)
        rules = {name: conditioning.hour_by_hour(self.rule(name), parts) for name in given}
        return dataclasses.replace(self, rules={**self.rules, **rules})

    def named(self, role: str, names: Any) -> list[str]:
        """One described column or several, as a list. Errors: as `as_names`, and ValueError for other columns."""
        found = as_names(role, names)
        for place, name in enumerate(found):
            if name in self.outcomes and role == "y" and len(found) == 1:
                return list(self.outcomes[name])
            if name in self.outcomes:
                time, event = self.outcomes[name]
                way_out = "name it as y, by itself" if role in ("x", "y", "given") else "leave it out here"
                raise ValueError(f"column {name!r} stands for the times {time!r} and the events {event!r}: {way_out}.")
            if name not in self.rules:
                self._refuse(found, place, self.outcomes if role == "y" else ())
        if role == "given":
            self.require_unhashed(found)
        return found

    def require_unhashed(self, names: Sequence[str]) -> None:
        """Raises ValueError for a column with hashed levels, which must not be conditioned on."""
        for name in names:
            if self.rule(name).hashed:
                raise ValueError(
                    f"column {name!r} has hashed levels and cannot be conditioned on: records of different levels "
                    "would be compared as if they were alike. Write its levels from public knowledge, or find them "
                    "with a delta (jaxdp schema draft --private --levels-of)."
                )

    def require_released(self, names: Iterable[str]) -> None:
        """Raises ValueError for a column whose bounds or levels were found by a simulation, which nobody paid for."""
        for name in names:
            draft = self.rules[name].draft if name in self.rules else None
            if draft is not None and draft.simulated:
                raise ValueError(
                    f"what the schema says of column {name!r} was found in the records with a seed and is NOT PRIVATE, "
                    "so no release takes it: draft it again without --seed (in Python without key), or write what is "
                    "public knowledge."
                )

    def _refuse(self, names: Sequence[str], place: int, outcomes: Mapping[str, Any] | tuple[()] = ()) -> NoReturn:
        known = (*self.names, *outcomes)
        close = difflib.get_close_matches(names[place], known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it describes {_listing(known)}."
        several = [part.strip() for part in names[place].split(",")]
        if len(several) > 1 and all(part in known for part in several):
            hint = f"one name is wanted here; where several may be given, Python takes a list: {several!r}."
        raise ValueError(f"column {printed_name(names, place, self.names)} is not in the schema; {hint}")

    def _columns(self, name: str, form: str) -> tuple[Column, ...]:
        rule = self.rules[name]
        if form == GIVEN:
            return conditioning.columns(rule)
        return rule.scaled_columns() if form == SCALED else rule.code_column()

    def _checked_table(
        self, source, forms: Mapping[str, str], given: Sequence[str], *, report: ParseReport | None, **how: Any
    ) -> dict[str, np.ndarray]:
        """As `_table`; refused where `jaxdp.test`, or `jaxdp.discover`, refuses the columns for cells without a value.

        A report of the caller's own is for the caller to judge, and strict reading never refuses a cell. given: those
        that may be conditioned on; all of them in a search.
        """
        own = ParseReport() if report is None and not how["strict"] else None
        table = self._table(source, forms, own if report is None else report, **how)
        if own is None:
            return table
        if harm := own.harm(given, clipped_z=True):
            raise readers.FormError(f"{harm}: {EMPTY_THEM if CODED in harm else WITHOUT_VALUES}")
        of_search = len(given) == len(forms)
        if told := own.harm(given, clipped_z=of_search, of_moments=True):  # which test gets the arrays is not known yet
            warn_owner(f"{told}, {BY_SOME} ({OWNER}).")
        return table

    def _table(
        self, source, forms, report: ParseReport | None, *, strict: bool, records: Any, shuffled: bool, draws: int = 1
    ) -> dict[str, np.ndarray]:
        """name -> (n, columns) array, (n, draws, columns) for several draws; read in pieces: numbers are kept."""
        if records is not None and (isinstance(records, bool) or not isinstance(records, int) or records < 1):
            raise ValueError(f"records must be a whole number >= 1, got {printed(records)}.")
        self.require_every_row(strict, records)
        names = list(forms)
        rules = {name: self.rule(name) for name in names}
        asked = [*names, self.unit] if self.unit and self.unit not in names else names
        units = Units(shuffled)
        # Shapes are right for no rows at all, too: a strict run may read a file without any.
        columns = {name: len(self._columns(name, forms[name])) for name in names}
        pieces: dict[str, list[np.ndarray]] = {name: [np.zeros((0, columns[name]))] for name in names}
        how: dict[str, Any] = {"strict": strict, "records": records}
        held: list[tuple[Mapping[str, Any], slice | np.ndarray]] = []  # until it is known which rows are records
        for piece in readers.counted(source, asked, self.delimiter, {} if self.unit else rules, report, **how):
            kept = self.kept(piece, rules, units, report)
            for name in names:
                pieces[name].append(self._coded(piece, name, forms[name])[kept])
            if self.unit and report is not None:
                held.append(({name: piece[name] for name in names}, kept))
        table = {name: np.concatenate(parts) for name, parts in pieces.items()}
        if not self.unit:
            return table
        chosen = units.chosen(self.rows, draws)
        if report is not None:
            report.add_records(rules, held, chosen[:, 0])
            report.without_id = units.without_id
        return {name: values[chosen if draws > 1 else chosen[:, 0]] for name, values in table.items()}

    @property
    def every_row(self) -> bool:
        """Whether every row of a table is a record: no row is one of a unit, and incomplete ones count."""
        return not self.unit and self.missing != DROP

    def require_every_row(self, strict: bool, records: int | None) -> None:
        """Raises ValueError for strict or a stated number of records where not every row is a record."""
        if self.unit and (strict or records is not None):
            raise ValueError(
                f"unit = {self.unit!r} cannot be combined with strict or records: the rows decide how many units there "
                "are."
            )
        if self.missing == DROP and (strict or records is not None):
            raise ValueError(
                f"missing = {DROP!r} cannot be combined with strict or records: the cells decide how many are complete."
            )

    def kept(
        self,
        piece: Mapping[str, Any],
        rules: Mapping[str, ColumnRule],
        units: Units | DrawnRows,
        report: ParseReport | None,
    ) -> slice | np.ndarray:
        """Which rows of a piece count: complete ones where the others are dropped. Their units are taken down."""
        if report is not None and self.unit and are_rounded(piece[self.unit]):
            raise readers.FormError(
                f"column {self.unit!r} of the privacy unit holds whole numbers beyond 2^53, which the table rounded "
                "to float64, so that persons cannot be told apart: give them as texts, or as whole numbers in every row"
            )
        if self.missing != DROP:
            if self.unit:
                units.add(piece[self.unit])
            return slice(None)
        kept = complete(piece, rules)
        if report is not None:
            report.drops = True
            report.dropped += int(np.sum(~kept))
        if self.unit:
            units.add([piece[self.unit][place] for place in np.flatnonzero(kept)])
        return kept


def complete(piece: Mapping[str, Any], rules: Mapping[str, ColumnRule]) -> np.ndarray:
    """Whether each row of a piece has a value in every column of the rules, bool (n,)."""
    return np.logical_and.reduce([rule.present(piece[name]) for name, rule in rules.items()])


def _forms(x: Sequence[str], y: Sequence[str], given: Sequence[str], codes: bool) -> dict[str, str]:
    """The form of each column of a query."""
    return dict.fromkeys((*x, *y), CODES if codes else SCALED) | dict.fromkeys(given, GIVEN)


def _parse_json(text: str) -> Any:
    def unique(pairs):
        repeated = duplicates(name for name, _ in pairs)
        if repeated:
            raise ValueError(f"the key {repeated[0]!r} occurs twice")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=unique)


def as_names(role: str, names: Any) -> list[str]:
    """One name or several, as a list; TypeError for anything else."""
    names = [names] if isinstance(names, str) else list(names) if isinstance(names, Sequence) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        numbered = any(isinstance(name, int) for name in (names if isinstance(names, list) else [names]))
        hint = f"; {readers.RENAMED}" if numbered else "."
        raise TypeError(f"{role} must be a column name or a list of names, got {printed(names)}{hint}")
    return names


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _squeeze(matrix: np.ndarray) -> np.ndarray:
    return matrix[..., 0] if matrix.shape[-1] == 1 else matrix
