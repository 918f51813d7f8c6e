"""Score tests of variants against a phenotype, adjusted for covariates: every variant, or the best few of many.

Theory: docs/theory/score_test.md. Symbols: x = allele count less one, y = phenotype, z = covariates, h and r =
residuals of x and y about released lines, S = sum h r, V = sum (h r)^2, D = sum h^2, K variants, m of them tested.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity, Sequential
from jaxdp.independence.continuous import level_rule, moment_columns
from jaxdp.independence.variants import score_examples
from jaxdp.independence.variants.score_stages import Lines, NullModel, ResidualMean, VariantChoice, VariantLines
from jaxdp.mechanisms import Laplace, Split, divide
from jaxdp.mechanisms.top_k import TopK
from jaxdp.spec import SELECTION, AuditSettings, Example, PairSearch, Planning, TestSpec
from jaxdp.statistics import moments, partition, score_sums

MODEL, MEAN, CHOICE, LINES = "model", "mean", "choice", "lines"  # stages, in this order
# Parts of the budget; what a test does not need goes to the others (docs/theory/score_test.md#shares).
SHARES = {MODEL: 25, MEAN: 5, CHOICE: 30, LINES: 15, "scores": 40, "squares": 5, "spread": 5}
SCORES = ("scores", "squares", "spread")
NATURAL_BOUND = 4.0  # half range of columns in units of their own
TYPICAL_VARIANCE = 1.0 / 16.0  # of a covariate on [-1, 1]
NEEDED = 4.0  # sds of the Gram matrix's noise that n typical variances must be
EFFECT = "slope of Y on X given Z, in the columns' own units; for a variant, per allele"
LINEAR_IN_Z = "The mean of X or that of Y is linear in Z (one of the two is enough); only linear dependence is seen."


def _from_domain(cls, epsilon, domain, options):
    """A schema scales columns to [-1, 1]; natural units have wide bounds."""
    del options
    return cls(epsilon=epsilon) if domain is not None else cls(epsilon=epsilon, bound=NATURAL_BOUND)


def _own_units(x, y) -> float:
    """Of a slope on [-1, 1] in the columns' own units."""
    return y[0].half_range / x[0].half_range


def _bounded_x(domain) -> bool:
    """x of levels with an order, one number each; y one column."""
    ordered = all(column.levels > 1 and moment_columns.width(column) == 1 for column in domain.x)
    return ordered and len(domain.y) == 1 and moment_columns.width(domain.y[0]) == 1


@frozen_pytree
class ScoreTest(PrivateTest):
    """Private score test of each column of x (allele counts, say) against y, adjusted for any number of columns of z.

    Records: x (n,) or (n, K) in [-1, 1] (allele count less one; NaN or below -1.5: missing), y one column, z (n, d),
    both within `bound`. Stages: a linear null model of y on z by noisy normal equations (or `null_model`, public and
    free); the mean residual; for each tested variant its line on z; then S = sum of h r, V = sum of (h r)^2 and D = sum
    of h^2 over records, with h the variant's residual clipped at 1 and r the phenotype's in units of B.
    Sensitivity, replace-one, for m tested variants: S 2 m in L1 and 2 sqrt(m) in L2; V and D half of that; lines
    2 m (d + 1), 2 sqrt(m (d + 1)); mean 2; model that of `PartialCorrelation`'s matrix.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho); adaptive composition of the stages. Phenotype,
    covariates and variants are all private. Relation REPLACE_ONE. Theory: docs/theory/score_test.md#sensitivity.
    P-value: of each variant exact for the noise of S, to second order for that of V, and with the variance of the
    product of both lines' errors; together Bonferroni over K, or with `each` Holm's for every variant, (K,). Level
    rests on E[x|z] or E[y|z] being linear in z (with `null_model`: on that model), and on n large.
    effect: slope of y per unit of x (per allele), (m,), with intervals that hold for all K variants together, 95 %.

    null_model: public function z (n, d) -> mean of y, (n,), in units of `bound`; None: fitted privately.
    winsorize: B in residual sds, for a phenotype that is not binary. residual_limit: B itself, public; default with a
        public null model 2. bound: half range of y and z. binary: whether y has two levels, -1 and 1; read from the
        domain where there is one.
    ahead, parts, model, offset, lines, indices, sizes: set by the stages.
    """

    winsorize: ArrayLike = 2.0
    null_model: Any = jax.tree.static(default=None)
    residual_limit: ArrayLike | None = None
    bound: ArrayLike = 1.0
    binary: bool = jax.tree.static(default=False)
    each: bool = jax.tree.static(default=False)
    ahead: tuple[str, ...] | None = jax.tree.static(default=None)
    parts: Any = None
    model: Any = None  # Model, once it is released
    offset: Any = 0.0
    indices: Any = None
    lines: Any = None
    sizes: tuple[int, int] = jax.tree.static(default=(1, 0))

    many_columns: ClassVar[bool] = True
    reads_missing: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True
    pairwise = None  # type: ignore[assignment]  # variants against one phenotype, no pairs among themselves

    spec: ClassVar[TestSpec] = TestSpec(
        name="score-test",
        summary="score test of variants against a phenotype, adjusted for covariates, with effect per allele",
        from_domain=_from_domain,
        assumption=LINEAR_IN_Z,
        sees="linear dependence of X (of levels) and Y given Z",
        effect=EFFECT,
        own_units=_own_units,
        fits=_bounded_x,
        planning=Planning(formula="variants:score_power", gaussian_formula="always", least=50, table=True),
        needs_all="persons are read all at once, variants in blocks by `jaxdp gwas`",
        theory="docs/theory/score_test.md",
        examples=(
            Example(
                score_examples.cohort,
                null=score_examples.null_cohort,
                reaches=score_examples.reaches("ScoreTest"),
                worst_pairs=f"{score_examples.PLACE}:worst_pairs",
                search=PairSearch(records=9, rounds=4),
                coupled=True,
                audit=AuditSettings(
                    fields=score_examples.ABOUT_KNOWN_LINES, neighbours=f"{score_examples.PLACE}:first_worst_pair"
                ),
            ),
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        check.positive(winsorize=self.winsorize, bound=self.bound)
        if self.residual_limit is not None:
            check.positive(residual_limit=self.residual_limit)

    # Public layout and the stages

    @property
    def num_variants(self) -> int:
        """K."""
        return self.sizes[0]

    @property
    def num_covariates(self) -> int:
        """d, columns of z as numbers."""
        return self.sizes[1]

    @property
    def num_tested(self) -> int:
        """m."""
        return self.num_variants

    @property
    def line_width(self) -> int:
        """Numbers of a variant's line: with a public null model its mean alone."""
        return 1 if self.null_model is not None else self.num_covariates + 1

    def budget(self):
        whole = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        if self.parts is not None:
            return Split(parts={name: self.parts[name] for name in SCORES})
        return divide(whole, {name: Fraction(SHARES[name], 50) for name in SCORES}) if self.ahead == () else whole

    def resolve(self, shapes):
        """The next stage, or the test itself. Errors: ValueError for several columns of y and too many records."""
        test = self if self.ahead is not None else self._started(shapes)
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

    def _started(self, shapes):
        if shapes.x.shape[0] > moments.MAX_RECORDS:
            raise ValueError(f"{shapes.x.shape[0]} records are too many for exact sums, at most {moments.MAX_RECORDS}.")
        phenotype = moment_columns.described(shapes, "y")
        if len(phenotype) != 1 or moment_columns.width(phenotype[0]) != 1:
            raise ValueError(
                "y must be one phenotype, binary or a quantity: test several one after the other, each for a share of "
                "the budget."
            )
        covariates = () if shapes.z is None else moment_columns.described(shapes, "z")
        whole, names = self.budget(), (*self.stages(), *SCORES)
        total = sum(SHARES[name] for name in names)
        parts = {name: self.mechanism_of(name, whole.share(Fraction(SHARES[name], total))) for name in names}
        return dataclasses.replace(
            self,
            parts=parts,
            ahead=self.stages(),
            sizes=(partition.num_columns(shapes.x), moment_columns.widths(covariates)),
            binary=self.binary or phenotype[0].levels == 2,
        )

    def mechanism_of(self, name: str, share):
        """The mechanism of a part, from its share of the budget."""
        del name
        return share

    def level_rule(self, data):
        """Run, or flag where the noise of the null model hides what the covariates explain."""
        test = self._started(data)
        if test.null_model is not None or not test.num_covariates:
            return level_rule.LevelRule(level_rule.RUN, LINEAR_IN_Z)
        count = data.x.shape[0]
        stage = NullModel(mechanism=test.parts[MODEL], of=test)
        noise = jnp.sqrt(test.parts[MODEL].variance(stage.sensitivity(count)))
        known = check.is_concrete(noise)
        few = known and not float(noise) * NEEDED < count * TYPICAL_VARIANCE
        flags = ("few records for the null model",) if few else ()
        return level_rule.LevelRule(level_rule.FLAG if few else level_rule.RUN, LINEAR_IN_Z, flags)

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
        """(1, z) on [-1, 1], (n, d + 1)."""
        made = [jnp.ones((partition.as_matrix(data.x).shape[0], 1))]
        if data.z is not None:
            columns = moment_columns.described(data, "z")
            values = moment_columns.numbers(partition.as_matrix(data.z).astype(float), columns)
            units = jnp.asarray([1.0 if flag else self.bound for flag in moment_columns.flags(columns)])
            made.append(jnp.clip(jnp.nan_to_num(values / units[None], nan=0.0), -1.0, 1.0))
        return jnp.concatenate(made, axis=1)

    def line_design(self, data):
        """What the lines of the variants are in."""
        return self.design(data)[:, : self.line_width]

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
            return self.model.limit if self.residual_limit is None else self.residual_limit, self.model.fit_limit
        return 2.0 if self.residual_limit is None else check.positive_or_nan(self.residual_limit), 1.0

    # The scores

    def statistic(self, key, data):
        """Dict of S, V and D, each (m,)."""
        del key
        return score_sums.scores(
            self.tested(data), self.lines.coefficients, self.line_design(data), self.residuals(data)
        )

    def sensitivity(self, num_records):
        budget, limit = self.budget(), float(num_records)

        def of(name: str, bound: float, lower: float):
            norm = budget[name].norm
            total = bound * (self.num_tested if norm is Norm.L1 else math.sqrt(self.num_tested))
            return Sensitivity(total, norm, Relation.REPLACE_ONE, lower=lower, upper=limit)

        return {
            "scores": of("scores", 2.0, -limit),
            "squares": of("squares", 1.0, 0.0),
            "spread": of("spread", 1.0, 0.0),
        }

    # What the release says

    def _sd(self, release):
        """sd of S under its null, noise of S apart, and the variance of the noise in its square."""
        noise = self.budget()["squares"].variance(release.sensitivity["squares"])
        variance = jnp.maximum(release.value["squares"], 0.0)
        return null_laws.noisy_sd(variance + self.lines.product_variance, noise, release.num_records), noise

    def pair_p_values(self, key, release):
        """P-value of each tested variant, (m,), not adjusted for the others; noise counted."""
        del key
        budget, sensitivity = self.budget(), release.sensitivity
        sd, noise = self._sd(release)
        sd = budget["scores"].widened(release.value["scores"], sd, sensitivity["scores"], noise)
        return budget["scores"].null_p_value(release.value["scores"], sd, sensitivity["scores"])

    def p_value(self, key, release):
        """Of the whole family: K times the least; with `each` (K,), Holm's."""
        found = self.pair_p_values(key, release)
        return null_laws.holm(found) if self.each else null_laws.bonferroni(found)

    def headline(self, release):
        """S, noisy, in units of B."""
        return release.value["scores"]

    def effect(self, key, release):
        """(slopes (m,), (low, high)): intervals that hold for all K variants together with probability 0.95."""
        del key
        budget, sensitivity = self.budget(), release.sensitivity
        spread_noise = budget["spread"].variance(sensitivity["spread"])
        spread = jnp.maximum(release.value["spread"], jnp.maximum(4.0 * jnp.sqrt(spread_noise), 1e-3))
        slope = release.value["scores"] / spread
        sd, noise = self._sd(release)
        sd = jnp.sqrt(sd**2 + jnp.sqrt(noise) + slope**2 * spread_noise)
        total = jnp.sqrt(sd**2 + budget["scores"].variance(sensitivity["scores"]))

        def tail(value):
            return budget["scores"].null_p_value(value, sd, sensitivity["scores"])

        half = null_laws.two_sided_quantile(tail, total, 0.05 / self.num_variants) / spread
        unit = self._limits()[0] * (1.0 if self.binary else self.bound)
        return unit * slope, (unit * (slope - half), unit * (slope + half))


@frozen_pytree
class BestVariants(ScoreTest):
    """The `count` variants of many that go with y most, and `ScoreTest` of each, adjusted for covariates.

    As `ScoreTest`, with a stage before the lines: `count` exponential mechanisms (one-shot Gumbel noise) choose among
    the scores |sum x r| of all K variants, each of sensitivity 2 in Linf; the rest is about the chosen ones alone.
    Privacy: epsilon-DP; relation REPLACE_ONE.
    P-value: (count,), times K: family-wise error at most the level under any selection, because the scores' noise is
    independent of it and the bound is over all K (docs/theory/score_test.md#family). The indices are
    `BestVariants.chosen(result)`. Intervals hold for all K variants together.
    """

    count: int = jax.tree.static(default=10)

    spec: ClassVar[TestSpec] = TestSpec(
        name="best-variants",
        summary="the variants that go with a phenotype most, each with its score test adjusted for covariates",
        publishes=SELECTION,
        from_domain=_from_domain,
        needs=("variants",),
        assumption=LINEAR_IN_Z,
        sees="linear dependence of X (of levels) and Y given Z",
        effect=EFFECT,
        own_units=_own_units,
        needs_all="persons are read all at once, variants in blocks by `jaxdp gwas`",
        theory="docs/theory/score_test.md",
        examples=(
            Example(
                score_examples.cohort,
                null=score_examples.null_cohort,
                fields={"count": 2},
                reaches=score_examples.reaches("BestVariants", chosen=True),
                worst_pairs=f"{score_examples.PLACE}:worst_pairs",
                search=PairSearch(records=9, rounds=4),
                coupled=True,
            ),
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        check.at_least(1, count=self.count)
        if self.epsilon is None and self.parts is None:
            raise ValueError("best-variants takes epsilon=: exponential mechanisms choose the variants.")

    @property
    def num_tested(self) -> int:
        return self.count

    def stages(self):
        before = () if self.null_model is not None else (MODEL, MEAN)
        return (*before, CHOICE, LINES)

    def mechanism_of(self, name, share):
        return TopK(epsilon=share.epsilon, count=self.count) if name == CHOICE else share

    def _started(self, shapes):
        num = partition.num_columns(shapes.x)
        if num < self.count:
            raise ValueError(f"count must be at most the number of variants, got {self.count} of {num}.")
        return super()._started(shapes)

    def tested(self, data):
        return jnp.take(self.variants(data), self.indices, axis=1)

    def p_value(self, key, release):
        """Of each chosen variant, times K."""
        return jnp.minimum(1.0, self.num_variants * self.pair_p_values(key, release))

    @staticmethod
    def chosen(result):
        """Places of the chosen variants (count,), best first: the release before the lines."""
        return result.release.earlier[-2].value


def with_model(test, query, released):
    """The test about the released null model."""
    return dataclasses.replace(test, model=query.model(released))


def with_mean(test, query, released):
    """The test with residuals about their noisy mean."""
    del query
    return dataclasses.replace(test, offset=released.value / released.num_records)


def with_choice(test, query, released):
    """The test of the chosen variants."""
    del query
    return dataclasses.replace(test, indices=released.value)


def with_lines(test, query, released):
    """The test about the lines; the product of their errors with those of the null model has a known variance."""
    noise, count = query.mechanism.variance(released.sensitivity), released.num_records
    if test.null_model is not None:
        means = jnp.clip(released.value / count, -1.0, 1.0)
        return dataclasses.replace(test, lines=Lines(means, jnp.zeros(len(means))))
    model = test.model
    inverse = jnp.linalg.inv(model.gram)
    coefficients = released.value @ inverse
    errors = noise + coefficients**2 @ model.gram_noise  # of the normal equations of each variant, (m, w)
    left = model.moment_noise + model.gram_noise @ model.theta**2  # of those of the phenotype, (w,)
    mean_noise = 2.0 * test.parts[MEAN].variance(_mean_sensitivity(test, count)) * model.limit**2
    shifted = (model.gram[0] / count) ** 2 * (left[0] + mean_noise)
    left = jnp.where(jnp.arange(len(left)) == 0, mean_noise, left + shifted)
    variance = errors @ (inverse**2 @ left) / model.limit**2
    return dataclasses.replace(test, lines=Lines(coefficients, variance))


def _mean_sensitivity(test, count: int):
    return ResidualMean(mechanism=test.parts[MEAN], of=test).sensitivity(count)


STAGES: dict[str, tuple[Any, Any]] = {
    MODEL: (NullModel, with_model),
    MEAN: (ResidualMean, with_mean),
    CHOICE: (VariantChoice, with_choice),
    LINES: (VariantLines, with_lines),
}
