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
        raise CoarseCells(
            f"{method_of(test)} refuses queries given more than {found} of these columns, since it would find "
            f"dependence where there is none: give max_order={found}, {TAKE_THE_RISK}."
        )
