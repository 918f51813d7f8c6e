"""`levels = "hashed:16"`: a public hash puts every text into one of 16 cells, where nobody may write the levels down.

The cell is a fixed function of the record's own text, so it costs no privacy, and X independent of Y given Z stays so
when X and Y are hashed. Levels that share a cell are told apart no more: power is lost, not the level of a test. Of a
Z that is hashed, records of different Z would be compared as if they were alike, so Z takes none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from jaxdp._base.printed import printed

FORM = "hashed:16"
MOST = 256


def count_of(where: str, levels: Any) -> int:
    """How many cells a text such as "hashed:16" asks for; 0 for what is no text. Errors: ValueError."""
    if not isinstance(levels, str):
        return 0
    found = re.fullmatch(r"hashed:(\d{1,4})", levels.strip())
    if found is None and levels.strip().startswith("hashed"):
        raise ValueError(f'{where}: hashed levels are written as "{FORM}", got {printed(levels)}.')
    count = 0 if found is None else int(found[1])
    if found is not None and not 2 <= count <= MOST:
        raise ValueError(f"{where}: hashed levels need 2 to {MOST} cells, got {count}.")
    return count


def names(count: int) -> tuple[str, ...]:
    """The names of the cells, as answers show them."""
    return tuple(f"cell {place}" for place in range(1, count + 1))


def cell(text: str, count: int) -> int:
    """The cell of a text, 0, ..., count - 1: the first 8 bytes of the SHA-256 of its UTF-8, as a number, modulo count.

    Stable: the same on every machine, in every process and in every version.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % count


def told(rules: Iterable[Any]) -> list[str]:
    """What an answer says of the columns that are hashed, if there are any."""
    hashed = [rule for rule in rules if rule.hashed]
    each = [f"{rule.name} into {len(rule.levels)} cells" for rule in hashed]
    if not each:
        return []
    return [
        f"Hashed levels ({', '.join(each)}): a cell holds several levels, chosen by a public hash, and what differs "
        "between levels of one cell is not seen."
    ]
