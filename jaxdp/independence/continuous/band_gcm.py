"""BandGCM: X independent of Y given one continuous Z, by differences of neighbours in the order of Z.

Symbols: k = `num_neighbors`, c = scale/2, h = `caliper`, S = `band`, Q = `squares`
(docs/theory/ordered_neighbours.md).
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, Relation, Sensitivity
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous.band_order import BandTest
from jaxdp.independence.continuous.neighbour_test import AGREEMENT, as_number, num_days, scales, sides
from jaxdp.mechanisms import Laplace, Split, divide
from jaxdp.spec import LINEAR, MONOTONE, Planning, TestSpec, continuous_columns_of_z
from jaxdp.statistics.neighbours import bands, neighbour_order
from jaxdp.statistics.neighbours.soft_sign import KERNELS

# Sensitivities under replace-one, for kernels in [-1, 1]: k triples of pairs change, each by at most 3/2k
# (docs/theory/ordered_neighbours.md#sensitivity).
BAND_L1 = 3.0
SQUARES_L1 = 3.0
PLAIN_L1 = 8.0  # differences of data in [-1, 1] themselves
PLAIN_SIZE = 4.0  # largest product of two such differences
# Of persons: an arrival changes the half sums of the others by 2 together, each of which is at most 1
# (docs/theory/persons.md#second-moment-of-pairs).
PERSONS_L1 = 9.0
SHARES = {"band": 0.85, "squares": 0.15}
PERSON_SHARES = {"band": 0.85, "persons": 0.15}
TYPICAL_PART = 0.5  # of the public bound, the variance of a mean over the rows of each person
DECIDES = 2.0  # sds
MIN_SQUARE = 1e-4  # floor of the released mean square, against a variance of zero


WIDE_SCALE = 1.0  # for columns of levels on [-1, 1], whose differences are all large: then the variance is released
FEW_LEVELS = 5  # up to here every difference of levels is at least c = WIDE_SCALE/2: the soft kernel is the sign


def _from_domain(cls, epsilon, domain, options):
    fields: dict = scales(domain, options)
    if domain is not None and any(column.days for column in domain.z):
        fields["variance"] = "released"  # pairs of one day are a part of all pairs, and only the data say how large
    leveled = domain is not None and all(column.levels for part in (domain.x, domain.y) for column in part)
    if leveled and options.residual_scale is None:
        fields = {"scale_x": WIDE_SCALE, "scale_y": WIDE_SCALE, "variance": "released"}
        few = all(column.levels <= FEW_LEVELS for part in (domain.x, domain.y) for column in part)
        fields |= {"kernel": "sign"} if few else {}
    return cls(epsilon=epsilon, **fields)


def _describe_effect(test, x, y, interval) -> str:
    """Which measure of concordance it is, and what the interval says about the correlation of normal columns."""
    if test.kernel == "sign" and test.variance == "released":
        return " (Goodman and Kruskal's gamma of neighbours)"
    measure = " (Kendall's tau of neighbours)" if test.kernel == "sign" else ""
    return measure + effect_sizes.describe_correlation(test, x, y, interval)


@frozen_pytree
class BandGCM(BandTest):
    """Private test of X independent of Y given Z of unknown law: one continuous column, any number of coded ones.

    Statistic: records sorted by z (ties by random priorities of their numbers); S = 1/(2k) times the sum of
    psi(x_j - x_i) psi(y_j - y_i) over pairs at most k ranks apart, psi(t) = clip(t/c, -1, 1). Coded columns of z
    sort first and only pairs of one level count. x may have p columns and y q: S is (p, q), p-value Bonferroni's.
    Sensitivity: 3, for replace-one neighbours, whatever n, k and the law of Z (8 for kernel="plain"); p q times that
    in L1, sqrt(p q) times in L2.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho). variance="released" spends 15 % on Q.
    P-value: exact for the noise; the null variance is bounded by n (1/9 + 7/(36 k)) whatever the laws of X and Y, or
    estimated from the released Q. Level: the laws (not only means) of X and of Y given z must change gradually, one
    of them if the other does not change; `validity` says how gradually. Cycles of z that are shorter than about 30 to
    60 records and common to X and Y are taken for dependence; a time declared as a date has its cycles conditioned on.
    Records must be independent given Z.

    num_neighbors: k; default 1 below 500 records, 2 below 5000, 4 below 50000, then 8; for dates with times, whose
        records are compared within one hour of one day, at most a quarter of the records that there are for each.
    kernel: "soft"; "sign" (c = 0: local Kendall, removes no trend); "plain" (psi(t) = t on data clipped to [-1, 1],
        needs variance="released").
    caliper: pairs farther apart in z do not count; default 4kV/n of the range, at most all of it, where z has a domain
        or a reference; V joint levels of its coded columns.
    variance: "public", or "released": more power where c is wide against the residuals, few pairs count, or n epsilon
        is large; default "public", for dates without times "released".
    by_person: judges S by Q = sum over persons of (mean over rows of the half sum of the pairs of a row)^2 and 15 % of
        the budget, at most by the public bound. Sensitivity of Q: 9 (docs/theory/persons.md#second-moment-of-pairs).
        Default: where persons have several rows and are many enough for the noise of Q, with variance="public".
    same_value: only pairs of equal z count, for a whole-number z with many records per value, whose effects may jump
        between values (labels); default where the schema declares a `step` that leaves at most n/2k values, labels, or
        dates without times of at most n/2 days.
    Missing z sort first, missing x or y count as 0; infinite values are cut to large finite ones. Pairs without z, and
    pairs at one bound of a schema (where all values beyond it lie), do not count, but for same_value.
    """

    kernel: str = jax.tree.static(default="soft")
    variance: str = jax.tree.static(default="public")
    by_person: bool | None = jax.tree.static(default=None)

    averages_rows: ClassVar[bool] = True
    spec: ClassVar[TestSpec] = TestSpec(
        name="band-gcm",
        needs_all="it sorts records by Z",
        summary="differences of neighbours in the order of Z; recommended for one continuous Z",
        from_domain=_from_domain,
        options=("residual_scale",),
        alternatives="covariance of X and Y given Z",
        effect=AGREEMENT,
        describe_effect=_describe_effect,
        accepts=lambda domain: continuous_columns_of_z(domain) <= 1 and bool(domain.z),
        rank=lambda domain: 3 * (continuous_columns_of_z(domain) == 1),
        suitability=lambda domain: {LINEAR: 3, MONOTONE: 3} if continuous_columns_of_z(domain) == 1 else {},
        shown=("band", "released sum over neighbours"),
        planning=Planning(),
        theory="docs/theory/ordered_neighbours.md",
    )

    def __post_init__(self):
        super().__post_init__()
        check.one_of(KERNELS, kernel=self.kernel)
        check.one_of(("public", "released"), variance=self.variance)
        if self.kernel == "plain" and self.variance == "public":
            raise ValueError('kernel="plain" has no useful public variance: give variance="released".')
        if self.by_person and self.variance != "public":
            raise ValueError('by_person is a released variance: leave variance="released" out.')

    def mechanism_in_force(self):
        mechanism = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        if self.by_person:
            return divide(mechanism, PERSON_SHARES)
        return mechanism if self.variance == "public" else divide(mechanism, SHARES)

    def of_persons(self, shapes):
        """By the second moment of persons, where that promises a smaller spread than the public bound."""
        if self.by_person is not None or self.variance != "public" or isinstance(self.mechanism, Split):
            return self
        count, judged = shapes.x.shape[0], dataclasses.replace(self, by_person=True)
        bound, noise = self._public_variance(count), judged._noise_variance(count)
        mechanism, sensitivity = judged.mechanism_in_force()["persons"], judged.sensitivity(count)["persons"]
        promised = TYPICAL_PART * bound + noise + as_number(mechanism.scale(sensitivity))
        return judged if promised < bound + self._noise_variance(count) else self

    @property
    def _has_parts(self) -> bool:
        """Whether more than S is released."""
        return bool(self.by_person) or self.variance == "released"

    def _noise_variance(self, num_records: int) -> float:
        mechanism, sensitivity = self.mechanism_in_force(), self.sensitivity(num_records)
        if self._has_parts:
            mechanism, sensitivity = mechanism["band"], sensitivity["band"]
        return as_number(mechanism.variance(sensitivity))

    def statistic(self, key, data):
        """S, (p, q) or a scalar for one pair; a dict of `band` and `squares` for variance="released".

        With `by_person` a dict of `band` and `persons`, as of persons with one row.
        """
        return self._of_persons(self._of_records(key, data))

    def statistic_of_persons(self, key, rows):
        """`statistic`: the mean of S over draws, and Q of the mean of each person's half sums."""
        return self._of_persons(rows.mean(self._of_records, key))

    def _of_persons(self, found):
        return found | {"persons": jnp.sum(found["persons"] ** 2, axis=0)} if self.by_person else found

    def _of_records(self, key, data):
        """S; with `by_person` the half sums of each record, (n, p, q), or (n,) for one pair."""
        x, y = sides(data)
        if self.kernel == "plain":
            x, y = jnp.clip(x, -1.0, 1.0), jnp.clip(y, -1.0, 1.0)
        count = x.shape[0]
        order, near = self._near(key, data)
        x, y = neighbour_order.in_order(order, x, y)
        arguments = (x, y, near, self.neighbors(count), self.widths(), self.kernel)
        total = self._matrix(bands.band_sum(*arguments))
        if self.by_person:
            halves = bands.half_sums(*arguments)
            halves = jnp.zeros_like(halves).at[order].set(halves, unique_indices=True)
            return {"band": total, "persons": halves[:, 0, 0] if math.prod(self.num_columns[:2]) == 1 else halves}
        if self.variance == "public":
            return total
        return {"band": total, "squares": self._matrix(bands.band_squares(*arguments))}

    def largest_sum(self, num_records: int) -> float:
        return PLAIN_SIZE**2 * num_records * self.neighbors(num_records)

    def sensitivity(self, num_records):
        if self.by_person:
            budget = self.mechanism_in_force()
            return {
                "band": self._bound(BAND_L1, -0.5, 0.5, budget["band"], num_records),
                "persons": self._bound(PERSONS_L1, 0.0, 1.0, budget["persons"], num_records),
            }
        if self.variance == "public":
            return self._bound(BAND_L1, -0.5, 0.5, self.mechanism_in_force(), num_records)
        plain, budget = self.kernel == "plain", self.mechanism_in_force()
        size = PLAIN_SIZE if plain else 1.0
        return {
            "band": self._bound(PLAIN_L1 if plain else BAND_L1, -0.5 * size, 0.5 * size, budget["band"], num_records),
            "squares": self._bound(SQUARES_L1 * size**2, 0.0, size**2, budget["squares"], num_records),
        }

    def _bound(self, bound: float, lower: float, upper: float, mechanism, num_records: int) -> Sensitivity:
        """Of all pairs of columns together; sums are exact, their division by k is where k is a power of two."""
        pairs, k = math.prod(self.num_columns[:2]), self.neighbors(num_records)
        rounding = 0.0 if k & (k - 1) == 0 else 2.0 * pairs * upper * num_records * bands.UNIT_ROUNDOFF
        return Sensitivity(
            bound=bound * (pairs if mechanism.norm is Norm.L1 else math.sqrt(pairs)),
            norm=mechanism.norm,
            relation=Relation.REPLACE_ONE,
            error=rounding,
            lower=lower * num_records,
            upper=upper * num_records,
        )

    def pair_p_values(self, key, release):
        """One p-value for each pair of columns: array (p, q), scalar for one pair."""
        total, mechanism, sensitivity = self._sum(release)
        return mechanism.null_p_value(total, self._null_sd(release, total), sensitivity)

    def _null_sd(self, release, value):
        """Of S; of persons at most that of the public bound, and enlarged for noise as a p-value of `value` needs."""
        sd = jnp.sqrt(self._null_variance(release)) + self._poison()
        if not self.by_person:
            return sd
        _, mechanism, sensitivity = self._sum(release)
        largest = jnp.sqrt(bands.null_variance(release.num_records, self.neighbors(release.num_records)))
        return jnp.minimum(mechanism.widened(value, sd, sensitivity, self._persons_noise(release)), largest)

    def _persons_noise(self, release):
        """Variance of the noise of the second moment of persons."""
        return self.mechanism_in_force()["persons"].variance(release.sensitivity["persons"])

    def _far(self, release):
        """A value of S where a test at the level of an interval decides: the sd is enlarged for its ends."""
        _, mechanism, sensitivity = self._sum(release)
        return DECIDES * jnp.sqrt(self._null_variance(release) + mechanism.variance(sensitivity))

    def _sum(self, release):
        """S, its mechanism and its sensitivity."""
        mechanism = self.mechanism_in_force()
        if not self._has_parts:
            return release.value, mechanism, release.sensitivity
        return release.value["band"], mechanism["band"], release.sensitivity["band"]

    def _null_variance(self, release):
        """Of S, for each pair: the public bound, or from the released Q plus one scale of its noise (#released)."""
        count = release.num_records
        if self.by_person:
            found = null_laws.noisy_sd(release.value["persons"], self._persons_noise(release), count) ** 2
            return jnp.minimum(found, bands.null_variance(count, self.neighbors(count)))
        if self.variance == "public":
            return jnp.full(jnp.shape(release.value), bands.null_variance(count, self.neighbors(count)))
        k, largest = self.neighbors(count), PLAIN_SIZE**2 if self.kernel == "plain" else 1.0
        guard = self.mechanism_in_force()["squares"].scale(release.sensitivity["squares"])
        mean = jnp.clip((release.value["squares"] + guard) / count, MIN_SQUARE * largest, largest)
        shared = jnp.minimum(largest / 9.0, mean / 4.0) * (2 * k - 1) / (2 * k)
        return count * (mean / (4 * k) + shared)

    def interpret(self, key, release):
        """S, and the mean of psi(dx) psi(dy) over neighbours, with its interval; pairs that do not count are 0.

        kernel="sign" with variance="released": Goodman and Kruskal's gamma of neighbours. kernel="plain": no effect.
        Several pairs of columns: their intervals hold together with probability 0.95.
        """
        p_values = self.pair_p_values(key, release)
        effect = () if self.kernel == "plain" else self._effect(release, p_values)
        return Interpretation(null_laws.bonferroni(p_values), self.pair_statistics(release), *effect)

    def _effect(self, release, p_values):
        """(estimate, interval) of each pair."""
        total, mechanism, sensitivity = self._sum(release)
        variance, miss = self._null_sd(release, self._far(release)) ** 2, self._miss()
        if self._is_gamma():
            noise = effect_sizes.noise_quantiles(self.mechanism_in_force()["squares"], release.sensitivity["squares"])

            def gamma(total, null_p_value, squares, variance):
                def tail(left, found):
                    return mechanism.null_p_value(left, jnp.sqrt(effect_sizes.shrunk(variance, found)), sensitivity)

                return effect_sizes.ratio(
                    (total, squares),
                    null_p_value,
                    noise,
                    lambda found, second: 0.5 * found * second,
                    tail,
                    limits=(-1.0, 1.0),
                    miss=miss,
                )

            return effect_sizes.for_pairs(gamma, total, p_values, release.value["squares"], variance)
        most = self._most(release.num_records)
        return effect_sizes.for_pairs(
            lambda total, null, variance: effect_sizes.concordance(
                total, null, most, variance, mechanism, sensitivity, miss
            ),
            total,
            p_values,
            variance,
        )

    def effect_notes(self, shapes, release):
        """That pairs which are not compared make the effect smaller, where most pairs of neighbours may be such."""
        if self.kernel == "plain" or self._is_gamma() or not (num_days(shapes) and self._compares_equal(shapes)):
            return {}
        return {
            "compared pairs": "Neighbours that are not alike in Z are not compared and count as no agreement, so the "
            'more of them there are, the smaller the effect; --set kernel=sign (in Python fields={"kernel": "sign"}) '
            "gives the agreement among compared pairs, at less power."
        }

    def _is_gamma(self) -> bool:
        return self.variance == "released" and self.kernel == "sign"

    def _most(self, num_records: int) -> float:
        """The largest size of S."""
        return 0.5 * (num_records - 0.5 * (self.neighbors(num_records) + 1))

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """The effect of one pair that would have been found with power 0.8, on the scale of `effect`."""
        _, mechanism, sensitivity = self._sum(release)
        most: Any = self._most(release.num_records)
        if self._is_gamma():
            spread = jnp.sqrt(self.mechanism_in_force()["squares"].variance(release.sensitivity["squares"]))
            most = 0.5 * jnp.maximum(release.value["squares"], effect_sizes.CLEAR * spread)
        variance = self._null_sd(release, self._far(release)) ** 2  # as the ends of an interval have it
        return effect_sizes.detectable_concordance(most, variance, mechanism, sensitivity, level)

    def pair_statistics(self, release):
        """The noisy sum S over pairs of neighbours."""
        return self._sum(release)[0]
