"""Which effect `PairContrasts` shows with power 0.8: by the laws of noise and sampling, from public numbers alone.

Theory: docs/theory/pair_contrasts.md#power.
"""

from __future__ import annotations

import math

import numpy as np

from jaxdp.independence.tables.class_choice import HALVES, classing
from jaxdp.independence.tables.pair_contrasts import CHOICE_SHARE, noise_variance
from jaxdp.mechanisms import MaxNorm, ReportNoisyMax
from jaxdp.statistics.tables import contrasts

POWER = 0.8
_GRID = 48  # points of each variable of a max-norm noise
_CHOICES = 40  # draws of the cuts of two columns
_PLACES = 1023  # of possible cuts, as `class_choice` has them
_SEED = 11


def named_effect(classings) -> str:
    """What the effect of a pair with most contrasts is called."""
    first, second = _most(classings)
    return "a correlation between halves (phi)" if first == second == HALVES else "a Cramer's V"


def detectable_effect(whole, classings, num_records: int, level: float) -> float:
    """The effect that a pair shows with power 0.8 at this level, for those with most contrasts. whole: the budget.

    Between halves: phi at the medians of two normal columns, whose chosen cuts lie beside these by the noise of their
    choice. Several contrasts: Cramer's V of equally full classes, by the chi-squared law, with the noise as normal.
    """
    cut = sum(one.cuts for one in classings)
    mechanism = whole.share(1.0 - CHOICE_SHARE) if cut else whole
    first, second = _most(classings)
    if first == second == HALVES:
        shares = (
            _chosen_shares(whole.share(CHOICE_SHARE / cut).selector(), num_records) if cut else np.full((1, 2), 0.5)
        )
        return _between_halves(mechanism, classings, num_records, level, shares)
    return _of_classes((first - 1) * (second - 1), mechanism, classings, num_records, level) / math.sqrt(second - 1)


def effect_between_halves(whole, columns, num_records: int, level: float) -> float:
    """`detectable_effect` where every column has two classes, however many the test takes."""
    return detectable_effect(whole, tuple(classing(column, HALVES) for column in columns), num_records, level)


def sharper(pure, normal, columns, num_records: int, level: float):
    """Whichever of two budgets shows the smaller effect in these columns: public."""
    effects = [effect_between_halves(whole, columns, num_records, level) for whole in (pure, normal)]
    return normal if effects[1] < effects[0] else pure


def _most(classings) -> tuple[int, int]:
    first, second = sorted((one.classes for one in classings), reverse=True)[:2]
    return first, second


def _of_classes(freedom: int, mechanism, classings, num_records: int, level: float) -> float:
    from scipy import optimize, stats

    limit = stats.chi2.isf(level, freedom)
    excess = optimize.brentq(lambda nc: stats.ncx2.sf(limit, freedom, nc) - POWER, 1e-6, 10.0 * limit + 100.0)
    return math.sqrt(excess * (1.0 + noise_variance(mechanism, classings, num_records) / num_records) / num_records)


def _between_halves(mechanism, classings, num_records: int, level: float, shares) -> float:
    """phi, so that the mean power over the chosen cuts is 0.8."""
    from scipy import optimize, stats

    root, noise = math.sqrt(num_records), _noise(mechanism, classings, num_records)
    centre = 1.0 - 2.0 * shares
    spread = root * np.prod(np.sqrt(1.0 - centre**2), axis=1)
    wide = np.sqrt(1.0 + np.sum(centre**2, axis=1))
    kept = np.prod(stats.norm.pdf(stats.norm.ppf(shares)) / stats.norm.pdf(0.0), axis=1)
    far = 10.0 * (root + np.abs(noise).max())

    def above(number: int, limit: float, mean: float) -> float:
        return float(np.mean(stats.norm.sf((limit - mean - wide[number] * noise) / spread[number])))

    limits = [
        optimize.brentq(lambda t, k=k: 2.0 * above(k, t, 0.0) - level, 0.0, far, rtol=1e-4) for k in range(len(shares))
    ]

    def missing(mean: float) -> float:
        return np.mean([above(k, limit, kept[k] * mean) for k, limit in enumerate(limits)]) - POWER

    return optimize.brentq(missing, 0.0, 20.0 * far, rtol=1e-3) / num_records


def _noise(mechanism, classings, num_records: int) -> np.ndarray:
    """Equally likely values of the noise of one sum."""
    from scipy import stats

    middles = (np.arange(_GRID) + 0.5) / _GRID
    if not isinstance(mechanism, MaxNorm):
        return math.sqrt(noise_variance(mechanism, classings, num_records)) * stats.norm.ppf(middles)
    among = contrasts.released([one.classes for one in classings])
    radius = stats.gamma.ppf(middles, among + 1) * 2.0 / float(np.asarray(mechanism.epsilon))
    return np.outer(radius, 2.0 * middles - 1.0).ravel()


def _chosen_shares(selector, num_records: int) -> np.ndarray:
    """Shares of the lower halves of two columns whose values are spread evenly, drawn as they are chosen."""
    random = np.random.default_rng(_SEED)
    at = np.arange(1, _PLACES + 1) / (_PLACES + 1.0)
    scores = -np.abs(at - 0.5) * num_records
    noise = random.exponential if isinstance(selector, ReportNoisyMax) else random.gumbel
    drawn = scores + 2.0 / float(np.asarray(selector.epsilon)) * noise(size=(2 * _CHOICES, _PLACES))
    return at[np.argmax(drawn, axis=1)].reshape(_CHOICES, 2)
