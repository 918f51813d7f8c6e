"""Persons, or other units, of which a table has several rows: which rows stand for each of them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxdp.data.coding import EXACT, MISSING_MARKS, to_text

FIRST, RANDOM, ALL = ROWS = ("first", "random", "all")  # which of a unit's rows count


class _Counted:
    """Numbers units, and the rows of each, as they come; ids are compared as texts."""

    def __init__(self, hidden: bool) -> None:
        self._secret = secrets.token_bytes(16) if hidden else b""
        self._places: dict[str, int] = {}  # of the units, in the order in which they come
        self._rows: list[int] = []  # of each unit, up to here

    def _next(self, value: Any) -> tuple[int, int, str]:
        """Takes down a row by its id: (place of its unit, number of the row within it, the id as a text)."""
        text = id_of(value)
        place = self._places.setdefault(text, len(self._places))
        if place == len(self._rows):
            self._rows.append(0)
        number = self._rows[place]
        self._rows[place] += 1
        return place, number, text

    @property
    def without_id(self) -> int:
        """How many rows have an empty or missing id."""
        return self._rows[self._places[""]] if "" in self._places else 0


class Units(_Counted):
    """The rows of each unit, over the pieces of a table. Private.

    hidden: the units are in a random order, and their rows drawn by a secret, both from the operating system, which
    protects ids as well; else in the order of the ids, and by the ids: a unit whose rows are replaced keeps its place.
    """

    def __init__(self, hidden: bool = False) -> None:
        super().__init__(hidden)
        self._hidden = hidden
        self._owners: list[int] = []  # of each row
        self._scores: list[bytes] = []  # of each row; the smallest of a unit is a uniform choice among its rows

    def add(self, ids: Sequence) -> None:
        """Further rows, by their ids. Empty ids are one unit."""
        for value in ids:
            place, number, text = self._next(value)
            self._scores.append(_score(number, text, self._secret))
            self._owners.append(place)

    def chosen(self, rows: str, draws: int = 1) -> np.ndarray:
        """Places of the rows that stand for the units in each draw, int (units, draws).

        rows: "first" takes the first row of each unit in all draws. "random" and "all" go through a random order of the
        unit's rows, so that every row is as likely as any other, and is drawn as often up to one.
        """
        if not self._owners:
            return np.zeros((0, draws), int)
        owners, counts = np.array(self._owners), np.array(self._rows)
        scores = np.arange(len(owners)) if rows == FIRST else np.frombuffer(b"".join(self._scores), ">u8")
        by_unit = np.lexsort((scores, owners))
        turns = np.zeros((1, draws), int) if rows == FIRST else np.arange(draws)[None, :]
        starts = np.cumsum(counts) - counts
        return by_unit[starts[:, None] + turns % counts[:, None]][self._order()]

    def _order(self) -> np.ndarray:
        if not self._hidden:
            return np.argsort(np.array(list(self._places), object), kind="stable")
        order = list(range(len(self._places)))
        secrets.SystemRandom().shuffle(order)
        return np.array(order, int)


class OneRow(_Counted):
    """The row that `Units` would choose of each unit in one draw, for tables whose rows do not lie in memory. Private.

    Keeps the id of each unit and two numbers. A row is known by its unit and its number within the unit: in whatever
    order a later pass reads the rows, it chooses exactly one of each unit. rows: "first", else one drawn at random.
    """

    def __init__(self, rows: str, hidden: bool = False) -> None:
        super().__init__(hidden)
        self._first = rows == FIRST
        self._turns: list[int] = []  # the number of the chosen one
        self._scores: list[bytes] = []  # its score

    def __len__(self) -> int:
        return len(self._places)

    def add(self, ids: Sequence) -> None:
        """Further rows, by their ids. Empty ids are one unit."""
        for value in ids:
            place, number, text = self._next(value)
            if number == 0:
                self._turns.append(0)
                self._scores.append(_score(0, text, self._secret))
            elif not self._first and (score := _score(number, text, self._secret)) < self._scores[place]:
                self._turns[place], self._scores[place] = number, score

    def one_pass(self) -> Callable[[Sequence], np.ndarray]:
        """A function of the ids of consecutive rows, for one further pass: whether each row is a chosen one, bool (n,).

        It raises ValueError for an id that was not there before.
        """
        seen = [0] * len(self._rows)

        def chosen(ids: Sequence) -> np.ndarray:
            found = np.zeros(len(ids), bool)
            for number, value in enumerate(ids):
                place = self._places.get(id_of(value), -1)
                if place < 0:
                    raise ValueError("the table holds other units than in the pass before: it must stay as it is.")
                found[number] = seen[place] == self._turns[place]
                seen[place] += 1
            return found

        return chosen


def id_of(value) -> str:
    """The text of an id: of whole numbers all digits, unless the table has turned them into float64; of missing ones,
    however they are spelled, the empty text.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(int(value))
    text = to_text(value)
    return "" if text.lower() in MISSING_MARKS else text


def are_rounded(ids: Sequence) -> bool:
    """Whether ids became float64 and are too long for it, so that persons would count as one."""
    return isinstance(ids, np.ndarray) and ids.dtype.kind == "f" and bool(np.any(np.abs(ids) >= EXACT))


def _score(number: int, text: str, secret: bytes) -> bytes:
    """By the unit's id and the number of the row within the unit: other units' rows change nothing."""
    label = f"{number}\0{text}".encode(errors="surrogatepass")
    return hashlib.blake2b(label, key=secret, digest_size=8).digest()
