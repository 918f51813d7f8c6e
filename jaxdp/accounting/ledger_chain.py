"""The seals of a ledger: each is a SHA-256 over the one before it and a charge, the first over the grant.

Whoever changes, drops or adds a charge, the total or the relation breaks the chain, unless all later seals
are computed again; a seal noted elsewhere finds that too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

AMOUNTS = ("epsilon", "delta", "rho")
TEXTS = ("txid", "digest", "time", "method", "note", "columns", "source", "result", "relation")
FIELDS = ("number", *TEXTS, *(f"{prefix}{name}" for name in AMOUNTS for prefix in ("", "cumulative_")))
_GRANT = ("ledger", "created", "relation", *(f"{name}_total" for name in AMOUNTS))


def genesis(budget: Mapping[str, Any]) -> str:
    """The first seal: over the ledger's id, its relation and its totals."""
    return _seal("jaxdp ledger", [budget[name] for name in _GRANT])


def link(previous: str, charge: Mapping[str, Any]) -> str:
    """The seal after a charge."""
    return _seal(previous, [charge[name] for name in FIELDS])


def _seal(previous: str, values: list[Any]) -> str:
    return hashlib.sha256(json.dumps([previous, *values]).encode()).hexdigest()


def first_break(budget: Mapping[str, Any], charges: Sequence[Mapping[str, Any]], *, whole: bool) -> str | None:
    """What breaks the chain from the grant over the charges to the row of totals, or None.

    whole: the charges are all there are; otherwise the first and the last two.
    """
    seal, running, position = genesis(budget), dict.fromkeys(AMOUNTS, 0), 0
    for charge in charges:
        if charge["number"] == position + 1:
            running = {name: running[name] + charge[name] for name in AMOUNTS}
            if (
                any(charge[f"cumulative_{name}"] != running[name] for name in AMOUNTS)
                or charge["relation"] != budget["relation"]
            ):
                return f"charge {charge['number']} breaks the running totals or the relation"
            if charge["chain"] != link(seal, charge):
                return f"the seal of charge {charge['number']} is broken: it, an earlier one, or the grant was changed"
        elif whole or not position:
            return f"charge {position + 1} is missing"
        seal, position = charge["chain"], charge["number"]
        running = {name: charge[f"cumulative_{name}"] for name in AMOUNTS}
    if seal != budget["head"]:
        return "the last seal is not that of the last charge: the grant was changed, or a charge added or taken away"
    for name in AMOUNTS:
        if (budget[f"{name}_spent"] or 0) != running[name]:
            return f"{name} spent is not the sum of the charges"
        if running[name] > (budget[f"{name}_total"] or 0):
            return f"more {name} was spent than granted"
    return None
