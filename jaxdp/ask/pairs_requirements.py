"""What may be asked of all pairs of a table: checks of public facts, before any record is read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdp import catalogue, null_laws
from jaxdp._base import check
from jaxdp._base.display import listing
from jaxdp._base.printed import printed_name
from jaxdp.ask.independence import Query
from jaxdp.spec import Options

JOINT = "pair-contrasts"  # the test of all pairs by one release, which answers where no other is asked for
MAX_DRAWS = 99_999  # of null tables for one pair
MAX_JOINT_DRAWS = 999_999  # of the joint release, which draws so many for those pairs alone whose p-values are small


def admitted_delta(delta: Any, method: str | None) -> float:
    """The delta as a float. Errors: ValueError unless it is 0 or a small probability of a joint release."""
    check.in_range(-1.0, 1.0, delta=delta)
    check.non_negative(delta=delta)
    if delta and method != JOINT:
        raise ValueError(
            f"delta goes with one joint release of all pairs ({JOINT}): leave out method, given and settings, and name "
            "three columns or more."
        )
    return float(delta)


def is_said(value: Any) -> bool:
    """Whether a setting was given; a table or an array given for one is, and is not compared with anything."""
    return not (value is None or value is False or (isinstance(value, dict | tuple) and not value))


def require_columns(names: Sequence[str], given: Sequence[str]) -> None:
    repeated = [name for name in names if name in given or list(names).count(name) > 1]
    if repeated:
        raise ValueError(f"column {repeated[0]!r} is used twice among columns and given: name every column once.")
    if len(names) < 2:
        raise ValueError(f"all pairs need at least two columns, got {len(names)}.")


def require_laws(law: Any, names: Sequence[str], entry: catalogue.Entry) -> None:
    """Raises ValueError for a law that the test does not use, and for laws of other columns.

    entry: of any pair; without a method no pair has a test that needs a law.
    """
    if law is not None:
        entry.require_settings(Options(law=law))
    strange = [name for name in law if name not in names] if isinstance(law, Mapping) else []
    if strange:
        raise ValueError(f"law has column {printed_name(list(law), list(law).index(strange[0]), names)}, of no pair.")


def with_more_draws(query: Query, share: float) -> Query:
    """The query with so many null tables that the smallest p-value is a tenth of a pair's share of the level.

    Adjusted for many pairs, the p-value of a test that ranks itself among `num_null` tables could else never be small.
    Only tests of codes: the draws of others may be whole data sets, and cost a user minutes that were not asked for.
    """
    usual = next((field.default for field in dataclasses.fields(query.entry.cls) if field.name == "num_null"), None)
    fields = query.settings.fields
    needed = min(math.ceil(10.0 / share) - 1, MAX_DRAWS)
    if query.entry.name == JOINT:  # beyond, twice as many as the adjustment asks for: each takes its time
        needed = max(needed, min(math.ceil(2.0 / share) - 1, MAX_JOINT_DRAWS))
    if not isinstance(usual, int) or needed <= usual or "num_null" in fields or not query.entry.spec.columns.coded:
        return query
    return dataclasses.replace(
        query, settings=dataclasses.replace(query.settings, fields={**fields, "num_null": needed})
    )


def require_reachable(query: Query, share: float, count: int, what: str) -> None:
    """Raises ValueError where Holm's adjustment of so many p-values finds none, since ranks are never so small.

    query: of any of them, `with_more_draws`; share: of the level.
    """
    draws = query.settings.fields.get("num_null")
    at_most = MAX_JOINT_DRAWS if query.entry.name == JOINT else MAX_DRAWS
    if draws != at_most or query.entry.cls.gradient_free != null_laws.RANK or share * (1 + draws) >= 1.0 - 1e-9:
        return
    raise ValueError(
        f"Holm's adjustment of {count} {what} asks for a p-value of {share:.2g}, and {query.entry.name} ranks each "
        f"among at most {draws} draws, so that it is {1.0 / (1 + draws):.2g} or more: nothing could be found. "
        'Name fewer columns, adjust by the false discovery rate (--adjust bh, in Python adjust="bh"), or of numbers '
        "name a test whose p-value is a formula (partial-correlation)."
    )


def require_pair(query: Query) -> None:
    """Raises ValueError if the test cannot be asked about this pair, which it names."""
    entry = query.entry
    catalogue.require_any_pair(entry.cls)
    if query.public_columns:
        raise ValueError(
            f"{entry.name} takes {listing(query.public_columns)} as public: ask about one pair by --x, --y."
        )
    entry.require_fits(query.domain)
