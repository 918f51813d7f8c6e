"""Which grids a maximal information coefficient searches, from public numbers alone.

Symbols: B = `budget` (cells allowed), l = `fixed` (cells of the equipartitioned axis), k = `parts` (most
segments of the optimised axis), p = `master` (cells its segments are made of), c.
"""

import math
from typing import NamedTuple

from jaxdp import _check

CAPPED, FULL, MINEPY = "capped", "full", "minepy"
SHAPES = (CAPPED, FULL, MINEPY)
# Sizes, in segments, that problems are padded to; the fine ladder gives 9 programs at B = 251 (n = 10 000).
_FINE = (2, 3, 4, 5, 6, 8, 10, 12, 15, 19, 24, 30, 38, 48, 60, 75, 95, 120, 150, 190, 240)
_LADDERS = ((), (2,), (2, 4), (2, 3, 5), (2, 3, 4, 6, 9, 13, 19, 27, 38, 60, 95, 150, 240), _FINE)
_PROGRAM = 1e9  # logarithms that take about as long as compiling one program


class Grid(NamedTuple):
    """One grid size: `fixed` equal cells on one axis, at most `parts` segments of `master` cells on the other."""

    fixed: int
    parts: int
    master: int


class Bucket(NamedTuple):
    """Grids that share one compiled program, padded to these sizes (zero padding is exact)."""

    master: int
    fixed: int
    parts: int
    grids: tuple[Grid, ...]


def check(budget: float, c: float, shape: str, name: str = "budget") -> float:
    """The cell budget as a float, or ValueError."""
    _check.one_of(SHAPES, grid=shape)
    for called, value, low in ((name, budget, 4), ("c", c, 1)):
        if not isinstance(value, int | float) or not math.isfinite(value) or value < low:
            raise ValueError(f"{called} must be a number >= {low}, got {value!r}.")
    return float(budget)


def grids(budget: float, c: float, shape: str = CAPPED) -> tuple[Grid, ...]:
    """Grid sizes l = 2, ..., floor(B/2) with k <= min(l, B/l).

    shape: "capped", master size c min(l, B/l) (the paper's appendix E.1); "full", c l (its definition 2.3);
    "minepy", c floor(B/l) for every l.
    """
    budget = check(budget, c, shape)
    sizes = []
    for fixed in range(2, math.floor(budget / 2) + 1):
        parts = min(fixed, math.floor(budget / fixed))
        cells = {CAPPED: parts, FULL: fixed, MINEPY: math.floor(budget / fixed)}[shape]
        sizes.append(Grid(fixed, parts, max(math.floor(c * cells), 2)))
    return tuple(sizes)


def buckets(sizes: tuple[Grid, ...], c: float, problems: int = 1) -> tuple[Bucket, ...]:
    """The grids grouped by padded master size, so that compiling and computing `problems` pairs is quick."""
    choices = [_grouped(sizes, c, ladder) for ladder in _LADDERS]
    return min(choices, key=lambda groups: len(groups) * _PROGRAM + problems * sum(map(_work, groups)))


def _grouped(sizes, c: float, ladder) -> tuple[Bucket, ...]:
    groups: dict[int, list[Grid]] = {}
    for grid in sizes:
        step = next((s for s in ladder if grid.master <= math.floor(c * s) and grid.parts <= s), 10**9)
        groups.setdefault(step, []).append(grid)
    return tuple(_bucket(members) for _, members in sorted(groups.items()))


def _work(bucket: Bucket) -> float:
    """Logarithms of one pair, both orientations."""
    segments = 4.0 * bucket.master if bucket.parts == 2 else 1.3 * bucket.master**2
    return segments * sum(grid.fixed + 4 * bucket.parts for grid in bucket.grids)


def _bucket(members: list[Grid]) -> Bucket:
    most = lambda name: max(getattr(grid, name) for grid in members)  # noqa: E731
    return Bucket(most("master"), most("fixed"), most("parts"), tuple(members))
