"""ContrastGCM: X independent of Y given two to five continuous columns of Z, no fit, no cells.

Symbols: m = records of a window, a = its contrast, c = scale/2, h = `caliper`, v = `null_rate`, T = the statistic
(docs/theory/ordered_neighbours.md#contrast).
"""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, Relation, Sensitivity
from jaxdp.data.dataset import Data
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import roughness
from jaxdp.independence.continuous.contrast_order import DEPTHS, MANY, ContrastTest
from jaxdp.independence.continuous.neighbour_test import AGREEMENT, as_number, count_columns, num_strata, scales
from jaxdp.mechanisms import divide
from jaxdp.spec import LINEAR, MONOTONE, Planning, TestSpec, continuous_columns_of_z
from jaxdp.statistics import partition
from jaxdp.statistics.neighbours import contrasts, neighbour_order

# Measured on simulated nulls, not proved: the largest null variance per record (#null-rate), and the null variance of T
# per unit of Q, of the mean over four curves and of fewer or of the symmetric form (#released-variance).
NULL_RATE = {2: 1.7, 3: 2.2, 4: 2.2, 5: 2.2}
NULL_RATE_OF_FOUR = {3: 2.0}  # of the mean over four curves, where it is another (#null-rate)
NULL_RATE_OF_MANY = {2: 1.5, 3: 1.7}  # of the mean over four curves
RATE_OF_SQUARES, RATE_OF_SQUARES_OF_OTHERS = 1.8, 3.0
DECIDES = 2.0  # sds
FLOOR = {2: 0.5, 3: 0.5, 4: 0.25, 5: 0.25}  # of the largest null variance, so that little noise shows no bend
SYMMETRIC_FROM = 20_000  # records; below, skewed noise in both X and Y costs little level and the simplex is sharper


# Given three columns and more: below n min(1, epsilon), the share of windows that count, the closest ones (#closest).
CLOSEST = ((1_000, 1.0), (3_000, 0.8), (20_000, 0.5), (math.inf, 0.25))


def closest_share(num_records: int, depth: int, epsilon: float) -> float | None:
    """The share of windows that count, None for all: where there is power to spare, the closest bear less bias."""
    share = next(share for below, share in CLOSEST if num_records * min(1.0, epsilon) < below)
    return share if depth > 2 and share < 1.0 else None


def _from_domain(cls, epsilon, domain, options):
    """What depends on n and epsilon is settled here, where a simulation's traced budget could not tell."""
    test = cls(epsilon=epsilon, **scales(domain, options))
    if options.of_many:
        test = test.among()
    if options.num_records is None or domain is None:  # then pinned when the shapes are known
        return test
    count, depth = options.num_records, continuous_columns_of_z(domain)
    x, y, z = (jax.ShapeDtypeStruct((count, len(part)), float) for part in (domain.x, domain.y, domain.z))
    checked = test._checks(Data(x, y, z, domain), depth)
    return dataclasses.replace(test, closest=closest_share(count, depth, epsilon), check_roughness=checked)


@frozen_pytree
class ContrastGCM(ContrastTest):
    """Private test of X independent of Y given Z with two to five continuous columns (and any coded ones).

    Statistic: records sorted along a Hilbert curve through the box of Z; in each window of m records that follow each
    other, a = unit vector orthogonal to (1, z); T = sum over windows of psi(a'x) psi(a'y), psi(t) = clip(t/c, -1, 1).
    Linear trends of X and Y in z cancel exactly. m = d + 2, or 2 (d + 1) in the symmetric form from 20000 records.
    Released beside it, at no cost: Q/2, Q = sum over windows of the squares of these products, rounded up to 2^-10.
    Sensitivity: 2 (2m - 1) of T and Q/2 together, for replace-one neighbours, whatever n and the law of Z; p q times
    that in L1 for p and q columns of x and y, sqrt(p q) times in L2. The same for the sum of `check_roughness`.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: exact for the noise on T; normal null of variance 1.8 Q (3 Q in the symmetric form and with fewer than four
    curves; measured, bounded by m Q), at most v n, at least half of that (a quarter given four and five columns).
    Level: trends must be close to planes within a window; `validity` says how close, and refuses too few records.

    trend_x, trend_y: public functions of z, subtracted from x and y: asked about one record, z of shape (1, d), they
        return one number (a tuple of one per column for several columns of x or y).
    caliper: windows that are wider on any axis do not count; default C n^(-1/d) of the range, C = 3, 1.5, 1, 0.75 (2
        for two columns below 1000 records; for more columns as much larger in the symmetric form as its windows are).
    closest: of the windows of a curve only this share counts, those that are least wide; at the same sensitivity.
        Default: all for two columns; for more all below n min(1, epsilon) = 1000, four fifths below 3000, half below
        20000, then a quarter (an epsilon that is traced counts as 1).
    null_rate: v; if given, the null variance per record whatever Q is. Default: 1.5 for two columns and 1.7 for three
        (1.7 and 2.0 below 1000 records, 1.7 and 2.2 with fewer than four curves), 2.2 for more; raise it for scales
        below a quarter of the residuals'.
    symmetric: the form; default by n. rotation: seed of the public rotation and shift of the curve.
    num_rotations: T is the mean over this many curves (1, 2, 4, 8), at the same sensitivity and a smaller variance;
        default 4 for two and three columns, 1 for more.
    skewed: a column of Z is known to be skewed on linear bounds (refused for three columns and more).
    reference: default for data without a domain is a standard Cauchy law for every column.
    check_roughness: a quarter of the budget releases the same sum over windows four times as wide, and "curvature" is
        flagged only where that sum leaves open that X and Y jump with Z; two columns of Z. Default: where the noise of
        the whole budget has at most an eighth of the null variance (n epsilon^2 from about 2100; a traced epsilon
        counts as 1). Without it every answer is flagged; one of many questions (searches, all pairs) has none.
    Missing z have the lowest place, missing x or y count as 0; infinite values are cut to large finite ones.
    """

    null_rate: ArrayLike | None = None
    check_roughness: bool | None = jax.tree.static(default=None)

    averages_rows: ClassVar[bool] = True
    spec: ClassVar[TestSpec] = TestSpec(
        name="contrast-gcm",
        needs_all="it puts records next to their neighbours in Z, which is a sort",
        summary="contrasts of neighbours that cancel linear trends; recommended for two to five continuous Z",
        from_domain=_from_domain,
        options=("residual_scale",),
        alternatives="covariance of X and Y given Z",
        effect=AGREEMENT,
        describe_effect=effect_sizes.describe_correlation,
        accepts=lambda domain: continuous_columns_of_z(domain) >= 2,
        rank=lambda domain: 3 * (continuous_columns_of_z(domain) >= 2),
        suitability=lambda domain: {LINEAR: 3, MONOTONE: 3} if continuous_columns_of_z(domain) >= 2 else {},
        shown=("windows/0", "released sum over neighbours"),
        planning=Planning(),
        theory="docs/theory/ordered_neighbours.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.null_rate is not None:
            check.positive(null_rate=self.null_rate)

    def among(self):
        """This test for all pairs of the columns of x, of which no release says anything by itself."""
        return dataclasses.replace(self, check_roughness=False)

    def mechanism_in_force(self):
        mechanism = super().mechanism_in_force()
        return divide(mechanism, roughness.SHARES) if self.check_roughness else mechanism

    def validity(self, data):
        depth, _ = count_columns(data)
        count = data.x.shape[0]
        if depth not in DEPTHS:
            return self.too_deep(data)
        checked = self._checks(data, depth)
        test = dataclasses.replace(self, depth=depth, check_roughness=checked)
        noise = test._of_windows(test.mechanism_in_force()).variance(test._of_windows(test.sensitivity(count)))
        noise, rate = map(as_number, (noise, self._rate(depth, count)))
        least = FLOOR[depth] if self.null_rate is None else 1.0
        return self._rule(data, noise, rate * least, symmetric=self.is_symmetric(count), checked=checked)

    def _checks(self, data, depth: int) -> bool:
        """Whether a part of the budget looks for roughness; public."""
        if self.check_roughness is not None:
            return self.check_roughness
        if depth not in roughness.RATIOS:
            return False
        count = data.x.shape[0]
        plain = dataclasses.replace(partition.with_column_counts(self, data), depth=depth, check_roughness=False)
        with jax.ensure_compile_time_eval():  # what is public is not traced
            noise = as_number(plain.mechanism_in_force().variance(plain.sensitivity(count)))
            if math.isnan(noise):  # a traced budget
                plain = dataclasses.replace(plain, epsilon=1.0, mechanism=None)
                noise = as_number(plain.mechanism_in_force().variance(plain.sensitivity(count)))
        null = as_number(self._rate(depth, count) * self.most_windows(count))
        size = contrasts.window_size(depth, self.is_symmetric(count))
        return roughness.is_worth_it(count, depth, num_strata(data), size, noise / null)

    def specialize(self, shapes):
        """With its columns counted and the share of its windows. Errors: ValueError where the public rule refuses."""
        test = super().specialize(shapes)
        test = dataclasses.replace(test, check_roughness=test._checks(shapes, test.depth))
        if test.check_roughness and test.depth not in roughness.RATIOS:
            raise ValueError(
                f"check_roughness is for {min(roughness.RATIOS)} continuous columns of z, got {test.depth}."
            )
        if test.closest is not None:
            return test
        known = test.epsilon is not None and check.is_concrete(test.epsilon) and np.ndim(test.epsilon) == 0
        epsilon = float(np.asarray(test.epsilon)) if known else 1.0
        return dataclasses.replace(test, closest=closest_share(shapes.x.shape[0], test.depth, epsilon))

    def _side(self, depth, num_records, strata=1):
        side = super()._side(depth, num_records, strata)
        if self.caliper is not None or depth == 2:
            return side
        longer = contrasts.window_size(depth, self.is_symmetric(num_records)) / (depth + 2)
        return min(1.0, side * longer ** (1.0 / depth))

    def window_sums(self, x, y, points, scores, kept):
        """T and Q/2 of records in the order of one curve, (p, q, 2)."""
        symmetric = self.is_symmetric(points.shape[0])
        return contrasts.contrast_sums(x, y, points, scores, kept, self.widths(), symmetric)

    def is_symmetric(self, num_records: int) -> bool:
        """Whether the symmetric form is used for this number of records."""
        return num_records >= SYMMETRIC_FROM if self.symmetric is None else self.symmetric

    def _rate(self, depth: int, num_records: int):
        if self.null_rate is not None:
            return self.null_rate
        if self.curves(depth) < 4:
            return NULL_RATE[depth]
        few = NULL_RATE_OF_FOUR.get(depth, NULL_RATE[depth])
        return NULL_RATE_OF_MANY.get(depth, few) if num_records >= MANY else few

    def statistic(self, key, data):
        """T and Q/2, (p, q, 2) or (2,) for one pair; with `check_roughness` a dict of `windows` (both) and `coarse`."""
        priority = neighbour_order.priorities(key, data.x.shape[0])
        fine = self.total(priority, data)
        if not self.check_roughness:
            return fine
        return {"windows": fine, "coarse": self.total(priority, data, roughness.num_classes(self.depth))[..., 0]}

    def sensitivity(self, num_records):
        mechanism = self.mechanism_in_force()
        if not self.check_roughness:
            return self._bound(mechanism, num_records)
        return {name: self._bound(mechanism[name], num_records) for name in roughness.SHARES}

    def _bound(self, mechanism, num_records: int) -> Sensitivity:
        """Of T and Q/2 together, and of T in classes alone."""
        pairs = math.prod(self.num_columns[:2])
        return Sensitivity(
            bound=self.largest_change(num_records) * (pairs if mechanism.norm is Norm.L1 else math.sqrt(pairs)),
            norm=mechanism.norm,
            relation=Relation.REPLACE_ONE,
            lower=-1.0 * num_records,
            upper=1.0 * num_records,
        )

    def _of_windows(self, parts):
        """The part of T: of values, mechanisms or sensitivities of a release."""
        return parts["windows"] if self.check_roughness else parts

    def _released(self, release):
        """T, its mechanism and its sensitivity."""
        parts = release.value, self.mechanism_in_force(), release.sensitivity
        value, mechanism, sensitivity = map(self._of_windows, parts)
        return value[..., 0], mechanism, sensitivity

    def settled(self, shapes, release):
        """With the check that this release has, whatever a traced budget was taken for."""
        made = dataclasses.replace(self, check_roughness=isinstance(release.value, dict))
        return super(ContrastGCM, made).settled(shapes, release)

    def pair_p_values(self, key, release):
        """One p-value for each pair of columns: array (p, q), scalar for one pair."""
        total, mechanism, sensitivity = self._released(release)
        return mechanism.null_p_value(total, self._null_sd(release, total), sensitivity)

    def pair_statistics(self, release):
        """The noisy sum T over windows of neighbours."""
        return self._released(release)[0]

    def _largest_variance(self, num_records: int):
        """What T varies by at most under the null hypothesis; public."""
        return self._rate(self.depth, num_records) * self.most_windows(num_records)

    def _null_variance(self, release):
        """Of T under the null hypothesis, by its released squares; between `FLOOR` of the largest and the largest."""
        squares = self._of_windows(release.value)[..., 1] / contrasts.WEIGHT_OF_SQUARES
        count = release.num_records
        largest = self._largest_variance(count)
        if self.null_rate is not None:
            return largest * jnp.ones_like(squares)
        return jnp.clip(self._rate_of_squares(count) * squares, FLOOR[self.depth] * largest, largest)

    def _rate_of_squares(self, num_records: int) -> float:
        sharp = self.curves(self.depth) >= 4 and not self.is_symmetric(num_records)
        return RATE_OF_SQUARES if sharp else RATE_OF_SQUARES_OF_OTHERS

    def _null_sd(self, release, value):
        """The root of the null variance, enlarged for the noise of the squares as a p-value of `value` needs it."""
        sd = jnp.sqrt(self._null_variance(release)) + self._poison()
        if self.null_rate is not None:
            return sd
        _, mechanism, sensitivity = self._released(release)
        times = self._rate_of_squares(release.num_records) / contrasts.WEIGHT_OF_SQUARES
        return mechanism.widened(value, sd, sensitivity, times**2 * mechanism.variance(sensitivity))

    def interpret(self, key, release):
        """T, and the mean of psi(a'x) psi(a'y) over the windows that may count, with its interval; too wide ones are 0.

        Several pairs of columns: their intervals hold together with probability 0.95.
        """
        p_values = self.pair_p_values(key, release)
        total, mechanism, sensitivity = self._released(release)
        most, miss = self._most(release.num_records), self._miss()
        effect = effect_sizes.for_pairs(
            lambda total, null, sd: effect_sizes.concordance(total, null, most, sd**2, mechanism, sensitivity, miss),
            total,
            p_values,
            self._null_sd(release, self._far(release)),
        )
        return Interpretation(null_laws.bonferroni(p_values), total, *effect)

    def _far(self, release):
        """A value of T where a test at the level of an interval decides: the sd is enlarged for its ends."""
        _, mechanism, sensitivity = self._released(release)
        return DECIDES * jnp.sqrt(self._null_variance(release) + mechanism.variance(sensitivity))

    def _most(self, num_records: int):
        """The largest size of T."""
        size = contrasts.window_size(self.depth, self.is_symmetric(num_records))
        return jnp.minimum(self.most_windows(num_records), num_records - size + 1.0)

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """The concordance of one pair that would have been found with power 0.8; public."""
        _, mechanism, sensitivity = self._released(release)
        variance = jnp.max(self._null_sd(release, self._far(release))) ** 2  # as the ends of an interval have it
        most = self._most(release.num_records)
        return effect_sizes.detectable_concordance(most, variance, mechanism, sensitivity, level)

    def released_flags(self, shapes, release) -> dict[str, str]:
        """ "curvature", where a finding could be jumps of X and Y: of several pairs the one with the least p-value."""
        test = self.settled(shapes, release)
        if not test.check_roughness:
            return {}
        p_values = np.ravel(test.pair_p_values(None, release))
        total, *_ = test._released(release)
        sums = {"windows": total, "coarse": release.value["coarse"]}, test._null_variance(release)
        sums, variance = jax.tree.map(lambda of_pairs: jnp.ravel(of_pairs)[int(np.argmin(p_values))], sums)
        largest = test._largest_variance(release.num_records)
        found = roughness.doubt(sums, test.mechanism_in_force(), release.sensitivity, variance, largest, test.depth)
        return roughness.flag(found, p_values.size, test.depth)
