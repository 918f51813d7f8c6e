"""Which grids a maximal information coefficient searches, from public numbers alone.

A bin is an interval of one axis, a cell an entry of the table that two axes make. Symbols: B = `budget` (cells k l that
a grid may have), l = `fixed` (bins of the equipartitioned axis), k = `parts` (most segments of the optimised axis),
p = `master` (bins its segments are made of), c.
"""

import functools
import itertools
import math
from typing import NamedTuple

from jaxdp._base import check as _check
from jaxdp._base.printed import printed

CAPPED, FULL = SHAPES = ("capped", "full")
MAX_BINS = 2**20  # of an axis: `mic_bins.share_of` numbers them
MAX_PROGRAMS = 4  # each compiles in 0.6 to 1.2 s of processor time
_FEW = 8  # a single coefficient is often one of many replicates
_PROGRAM = 2e7  # logarithms worth compiling one more program; compiling takes longer, but only once


class Grid(NamedTuple):
    """One grid size: `fixed` equal bins on one axis, at most `parts` segments of `master` bins on the other."""

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
    """The budget of cells, as a float, or ValueError."""
    _check.one_of(SHAPES, grid=shape)
    for called, value, low in ((name, budget, 4), ("c", c, 1)):
        if not isinstance(value, int | float) or not math.isfinite(value) or value < low:
            raise ValueError(f"{called} must be a number >= {low}, got {printed(value)}.")
    return float(budget)


def grids(budget: float, c: float, shape: str = CAPPED) -> tuple[Grid, ...]:
    """Grid sizes l = 2, ..., floor(B/2) with k <= min(l, B/l).

    shape: "capped", master size c min(l, B/l) (the paper's appendix E.1); "full", c l (its definition 2.3).
    """
    budget = check(budget, c, shape)
    sizes = []
    for fixed in range(2, math.floor(budget / 2) + 1):
        parts = min(fixed, math.floor(budget / fixed))
        sizes.append(Grid(fixed, parts, max(math.floor(c * (parts if shape == CAPPED else fixed)), 2)))
    most = max(max(size.fixed, size.master) for size in sizes)
    if most > MAX_BINS:
        raise ValueError(
            f"grids have at most {MAX_BINS} bins on an axis, and {printed(budget)} cells with c = {printed(c)} make "
            f"{most}: use fewer cells or a smaller c."
        )
    return tuple(sizes)


@functools.lru_cache(maxsize=64)
def buckets(sizes: tuple[Grid, ...], problems: int = _FEW, most: int = MAX_PROGRAMS) -> tuple[Bucket, ...]:
    """The grids in at most `most` groups of one padded size, quick to compile and compute for `problems` pairs."""

    def alike(grid):
        return (grid.parts, grid.master)

    classes = [list(members) for _, members in itertools.groupby(sorted(sizes, key=alike), alike)]
    choices = _partitions(classes, most)
    _, ends = min(choices, key=lambda choice: len(choice[1]) * _PROGRAM + problems * choice[0])
    groups = [classes[start:end] for start, end in itertools.pairwise((0, *ends))]
    return tuple(_bucket([grid for members in group for grid in members]) for group in groups)


def _partitions(classes: list[list[Grid]], most: int) -> list[tuple[float, tuple[int, ...]]]:
    """For 1, ..., `most` runs of neighbouring classes: the least work in all, and where the runs end."""
    count = len(classes)
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    found: list[tuple[float, tuple[int, ...]]] = []
    for _ in range(min(most, count)):
        step: dict[int, tuple[float, tuple[int, ...]]] = {}
        for end in range(1, count + 1):
            master = fixed = bins = number = 0
            for start in range(end - 1, -1, -1):
                members = classes[start]
                master = max(master, members[0].master)
                fixed = max(fixed, *(grid.fixed for grid in members), 0)
                number, bins = number + len(members), bins + sum(grid.fixed for grid in members)
                if start in best:
                    work = best[start][0] + _work((master, fixed, classes[end - 1][0].parts), bins, number)
                    step[end] = min(step.get(end, (math.inf, ())), (work, (*best[start][1], end)))
        best = step
        if count in best:
            found.append(best[count])
    return found


def _work(padded: tuple[int, int, int], bins: int, number: int) -> float:
    """What padding to (master, fixed, parts) touches, in logarithms of one pair, both orientations.

    For `number` grids that have `bins` fixed bins together. The recurrence itself runs over the bins in use.
    """
    master, fixed, parts = padded
    return 2.0 * master * (number * (6 * fixed + 2 * parts) + 4 * bins)


def _bucket(members: list[Grid]) -> Bucket:
    def most(name):
        return max(getattr(grid, name) for grid in members)

    return Bucket(most("master"), most("fixed"), most("parts"), tuple(members))
