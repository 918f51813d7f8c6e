"""Which privacy unit a charge protects, as a ledger writes it down with what was asked."""

import re
from collections.abc import Iterable
from typing import Any

_OF_PERSONS = re.compile(r", for (.+) as the privacy unit$")


def noted(asked: str, unit: str) -> str:
    """What was asked, with the column of persons whose rows are protected together; as it is where each row is."""
    return f"{asked}, for {unit} as the privacy unit" if unit else asked


def of(rows: Iterable[Any]) -> list[str]:
    """The privacy units of charges, each once: columns of persons, and "" where each row is protected."""
    found = (_OF_PERSONS.search(row.columns) for row in rows)
    return sorted({match[1] if match else "" for match in found})


def mixed(rows: Iterable[Any]) -> list[str]:
    """What the sums of a ledger mean whose charges protect different units; nothing where they protect one."""
    units = of(rows)
    if len(units) < 2:
        return []
    told = [f"all rows of one {unit}" if unit else "single rows" for unit in units]
    return [
        f"charges of several privacy units are added ({', '.join(told)}): the sums hold for single rows alone; keep "
        "one ledger for each unit"
    ]
