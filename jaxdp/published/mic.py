"""The private maximal information coefficients of the MIC paper, as published, and its third mechanism repaired.

Source: Lazarsfeld, Johnson and Adeniran 2022. What is wrong: two constants are too large, and the geometric mechanism
counts one release where it makes G. Recommended: `jaxdp.MICrLaplace`, `jaxdp.MICeLaplace`.
"""

import dataclasses
from typing import Any, ClassVar, final

import jax.numpy as jnp

from jaxdp._base.pytree import frozen_pytree
from jaxdp.independence.continuous import validity
from jaxdp.independence.mic import mic_sensitivity
from jaxdp.independence.mic.mic_equipartition import MICeLaplace
from jaxdp.independence.mic.mic_geometric import MICrGeometric
from jaxdp.independence.mic.mic_laplace import MICrLaplace
from jaxdp.mechanisms import Geometric
from jaxdp.spec import TestSpec
from jaxdp.statistics.mic import mic_tables


@final
@frozen_pytree
class PaperMICrLaplace(MICrLaplace):
    """`MICrLaplace` with the constant of theorem 4.3, (4 log2 n + 6)/n.

    Privacy: epsilon-DP as claimed. What is wrong: the noise is about 3.5 times too large (docs/theory/mic.md#micr).
    """

    spec: ClassVar[TestSpec] = MICrLaplace.spec.as_published(
        "micr-laplace-paper",
        "MICr with the published noise; true but too large",
        true_epsilon="as claimed; the noise is 3.5 times too large",
    )

    def move(self, num_records):
        return mic_sensitivity.paper_range_bound(num_records)


@final
@frozen_pytree
class PaperMICeLaplace(MICeLaplace):
    """`MICeLaplace` with the constant of theorem 3.1, B (2 log2 n + 4.8)/n.

    Privacy: epsilon-DP as claimed, with the tie rules of `MICeLaplace`; minepy's rule for ties breaks it.
    What is wrong: the noise is more than 6 times too large at the default B (docs/theory/mic.md#mice).
    """

    spec: ClassVar[TestSpec] = MICeLaplace.spec.as_published(
        "mice-laplace-paper",
        "MICe with the published noise; true but too large",
        true_epsilon="as claimed; the noise is more than 6 times too large",
    )

    def specialize(self, shapes):
        pinned = super().specialize(shapes)
        if shapes.x.shape[0] < 6:
            raise ValueError(f"theorem 3.1 of the paper needs at least 6 records, got {shapes.x.shape[0]}.")
        return pinned

    def move(self, num_records):
        return mic_sensitivity.paper_mass_bound(num_records, self.cells_allowed(num_records))


UNEVEN = (
    "The null law is that of columns that fill their bounds evenly. Where they do not, true nulls are rejected: .16 of "
    "those of two exponential columns (n = 200, epsilon 4), more with the published noise, and none by micr-geometric."
)


@frozen_pytree
class MICrGeometricSplit(MICrGeometric):
    """The published MICr-Geom, repaired: one noisy table per grid, which share the budget equally.

    Statistic: the counts of all G = 2 floor(B/2) - 3 master tables, as one vector. Sensitivity: 2 G in L1 (sqrt(2 G) in
    L2), replace-one.
    Privacy: epsilon-DP. One lattice for all grids (`MICrGeometric`) has less noise.
    """

    flags: ClassVar[tuple[str, ...]] = ("uneven columns",)
    spec: ClassVar[TestSpec] = MICrGeometric.spec.as_published(
        "micr-geometric-split",
        "maximal information coefficient of one noisy table per grid, the published mechanism repaired",
        true_epsilon="as asked for",
    )

    def validity(self, data) -> validity.Validity:
        """Flagged on all data: null tables are those of even columns, and the score depends on the margins. Public."""
        return validity.Validity(validity.FLAG, UNEVEN, self.flags)

    def tables(self, num_records: int):
        """The master tables."""
        budget = self.cells_allowed(num_records)
        return mic_tables.grid_tables(budget, self.master_factor(num_records), self.grid)

    def counts(self, x, y):
        return mic_tables.flat_counts(x, y, self.tables(x.shape[0]), x.dtype)

    def num_tables(self, num_records):
        return len(self.tables(num_records))

    def sensitivity(self, num_records):
        return dataclasses.replace(super().sensitivity(num_records), lower=0.0, upper=1.0 * num_records)

    def null_margins(self, release):
        """Even ones alone."""
        return jnp.ones((1, 2, 1))

    def score(self, noisy, num_records, scale):
        counts = jnp.clip(noisy, 0.0, 1.0 * num_records)
        return mic_tables.score_of_flat(counts, self.tables(num_records))


@final
@frozen_pytree
class PaperMICrGeometric(MICrGeometricSplit):
    """The published MICr-Geom (mechanism 3): one noisy table per grid, each with noise for the whole epsilon.

    What is wrong: one record is in all G = 2 floor(B/2) - 3 tables, so the claim of epsilon-DP is false
    (docs/theory/mic.md#published-geometric-mechanism).
    Privacy: the result carries G epsilon, which is true. epsilon: the published number.
    """

    spec: ClassVar[TestSpec] = MICrGeometricSplit.spec.as_published(
        "micr-geometric-paper",
        "maximal information coefficient of one noisy table per grid as published; its claim is false",
        true_epsilon="2 floor(B/2) - 3 times the one asked for",
    )

    def specialize(self, shapes):
        pinned = super().specialize(shapes)
        if self.mechanism is not None:
            return pinned
        epsilon: Any = self.epsilon
        total = self.num_tables(shapes.x.shape[0]) * epsilon
        return dataclasses.replace(pinned, epsilon=None, mechanism=Geometric(total))

    def mechanism_in_force(self):
        if self.mechanism is None:
            raise ValueError("PaperMICrGeometric costs G epsilon, known once the number of records is: use jaxdp.run.")
        return self.mechanism
