"""Tests that compare records within cells of Z, and when their cells are too coarse to keep the level.

Inside a cell the means of x and y still move with z. One cell for eight records gives each of d continuous columns
(n/8)^(1/d) bins, and the bias, of the order of a bin's squared width for each record, adds up over n records. For three
columns or more it outgrows the noise at every n (0.5 to 1.0 of the nulls are rejected), for two it takes more records
than most data have (0.10 to 0.23 at n = 1000), and for one it takes a law of Z that is far from the public one.
A column that no cell looks at confounds as a whole. So two columns are refused before anything is spent, and one is
flagged. Ranks remove no trend within a cell, however small the residuals: rank tests refuse one column too.
"""

import math
from typing import ClassVar

import jax

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest, method_of
from jaxdp.data.dataset import CONTINUOUS, Column
from jaxdp.independence.continuous.validity import FLAG, REFUSE, RUN, LevelLost, Validity
from jaxdp.statistics import partition

MAX_CONTRASTS = 5  # continuous columns that contrast-gcm takes
MAX_COLUMNS = 3  # of more, unless all are coded, the test chooses two
MAX_COMBINATIONS = 1 << 20  # of levels, each a cell of its own
TAKE_THE_RISK = "or give accept_coarse_cells=True (--accept-coarse-cells) and take false findings"
CELLS, COARSE = "cells", "coarse cells"  # flags


class CoarseCells(LevelLost):
    """The test would find dependence where there is none; nothing was spent."""


def needs_axes(columns: tuple[Column, ...]) -> bool:
    """Whether these columns of z are too many to cut them all."""
    coded = all(column.kind != CONTINUOUS for column in columns)
    cut_whole = coded and math.prod(column.levels for column in columns) <= MAX_COMBINATIONS
    return len(columns) > MAX_COLUMNS and not cut_whole


def refusal(name: str, columns: tuple[Column, ...], chooses_axes: bool, most: int = 1) -> str:
    """Why a test that cuts these columns of z, or chosen ones of them, loses its level; "" where it does not.

    most: continuous columns that the test's cells can carry.
    """
    continuous = sum(column.kind == CONTINUOUS for column in columns)
    if continuous > most:
        few = f"at most {most} of them" if most else "coded columns alone"
        return (
            f"{name} would find dependence where there is none: its cells are too wide for {continuous} continuous "
            f"{'column' if continuous == 1 else 'columns'} of z (columns that no domain describes count as "
            f"continuous). {_instead(continuous)}, condition on {few}, {TAKE_THE_RISK}."
        )
    if chooses_axes:
        return (
            f"{name} would find dependence where there is none: it cuts one or two chosen columns of z, and the others "
            f"of the {len(columns)} may confound x and y. Condition on at most {MAX_COLUMNS} columns, give "
            f"select_axes=False (it cuts them all), {TAKE_THE_RISK}."
        )
    return ""


def _instead(continuous: int) -> str:
    if continuous == 1:
        return "Use band-gcm (in Python kernel='sign' is local Kendall)"
    if continuous <= MAX_CONTRASTS:
        return "Use contrast-gcm"
    return "Condition on at most five and use contrast-gcm"


@frozen_pytree
class WithinCells(PrivateTest):
    """Base of the tests that compare records within cells of z: they refuse or flag what cells cannot carry.

    accept_coarse_cells: runs where the level is known to be lost; a small p-value is then no evidence.
    """

    accept_coarse_cells: bool = jax.tree.static(default=False)

    uses_z: ClassVar[bool] = True
    cuts_z: ClassVar[bool] = True
    flags: ClassVar[tuple[str, ...]] = (CELLS, COARSE)
    max_continuous: ClassVar[int] = 1  # columns of z that the cells can carry; a flag says what they assume

    def refuse_coarse_cells(self, columns) -> None:
        """Raises `CoarseCells` if these columns of z (public) make a true null look false, unless that is accepted."""
        told = self._refusal(columns)
        if told and not self.accept_coarse_cells:
            raise CoarseCells(told)

    def validity(self, data) -> Validity:
        """The public rule on the level for data (or shapes) with these columns: verdict, flags, sentence."""
        columns = () if data.z is None else self._cut_columns(data)
        told = self._refusal(columns)
        if told and not self.accept_coarse_cells:
            return Validity(REFUSE, told)
        if told:
            sentence = "The cells are too wide for these columns of Z: a small p-value is no evidence of dependence."
            return Validity(FLAG, sentence, (COARSE,))
        if any(column.kind == CONTINUOUS for column in columns):
            sentence = "Level holds only if means hardly change within a cell of Z; band-gcm needs no cells."
            return Validity(FLAG, sentence, (CELLS,))
        return Validity(RUN, "")

    def _refusal(self, columns: tuple[Column, ...]) -> str:
        return refusal(method_of(self), columns, self._chooses_axes(columns), self.max_continuous)

    def _cut_columns(self, data) -> tuple[Column, ...]:
        """Public descriptions of the columns of z that this test cuts."""
        return partition.columns_of_z(data)

    def _chooses_axes(self, columns) -> bool:
        """Whether the test cuts chosen ones of these columns only."""
        return False
