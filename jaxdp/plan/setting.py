"""What is planned for: the public kinds of the columns, how strongly Z matters, and what an effect means.

One meaning of `effect` for all kinds of columns. Behind every column lies a normal variable; given Z, X's own part is
N_X and Y's own part is N_Y + effect N_X with N_X, N_Y ~ N(0, 1) independent, so that their correlation is
effect/sqrt(1 + effect^2). Columns with levels are cut from these variables into equally likely levels. A public
group label y (case/control tests) has equal groups; x = 1 with rate 1/2 +- asin(correlation)/pi in them.
"""

import dataclasses
import functools
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.data import conditioning
from jaxdp.data.columns import with_repeats
from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, Column, Data, Domain, equally_spaced
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.statistics import partition

SCALED, CODES, GROUPS = "scaled", "codes", "groups"  # the coding of a test's columns
NODES, CLASSIC_NODES = 41, 201  # places in Z at which formulas look; more of them resolve a few wide cells
CLASSIC_Z_SD = 2.0
CLASSIC_COMPLEXITY = 2.0
NODES_OF_GROUPS, MAX_GROUPS = 800, 100  # of the values of all groups; more groups have no average chance
MEAN_OF_HALF = math.sqrt(2.0 / math.pi)  # of the positive half of a standard normal variable
HEAVY = 3.0  # degrees of freedom of Student's t
FEW = 0.2  # share of the smaller of two groups
RESIDUAL_SD = 0.2  # of continuous columns on [-1, 1], where nothing else is said


@dataclasses.dataclass(frozen=True)
class Setting:
    """Public description of a question; hashable.

    x, y: one column each. z: columns to condition on, () for none.
    scaled: columns are as `Schema.read` returns them, continuous ones on [-1, 1] with residual sd `residual_sd`,
        Z uniform. Otherwise the continuous model of the GCM paper (`simulate.sine_confounder`).
    confounding: how far the means of X and Y move with the first column of Z, in residual sds, in opposite
        directions (scaled settings).
    tails: degrees of freedom of Student's t for the residuals (scaled to sd 1), 0 for normal ones (scaled settings).
    bent: whether those means follow one wave of a sine over Z, else a line of the same variance (scaled settings).
    skewed: whether the residuals of continuous columns are exponential and begin at the lower bound, else normal about
        the middle of the bounds (scaled settings).
    second_share: of the records that have the second of two levels (scaled settings); the means of both groups differ
        as far as with equal groups.
    hourly: (n, z where dates with times are conditioned on hour by hour), from the fewest records on with which parts
        of an hour of that length are compared by default, for each length; () without such dates.
    accept_coarse_cells: plans tests that cut z into cells where they lose their level and refuse without this word.
    """

    max_effect: ClassVar[float] = math.inf  # beyond which the power no longer rises

    x: Column = Column()
    y: Column = Column()
    z: tuple[Column, ...] = (Column(),)
    scaled: bool = False
    confounding: float = 1.0
    residual_sd: float = RESIDUAL_SD
    tails: float = 0.0
    bent: bool = True
    skewed: bool = False
    second_share: float = 0.5
    hourly: tuple[tuple[int, tuple[Column, ...]], ...] = ()
    accept_coarse_cells: bool = False

    def __post_init__(self):
        check.non_negative(confounding=self.confounding)
        if self.tails:
            check.in_range(2.0, math.inf, tails=self.tails)
        check.positive(residual_sd=self.residual_sd)

    @classmethod
    def of_schema(cls, schema, x: str, y: str, given=(), **fields) -> "Setting":
        """The setting of a question about columns of a `jaxdp.Schema`; reads no data."""
        (x,), (y,), given = schema.named("x", [x]), schema.named("y", [y]), schema.named("given", given)
        schema = schema.conditioned_on(given)
        names = [x, y, *given]
        if len(set(names)) < len(names):
            raise ValueError(f"every column is named once among x, y and given, got {', '.join(names)}.")
        first, second = (schema.rule(name).code_column()[0] for name in (x, y))
        # without names, so that columns of one kind are one setting, which is planned for once
        first, second = (dataclasses.replace(column, name="") for column in (first, second))
        least = conditioning.hourly_from(map(schema.rule, given))
        sizes = [] if least is None else [conditioning.records_for(parts, least) for parts in conditioning.PARTS]
        hourly = tuple((n, _given(schema.hour_by_hour(given, n), given)) for n in sizes)
        return cls(x=first, y=second, z=_given(schema, given), scaled=True, hourly=hourly, **fields)

    def of_records(self, n: int) -> "Setting":
        """The setting as the default test for n records has it."""
        return self.hour_by_hour(n) if self.hourly and n >= self.hourly[0][0] else self

    def hour_by_hour(self, n: int) -> "Setting":
        """The setting with dates with times conditioned on by their day and the part of an hour."""
        if not self.hourly:
            return self
        fitting = [z for least, z in self.hourly if least <= n] or [self.hourly[0][1]]
        return dataclasses.replace(self, z=fitting[-1], hourly=())

    @classmethod
    def of_fields(cls, **fields) -> "Setting":
        """Without a schema, of tests with a setting of their own."""
        return cls(**fields)

    def departures(self) -> tuple[tuple[str, str, "Setting"], ...]:
        """(name, words, setting) of data that are not as planned; none without continuous x or y."""
        if not self.scaled or (self.x.levels and self.y.levels):
            return ()
        changed = [
            ("heavy tails", f"residuals have heavy tails (t, {HEAVY:g} df)", dataclasses.replace(self, tails=HEAVY)),
            (
                "half the residual scale",
                "residuals have half the planned sd",
                dataclasses.replace(self, residual_sd=0.5 * self.residual_sd),
            ),
        ]
        if self.z:
            one, three = (dataclasses.replace(self, confounding=sds) for sds in (1.0, 3.0))
            changed.append(("means of one sd", "Z moves the means by one sd", one))
            changed.append(("means of three sds", "Z moves the means by three sds", three))
        else:
            skewed = "values are skewed and begin at the lower bound (exponential)"
            changed.append(("skewed values", skewed, dataclasses.replace(self, skewed=True)))
            if 2 in (self.x.levels, self.y.levels):
                few = dataclasses.replace(self, second_share=FEW)
                changed.append(("a small group", "one group has a fifth of the records", few))
        return tuple(changed)

    @classmethod
    def table(cls, rows: int = 2, columns: int = 2) -> "Setting":
        """Two columns with levels and no Z."""
        check.at_least(2, rows=rows, columns=columns)
        return cls(x=Column(CATEGORICAL, rows), y=Column(CATEGORICAL, columns), z=(), scaled=True)

    @property
    def discrete(self) -> bool:
        """Whether x and y both have levels."""
        return self.x.levels > 1 and self.y.levels > 1

    @property
    def indicators(self) -> bool:
        """Whether x or y is unordered with more than two levels, so that a line cannot hold it."""
        return self.x.unordered or self.y.unordered

    def design(self, n: int, effect, form: str = SCALED):
        """A function key -> Data for `jaxdp.power`; effect is a number of the program, not compiled in."""
        effect = float(effect)
        if not self.scaled:
            return functools.partial(sine_confounder, n=n, effect=effect, complexity=CLASSIC_COMPLEXITY)
        maker = case_control if form == GROUPS else columns
        return functools.partial(maker, n=n, setting=self, form=form, effect=effect)

    def domain(self, form: str = SCALED) -> Domain:
        """Public description of the columns in the form that a test takes."""
        if form != SCALED:
            return Domain((self.x,), (self.y,), self.z)
        return Domain(_scaled_columns(self.x), _scaled_columns(self.y), self.z)

    def profile(self):
        """Means of X and Y (in residual sds) at places of equal probability of Z, and Z's density over that of the law
        whose quantiles cut the cells; numpy arrays (`NODES`,), or (`CLASSIC_NODES`,) without a schema."""
        nodes = NODES if self.scaled else CLASSIC_NODES
        place = (np.arange(nodes) + 0.5) / nodes
        if self.scaled:
            levels = self.z[0].levels if self.z else 0
            place = (np.floor(place * levels) + 0.5) / levels if levels > 1 else place
            mean = self.mean_at(place, np) if self.z else 0.0 * place
            return mean, -mean, np.ones(nodes)
        from scipy.special import ndtri

        z = CLASSIC_Z_SD * ndtri(place)
        density = np.exp(-0.5 * (z / CLASSIC_Z_SD) ** 2) / (CLASSIC_Z_SD * math.sqrt(2.0 * math.pi))
        bend = np.exp(-0.5 * z**2) * np.sin(CLASSIC_COMPLEXITY * z)
        return bend, -bend, density * math.pi * (1.0 + z**2)

    def mean_at(self, place, numpy):
        """The mean of X (in residual sds) at places in [0, 1] of Z; that of Y is its negative. numpy: it or JAX's."""
        across = 2.0 * place - 1.0
        return self.confounding * (numpy.sin(math.pi * across) if self.bent else math.sqrt(1.5) * across)

    def cell_of_places(self, n: int) -> np.ndarray:
        """The cell of the first column of Z that each place of `profile` lies in."""
        nodes = NODES if self.scaled else CLASSIC_NODES
        place = (np.arange(nodes) + 0.5) / nodes
        if not self.z:
            return np.zeros(nodes, int)
        bins = partition.bins_per_column(self.z, partition.target_cells(n))[0]
        if not self.scaled:
            from scipy.special import ndtri

            place = 0.5 + np.arctan(CLASSIC_Z_SD * ndtri(place)) / math.pi
        return np.minimum((place * bins).astype(int), bins - 1)

    def effect_is(self, effect: float) -> str:
        """The unit of an effect and what this one amounts to, as a sentence without its full stop."""
        told = "the change of Y's mean, in residual sds, per " + ("residual sd of X, given Z" if self.z else "sd of X")
        told += f" (not in units of the columns): {effect:.3g} is a correlation of {float(correlation(effect)):.2g}"
        if self.x.levels == 2 and not self.y.levels:
            told += (
                f", or means of Y that differ by {2.0 * MEAN_OF_HALF * effect:.2g} sds between two groups of equal size"
            )
        few, many = sorted((self.x.levels, self.y.levels))
        if few < 2 < many <= MAX_GROUPS and not self.z:
            groups = "X" if self.x.levels == many else "Y"
            told += (
                f", or a chance of {average_chance(effect, many):.2g} that a value of one of the {many} groups of "
                f"{groups} lies above one of the other groups, or below where that is likelier, on average"
            )
        return told

    def hidden_sds(self, effect: float) -> tuple[float, float]:
        """Sds of the variables behind x and y, from which levels are cut; means of height c have variance c^2/2."""
        spread = 0.5 * self.confounding**2 if self.z else 0.0
        return math.sqrt(1.0 + spread), math.sqrt(1.0 + effect**2 + spread)

    @property
    def of_equal_groups(self) -> float:
        """Difference of the means of a normal variable above and below its median, over that about the cut of
        `second_share`; 1 without two levels."""
        if 2 not in (self.x.levels, self.y.levels) or self.second_share == 0.5:
            return 1.0
        from scipy.special import ndtri

        height = math.exp(-0.5 * float(ndtri(self.second_share)) ** 2) / math.sqrt(2.0 * math.pi)
        return 2.0 * MEAN_OF_HALF * self.second_share * (1.0 - self.second_share) / height

    def num_cells(self, n: int) -> int:
        """Public cells of Z by the default of the tests, max(4, n/8)."""
        return math.prod(partition.bins_per_column(self.z, partition.target_cells(n))) if self.z else 1


def _given(schema, given) -> tuple[Column, ...]:
    """What columns of a schema that are conditioned on stand for, without names."""
    found = [column for name in given for column in conditioning.columns(schema.rule(name))]
    return tuple(dataclasses.replace(column, name="") for column in found)


def _scaled_columns(column: Column) -> tuple[Column, ...]:
    if column.unordered:
        return (Column(CONTINUOUS, 2),) * column.levels
    return (Column(CONTINUOUS, column.levels, from_zero=column.from_zero),)


def correlation(effect):
    """Correlation of the two own parts, effect/sqrt(1 + effect^2)."""
    return effect / np.sqrt(1.0 + np.square(effect))


def average_chance(effect: float, groups: int) -> float:
    """What `kruskal-wallis` estimates of more than two groups, that are equal cuts of the variable behind a column."""
    from scipy.special import ndtr, ndtri

    each = NODES_OF_GROUPS // groups
    nodes = ndtri((np.arange(groups * each) + 0.5) / (groups * each)).reshape(groups, each)
    above = ndtr(effect * (nodes[:, None, :, None] - nodes[None, :, None, :]) / math.sqrt(2.0)).mean(axis=(2, 3))
    # among themselves the values of a group are above each other with chance 1/2
    return float(0.5 + np.mean(np.abs(np.sum(above - 0.5, axis=1))) / (groups - 1.0))


def rates(effect) -> tuple[float, float]:
    """P(x = 1) among cases and among controls."""
    half = math.asin(float(correlation(effect))) / math.pi
    return 0.5 + half, 0.5 - half


def columns(key, *, n: int, setting: Setting, form: str, effect) -> Data:
    """Records of a scaled setting: x, y (n,) or indicators (n, L), z (n, d) or None."""
    key_x, key_y, *keys_z = jax.random.split(key, 2 + len(setting.z))
    places = [jax.random.uniform(k, (n,)) for k in keys_z]
    sides = (key_x, setting.x), (key_y, setting.y)
    noise = [_residuals(k, n, setting.tails, setting.skewed and column.levels < 2) for k, column in sides]
    return made_of(places, *noise, setting=setting, form=form, effect=effect)


def made_of(places, noise_x, noise_y, *, setting: Setting, form: str, effect) -> Data:
    """`columns` of what was drawn: places in [0, 1] of each column of Z, standard residuals of X and Y, each (n,)."""
    # whole steps as the schema declares them: tests that compare equal values only would find none otherwise
    places = [_on_steps(u, column.values or column.days) for u, column in zip(places, setting.z, strict=True)]
    bins = [c.levels if c.levels > 1 else 0 for c in setting.z]
    codes = [jnp.floor(u * levels) if levels else 2.0 * u - 1.0 for u, levels in zip(places, bins, strict=True)]
    codes = with_repeats(codes, setting.z)
    mean = jnp.zeros(len(noise_x))
    if setting.z:
        first = (codes[0] + 0.5) / bins[0] if bins[0] else places[0]
        mean = setting.mean_at(first, jnp)
    effect = effect * setting.of_equal_groups
    x = _observed(mean + noise_x, setting.x, setting, form, 1.0)
    y = _observed(-mean + noise_y + effect * noise_x, setting.y, setting, form, jnp.sqrt(1.0 + effect**2))
    return Data(x, y, jnp.stack(codes, axis=1) if codes else None, domain=setting.domain(form))


def _on_steps(place, values: int):
    """Places in [0, 1] of a column that takes so many values, equally far from one another; 0 or 1: any value."""
    if values < 2:
        return place
    return jnp.minimum(jnp.floor(place * values), values - 1.0) / (values - 1.0)


def _residuals(key, n: int, tails: float, skewed: bool):
    """Standard residuals (n,): normal, Student's t or exponential, of mean 0 and sd 1."""
    if skewed:
        return jax.random.exponential(key, (n,)) - 1.0
    if not tails:
        return jax.random.normal(key, (n,))
    return jax.random.t(key, tails, (n,)) * math.sqrt((tails - 2.0) / tails)


def _observed(values, column: Column, setting: Setting, form: str, sd):
    """A hidden variable of residual sd `sd` as the test reads the column."""
    if column.levels < 2:
        lowest = setting.residual_sd - 1.0 if setting.skewed else 0.0
        return jnp.clip(lowest + setting.residual_sd * values, -1.0, 1.0)
    # equally likely on average: half of confounding^2 is the variance of its sine wave
    spread = jnp.sqrt(sd**2 + (0.5 * setting.confounding**2 if setting.z else 0.0))
    place = jax.scipy.stats.norm.cdf(values / spread)
    place = place + 0.5 - (1.0 - setting.second_share) if column.levels == 2 else place
    code = jnp.clip(jnp.floor(column.levels * place), 0, column.levels - 1)
    if form != SCALED:
        return code
    if column.unordered:
        return jnp.where(code[:, None] == jnp.arange(column.levels)[None, :], 1.0, -1.0)
    return equally_spaced(code, column.levels)


def case_control(key, *, n: int, setting: Setting, form: str, effect) -> Data:
    """Public groups of equal size (the cases first), a private x in {0, 1} for each person."""
    half = jnp.arcsin(effect / jnp.sqrt(1.0 + effect**2)) / jnp.pi
    case = np.arange(n) < n // 2
    chance = 0.5 + jnp.where(case, half, -half)
    x = (jax.random.uniform(key, (n,)) < chance).astype(float)
    return Data(x, case.astype(np.float32), domain=setting.domain(form))
