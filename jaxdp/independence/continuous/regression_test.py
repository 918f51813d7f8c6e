"""Regressions of which noisy sums of scores give one slope with its interval: their common base.

Theory: docs/theory/logistic_regression.md. Symbols: `statistics/regression_scores.py`.
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

from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, Relation, Sensitivity, Sequential, answered
from jaxdp.data.dataset import Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.continuous import moment_columns, moment_test, validity
from jaxdp.independence.continuous.moment_stages import PrivateCentres, PrivateSpreads
from jaxdp.independence.continuous.residual_test import GRID, GridSums, MomentMatrix, rare_notes
from jaxdp.mechanisms import Laplace, divide
from jaxdp.randomness import keys
from jaxdp.results import bare
from jaxdp.statistics import moments, regression_scores, residual_scores
from jaxdp.statistics.regression_scores import CLEAR, Start, Sums

# Of the budget (docs/theory/logistic_regression.md#shares); the scores get the rest.
CENTRES_SHARE, SCALES_SHARE, MOMENTS_SHARE = Fraction(6, 100), Fraction(4, 100), Fraction(35, 100)
ROUGH_SHARE = Fraction(1, 5)  # of what the scores get, for each round before the last
SHARES = {"scores": Fraction(3, 4), "information": Fraction(1, 4)}  # of a round
SQUARES = "squares"  # a part of a round, of families that have them
CENTRES, SCALES, MOMENTS, SCORES = "centres", "scales", "moments", "scores"  # what is released next
CLIP = 2.2  # sds about a private centre at which columns are clipped for their moments
SELECTABLE = 20.0  # fewest records times the epsilon of one column's centre for private centres
CLEAR_MOMENTS = 3.0  # sds of the noise that the variance of every direction of the columns must be
LIKELY = 1.5  # times `CLEAR` that the information can be: below it the noise would choose who gets an interval
CLIPPED_VARIANCE = 0.25  # of a column clipped at `CLIP` sds, about
ENDLESS = 0.99  # of the family's limit: an interval that reaches it has no end
FAR = 8.0  # sds of the estimate within which the ends of an interval are sought
MAX_COVARIATES = 10
FAR_BOUNDS = 6.0  # sds of X from its middle, beyond which its bounds leave room for a far tail
LITTLE, UNEVEN, TAIL = "too little information", "uneven columns", "room for a far tail"
NO_WIDTH = (  # of uneven columns
    "There is no interval: X varies otherwise than a column with one middle and two tails, for which alone the width "
    "is known (or through few records alone), or has a slope so steep that this matters. A column of a few numbers is "
    'better declared as kind = "ordinal" with its levels. The p-value needs no such thing.'
)

FAR_TAIL = (
    "Bounds of X lie {reach:.0f} standard deviations from its middle. If records lie that far and the model bends "
    "among them, the interval is that of a slope nearer the middle and may miss the slope without privacy; {way_out}."
)
WAYS_OUT = (  # of a far tail, by whether X is scaled by its logarithm already
    'closer bounds, or scale = "log" of a skewed column, leave no such tail',
    "closer bounds leave no such tail",
)


def refusal(name: str, domain: Domain) -> str:
    """Why no such regression can be asked of X and Z, with the way out; "" where it can."""
    told = f"{name} asks about one column X of numbers or two levels"
    if len(domain.x) != 1:
        return f"{told}, and there are {len(domain.x)}: ask about one at a time"
    if moment_columns.width(domain.x[0]) != 1:
        x = domain.x[0]
        return (
            f"{told}, and {x.name or 'x'} has {x.levels} levels without an order: declare the two that you compare in "
            'the schema (kind = "binary"), and leave the other records out by --missing drop (in Python '
            'missing="drop"), with --force where they are half of all or more; or use linear-regression, which gives a '
            "contrast for each level"
        )
    if moment_columns.widths(domain.z) > MAX_COVARIATES:
        return (
            f"{name} holds up to {MAX_COVARIATES} columns of Z fixed, unordered levels counted one by "
            f"one, and there are {moment_columns.widths(domain.z)}: leave some out"
        )
    return ""


def own_units(x, y) -> float:
    """Of a slope of X on [-1, 1]: per unit of the column, per step between levels, or from the first to the second."""
    return 1.0 / x[0].half_range


def told_of_x(x) -> str:
    """Per what a slope is, from the rule of X."""
    if effect_sizes.is_binary(x):
        return f", {x.name} = {x.levels[1]} against {x.levels[0]}"
    return f" per {x.unit}"


@frozen_pytree
class RegressionTest(GridSums):
    """Base of regressions of y on x and z by one step about a private start: the slope of x, with its interval.

    A subclass has a `family` (`statistics/regression_families.py`), `sentences` for its notes, and its spec says which
    columns it takes. x: one column, numbers or two levels. z: up to ten columns, numbers or codes.
    6 and 4 % of the budget release centres and scales of the continuous columns of x and z, where public numbers say
    that these are more than noise (else nothing: the public bounds serve, and the scores get it); 35 % second moments
    of the columns clipped there, which whiten them and give a start g0; the rest, in one to three rounds by public
    numbers, the sums of the scores w (y - mu(z'g0)) z, with 75 % of a round, and of a row of the information, with
    25 %. Weights w depend on x and z alone, so that neither they nor the clip bend a slope of the model.
    Sensitivity: docs/theory/logistic_regression.md#sensitivity.

    centres, scales, start, stage, rounds: set by the stages (in half ranges).
    """

    centres: Any = None
    scales: Any = None
    start: Any = None
    stage: str = jax.tree.static(default=CENTRES)
    rounds: int = jax.tree.static(default=0)

    roles: ClassVar[tuple[str, ...]] = ("z", "x")
    family: ClassVar[Any]
    sentences: ClassVar[dict[str, str]]  # by names of notes: `LITTLE`, an interval without an end, uneven columns
    shares: ClassVar[dict[str, Fraction]] = SHARES
    most_information: ClassVar[float] = 1.0  # that records have on average, of the largest that one can have

    def mechanism_in_force(self):
        whole = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        return divide(whole, self.shares) if self.stage == SCORES and not self.rounds else whole

    def validity(self, data):
        """Run, or refuse where the noise would surely hide the columns or the information."""
        missing = self._missing(data)
        if missing > 1.0:
            fixed = len(moment_columns.described(data, "z"))
            given = f" given {fixed} column{'s' * (fixed != 1)}" if fixed else ""
            sentence = (
                f"with {data.x.shape[0]} records at this epsilon the noise hides how Y follows X{given}; give about "
                f"{math.ceil(2.0 * missing)} times as many records, or as large an epsilon"
                + (", or hold fewer columns fixed." if fixed else ".")
            )
            return validity.Validity(validity.REFUSE, sentence)
        return validity.Validity(validity.RUN, self.spec.assumption)

    def _missing(self, data) -> float:
        """What the noise is of the largest that leaves something to see."""
        test, num_records = self._with_layout(data), data.x.shape[0]
        private = test._centres_are_known(num_records)
        ahead = dataclasses.replace(test, centres=0.0 if private else None, rounds=0)._moments()
        first, scores = ahead.first, ahead.second
        clear = _clear(scores, num_records)
        if math.isinf(clear):
            return 0.0
        variance = CLIPPED_VARIANCE if private else 1.0
        noise = _sd(first.mechanism, first.sensitivity(num_records)) / num_records
        return max(LIKELY * CLEAR / clear, CLEAR_MOMENTS * noise / variance)

    def specialize(self, shapes):
        """Centres, scales, moments, then the scores, in one round or several."""
        if self.stage == SCORES:
            return self._round() if self.rounds else self
        num_records = shapes.x.shape[0]
        if self.stage == MOMENTS:
            return self._moments()
        if self.stage == SCALES:
            return self._stage(PrivateSpreads, SCALES_SHARE, MOMENTS, _with_scales, centres=self.centres)
        refused = self._refused(shapes)
        if refused:
            raise ValueError(f"{refused}.")
        if num_records > moments.MAX_RECORDS:
            raise ValueError(f"{num_records} records are too many for exact sums, at most {moments.MAX_RECORDS}.")
        if self.enforce_rule:
            self.validity(shapes).require()
        test = self._with_layout(shapes).decided(num_records)
        if test._centres_are_known(num_records):
            return test._stage(PrivateCentres, CENTRES_SHARE, SCALES, _with_centres)
        return test._moments()

    def _refused(self, shapes) -> str:
        """Why these columns have no such regression; of columns without a domain only their numbers are known."""
        if shapes.domain is not None:
            return self.refusal(shapes.domain)
        x, y, z = (moment_columns.described(shapes, role) for role in ("x", "y", "z"))
        if len(y) != 1:
            return f"{self.spec.name} takes one column Y, and there are {len(y)}: ask about one at a time"
        return refusal(self.spec.name, Domain(x, y, z))

    def _centres_are_known(self, num_records: int) -> bool:
        """Whether private centres are more than noise, by public numbers."""
        if not self.num_clipped:
            return False
        whole = moment_test.centre_epsilon(self.mechanism_in_force(), self.num_clipped, CENTRES_SHARE)
        return num_records * whole >= SELECTABLE

    def _stage(self, kind, share, after: str, then, **fields):
        whole = self.mechanism_in_force()
        first = kind(
            mechanism=whole.share(share),
            columns=moment_test.feature_columns,
            num_columns=self.num_clipped,
            bound=self.bound,
            **fields,
        )
        second = dataclasses.replace(self, epsilon=None, mechanism=whole, stage=after)
        return Sequential(first=first, second=second, then=then)

    def _moments(self):
        whole = self.mechanism_in_force()
        scores = self._scores(self.stage == MOMENTS or self.centres is not None)  # released, or planned
        first = MomentMatrix(mechanism=whole.share(MOMENTS_SHARE), of=scores)
        return Sequential(first=first, second=scores, then=_with_start)

    def _scores(self, centred: bool):
        """The stage of scores, after private centres or without them."""
        spent = MOMENTS_SHARE + (CENTRES_SHARE + SCALES_SHARE if centred else 0)
        return dataclasses.replace(
            self, epsilon=None, mechanism=self.mechanism_in_force().share(1 - spent), stage=SCORES
        )

    def decided(self, num_records: int):
        """With the number of rounds before the last, by public numbers; all of them if the budget is traced.

        Before the first stage, since a simulation traces the budget in all later ones.
        """
        scores = dataclasses.replace(self._scores(self._centres_are_known(num_records)), rounds=0)
        clear = _clear(scores, num_records)
        return dataclasses.replace(self, rounds=sum(clear >= least for least in self.family.precise))

    def _round(self):
        """A share for scores about this start; the rest about the slopes that they say."""
        rough = dataclasses.replace(self, mechanism=self.mechanism.share(ROUGH_SHARE), rounds=0)
        rest = dataclasses.replace(self, mechanism=self.mechanism.share(1 - ROUGH_SHARE), rounds=self.rounds - 1)
        return Sequential(first=rough, second=rest, then=_with_sums)

    @property
    def num_clipped(self) -> int:
        """Continuous columns of z and x."""
        return sum(not flag for flag in self.levelled)

    @property
    def width(self) -> int:
        """p, columns of the matrix: z, x and y; as many as coordinates."""
        return len(self.levelled) + 1

    def refusal(self, domain: Domain) -> str:
        """Why these columns cannot be asked about; "" where they can."""
        return self.spec.why_not(domain)

    def response(self, values):
        """Y in the units of the model, (n,), from its column."""
        raise NotImplementedError

    # Private

    def _scaling(self):
        """(centres, half widths) of the columns of z and x, (d,), in half ranges."""
        levelled = np.array(self.levelled)
        if self.centres is None:
            return jnp.zeros(len(levelled)), jnp.ones(len(levelled))
        places = np.maximum(np.cumsum(~levelled) - 1, 0)
        centres, scales = (
            jnp.broadcast_to(jnp.asarray(part), (self.num_clipped,)) for part in (self.centres, self.scales)
        )
        return jnp.where(levelled, 0.0, centres[places]), jnp.where(levelled, 1.0, CLIP * scales[places])

    def _columns(self, data):
        """v (n, d), not clipped but at the public bounds, and y = 0 or 1, (n,)."""
        values = jnp.nan_to_num(jnp.asarray(moment_test.matrix_of(data, False), float), nan=0.0)
        values, response = values[:, :-1], self.response(values[:, -1])
        # levels are clipped too: the bounds of a score rest on it, and nothing else keeps out an infinity
        values = jnp.clip(jnp.where(np.array(self.levelled)[None], values, values / self.bound), -1.0, 1.0)
        centres, halves = self._scaling()
        return (values - centres[None]) / halves[None], response

    def columns(self, data):
        """Columns of z, x and y on the grid of [-1, 1], (n, p)."""
        values, response = self._columns(data)
        return moments.on_grid(jnp.concatenate([values, 2.0 * response[:, None] - 1.0], axis=1))

    @property
    def coded_levels(self) -> tuple[int, ...]:
        """Of z; x has no several levels, and y none."""
        return _of_covariates(self.of_one_level)

    def on_grid(self, data, num_records):
        """Scores, rows of information (n, 2 p) and perhaps squares in units, as whole numbers."""
        values, response = self._columns(data)
        values = residual_scores.with_codes(values, self.coded_levels[:-1])
        return jnp.round(self.start.of(values, response) * GRID)

    def parts(self, every):
        """(p,) of scores and of information, () of squares."""
        p = self.width
        squares = {"squares": every[2 * p]} if self.family.squares else {}
        return {"scores": every[:p], "information": every[p : 2 * p], **squares}

    def sensitivity(self, num_records):
        """Each sum moves by 1 and the roundings of its numbers at most, in units."""
        budget = self.mechanism_in_force()

        def of(name: str):
            norm, size = budget[name].norm, 1 if name == SQUARES else self.width
            moved = 1.0 + 2.0 * (math.sqrt(size) if norm is Norm.L2 else size) / GRID
            limit = np.full(() if name == SQUARES else size, 1.0 * num_records)
            lower = 0.0 * limit if name == SQUARES else -limit
            return Sensitivity(moved, norm, Relation.REPLACE_ONE, lower=lower, upper=limit)

        return {name: of(name) for name in self.shares}

    # What the releases say

    def law(self, release) -> Law:
        """What the last round says about the slope."""
        budget, noise, value = self.mechanism_in_force(), release.sensitivity, release.value
        scales = tuple(budget[name].scale(noise[name]) for name in self.shares)
        per_scale = budget["scores"].variance(noise["scores"]) / jnp.maximum(scales[0], 1e-30) ** 2
        sums_in_units = value["scores"], value["information"]
        found = Sums.of(self.start, *sums_in_units, scales, per_scale, release.num_records, squares=value.get(SQUARES))
        return Law(found, budget["scores"])

    def interpret(self, key, release):
        """The slope of x, per unit of the data, with its interval; NaN where there is none."""
        test, release = jax.lax.stop_gradient((self, release))  # it has none (`gradient_free`), nor what noise hides
        p_value, estimate, interval = test.law(release).effect()
        told = (estimate, *effect_sizes.with_interval(estimate, interval))
        return Interpretation(p_value, *jax.tree.map(lambda value: value * self.unit, told))

    @property
    def unit(self):
        """Slope per unit of the data of a slope per sd of X apart from the others."""
        half = self._scaling()[1][-1] * (1.0 if self.levelled[-1] else self.bound)
        return self.start.root[-1, -1] / half

    @property
    def reach_of_bounds(self):
        """Of the farther bound of X from its middle, in its sds; 0 of levels, and where no centre is known."""
        if self.centres is None or self.levelled[-1]:
            return 0.0
        centres, halves = self._scaling()
        return CLIP * (1.0 + jnp.abs(centres[-1])) / halves[-1]

    @effect_sizes.settled_program
    def one_sided(self, release, effect):
        """By the pivot of the interval; both 1 where there is none."""
        return self.law(release).one_sided(effect / self.unit)

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """The slope that would have been found with power 0.8, at this release's information."""
        return self.law(release).detectable(level) * self.unit

    def effect_notes(self, shapes, release):
        """Why there is no interval, or what it does not allow for; post-processing."""
        with keys.precision(release.mode):  # as in `run`, whose program the interval is read from
            test = self.settled(shapes, release)
            lost = jnp.isnan(answered(test, release).interval[0])
            unknown, uneven = test._doubts(bare(release))
            raised = zip(self.sentences.items(), (unknown, lost & ~unknown & ~uneven, uneven), strict=False)
            reach = float(test.reach_of_bounds)
        notes = {name: sentence for (name, sentence), is_raised in raised if bool(is_raised)}
        logarithmic = shapes.domain is not None and shapes.domain.x[0].logarithmic
        far = FAR_TAIL.format(reach=reach, way_out=WAYS_OUT[logarithmic])
        few, in_place = np.asarray(test.start.few), np.asarray(test.start.in_place)
        return rare_notes(shapes, few & ~in_place, in_place) | (notes or ({TAIL: far} if reach > FAR_BOUNDS else {}))

    @functools.partial(bounded_jit, quickly=True)  # run by itself, its loops would be compiled anew for every answer
    def _doubts(self, release):
        """Whether the information is hidden, whether the columns are uneven."""
        law = self.law(release)
        return law.unknown, law.sums.uneven & ~law.unknown


def _sd(mechanism, sensitivity) -> float:
    """Of the noise, a public number."""
    with jax.enable_x64(True), jax.ensure_compile_time_eval():  # also inside a compiled program
        return float(np.sqrt(np.asarray(mechanism.variance(sensitivity))))


def _clear(test, num_records: int) -> float:
    """Most information that so many records can have, in sds of its noise; infinite where the budget is not known."""
    mechanism = test.mechanism_in_force()["information"]
    if not all(check.is_concrete(leaf) and np.ndim(leaf) == 0 for leaf in jax.tree.leaves(mechanism)):
        return math.inf
    bound = test.sensitivity(num_records)["information"]
    unit = regression_scores.information_unit(test.width - 1, bound.norm is Norm.L2)
    return test.most_information * num_records / (_sd(mechanism, bound) * unit)


def _with_centres(test, query, released):
    """The test about the released centres; scales come next."""
    return dataclasses.replace(test, centres=query.chosen(released))


def _with_scales(test, query, released):
    return dataclasses.replace(test, scales=query.chosen(released))


def _of_covariates(of_one_level: tuple[int, ...]) -> tuple[int, ...]:
    """`of_one_level` of z, and 0 of X and Y."""
    return (*of_one_level[:-1], 0, 0) if of_one_level else ()


def _orthonormal(rows, few):
    """Orthonormal rows (d, d), each a combination of the rows up to it that are not `few`; zeros for those."""
    kept = jnp.where(few[:, None], 0.0, rows)
    lower = jnp.linalg.cholesky(kept @ kept.T + jnp.diag(jnp.where(few, 1.0, 0.0)))
    return jnp.linalg.solve(lower, kept)


# between two stages of a release nothing is traced, and hundreds of small programs would be compiled one by one
@functools.partial(jax.jit, static_argnames=("euclidean", "family", "of_levels", "of_one_level"))
def _started(noisy, reach, centre, euclidean: bool, family, of_levels: bool, of_one_level: tuple[int, ...]) -> Start:
    """of_levels: whether X has levels. reach: of its bounds, in sds. centre: of X, in half ranges."""
    noise = jnp.sqrt(noisy.variance_per_scale) * noisy.scales[-2, -2]
    numbers = np.array(_of_covariates(of_one_level))
    levels = residual_scores.RareLevels.of(noisy, numbers, numbers > 0)
    few = (levels.rare | levels.in_place)[:-1]
    matrix, axes = noisy.matrix, None
    if residual_scores.several_levels(numbers):
        basis = residual_scores.basis_of(numbers)
        back = np.linalg.inv(basis)
        matrix, axes = back @ matrix @ back.T, _orthonormal(basis[1:-1, 1:-1], few)
    found = Start.about(matrix, noise, euclidean, family, few, levels.in_place[:-1], axes)
    if of_levels:
        found = found.about_levels()
    else:
        found = found.about_numbers(noisy.matrix[0, -2], noisy.matrix[-2, -2], jnp.sign(centre), reach > FAR_BOUNDS)
    unheld = jnp.concatenate([levels.shares, levels.first_shares])
    far = found.farthest_level if of_levels else 1.0, family.shift_of_rare(0.5 * (1.0 + noisy.matrix[0, -1]))
    return dataclasses.replace(found, missed=residual_scores.missed_variance(unheld, *far))


def _with_start(test, query, released):
    noisy = jax.tree.map(jax.lax.stop_gradient, query.noisy(released))
    of_x = test.reach_of_bounds, test._scaling()[0][-1]
    return dataclasses.replace(
        test, start=_started(noisy, *of_x, query.euclidean, test.family, test.levelled[-1], test.of_one_level)
    )


_improved = jax.jit(Sums.improved, static_argnames="share")
LAST = float((1 - ROUGH_SHARE) / ROUGH_SHARE)  # budget of the last round over that of the one before


def _with_sums(test, query, released):
    found = jax.tree.map(jax.lax.stop_gradient, query.law(released).sums)
    return dataclasses.replace(test, start=_improved(found, share=0.0 if test.rounds else LAST))


@dataclasses.dataclass(frozen=True)
class Law:
    """What released sums say about the slope of X per sd, with the mechanism of their noise: one pivot for all."""

    sums: Sums
    mechanism: Any

    def _tail(self, score, sd, noise):
        return self.mechanism.combined_p_value(score, sd, noise)

    def p_value(self, slope):
        """Two-sided, of this slope by itself."""
        return self._tail(*self.sums.pivot(slope)[:3])

    def one_sided(self, slope):
        """P-values of the hypotheses that the slope is at most this, and at least this; 1 if there is no interval."""
        score, *rest, _ = self.sums.pivot(slope)
        further = 0.5 * self._tail(score, *rest)
        sides = jnp.where(score < 0.0, 1.0 - further, further), jnp.where(score < 0.0, further, 1.0 - further)
        return tuple(jnp.where(self.unknown | self.sums.uneven | self.sums.start.steep, 1.0, side) for side in sides)

    @property
    def unknown(self):
        """Whether noise hides the information about X, or a direction of the columns."""
        return ~((self.sums.clear >= CLEAR) & (self.sums.start.clear >= CLEAR_MOMENTS))

    def effect(self):
        """(p-value, estimate, interval), all from the pivot; 1 where noise hides all, NaN where there is no end to it.

        The p-value is that of slope 0 and of no slope nearer the estimate, which counts less for the model (#p-value).
        """
        estimate, p_value = self.sums.slope, self.p_value(0.0)  # apart: replicates need the second alone
        _, sd, noise, information = self.sums.pivot(estimate)
        reach = FAR * jnp.sqrt(sd**2 + self.sums.variance_per_scale * jnp.sum(noise**2)) / information
        limit = self.sums.start.family.limit
        lowest = jnp.minimum(jnp.maximum(estimate - reach, -limit), 0.0)
        highest = jnp.maximum(jnp.minimum(estimate + reach, limit), 0.0)
        # `FAR` is sought from the sds at the estimate: where they grow, slopes beyond it are as likely (#no-end)
        sought = jnp.stack([lowest, highest])
        beyond = jax.vmap(self.p_value)(sought) >= effect_sizes.MISS
        lowest, highest = jnp.where(beyond, limit * jnp.array([-1.0, 1.0]), sought)
        low, high = effect_sizes.inverted(self.p_value, p_value, estimate, (lowest, highest))
        hidden = self.unknown | self.sums.uneven | self.sums.start.steep
        hidden = hidden | (low < -ENDLESS * limit) | (high > ENDLESS * limit)
        told = [jnp.where(hidden, jnp.nan, end) for end in (low, high)]
        return jnp.where(self.unknown, 1.0, p_value), estimate, told

    def detectable(self, level):
        """By the pivot at the estimate; infinite if unknown, as the p-value is 1."""
        _, sd, noise, information = self.sums.pivot(self.sums.slope)
        spread = jnp.sqrt(sd**2 + self.sums.variance_per_scale * jnp.sum(noise**2))
        found = effect_sizes.detectable(lambda off: self._tail(off, sd, noise), spread, level) / information
        return jnp.where(self.unknown, jnp.inf, found)
