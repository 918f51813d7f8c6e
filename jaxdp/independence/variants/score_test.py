"""Score tests of variants against a phenotype, adjusted for covariates: every variant (the best few: `best_variants`).

Theory: docs/theory/score_test.md. Symbols: x = allele count less one, y = phenotype, z = covariates, h and r =
residuals of x and y about released lines, S = sum h r, V = sum (h r)^2, D = sum h^2, K variants, m of them tested; S
and D within bins of z where the noise of that is affordable.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateTest, Relation, Sensitivity, Sequential
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import moment_columns, validity
from jaxdp.independence.continuous.residual_test import RARE
from jaxdp.independence.variants import covariates
from jaxdp.independence.variants.covariates import KNOTS, MAX_VALUES, Hats, Straight
from jaxdp.independence.variants.score_order import CHOICE, LINES, MEAN, MODEL, STAGES
from jaxdp.mechanisms import Laplace, Split, divide
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics import moments, partition, score_sums

# Parts of the budget; what a test does not need goes to the others (docs/theory/score_test.md#shares).
SHARES = {MODEL: 25, MEAN: 5, CHOICE: 30, LINES: 15, "scores": 40, "squares": 5, "spread": 5}
# Within bins hardly any error of the lines is left in S: they need little.
SHARES_WITHIN = {**SHARES, MODEL: 10, MEAN: 1, LINES: 4, "scores": 62, "spread": 8}
SCORES = ("scores", "squares", "spread")
NATURAL_BOUND = 4.0  # half range of columns in units of their own
TYPICAL_VARIANCE = 1.0 / 16.0  # of a covariate on [-1, 1]
CLEAR = 6.0  # times the eigenvalue that the noise of hats' Gram matrix has, that its least eigenvalue must be
NEEDED = 4.0  # sds of the Gram matrix's noise that n typical variances must be
EFFECT = "slope of Y on X given Z, in the columns' own units; for a variant, per allele"
TYPICAL_LIMIT, TYPICAL_PRODUCT, TYPICAL_MEAN = 0.5, 0.1, 0.5  # B, the mean of (h r)^2, and means of x and y
LOST = "covariates hidden by noise"
LOST_TOLD = (
    effect_sizes.NOTHING + "by the noisy sums {names} hardly varies within its bounds, as far as this epsilon shows "
    "it, so that it cannot be held fixed, and the p-value is 1. What would help: closer bounds, more records, a larger "
    "epsilon."
)
STRAIGHTER = " Or the setting knots=2: the covariates are then held fixed by straight lines, which fewer records show."
RARE_TOLD = (
    "Level {names} (in the order of the schema) is so rare, or absent, that the noise hides how many have it. Its "
    "records, if any, count as average ones: it is not held fixed. The p-value and the interval allow for what may be "
    "left in the score, which costs power. What would help: a merged level, more records, a larger epsilon."
)
FEW_RECORDS, STRAIGHT_LINES, JUMPS = "few records for the null model", "straight lines", "jumps"
# What hats leave of a jump: 0.09 of an interval's share of the records, for jumps of 0.6 in h and of two residual sds.
JUMP = 0.09 * 0.6 * 1.0
SEEN_JUMP = 0.3  # sds of S; where records crowd three times as many lie in an interval
PER_BIN = 8  # records
AFFORDABLE = 0.3  # noise of S within bins over its typical variance, up to which it is taken within bins
STRAIGHT_BETWEEN = (
    "The mean of X or that of Y given Z is a sum of functions of single columns of Z that are nearly straight between "
    "{knots} equally spaced values (one of the two is enough), and both do not jump at the same value; only linear "
    "dependence is seen."
)
WITHIN_BINS = (
    "The mean of X or that of Y given Z is a sum of functions of single columns of Z (one of the two is enough), of "
    "any shape but for what happens within one of {bins} bins of a column; only linear dependence is seen."
)
LINEAR_IN_Z = "The mean of X or that of Y is linear in Z (one of the two is enough); only linear dependence is seen."


def _bounded_x(domain) -> bool:
    """x of levels with an order, one number each; y one column."""
    ordered = all(column.levels > 1 and moment_columns.width(column) == 1 for column in domain.x)
    return ordered and len(domain.y) == 1 and moment_columns.width(domain.y[0]) == 1


@frozen_pytree
class ScoreTest(PrivateTest):
    """Private score test of each column of x (allele counts, say) against y, adjusted for any number of columns of z.

    Records: x (n,) or (n, K) in [-1, 1] (allele count less one; NaN or below -1.5: missing), y one column, z (n, d),
    both within `bound`. Stages: a null model of y on functions of single columns of z, straight between knots, by
    noisy normal equations (or `null_model`, public and free); the mean residual; for each tested variant the same;
    then S = sum of h r, V = sum of (h r)^2 and D = sum of h^2 over records, with h the variant's residual clipped at
    1 and r the phenotype's in units of B. Where one covariate alone is continuous or of many levels and the noise
    allows it, S and D are taken about the means of its bins, of about 8 records: S then holds no bend and no jump.
    Sensitivity, replace-one, for m tested variants: S 2 m in L1 and 2 sqrt(m) in L2; V and D half of that; within bins
    S and D four times that (and 2^-11 m for rounding); lines 2 m d, 2 sqrt(m d); mean 2; model d (d + 1) + 2 d
    (d = 1: 17/4), sqrt(2) (d + 1); straight lines: lines 2 m (d + 1), 2 sqrt(m (d + 1)), model that of
    `WinsorisedPartialCorrelation`'s matrix.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition of the stages. Phenotype,
    covariates and variants are all private. Relation REPLACE_ONE. Theory: docs/theory/score_test.md#sensitivity.
    P-value: of each variant exact for the noise of S, to second order for that of V, with the variance of the product
    of both lines' errors and the skewness that few carriers among few cases have; together Bonferroni over K, or with
    `each` Holm's for every variant, (K,). Level rests on E[x|z] or E[y|z] being a sum of such functions (with
    `null_model`: on that model), and on n large.
    effect: slope of y per unit of x (per allele), (m,), with intervals that hold for all K variants together, 95 %.

    null_model: public function z (n, d) -> mean of y, (n,), in units of `bound`; None: fitted privately.
    knots: of each column of z; default by public numbers, the most whose noise is small; 2: straight lines.
    winsorize: B in residual sds, for a phenotype that is not binary. residual_limit: B itself, public, in its place;
        default with a public null model 2. bound: half range of y and z. binary: whether y has two levels, -1 and 1;
        read from the domain where there is one.
    ahead, parts, model, offset, lines, indices, num_variants, basis, bins: set by the stages.
    """

    winsorize: ArrayLike = 2.0
    null_model: Any = jax.tree.static(default=None)
    residual_limit: ArrayLike | None = None
    knots: int | None = jax.tree.static(default=None)
    bound: ArrayLike = 1.0
    binary: bool = jax.tree.static(default=False)
    each: bool = jax.tree.static(default=False)
    ahead: tuple[str, ...] | None = jax.tree.static(default=None)
    parts: Any = None
    model: Any = None  # Model, once it is released
    offset: Any = 0.0
    indices: Any = None
    lines: Any = None
    num_variants: int = jax.tree.static(default=1)  # K
    basis: Any = jax.tree.static(default=Straight(()))
    bins: tuple[int, int] | None = jax.tree.static(default=None)  # column of z and how many; None: S is not within bins

    many_columns: ClassVar[bool] = True
    reads_missing: ClassVar[bool] = True
    leaves_out_missing: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True
    flags: ClassVar[tuple[str, ...]] = (FEW_RECORDS, STRAIGHT_LINES, JUMPS)
    pairwise = None  # type: ignore[assignment]  # variants against one phenotype, no pairs among themselves

    spec: ClassVar[TestSpec] = TestSpec(
        name="score-test",
        summary="score test of variants against a phenotype, adjusted for covariates, with effect per allele",
        from_domain=lambda cls, epsilon, domain, options: (
            cls(epsilon=epsilon) if domain is not None else cls(epsilon=epsilon, bound=NATURAL_BOUND)
        ),
        assumption=LINEAR_IN_Z,
        alternatives="linear dependence of X (of levels) and Y given Z",
        effect=EFFECT,
        own_units=lambda x, y: y[0].half_range / x[0].half_range,
        accepts=_bounded_x,
        planning=Planning(
            formula="variants:score_power", gaussian_formula="always", min_records=50, table=True, linear=True
        ),
        needs_all="persons are read all at once, variants in blocks by `jaxdp gwas`",
        theory="docs/theory/score_test.md",
    )

    def __post_init__(self):
        super().__post_init__()
        check.positive(winsorize=self.winsorize, bound=self.bound)
        if self.knots is not None:
            check.at_least(2, knots=self.knots)
        if self.residual_limit is not None:
            check.positive(residual_limit=self.residual_limit)

    # Public layout and the stages

    @property
    def num_tested(self) -> int:
        """m."""
        return self.num_variants

    @property
    def line_basis(self) -> Straight | Hats:
        """What a variant's line is made of: with a public null model its mean alone."""
        return Straight(()) if self.null_model is not None else self.basis

    def mechanism_in_force(self):
        whole = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        if self.parts is not None:
            return Split(parts={name: self.parts[name] for name in SCORES})
        return divide(whole, {name: Fraction(SHARES[name], 50) for name in SCORES}) if self.ahead == () else whole

    def specialize(self, shapes):
        """The next stage, or the test itself. Errors: ValueError for several columns of y and too many records."""
        test = self if self.ahead is not None else self.started(shapes)
        if not test.ahead:
            return test
        name, *rest = test.ahead
        query, then = STAGES[name]
        return Sequential(
            first=query(mechanism=test.parts[name], of=test),
            second=dataclasses.replace(test, ahead=tuple(rest)),
            then=then,
        )

    def stages(self) -> tuple[str, ...]:
        """Names of the stages before the scores."""
        return (LINES,) if self.null_model is not None else (MODEL, MEAN, LINES)

    def started(self, shapes):
        if shapes.x.shape[0] > moments.MAX_RECORDS:
            raise ValueError(f"{shapes.x.shape[0]} records are too many for exact sums, at most {moments.MAX_RECORDS}.")
        phenotype = moment_columns.described(shapes, "y")
        if len(phenotype) != 1 or moment_columns.width(phenotype[0]) != 1:
            raise ValueError(
                "y must be one phenotype, binary or a quantity: test several one after the other, each for a share of "
                "the budget."
            )
        columns = () if shapes.z is None else moment_columns.described(shapes, "z")
        test = dataclasses.replace(
            self,
            ahead=self.stages(),
            num_variants=partition.num_columns(shapes.x),
            basis=Straight(columns),
            binary=self.binary or phenotype[0].levels == 2,
        )
        if self.null_model is not None or not columns or self.knots == 2:
            return test._paid(self)
        count = shapes.x.shape[0]
        within = dataclasses.replace(test, bins=(0, count))._paid(self)._fitted(count)
        columns_left = within.basis.unsaturated
        if len(columns_left) == 1 and within._affordable(count):
            return dataclasses.replace(within, bins=(columns_left[0], within._num_bins(columns_left[0], count)))
        return test._paid(self)._fitted(count)

    def _num_bins(self, place: int, count: int) -> int:
        """Bins of a covariate: `PER_BIN` records in each where they spread evenly, no more than its levels."""
        column = self.basis.columns[place]
        most = max(count // PER_BIN, 1)
        return min(most, column.levels) if moment_columns.bounded(column) else most

    def shares(self) -> dict[str, int]:
        """Parts of the budget, by what they buy."""
        parts = SHARES if self.bins is None else SHARES_WITHIN
        return {name: parts[name] for name in (*self.stages(), *SCORES)}

    @property
    def holds_any_shape(self) -> bool:
        """Whether S lies within bins of the only covariate: no shape and no error of a line is left in it."""
        return self.bins is not None and len(self.basis.columns) == 1

    def _paid(self, asked) -> ScoreTest:
        """With the mechanism of each part, from the budget of the test that was asked for."""
        whole, shares = asked.mechanism_in_force(), self.shares()
        total = sum(shares.values())
        parts = {name: self.mechanism_of(name, whole.share(Fraction(part, total))) for name, part in shares.items()}
        return dataclasses.replace(self, parts=parts)

    def _fitted(self, count: int) -> ScoreTest:
        """With functions of the covariates: the `knots` asked for, or the finest that add little noise."""
        columns = self.basis.columns
        basis = self._finest(count, columns) if self.knots is None else Hats(columns, self.knots)
        return dataclasses.replace(self, basis=basis)

    def _affordable(self, count: int) -> bool:
        """Whether S within bins has little noise."""
        return self._noise_of("scores", self._scores_bound) < AFFORDABLE * TYPICAL_PRODUCT * count

    def _finest(self, count: int, columns) -> Straight | Hats:
        """The most knots whose lines add little noise to the scores (docs/theory/score_test.md#covariates)."""
        for knots, tolerated in KNOTS:
            basis = Hats(columns, knots)
            fits = basis.width * count <= MAX_VALUES
            clear = knots == KNOTS[-1][0] or self._clear(basis, count)
            if fits and clear and self._noise_of_lines(basis, count) < tolerated * self._typical_spread(count):
                return basis
        return Straight(columns)

    def _clear(self, basis: Hats, count: int) -> bool:
        """Whether the noise of the Gram matrix is small against its least eigenvalue."""
        noise = math.sqrt(self._noise_of(MODEL, lambda norm: basis.bound(norm is Norm.L2)))
        return CLEAR * noise < count * basis.clearness()

    def _known(self, name: str):
        """The mechanism of a part, at epsilon 1 where the budget is not known when a program is made."""
        part = self.parts[name]
        unknown = part.epsilon if isinstance(part, Laplace) else part.rho
        if check.is_concrete(unknown) and np.ndim(unknown) == 0:
            return part
        shares = self.shares()
        return Laplace(shares[name] / sum(shares.values()))

    def _noise_of(self, name: str, bound) -> float:
        """Variance of the noise on a number of this part; bound(norm) of what it releases."""
        part = self._known(name)
        with jax.ensure_compile_time_eval():
            return float(part.variance(Sensitivity(bound(part.norm), part.norm, Relation.REPLACE_ONE)))

    def _noise_of_lines(self, basis, count: int) -> float:
        """Variance that errors of both lines add to S, for independent uniform covariates."""
        inverse = np.linalg.inv(count * basis.typical())
        model = self._noise_of(MODEL, lambda norm: basis.bound(norm is Norm.L2))
        lines = self._noise_of(LINES, lambda norm: basis.line_bound(norm, self.num_tested))
        means = TYPICAL_MEAN**2 * basis.couplings * model  # the matrix's own noise, times the constants of both lines
        return (lines + means) * (model + means) * float(np.sum(inverse**2)) / TYPICAL_LIMIT**2

    def _typical_spread(self, count: int) -> float:
        """Variance of S and of its noise."""
        return TYPICAL_PRODUCT * count + self._noise_of("scores", self._scores_bound)

    def _scores_bound(self, norm: Norm) -> float:
        return self._moves * (self.num_tested if norm is Norm.L1 else math.sqrt(self.num_tested))

    @property
    def _moves(self) -> float:
        """How far one record moves S of one variant."""
        return score_sums.MOVES if self.bins is None else score_sums.MOVES_WITHIN

    def mechanism_of(self, name: str, share):
        """The mechanism of a part, from its share of the budget."""
        return share

    def validity(self, data):
        """Run, or flag where the noise of the null model hides what the covariates explain."""
        test = self.started(data)
        if test.null_model is not None or not test.basis.columns:
            return validity.Validity(validity.RUN, LINEAR_IN_Z)
        count = data.x.shape[0]
        if isinstance(test.basis, Hats):
            few = not test._clear(test.basis, count)
        else:
            noise = math.sqrt(test._noise_of(MODEL, lambda norm: test.basis.bound(norm is Norm.L2)))
            few = not noise * NEEDED < count * TYPICAL_VARIANCE
        # within bins of the only covariate no line is needed
        return test._shapes_held(count, (FEW_RECORDS,) if few and not test.holds_any_shape else ())

    def _shapes_held(self, count: int, flags: tuple[str, ...]):
        """Validity by the shapes that both means may have without leaving anything in S; flags: those known so far."""
        if self.bins is not None:
            assumption = WITHIN_BINS.format(bins=self.bins[1])
        elif isinstance(self.basis, Hats):
            knots = max(self.basis.sizes)
            assumption = STRAIGHT_BETWEEN.format(knots=knots)
            seen = JUMP * count / (knots - 1) > SEEN_JUMP * math.sqrt(self._typical_spread(count))
            flags = (*flags, JUMPS) if seen and self.basis.unsaturated else flags
        else:
            assumption = LINEAR_IN_Z
            flags = (*flags, STRAIGHT_LINES) if self._curves() else flags
        return validity.Validity(validity.FLAG if flags else validity.RUN, assumption, flags)

    def _curves(self) -> bool:
        """Whether a covariate takes more than two values, so that means may bend with it."""
        return any(column.levels != 2 and moment_columns.width(column) == 1 for column in self.basis.columns)

    # Columns

    def variants(self, data):
        """x (n, K), as it is."""
        return partition.as_matrix(data.x)

    def tested(self, data):
        """The columns of x that are tested (n, m)."""
        return self.variants(data)

    def phenotype(self, data):
        """y (n,) in half ranges; NaN where it is missing."""
        columns = moment_columns.described(data, "y")
        values = moment_columns.numbers(partition.as_matrix(data.y).astype(float), columns)[:, 0]
        return jnp.clip(values / (1.0 if moment_columns.bounded(columns[0]) else self.bound), -1.0, 1.0)

    def design(self, data):
        """Functions of the covariates (n, w)."""
        return self.basis.design(data.z, partition.as_matrix(data.x).shape[0], self.bound)

    def line_design(self, data):
        """What the lines of the variants are in."""
        z = None if self.null_model is not None else data.z
        return self.line_basis.design(z, partition.as_matrix(data.x).shape[0], self.bound)

    def residuals(self, data):
        """r (n,) on the grid: residuals of the phenotype in units of B, less their mean; 0 where y is missing."""
        y = self.phenotype(data)
        limit, fit_limit = self._limits()
        if self.null_model is None:
            fitted = jnp.matmul(self.design(data), self.model.theta, precision="highest")
        else:
            z = None if data.z is None else partition.as_matrix(data.z)
            fitted = jnp.nan_to_num(self.null_model(z) / self.bound, nan=0.0)
        found = (y - jnp.clip(fitted, -fit_limit, fit_limit)) / limit - self.offset
        return moments.on_grid(jnp.where(jnp.isnan(y), 0.0, found))

    def _limits(self):
        """B, and where fitted means are clipped."""
        if self.null_model is None:
            return self.model.limit, self.model.fit_limit
        return 2.0 if self.residual_limit is None else check.positive_or_nan(self.residual_limit), 1.0

    # The scores

    def statistic(self, key, data):
        """Dict of S, V and D, each (m,)."""
        bins = None
        if self.bins is not None:
            bins = covariates.cut(data.z, self.basis.columns, *self.bins, self.bound), self.bins[1]
        known = ~jnp.isnan(self.phenotype(data))
        return score_sums.scores(
            self.tested(data), self.lines.coefficients, self.line_design(data), self.residuals(data), bins, known
        )

    def sensitivity(self, num_records):
        budget, limit = self.mechanism_in_force(), float(num_records)
        # what rounding may take from a spread of 0 in each bin of any records
        low, spread = 0.0, score_sums.SPREAD_MOVES
        if self.bins is not None:
            low, spread = -score_sums.ROUNDING * limit, score_sums.SPREAD_MOVES_WITHIN

        def of(name: str, bound: float, lower: float, upper: float):
            norm = budget[name].norm
            total = bound * (self.num_tested if norm is Norm.L1 else math.sqrt(self.num_tested))
            return Sensitivity(total, norm, Relation.REPLACE_ONE, lower=lower, upper=upper)

        return {
            "scores": of("scores", self._moves, low - limit, limit - low),
            "squares": of("squares", 1.0, 0.0, limit),
            "spread": of("spread", spread, low, limit - low),
        }

    # What the release says

    def _sd(self, release):
        """sd of S under its null, noise of S apart, and the variance of the noise in its square."""
        noise = self.mechanism_in_force()["squares"].variance(release.sensitivity["squares"])
        variance = self._variance(release) + self.lines.product_variance
        return null_laws.noisy_sd(variance, noise, release.num_records), noise

    def _variance(self, release):
        """Of S: V, and no less than D times the mean of r^2, for few carriers among few cases leave hardly a V."""
        variance = jnp.maximum(release.value["squares"], 0.0)
        if self.model is None:
            return variance
        squared = self.model.residual_variance / self._limits()[0] ** 2
        return jnp.maximum(variance, squared * release.value["spread"])

    def _scores(self, release):
        """S without the mean that the errors of the lines give it."""
        return release.value["scores"] - self.lines.mean

    def _tail(self, release, value, sd):
        """P(|S + noise| >= |value|) for S of this sd and with the skewness that rare events leave."""
        mechanism, sensitivity = self.mechanism_in_force()["scores"], release.sensitivity["scores"]

        def noise_tail(shift):
            return mechanism.null_p_value(shift, 0.0 * shift, sensitivity)

        third = self.lines.jump * self._variance(release)
        normal = mechanism.null_p_value(value, sd, sensitivity)
        return jnp.maximum(normal, null_laws.skewed(noise_tail, value, sd, third / sd**3))

    def pair_p_values(self, key, release):
        """P-value of each tested variant, (m,), not adjusted for the others; noise counted."""
        budget, sensitivity = self.mechanism_in_force(), release.sensitivity
        sd, noise = self._sd(release)
        sd = budget["scores"].widened(self._scores(release), sd, sensitivity["scores"], noise)
        return jnp.where(self._loses, 1.0, self._tail(release, self._scores(release), sd))

    @property
    def _loses(self):
        """Whether nothing of a covariate, or a combination of them, is held fixed, so that it would be left in S."""
        if self.model is None or self.holds_any_shape:
            return False
        return jnp.any(self.model.lost) | self.model.entangled

    def effect_notes(self, shapes, release) -> dict[str, str]:
        """Which covariates and which levels the noise hides; post-processing."""
        test = self.settled(shapes, release)
        notes: dict[str, str] = {}
        if test.model is None or test.holds_any_shape:
            return notes
        columns, model = test.basis.columns, test.model
        names = [column.name or f"column {k}" for k, column in enumerate(columns)]
        if bool(test._loses):
            lost = [name for name, one in zip(names, model.lost, strict=True) if one]
            told = " and ".join(lost) or f"a combination of {', '.join(names)}"
            notes[LOST] = LOST_TOLD.format(names=told) + (STRAIGHTER if isinstance(test.basis, Hats) else "")
        places, _ = test.basis.levels
        rare = [
            f"{k + 1 - np.argmax(places == place)} of {names[place]}" for k, place in enumerate(places) if model.rare[k]
        ]
        if rare:
            notes[RARE] = RARE_TOLD.format(names=", ".join(rare))
        return notes

    def no_gradient(self, name):
        return moments.ROUNDED

    def _of_family(self, found):
        """Family-wise p-values of the tested variants (m,), and what is published: K times the least, or with `each`
        all of them, Holm's."""
        if self.each:
            return (null_laws.holm(found),) * 2
        return jnp.minimum(1.0, self.num_variants * found), null_laws.bonferroni(found)

    def interpret(self, key, release):
        """S, noisy, in units of B; and slopes (m,) with intervals that hold for all K variants together, 0.95.

        No interval (NaN) where it and the variant's family-wise p-value would contradict each other.
        """
        budget, sensitivity = self.mechanism_in_force(), release.sensitivity
        spread_noise = budget["spread"].variance(sensitivity["spread"])
        spread = jnp.maximum(release.value["spread"], jnp.maximum(4.0 * jnp.sqrt(spread_noise), 1e-3))
        scores = self._scores(release)
        slope = scores / spread
        sd, noise = self._sd(release)
        sd = jnp.sqrt(sd**2 + jnp.sqrt(noise) + slope**2 * spread_noise)
        total = jnp.sqrt(sd**2 + budget["scores"].variance(sensitivity["scores"]))

        def tail(value):
            return self._tail(release, value, sd)

        half = null_laws.two_sided_quantile(tail, total, 0.05 / self.num_variants) / spread
        unit = self._limits()[0] * (1.0 if self.binary else self.bound)
        family, p_value = self._of_family(self.pair_p_values(key, release))
        low, high = effect_sizes.agreeing((slope - half, slope + half), family)
        low, high, slope = (jnp.where(self._loses, jnp.nan, part) for part in (low, high, slope))
        return Interpretation(p_value, scores, unit * slope, (unit * low, unit * high))
