"""KruskalWallis: do the values of one column lie higher in some groups than in others? Rank sums in absolute values.

Theory: docs/theory/kruskal_wallis.md. Symbols: `statistics/rank_sums.py`; K groups, p their shares.
"""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateTest, Relation, Sensitivity
from jaxdp.data.dataset import CONTINUOUS, Column, Domain
from jaxdp.independence import effect_sizes, noise_law
from jaxdp.independence.continuous import validity
from jaxdp.independence.ranks.rank_test import UNIT_ROUNDOFF
from jaxdp.independence.tables.noisy_table import require_one_column
from jaxdp.mechanisms import Laplace, divide
from jaxdp.spec import LINEAR, MONOTONE, Columns, Planning, TestSpec, on_a_line, one_of_each
from jaxdp.statistics import rank_sums
from jaxdp.statistics.tables import contingency

COUNTS_SHARE = 0.1  # of the budget, for the sizes of the groups (docs/theory/kruskal_wallis.md#shares)
COUNTS_GUARD = 0.5  # noise scales added to each released size: shares nearer to equal ones have the wider null law
RANK_SUMS_MOVE = 2.0  # times n - 1: of sum |R_g|, when a record is replaced (docs/theory/kruskal_wallis.md#sensitivity)
COUNTS_MOVE = {Norm.L1: 2.0, Norm.L2: math.sqrt(2.0)}
TIES_WEIGHT = 0.5  # of what T moves by at most: so weighed it moves along with the rank sum at no cost (#ties)
TIES_MOVE = 3.0  # over n + 1: of T
TIES_GUARD = 2.0  # noise scales added to the released T
ROUNDINGS = 16.0
SIZE_NODES = 16  # equally likely values of the noise in sum_g n_g (n - n_g)
SQUARED = 5.0  # variance of the square of Laplace noise, in squared variances; of normal noise it is 2
CLEAR = effect_sizes.CLEAR
PAIR = 2  # groups of which the sign of the rank sum is released too
AVERAGE_CHANCE = (
    "chance that a value of one group lies above one of the other groups, or below where that is likelier, ties half, "
    "on average over the groups (0.5: no shift)"
)
SMALL_GROUP = "small group"
SIZES = "noisy sizes"
SENTENCES = {
    SIZES: "The noise hides how the records are divided among the groups, so there is no interval of the average "
    "chance. A larger epsilon or more records would help.",
    SMALL_GROUP: "By the noisy counts the smaller group has too few records for this epsilon, so there is no interval "
    "of the chance that a value of one lies above one of the other. More records of that group or a larger epsilon "
    "would help.",
}


def groups_of(domain: Domain) -> str:
    """Which of x and y holds the groups, "" where no column does: the other one must be on a line.

    Unordered levels are groups; else the column of fewer levels is.
    """
    if not one_of_each(domain) or domain.z:
        return ""
    x, y = domain.x[0], domain.y[0]
    sides = [name for name, groups, ranked in (("x", x, y), ("y", y, x)) if groups.levels > 1 and not ranked.unordered]
    if len(sides) < 2:
        return sides[0] if sides else ""
    return "x" if x.levels <= y.levels else "y"


def _bound(num_records: int) -> float:
    """How far one record moves KW_abs, with T in its units or without."""
    return RANK_SUMS_MOVE * (num_records - 1.0) * rank_sums.unit(num_records)


def _of_two_groups(domain: Domain) -> bool:
    groups = groups_of(domain)
    return bool(groups) and getattr(domain, groups)[0].levels == PAIR


def _describe_effect(test, x, y, interval) -> str:
    """Of which values, how they are cut, and what the interval assumes."""
    domain = Domain(x[0].code_column(), y[0].code_column())
    group, ranked = (x[0], y[0]) if groups_of(domain) == "x" else (y[0], x[0])
    ends = f", {ranked.name} {ranked.clipped}" if ranked.is_continuous else ""
    assumed = "" if interval is None else "; at 0.5 its interval assumes equal spreads"
    if interval is not None and not interval[0] <= 0.5 <= interval[1]:
        assumed += ", so that it leaves out a true 0.5 too often where a smaller group spreads more widely"
    if len(group.levels) > PAIR:
        return f": {ranked.name} of one of the {len(group.levels)} groups of {group.name}{ends}{assumed}"
    low, high = group.levels
    return f": {ranked.name} where {group.name} is {high}, above {ranked.name} where it is {low}{ends}{assumed}"


@frozen_pytree
class KruskalWallis(PrivateTest):
    """Private Kruskal-Wallis test: a column with levels (the groups) and one whose values are ranked; no z.

    Statistic: KW_abs = (n - 1) sum over groups of |sum of centred ranks| / floor(n^2/4), ties at their mean rank; of
    two groups with the sign of the second one's sum, which is no more sensitive. With it a multiple of T, by which ties
    reduce the variance of rank sums.
    Sensitivity (docs/theory/kruskal_wallis.md#sensitivity), replace-one: 2 (n - 1)^2/floor(n^2/4) of both together in
    L1, which is below 8 for even n and 8 (n - 1)/(n + 1) for odd n; sizes of the groups 2 in L1, sqrt(2) in L2.
    Privacy: epsilon-DP (90 % for KW_abs, 10 % for the sizes), or rho-zCDP with mechanism=Gaussian(rho).
    P-value: rank among `num_null` draws of the normal limit of the rank sums at the released sizes, with fresh noise;
    of two groups (Mann-Whitney) by the law of that limit and of the noise, without draws. It sees groups whose values
    lie higher or lower, not those that are spread differently.
    effect: of two groups, P(a value of the second is above one of the first) + P(they are equal)/2, with an interval of
    95 % that leaves out 1/2 exactly where p < 0.05 (docs/theory/kruskal_wallis.md#effect); NaN where the smaller group
    has fewer than about 60/epsilon records. Of more groups 1/2 + the mean over groups g of |P(a value of g is above one
    of the others) + P(equal)/2 - 1/2|, weighed by n_g (n - n_g), with such an interval (#several).

    group_counts: sizes of the groups in the order of their levels, where they are public: nothing is spent on them.
    """

    num_null: int = jax.tree.static(default=999)
    group_counts: tuple[int, ...] | None = jax.tree.static(default=None)
    groups: str = jax.tree.static(default="")
    num_groups: int = jax.tree.static(default=0)

    no_effect: ClassVar[float] = 0.5
    spec: ClassVar[TestSpec] = TestSpec(
        name="kruskal-wallis",
        summary="rank sums of groups; a continuous or ordered column against one with levels, without Z",
        known_as=(
            "kruskal",
            "mann-whitney",
            "mannwhitneyu",
            "wilcoxon-rank-sum",
            "ranksums",
            "anova",
            "one-way-anova",
            "f_oneway",
        ),
        columns=Columns.CODES,
        assumption="The hypothesis is that the groups have one law. It is false where none lies higher but spreads "
        "differ: p-values below 0.05, and intervals that leave out 0.5, then come more often than one time in twenty "
        "(13 to 15 % of data sets where a fifth of the records has three times the sd of the others). mean-difference "
        "compares the means of two groups without assuming equal spreads.",
        alternatives="groups whose values lie higher or lower than others'",
        effect="chance that a value of one of two groups lies above one of the other, ties half (0.5: no shift)",
        describe_effect=_describe_effect,
        size=lambda domain: "" if not groups_of(domain) or _of_two_groups(domain) else AVERAGE_CHANCE,
        accepts=lambda domain: bool(groups_of(domain)),
        one_effect=_of_two_groups,
        furthest=lambda x, y: 0.5,
        suitability=lambda domain: {LINEAR: 2, MONOTONE: 2} if groups_of(domain) and not on_a_line(domain) else {},
        needs_all="it ranks a column",
        planning=Planning(without_z=True),
        theory="docs/theory/kruskal_wallis.md",
    )
    gradient_free = null_laws.RANK

    def __post_init__(self):
        super().__post_init__()
        check.at_least(19, num_null=self.num_null)

    def mechanism_in_force(self):
        mechanism = Laplace(check.budget(self.epsilon)) if self.mechanism is None else self.mechanism
        public = self.group_counts is not None
        return divide(mechanism, {"ranks": 1.0} if public else {"ranks": 1.0 - COUNTS_SHARE, "counts": COUNTS_SHARE})

    def validity(self, data):
        """Run: what it rests on, no public number decides."""
        return validity.Validity(validity.RUN, self.spec.assumption)

    def specialize(self, shapes):
        """Which column holds the groups, and how many there are; ValueError where none does, or sizes do not fit."""
        if shapes.z is not None:
            raise ValueError("kruskal-wallis has no conditional form: z must be None.")
        require_one_column("kruskal-wallis", shapes, "x", "y")
        domain = shapes.domain or Domain((Column(CONTINUOUS),), (Column(CONTINUOUS),))
        groups = groups_of(domain)
        if not groups:
            raise ValueError(
                "kruskal-wallis compares groups: one of x and y must have levels, and the other must be continuous, "
                "ordered or binary."
            )
        count = getattr(domain, groups)[0].levels
        sizes = self.group_counts
        if sizes is not None and (len(sizes) != count or sum(sizes) != shapes.x.shape[0] or min(sizes) < 0):
            raise ValueError(f"group_counts must be {count} sizes that add up to the number of records, got {sizes}.")
        return dataclasses.replace(self, groups=groups, num_groups=count)

    def statistic(self, key, data):
        """{"ranks": KW_abs and T in its units (2,), "counts": sizes (K,)}; sizes only where they are private."""
        groups, values = (data.x, data.y) if self.groups == "x" else (data.y, data.x)
        groups = contingency.as_codes(groups, self.num_groups)
        pair = self.num_groups == PAIR
        sums = rank_sums.signed(values, groups) if pair else rank_sums.kw_abs(values, groups, self.num_groups)
        ties = self._unit_of_ties(values.shape[0]) * rank_sums.tie_factor(values)
        found = {"ranks": jnp.stack([sums, ties])}
        if self.group_counts is None:
            found["counts"] = jax.ops.segment_sum(jnp.ones(values.shape[0]), groups, self.num_groups)
        return found

    def sensitivity(self, num_records):
        budget, ties = self.mechanism_in_force(), self._unit_of_ties(num_records)
        ranks = Sensitivity(
            bound=_bound(num_records),
            norm=budget["ranks"].norm,
            relation=Relation.REPLACE_ONE,
            error=ROUNDINGS * UNIT_ROUNDOFF * num_records,
            lower=np.array([-1.0 * num_records if self.num_groups == PAIR else 0.0, 0.0]),
            upper=np.array([1.0 * num_records, ties]),
        )
        if self.group_counts is not None:
            return {"ranks": ranks}
        norm = budget["counts"].norm
        bare = Sensitivity(COUNTS_MOVE[norm], norm, Relation.REPLACE_ONE)
        room = noise_law.margin(budget["counts"], bare)
        return {"ranks": ranks, "counts": dataclasses.replace(bare, lower=-room, upper=num_records + room)}

    def interpret(self, key, release):
        """KW_abs; of two groups the rank sum and theta with its interval, by the law of the p-value."""
        count, value = release.num_records, release.value["ranks"][0]
        if self.num_groups == PAIR:
            p_value = self._p_value_of_pair(release, value, 0.0)
            return Interpretation(p_value, value, *self._effect_of_pair(release, p_value))
        key_ranks, key_noise = jax.random.split(key)
        shares, ties = self._shares(release), self._ties(release)
        sums = rank_sums.unit(count) * rank_sums.null_rank_sums(key_ranks, shares, ties, count, self.num_null)
        noise = self.mechanism_in_force()["ranks"].noise(key_noise, release.sensitivity["ranks"], (self.num_null,))
        p_value = null_laws.monte_carlo(value, sums + noise)
        effect, *interval = self._effect_of_several(release, p_value, sums, sums + noise)
        return Interpretation(p_value, value, effect, tuple(interval))

    def _effect_of_several(self, release, null_p_value, sums, draws):
        """1/2 + delta of more than two groups, and both ends of its interval; delta: mean distance of theta_g from 1/2.

        sums, draws: KW_abs of the null without and with noise (docs/theory/kruskal_wallis.md#several).
        """
        count, value, sensitivity = release.num_records, release.value["ranks"][0], release.sensitivity["ranks"]
        unit, mechanism = rank_sums.unit(count), self.mechanism_in_force()["ranks"]
        pairs, spread = self._pairs(release)
        nodes = jnp.clip(pairs + spread * norm.ppf((jnp.arange(SIZE_NODES) + 0.5) / SIZE_NODES), 1.0, count**2)

        def at_least(delta):
            return jnp.mean(null_laws.monte_carlo(value - unit * delta * nodes, draws[None]))

        def at_most(delta):
            off = value - unit * delta * nodes
            sd = unit * jnp.sqrt(rank_sums.largest_variance(delta * nodes, count))
            further = 0.5 * mechanism.null_p_value(off, sd, sensitivity)
            return jnp.mean(jnp.where(off < 0.0, further, 1.0 - further))

        pairs = jnp.maximum(pairs, CLEAR * spread)
        limit = jnp.minimum((count**2 // 4) / pairs, 0.5)  # sum |R_g| is at most that
        clear = count * math.sqrt((count + 1.0) / 12.0) / pairs  # sd of the rank sums of two halves
        low, high = effect_sizes.size_interval(null_p_value, at_least, at_most, limit, clear)
        middle = jnp.sqrt(jnp.maximum(value**2 - jnp.mean(sums) ** 2, 0.0)) / (unit * pairs)
        known = (pairs > CLEAR * spread) & ~jnp.isnan(low)
        return tuple(
            jnp.where(known, self.no_effect + number, jnp.nan) for number in (jnp.clip(middle, low, high), low, high)
        )

    def _pairs(self, release):
        """sum_g n_g (n - n_g), from the noisy sizes, and the sd of its noise."""
        count, sizes = release.num_records, self._sizes(release)
        found = count**2 - jnp.sum(sizes**2)
        if self.group_counts is not None:
            return found, 0.0 * found
        variance = self.mechanism_in_force()["counts"].variance(release.sensitivity["counts"])
        apart = jnp.sum((sizes - count / self.num_groups) ** 2)
        spread = jnp.sqrt(4.0 * variance * apart + SQUARED * self.num_groups * variance**2)
        return found + (self.num_groups - 1.0) * variance, spread

    def _effect_of_pair(self, release, null_p_value):
        """(theta, interval) of two groups; NaN where the noise hides the smaller one."""
        count, small = release.num_records, jnp.min(self._sizes(release))
        twice = 2.0 * rank_sums.unit(count)

        def expected(centre, small):
            return twice * centre * small * (count - small)

        def tail(left, centre):
            return self._p_value_of_pair(release, left, centre)

        estimate, (low, high) = effect_sizes.ratio(
            (release.value["ranks"][0], small),
            null_p_value,
            self._noise_of_size(release),
            expected,
            tail,
            limits=(-0.5, 0.5),
        )
        return self.no_effect + estimate, (self.no_effect + low, self.no_effect + high)

    @effect_sizes.settled_program
    def one_sided(self, release, effect):
        """By the pivot of the interval, of two groups; both 1 where there is none."""
        if self.num_groups != PAIR:
            return None
        centre = jnp.clip(effect - self.no_effect, -0.5, 0.5)
        count, size = release.num_records, jnp.min(self._sizes(release))
        sizes = jnp.maximum(size - self._noise_of_size(release), 0.0)
        off = release.value["ranks"][0] - 2.0 * rank_sums.unit(count) * centre * sizes * (count - sizes)
        further = 0.5 * self._p_value_of_pair(release, off, centre)
        at_most = jnp.mean(jnp.where(off >= 0.0, further, 1.0 - further))
        return tuple(jnp.where(self._hidden(release), 1.0, side) for side in (at_most, 1.0 - at_most))

    def effect_notes(self, shapes, release):
        """Whether the noise hides the smaller of two groups, or how records divide among more; post-processing."""
        test = self.specialize(shapes)
        if test.num_groups > PAIR:
            pairs, spread = test._pairs(release)
            name, hidden = SIZES, bool(pairs <= CLEAR * spread)
        else:
            name, hidden = SMALL_GROUP, bool(test._hidden(release))
        return {name: SENTENCES[name]} if hidden else {}

    def _hidden(self, release):
        """Whether the noise hides the smaller of two groups, so that there is no interval (`effect_sizes.ratio`)."""
        noise = self._noise_of_size(release)
        return jnp.min(self._sizes(release)) < effect_sizes.CLEAR * jnp.sqrt(jnp.mean(noise**2))

    def _p_value_of_pair(self, release, off, centre):
        """P(|the rank sum and its noise are off their mean| >= |off|) of two groups, where theta is 1/2 + centre."""
        count, sensitivity = release.num_records, release.sensitivity["ranks"]
        small = count * jnp.min(self._shares(release))
        variance = rank_sums.variance_of_second(centre, small, self._ties(release), count)
        return self.mechanism_in_force()["ranks"].null_p_value(
            off, 2.0 * rank_sums.unit(count) * jnp.sqrt(variance), sensitivity
        )

    @staticmethod
    def _unit_of_ties(num_records: int) -> float:
        """What T is multiplied by."""
        return TIES_WEIGHT * _bound(num_records) * (num_records + 1.0) / TIES_MOVE

    def _ties(self, release):
        """T, as released and with two scales of its noise, at most 1."""
        scale = self.mechanism_in_force()["ranks"].scale(release.sensitivity["ranks"])
        unit = self._unit_of_ties(release.num_records)
        return jnp.clip(release.value["ranks"][1] + TIES_GUARD * scale, jnp.minimum(scale, unit), unit) / unit

    def _noise_of_size(self, release):
        """Equally likely values of the noise in the size of one of two groups: half the difference of two noises."""
        if self.group_counts is not None:
            return jnp.zeros(1)
        sensitivity = release.sensitivity["counts"]
        return math.sqrt(0.5) * effect_sizes.noise_quantiles(self.mechanism_in_force()["counts"], sensitivity)

    def _sizes(self, release):
        """Sizes of the groups (K,): public, or released and made to add up."""
        if self.group_counts is not None:
            return jnp.asarray(self.group_counts, float)
        sizes = jnp.asarray(release.value["counts"], float)
        return sizes + (release.num_records - jnp.sum(sizes)) / self.num_groups

    def _shares(self, release):
        """Shares of the groups (K,): public, or released and drawn a little towards equal ones."""
        sizes = self._sizes(release)
        if self.group_counts is not None:
            return sizes / jnp.sum(sizes)
        scale = self.mechanism_in_force()["counts"].scale(release.sensitivity["counts"])
        sizes = jnp.maximum(sizes, 0.0) + COUNTS_GUARD * scale
        return sizes / jnp.sum(sizes)
