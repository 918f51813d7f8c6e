"""ContrastFeatures: do X and its size depend on Y and its size given two to five continuous Z? Four sums at one price.

Symbols: g = `features` of a window, T = sum of g(x) g(y)', v = `NULL_RATES` (docs/theory/contrast_features.md).
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Relation, Sensitivity
from jaxdp.independence.continuous import validity
from jaxdp.independence.continuous.contrast_order import DEPTHS, ContrastTest
from jaxdp.independence.continuous.feature_gcm import WEIGHTS, from_domain
from jaxdp.independence.continuous.neighbour_test import as_number, count_columns
from jaxdp.independence.tables.noisy_table import require_one_column
from jaxdp.spec import ANY, Planning, TestSpec, continuous_columns_of_z, on_a_line
from jaxdp.statistics.neighbours import window_features

# Measured on simulated nulls, not proved: null variance per record of each entry (#null-rates).
NULL_RATES = {2: ((0.4, 0.2), (0.2, 0.15)), 3: ((0.4, 0.2), (0.2, 0.15))}
NULL_RATES_OF_ONE = ((0.5, 0.3), (0.3, 0.3))  # of fewer than four curves


STRONG_EFFECT, NEEDED_Z = 0.08, 3.0  # E T per record of a parabola of 0.8 sd (#power); below so many sds it is missed


@frozen_pytree
class ContrastFeatures(ContrastTest):
    """Private test of X independent of Y given two to five continuous Z, with power against spread, bends and products.

    Statistic: windows of m = 2 (d + 1) records along Hilbert curves and their contrasts a as in `ContrastGCM`, its
    symmetric form; s = distances from the window's mean beyond 3/4 of the scale; g = (4/3 a'x, 10/3 a's)/scale, scaled
    down to |g|_1 <= 1; T = sum over windows of g(x) g(y)', 2 x 2, the mean over the curves. x, y: one column each.
    Sensitivity: 2 (2m - 1) in L1 and in L2 for all four entries together, what one entry costs.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: each entry's is exact for the noise, with a normal null of variance v n, v measured over many laws;
    together weighted Bonferroni, 0.3 of the level each for the linear entry and for sizes, 0.2 for the others. Level:
    the laws of X and Y must hardly change within a window; `validity` says how little, and refuses too few records.
    Entries: (1, 1) linear; (2, 1) the size of X moves Y; (1, 2) X moves the spread of Y; (2, 2) sizes.

    Sizes are those about the mean of a window: no centre is released, and trends that are wider than a window do no
    harm to the power.
    trend_x, trend_y, caliper, rotation, num_rotations, skewed, reference: as in `ContrastGCM`.
    """

    flags: ClassVar[tuple[str, ...]] = (*validity.CONTRAST_FLAGS, validity.LOW_POWER)
    spec: ClassVar[TestSpec] = TestSpec(
        name="contrast-features",
        needs_all="it puts records next to their neighbours in Z, which is a sort",
        summary="contrasts of neighbours, their values and sizes; sees spread, bends and products given two to five Z",
        from_domain=from_domain,
        options=("residual_scale",),
        alternatives="dependence of X or its size with Y or its size given Z: line, bend, spread, product, not waves",
        accepts=lambda domain: on_a_line(domain) and continuous_columns_of_z(domain) >= 2,
        suitability=lambda domain: {ANY: 3},
        planning=Planning(),
        theory="docs/theory/contrast_features.md",
    )

    pairwise = None  # type: ignore[assignment]  # sizes are asked about one pair at a time
    for_one_column = "FeatureGCM"

    def specialize(self, shapes):
        """With its columns counted. Errors: ValueError where the public rule on the level refuses."""
        require_one_column("ContrastFeatures", shapes, "x", "y")
        return super().specialize(shapes)

    def validity(self, data):
        depth, _ = count_columns(data)
        count = data.x.shape[0]
        if depth not in DEPTHS:
            return self.too_deep(data)
        noise = self.mechanism_in_force().variance(dataclasses.replace(self, depth=depth).sensitivity(count))
        noise, null = as_number(noise), self._rates(depth)[1][1]
        rule = self._rule(data, noise, null, symmetric=True, width=window_features.SIZE, laws=True)
        if rule.verdict == validity.REFUSE or not STRONG_EFFECT * count < NEEDED_Z * noise**0.5:
            return rule
        sentence = rule.sentence + " Low power: even a strong bend or a strong effect on the spread may be missed."
        return dataclasses.replace(rule, flags=(*rule.flags, validity.LOW_POWER), sentence=sentence)

    def window_sums(self, x, y, points, scores, kept):
        """T of records in the order of one curve, (2, 2)."""
        return window_features.feature_sums(x, y, points, scores, kept, [2.0 * width for width in self.widths()])

    def _matrix(self, total):
        return total

    def is_symmetric(self, num_records: int) -> bool:
        """Always: sizes are skewed, and a contrast that isn't symmetric moves with the skewness of both sides."""
        return True

    def _rates(self, depth: int):
        return NULL_RATES.get(depth, NULL_RATES_OF_ONE) if self.curves(depth) >= 4 else NULL_RATES_OF_ONE

    def sensitivity(self, num_records):
        return Sensitivity(
            bound=self.largest_change(num_records),
            norm=self.mechanism_in_force().norm,
            relation=Relation.REPLACE_ONE,
            lower=-1.0 * num_records,
            upper=1.0 * num_records,
        )

    def pair_p_values(self, key, release):
        """P-value of each entry, (2, 2)."""
        sd = jnp.sqrt(jnp.array(self._rates(self.depth)) * self.most_windows(release.num_records)) + self._poison()
        return self.mechanism_in_force().null_p_value(release.value, sd, release.sensitivity)

    def p_value(self, key, release):
        return jnp.minimum(1.0, null_laws.least(self.pair_p_values(key, release) / jnp.array(WEIGHTS)))

    def estimate(self, release):
        """The noisy matrix T."""
        return release.value
