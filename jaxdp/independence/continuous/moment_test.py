"""One noisy moment matrix of all columns, and what its tests share: private centres and scales, budget, bounds.

Theory: docs/theory/partial_correlation.md. Symbols: M, t0 (`statistics/moments.py`), T = `clip`.
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
from jaxdp.independence.continuous.moment_stages import NORMAL_QUARTILE, PrivateCentres, PrivateScales
from jaxdp.mechanisms import Laplace
from jaxdp.spec import TestSpec
from jaxdp.statistics import moments, partial_correlations, partition, sums

CENTRE_SHARE = 0.175  # of the budget, for private centres; the rest of a quarter for scales
SCALE_SHARE = 0.075
CENTRE_BUDGET = 87.5  # fewest records times the epsilon of one column's centre: 500 CENTRE_SHARE (#few-records)
CENTRES, SCALES, MATRIX = "centres", "scales", "matrix"  # what is released next
MARGINS, NARROW_COLUMN = "margins", "narrow column"  # flags
NATURAL_BOUND = 32.0  # half range of columns in units of their own


def from_domain(cls, epsilon, domain, options):
    """The builder: a schema scales columns to [-1, 1], natural units have wide bounds."""
    return cls(epsilon=epsilon) if domain is not None else cls(epsilon=epsilon, bound=NATURAL_BOUND)


@frozen_pytree
class MomentTest(PrivateTest):
    """Base of tests on one noisy moment matrix of the columns of z, x and y.

    bound: public half range of continuous columns; values outside are clipped. centres, scales: public centre and sd
        of each continuous column, numbers or (p,) in the order z, x, y; default: private ones, a quarter of the budget.
    clip: T, sds about the centre at which columns are clipped; default by n and the budget.
    clip_z: T of the columns of z; default as wide as the noise allows (#wide), or `clip` where that is given.
    features: all pairs of the columns of x, and y is x (`jaxdp.all_pairs` sets it).
    normal: whether all columns are known to be normal together. Without it columns that are clipped at a private scale
        have an estimate and no interval (#no-interval).
    enforce_rule: False runs the test even where too few records for private centres cost the level.
    scale_budget, stage, linear, sizes, group: set by `specialize` (group: the column of two levels, where the other is
        clipped and there are no more).
    """

    bound: ArrayLike = 1.0
    centres: Any = None
    scales: Any = None
    clip: ArrayLike | None = None
    clip_z: ArrayLike | None = None
    features: bool = jax.tree.static(default=False)
    enforce_rule: bool = jax.tree.static(default=True)
    normal: bool = jax.tree.static(default=False)
    scale_budget: Any = None
    stage: str = jax.tree.static(default=CENTRES)
    linear: tuple[bool, ...] = jax.tree.static(default=())
    sizes: tuple[int, int, int] = jax.tree.static(default=(0, 1, 1))
    group: int | None = jax.tree.static(default=None)

    reads_missing: ClassVar[bool] = True
    averages_rows: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True
    flags: ClassVar[tuple[str, ...]] = (MARGINS, NARROW_COLUMN)
    spec: ClassVar[TestSpec]
    default_mechanism = Laplace

    def __post_init__(self):
        super().__post_init__()
        check.positive(bound=self.bound)
        if self.scales is not None:
            check.positive(scales=self.scales)
        if self.clip is not None:
            check.positive(clip=self.clip)
        if self.clip_z is not None:
            check.positive(clip_z=self.clip_z)
        if self.stage == CENTRES and (self.scales is None) != (self.centres is None):
            raise ValueError("centres and scales belong together: give both, or neither for private ones.")

    def among(self):
        """This test for all pairs of the columns of x."""
        return dataclasses.replace(self, features=True)

    def validity(self, data):
        """Run, or refuse too few records for private centres and scales; the sentence says what the level rests on."""
        return self._with_layout(data)._centres_rule(data.x.shape[0]) or validity.Validity(
            validity.RUN, self.spec.assumption
        )

    def margins(self, data) -> tuple[str, ...]:
        """The flag of a test given Z, unless no column is clipped: "margins" (#far-from-normal)."""
        test = self._with_layout(data)
        return (MARGINS,) if test.sizes[0] and test.num_clipped else ()

    def _centres_rule(self, num_records: int):
        """The refusal where private centres and scales are noise, so that clips lie anywhere; else None."""
        private = self.num_clipped and self.stage == CENTRES and self.centres is None
        each = centre_epsilon(self.mechanism_in_force(), self.num_clipped) if private else math.inf
        if not num_records * each < CENTRE_BUDGET:
            return None
        sentence = (
            f"with {num_records} records at this budget private centres and scales of {self.num_clipped} continuous "
            f"columns are mostly noise, and true nulls would be rejected too often: about {CENTRE_BUDGET / each:.0f} "
            "records are needed; give more records or a larger epsilon, or, in Python, public centres= and scales=."
        )
        return validity.Validity(validity.REFUSE, sentence)

    def specialize(self, shapes):
        """Adds the stages that release centres and scales. Errors: ValueError for too many records, or too few."""
        return self._with_stages(shapes)

    def _with_stages(self, shapes):
        test = self._with_layout(shapes)
        num_records = shapes.x.shape[0]
        if num_records > moments.MAX_RECORDS:
            raise ValueError(f"{num_records} records are too many for exact sums, at most {moments.MAX_RECORDS}.")
        rule = test._centres_rule(num_records) if test.enforce_rule else None
        if rule is not None:
            rule.require()
        if test.num_clipped and test.stage == CENTRES and test.centres is None:
            return test._after_centres()
        if test.num_clipped and test.stage == SCALES:
            return test._after_scales()
        return test._with_clip(num_records)

    def _after_centres(self):
        whole = self.mechanism_in_force()
        rest = dataclasses.replace(
            self,
            epsilon=None,
            mechanism=whole.share(1.0 - CENTRE_SHARE - SCALE_SHARE),
            scale_budget=whole.share(SCALE_SHARE),
            stage=SCALES,
        )
        first = PrivateCentres(mechanism=whole.share(CENTRE_SHARE), **self._stage())
        return Sequential(first=first, second=rest, then=_with_centres)

    def _after_scales(self):
        rest = dataclasses.replace(self, scale_budget=None, stage=MATRIX)
        centres = 0.0 if self.centres is None else self.centres / self.bound  # None: asked for the cost alone
        first = PrivateScales(mechanism=self.scale_budget, centres=centres, **self._stage())
        return Sequential(first=first, second=rest, then=_with_scales)

    def _with_layout(self, shapes):
        roles = moment_columns.ROLES[:2] if self.features else moment_columns.ROLES
        columns = moment_columns.every(shapes, roles)
        linear = moment_columns.flags(columns)
        sizes = moment_columns.sizes(shapes, roles)
        return dataclasses.replace(self, sizes=sizes, linear=linear, group=_group(columns, linear))

    def _stage(self) -> dict[str, Any]:
        columns = feature_columns if self.features else every_column
        return {"columns": columns, "num_columns": self.num_clipped, "bound": self.bound}

    @property
    def num_clipped(self) -> int:
        """Continuous columns of the matrix."""
        return sum(not flag for flag in self.linear)

    @property
    def width(self) -> int:
        """p, columns of the matrix."""
        return len(self.linear)

    def _with_clip(self, num_records: int):
        if self.clip is not None:
            return dataclasses.replace(self, clip_z=self.clip if self.clip_z is None else self.clip_z)
        noise = jnp.sqrt(self.mechanism_in_force().variance(self.sensitivity(num_records)))
        noise = noise / (2.0**0.5 if self._euclidean else 1.0)
        clip = moments.best_clip(num_records, noise)
        wide = moments.wide_clip(num_records, noise, clip, self.sizes[0])
        return dataclasses.replace(self, clip=clip, clip_z=wide if self.clip_z is None else self.clip_z)

    @property
    def _euclidean(self) -> bool:
        return self.mechanism_in_force().norm is Norm.L2

    def statistic(self, key, data):
        """The vector of `moments.vector`."""
        return moments.vector(moments.on_grid(self._clipped(data)), self._euclidean)

    def partial(self, chunk, num_records=None):
        """Second moments and sums of the columns on the grid: the same numbers that `statistic` adds up."""
        return sums.added(self, "on_grid", chunk, num_records, sums_of_block)

    def on_grid(self, data, num_records):
        """The clipped columns (n, p), as whole numbers."""
        return moments.on_grid(self._clipped(data)) * moments.GRID

    def finish(self, totals):
        return vector_of(totals, self.width, self._euclidean)

    def pairwise(self, data):
        """`statistic` for all pairs of the columns of x."""
        return self.statistic(None, data)

    def pairwise_of_sums(self, totals):
        """`finish`, as `pairwise`."""
        return self.finish(totals)

    def _clipped(self, data):
        values = matrix_of(data, self.features)
        linear = jnp.asarray(self.linear)
        limits = self._levels() * _positive(self._of_clipped(self.scales, 1.0))
        bound = jnp.asarray(self.bound)
        within = jnp.clip(values, -bound, bound)
        clipped = (within - self._of_clipped(self.centres, 0.0)[None]) / limits[None]
        return jnp.where(linear[None], values, clipped)

    def _levels(self):
        """T of each column, (p,)."""
        given = jnp.arange(self.width) < self.sizes[0]
        return jnp.where(given, jnp.asarray(self.clip_z), jnp.asarray(self.clip))

    def _of_clipped(self, values, other: float):
        """A number for each clipped column, (p,), as one for each column; `other` for those that no clip touches."""
        if self.num_clipped == 0:
            return jnp.full(self.width, other)
        values = jnp.broadcast_to(jnp.asarray(values, float), (self.num_clipped,))
        places = [sum(not flag for flag in self.linear[:j]) for j in range(self.width)]
        picked = values[jnp.asarray([min(place, self.num_clipped - 1) for place in places])]
        return jnp.where(jnp.asarray(self.linear), other, picked)

    def sensitivity(self, num_records):
        return sensitivity_of(self.width, self.mechanism_in_force().norm, num_records)

    def correlations(self, release, without=None) -> partial_correlations.Correlations:
        """What the release says about all columns: public. without: (p,) bool, columns that count as unrelated."""
        p, n = self.width, release.num_records
        mechanism, weights = self.mechanism_in_force(), jnp.asarray(moments.weights(p, self._euclidean))
        scale = mechanism.scale(release.sensitivity)
        noise_variance = mechanism.variance(release.sensitivity) / jnp.maximum(scale, 1e-30) ** 2
        theta = moments.means(release.value, n, p, self._euclidean)
        if without is not None:
            theta = moments.unrelated(theta, without, moments.clipped_variance(jnp.asarray(self._levels())))
        return partial_correlations.estimates(theta, self.linear, n, scale / (weights * n), noise_variance)

    def limits(self):
        """What w = 1 means in a column's own units, (p,): T times its scale; 1 for public levels."""
        return jnp.where(jnp.asarray(self.linear), 1.0, self._levels() * self._of_clipped(self.scales, 1.0))

    def column_indices(self) -> tuple[range, range, range]:
        """Columns of the matrix that are z, x, y."""
        z, x, y = self.sizes
        return range(z), range(z, z + x), range(z + x, z + x + y)

    def queries(self) -> tuple[np.ndarray, np.ndarray]:
        """(x, y) columns of each estimate, (Q, 2), and what is given, (Q, p) bool: every pair of x and y given z."""
        z, x, y = self.column_indices()
        pairs = [(i, j) for i in x for j in x if i < j] if self.features else [(i, j) for i in x for j in y]
        given = np.zeros((len(pairs), self.width), bool)
        given[:, list(z)] = True
        return np.array(pairs).reshape(-1, 2), given

    def null_and_estimate(self, found, x, y, given):
        """(estimate whose law is that of a true value 0, estimate whose law is that of its own value)."""
        raise NotImplementedError

    @property
    def _miss(self) -> float:
        """One minus the coverage of each interval; pairs of features have one p-value each."""
        return effect_sizes.MISS / (1 if self.features else len(self.queries()[0]))

    def interval(self, estimate):
        """(low, high) for the second estimate; those of all pairs of x and y hold together with probability 0.95."""
        half = self.half_width(estimate)
        return estimate.value - half, estimate.value + half

    def _asked(self, release):
        pairs, given = self.queries()
        found = self.correlations(release)

        def ask(x, y, given):
            return self.null_and_estimate(found, x, y, given)

        return jax.vmap(ask)(jnp.asarray(pairs[:, 0]), jnp.asarray(pairs[:, 1]), jnp.asarray(given))

    def pair_p_values(self, key, release):
        """One p-value for each pair of columns: (p, q), (pairs,) of features, a scalar for one pair; noise counted."""
        found = self._null_p_values(self._asked(release)[0])
        return self._shaped(jnp.where(self.is_narrow(release), 1.0, found))

    def _null_p_values(self, null):
        return self.mechanism_in_force().combined_p_value(null.value, null.sd, null.noise)

    def is_narrow(self, release):
        return jnp.any(self.narrow_columns(release))

    def narrow_columns(self, release):
        """Which clipped columns hardly vary within their clip, by the release, so that unclipping reads noise: (p,).

        A column far narrower than its public bounds is clipped to a constant: no private centre or scale is so fine.
        """
        p, n = self.width, release.num_records
        theta = moments.means(release.value, n, p, self._euclidean)
        squares, means = theta[moments.squares(p)], theta[-p:]
        noise = jnp.sqrt(self.mechanism_in_force().variance(release.sensitivity)) / n
        normal = moments.clipped_variance(jnp.asarray(self._levels()))
        least = jnp.minimum(NARROW * normal + 2.0 * noise, MAX_NARROW * normal)
        return ~jnp.asarray(self.linear) & (squares - means**2 < least)

    def released_flags(self, shapes, release) -> dict[str, str]:
        """A column narrower than its bounds can show, with the sentence; post-processing."""
        test = self.settled(shapes, release)
        return {NARROW_COLUMN: TOO_NARROW} if bool(test.is_narrow(release)) else {}

    def no_gradient(self, name):
        return moments.ROUNDED

    def pair_statistics(self, release):
        """The estimate of each pair."""
        return self._shaped(self._asked(release)[1].value)

    def interpret(self, key, release):
        """The estimates, noise in them, with an interval of 95 % that counts it; arrays (p, q) or scalars.

        No interval (NaN) where it and the p-value, which takes the null's variance, would contradict each other, and
        for clipped columns that nobody says to be `normal`. Nothing (NaN) where a column is narrow.
        """
        null, estimate = self._asked(release)
        narrow, p_values = self.is_narrow(release), self._null_p_values(null)
        low, high = effect_sizes.agreeing(self.interval(estimate), p_values, self._miss)
        hidden = narrow | (not (self.has_interval or self.num_clipped == 0))
        interval = tuple(jnp.where(hidden, jnp.nan, end) for end in (low, high))
        told = (estimate.value, jnp.where(narrow, jnp.nan, estimate.value), interval)
        p_value = null_laws.bonferroni(jnp.where(narrow, 1.0, p_values))
        return Interpretation(p_value, *jax.tree.map(self._shaped, told))

    @property
    def has_interval(self) -> bool:
        """Whether the law of clipped columns is known well enough for one."""
        return self.normal

    def half_width(self, estimate):
        """x with P(|error| >= x) = 0.05 over the number of pairs of x and y, noise counted."""
        budget = self.mechanism_in_force()
        spread = jnp.sqrt(estimate.sd**2 + 2.0 * jnp.sum(estimate.noise**2, axis=-1))

        def tail(value):
            return budget.combined_p_value(value, estimate.sd, estimate.noise)

        return null_laws.two_sided_quantile(tail, spread, self._miss)

    def _shaped(self, values):
        if self.features:
            return values
        _, x, y = self.sizes
        return values[0] if x * y == 1 else values.reshape(x, y)


def sums_of_block(values) -> dict[str, Any]:
    """Of columns (n, p) on the grid, as whole numbers: what `vector_of` reads."""
    return {
        "count": np.int64(len(values)),
        "products": sums.second_moments(values, moments.GRID),
        "sums": sums.totals(values, moments.GRID),
    }


def vector_of(totals, num_columns: int, euclidean: bool):
    """`moments.vector` from `sums_of_block`."""
    flat = totals["products"][np.triu_indices(num_columns)] / moments.GRID**2
    return np.concatenate([flat, totals["sums"] / moments.GRID]) * moments.weights(num_columns, euclidean)


def sensitivity_of(num_columns: int, norm: Norm, num_records: int, bound: float | None = None) -> Sensitivity:
    """How far one record moves `moments.vector`: as far as in the box, or by a bound that is known."""
    euclidean = norm is Norm.L2
    limit = moments.weights(num_columns, euclidean) * num_records
    if bound is None:
        bound = moments.frobenius_bound(num_columns) if euclidean else moments.l1_bound(num_columns)
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, lower=-limit, upper=limit)


def _group(columns, linear) -> int | None:
    """Place of the column of two levels, if the matrix holds it and a clipped one alone; its response is a mixture."""
    if sorted(linear) != [False, True]:
        return None
    levels = [column.levels for column in columns]
    return levels.index(2) if 2 in levels else None


def _positive(values):
    return jnp.where(values > 0, values, jnp.nan) if not isinstance(values, float) else values


def matrix_of(data, features: bool):
    """Columns of z, x and y (of z and x if they are features) as numbers, (n, p)."""
    made = []
    for role in moment_columns.ROLES[:2] if features else moment_columns.ROLES:
        if getattr(data, role) is not None:
            columns = moment_columns.described(data, role)
            made.append(moment_columns.numbers(partition.as_matrix(getattr(data, role)), columns))
    return jnp.concatenate(made, axis=1)


def _clipped_columns(data, features: bool):
    roles = moment_columns.ROLES[:2] if features else moment_columns.ROLES
    flags = moment_columns.flags(moment_columns.every(data, roles))
    return matrix_of(data, features)[:, jnp.asarray([j for j, flag in enumerate(flags) if not flag], int)]


def every_column(data):
    return _clipped_columns(data, False)


def feature_columns(data):
    return _clipped_columns(data, True)


def _with_centres(test, query, released):
    """The test about the released centres; scales come next."""
    return dataclasses.replace(test, centres=query.chosen(released) * query.bound)


def _with_scales(test, query, released):
    return dataclasses.replace(test, scales=query.chosen(released) * query.bound / NORMAL_QUARTILE)


NARROW, MAX_NARROW = 0.2, 0.5  # of a clipped normal column's variance
TOO_NARROW = (
    f"{effect_sizes.NOTHING}by its noisy variance a column is far narrower than its bounds, so that clipping leaves a "
    "constant, and the p-value is 1. Closer bounds in the schema would help."
)


def winsorised(test, x, y, interval) -> str:
    """What the estimate is where columns are clipped at a private scale, and what an interval would take."""
    if interval is not None or test.normal or not any(rule.is_continuous for rule in (*x, *y)):
        return ""
    return (
        ", estimated from columns winsorised at a private scale as if they were normal: another number where they are "
        "not, so no interval is given (in Python fields={'normal': True} asserts normal columns and gives one)"
    )


def centre_epsilon(budget, num_columns: int, share_of_all: float | Fraction = CENTRE_SHARE) -> float:
    """What the selection of one column's centre gets in epsilon (zCDP: rho = epsilon^2/8); infinite if not known."""
    share = float(share_of_all) / num_columns
    rho, epsilon = getattr(budget, "rho", None), getattr(budget, "epsilon", None)
    known = rho if rho is not None else epsilon
    if known is None or not check.is_concrete(known) or np.ndim(known):
        return math.inf
    return math.sqrt(8.0 * share * float(np.asarray(rho))) if rho is not None else share * float(np.asarray(known))
