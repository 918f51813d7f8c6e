"""MICr from noisy tables: one noisy lattice, one noisy table per grid, or the published mechanism."""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import _check, calibrate
from jaxdp._pytree import frozen_pytree
from jaxdp.core import Relation, Sensitivity
from jaxdp.independence.marginal import mic_common, mic_parameters, mic_sensitivity
from jaxdp.independence.marginal.mic_common import MICTest
from jaxdp.mechanisms import Geometric
from jaxdp.simulate import examples
from jaxdp.spec import AuditSettings, Example, Planning, TestSpec, without_z
from jaxdp.statistics import mic_cells, mic_tables

LATTICE, SPLIT, PAPER = "lattice", "split", "paper"
_MOST_ENTRIES = 2e6  # noisy table entries of the null simulation that are held at once


@frozen_pytree
class MICrGeometric(MICTest):
    """Private MICr by truncated geometric noise on counts, instead of noise on the coefficient.

    variant "lattice" (default): one table of counts on a `side` x `side` lattice of the public range, with
        noise of the whole budget; every grid is read off it, and cells below `threshold` noise standard
        deviations count as empty. "split": one table per grid, the budget divided by their number
        G = 2 floor(B/2) - 3. Both epsilon-DP.
    variant "paper": the published MICr-Geom (the MIC paper, mechanism 3), a fresh table per grid with the whole
        epsilon each. Its claim of epsilon-DP is false: Result.cost says G epsilon, which is true
        (docs/theory/mic.md#published-geometric-mechanism).
    Statistic: the counts, as one vector. Sensitivity: a replaced record changes two cells by 1 in each table: 2 in
    L1 (sqrt 2 in L2) times the number of tables; replace-one. Noise is clipped to [0, n] afterwards, which
    is the law of the truncated geometric mechanism. mechanism=Gaussian(rho) adds Gaussian noise instead (zCDP).
    Accuracy: more error than MICrLaplace at every size tried (docs/theory/mic.md#accuracy): for comparison.
    P-value: as MICrLaplace, simulated for uniform margins with the same noise.

    bounds: public ((x0, x1), (y0, y1)); default from the domain, else [-1, 1]. epsilon: the whole budget;
    for "paper" the published number, so that the run costs G epsilon.
    """

    bounds: Any = jax.tree.static(default=None)
    variant: str = jax.tree.static(default=LATTICE)
    side: int | None = jax.tree.static(default=None)
    threshold: ArrayLike = 1.5
    num_null: int = jax.tree.static(default=199)

    spec: ClassVar[TestSpec] = TestSpec(
        name="micr-geometric",
        summary="maximal information coefficient of noisy tables, geometric noise",
        sees="any dependence of two columns",
        fits=without_z,
        planning=Planning(slow=True, without_z=True),
        theory="docs/theory/mic.md",
        examples=(
            Example(
                examples.pair,
                null=examples.uniform,
                fields={"max_cells": 6, "num_null": 39},
                reaches=1.0,
                worst_pairs="jaxdp.independence.marginal.worst_pairs_mic:corner",
                audit=AuditSettings(examples.uniform),
                least=4,
            ),
        ),
    )

    def __post_init__(self):
        super().__post_init__()
        _check.one_of((LATTICE, SPLIT, PAPER), variant=self.variant)
        _check.non_negative(threshold=self.threshold)
        if self.side is not None:
            _check.at_least(2, side=self.side)
        if self.bounds is not None:
            object.__setattr__(self, "bounds", mic_common.checked_bounds(self.bounds))

    def resolve(self, shapes):
        count = shapes.x.shape[0]
        pinned = dataclasses.replace(super().resolve(shapes), side=self.lattice_side(count))
        if self.variant != PAPER or self.mechanism is not None:
            return pinned
        epsilon: Any = self.epsilon
        return dataclasses.replace(pinned, epsilon=None, mechanism=Geometric(self.num_tables(count) * epsilon))

    def budget(self):
        """The mechanism for the whole vector of counts; for "paper" it needs `resolve` first, which knows G."""
        if self.mechanism is not None:
            return self.mechanism
        if self.variant == PAPER:
            raise ValueError('variant="paper" costs G epsilon, known once the number of records is: use jaxdp.run.')
        epsilon: Any = self.epsilon
        return Geometric(epsilon)

    def cells_allowed(self, num_records):
        if self.max_cells is not None:
            return float(self.max_cells)
        return mic_parameters.geometric_cells(num_records)

    def master_factor(self, num_records):
        return mic_parameters.GEOMETRIC_MASTER_FACTOR if self.c is None else float(self.c)

    def lattice_side(self, num_records: int) -> int:
        """F in force."""
        return self.side or mic_parameters.lattice_side(num_records, self._nominal_epsilon())

    def tables(self, num_records: int):
        """The master tables of "split" and "paper"."""
        budget = self.cells_allowed(num_records)
        return mic_tables.grid_tables(budget, self.master_factor(num_records), self.grid)

    def statistic(self, key, data):
        """Counts: (F F,) for the lattice, all tables one after the other otherwise."""
        del key
        bounds = mic_common.public_bounds(self.bounds, data.domain)
        columns = [mic_common.column(values) for values in (data.x, data.y)]
        counts = self.counts(*(mic_cells.unit_position(v, *b) for v, b in zip(columns, bounds, strict=True)))
        return counts.astype(int)

    def counts(self, x, y):
        """The statistic of unit positions (n,)."""
        if self.variant == LATTICE:
            return mic_tables.lattice_counts(x, y, self.lattice_side(x.shape[0]), x.dtype).ravel()
        return mic_tables.flat_counts(x, y, self.tables(x.shape[0]), x.dtype)

    def num_tables(self, num_records: int) -> int:
        """Tables that a record appears in: 1, or G."""
        return 1 if self.variant == LATTICE else len(self.tables(num_records))

    def sensitivity(self, num_records):
        mechanism, tables = self.budget(), self.num_tables(num_records)
        return Sensitivity(
            mic_sensitivity.of_tables(tables, mechanism.norm),
            mechanism.norm,
            Relation.REPLACE_ONE,
            lower=0.0,
            upper=1.0 * num_records,
        )

    def score(self, noisy, num_records: int, scale):
        """MICr of noisy counts (N, b): array (b,). scale: the noise's scale, a public number."""
        counts = jnp.clip(noisy, 0.0, 1.0 * num_records)
        if self.variant != LATTICE:
            return mic_tables.score_of_flat(counts, self.tables(num_records))
        budget, c = self.cells_allowed(num_records), self.master_factor(num_records)
        side = self.lattice_side(num_records)
        kept = jnp.where(counts >= self.threshold * math.sqrt(2.0) * scale, counts, 0.0)
        return mic_tables.score_of_lattice(kept.reshape(side, side, -1), budget, c, self.grid)

    def headline(self, release):
        """The coefficient of the noisy counts, in [0, 1]."""
        scale = self.budget().scale(release.sensitivity)
        return self.score(release.value[:, None], release.num_records, scale)[0]

    def p_value(self, key, release):
        """Monte Carlo p-value; null data sets are uniform, with the same noise."""
        null = _null_scores(self, key, release.sensitivity, release.num_records, release.value.shape[0])
        return calibrate.monte_carlo(self.headline(release), null)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _null_scores(test, key, sensitivity, num_records: int, size: int):
    """Coefficients of `num_null` noisy tables of uniform independent records."""
    mechanism = test.budget()
    scale, dtype = mechanism.scale(sensitivity), jnp.result_type(float)
    batch = max(1, min(test.num_null, int(_MOST_ENTRIES // max(size, num_records))))

    def scores(block):
        keys = jax.random.split(jax.random.fold_in(key, block), batch)
        pairs = jax.vmap(jax.random.split)(keys)
        key_data, key_noise = pairs[:, 0], pairs[:, 1]
        draws = jax.vmap(lambda k: jax.random.uniform(k, (2, num_records), dtype))(key_data)
        counts = jax.vmap(test.counts)(draws[:, 0], draws[:, 1])
        noise = jax.vmap(lambda k: mechanism.noise(k, sensitivity, (size,)))(key_noise)
        return test.score((counts + noise).T, num_records, scale)

    return jax.lax.map(scores, jnp.arange(-(-test.num_null // batch))).ravel()[: test.num_null]
