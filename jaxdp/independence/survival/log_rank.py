"""Log-rank: do the events of one group come sooner than those of others? With log hazard ratios and their intervals.

Theory: docs/theory/log_rank.md. Symbols: `statistics/log_rank.py`; U the sum of the scores L, V that of their squares.
What the release says about more than two groups: `several_groups.py`.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.bisection import bisected
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.kept_programs import kept_jit
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, PrivateQuery, PrivateTest, Relation, Sensitivity, Sequential, answered
from jaxdp.data.dataset import CONTINUOUS, Column, Domain
from jaxdp.independence import effect_sizes, noise_law
from jaxdp.independence.continuous import score_law, validity
from jaxdp.independence.survival import kaplan_meier, several_groups
from jaxdp.independence.survival.several_groups import SeveralGroups
from jaxdp.independence.tables.noisy_table import MOVE
from jaxdp.mechanisms import Laplace, divide
from jaxdp.randomness import keys
from jaxdp.results import bare
from jaxdp.spec import Columns, Planning, TestSpec, are_times
from jaxdp.statistics import log_rank, sums
from jaxdp.statistics.log_rank import BINS, Curves
from jaxdp.statistics.tables import contingency

# of the budget, for the counts of blocks: of one stratum, of several (docs/theory/log_rank.md#shares)
CURVES_SHARE, OF_STRATA = Fraction(3, 10), Fraction(1, 2)
SHARES = {"scores": Fraction(6, 7), "squares": Fraction(1, 7)}  # of the rest
CURVES, SCORES = "curves", "scores"  # what is released next
MIN_BLOCKS, PER_BLOCK = 6, 1.4  # blocks; J^2 is this times records per noise sd of a count
OF_TIME = (BINS + 1, 2)  # bin, event
PAIR = 2  # groups
MAX_GROUPS = 8  # as many as were measured
MAX_STRATA = 16  # as many as were measured
# of two groups in an average stratum, in sds of the noise of a count (docs/theory/log_rank.md#strata, #groups)
MIN_RECORDS = 10.0
LIMIT = 3.0  # of the log hazard ratio: one of 20
CLEAR = 3.0  # sds of the noise in the information, below which nothing is said about the hazard ratio
# information in noise sds, and how far a bound of it lies where more than `CLEAR` is known beforehand, in times of one
# where it is not (docs/theory/log_rank.md#selection)
SEEN = (3.1, 3.25, 3.5, 3.75, 4.0, 4.25, 4.5, 5.0, 5.5, 6.0, 7.0)
BOUNDED = (18.83, 7.558, 3.824, 2.601, 2.006, 1.665, 1.449, 1.209, 1.095, 1.04, 1.0)
TWO_SIDED = 1.96
OVERSTATED = 1.25  # times the noise of shares at a ratio, whose sd is that at released shares (#selection)
MAX_SPREAD = 2.0  # times V at most, of the variance of U at a ratio
UNIT_ROUNDOFF = 2.0**-53
FEW_EVENTS, ADJUSTED, CROWDED, FOLLOW_UP = "few events", "adjusted", "crowded times", "follow-up"
SEPARATE, FEW_IN_GROUPS = "separate intervals", "few events in groups"
SENTENCES = {
    FEW_EVENTS: "By the noisy counts there are too few events, or records in one group, for this epsilon: there is no "
    "interval, and a p-value that is not small says little. More records with an event or a larger epsilon would help.",
    SEPARATE: "Each interval compares one group with the first by itself, and the p-value is about all groups "
    "together: it may be small though every interval holds 0, and may not be though one leaves 0 out. For a p-value "
    "and an interval that agree, ask about two levels.",
    FEW_IN_GROUPS: "By the noisy counts some groups have too few events, or records, for this epsilon: they are "
    "compared in the p-value, and have no interval.",
    ADJUSTED: "There are no survival curves and no restricted means, since those of whole groups would not be adjusted "
    "for Z: ask without it, or about one of its levels.",
    FOLLOW_UP: "There is no interval of the hazard ratio: as far as this epsilon shows it, one group leaves "
    "almost at once while another is followed on. Set the upper bound of the time to the end of the shortest "
    "follow-up. The p-value needs no such thing.",
    CROWDED: "A large part of the records leaves within one of the intervals into which the bounds of the time "
    "are cut, as far as this epsilon shows it. {allows} what may change within it, which hides effects: bounds nearer "
    "to the times, the upper one at the end of follow-up, or more epsilon would sharpen {what}.",
}


def refusal(domain: Domain) -> str:
    """Why these columns are not groups and times to an event, with the way out; "" where they are."""
    numbers = [column.name or "Z" for column in domain.z if not column.levels]
    if numbers:
        return f"log-rank adjusts for columns of levels: cut {numbers[0]} at public values into levels, or leave it out"
    strata = math.prod(column.levels for column in domain.z)
    if strata > MAX_STRATA:
        return (
            f"log-rank takes at most {MAX_STRATA} strata, and the levels of Z make {strata} together: condition on "
            "fewer columns, or merge levels"
        )
    wanted = f"log-rank compares groups: X must be one column of {PAIR} to {MAX_GROUPS} levels, and"
    if len(domain.x) != 1:
        return f"{wanted} there are more columns; name one"
    (group,) = domain.x
    if not group.levels:
        return f"{wanted} {group.name or 'x'} is continuous: cut it at public values into levels"
    if not PAIR <= group.levels <= MAX_GROUPS:
        return f"{wanted} {group.name or 'x'} has {group.levels}; name or merge levels"
    events = [column for column in domain.y if column.levels]
    if len(domain.y) != 2 or len(events) != 1:
        return (
            "log-rank takes two columns as Y: a continuous one of times and one of two levels, whether the event came"
        )
    numbers = [column.name or "a column" for column in (group, events[0]) if column.kind == CONTINUOUS]
    if numbers:
        return f"log-rank takes groups and events as codes, and {numbers[0]} was read as numbers: read with codes=True"
    if events[0].levels != 2:
        return (
            f"log-rank takes an event that came or did not, and {events[0].name or 'the event column'} has "
            f"{events[0].levels} levels: name two, the second of which is the event"
        )
    (time,) = [column for column in domain.y if not column.levels]
    if _steps(time) == 2:
        return (
            f"log-rank takes times of two steps and more below their upper bound, and {time.name or 'the time'} has "
            "one: ask about the event as a column of two levels, or give further bounds"
        )
    return ""


def time_and_event(shapes) -> tuple[int, int]:
    """Places of both columns in y."""
    return (0, 1) if shapes.domain is None or not shapes.domain.y[0].levels else (1, 0)


def describe_effect(test, x, y, interval) -> str:
    """Which group is compared with which, and what the event is."""
    (event,) = [rule for rule in y if not rule.is_continuous]
    first, second, came = map(str, (*x[0].levels, event.levels[1]))
    told = f" of {event.name} = {came}, {x[0].name} = {second} against {first} given Z"
    return told + effect_sizes.describe_ratio("hazard ratio", interval, LIMIT)


def blocks_for(noise_sd, num_records: int) -> int:
    """J, public: more where the noise in a count is smaller; a divisor of `BINS`."""
    wanted = math.sqrt(PER_BLOCK * num_records / max(noise_sd, 1e-9))
    divisors = [count for count in range(MIN_BLOCKS, BINS // 2 + 1) if BINS % count == 0]
    return max(count for count in divisors if count <= max(wanted, MIN_BLOCKS))


@frozen_pytree
class EventCounts(PrivateQuery):
    """Counts of group x block x {event, censored}, and of those at the end of the grid.

    Sensitivity: a replaced record leaves a count and enters one: 2 in L1, sqrt(2) in L2.
    """

    of: Any = None  # the test, which knows the columns and the blocks

    method: ClassVar[str] = "EventCounts"

    def mechanism_in_force(self):
        return self.mechanism

    def statistic(self, key, data):
        """(S, K, 2 J + 1)."""
        return log_rank.blocked(self.of.table(data).astype(float), self.of.blocks)

    def partial(self, chunk, num_records=None):
        return self.of.partial(chunk, num_records)

    def finish(self, totals):
        return log_rank.blocked(jnp.asarray(totals, float), self.of.blocks)

    def sensitivity(self, num_records):
        norm = self.mechanism.norm
        bare = Sensitivity(MOVE[norm], norm, Relation.REPLACE_ONE)
        room = noise_law.margin(self.mechanism, bare)
        return dataclasses.replace(bare, lower=-room, upper=num_records + room)


def _with_curves(test, query, released):
    variance = query.mechanism.variance(released.sensitivity)
    counts = jnp.asarray(released.value, float)
    step = jnp.asarray(log_rank.step_lengths(test.blocks, test.steps))
    return dataclasses.replace(test, curves=_curves(counts, released.num_records, variance, step))


_curves = kept_jit(Curves.of)  # one program: between two stages of a release nothing is traced


@frozen_pytree
class LogRank(PrivateTest):
    """Private log-rank test of times to an event, censored or not, in two or more groups, with log hazard ratios.

    x: the group, 2 to 8 levels. y: two columns, a time on [-1, 1] and an event of two levels, the second of which is
    the event; a time at the upper bound counts as censored there, whatever its event says. z: None, or columns of
    levels, whose joint levels are the strata: the stratified test, records are compared within a stratum alone.
    30 % of the budget (half of it with strata) releases counts of stratum x group x block of the time x {event,
    censored}. They give hazards and shares at risk of each stratum, about which every record has a score; then U, the
    sum of the scores, and V, that of their squares, are released with six sevenths and one of the rest. If either curve
    were exact, U would be the log-rank numerator O - E, each stratum weighted by what its noise leaves of it. Of more
    than two groups, U has a number for each.
    Sensitivity, replace-one: counts 2 in L1, sqrt(2) in L2; U the range of the scores (of several groups the largest
    distance of two of them, in L1 or L2) and V that of their squares, which are public once the counts are released: 1
    each in units of it (docs/theory/log_rank.md#sensitivity, #groups).
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition.
    P-value: of U as a normal sum plus its noise, errors of both curves and of V counted; of several groups that of its
    squared length in units of all that. It assumes censoring that says
    nothing about the event to come (it may differ between the groups), and hazards that are not far from a constant
    within a block (docs/theory/log_rank.md#level).
    effect: log hazard ratio of the second group against the first, one for all strata, with an interval of 95 %, which
    leaves out 0 exactly where p < 0.05; for proportional hazards. Of K groups K - 1 of them, (K - 1, 1), each against
    the first group and with an interval of its own.
    Grid: bins of equal width in the root of the time since its lower bound, in its logarithm with scale = "log". Of a
    time that takes whole steps, blocks are made of these, and p-value and interval hold whether records that are
    censored in a step leave in its middle or at its end (docs/theory/log_rank.md#steps).
    Errors: ValueError for other columns, and for strata or several groups too small for the budget, before anything is
    paid.

    blocks: of the time, by default by a public rule of n and the budget. groups, strata: levels of x, and of each
    column of z, from the data's domain. even: bins of equal width, of a time that is scaled by its logarithm. steps:
    values of a time that takes whole steps, else 0. curves, stage, time: set by the stages.
    """

    blocks: int | None = jax.tree.static(default=None)
    curves: Any = None
    stage: str = jax.tree.static(default=CURVES)
    time: int = jax.tree.static(default=0)
    groups: int = jax.tree.static(default=PAIR)
    strata: tuple[int, ...] = jax.tree.static(default=())
    even: bool = jax.tree.static(default=False)
    steps: int = jax.tree.static(default=0)

    uses_z: ClassVar[bool] = True

    spec: ClassVar[TestSpec] = TestSpec(
        name="log-rank",
        summary="log-rank test of groups, also given coded Z; Y is two columns, a time and whether the event came",
        known_as=(
            "logrank_test",
            "multivariate_logrank_test",
            "survdiff",
            "mantel-cox",
            "stratified-log-rank",
            "cox",
            "coxph",
            "proportional-hazards",
        ),
        columns=Columns.CODES,
        assumption="When a record is censored says nothing about when its event would have come; hazards change little "
        "within a block of the time. Where times coincide since they are recorded in steps, the schema has to say so "
        "(step).",
        alternatives="events that come sooner in one group than in another throughout",
        effect="log hazard ratio",
        together=False,
        describe_effect=describe_effect,
        accepts=lambda domain: not refusal(domain),
        why_not=refusal,
        one_effect=lambda domain: not refusal(domain) and domain.x[0].levels == PAIR,
        rank=lambda domain: 4 * (not refusal(domain) and are_times(domain)),
        of_times=True,
        planning=Planning(
            "survival:log_rank_power",
            gaussian_formula="always",
            setting="survival:SurvivalSetting",
            reference="survival:plain_log_rank_power",
        ),
        theory="docs/theory/log_rank.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.blocks is not None:
            check.one_of([count for count in range(2, BINS + 1) if BINS % count == 0], blocks=self.blocks)

    def mechanism_in_force(self):
        whole = Laplace(check.budget(self.epsilon)) if self.mechanism is None else self.mechanism
        return divide(whole, SHARES) if self.stage == SCORES else whole

    def validity(self, data):
        """Run: what it rests on, no public number decides."""
        return validity.Validity(validity.RUN, self.spec.assumption)

    def specialize(self, shapes):
        """The counts, then the scores."""
        if self.stage == SCORES:
            return self
        domain = shapes.domain or _assumed(shapes)
        refused = refusal(domain)
        if refused:
            raise ValueError(f"{refused}.")
        whole = self.mechanism_in_force()
        strata = tuple(column.levels for column in domain.z)
        share = OF_STRATA if math.prod(strata) > 1 else CURVES_SHARE
        first = whole.share(share)
        place, groups = time_and_event(shapes)[0], domain.x[0].levels
        steps = _steps(domain.y[place])
        blocks = self.blocks or _blocks(first, shapes.x.shape[0], math.prod(strata), groups)
        scores = dataclasses.replace(
            self,
            epsilon=None,
            mechanism=whole.share(1 - share),
            blocks=_fewer(blocks, steps - 1) if steps else blocks,
            stage=SCORES,
            time=place,
            groups=groups,
            strata=strata,
            even=domain.y[place].logarithmic,
            steps=steps,
        )
        return Sequential(first=EventCounts(mechanism=first, of=scores), second=scores, then=_with_curves)

    # Private

    def _columns(self, data):
        x, z = data.x.reshape(-1), data.z
        strata = [] if z is None else [z.reshape(len(x), -1)[:, place] for place in range(len(self.strata))]
        grid = self.even, self.blocks or 0, self.steps
        return (*strata, x, *log_rank.codes(data.y[:, self.time], data.y[:, 1 - self.time], *grid))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table: stratum, group, bin, event."""
        return math.prod(self.strata), self.groups, *OF_TIME

    def table(self, data):
        """Stratum x group x bin x event."""
        return contingency.table(self._columns(data), (*self.strata, *self.shape[1:])).reshape(self.shape)

    def statistic(self, key, data):
        """{"scores": U, "squares": V}, in units of their ranges."""
        return self._scored(self.table(data).astype(float))

    def partial(self, chunk, num_records=None):
        """The table of a chunk."""
        columns = [np.asarray(part) for part in self._columns(jax.tree.map(np.asarray, chunk))]
        return sums.table(columns, (*self.strata, *self.shape[1:])).reshape(self.shape)

    def finish(self, totals):
        return self._scored(jnp.asarray(totals, float))

    def _scored(self, table):
        scores, (wide, most) = self.curves.scores(), self._ranges()
        found = jnp.einsum("skbe,skbec->c", table, scores)
        return {
            "scores": (found[0] if self.groups == PAIR else found) / wide,
            "squares": jnp.sum(table * self.curves.squares()) / most,
        }

    def _ranges(self):
        """(D, that of the squares): what a unit of either released sum is."""
        scores, squares = self.curves.scores(), self.curves.squares()
        if self.groups == PAIR:
            wide = jnp.max(scores) - jnp.min(scores)
        else:
            wide = several_groups.widest(scores, self.mechanism_in_force()["scores"].norm)
        return wide, jnp.max(squares) - jnp.min(squares)

    def sensitivity(self, num_records):
        numbers = math.prod(self.shape) * (1 if self.groups == PAIR else self.groups)
        error = 4.0 * numbers * num_records * UNIT_ROUNDOFF  # scores are at most D in size
        return score_law.sensitivity(self.mechanism_in_force(), num_records, error)

    # What the release says

    def _law(self, release) -> _Law | SeveralGroups:
        wide, most = self._ranges()
        budget, noise = self.mechanism_in_force(), release.sensitivity
        variance = jnp.maximum(release.value["squares"], 0.0) * most
        about = {
            "curves": self.curves,
            "variance_noise": budget["squares"].variance(noise["squares"]) * most**2,
            "unit": wide,
            "mechanism": budget["scores"],
            "sensitivity": noise["scores"],
        }
        if self.groups > PAIR:
            return SeveralGroups.of(release.value["scores"] * wide, variance, **about)
        value = release.value["scores"] * wide - self.curves.mean[0]
        return _Law(value=value, variance=variance + self.curves.variance[0, 0] + 1e-9, **about)

    def interpret(self, key, release):
        """O - E: events of the second group less those expected of it; and the log hazard ratio with its interval.

        Of more groups the squared length of all their O - E, chi-squared but for the law of the noise. NaN where the
        release says nothing about a ratio.
        """
        law = self._law(release)
        if isinstance(law, SeveralGroups):
            return Interpretation(law.p_value(), law.length(), *law.effect())
        p_value = law.p_value(jnp.zeros(()))
        return Interpretation(p_value, law.value, *law.effect(p_value))

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """The log hazard ratio that would have been found with power 0.8, at this release's information.

        None of more than two groups, whose ratios are several.
        """
        law = self._law(release)
        return None if isinstance(law, SeveralGroups) else law.detectable(level)

    @effect_sizes.settled_program
    def one_sided(self, release, effect):
        """By the pivot of the interval; both 1 where there is none. effect: a log hazard ratio, of two groups."""
        law = self._law(release)
        return None if isinstance(law, SeveralGroups) else law.one_sided(effect)

    @bounded_jit  # run by itself, its loops would be compiled anew for every answer
    def _hidden(self, release):
        """Whether noise hides each ratio, whether a group leaves at once, whether times are crowded."""
        law = self._law(release)
        return law.unknown, law.departed, jnp.any(self.curves.crowded)

    def released_curves(self, shapes, release, x, y):
        """The Kaplan-Meier curve of each group with its band, from the counts; none of several strata."""
        counts, query = release.earlier[0], self.specialize(shapes).first
        if math.prod(query.of.strata) > 1:
            return {}
        with jax.enable_x64(True):
            ends = log_rank.ends(query.of.blocks, query.of.even, query.of.steps)
            alone, step = dataclasses.replace(query, of=None), log_rank.step_lengths(query.of.blocks, query.of.steps)
            found = kaplan_meier.estimated(alone, counts.sensitivity, counts.value[0], counts.num_records, ends, step)
        with keys.precision(release.mode):  # as in `run`, whose program gave the answer
            hazard = np.asarray(answered(self.settled(shapes, release), release).effect, float)
        return kaplan_meier.told(found, ends, x, y, float(hazard) if hazard.ndim == 0 else math.nan)

    def effect_notes(self, shapes, release):
        """Whether the events are too few or too close together, post-processing; why several strata have no curves."""
        with keys.precision(release.mode):  # as in `run`, whose program gave the intervals
            test = self.settled(shapes, release)
            interval = answered(test, release).interval
            unknown, departed, crowded = map(np.asarray, test._hidden(bare(release)))
        given = ~np.ravel(np.isnan(np.asarray(interval[0])))
        unknown = np.ravel(unknown) | ~(given | departed)
        holds = {FEW_EVENTS: unknown.all(), ADJUSTED: math.prod(test.strata) > 1}
        if test.groups > PAIR and given.any():
            holds |= {FEW_IN_GROUPS: unknown.any(), SEPARATE: True}
        holds |= {CROWDED: crowded, FOLLOW_UP: departed and not unknown.all()}
        both = ("The p-value and the interval allow for", "both") if given.any() else ("The p-value allows for", "it")
        told = dict(zip(("allows", "what"), both, strict=True))
        return {name: sentence.format(**told) for name, sentence in SENTENCES.items() if holds.get(name)}


def _assumed(shapes) -> Domain:
    """The columns where nobody described them."""
    x, y, z = (
        0 if part is None else part.shape[1] if len(part.shape) == 2 else 1 for part in (shapes.x, shapes.y, shapes.z)
    )
    levels = Column("binary", 2)
    return Domain((levels,) * x, (Column(), *(levels,) * (y - 1)), (Column(),) * z)


def _steps(time: Column) -> int:
    """How many values the steps of the time leave, where blocks are made of them; else 0."""
    return time.values if time.values > 1 and not time.logarithmic else 0


def _fewer(blocks: int, limit: int) -> int:
    """The largest divisor of `BINS` that is neither above `blocks` nor above the limit."""
    return max(count for count in range(1, min(blocks, limit) + 1) if BINS % count == 0)


def _blocks(mechanism, num_records: int, strata: int, groups: int) -> int:
    """`blocks_for` the noise of this mechanism, by its epsilon at 1 where that is not known yet.

    Errors: ValueError for strata and groups that are too small for this noise.
    """
    known = check.is_known(mechanism)
    mechanism = mechanism if known else Laplace(1.0 * float(CURVES_SHARE if strata == 1 else OF_STRATA))
    bound = Sensitivity(MOVE[mechanism.norm], mechanism.norm, Relation.REPLACE_ONE)
    with jax.enable_x64(True), jax.ensure_compile_time_eval():  # public numbers, also inside a compiled program
        noise_sd = float(np.sqrt(np.asarray(mechanism.variance(bound))))
    pairs = strata * groups / PAIR
    needed = math.ceil(MIN_RECORDS * noise_sd * pairs)
    if known and pairs > 1 and num_records < needed:
        fits = math.floor(num_records / (MIN_RECORDS * noise_sd) * PAIR / groups)
        way = f"condition on fewer levels (at most {fits} together)" if fits > 1 else "leave Z out"
        if groups > PAIR:
            way = f"compare or merge fewer groups{'' if strata == 1 else f', {way}'}"
        of_several = [f"{groups} groups"] * (groups > PAIR) + [f"{strata} strata"] * (strata > 1)
        raise ValueError(
            f"log-rank {'given' if groups == PAIR else 'of'} {' in '.join(of_several)} finds next to nothing in "
            f"{num_records} records at this budget, with which {needed} are needed: {way}, or give more epsilon."
        )
    return blocks_for(noise_sd, num_records // strata)


@dataclasses.dataclass(frozen=True)
class _Law:
    """U as released, with what it is about; all in events. unit: D."""

    curves: Curves
    value: Any
    variance: Any
    variance_noise: Any
    unit: Any
    mechanism: Any
    sensitivity: Any

    def p_value(self, ratio):
        """Two-sided, of this log hazard ratio."""
        off = self.value - self._expected(ratio)
        off = jnp.sign(off) * jnp.maximum(jnp.abs(off) - jnp.abs(self.curves.coarse[0]), 0.0) / self.unit
        null = jnp.asarray(ratio) == 0.0  # no spread where there are no events
        at = jnp.reshape(ratio, 1)
        now, squares = self.curves.spread(at)[0, 0], self.curves.expected_squares(at)
        spread = jnp.where(null, 1.0, now / jnp.maximum(squares, now / MAX_SPREAD + 1e-9))
        information, variance = self.curves.information
        selected = jnp.interp(information[0] / jnp.sqrt(variance[0]), jnp.asarray(SEEN), jnp.asarray(BOUNDED))
        noise = selected**2 * self.curves.expected_variance(at)[0, 0]
        # of shares that are too large, the slope is too small: their noise counts by where it would lead
        below, above = self.curves.expected_beyond(at, OVERSTATED * TWO_SIDED * selected)
        beyond = jnp.where(self.value < self._expected(ratio), below, above) / TWO_SIDED
        return self._tail(off, self.variance * spread + jnp.maximum(noise, beyond**2))

    def _expected(self, ratio):
        return self.curves.expected(jnp.reshape(ratio, 1))[0]

    def one_sided(self, ratio):
        """P-values of the hypotheses that the log hazard ratio is at most this, and at least this.

        Those of the most credible ratio from there on; 1 where there is no interval.
        """

        def sides(ratio):
            below = self.value < self._expected(ratio)
            further = 0.5 * self.p_value(ratio)
            return jnp.where(below, 1.0 - further, further), jnp.where(below, further, 1.0 - further)

        _, (low, _) = self.effect(self.p_value(jnp.zeros(())))
        return effect_sizes.credible(sides, ratio, LIMIT, jnp.isnan(low))

    def _tail(self, off, variance):
        sd = jnp.sqrt(variance) / self.unit
        sd = self.mechanism.widened(off, sd, self.sensitivity, self.variance_noise / self.unit**4)
        return self.mechanism.null_p_value(off, sd, self.sensitivity)

    @property
    def unknown(self):
        """Whether noise hides the information, or how few one group has."""
        information, variance = self.curves.information
        return (information[0] < CLEAR * jnp.sqrt(variance[0])) | self.curves.small

    @property
    def departed(self):
        """Whether a group leaves at once (`Curves.departed`)."""
        noise = self.unit**2 * self.mechanism.variance(self.sensitivity)
        return self.curves.departed(self.variance + noise)

    def effect(self, null_p_value):
        """Estimate and interval, both from `p_value`."""
        ends = jnp.full_like(self.value, -LIMIT), jnp.full_like(self.value, LIMIT)
        estimate, _ = bisected(lambda ratio: self._expected(ratio) < self.value, *ends, effect_sizes.HALVINGS)
        interval = effect_sizes.inverted(self.p_value, null_p_value, estimate, (-LIMIT, LIMIT))
        hidden = self.unknown | self.departed
        return effect_sizes.with_interval(estimate, [jnp.where(hidden, jnp.nan, end) for end in interval])

    def detectable(self, level):
        """By U's information about the ratio."""
        spread = jnp.sqrt(self.variance / self.unit**2 + self.mechanism.variance(self.sensitivity))
        found = effect_sizes.detectable(lambda off: self._tail(off, self.variance), spread, level) * self.unit
        found = found + jnp.abs(self.curves.coarse[0])
        return jnp.where(self.unknown, jnp.nan, found / self.curves.information[0][0])
