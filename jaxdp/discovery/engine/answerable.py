"""How large conditioning sets may be before a test refuses the query: known before anything is asked or paid."""

from __future__ import annotations

import functools

import jax
import numpy as np

from jaxdp.catalogue import wants_scores
from jaxdp.core import PrivateQuery, method_of
from jaxdp.data.records import Records
from jaxdp.independence.continuous.coarse_cells import TAKE_THE_RISK, CoarseCells
from jaxdp.independence.continuous.level_rule import LevelLost


def largest_order(test, records: Records, last: int) -> int:
    """The largest size up to `last` of conditioning sets of which the test refuses none, from public columns alone."""
    if isinstance(test, PrivateQuery) and not test.uses_z:
        return min(last, 0)
    if not isinstance(test, PrivateQuery) or test.public_columns:
        return last
    shape = jax.ShapeDtypeStruct((records.num_records, len(records.columns)), np.float32)
    # the worst set of a size: continuous columns first, then those with most levels
    levels = records.levels
    columns = sorted(range(len(levels)), key=lambda j: (levels[j] != 0, -levels[j]))
    for order in range(1, last + 1):
        asked = functools.partial(_query, records.columns, columns, order, wants_scores(test))
        try:
            test.resolve(jax.eval_shape(asked, shape))
        except LevelLost:
            return order - 1
    return last


def _query(described, columns, order: int, scores: bool, values):
    return Records(values, described).query(columns[-2], columns[-1], columns[:order], scores)


def require_answerable(test, records: Records, last: int) -> None:
    """Raises `CoarseCells` if a search that conditions on `last` columns could ask what the test refuses."""
    found = largest_order(test, records, last)
    if found < last:
        raise refusal(test, found, f"give max_order={found}")


def refusal(test, largest: int, way_out: str) -> ValueError:
    """Why a test answers no query given more than `largest` columns, and the ways out."""
    if not test.uses_z:
        return ValueError(
            f"{method_of(test)} does not condition on other columns, so it answers no query given any: {way_out}, or "
            "use a test that does, such as partition-gcm."
        )
    return CoarseCells(
        f"{method_of(test)} refuses queries given more than {largest} of these columns, since it would find dependence "
        f"where there is none: {way_out}, {TAKE_THE_RISK}."
    )
