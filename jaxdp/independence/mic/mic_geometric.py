"""MICr from one noisy lattice of counts."""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Relation, Sensitivity
from jaxdp.independence.mic import mic_common, mic_parameters, mic_sensitivity
from jaxdp.independence.mic.mic_common import MICTest
from jaxdp.mechanisms import Geometric
from jaxdp.spec import Planning, TestSpec, without_z
from jaxdp.statistics.mic import mic_bins, mic_tables

_MAX_ENTRIES = 2e6  # noisy table entries of the null simulation that are held at once


@frozen_pytree
class MICrGeometric(MICTest):
    """Private MICr by truncated geometric noise on counts, instead of noise on the coefficient.

    Statistic: one table of counts on a `side` x `side` lattice of the public range, as one vector; every grid is read
        off it, and cells below `threshold` noise standard deviations count as empty.
    Sensitivity: a replaced record changes two cells by 1: 2 in L1 (sqrt 2 in L2); replace-one.
    Privacy: epsilon-DP. Noise is clipped to [0, n] afterwards, which is the law of the truncated geometric mechanism.
    mechanism=Gaussian(rho) adds Gaussian noise instead (zCDP).
    Accuracy: more error than MICrLaplace at every size tried (docs/theory/mic.md#accuracy): for comparison.
    P-value: as MICrLaplace, simulated for uniform margins with the same noise.

    bounds: public ((x0, x1), (y0, y1)); default from the domain, else [-1, 1].
    One table per grid: `jaxdp.published.MICrGeometricSplit`. As published: `jaxdp.published.PaperMICrGeometric`, which
    costs more than it claims.
    """

    bounds: Any = jax.tree.static(default=None)
    side: int | None = jax.tree.static(default=None)
    threshold: ArrayLike = 1.5
    num_null: int = jax.tree.static(default=199)

    spec: ClassVar[TestSpec] = TestSpec(
        name="micr-geometric",
        summary="maximal information coefficient of noisy tables, geometric noise",
        alternatives="any dependence of two columns",
        accepts=without_z,
        planning=Planning(slow=True, without_z=True),
        needs_all="it looks for the best cuts between sorted records",
        theory="docs/theory/mic.md",
    )
    default_mechanism = Geometric  # for the whole vector of counts

    def __post_init__(self):
        super().__post_init__()
        check.non_negative(threshold=self.threshold)
        if self.side is not None:
            check.at_least(2, side=self.side)
        if self.bounds is not None:
            object.__setattr__(self, "bounds", mic_common.checked_bounds(self.bounds))

    def specialize(self, shapes):
        count = shapes.x.shape[0]
        return dataclasses.replace(super().specialize(shapes), side=self.lattice_side(count))

    def cells_allowed(self, num_records):
        if self.max_cells is not None:
            return float(self.max_cells)
        return mic_parameters.geometric_cells(num_records)

    def master_factor(self, num_records):
        return mic_parameters.GEOMETRIC_MASTER_FACTOR if self.c is None else float(self.c)

    def lattice_side(self, num_records: int) -> int:
        """F in force."""
        return self.side or mic_parameters.lattice_side(num_records, self._nominal_epsilon())

    def statistic(self, key, data):
        """Counts: (F F,)."""
        del key
        bounds = mic_common.public_bounds(self.bounds, data.domain)
        columns = [mic_common.column(values) for values in (data.x, data.y)]
        counts = self.counts(*(mic_bins.unit_position(v, *b) for v, b in zip(columns, bounds, strict=True)))
        return counts.astype(int)

    def counts(self, x, y):
        """The statistic of unit positions (n,)."""
        return mic_tables.lattice_counts(x, y, self.lattice_side(x.shape[0]), x.dtype).ravel()

    def num_tables(self, num_records: int) -> int:
        """Tables that a record appears in."""
        del num_records
        return 1

    def sensitivity(self, num_records):
        mechanism, tables = self.mechanism_in_force(), self.num_tables(num_records)
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
        budget, c = self.cells_allowed(num_records), self.master_factor(num_records)
        side = self.lattice_side(num_records)
        kept = jnp.where(counts >= self.threshold * math.sqrt(2.0) * scale, counts, 0.0)
        return mic_tables.score_of_lattice(kept.reshape(side, side, -1), budget, c, self.grid)

    def estimate(self, release):
        """The coefficient of the noisy counts, in [0, 1]."""
        scale = self.mechanism_in_force().scale(release.sensitivity)
        return self.score(release.value[:, None], release.num_records, scale)[0]

    def p_value(self, key, release):
        """Monte Carlo p-value; null data sets are uniform, with the same noise."""
        null = _null_scores(self, key, release.sensitivity, release.num_records, release.value.shape[0])
        return null_laws.monte_carlo(self.estimate(release), null)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _null_scores(test, key, sensitivity, num_records: int, size: int):
    """Coefficients of `num_null` noisy tables of uniform independent records."""
    mechanism = test.mechanism_in_force()
    scale, dtype = mechanism.scale(sensitivity), jnp.result_type(float)
    batch = max(1, min(test.num_null, int(_MAX_ENTRIES // max(size, num_records))))

    def scores(block):
        keys = jax.random.split(jax.random.fold_in(key, block), batch)
        pairs = jax.vmap(jax.random.split)(keys)
        key_data, key_noise = pairs[:, 0], pairs[:, 1]
        draws = jax.vmap(lambda k: jax.random.uniform(k, (2, num_records), dtype))(key_data)
        counts = jax.vmap(test.counts)(draws[:, 0], draws[:, 1])
        noise = jax.vmap(lambda k: mechanism.noise(k, sensitivity, (size,)))(key_noise)
        return test.score((counts + noise).T, num_records, scale)

    return jax.lax.map(scores, jnp.arange(-(-test.num_null // batch))).ravel()[: test.num_null]
