"""PartGCM: exact centring within public cells of Z, one noisy sum. The recommended test.

Theory: docs/theory/partition_gcm.md. Symbols: C_b, S =
`covariance`, V = `variance`, tau = `winsorize` times `scale_x`, `scale_y`; K = `num_cells`.
"""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Interpretation, Norm, Relation, Sensitivity, Sequential
from jaxdp.independence import builders, effect_sizes
from jaxdp.independence.continuous.coarse_cells import WithinCells, needs_axes
from jaxdp.independence.continuous.partition_stages import (
    AxisSelection,
    Standardization,
    centring_groups,
    select,
    standardize,
)
from jaxdp.mechanisms import Exact, Laplace, Split, divide
from jaxdp.spec import LINEAR, MONOTONE, Planning, TestSpec
from jaxdp.statistics import partition, sums
from jaxdp.statistics.winsorize import best_level

# Sensitivities under replace-one (docs/theory/partition_gcm.md#sensitivity). A record's arrival or departure moves a
# cell's C_b by less than 4 and its V_b by a value in [-2, 4] (arrival), so a replacement moves S by 8 and V by 6 at
# most; the V of several regions move by 4 each, 8 in all.
COVARIANCE_L1 = 8.0
COVARIANCE_ONE_CELL = 4.0  # without z: both records are centred at the mean of the same n - 1 others (#one-cell)
VARIANCE_ONE_REGION = 6.0
VARIANCE_REGIONS_L1 = 8.0
SHARES = {"covariance": 0.85, "variance": 0.15}  # power is nearly flat for 0.85-0.95 and poor below 0.7
PERSONS = 1.0  # a person's squared mean of products lies in [0, 1] (docs/theory/persons.md#second-moment)
# V then serves the effect alone, and gets next to nothing where noise would hide it
PERSON_SHARES = {"covariance": 0.87, "variance": 0.1, "persons": 0.03}
HIDDEN_SHARES = {"covariance": 0.95, "variance": 0.01, "persons": 0.04}
TYPICAL_VARIANCE = 0.25  # V/n where winsorising suits n and the budget: 0.19 to 0.43 measured
SELECTION_SHARE = 0.15  # of the budget, for each of the two axes (docs/theory/partition_gcm.md#choosing-the-axes)
STANDARDIZATION_SHARE = 0.2  # for cell centres (docs/theory/partition_gcm.md#cell-means)
MIN_ROOM = 1e-3  # of a released mean from its bound
UNIT_ROUNDOFF = 2.0**-53


def _from_domain(cls, epsilon, domain, options):
    """In natural units as it is; on a schema's [-1, 1] about noisy cell means, with a guess of the residual sds."""
    cells = {} if options.num_cells is None else {"num_cells": options.num_cells}
    if domain is None and options.residual_scale is None:
        return cls(epsilon=epsilon, **cells)
    columns = ((), ()) if domain is None else (domain.x, domain.y)
    scale_x, scale_y = options.residual_scale or map(builders.residual_scale, columns)
    return cls(epsilon=epsilon, standardize=domain is not None, scale_x=scale_x, scale_y=scale_y, **cells)


def _clipped(xp: Any, weights: Any, num_cells: int):
    """The weight of each cell, (K, 1), by NumPy or JAX."""
    weights = xp.nan_to_num(xp.broadcast_to(xp.asarray(weights), (num_cells,)), nan=0.0)
    return xp.clip(weights, -1.0, 1.0)[:, None]


@frozen_pytree
class PartitionGCM(WithinCells):
    """Private test of X independent of Y given Z by within-cell covariance.

    Statistic: x, y winsorised to [-1, 1]; Z-space cut into K public cells; S = sum over cells of the
    within-cell cross product sum (x - mean_b)(y - mean_b), and its null variance V = sum SSx SSy/(n_b - 1).
    x may have p columns and y q columns: then S and V are (p, q) and the p-value is Bonferroni's.
    Sensitivity: 8 for S (4 without z: one cell) and 6 for V, for replace-one neighbours, whatever n and K
    (docs/theory/partition_gcm.md#sensitivity, #one-cell); p q times that in L1 for several columns, sqrt(p q) in L2.
    Privacy: epsilon-DP (85 % for S, 15 % for V), or rho-zCDP with mechanism=Gaussian(rho).
    P-value: exact for the noise of S, to second order for that of V (docs/theory/partition_gcm.md#level); level
    asymptotically exact as V grows and cells shrink, conservative where the noise of V is as large as V.
    Refused unless accept_coarse_cells: two or more continuous columns of Z, whose cells are too wide (two: 0.10 to
    0.23 of the nulls rejected at n = 1000; three and more: 0.5 to 1.0 at every n), use `ContrastGCM`; and more than
    three columns that are not all coded, of which one axis each for X and Y is chosen privately (30 % of the budget)
    while the others confound. One continuous column is flagged (`validity`): `BandGCM` needs no cells.

    reference: public law of each Z column whose quantiles cut the cells (default: uniform on the schema's
        bounds, or a standard Cauchy law if no domain is known). Never quantiles of the data.
    num_cells: K, default max(4, n/8), a million at most. winsorize: tau in units of the residual scale, default the
        closed form in n and epsilon (docs/theory/partition_gcm.md#winsorising). scale_x, scale_y: public guesses of the
        residual sd.
    standardize: first release noisy cell means and residual scales of x and y (20 % of the budget), then
        winsorise about them; for data in [-1, 1] whose conditional means vary more than their residuals. Means are
        taken in groups of whole cells.
    weights: public weight per cell in [-1, 1], array (K,). num_regions: release S and V for this many
        public groups of neighbouring cells (same noise per region), combined by their sum of squares,
        so that covariances of changing sign do not cancel (weighted GCM).
    by_person: judges S by Q = sum over persons of (mean over rows of x y)^2 in place of V, which is kept for the
        effect: 87 % for S, 10 % for V, 3 % for Q, or 95, 1 and 4 % where noise would hide V. Sensitivity of Q: 1, p q
        times that in L1, sqrt(p q) in L2 (docs/theory/persons.md#second-moment). Default: where persons have several
        rows and `standardize` centres x and y. Of persons with one row each, Q is an upper bound of the variance too.
    correct_level: takes the second-order effect of the noise of V out of the p-value; costs a little power. Without it
        the level is lost where that noise is large against V (0.08 at n = 38, epsilon = 8; 0.053 at 1000 and 1).
    accept_coarse_cells: runs where the level is known to be lost; a small p-value is then no evidence.
    """

    reference: Any = None
    num_cells: int | None = jax.tree.static(default=None)
    winsorize: ArrayLike | None = None
    scale_x: ArrayLike = 1.0
    scale_y: ArrayLike = 1.0
    weights: ArrayLike | None = None
    num_regions: int = jax.tree.static(default=1)
    num_null: int = jax.tree.static(default=999)
    standardize: bool = jax.tree.static(default=False)
    correct_level: bool = jax.tree.static(default=True)
    by_person: bool | None = jax.tree.static(default=None)
    select_axes: bool | None = jax.tree.static(default=None)
    centers: Any = None
    axes: tuple[ArrayLike, ArrayLike] | None = None
    num_columns: tuple[int, int, int] = jax.tree.static(default=(1, 1, 1))
    total_cells: int = jax.tree.static(default=0)  # filled in by `specialize`; 0 where columns are chosen first
    num_persons: int = jax.tree.static(default=0)  # filled in by `specialize` with `by_person`

    averages_rows: ClassVar[bool] = True
    lattice: ClassVar[float] = sums.GRID_ERROR
    spec: ClassVar[TestSpec] = TestSpec(
        name="partition-gcm",
        summary="within-cell covariance, p-value exact for the noise; recommended for continuous columns",
        from_domain=_from_domain,
        options=("residual_scale", "num_cells"),
        assumption=builders.WITHIN_CELLS,
        alternatives="covariance of X and Y given Z",
        effect="correlation of X and Y within cells of Z, both clipped as the test clips them, -1 to 1",
        describe_effect=effect_sizes.describe_clipped,
        rank=lambda domain: 1,
        suitability=lambda domain: {LINEAR: 1, MONOTONE: 1},
        shown=("covariance", "released covariance"),
        planning=Planning("continuous:partition_gcm_power", narrow=True, gaussian_formula="natural"),
        theory="docs/theory/partition_gcm.md",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.num_cells is not None:
            check.at_least(1, num_cells=self.num_cells)
        check.at_least(1, num_regions=self.num_regions)
        check.at_least(1, num_null=self.num_null)
        if self.winsorize is not None:
            check.positive(winsorize=self.winsorize)
        check.positive(scale_x=self.scale_x, scale_y=self.scale_y)
        if self.by_person and self.num_regions > 1:
            raise ValueError(f"by_person takes one region, got num_regions={self.num_regions}: leave one of them out.")

    def mechanism_in_force(self):
        mechanism = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        return divide(mechanism, self._person_shares(mechanism) if self.by_person else SHARES)

    def _person_shares(self, mechanism):
        """Public: whether V gets a share that shows it is settled by n and the budget."""
        if isinstance(mechanism, Split):
            return PERSON_SHARES
        shown = mechanism.share(PERSON_SHARES["variance"])
        noise = shown.variance(Sensitivity(VARIANCE_ONE_REGION, shown.norm, Relation.REPLACE_ONE))
        clear = (effect_sizes.CLEAR**2) * noise <= (TYPICAL_VARIANCE * self.num_persons) ** 2
        if check.is_concrete(clear):
            return PERSON_SHARES if clear else HIDDEN_SHARES
        return {name: jnp.where(clear, share, HIDDEN_SHARES[name]) for name, share in PERSON_SHARES.items()}

    def of_persons(self, shapes):
        """By the second moment of persons, where x and y are centred by a stage and nothing else was asked for."""
        free = self.by_person is None and self.num_regions == 1 and not isinstance(self.mechanism, Split)
        return dataclasses.replace(self, by_person=True) if free and self.standardize else self

    def specialize(self, shapes):
        """Adds the private stages that data of these shapes need. Errors: `CoarseCells` before anything is spent."""
        counts = {"total_cells": self._count(shapes), "num_persons": shapes.x.shape[0] if self.by_person else 0}
        test = dataclasses.replace(partition.with_column_counts(self, shapes), **counts)
        columns = partition.columns_of_z(shapes)
        self.refuse_coarse_cells(columns)
        wants_axes = self._wants_axes(columns)
        if wants_axes and self.axes is None:
            limits = (1.0, 1.0) if self.standardize else (self.scale_x, self.scale_y)
            selection = AxisSelection(
                mechanism=self._share(2 * SELECTION_SHARE),
                reference=self.reference,
                limit_x=limits[0],
                limit_y=limits[1],
            )
            return Sequential(first=selection, second=test._after(2 * SELECTION_SHARE, select_axes=False), then=select)
        if self.standardize and self.centers is None:
            profile = Standardization(
                mechanism=self._share(STANDARDIZATION_SHARE),
                reference=self.reference,
                axes=self.axes,
                num_cells=self.num_cells,
                num_columns=test.num_columns[:2],
            )
            rest = test._after(STANDARDIZATION_SHARE, standardize=False)
            return Sequential(first=profile, second=rest, then=standardize)
        return test

    def _count(self, shapes) -> int:
        """How many cells z of these shapes is cut into; 1 without z."""
        if shapes.z is None:
            return 1
        columns = partition.columns_of_z(shapes)
        if self._chooses_axes(columns):
            return 0
        return math.prod(partition.bins_per_column(columns, partition.target_cells(shapes.x.shape[0], self.num_cells)))

    def _chooses_axes(self, columns) -> bool:
        return self._wants_axes(columns) or self.axes is not None

    def _wants_axes(self, columns) -> bool:
        wanted = needs_axes(columns) if self.select_axes is None else self.select_axes
        return bool(wanted) and len(columns) > 1

    def _share(self, fraction: float):
        return (Laplace(self.epsilon) if self.mechanism is None else self.mechanism).share(fraction)

    def _after(self, fraction: float, **done):
        """This test with a stage marked as done and what that stage leaves of the budget."""
        return dataclasses.replace(self, epsilon=None, mechanism=self._share(1.0 - fraction), **done)

    def statistic(self, key, data):
        """Dict of `covariance` and `variance`, (p, q) or scalar for one pair; a leading axis for several regions.

        With `by_person` also `persons`, as of persons with one row.
        """
        return self._of_persons(self._of_records(data))

    def statistic_of_persons(self, key, rows):
        """`statistic`: the means of S and V over draws, and Q of the means of each person's products."""
        return self._of_persons(rows.mean(lambda _, draw: self._of_records(draw), key))

    def _of_persons(self, found):
        """The statistic, of the products x y of records or of their means by person, where there are any."""
        return found | ({"persons": jnp.sum(found["persons"] ** 2, axis=0)} if self.by_person else {})

    def _of_records(self, data):
        """S and V; with `by_person` the products x y of each record, (n, p, q), or (n,) for one pair."""
        x, y = partition.as_matrix(data.x), partition.as_matrix(data.y)
        cell, num_cells = self.cells(data)
        tau = self.level(x.shape[0])
        center_x, center_y = self._centers(data)
        x = partition.clip_to(x - center_x, tau * self.scale_x)
        y = partition.clip_to(y - center_y, tau * self.scale_y)
        products = self._products_of_records(x, y, cell, num_cells) if self.by_person else {}
        counts = partition.cell_counts(cell, num_cells, x.dtype)
        x, y = partition.center(x, cell, counts), partition.center(y, cell, counts)
        ss_x, ss_y = (partition.cell_sums(values**2, cell, num_cells) for values in (x, y))
        ss_x = ss_x / jnp.maximum(counts - 1.0, 1.0)[:, None]
        if self.weights is not None:
            weights = _clipped(jnp, self.weights, num_cells)
            x, ss_x = x * weights[cell], ss_x * weights**2
        region = jnp.arange(num_cells) * self.num_regions // num_cells
        return {
            "covariance": self._products(x, y, region[cell]),
            "variance": self._products(ss_x, ss_y, region),
            **products,
        }

    def _products_of_records(self, x, y, cell, num_cells: int):
        x = x if self.weights is None else x * _clipped(jnp, self.weights, num_cells)[cell]
        products = x[:, :, None] * y[:, None, :]
        return {"persons": products[:, 0, 0] if math.prod(self.num_columns[:2]) == 1 else products}

    def partial(self, chunk, num_records=None):
        """Moments of x and y within cells, of values on a grid (docs/theory/sums.md#cells)."""
        count = len(chunk.x) if num_records is None else num_records
        cells = self._num_cells(chunk, count)
        return sums.added(self, "on_grid", chunk, count, functools.partial(sums.cell_moments, num_cells=cells), cells)

    def on_grid(self, data, num_records):
        """Cell (n,) of each record, and x (n, p), y (n, q) as the statistic takes them, on the grid."""
        tau, (center_x, center_y) = self.level(num_records), self._centers(data, num_records)
        x, y = partition.as_matrix(data.x), partition.as_matrix(data.y)
        x = partition.clip_to(x - center_x, tau * self.scale_x)
        y = partition.clip_to(y - center_y, tau * self.scale_y)
        return self.cells(data, num_records)[0], sums.to_grid(x), sums.to_grid(y)

    def _num_cells(self, data, num_records: int) -> int:
        return partition.count_cells(data, partition.target_cells(num_records, self.num_cells), self.axes)

    def finish(self, totals):
        """`statistic` of values on the grid; off by less than `Sensitivity.error`, whatever the chunks."""
        products, ss_x, ss_y = sums.centred_moments(totals)
        count = len(products)
        ss_x = ss_x / np.maximum(totals["count"] - 1.0, 1.0)[:, None]
        if self.weights is not None:
            weights = _clipped(np, self.weights, count)
            products, ss_x = products * weights[:, :, None], ss_x * weights**2
        region = np.arange(count) * self.num_regions // count
        variances = np.stack([ss_x[region == g].T @ ss_y[region == g] for g in range(self.num_regions)])
        covariances = np.stack([np.sum(products[region == g], axis=0) for g in range(self.num_regions)])
        found = {"covariance": covariances, "variance": variances}
        found = {name: total[0] if self.num_regions == 1 else total for name, total in found.items()}
        single = math.prod(self.num_columns[:2]) == 1
        return {name: total[..., 0, 0] if single else total for name, total in found.items()}

    def partial_of_persons(self, rows, num_persons):
        """The moments of each draw; with `by_person` also the sum over draws of each person's products, int64 (m,)."""
        found = {"draws": super().partial_of_persons(rows, num_persons)}
        if not self.by_person:
            return found
        cell, x, y = sums.mapped(self, "on_grid", rows.rows, num_persons)
        if self.weights is not None:
            x = np.round(x * _clipped(np, self.weights, self._num_cells(rows.rows, num_persons))[cell])
        times = rows.drawn.sum(axis=1)
        # a person's draws make at most 16 GRID^2 together, so that float64 adds them up without rounding
        products = (of_x * of_y * times for of_x in x.T for of_y in y.T)
        sums_of_pairs = [np.bincount(rows.persons, weights=one, minlength=num_persons) for one in products]
        return found | {"persons": np.stack(sums_of_pairs, axis=-1).astype(np.int64)}

    def finish_of_persons(self, totals):
        found = super().finish_of_persons(totals["draws"])
        if not self.by_person:
            return found
        means = totals["persons"] / (sums.GRID**2 * len(totals["draws"]))
        size = self.num_columns[:2] if math.prod(self.num_columns[:2]) > 1 else ()
        return found | {"persons": np.sum(means**2, axis=0).reshape(size)}

    def needs_all(self, shapes, of_persons=False):
        count = shapes.x.shape[0]
        if self.by_person and not of_persons:
            return "the product of each record is squared"
        return super().needs_all(shapes, of_persons) or sums.too_large(self._num_cells(shapes, count), count)

    def _centers(self, data, num_records: int | None = None):
        """The released centre of each record's group of cells, (n, p) and (n, q); 0 without the stage."""
        if self.centers is None:
            return 0.0, 0.0
        group, _ = centring_groups(data, self.num_cells, self.reference, self.axes, num_records)
        return self.centers.x[group], self.centers.y[group]

    def _products(self, left, right, region):
        """left' right summed within each region: (regions, p, q), without axes of length one for scalars."""
        if self.num_regions == 1:
            total = jnp.matmul(left.T, right, precision="highest")
        else:
            masks = [(region == g).astype(left.dtype)[:, None] for g in range(self.num_regions)]
            total = jnp.stack([jnp.matmul((left * mask).T, right, precision="highest") for mask in masks])
        return total[..., 0, 0] if math.prod(self.num_columns[:2]) == 1 else total

    def pairwise(self, data):
        """`statistic` for all pairs i < j of the columns of x (y is x): leaves (pairs,) or (regions, pairs)."""
        totals = dataclasses.replace(self, num_columns=(2, 2, 1)).statistic(None, data)
        rows, columns = np.triu_indices(data.x.shape[1], k=1)
        return {name: total[..., rows, columns] for name, total in totals.items()}

    def pairwise_of_sums(self, totals):
        """`finish`, as `pairwise`."""
        found = dataclasses.replace(self, num_columns=(2, 2, 1)).finish(totals)
        rows, columns = np.triu_indices(totals["x"].shape[1], k=1)
        return {name: total[..., rows, columns] for name, total in found.items()}

    def sensitivity(self, num_records):
        size = math.prod(self.num_columns[:2])
        budget = self.mechanism_in_force()
        cells = num_records + partition.target_cells(num_records, self.num_cells)
        rounding = cells * num_records * size * UNIT_ROUNDOFF
        variance = VARIANCE_ONE_REGION if self.num_regions == 1 else VARIANCE_REGIONS_L1
        bounds = {"covariance": (self._covariance_bound(), -1.0, 1.0, 8.0), "variance": (variance, 0.0, 2.0, 32.0)}
        if self.by_person:
            bounds["persons"] = (PERSONS, 0.0, 1.0, 8.0)
        return {
            name: Sensitivity(
                bound=bound * (size if budget[name].norm is Norm.L1 else math.sqrt(size)),
                norm=budget[name].norm,
                relation=Relation.REPLACE_ONE,
                error=factor * rounding,
                lower=lower * num_records,
                upper=upper * num_records,
            )
            for name, (bound, lower, upper, factor) in bounds.items()
        }

    def _covariance_bound(self) -> float:
        return COVARIANCE_ONE_CELL if self.total_cells == 1 else COVARIANCE_L1

    def interpret(self, key, release):
        """S, and the correlation of the clipped columns within cells: S over the root of m V, with its interval.

        m = n - K degrees of freedom. No effect for regions. Several pairs: their intervals hold together with
        probability 0.95.
        """
        p_values, covariance = self.pair_p_values(key, release), release.value["covariance"]
        p_value = null_laws.bonferroni(p_values)
        if self.num_regions > 1 or self.weights is not None:
            return Interpretation(p_value, covariance)
        inner, law = self.degrees_within(release.num_records), self._null_law(release)
        noise = effect_sizes.noise_quantiles(self.mechanism_in_force()["variance"], release.sensitivity["variance"])
        miss = effect_sizes.MISS / math.prod(self.num_columns[:2])
        clip = self.level(release.num_records) * jnp.sqrt(self.scale_x * self.scale_y)

        def one(covariance, null_p_value, variance, sd, room):
            spread = clip * jnp.sqrt(jnp.sqrt(jnp.maximum(variance, 1e-12) / inner))  # of both clipped columns
            ratio = spread / room

            def tail(left, found):
                there = effect_sizes.shrunk(sd**2, found) * effect_sizes.crowded_growth(found, ratio)
                return law(left, jnp.sqrt(there))

            return effect_sizes.ratio(
                (covariance, variance),
                null_p_value,
                noise,
                lambda found, second: found * jnp.sqrt(inner * second),
                tail,
                limits=(-1.0, 1.0),
                miss=miss,
            )

        room = jnp.broadcast_to(self._room(), jnp.shape(covariance))
        pairs = (covariance, p_values, release.value["variance"], self._sd(release), room)
        return Interpretation(p_value, covariance, *effect_sizes.for_pairs(one, *pairs))

    def _room(self):
        """How far the released means of x and y lie from the nearest of the bounds -1 and 1, of each pair.

        Negative where these bounds have unlike signs; infinite without released means.
        """
        if self.centers is None:
            return jnp.inf
        x, y = (jnp.mean(side, axis=0) for side in (self.centers.x, self.centers.y))
        to_x, to_y = (jnp.maximum(1.0 - jnp.abs(mean), MIN_ROOM) for mean in (x, y))
        room = jnp.sqrt(jnp.outer(to_x, to_y)) * jnp.where(jnp.outer(x, y) < 0.0, -1.0, 1.0)
        return room[0, 0] if room.size == 1 else room

    def degrees_within(self, count: int):
        """n - K, at least n/2: of more cells, most hold one record or none."""
        cells = self.total_cells or partition.target_cells(count, self.num_cells)
        occupied = getattr(self.reference, "occupied", None)  # fewer, where their number was chosen privately
        return count - jnp.minimum(cells if occupied is None else occupied(self.num_columns[2]), count // 2)

    @effect_sizes.settled_program
    def detectable_effect(self, release, level):
        """The correlation of one pair that would have been found with power 0.8; NaN where the noise hides V."""
        if self.num_regions > 1 or self.weights is not None:
            return jnp.nan
        variance, sd, law = release.value["variance"], self._sd(release), self._null_law(release)
        noise = jnp.sqrt(self.mechanism_in_force()["variance"].variance(release.sensitivity["variance"]))
        budget = self.mechanism_in_force()["covariance"]
        spread = jnp.sqrt(sd**2 + budget.variance(release.sensitivity["covariance"]))
        found = effect_sizes.detectable(lambda value: law(value, sd), spread, level)
        known = variance >= effect_sizes.CLEAR * noise
        return jnp.where(known, found / jnp.sqrt(self.degrees_within(release.num_records) * variance), jnp.nan)

    def no_gradient(self, name):
        return null_laws.RANK if self.num_regions > 1 else ""

    def _sd(self, release):
        """Null sd of S, from the noisy V, or Q."""
        variance = release.value["persons" if self.by_person else "variance"]
        return null_laws.noisy_sd(variance, self._variance_noise(release), release.num_records)

    def _variance_noise(self, release):
        """Variance of the noise of V, or of Q where S is judged by it."""
        name = "persons" if self.by_person else "variance"
        return self.mechanism_in_force()[name].variance(release.sensitivity[name])

    def _null_law(self, release):
        """(value, sd) -> two-sided p-value of S, or of what S is from its mean; the noise of V to second order."""
        budget, sensitivity = self.mechanism_in_force(), release.sensitivity["covariance"]
        mechanism, noise = budget["covariance"], self._variance_noise(release)

        def law(value, sd):
            sd = mechanism.widened(value, sd, sensitivity, noise) if self.correct_level else sd
            return mechanism.null_p_value(value, sd, sensitivity)

        return law

    def pair_p_values(self, key, release):
        """One p-value for each pair of columns: array (p, q), scalar for one pair."""
        covariance, sd = release.value["covariance"], self._sd(release)
        if self.num_regions == 1:
            return self._null_law(release)(covariance, sd)
        budget, sensitivity = self.mechanism_in_force(), release.sensitivity["covariance"]
        mechanism = budget["covariance"]
        variance_noise = budget["variance"].variance(release.sensitivity["variance"])

        def total(sd):
            return jnp.sqrt(sd**2 + mechanism.variance(sensitivity))

        key_null, key_noise, key_again = jax.random.split(key, 3)
        shape = (self.num_null, *jnp.shape(sd))
        null = sd[None] * jax.random.normal(key_null, shape) + mechanism.noise(key_noise, sensitivity, shape)
        null_sd = sd[None]
        if self.correct_level:  # the null's variances are as noisy as the released ones
            again = sd[None] ** 2 + budget["variance"].noise(key_again, release.sensitivity["variance"], shape)
            null_sd = null_laws.noisy_sd(again, variance_noise, release.num_records)
        observed = jnp.sum((covariance / total(sd)) ** 2, axis=0)
        return null_laws.monte_carlo(observed, jnp.moveaxis(jnp.sum((null / total(null_sd)) ** 2, axis=1), 0, -1))

    def pair_statistics(self, release):
        """The noisy within-cell covariance sums."""
        return release.value["covariance"]

    def level(self, num_records: int):
        """Winsorising level tau in residual units: given, or the closed form in n and the budget."""
        if self.winsorize is not None:
            return self.winsorize
        mechanism = self.mechanism_in_force()["covariance"]
        if isinstance(mechanism, Exact):
            return 1e3
        one = Sensitivity(self._covariance_bound(), mechanism.norm, Relation.REPLACE_ONE)
        return best_level(num_records, mechanism.variance(one))

    def axis_bins(self, data, release=None):
        """Public description of the cells of z, for people: `partition.AxisBins` for each column that is cut.

        release: needed where columns were chosen; its first stage says which.
        """
        target = partition.target_cells(data.x.shape[0], self.num_cells)
        chosen = release.earlier[0].value if release is not None and release.earlier else {}
        if set(chosen) != {"x", "y"}:
            return partition.axis_bins(data, target, self.reference)
        columns, first, second = partition.columns_of_z(data), int(chosen["x"]), int(chosen["y"])
        reference = partition.default_reference(data) if self.reference is None else self.reference
        side = partition.axis_side(columns, target)
        cut = {first: side**2} if first == second else {first: side, second: side}
        return tuple(partition.bins_of_axis(j, columns[j], reference, number) for j, number in cut.items())

    def cells(self, data, num_records: int | None = None):
        """Cell of each record and the number of cells (public); num_records: of all data, if these are a chunk."""
        target = partition.target_cells(data.x.shape[0] if num_records is None else num_records, self.num_cells)
        return partition.cells_of(data, target, self.reference, self.axes)
