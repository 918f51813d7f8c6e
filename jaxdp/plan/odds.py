"""Planning of logistic regression: normal columns, log odds linear in them; power with privacy and without.

The test's own stages run on sums that are normal with the means and covariances of a made-up population: `PLACES` rows
of columns, each with two values of Y and their chances. So the time does not grow with n. What other regressions of
scores share is in `RegressionSetting`, `power_of` and `plain_power_of`.
"""

import dataclasses
import functools
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.bisection import bisected
from jaxdp.data.dataset import BINARY, Column, Data
from jaxdp.independence.continuous import moment_test
from jaxdp.independence.continuous.logistic_regression import LogisticRegression
from jaxdp.independence.continuous.moment_stages import LEFT, REACH, centre_grid, scale_grid
from jaxdp.independence.continuous.regression_test import CENTRES_SHARE, GRID, SCALES_SHARE
from jaxdp.plan import laws
from jaxdp.plan.setting import SCALED, Setting
from jaxdp.statistics import moments

PLACES, DRAWS, BATCH, SEED = 1024, 1000, 50, 20_333  # places: a power of two
HALVINGS = 50
FAR = 30.0  # log odds
CLOSER = 0.7  # correlation of the columns where that is looked at besides


@dataclasses.dataclass(frozen=True)
class RegressionSetting(Setting):
    """A Y of which a function of the mean is linear in X and Z; the effect is the slope of X per sd.

    Of an X of two levels it is that of the second against the first. Behind the columns are normal ones, any two of
    which have one correlation; those of levels are cut from them into equally likely ones.
    rate: mean of Y over its largest value. correlation: of any two of X and the columns of Z. confounding: sd of what Z
    adds. residual_sd: sd of a continuous column on [-1, 1].
    """

    x: Column = Column()
    z: tuple[Column, ...] = ()
    scaled: bool = True
    confounding: float = 0.5
    rate: float = 0.5
    correlation: float = 0.3

    method: ClassVar[str]
    half_the_rate: ClassVar[str]  # in words
    units: ClassVar[tuple[str, str, str]]  # of an effect, of its exponential, and what Z adds to

    def mean(self, along, numpy=np):
        """Of Y over its largest value, where the linear part is this."""
        raise NotImplementedError

    def curvature(self, mean):
        """(derivative of the mean, variance of Y), (n,), for the information without privacy."""
        raise NotImplementedError

    def two_values(self, mean):
        """(chance of the second, both values of Y on [-1, 1]), each (n,), that have its mean and its variance."""
        raise NotImplementedError

    def drawn(self, uniform, mean):
        """Y on [-1, 1] from uniform numbers (n,)."""
        raise NotImplementedError

    def planned_for(self) -> str:
        """What is supposed of Y, as a sentence's end."""
        raise NotImplementedError

    def __post_init__(self):
        super().__post_init__()
        check.in_range(0.0, 1.0, rate=self.rate)
        if not 0.0 <= self.correlation < 1.0:
            raise ValueError(f"correlation must be at least 0 and below 1, got {self.correlation:g}.")
        if self.tails:
            raise ValueError(f"{self.method} is planned for normal columns: leave tails out.")

    @classmethod
    def of_fields(cls, covariates: int = 0, **fields) -> Setting:
        """Without a schema: a continuous X and so many continuous columns of Z."""
        check.non_negative(covariates=covariates)
        return cls(z=(Column(),) * covariates, **fields)

    @classmethod
    def of_schema(cls, schema, x: str, y: str, given=(), **fields) -> Setting:
        """The setting of columns of a `jaxdp.Schema`."""
        if "covariates" in fields:
            raise ValueError("with a schema the covariates are the columns given: leave covariates out.")
        return super().of_schema(schema, x, y, given, **fields)

    def effect_is(self, effect: float) -> str:
        """The unit of an effect and what this one amounts to, as a sentence without its full stop."""
        unit, ratio, part = self.units
        told = f"{unit} " + ("of X's second against its first" if self._two else "per sd of X")
        told += f"{', Z held fixed' if self.z else ''}: {effect:.3g} is {ratio} of {math.exp(effect):.3g}. "
        told += f"Planned for {self.planned_for()}"
        if self.z:
            told += f", columns that correlate by {self.correlation:g}, and {part} to which Z adds {self.confounding:g}"
            told += " (one sd)"
        return told

    def departures(self) -> tuple[tuple[str, str, Setting], ...]:
        """(name, words, setting) of data that are not as planned."""
        found: list[tuple[str, str, Setting]] = [
            ("half the rate", self.half_the_rate, dataclasses.replace(self, rate=0.5 * self.rate))
        ]
        if self.z and self.correlation < CLOSER:
            closer = dataclasses.replace(self, correlation=CLOSER)
            found.append(("correlated columns", f"columns correlate by {CLOSER:g}", closer))
        return tuple(found)

    def design(self, n: int, effect, form: str = SCALED):
        """A function key -> Data for `jaxdp.power`."""
        constant = float(_population(self, float(effect))[0])
        return functools.partial(answers, n=n, setting=self, form=form, effect=float(effect), constant=constant)

    @property
    def _two(self) -> bool:
        return self.x.levels == 2

    @property
    def root(self) -> np.ndarray:
        """(d, d), which makes the columns of Z, then X, of independent normal ones."""
        alike = np.full((len(self.z) + 1,) * 2, self.correlation)
        np.fill_diagonal(alike, 1.0)
        return np.linalg.cholesky(alike)

    def slopes(self, effect) -> tuple[float, ...]:
        """Of the columns that `standard` makes, X the last; the columns of Z have equal ones."""
        count = len(self.z)
        sd = math.sqrt(count + count * (count - 1) * self.correlation)
        return (self.confounding / sd if count else 0.0,) * count + (effect,)

    def standard(self, normal):
        """What the log odds are linear in, (n, d): mean 0 and sd 1, but 0 or 1 for an X of two levels."""
        made = []
        for j, column in enumerate((*self.z, self.x)):
            values, levels = normal[:, j], column.levels
            if levels > 1:
                values = (_level(values, levels) - 0.5 * (levels - 1)) / math.sqrt((levels**2 - 1) / 12.0)
            made.append(values)
        return jnp.stack([*made[:-1], 0.5 * (made[-1] + 1.0) if self._two else made[-1]], axis=1)

    def as_read(self, normal, form: str):
        """(x, z) as the test reads them."""
        z = [
            _level(normal[:, j], column.levels) if column.levels > 1 else self._scaled(normal[:, j])
            for j, column in enumerate(self.z)
        ]
        x = self._scaled(normal[:, -1])
        if self.x.levels > 1:
            x = _level(normal[:, -1], self.x.levels)
            x = 2.0 * x / (self.x.levels - 1) - 1.0 if form == SCALED else x
        return x, jnp.stack(z, axis=1) if z else None

    def _scaled(self, normal):
        return jnp.clip(self.residual_sd * normal, -1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class LogisticSetting(RegressionSetting):
    """A yes or no whose log odds are linear in X and Z; the effect is the log odds ratio per sd of X.

    rate: share of a yes. Other fields: those of `RegressionSetting`.
    """

    y: Column = Column(BINARY, 2)

    method: ClassVar[str] = "logistic-regression"
    units: ClassVar[tuple[str, str, str]] = ("log odds ratio of Y's second level", "an odds ratio", "log odds")
    half_the_rate: ClassVar[str] = "half as many have Y's second level"

    def mean(self, along, numpy=np):
        """Chance of a yes."""
        return 1.0 / (1.0 + numpy.exp(-along))

    def curvature(self, mean):
        """Both are those of Bernoulli's law."""
        return (mean * (1.0 - mean),) * 2

    def two_values(self, mean):
        """No, and yes."""
        return mean, -np.ones(len(mean)), np.ones(len(mean))

    def drawn(self, uniform, mean):
        """-1 or 1."""
        return 2.0 * (uniform < mean) - 1.0

    def planned_for(self) -> str:
        """How many say yes."""
        return f"{self.rate:.3g} of the records with that level"


def _level(normal, levels: int):
    """Of equally likely ones."""
    return jnp.clip(jnp.floor(levels * jax.scipy.stats.norm.cdf(normal)), 0, levels - 1)


def answers(key, *, n: int, setting: RegressionSetting, form: str, effect, constant) -> Data:
    """Records of the setting."""
    key_columns, key_y = jax.random.split(key)
    normal = jax.random.normal(key_columns, (n, len(setting.z) + 1)) @ jnp.asarray(setting.root).T
    mean = setting.mean(constant + setting.standard(normal) @ jnp.stack(setting.slopes(effect)), jnp)
    x, z = setting.as_read(normal, form)
    y = setting.drawn(jax.random.uniform(key_y, (n,)), mean)
    as_codes = form != SCALED and setting.y.levels
    return Data(x, 0.5 * (y + 1.0) * (setting.y.levels - 1) if as_codes else y, z, domain=setting.domain(form))


@functools.lru_cache(maxsize=64)
def _population(setting: RegressionSetting, effect: float):
    """(constant, means of Y over its largest, what they depend on, normal columns) at `PLACES` places."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    drawn = qmc.Sobol(len(setting.z) + 1, seed=SEED).random(PLACES)
    normal = ndtri(np.clip(drawn, 1e-9, 1.0 - 1e-9)) @ setting.root.T
    seen = np.asarray(setting.standard(normal), float)
    along = seen @ np.array(setting.slopes(effect))
    constant, _ = bisected(lambda one: np.mean(setting.mean(one + along)) < setting.rate, -FAR, FAR, HALVINGS, xp=np)
    return constant, setting.mean(constant + along), seen, normal


def _noisy(query, key, value, num_records):
    return laws.released(query, query.sensitivity(1), key, value, num_records)  # the noise does not depend on n


def _placed(test, key, num_records, noise):
    """The test about private centres and scales of normal columns, as an exponential mechanism selects them.

    noise: of it in the scores of a centre and of a scale, 2/epsilon each.
    """
    if test.centres is None:
        return test
    of_centres, of_scales = jax.random.split(key)
    sd, centres, ends = test.scales[:, None], jnp.asarray(centre_grid())[None], jnp.asarray(scale_grid())[None]
    centre = _selected(of_centres, centres, jax.scipy.stats.norm.cdf(centres / sd) - 0.5, num_records / noise[0])
    left = _left_of_normal(ends / sd, centre[:, None] / sd)
    spread = _selected(of_scales, ends, left - LEFT, num_records / noise[1])
    return dataclasses.replace(test, centres=centre, scales=spread / REACH)


def _selected(key, grid, off, sharpness):
    """Of each column the candidate of the largest noisy score -|off| n; grid (1, candidates), off (p, candidates)."""
    return grid[0][jnp.argmax(jax.random.gumbel(key, off.shape) - sharpness * jnp.abs(off), axis=1)]


def _left_of_normal(end, centre):
    """E min((xi - centre)^2/end^2, 1) of a standard normal xi: what `PrivateSpreads` compares with `LEFT`."""
    normal = jax.scipy.stats.norm
    low, high = centre - end, centre + end
    inside = normal.cdf(high) - normal.cdf(low)
    second = (
        inside * (1.0 + centre**2) + (low - 2.0 * centre) * normal.pdf(low) - (high - 2.0 * centre) * normal.pdf(high)
    )
    return second / end**2 + 1.0 - inside


@jax.jit
def _p_values(asked, key, data, chances, num_records, noise):
    """Of `DRAWS` tables. data: every place as a yes, then as a no; chances: of each, (2 `PLACES`,), with sum 1."""
    euclidean, rounds = asked.first.euclidean, asked.second.rounds

    def of(key):
        of_places, of_records, *keys = jax.random.split(key, 4 + rounds)
        test = _placed(asked.second, of_places, num_records, noise)
        columns = test.columns(data)
        one = jnp.concatenate([jnp.ones((len(columns), 1)), columns], axis=1)
        off = jnp.sqrt(num_records * chances) * jax.random.normal(of_records, chances.shape)
        counts = num_records * chances + off - chances * jnp.sum(off)  # nearly those of n drawn records
        value = moments.vector_of_means((one * (counts / num_records)[:, None]).T @ one, num_records, euclidean)
        about = asked.then(test, asked.first, _noisy(asked.first, keys.pop(), value, num_records))
        while True:
            stages = about._round() if about.rounds else None
            query = about if stages is None else stages.first
            found = query.parts(counts @ query.on_grid(data, None) / GRID)
            release = _noisy(query, keys.pop(), found, num_records)
            if stages is None:
                return about.interpret(None, release).p_value
            about = stages.then(stages.second, query, release)

    return jax.lax.map(of, jax.random.split(key, DRAWS), batch_size=BATCH)


def power_of(kind, setting: Setting, n: int, epsilon, effect: float, level: float) -> float:
    """A regression of this class on `DRAWS` tables of the setting's law, the same draws at every n, budget and effect.

    Private centres and scales are selected as from normal columns.
    """
    assert isinstance(setting, RegressionSetting)
    with jax.enable_x64(True):
        _, mean, _, normal = _population(setting, effect)
        chance, low, high = setting.two_values(mean)
        x, z = setting.as_read(np.concatenate([normal, normal]), SCALED)
        data = Data(x, jnp.asarray(np.concatenate([high, low])), z, setting.domain(SCALED))
        test = kind(**laws.budget(epsilon), enforce_rule=False)._with_layout(data).decided(n)
        if test._centres_are_known(n):
            sd = np.full(test.num_clipped, setting.residual_sd)
            test = dataclasses.replace(test, centres=0.0 * sd, scales=sd)
        chances = jnp.asarray(np.concatenate([chance, 1.0 - chance]) / PLACES)
        whole, count = test.mechanism_in_force(), max(test.num_clipped, 1)
        noise = tuple(
            min(2.0 / moment_test.centre_epsilon(whole, count, share), float(n))
            for share in (CENTRES_SHARE, SCALES_SHARE)
        )
        p_values = _p_values(test._moments(), jax.random.key(SEED), data, chances, float(n), noise)
        return float(np.mean(np.asarray(p_values) < level))


def logistic_power(setting: Setting, n: int, epsilon, effect: float, level: float) -> float:
    return power_of(LogisticRegression, setting, n, epsilon, effect, level)


def plain_power_of(setting: Setting, n: int, epsilon, effect: float, level: float) -> float:
    """Wald's test of maximum likelihood without privacy, by its sandwich variance. epsilon is not used."""
    assert isinstance(setting, RegressionSetting)
    _, mean, seen, _ = _population(setting, effect)
    one = np.concatenate([np.ones((PLACES, 1)), seen], axis=1)
    steep, variance = setting.curvature(mean)
    back = np.linalg.inv((one * steep[:, None]).T @ one / PLACES)
    spread = back @ ((one * variance[:, None]).T @ one / PLACES) @ back
    return laws.two_sided_power(abs(effect) * math.sqrt(n / spread[-1, -1]), level)
