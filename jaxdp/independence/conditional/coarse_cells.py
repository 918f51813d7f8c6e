"""When cells of Z are too coarse for a test of within-cell covariance: such a test refuses before anything is spent.

Inside a cell the means of x and y still move with z. One cell for eight records gives each of d continuous columns
(n/8)^(1/d) bins, and the bias, of the order of a bin's squared width for each record, adds up over n records: for three
columns or more it outgrows the noise at every n (0.5 to 1.0 of the nulls are rejected). A column that no cell looks at
confounds as a whole.
"""

import math

from jaxdp.data.dataset import CONTINUOUS, Column
from jaxdp.independence.conditional.level_rule import LevelLost

MOST_CONTINUOUS = 2
MOST_COLUMNS = 3  # of more, unless all are coded, the test chooses two
MOST_COMBINATIONS = 1 << 20  # of levels, each a cell of its own
TAKE_THE_RISK = "or give accept_coarse_cells=True (--accept-coarse-cells) and take false findings"


class CoarseCells(LevelLost):
    """The test would find dependence where there is none; nothing was spent."""


def needs_axes(columns: tuple[Column, ...]) -> bool:
    """Whether these columns of z are too many to cut them all."""
    coded = all(column.kind != CONTINUOUS for column in columns)
    cut_whole = coded and math.prod(column.levels for column in columns) <= MOST_COMBINATIONS
    return len(columns) > MOST_COLUMNS and not cut_whole


def refuse(name: str, columns: tuple[Column, ...], chooses_axes: bool) -> None:
    """Raises `CoarseCells` if a test that cuts these columns of z, or chosen ones of them, loses its level."""
    continuous = sum(column.kind == CONTINUOUS for column in columns)
    if continuous > MOST_CONTINUOUS:
        raise CoarseCells(
            f"{name} would find dependence where there is none: its cells are too wide for {continuous} continuous "
            "columns of z (columns that no domain describes count as continuous). Condition on at most "
            f"{MOST_CONTINUOUS} of them, {TAKE_THE_RISK}."
        )
    if chooses_axes:
        raise CoarseCells(
            f"{name} would find dependence where there is none: it cuts one or two chosen columns of z, and the others "
            f"of the {len(columns)} may confound x and y. Condition on at most {MOST_COLUMNS} columns, give "
            f"select_axes=False (it cuts them all), {TAKE_THE_RISK}."
        )
