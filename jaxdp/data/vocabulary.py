"""Texts as whole numbers where nobody may list them beforehand: private, since which texts occur is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from jaxdp._base.printed import is_setting
from jaxdp.data.coding import MISSING_MARKS, to_text
from jaxdp.data.texts import TextColumn

OTHER = "(other)"  # the level of all texts that are not named
NOT_NAMED = -1.0


class Vocabulary:
    """The texts of a column in the order in which they came, numbered from 0. Never shown, kept or sent.

    A text that could not be the name of a level has no number: it is `NOT_NAMED`, as an empty cell is. Which texts
    these are is public: marks of missing values, the name of all others, unprintable and very long ones.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def codes(self, values: Sequence) -> np.ndarray:
        """The number of each cell, float64 (n,)."""
        if isinstance(values, TextColumn):
            texts, places = values.distinct
            return np.fromiter(map(self._number, texts), float, len(texts))[places]
        return np.fromiter(map(self._number, values), float, len(values))

    def _number(self, value) -> float:
        text = to_text(value)
        if text.lower() in MISSING_MARKS or text == OTHER or not is_setting(text):
            return NOT_NAMED
        return self._numbers.setdefault(text, len(self._numbers))

    @staticmethod
    def compact(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes of records, renumbered from 0 without gaps, and the numbers that the new codes stand for."""
        numbers, places = np.unique(codes[codes >= 0.0], return_inverse=True)
        found = np.full(codes.shape, NOT_NAMED)
        found[codes >= 0.0] = places
        return found, numbers

    def texts(self, numbers: Iterable[float]) -> list[str]:
        """The texts of these numbers, sorted. Call it for released numbers only."""
        wanted = set(numbers)
        return sorted(text for text, number in self._numbers.items() if number in wanted)

    def __repr__(self) -> str:
        return "Vocabulary()"
