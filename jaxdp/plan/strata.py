"""Power of `StratifiedTable`: its own statistic on tables drawn from the law of the cells, which is all that it reads.

As many tables whatever n is, so that a search over n costs what one does over epsilon. Tables and noise are drawn from
fixed seeds: a deterministic function, smooth to the resolution of the draws.
"""

import functools
import math

import jax
import numpy as np

from jaxdp.core import Norm
from jaxdp.independence.tables.noisy_table import MOVE
from jaxdp.independence.tables.stratified_table import MIN_CLEARANCE
from jaxdp.plan import laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics.tables.association_in_strata import association, expected_counts

DRAWS, NULLS = 4000, 50  # tables; of these, those whose margins make a null
SEED = 20_266

_association = jax.jit(association)


def stratified_power(setting: Setting, n: int, epsilon, effect: float, level: float) -> float:
    """P(the statistic reaches its null quantile) at equally likely levels of Z, and of X and Y over all strata."""
    noise = laws.Noise.of(epsilon, 1.0, MOVE[Norm.L2 if isinstance(epsilon, laws.Concentrated) else Norm.L1])
    cells = _cells(setting, effect)
    released = _released(np.broadcast_to(cells, (DRAWS, *cells.shape)), n, noise, 0)
    # the test draws its null from the noisy margins of the release: here from those of some releases
    with jax.enable_x64(True):
        margins = np.repeat(np.asarray(expected_counts(released[:NULLS])), DRAWS // NULLS, axis=0)
    total = margins.sum((1, 2, 3), keepdims=True)
    # of few records the noise may leave none
    laws_of_nulls = np.where(total > 0.0, margins, 1.0) / np.where(total > 0.0, total, float(cells.size))
    null = _released(laws_of_nulls, n, noise, 1)
    quantile = np.quantile(_statistics(null, noise), 1.0 - level)
    clearance = n / (len(cells) * math.sqrt(noise.variance * cells[0].size))
    return float(np.mean(min(clearance / MIN_CLEARANCE, 1.0) * _statistics(released, noise) >= quantile))


@functools.lru_cache(maxsize=64)
def _cells(setting: Setting, effect: float) -> np.ndarray:
    """Probabilities (strata, rows, columns); the means of X and Y follow the levels of the first column of Z."""
    first, others = setting.z[0].levels, math.prod(column.levels for column in setting.z[1:])
    mean = setting.mean_at((np.arange(first) + 0.5) / first, np)
    edges = [
        laws.Steps.equal(column.levels, sd).edges
        for column, sd in zip((setting.x, setting.y), setting.hidden_sds(effect), strict=True)
    ]
    return np.repeat(laws.shifted_tables(mean, -mean, effect, *edges), others, axis=0) / (first * others)


def _released(cells: np.ndarray, n: int, noise: laws.Noise, part: int) -> np.ndarray:
    """Noisy tables of n records, one with each of these probabilities."""
    random = np.random.default_rng((SEED, part))
    drawn = random.standard_normal(cells.shape) if noise.normal else random.laplace(size=cells.shape)
    counts = random.multinomial(n, cells.reshape(len(cells), -1)).reshape(cells.shape)
    return counts + noise.scale * drawn


def _statistics(tables: np.ndarray, noise: laws.Noise) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(_association(jax.random.key(SEED), tables, float(noise.variance)))
