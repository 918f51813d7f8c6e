"""The 21 functional relations with noise, the benchmark of maximal information coefficients.

Lazarsfeld et al. 2022, appendix E.2.1 (after Reshef et al. 2011, 2016): 100 Gaussian blobs at equal arc lengths along a
curve in the unit square, all with one standard deviation, cut to the square. Nine noise levels are set by R^2.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.data.dataset import Data

NUM_BLOBS = 100
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # R^2
UNIT_SQUARE = ((0.0, 1.0), (0.0, 1.0))
_ARC_POINTS = 200_001
_LEVEL_DRAWS = 20_000
_LEVEL_SEED = 20110916
_BISECTIONS = 24


def _cubic(x):
    return 10 * (x - 0.6) ** 3 + 2 * x**2 + (1.5 - 3 * x)


def _wave(amplitude_of, turns, shift=0.5):
    return lambda x: 0.4 * amplitude_of(turns * np.pi * x) + shift


def _pieces(*branches):
    """(upper end, function) pairs, the last without an end."""

    def value(x):
        result = branches[-1][1](x)
        for end, branch in reversed(branches[:-1]):
            result = np.where(x <= end, branch(x), result)
        return result

    return value


# F3 and F4: the printed shift of the line is lost in our copy; 2x - 0.5 centres the curve, as the authors' code does.
FUNCTIONS = (
    lambda x: 0.2 * np.sin(12 * x - 6) + 1.1 * (x - 1) + 1,
    lambda x: 0.15 * np.sin(11 * np.pi * x) + x + 0.05,
    lambda x: 0.1 * np.sin(48 * x) + 2 * x - 0.5,
    lambda x: 0.2 * np.sin(48 * x) + 2 * x - 0.5,
    _wave(np.cos, 7),
    _wave(np.cos, 14),
    _cubic,
    lambda x: 4 * _cubic(x) - 1.4,
    _pieces((0.99, lambda x: x / 99), (None, lambda x: 99 * x - 98)),
    lambda x: 2.0**x - 1,
    lambda x: 8.0 ** (x - 0.3) - 1,
    lambda x: x,
    lambda x: 4 * (x - 0.5) ** 2 + 0.1,
    _wave(np.sin, 9),
    _wave(np.sin, 8),
    _wave(np.sin, 16),
    _pieces((0.491, lambda x: 0.05 + 0 * x), (0.509, lambda x: 50 * (x - 0.5) + 0.5), (None, lambda x: 0.95 + 0 * x)),
    lambda x: 0.4 * np.cos(5 * np.pi * x * (1 + x)) + 0.5,
    lambda x: 0.4 * np.sin(6 * np.pi * x * (1 + x)) + 0.5,
    _pieces((0.0528, lambda x: 18 * x), (0.1, lambda x: -18 * x + 1.9), (None, lambda x: (1 - x) / 9)),
    _pieces((0.0051, lambda x: 190 * x), (0.01, lambda x: -198 * x + 1.99), (None, lambda x: (1 - x) / 99)),
)


class Law(NamedTuple):
    """Blob centres, arrays (100,), and their common standard deviation.

    The curve may leave the unit square between its first and last point in it; blobs there count with the mass
    they have inside.
    """

    x: np.ndarray
    y: np.ndarray
    sd: float


def law(function: int, level: float | None = None, *, sd: float | None = None) -> Law:
    """The law of function 1, ..., 21 with R^2 = `level` in (0, 1), or with blobs of standard deviation `sd`."""
    if not 1 <= function <= len(FUNCTIONS):
        raise ValueError(f"function must be 1 to {len(FUNCTIONS)}, got {function}.")
    if (level is None) == (sd is None):
        raise ValueError("give level= (an R^2) or sd=, one of them.")
    if sd is not None:
        check.positive(sd=sd)
        x, y = _centres(function)
        return Law(x, y, float(sd))
    if level is None or not 0 < level < 1:
        raise ValueError(f"level must be an R^2 strictly between 0 and 1, got {level}.")
    x, y = _centres(function)
    return Law(x, y, _deviation(function, float(level)))


@functools.cache
def _centres(function: int):
    """Centres at equal arc lengths on the part of the curve from its first to its last point in the square."""
    x = np.linspace(0.0, 1.0, _ARC_POINTS)
    y = FUNCTIONS[function - 1](x)
    inside = np.flatnonzero((y >= 0) & (y <= 1))
    x, y = x[inside[0] : inside[-1] + 1], y[inside[0] : inside[-1] + 1]
    length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    at = np.interp(np.linspace(0.0, length[-1], NUM_BLOBS, endpoint=False), length, x)
    return at, FUNCTIONS[function - 1](at)


@functools.cache
def _deviation(function: int, level: float) -> float:
    """The standard deviation at which R^2 of (f(X), Y) is `level`: bisection on one fixed set of draws.

    R^2 after Reshef et al. 2018: the squared correlation of f(x0 + e1) and f(x0) + e2, kept to the unit square.
    """
    centres, heights = _centres(function)
    generator = np.random.default_rng(_LEVEL_SEED)
    blob = generator.integers(0, NUM_BLOBS, _LEVEL_DRAWS)
    noise = generator.standard_normal((2, _LEVEL_DRAWS))
    low, high = 0.0, 2.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        curve = FUNCTIONS[function - 1](centres[blob] + middle * noise[0])
        value = heights[blob] + middle * noise[1]
        kept = (curve >= 0) & (curve <= 1) & (value >= 0) & (value <= 1)
        square = np.corrcoef(curve[kept], value[kept])[0, 1] ** 2 if kept.sum() > 100 else 0.0
        low, high = (middle, high) if square > level else (low, middle)
    return 0.5 * (low + high)


def sample(key, n: int, law: Law) -> Data:
    """n records of a law, x and y of shape (n,) in [0, 1]; exact, without rejection."""
    key_blob, key_x, key_y = jax.random.split(key, 3)
    x, y, sd = jnp.asarray(law.x, float), jnp.asarray(law.y, float), law.sd
    inside = jnp.log(_mass(x, sd)) + jnp.log(_mass(y, sd))
    blob = jax.random.categorical(key_blob, inside, shape=(n,))
    return Data(_cut_normal(key_x, x[blob], sd), _cut_normal(key_y, y[blob], sd))


def functional_relation(
    key: jax.Array, n: int, *, centres_x: np.ndarray, centres_y: np.ndarray, deviation: Any, dependent: Any = 1.0
) -> Data:
    """`sample` with every number an argument, and its null: x, y of shape (n,) in [0, 1].

    centres_x, centres_y: blobs, arrays (100,). dependent: 1 for the relation, 0 for independent x and y with the same
    margins. `relation` builds both from the number of a function and an R^2.
    """
    key_pair, key_other = jax.random.split(key)
    blobs = Law(centres_x, centres_y, deviation)
    pair, other = sample(key_pair, n, blobs), sample(key_other, n, blobs)
    return Data(pair.x, jnp.where(dependent > 0, pair.y, other.y))


def relation(n: int, *, effect: float, function: int = 12, null_level: float = 0.5) -> Callable[..., Data]:
    """The design of function 1, ..., 21 at R^2 = effect; effect 0: independent, margins of R^2 = null_level.

    Returns a callable key -> Data. Function 12 is the line.
    """
    blobs = law(function, effect if effect else null_level)
    return functools.partial(
        functional_relation,
        n=n,
        centres_x=np.asarray(blobs.x, np.float32),
        centres_y=np.asarray(blobs.y, np.float32),
        deviation=float(blobs.sd),
        dependent=float(effect > 0),
    )


def masses(law: Law, columns: int = 360, rows: int = 260) -> np.ndarray:
    """Probabilities on a rows x columns grid of about equal margins, for `statistics.mic_star`."""
    from scipy.special import ndtr

    def cut(centres, cells):
        fine = np.linspace(0.0, 1.0, 4_001)
        cdf = ndtr((fine[:, None] - centres) / law.sd)
        weight = (ndtr((1.0 - law.x) / law.sd) - ndtr(-law.x / law.sd)) * (
            ndtr((1.0 - law.y) / law.sd) - ndtr(-law.y / law.sd)
        )
        share = (cdf - cdf[0]) / np.maximum(cdf[-1] - cdf[0], 1e-300)
        margin = share @ weight / weight.sum()
        edges = np.interp(np.linspace(0.0, 1.0, cells + 1), margin, fine)
        at = ndtr((edges[:, None] - centres) / law.sd)
        return np.diff(at, axis=0)

    joint = cut(law.y, rows) @ cut(law.x, columns).T
    return joint / joint.sum()


def _mass(centre, sd):
    """Probability that a normal draw falls into [0, 1]."""
    from jax.scipy.stats import norm

    return norm.cdf((1.0 - centre) / sd) - norm.cdf(-centre / sd)


def _cut_normal(key, centre, sd):
    low, high = -centre / sd, (1.0 - centre) / sd
    return jnp.clip(centre + sd * jax.random.truncated_normal(key, low, high), 0.0, 1.0)
