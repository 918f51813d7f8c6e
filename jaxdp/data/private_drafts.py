"""What was paid for bounds and levels that were found privately: of the schema, for answers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from jaxdp._base import amounts
from jaxdp._base.printed import printed

RELEASED = "released"  # the key of a column: what was paid, and how it was found
SIMULATED = "simulated"  # true in it where a seed found them: then they are not private
DRAFT = "draft"  # in it: the same for all columns of one draft


@dataclasses.dataclass(frozen=True)
class PrivateDraft:
    """A release of bounds and levels of several columns together.

    name: the same for all of its columns, no other's. columns: how many it has. unit: column that says whose a row is.
    simulated: found with a seed, which nobody paid for.
    """

    name: str
    epsilon: float
    delta: float = 0.0
    columns: int = 1
    unit: str = ""
    simulated: bool = False

    @classmethod
    def of(cls, where: str, entry: Mapping[str, Any]) -> PrivateDraft | None:
        """By the entry of a column; None where it was not drafted. Errors: ValueError for a cost that is no number."""
        told = entry.get(RELEASED)
        if told is None:
            return None
        told = told if isinstance(told, Mapping) else {}
        epsilon, delta, columns = (
            told.get(key, value) for key, value in (("epsilon", None), ("delta", 0), ("columns", 1))
        )
        numeric = all(isinstance(one, Real) and not isinstance(one, bool) for one in (epsilon, delta, columns))
        if not (numeric and epsilon > 0 and 0 <= delta < 1 and columns >= 1):
            raise ValueError(
                f"{where}: released must hold what was paid, as jaxdp schema draft --private writes it "
                f"(epsilon = 0.2, columns = 2, ...), got {printed(entry[RELEASED])}: copy it from the draft, or remove "
                "it where bounds and levels are public knowledge."
            )
        name, unit = str(told.get(DRAFT, "")), str(told.get("unit", ""))
        return cls(name, float(epsilon), float(delta), int(columns), unit, bool(told.get(SIMULATED)))


def name_of(columns: Mapping[str, Mapping[str, Any]]) -> str:
    """A name of a draft, from what it released."""
    return hashlib.sha256(json.dumps(columns, default=str, sort_keys=True).encode()).hexdigest()[:8]


def described(rules: Mapping[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    """The drafts of these columns, each with those of them that it described, for result.json."""
    columns: dict[PrivateDraft, list[str]] = {}
    for name in names:
        if name in rules and rules[name].draft is not None:
            columns.setdefault(rules[name].draft, []).append(name)
    return [
        {
            "columns": names,
            "columns_of_draft": draft.columns,
            "epsilon": draft.epsilon,
            "delta": draft.delta,
            **({"unit": draft.unit} if draft.unit else {}),
            **({SIMULATED: True} if draft.simulated else {}),
        }
        for draft, names in columns.items()
    ]


def counted_in(content: Mapping[str, Any], drafts: list[dict[str, Any]], unit: str) -> dict[str, Any]:
    """What is added to the content of an answer: the drafts, and epsilon and delta of them and the answer together.

    Without the latter where they do not add up: the drafts protect other neighbours or another unit than the answer, or
    the answer has no epsilon.
    """
    alike = content.get("relation") != "add_or_remove_one" and content.get("epsilon") is not None
    alike = alike and all(draft.get("unit", "") == unit for draft in drafts)
    paid = [content, *(draft for draft in drafts if not draft.get(SIMULATED))]
    sums = {name: math.fsum(float(part.get(name) or 0.0) for part in paid) for name in ("epsilon", "delta")}
    total = {name: float(amounts.spent(value, 12)) for name, value in sums.items()}
    return {"drafted": drafts} | ({"with_drafts": total} if alike and len(paid) > 1 else {})
