"""How far one replaced record can move MICr and MICe (docs/theory/mic.md). Host floats.

h(a) = a log2 a - (a - 1) log2(a - 1); B = the number of cells that a grid may have, n = the number of records.
"""

import math

from jaxdp.core import Norm
from jaxdp.statistics.mic import mic_grids
from jaxdp.statistics.tables.information import gain_of_one_more

UNIT_ROUNDOFF = 2.0**-53


def two_row_bound(num_records: int) -> float:
    """h(n)/n: mutual information (bits) of a fixed k x l table with min(k, l) = 2, replace-one; tight."""
    return gain_of_one_more(num_records) / num_records


def many_row_bound(num_records: int) -> float:
    """W(n)/n = [h(ceil((n+1)/2)) + h(floor((n+1)/2))]/n, for min(k, l) >= 3; tight (docs/theory/mic.md#fixed-grid).

    Proof: moving one record changes n I by [h(r) + h(c) - h(a)] - [h(r'+1) + h(c'+1) - h(a'+1)] with
    r, c, a the counts of its row, column and cell. The second bracket is >= 0; r + c - a <= n and h is
    concave, so the first is largest at a = 1, r + c = n + 1.
    """
    upper = (num_records + 2) // 2
    return (gain_of_one_more(upper) + gain_of_one_more(num_records + 1 - upper)) / num_records


def range_bound(num_records: int, budget: float) -> float:
    """MICr: h(n)/n if B < 9, else max(h(n), W(n)/log2 3)/n; replace-one, whatever the range and c.

    docs/theory/mic.md#micr. The grids are public, so the maximum moves by at most the largest move of an entry; entries
    with min(k, l) >= 4 divide W(n) by log2 4 or more. Never above 1, the width of the statistic's range.
    """
    bound = two_row_bound(num_records)
    if budget >= 9:
        bound = max(bound, many_row_bound(num_records) / math.log2(3))
    return min(bound, 1.0)


def mass_bound(num_records: int, sizes: tuple[mic_grids.Grid, ...]) -> float:
    """MICe: max over grids and k <= l of (k + l - 1) h(C_l + 1)/(n log2 k), C_l = ceil(n/l); replace-one.

    docs/theory/mic.md#mice. Ties are split by priorities that do not depend on values, so ranks are distinct. Replacing
    a record moves it and shifts at most one record over each of the l - 1 and k - 1 boundaries: at most k + l - 1 unit
    moves between cells while both margins keep their counts, and each changes sum a log2 a by at most h(C_l + 1).
    """
    moves = (
        (parts + grid.fixed - 1)
        * gain_of_one_more(-(-num_records // grid.fixed) + 1)
        / (num_records * math.log2(parts))
        for grid in sizes
        for parts in range(2, grid.parts + 1)
    )
    return min(max(moves), 1.0)


def paper_range_bound(num_records: int) -> float:
    """(4 log2 n + 6)/n: theorem 4.3 of the paper, n >= 4; true, about 3.5 times `range_bound`."""
    return (4.0 * math.log2(num_records) + 6.0) / num_records


def paper_mass_bound(num_records: int, budget: float) -> float:
    """B (2 log2 n + 4.8)/n: theorem 3.1 of the paper, n >= 6; true for distinct coordinates on its own grids."""
    return budget * (2.0 * math.log2(num_records) + 4.8) / num_records


def rounding(num_records: int, budget: float) -> float:
    """Bound on |computed - exact| of a score in float64, any data.

    n I is a sum of at most 2 (B/2) + sqrt(B) + 3 partial sums over terms a log2 a (relative error 4 u each), all
    below n log2 n in absolute value, in total 4 n log2 n; the sum of both effects is below 2 (B + 16) u log2 n.
    Doubled for the normalisation.
    """
    return 4.0 * (budget + 16.0) * UNIT_ROUNDOFF * math.log2(max(num_records, 2))


def of_tables(count: int, norm: Norm) -> float:
    """One record's replacement changes two cells of each of `count` tables by 1 (L1: 2 count; L2: sqrt(2 count))."""
    return 2.0 * count if norm is Norm.L1 else math.sqrt(2.0 * count)
