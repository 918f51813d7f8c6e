"""Which queries about some columns a test takes: known before anything is asked or paid, from public columns alone."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import jax
import numpy as np

from jaxdp.catalogue import spec_of, wants_scores
from jaxdp.core import PrivateQuery, method_of
from jaxdp.data.dataset import Column, Domain
from jaxdp.data.records import Records
from jaxdp.independence.continuous.coarse_cells import TAKE_THE_RISK, CoarseCells
from jaxdp.independence.continuous.validity import LevelLost

ANOTHER = "take Recommended of jaxdp.independence.recommended, which asks each query by a test that fits it"


def domain_of(columns: Sequence[Column], i: int, j: int, given: Sequence[int]) -> Domain:
    """The public description of a query."""
    return Domain((columns[i],), (columns[j],), tuple(columns[k] for k in given))


def unfit(spec, columns: Sequence[Column], order: int) -> tuple[int, int] | None:
    """A pair of columns about which a test's spec takes no query given so many of the others; None where it takes all.

    Sets are represented by those of most continuous columns and of fewest, pairs by one of each kind.
    """
    continuous_first = sorted(range(len(columns)), key=lambda k: columns[k].levels)
    seen = set()
    for i, j in itertools.combinations(range(len(columns)), 2):
        kinds = tuple(dataclasses.replace(columns[k], name="") for k in (i, j))
        if kinds in seen:
            continue
        seen.add(kinds)
        rest = [k for k in continuous_first if k not in (i, j)]
        for given in (rest[:order], rest[len(rest) - order :]):
            if not spec.accepts(domain_of(columns, i, j, given)):
                return i, j
    return None


def fitting_order(spec, columns: Sequence[Column], last: int) -> int:
    """The largest size up to `last` of conditioning sets that a test's spec takes for every pair of these columns."""
    return next((order - 1 for order in range(1, last + 1) if unfit(spec, columns, order)), last)


def refused(test, records: Records, i: int, j: int, given: Sequence[int] = ()) -> str:
    """Why the test takes no query about these columns, with the way out, as a sentence; "" where it does."""
    spec, columns, names = spec_of(test), records.accepted_as, records.names
    if spec.accepts(domain_of(columns, i, j, given)):
        return ""
    pair = f"{names[i]} and {names[j]}"
    if given:
        return f"{spec.name} takes no query about {pair} given {', '.join(names[k] for k in given)}: {ANOTHER}."
    others = [k for k in range(len(columns)) if k not in (i, j)]
    conditions = any(spec.accepts(domain_of(columns, i, j, [k])) for k in others)
    why = ", which it tests given other columns only" if conditions else ", columns that it is not made for"
    return f"{spec.name} takes no query about {pair} alone{why}: {ANOTHER}."


def largest_order(test, records: Records, last: int) -> int:
    """The largest size up to `last` of conditioning sets of which the test refuses none, from public columns alone."""
    if isinstance(test, PrivateQuery) and not test.uses_z:
        return min(last, 0)
    if isinstance(test, PrivateQuery):
        last = fitting_order(spec_of(test), records.accepted_as, last)
    if not isinstance(test, PrivateQuery) or test.public_columns:
        return last
    shape = jax.ShapeDtypeStruct((records.num_records, len(records.columns)), np.float32)
    # the worst set of a size: continuous columns first, then those with most levels
    levels = records.levels
    columns = sorted(range(len(levels)), key=lambda j: (levels[j] != 0, -levels[j]))
    for order in range(1, last + 1):
        asked = functools.partial(_query, records.columns, columns, order, wants_scores(test))
        try:
            test.specialize(jax.eval_shape(asked, shape))
        except LevelLost:
            return order - 1
    return last


def _query(described, columns, order: int, scores: bool, values):
    return Records(values, described).query(columns[-2], columns[-1], columns[:order], scores)


def require_answerable(test, records: Records, last: int) -> None:
    """Raises ValueError if a search that conditions on up to `last` columns could ask what the test refuses.

    `CoarseCells` where its cells would be too coarse.
    """
    pair = unfit(spec_of(test), records.accepted_as, 0) if isinstance(test, PrivateQuery) else None
    if pair:
        raise ValueError(refused(test, records, *pair))
    found = largest_order(test, records, last)
    if found < last:
        raise refusal(test, records, found, f"give max_order={found}")


def refusal(test, records: Records, largest: int, way_out: str) -> ValueError:
    """Why a test answers no query given more than `largest` columns, and the ways out."""
    if not test.uses_z:
        return ValueError(
            f"{method_of(test)} does not condition on other columns, so it answers no query given any: {way_out}, or "
            "use a test that does, such as partition-gcm."
        )
    pair = unfit(spec_of(test), records.accepted_as, largest + 1)
    if pair:
        i, j = (records.names[k] for k in pair)
        return ValueError(
            f"{method_of(test)} takes no query about {i} and {j} given more than {largest} of the other columns: "
            f"{way_out}, or {ANOTHER}."
        )
    return CoarseCells(
        f"{method_of(test)} refuses queries given more than {largest} of these columns, since it would find dependence "
        f"where there is none: {way_out}, {TAKE_THE_RISK}."
    )
