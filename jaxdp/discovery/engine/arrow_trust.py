"""How much of the share of an arrow was right where it was measured, by what a found graph itself shows.

Shares follow from the numbers of one skeleton. False and missing edges make arrows wrong of which every number is sure,
and public things tell skeletons with many such edges from others: cycles, pairs without an edge that stay dependent,
the number of columns and the noise. Fitted and measured on random models: docs/discovery.md#arrow-shares.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

OFFSET = 0.1  # added to the leftover dependence, whose logarithm counts
LOUDEST = 4.0  # sds to which the |z| of a pair counts: a missing edge, not how strong it is


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a found graph shows of its edges, public.

    cycles: independent cycles of the skeleton per column. leftover: mean square of the least |z| of the pairs that no
    edge joins; about 1 and less where they are independent given some set; None where that is not released.
    """

    cycles: float
    leftover: float | None = None


@dataclasses.dataclass(frozen=True)
class Trust:
    """What is right of a share of 1: expit(constant - per_cycle cycles - per_leftover log(OFFSET + leftover)).

    The last term is 0 where the leftover is not released. per_few, per_noise: what `at` takes off the constant.
    """

    constant: float
    per_cycle: float = 0.0
    per_leftover: float = 0.0
    per_few: float = 0.0
    per_noise: float = 0.0

    def at(self, columns: int, noise: float) -> Trust:
        """Of so many columns, and noise of a draw per column, in thousandths of the records: less of few, and of noise.

        Edges of few columns are many for each of them, and noise leaves edges out: cycles do not show those.
        """
        return Trust(self.constant - self.per_few / columns - self.per_noise * noise, self.per_cycle, self.per_leftover)

    def of(self, shown: Shown) -> float:
        """Of the arrows of a graph that shows this."""
        odds = self.constant - self.per_cycle * shown.cycles
        if shown.leftover is not None:
            odds -= self.per_leftover * math.log(OFFSET + shown.leftover)
        return 1.0 / (1.0 + math.exp(-odds))


def cycles(skeleton: np.ndarray) -> float:
    """Independent cycles of a symmetric skeleton (d, d) per column: edges beyond those of a spanning forest."""
    component = np.arange(len(skeleton))
    edges = np.argwhere(np.triu(skeleton))
    for i, j in edges:
        component[component == component[j]] = component[i]
    return (len(edges) - len(skeleton) + len(np.unique(component))) / len(skeleton)


def leftover(least: np.ndarray) -> float | None:
    """Mean square of the least |z| of pairs without an edge, each at most LOUDEST; None without such a pair."""
    return float(np.mean(np.minimum(least, LOUDEST) ** 2)) if len(least) else None
