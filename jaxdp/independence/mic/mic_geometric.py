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
from jaxdp.independence import noise_law
from jaxdp.independence.mic import mic_common, mic_parameters, mic_sensitivity
from jaxdp.independence.mic.mic_common import MICTest
from jaxdp.mechanisms import Geometric
from jaxdp.spec import Planning, TestSpec, without_z
from jaxdp.statistics.mic import mic_bins, mic_tables
from jaxdp.statistics.tables.noisy_table_statistics import nearest_shares, shares

_MAX_ENTRIES = 2e6  # noisy table entries of the null simulation that are held at once
_CLEAR = 3.0  # a bin whose noisy share is below so many sds of its noise may be empty


@frozen_pytree
class MICrGeometric(MICTest):
    """Private MICr by truncated geometric noise on counts, instead of noise on the coefficient.

    Statistic: one table of counts on a `side` x `side` lattice of the public range, as one vector; every grid is read
        off it, and cells below `threshold` noise standard deviations count as empty.
    Sensitivity: a replaced record changes two cells by 1: 2 in L1 (sqrt 2 in L2); replace-one.
    Privacy: epsilon-DP. Clipped to [0, n] afterwards, which is the law of the truncated geometric mechanism, for the
    coefficient alone. mechanism=Gaussian(rho) adds Gaussian noise instead (zCDP).
    Accuracy: more error than MICrLaplace at every size tried (docs/theory/mic.md#accuracy): for comparison.
    P-value: the largest of three, simulated with the same noise for uniform margins and for two estimates from the
    released lattice, since noise in a lattice that the records do not fill makes larger maxima. Its level is measured
    (docs/theory/mic.md#lattice-margins).

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
        bounds = mic_common.public_bounds(self.bounds, data.domain)
        columns = [mic_common.column(values) for values in (data.x, data.y)]
        counts = self.counts(*(mic_bins.unit_position(v, *b) for v, b in zip(columns, bounds, strict=True)))
        return counts.astype(int)

    def counts(self, x, y):
        """The statistic of unit positions (n,)."""
        return mic_tables.lattice_counts(x, y, self.lattice_side(x.shape[0]), x.dtype).ravel()

    def num_tables(self, num_records: int) -> int:
        """Tables that a record appears in."""
        return 1

    def sensitivity(self, num_records):
        mechanism, tables = self.mechanism_in_force(), self.num_tables(num_records)
        bound = mic_sensitivity.of_tables(tables, mechanism.norm)
        bare = Sensitivity(bound, mechanism.norm, Relation.REPLACE_ONE)
        room = noise_law.margin(mechanism, bare)  # clipped counts would add to every margin
        return dataclasses.replace(bare, lower=-room, upper=num_records + room)

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

    def null_margins(self, release):
        """Shares (k, 2, bins) of x and y on bins of equal width whose null laws the p-value must exceed; public.

        Even ones; the shares nearest to the noisy margins; and those again without bins that noise alone may fill.
        """
        side, count = self.lattice_side(release.num_records), 1.0 * release.num_records
        table = jnp.asarray(release.value, jnp.result_type(float)).reshape(side, side)  # y by x
        table += (count - jnp.sum(table)) / table.size
        sums = jnp.stack([jnp.sum(table, axis=0), jnp.sum(table, axis=1)])
        noise = math.sqrt(2.0 * side) * self.mechanism_in_force().scale(release.sensitivity)
        # the largest bin counts however many records noise left in it: some margin there must be
        clear = jnp.where((sums >= _CLEAR * noise) | (sums == jnp.max(sums, axis=1, keepdims=True)), sums, 0.0)
        return jnp.stack([jnp.full_like(sums, 1.0 / side), nearest_shares(sums), shares(clear)])

    def p_value(self, key, release):
        """The largest Monte Carlo p-value among those of `null_margins`; null tables have the same noise."""
        size = release.value.shape[0]
        margins = self.null_margins(release)
        null = _null_scores(self, key, margins, release.sensitivity, release.num_records, size)
        return jnp.max(null_laws.monte_carlo(jnp.full(len(margins), self.estimate(release)), null))


@functools.partial(jax.jit, static_argnums=(4, 5))
def _null_scores(test, key, margins, sensitivity, num_records: int, size: int):
    """Coefficients (k, num_null) of noisy tables of independent records, for each of k pairs of margins."""
    mechanism = test.mechanism_in_force()
    scale, dtype = mechanism.scale(sensitivity), jnp.result_type(float)
    batch = max(1, min(test.num_null, int(_MAX_ENTRIES // max(size, num_records))))
    edges = jnp.linspace(0.0, 1.0, margins.shape[2] + 1, dtype=dtype)
    below = jnp.pad(jnp.cumsum(margins, axis=2), ((0, 0), (0, 0), (1, 0)))

    def scores(block):
        keys = jax.random.split(jax.random.fold_in(key, block), batch)
        pairs = jax.vmap(jax.random.split)(keys)
        key_data, key_noise = pairs[:, 0], pairs[:, 1]
        draws = jax.vmap(lambda k: jax.random.uniform(k, (2, num_records), dtype))(key_data)
        noise = jax.vmap(lambda k: mechanism.noise(k, sensitivity, (size,)))(key_noise)

        def of_margins(below):  # the same draws for all margins, so that the largest p-value costs little power
            x, y = draws[:, 0], draws[:, 1]
            if len(edges) > 2:  # one bin is even as it is
                x, y = jnp.interp(x, below[0], edges), jnp.interp(y, below[1], edges)
            return test.score((jax.vmap(test.counts)(x, y) + noise).T, num_records, scale)

        return jax.lax.map(of_margins, below)

    found = jax.lax.map(scores, jnp.arange(-(-test.num_null // batch)))
    return jnp.swapaxes(found, 0, 1).reshape(len(margins), -1)[:, : test.num_null]
