"""Which rows of a table that does not lie in memory are records: complete ones, and draws of one row of each unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxdp.data.parse_report import ParseReport
from jaxdp.data.schema import DROP, Schema, complete
from jaxdp.data.units import DrawnRows


class ChosenRows:
    """The rows that are records, found by one pass over the table, for the passes after it. Private.

    names: the columns of the whole query, which a complete row has. hidden, draws: as of `Units`.
    """

    def __init__(self, schema: Schema, names: Sequence[str], hidden: bool = False, draws: int = 1) -> None:
        self._schema, self._rules = schema, {name: schema.rule(name) for name in names}
        self.draws = draws
        self._units = DrawnRows(schema.rows, draws, hidden)
        self._complete = 0

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], hidden: bool = False, draws: int = 1) -> ChosenRows | None:
        """None for a schema of which every row is a record."""
        return None if schema.every_row else cls(schema, names, hidden, draws)

    @property
    def num_records(self) -> int:
        """How many were found: public."""
        return len(self._units) if self._schema.unit else self._complete

    def read_with(self, names: Sequence[str]) -> list[str]:
        """These columns, and behind them those that every pass must read besides."""
        needed = (*(self._rules if self._schema.missing == DROP else ()), *filter(None, [self._schema.unit]))
        return list(dict.fromkeys((*names, *needed)))

    def find(self, pieces: Iterator[Mapping[str, Any]], report: ParseReport | None) -> ChosenRows:
        """By one pass. report: of rows that are left out, or have no id."""
        for piece in pieces:
            kept = self._schema.kept(piece, self._rules, self._units, report)
            self._complete += len(np.arange(len(next(iter(piece.values()))))[kept])
        if report is not None:
            report.without_id = self._units.without_id
        return self

    def count(self, pieces: Iterator[Mapping[str, Any]], report: ParseReport) -> None:
        """The cells of the records of one draw alone, by one further pass."""
        records = self.one_pass()
        for piece in pieces:
            report.add_piece(self._rules, piece, np.flatnonzero(records(piece)[0][:, 0]))

    def one_pass(self) -> Callable[[Mapping[str, Any]], tuple[np.ndarray, np.ndarray]]:
        """A function of consecutive pieces, for a further pass: which rows each draw has, bool (n, draws), and the
        place of the unit of each row that some draw has, int (n,).
        """
        chosen = self._units.one_pass()

        def records(piece: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
            rows = len(next(iter(piece.values())))
            kept, units = np.ones((rows, self.draws), bool), np.zeros(rows, int)
            if self._schema.missing == DROP:
                kept[~complete(piece, self._rules)] = False
            if self._schema.unit:
                ids, there = piece[self._schema.unit], np.flatnonzero(kept[:, 0])
                kept[there], units[there] = chosen([ids[place] for place in there])
            return kept, units

        return records
