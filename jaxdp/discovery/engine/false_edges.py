"""Which edges stay: at most a share of them is expected to be there by chance, noise and sampling counted.

Theory: docs/theory/max_min_pc.md#false. Post-processing of released numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from scipy.special import erfc

from jaxdp import null_laws
from jaxdp.discovery.engine.number_noise import NumberNoise
from jaxdp.discovery.engine.skeleton import Skeleton
from jaxdp.discovery.graph import Decision

Pair = tuple[int, int]
Answers = tuple[Decision, ...]

SHARE = 0.05  # of the edges of a graph, expected there by chance at most
FURTHEST = 9.0  # null sds; no sampling error beyond it is looked at
STEPS = 200


@dataclasses.dataclass(frozen=True)
class Sampling:
    """What independence leaves in the largest of many scores: none passes sd (|z| - deducted), z normal.

    sd, deducted: in records, and in sds; sd = 0 where the number of records is private. scores: how many were looked
    at.
    """

    sd: float
    deducted: float
    scores: int

    def tail(self, excess: np.ndarray) -> np.ndarray:
        """Bound on the expected number of scores beyond so many sds above `deducted`."""
        return self.scores * erfc((self.deducted + excess) / np.sqrt(2.0))


def p_values(values: np.ndarray, noise: NumberNoise, sampling: Sampling) -> np.ndarray:
    """For each released number: bound on the chance of one as large without dependence.

    The noise is fresh, so that P(noise + score >= y) is at most the mean of P(noise >= y - S), S no less than the
    score. Above 0 S has the law that `sampling` bounds, counted over all pairs, since the draws took the largest; else
    it is 0. Each step of the mean takes the largest S within it.
    """
    values = np.asarray(values, float)
    if not sampling.sd:
        return noise.chance_above(values)
    excess = np.linspace(0.0, FURTHEST, STEPS)
    above = np.minimum(1.0, sampling.tail(excess) / len(values))
    steps = -np.diff(above, prepend=1.0)
    by_noise = noise.chance_above(values[:, None] - sampling.sd * excess)
    return np.minimum(1.0, by_noise @ steps + above[-1])


def adjusted(p_values: np.ndarray) -> np.ndarray:
    """Benjamini-Hochberg: the share of edges expected there by chance, were this edge the weakest that is kept."""
    return null_laws.benjamini_hochberg(np.asarray(p_values, float))


def without_chance(search: Skeleton, decisions: Mapping[Pair, Decision], level: float) -> tuple[Skeleton, Answers]:
    """The search less the edges that chance explains, and its decisions with their q-values.

    decisions: of each pair the answer of the smallest |z|, its value. An edge that goes is separated by that answer's
    set.
    """
    pairs = sorted(decisions)
    answers = [decisions[pair] for pair in pairs]
    z = np.array([math.inf if answer.value is None else answer.value for answer in answers])
    found, adjacency, separators = [], search.adjacency.copy(), dict(search.separators)
    for pair, answer, chance in zip(pairs, answers, adjusted(erfc(z / math.sqrt(2.0))), strict=True):
        if adjacency[pair] and chance > level:
            adjacency[pair] = adjacency[pair[::-1]] = False
            separators[pair] = answer.given
        gone = answer.independent or bool(chance > level)
        found.append(dataclasses.replace(answer, independent=gone, q_value=float(chance)))
    return dataclasses.replace(search, adjacency=adjacency, separators=separators), tuple(found)
