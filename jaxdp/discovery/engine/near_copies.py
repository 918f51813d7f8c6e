"""A caution where a column is nearly a copy of another, by a released number: edges of both are then removed."""

from collections.abc import Iterable, Sequence

MAX_NAMED = 3  # pairs


def near_copies(names: Sequence[str], pairs: Iterable[tuple[int, int]]) -> str:
    """Which columns hold nearly the same, what that does to a graph, and what to do; nothing where there are none."""
    found = list(pairs)
    if not found:
        return ""
    shown = "; ".join(f"{names[i]} and {names[j]}" for i, j in found[:MAX_NAMED])
    more = f"; and {len(found) - MAX_NAMED} more pairs" if len(found) > MAX_NAMED else ""
    return (
        f"Columns that are nearly copies of each other by this release: {shown}{more}. Given one of the two, the other "
        "is as good as independent of everything else, so edges from either to further columns may be missing: leave "
        "one of the two out to find them."
    )
