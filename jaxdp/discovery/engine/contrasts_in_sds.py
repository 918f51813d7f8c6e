"""Directions where one release answers any number of queries: contrasts of |z|, at no further cost.

Read off separating sets, a pair that lacks power makes a collider of every common neighbour. A contrast asks how much
nearer to independence the common neighbour brings the pair, and all contrasts decide together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxdp.discovery.engine.arrow_trust import Shown, cycles, leftover
from jaxdp.discovery.engine.directions import Contrasts, Orientation, Rule, oriented
from jaxdp.discovery.engine.knowledge import Known
from jaxdp.discovery.engine.max_min_scores import MaxMinScores
from jaxdp.discovery.engine.number_noise import NormalNoise
from jaxdp.discovery.engine.orientation import unshielded
from jaxdp.discovery.engine.skeleton import CIQuery

ORDER = 2  # largest set of the queries that directions rest on
SD = math.sqrt(2.0)  # of a difference of two |z|, at most
MEAN = 3.0  # sds; medians were 2.8 of colliders and 3.7 of others on the models of docs/theory/neighbour_pc.md


def by_one_release(
    adjacency: np.ndarray,
    sizes: Callable[[Sequence[CIQuery]], np.ndarray],
    facts: Known,
    max_order: int | None,
    rule: Rule,
) -> Orientation | None:
    """Directions of a skeleton (d, d); None where no triple has a contrast. sizes: |z| of queries."""

    def scores(queries):
        return sizes(queries) if queries else np.zeros(0), np.zeros(len(queries))

    found = MaxMinScores((0,) * len(adjacency), scores, ORDER if max_order is None else min(max_order, ORDER), facts)
    found.add([(int(i), int(j)) for i, j in np.argwhere(np.triu(adjacency))])
    triples = unshielded(adjacency)
    values = found.contrast(triples) if triples else np.zeros(0)
    asked = np.flatnonzero(np.isfinite(values))
    if not asked.size:
        return None
    contrasts = Contrasts([triples[place] for place in asked], values[asked], NormalNoise(SD), 0, None, MEAN)
    apart = np.triu(~(adjacency | facts.forbidden), 1)
    shown = Shown(cycles(adjacency), leftover(found.minimum[apart]))
    return oriented(adjacency, contrasts, facts.against_time(), rule, shown)
