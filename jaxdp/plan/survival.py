"""Planning of times to an event: groups with exponential times; power of `log-rank` with privacy and without.

h, c = hazards of the event in the first group and of being lost, in units of the grid's length; K groups.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.data import conditioning
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.independence.survival.log_rank import OF_TIME, PAIR, LogRank
from jaxdp.plan import laws
from jaxdp.plan.setting import Setting
from jaxdp.statistics import log_rank

DRAWS, BATCH, SEED = 2000, 250, 20_233


@dataclasses.dataclass(frozen=True)
class SurvivalSetting(Setting):
    """Groups and times to an event on a grid of length 1; the effect is the log hazard ratio of the second group.

    Of more groups it is that of the last one, and the others lie on a line between it and the first. z: columns of
    levels, whose joint levels are strata of one size and one law. share: of all groups but the first, which divide it
    equally; by default all groups are equal. events: share of the first group whose event is seen. lost: share of the
    first group that is lost before its event and the end of the grid, at the same rate in all groups.
    """

    x: Column = Column(BINARY, 2)
    y: Column = Column(BINARY, 2)
    z: tuple[Column, ...] = ()
    scaled: bool = True
    share: float | None = None
    events: float = 0.5
    lost: float = 0.1

    def __post_init__(self):
        super().__post_init__()
        check.in_range(0.0, 1.0, share=self.others)
        check.in_range(0.0, 1.0, events=self.events)
        check.non_negative(lost=self.lost)
        if self.events + self.lost >= 1.0:
            raise ValueError(f"events + lost must be < 1, got {self.events:g} + {self.lost:g}.")

    @classmethod
    def of_schema(cls, schema, x: str, y: str, given=(), **fields) -> Setting:
        """The setting of an outcome of a `jaxdp.Schema`; that of `Setting` for any other column."""
        if y not in schema.outcomes:
            return Setting.of_schema(schema, x, y, given, **fields)
        (column,) = schema.rule(*schema.named("x", [x])).code_column()
        rest = [one for name in schema.named("given", given) for one in conditioning.columns(schema.rule(name))]
        group, *strata = (dataclasses.replace(one, name="") for one in (column, *rest))
        return cls(x=group, z=tuple(strata), **fields)

    def domain(self, form: str = "") -> Domain:
        """The group; a time and whether its event came, in every form."""
        return Domain((self.x,), (Column(), Column(BINARY, 2, event=True)), self.z)

    def effect_is(self, effect: float) -> str:
        """The unit of an effect and what this one amounts to, as a sentence without its full stop."""
        one = "second" if self.groups == PAIR else "last"
        line = "" if self.groups == PAIR else ", and the groups between lie on a line"
        return f"log hazard ratio of the {one} group: {effect:.3g} is a hazard ratio of {math.exp(effect):.3g}{line}"

    def design(self, n: int, effect, form: str = ""):
        """A function key -> Data."""
        return functools.partial(times, n=n, setting=self, effect=float(effect))

    @property
    def groups(self) -> int:
        """K."""
        return max(self.x.levels, PAIR)

    @property
    def others(self) -> float:
        """Share of all groups but the first."""
        return 1.0 - 1.0 / self.groups if self.share is None else self.share

    @property
    def shares(self) -> np.ndarray:
        """Of all groups, (K,)."""
        later = self.groups - 1
        return np.array([1.0 - self.others, *[self.others / later] * later])

    def ratios(self, effect) -> np.ndarray:
        """Log hazard ratios of all groups against the first, (K,)."""
        return effect * np.arange(self.groups) / (self.groups - 1)

    @property
    def rates(self) -> tuple[float, float]:
        """h and c."""
        gone = self.events + self.lost
        whole = -math.log1p(-gone)
        return whole * self.events / gone, whole * self.lost / gone

    def cells(self, effect: float) -> np.ndarray:
        """Probabilities of stratum x group x bin x event, (S, K, BINS + 1, 2)."""
        event, lost = self.rates
        ends = log_rank.ends(log_rank.BINS)
        found = np.zeros((self.groups, *OF_TIME))
        for group, (share, rate) in enumerate(zip(self.shares, event * np.exp(self.ratios(effect)), strict=True)):
            left = share * np.exp(-(rate + lost) * ends)
            gone = -np.diff(left)
            found[group, :-1, 0], found[group, :-1, 1] = (gone * one / (rate + lost) for one in (lost, rate))
            found[group, -1, 0] = left[-1]
        strata = math.prod(column.levels for column in self.z)
        return np.repeat(found[None] / strata, strata, axis=0)

    def seen(self, effect: float) -> float:
        """Share of all records whose event is seen."""
        return float(self.cells(effect)[..., 1].sum())


def times(key, *, n: int, setting: SurvivalSetting, effect) -> Data:
    """Records of the setting."""
    key_group, key_event, key_lost = jax.random.split(key, 3)
    rate, lost = setting.rates
    later = setting.groups - 1
    least = setting.others * (later - np.arange(later)) / later  # below which a record is in this later group or beyond
    group = jnp.sum(jax.random.uniform(key_group, (n, 1)) < least[None], axis=1)
    event = jax.random.exponential(key_event, (n,)) / (rate * jnp.exp(effect * group / later))
    end = jnp.minimum(jax.random.exponential(key_lost, (n,)) / max(lost, 1e-12), 1.0)
    time = 2.0 * jnp.minimum(event, end) - 1.0
    keys = jax.random.split(jax.random.fold_in(key, 1), max(len(setting.z), 1))
    z = [1.0 * jax.random.randint(one, (n,), 0, column.levels) for one, column in zip(keys, setting.z, strict=False)]
    y = jnp.stack([time, 1.0 * (event <= end)], axis=1)
    return Data(1.0 * group, y, jnp.stack(z, axis=1) if z else None, setting.domain())


def released(test, key, table, num_records):
    """The last stage and its release of a simulated run of `LogRank`, which reads its table alone."""

    def noisy(query, key, value):
        return laws.released(query, query.sensitivity(num_records), key, value, num_records)

    of_counts, of_scores = jax.random.split(key)
    first = noisy(test.first, of_counts, log_rank.blocked(table, test.second.blocks))
    second = test.then(test.second, test.first, first)
    return second, noisy(second, of_scores, second.finish(table))


@jax.jit
def _p_values(test, key, tables, num_records):
    def one(both):
        key, table = both
        second, last = released(test, key, table, num_records)
        return second.p_value(None, last)

    return jax.lax.map(one, (jax.random.split(key, len(tables)), tables), batch_size=BATCH)


def log_rank_power(setting: Setting, n: int, epsilon: float | laws.Concentrated, effect: float, level: float) -> float:
    """`LogRank` on `DRAWS` tables of the setting's law, whose draws are the same at every n, budget and effect."""
    assert isinstance(setting, SurvivalSetting)
    test = LogRank(**laws.budget(epsilon))
    counts = np.random.default_rng(SEED).multinomial(n, setting.cells(effect).ravel(), size=DRAWS)
    with jax.enable_x64(True):
        x, y, z = (jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((n,), (n, 2), (n, len(setting.z))))
        try:
            asked = test.specialize(Data(x, y, z if setting.z else None, setting.domain()))
        except ValueError:  # refused: strata too small for this budget
            return 0.0
        tables = jnp.asarray(counts.reshape(DRAWS, *asked.second.shape), float)
        return float(np.mean(_p_values(asked, jax.random.key(SEED), tables, float(n)) < level))


def plain_log_rank_power(setting: Setting, n: int, epsilon: float, effect: float, level: float) -> float:
    """The log-rank test without privacy, by its events (Schoenfeld 1981). epsilon is not used."""
    from scipy.stats import chi2, ncx2

    assert isinstance(setting, SurvivalSetting)
    shares, ratios = setting.shares, setting.ratios(effect)
    spread = shares @ ratios**2 - (shares @ ratios) ** 2  # of two groups effect^2 share (1 - share)
    events = n * setting.seen(effect)
    if setting.groups > PAIR:
        freedom = setting.groups - 1
        return float(ncx2.sf(chi2.isf(level, freedom), freedom, max(events * spread, 1e-9)))
    return laws.two_sided_power(math.sqrt(events * spread), level)
