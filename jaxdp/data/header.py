"""The header line of a CSV file, which is public: where the named columns stand in it."""

from __future__ import annotations

from collections.abc import Sequence

USUAL_DELIMITERS = (",", ";", "\t", "|")


def positions(path: str, header: list[str], names: Sequence[str], delimiter: str) -> list[int]:
    """Where the named columns stand. Errors: ValueError that quotes no header text which was not asked for."""
    if not any(header):
        raise ValueError(f"data file {path} is empty: it needs a header line and at least one row.")
    if len(header) == 1:
        likely = [mark for mark in USUAL_DELIMITERS if mark != delimiter and mark in header[0]]
        if likely:
            raise ValueError(
                f"data file {path} has one column only and looks separated by {likely[0]!r}: "
                f"write delimiter = {'"\\t"' if likely[0] == '\t' else f'"{likely[0]}"'} at the top of the schema."
            )
    for position, name in enumerate(header):
        first = header.index(name)
        if first < position:
            raise ValueError(
                f"data file {path} names two columns alike, number {first + 1} and number {position + 1}: rename one."
            )
    for name in names:
        if name not in header:
            raise ValueError(
                f"column {name!r} is not in the header of {path} ({len(header)} columns): "
                "check the spelling and that the first line names the columns."
            )
    return [header.index(name) for name in names]
