"""A caution where a column is nearly a copy of another, by a released number: edges of both are then removed."""

from collections.abc import Iterable, Sequence

MAX_NAMED = 3  # pairs


def near_copies(names: Sequence[str], pairs: Iterable[tuple[int, int]], clear: bool = True) -> str:
    """Which columns hold nearly the same, what that does to a graph, and what to do; nothing where there are none.

    clear: whether the release tells copies from columns that are merely close.
    """
    found = list(pairs)
    if not found:
        return ""
    shown = "; ".join(f"{names[i]} and {names[j]}" for i, j in found[:MAX_NAMED])
    more = f"; and {len(found) - MAX_NAMED} more pairs" if len(found) > MAX_NAMED else ""
    lost = (
        "given one of the two, the other is as good as independent of everything else, so edges from either to further "
        "columns may be missing: leave one of the two out to find them"
    )
    if clear:
        return f"Columns that are nearly copies of each other by this release: {shown}{more}. G{lost[1:]}."
    return (
        f"Columns that may be nearly copies of each other by this release: {shown}{more}. If they are (two readings of "
        f"one quantity, say), {lost}. Columns that are merely close, with a correlation of .75 or more and little to "
        "do with others, look alike, and nothing is wrong with their edge."
    )
