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


class DrawnRows(_Counted):
    """The rows that `Units` would choose of each unit, for tables whose rows do not lie in memory. Private.

    Keeps the id of each unit and its number of rows. A row is known by its unit and its number within the unit: in
    whatever order a later pass reads the rows, each draw is of exactly one of each unit. rows, draws: as of `Units`.
    """

    def __init__(self, rows: str, draws: int = 1, hidden: bool = False) -> None:
        super().__init__(hidden)
        self._first = rows == FIRST
        self._draws = draws
        self._turns: np.ndarray | None = None  # number of the row of each unit in each draw, once all are counted

    def __len__(self) -> int:
        return len(self._places)

    def add(self, ids: Sequence) -> None:
        """Further rows, by their ids. Empty ids are one unit."""
        for value in ids:
            self._next(value)

    def one_pass(self) -> Callable[[Sequence], tuple[np.ndarray, np.ndarray]]:
        """A function of the ids of consecutive rows, for one further pass: the draws of each row, bool (n, draws), and
        the place of its unit, int (n,).

        It raises ValueError for an id that was not there before.
        """
        if self._turns is None:
            self._turns = self._drawn_numbers()
        turns, seen = self._turns, [0] * len(self._rows)

        def drawn(ids: Sequence) -> tuple[np.ndarray, np.ndarray]:
            places, numbers = np.zeros(len(ids), int), np.zeros(len(ids), int)
            for at, value in enumerate(ids):
                place = self._places.get(id_of(value), -1)
                if place < 0:
                    raise ValueError("the table holds other units than in the pass before: it must stay as it is.")
                places[at], numbers[at] = place, seen[place]
                seen[place] += 1
            return turns[places] == numbers[:, None], places

        return drawn

    def _drawn_numbers(self) -> np.ndarray:
        numbers = np.zeros((len(self), self._draws), np.int32)
        if not self._first:
            for (text, place), count in zip(self._places.items(), self._rows, strict=True):
                scores = b"".join(_score(number, text, self._secret) for number in range(count))
                by_score = np.argsort(np.frombuffer(scores, ">u8"), kind="stable")
                numbers[place] = by_score[np.arange(self._draws) % count]
        return numbers


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
