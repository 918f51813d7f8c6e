"""Power by formula for tests on sums of scores of residuals (docs/theory/residual_scores.md#pivot).

The scores are those that the test itself would take about its noisy moments, for `CASES` cases of that noise.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.kept_programs import kept_jit
from jaxdp.data.dataset import Column
from jaxdp.independence.continuous import moment_columns, moment_test, residual_test, score_law
from jaxdp.plan import continuous, laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics import moments, residual_scores

TOLD = ("offset", "range", "largest", "tilt", "widest", "bias", "hidden")  # of the scores
CASES = 64  # of the noise in the moments
UNIFORM = 1.0 / 3.0  # variance of a uniform column on [-1, 1]
UNSEEN = 1e6  # variance in place of one that hides everything


def _power(
    setting: Setting, n: int, epsilon: continuous.Budget, effect: float, level: float, *, correlation: bool
) -> float:
    """Scores are normal about the truth by each case's moments; the noise of sum and squares as the test counts it."""
    truth, x, y, given = second_moments(setting, effect)
    normal, width = isinstance(epsilon, laws.Concentrated), len(given)
    share = float(residual_test.MATRIX_SHARE_GIVEN if given.any() else residual_test.MATRIX_SHARE)
    of_z = moment_columns.of_one_level(setting.z)
    numbers = (*of_z, *(0 for _ in range(width - len(of_z))))
    scale = laws.Noise.of(epsilon, share, residual_scores.moments_bound(numbers, normal)).scale
    drawn = scale * laws.stratified_noise(CASES, (moments.num_entries(width),), normal)
    with jax.enable_x64(True):
        found = _scores(truth, drawn, float(n), scale, given, x, y, normal, correlation, numbers)
        about = {name: np.asarray(values)[:, None] for name, values in found.items()}
    of_scores, of_squares = (
        laws.Noise.of(epsilon, (1.0 - share) * float(residual_test.SHARES[name]), 1.0) for name in ("scores", "squares")
    )
    noise = laws.Noise(of_scores.scale * about["range"] / n, normal)
    unit, off = (about["largest"] / n) ** 2, about["offset"]
    sampling = np.maximum(about["square"] / n + of_squares.quantiles() * unit, 0.0)
    null = np.maximum(sampling - off**2 / n, score_law.MIN_SPREAD * sampling) + about["products"] + 1e-12
    of_variance = of_squares.variance * unit**2 + residual_scores.HEAVINESS * unit * sampling
    of_target = noise.scale * np.abs(1.0 + off * about["tilt"]), of_scores.scale * about["widest"] / n * off
    judged = laws.Noise(np.hypot(*of_target), normal)
    return laws.noisy_sum_power(
        mean=(off * about["per_unit"] + about["mean"] - about["bias"])[:, 0],
        sd=np.sqrt(np.maximum(about["square"] - about["mean"] ** 2, 0.0) / n)[:, 0],
        null_sds=np.sqrt(np.where(about["hidden"], UNSEEN, null)),
        noise=noise,
        judged=judged,
        level=level,
        variance_noise=of_variance,
        scores=True,
    )


slope_power = functools.partial(_power, correlation=False)
correlation_power = functools.partial(_power, correlation=True)


@functools.partial(kept_jit, static_argnames=("normal", "correlation", "of_one_level"))
def _scores(
    truth, drawn, num_records, scale, given, x, y, normal: bool, correlation: bool, of_one_level: tuple[int, ...]
):
    """What the test reads of its scores for each case of the noise, and mean and mean square of a score."""
    p = len(given)
    to_codes = np.linalg.inv(residual_scores.basis_of(of_one_level))  # moments of levels are released as those of codes
    vector = moments.vector_of_means(to_codes @ truth @ to_codes.T, num_records, normal)
    per_scale = 1.0 if normal else 2.0

    def of(noise):
        noisy = residual_scores.Noisy.of(vector + noise, num_records, p, normal, scale, per_scale, of_one_level)
        about = residual_scores.scores(noisy, x, y, given, correlation, of_one_level)
        sides = jnp.stack([about.a, about.b])
        residuals = sides @ truth @ sides.T

        def moved(form):
            q_xx, q_xy, q_yy = form
            return jnp.array([[q_xx, 0.5 * q_xy], [0.5 * q_xy, q_yy]]) @ residuals

        of_form = moved(about.form)
        mean = jnp.trace(of_form)  # of a quadratic form in two normal residuals, and its square
        told = {name: getattr(about, name) for name in TOLD}
        more = {"products": about.variance, "per_unit": jnp.trace(moved(about.rest)) + about.tilt * mean}
        return told | more | {"mean": mean, "square": mean**2 + 2.0 * jnp.trace(of_form @ of_form)}

    return jax.vmap(of)(drawn)


def second_moments(setting: Setting, effect: float):
    """Second moments of (1, z, x, y) within their bounds, the places of x and y, and which columns are given.

    Further columns of an unordered x or y count as uniform ones that say nothing.
    """
    seen = continuous.observed_moments(setting, effect, (continuous.WIDE, continuous.WIDE), 0.0)
    sd = setting.residual_sd if setting.scaled else 1.0 / moment_test.NATURAL_BOUND
    unit_x, unit_y = (continuous.WIDE * (1.0 if column.levels else sd) for column in (setting.x, setting.y))
    mean_x, mean_y = unit_x * seen["mean_x"], unit_y * seen["mean_y"]
    place = (np.arange(len(mean_x)) + 0.5) / len(mean_x)
    blocks = [_columns(column, place) for column in setting.z]
    more_x, more_y = (moment_columns.width(column) - 1 for column in (setting.x, setting.y))
    x = sum(block.shape[1] for block in blocks)
    y = x + 1 + more_x
    means = np.concatenate([[1.0], *(np.mean(block, axis=0) for block in blocks), np.zeros(2 + more_x + more_y)])
    means[[x + 1, y + 1]] = np.mean(mean_x), np.mean(mean_y)
    made = np.outer(means, means) + np.diag([0.0] + [UNIFORM] * (len(means) - 1))
    start = 1
    for block in blocks:
        stop = start + block.shape[1]
        made[start:stop, start:stop] = block.T @ block / len(place)
        start = stop
    if blocks:  # means of x and y move with the first column
        first = slice(1, 1 + blocks[0].shape[1])
        for at, mean in ((x + 1, mean_x), (y + 1, mean_y)):
            made[first, at] = made[at, first] = blocks[0].T @ mean / len(place)
    made[x + 1, x + 1] = np.mean(unit_x**2 * seen["var_x"] + mean_x**2)
    made[y + 1, y + 1] = np.mean(unit_y**2 * seen["var_y"] + mean_y**2)
    made[x + 1, y + 1] = made[y + 1, x + 1] = np.mean(unit_x * unit_y * seen["covariance"] + mean_x * mean_y)
    columns = np.arange(len(means) - 1)
    return made, x, y, (columns < y) & (columns != x)


def levelled(setting: Setting) -> list[bool]:
    """Of each column of these moments whether it is one of levels."""
    return [
        bool(column.levels)
        for column in (*setting.z, setting.x, setting.y)
        for _ in range(moment_columns.width(column))
    ]


def _columns(column: Column, place) -> np.ndarray:
    """A column of Z as columns of the matrix (places, width), at places of equal probability."""
    if not column.levels:
        return (2.0 * place - 1.0)[:, None]
    code = np.floor(place * column.levels)
    if moment_columns.width(column) > 1:
        return np.where(code[:, None] == np.arange(1, column.levels)[None], 1.0, -1.0)
    return (2.0 * code / (column.levels - 1.0) - 1.0)[:, None]
