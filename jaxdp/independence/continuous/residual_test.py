"""Slopes and correlations of residuals with intervals that hold whatever the laws of the columns: their common base.

Theory: docs/theory/residual_scores.md. Symbols: `statistics/residual_scores.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.kept_programs import kept_jit
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, PrivateQuery, PrivateTest, Relation, Sensitivity, Sequential
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import moment_columns, moment_test, score_law, validity
from jaxdp.independence.continuous.score_law import Found
from jaxdp.mechanisms import Laplace, divide
from jaxdp.results import bare
from jaxdp.spec import TestSpec
from jaxdp.statistics import moments, residual_scores, sums
from jaxdp.statistics.residual_scores import Noisy, Scores

MATRIX_SHARE = Fraction(3, 10)  # of the budget, for the moments, without other columns to adjust for
MATRIX_SHARE_GIVEN = Fraction(2, 5)  # with some
SHARES = {"scores": Fraction(3, 4), "squares": Fraction(1, 4)}
GRID = 2.0**24  # scores are rounded to its multiples, in units of their range, so that sums are exact
MATRIX, SCORES = "matrix", "scores"  # what is released next
RARE, HIDDEN, LOST = "rare levels", "other columns hidden by noise", "no interval"
FITS = "noise of what is held fixed"
_WAYS_OUT = "more records, a larger epsilon, closer bounds in the schema"
UNCOMPARED = "first level is rare"
RARE_LEVEL = (
    "A level of {names} is so rare, or absent, that the noise hides whether any record has it. It is not held fixed; "
    "its records, if there are any, count as having {instead}."
)
OTHER_LEVEL, FIRST_LEVEL, COMMON_LEVEL = "the other level", "the first level", "the level that most records have"
NO_FIRST_LEVEL = (
    "The first level of {names}, with which the others are compared, is so rare, or absent, that the noise hides "
    "whether any record has it. So there are no effects, and the p-value compares the other levels with the one that "
    "most records have. If the schema lists first a level that many records have, there are effects."
)
SENTENCES = {
    HIDDEN: f"{effect_sizes.NOTHING}by the noisy moments a column held fixed hardly varies apart from the "
    "others within its bounds, as far as this epsilon shows it, so there is no interval and the p-value is 1. What "
    f"would help: {_WAYS_OUT}, or fewer columns of Z that say nearly the same.",
    LOST: "An interval is missing: the noise hides how far a column varies within its bounds, apart from those held "
    f"fixed. The p-value needs no such number. What would help: {_WAYS_OUT}.",
    FITS: "The noise of how X and Y go with the columns held fixed, and what levels that are not held fixed may leave, "
    "make the interval more than twice as wide as it would be without. What would help: more records, a larger "
    "epsilon, or fewer columns of Z, or levels of them.",
    score_law.DROWNED: "The noise hides how far the columns spread within their bounds, so the interval is as wide as "
    f"the largest spread that fits the release makes it. What would help: {_WAYS_OUT}.",
    score_law.WIDE: "The noise, which is set by the bounds, makes the interval more than twice as wide as it would be "
    f"without. What would help: {_WAYS_OUT}.",
}


@frozen_pytree
class MomentMatrix(PrivateQuery):
    """Sums, and sums of products of columns scaled by their public bounds; no other clip.

    Statistic, sensitivity: those of `statistics/moments.py`; replace-one, p (p + 1.5)^2/(2 (p + 1)) in L1 for p
    columns, sqrt(2) (p + 1/4) in L2 (docs/theory/partial_correlation.md#sensitivity); less where unordered levels have
    codes (docs/theory/residual_scores.md#sensitivity). Privacy: that of the mechanism.
    """

    of: Any = None  # the test, which knows the columns

    method: ClassVar[str] = "MomentMatrix"
    reads_missing: ClassVar[bool] = True

    @property
    def euclidean(self) -> bool:
        """Whether the bound is one in L2."""
        return self.mechanism.norm is Norm.L2

    def statistic(self, key, data):
        """The vector of `moments.vector`."""
        return moments.vector(self.of.coded(data), self.euclidean)

    def partial(self, chunk, num_records=None):
        return sums.added(self, "on_grid", chunk, num_records, moment_test.sums_of_block)

    def on_grid(self, data, num_records):
        """The columns (n, p), as whole numbers."""
        return self.of.coded(data) * moments.GRID

    def finish(self, totals):
        return moment_test.vector_of(totals, self.of.width, self.euclidean)

    def sensitivity(self, num_records):
        bound = residual_scores.moments_bound(self.of.coded_levels, self.euclidean) if self.of.coded_levels else None
        return moment_test.sensitivity_of(self.of.width, self.mechanism.norm, num_records, bound)

    def noisy(self, release) -> Noisy:
        """The moments with their noise: public."""
        scale = self.mechanism.scale(release.sensitivity)
        per_scale = self.mechanism.variance(release.sensitivity) / jnp.maximum(scale, 1e-30) ** 2
        of_levels = self.of.coded_levels
        return _noisy(release.value, release.num_records, self.of.width, self.euclidean, scale, per_scale, of_levels)


# between two stages of a release nothing is traced, and two hundred small programs would be compiled one by one
_noisy = kept_jit(Noisy.of, quickly=True, static_argnums=(2, 3, 6))


@functools.partial(kept_jit, quickly=True, static_argnames=("correlation", "of_one_level", "levelled"))
def _scores_about(
    noisy: Noisy, pairs, given, correlation: bool, of_one_level: tuple[int, ...], levelled: tuple[bool, ...]
) -> Scores:
    def of(x, y, given):
        return residual_scores.scores(noisy, x, y, given, correlation, np.array(of_one_level), np.array(levelled))

    return jax.vmap(of)(pairs[:, 0], pairs[:, 1], given)


def _with_scores(test, query, released):
    return dataclasses.replace(test, about=test.scores_about(query.noisy(released)))


@frozen_pytree
class GridSums(PrivateTest):
    """Base of tests on sums of scores that are rounded to a grid, on which sums are exact.

    bound: public half range of continuous columns; values outside are clipped.
    enforce_rule: False runs the test even where the noise surely hides the columns.
    levelled, of_one_level: set by the stages, of each column in the matrix (whether it has levels, which lie on
        [-1, 1]; of one that says of one level who has it, the number of its column, else 0).
    """

    bound: ArrayLike = 1.0
    enforce_rule: bool = jax.tree.static(default=True)
    levelled: tuple[bool, ...] = jax.tree.static(default=())
    of_one_level: tuple[int, ...] = jax.tree.static(default=())

    spec: ClassVar[TestSpec]
    roles: ClassVar[tuple[str, ...]] = moment_columns.ROLES  # whose columns the fields above describe
    reads_missing: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True
    lattice: ClassVar[float] = 1.0 / GRID  # a rounding may go the other way in another program
    gradient_free = moments.ROUNDED

    def __post_init__(self):
        super().__post_init__()
        check.positive(bound=self.bound)

    def _with_layout(self, shapes):
        columns = moment_columns.every(shapes, self.roles)
        levelled, one = moment_columns.flags(columns), moment_columns.of_one_level(columns)
        return dataclasses.replace(self, levelled=levelled, of_one_level=one)

    @property
    def coded_levels(self) -> tuple[int, ...]:
        """`of_one_level` of the columns whose moments are released as those of codes; () of none."""
        return ()

    def columns(self, data):
        """Columns of the matrix on the grid of [-1, 1], (n, p)."""
        raise NotImplementedError

    def coded(self, data):
        """The columns whose moments are released, (n, p)."""
        return residual_scores.coded(self.columns(data), self.coded_levels)

    def on_grid(self, data, num_records):
        """Scores (n, k) of the records in units, as whole numbers of at most `GRID`."""
        raise NotImplementedError

    def parts(self, every):
        """What is released, by names, of the sums (k,)."""
        raise NotImplementedError

    def statistic(self, key, data):
        """Dict of the sums."""
        return self.parts(jnp.sum(self.on_grid(data, None), axis=0) / GRID)

    def partial(self, chunk, num_records=None):
        return sums.added(self, "on_grid", chunk, num_records, lambda values: {"sums": sums.totals(values, GRID)})

    def finish(self, totals):
        return self.parts(totals["sums"] / GRID)


@dataclasses.dataclass(frozen=True)
class FoundWithSpread(Found):
    """With the sum of what is released of spreads, in units of `about.widest`: noise that has chosen nothing."""

    spreads: Any

    @property
    def estimate(self):
        return jnp.clip(super().estimate, *self.about.limits)

    @property
    def _per_unit(self):
        bias, _ = self.about.of_spread
        mean = self.spreads * self.about.widest / self.num_records + self.about.tilt * self._mean
        return jnp.maximum(mean - bias, residual_scores.LEAST)

    def _scales(self, off):
        scale = self.budget["scores"].scale(self.sensitivity["scores"])
        _, products = self.about.of_spread
        spread = jnp.sqrt(
            (scale * self.about.widest / self.num_records) ** 2
            + products / jnp.maximum(self._variance_per_scale, 1e-30)
        )
        return jnp.stack([self._noise * jnp.abs(1.0 - off * self.about.tilt), spread * jnp.abs(off)])

    def notes(self):
        others = self._sampling_variance + self._noise_variance
        wide = self.about.variance > score_law.WIDE_NOISE * others
        return {FITS: wide & ~self.about.unknown} | super().notes()


@frozen_pytree
class ResidualTest(GridSums):
    """Base of tests on sums of scores of residuals, about the fits of a noisy moment matrix.

    about, stage, sizes: set by the stages (`Scores` of each query; widths of z, x, y).
    """

    about: Any = None
    stage: str = jax.tree.static(default=MATRIX)
    sizes: tuple[int, int, int] = jax.tree.static(default=(0, 1, 1))

    without_z: ClassVar[str]  # what is assumed where nothing is held fixed
    averages_rows: ClassVar[bool] = True
    correlation: ClassVar[bool] = False

    def mechanism_in_force(self):
        whole = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        return divide(whole, SHARES) if self.stage == SCORES else whole

    def _with_layout(self, shapes):
        return dataclasses.replace(super()._with_layout(shapes), sizes=moment_columns.sizes(shapes))

    def specialize(self, shapes):
        """The moments, then the scores. Errors: ValueError for too many records, or too few."""
        if self.stage == SCORES:
            return self
        num_records = shapes.x.shape[0]
        if num_records > moments.MAX_RECORDS:
            raise ValueError(f"{num_records} records are too many for exact sums, at most {moments.MAX_RECORDS}.")
        if self.enforce_rule:
            self.validity(shapes).require()
        return self._stages(shapes)

    def _stages(self, shapes):
        whole, test = self.mechanism_in_force(), self._with_layout(shapes)
        share = MATRIX_SHARE_GIVEN if test.adjusts else MATRIX_SHARE
        scores = dataclasses.replace(test, epsilon=None, mechanism=whole.share(1 - share), stage=SCORES)
        return Sequential(first=MomentMatrix(mechanism=whole.share(share), of=scores), second=scores, then=_with_scores)

    @property
    def coded_levels(self) -> tuple[int, ...]:
        return self.of_one_level

    @property
    def adjusts(self) -> bool:
        """Whether columns are held fixed."""
        z, x, _ = self.sizes
        return z + x > 1

    @property
    def width(self) -> int:
        """p, columns of the matrix."""
        return sum(self.sizes)

    def validity(self, data):
        """Run, or refuse where the noise would surely hide the columns; the sentence names the assumption."""
        least = self._least_variance(data)
        if least > 1.0:
            sentence = (
                f"with {data.x.shape[0]} records at this epsilon the noise of the moments of "
                f"{self._with_layout(data).width} columns is larger than any variance within the bounds; give about "
                f"{math.ceil(2.0 * least)} times as many records, or as large an epsilon."
            )
            return validity.Validity(validity.REFUSE, sentence)
        held = data.z is not None and np.shape(data.z)[-1:] != (0,)
        return validity.Validity(validity.RUN, self.spec.assumption if held else self.without_z)

    def _least_variance(self, data) -> float:
        """The variance on [-1, 1] that a column held fixed, or X, must have to be seen; 0 if that is not known."""
        first = self._stages(data).first
        try:
            scale = first.mechanism.variance(first.sensitivity(data.x.shape[0]))
        except (TypeError, ValueError):
            return 0.0
        if not check.is_concrete(scale):
            return 0.0
        return residual_scores.CLEAR * math.sqrt(float(scale)) / data.x.shape[0]

    # Private

    def columns(self, data):
        """Columns of z, x and y on the grid of [-1, 1], (n, p)."""
        values = jnp.asarray(moment_test.matrix_of(data, False), float)  # sums on the grid are exact in float64
        return moments.on_grid(jnp.where(jnp.asarray(self.levelled)[None], values, values / self.bound))

    def on_grid(self, data, num_records):
        """Scores, spreads and squares (n, 3 m) of m queries in units of their ranges, as whole numbers."""
        values = self.columns(data)

        def of(about):
            scores, spreads = about.of(values)
            return scores / about.range, spreads / about.widest, (scores / about.largest) ** 2

        return jnp.round(jnp.concatenate(jax.vmap(of)(self.about)).T * GRID)

    def parts(self, every):
        """Of scores and spreads, (2 m,), and of squares, (m,)."""
        m = every.shape[0] // 3
        return {"scores": every[: 2 * m], "squares": every[2 * m :]}

    def sensitivity(self, num_records):
        """In their units a score and its spread move by 1 and two roundings together, a square by 1 and one."""
        budget, m = self.mechanism_in_force(), len(self.queries()[0])
        limit = np.full(m, 1.0 * num_records)

        def of(name: str, numbers: int, lower, upper):
            norm = budget[name].norm
            moved = (1.0 + numbers / GRID) * (math.sqrt(m) if norm is Norm.L2 else m)
            return Sensitivity(moved, norm, Relation.REPLACE_ONE, lower=lower, upper=upper)

        return {
            "scores": of("scores", 2, np.concatenate([-limit, 0.0 * limit]), np.concatenate([limit, limit])),
            "squares": of("squares", 1, 0.0 * limit, limit),
        }

    # What the releases say

    def queries(self) -> tuple[np.ndarray, np.ndarray]:
        """(x, y) columns of each query, (m, 2), and the columns held fixed, (m, p) bool: z and the other x."""
        z, x, y = self.sizes
        pairs = np.array([(i, j) for i in range(z, z + x) for j in range(z + x, z + x + y)])
        given = np.zeros((len(pairs), self.width), bool)
        given[:, : z + x] = True
        given[np.arange(len(pairs)), pairs[:, 0]] = False
        return pairs, given

    def scores_about(self, noisy: Noisy) -> Scores:
        """The scores of each query, stacked; no gradient passes (`no_gradient`): sides of equal moments have none."""
        pairs, given = self.queries()
        noisy = jax.tree.map(jax.lax.stop_gradient, noisy)
        return _scores_about(noisy, pairs, given, self.correlation, self.of_one_level, self.levelled)

    def _each(self, release, what, *more):
        """what(FoundWithSpread, ...) for each query, with its part of more."""
        budget, moved, n = self.mechanism_in_force(), release.sensitivity, release.num_records

        def of(about, scores, spreads, squares, *more):
            return what(FoundWithSpread(budget, about, scores, squares, moved, n, spreads), *more)

        scores, spreads = jnp.split(release.value["scores"], 2)
        return jax.vmap(of)(self.about, scores, spreads, release.value["squares"], *more)

    def interpret(self, key, release):
        """Estimates of each x and y, noise in them, with intervals; NaN where there is none.

        Of one 95 %; those of several hold together with probability 0.95, as their p-value counts them all.
        """
        p_values, estimate, interval = self._each(
            release, lambda found: (found.p_value(0.0), found.estimate, found.interval(self._miss))
        )
        effect, units = jnp.where(jnp.isnan(interval[0]), jnp.nan, estimate), self.units()
        told = jax.tree.map(lambda values: self._shaped(values * units), (estimate, effect, interval))
        return Interpretation(null_laws.bonferroni(jnp.where(self.about.hidden, 1.0, p_values)), *told)

    @effect_sizes.settled_program
    def one_sided(self, release, effect):
        """By the pivot of the intervals, of each x and y; both 1 where there is none."""
        sides = self._each(release, lambda found, target: found.one_sided(target), effect / self.units())
        return tuple(map(self._shaped, sides))

    @property
    def _miss(self) -> float:
        """One minus the coverage of each interval."""
        return score_law.MISS / len(self.queries()[0])

    def units(self):
        """What 1 of each query means in units of the data, (m,)."""
        return jnp.ones(len(self.queries()[0]))

    def _shaped(self, values):
        _, x, y = self.sizes
        return values[0] if x * y == 1 else values.reshape(x, y)

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """Smallest effect that would have been found with power 0.8, at the spread and the noise of this release.

        In units of the data, of each x and y. Infinite where the p-value is 1, since noise hides what is held fixed;
        NaN where it hides the scale of the effect alone, which may be found nevertheless.
        """
        each = level / len(self.queries()[0])  # Bonferroni's p-value counts them all
        found = self._each(release, lambda found: found.detectable(each))
        return self._shaped(jnp.where(self.about.hidden, jnp.inf, found) * self.units())

    def effect_notes(self, shapes, release) -> dict[str, str]:
        """Why there is no interval, or a wide one; post-processing."""
        test = self.settled(shapes, release)
        raised, z = test._raised(bare(release)), test.sizes[0]
        rare, in_place = (np.asarray(part).any(axis=0) for part in (test.about.rare, test.about.in_place))
        of_x = in_place & (np.arange(test.width) >= z)
        notes = rare_notes(shapes, rare, in_place & ~of_x)
        if of_x.any():
            names = moment_columns.names(moment_columns.owners(shapes, of_x))
            notes[UNCOMPARED] = NO_FIRST_LEVEL.format(names=names)
        return notes | {name: sentence for name, sentence in SENTENCES.items() if bool(raised[name])}

    @functools.partial(
        bounded_jit, quickly=True
    )  # run by themselves, dozens of small programs cost an answer more than its release
    def _raised(self, release):
        about, notes = self.about, self._each(release, lambda found: found.notes())
        raised = {HIDDEN: about.hidden, LOST: about.unknown & ~about.hidden & ~about.uncompared} | notes
        return jax.tree.map(jnp.any, raised)


def rare_notes(shapes, rare, in_place) -> dict[str, str]:
    """Of which columns a level is not held fixed, and what its records count as. rare, in_place: (p,) of the matrix."""
    replaced = list(map(id, moment_columns.owners(shapes, in_place)))
    kinds: dict[str, list] = {}
    for column in moment_columns.owners(shapes, np.logical_or(rare, in_place)):
        instead = OTHER_LEVEL if moment_columns.width(column) == 1 else FIRST_LEVEL
        kinds.setdefault(COMMON_LEVEL if id(column) in replaced else instead, []).append(column)
    told = [RARE_LEVEL.format(names=moment_columns.names(kinds[instead]), instead=instead) for instead in kinds]
    return {RARE: " ".join(told)} if told else {}
