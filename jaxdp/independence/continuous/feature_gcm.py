"""FeatureGCM: do X and its size depend on Y and its size given one continuous Z? Four sums at the price of one.

Symbols: phi = (u, |u|), S = `sums`, R = `squares`, tau = `winsorize` times the scales, k = `num_neighbors`
(docs/theory/feature_gcm.md).
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity, Sequential
from jaxdp.independence.continuous.band_order import BandTest
from jaxdp.independence.continuous.neighbour_test import as_number, scales, sides
from jaxdp.independence.tables.noisy_table import require_one_column
from jaxdp.independence.tables.quantile_table import QuantileCuts
from jaxdp.mechanisms import Laplace, divide
from jaxdp.spec import ANY, Planning, TestSpec, continuous_columns_of_z, on_a_line
from jaxdp.statistics import partition
from jaxdp.statistics.neighbours import bands, neighbour_order, size_features
from jaxdp.statistics.tables.quantile_bins import GRID

# Replace-one (docs/theory/feature_gcm.md#sensitivity): k triples of pairs change, each by at most 8/2k in L1 and in L2,
# once for the departure and once for the arrival; a record's four squares lie in [0, 1].
SUMS_MOVE = 2.0 * size_features.DIAMETER**2
SQUARES_MOVE = {Norm.L1: 4.0, Norm.L2: 2.0}
SHARES = {"sums": 0.95, "squares": 0.05}
CENTRE_SHARE = 0.1  # of the budget, for private medians of x and y
WEIGHTS = ((0.3, 0.2), (0.2, 0.3))  # of the level: most for lines and for products, whose signal is the smallest
TYPICAL_VARIANCE = 0.5  # of u, for normal residuals and tau about their sd
MAX_PRODUCT = size_features.DIAMETER**2  # of two differences
MIN_WIDTH, MAX_WIDTH = 0.9, 2.5


def default_width(num_records: int, epsilon):
    """tau in units of the residual scale: wider where noise matters less (#tuning)."""
    return jnp.clip(1.1 * (num_records * epsilon / 1000.0) ** 0.22, MIN_WIDTH, MAX_WIDTH)


def from_domain(cls, epsilon, domain, options):
    """The builder: by the scales that are asked for."""
    return cls(epsilon=epsilon, **scales(domain, options))


def on_centres(test, query, released):
    """The test about the released medians, on the scale of the schema's [-1, 1]."""
    centres = (2.0 * (released.value[name] + 1.0) / GRID - 1.0 for name in ("x1", "y1"))
    return dataclasses.replace(test, centres=tuple(centres))


@frozen_pytree
class FeatureGCM(BandTest):
    """Private test of X independent of Y given one continuous Z, with power against spread, bends and products.

    Statistic: u = clip((x - centre)/tau, -1, 1), v the same of y; records sorted by z as in `BandGCM`; S = 1/(2k) times
    the sum of (phi(x_j) - phi(x_i)) (phi(y_j) - phi(y_i))' over pairs at most k ranks apart, phi(x) = (u, |u|): a 2 x 2
    matrix. R = sum of (u^2, (2|u| - 1)^2)' (v^2, (2|v| - 1)^2), which bounds its null variance. x, y: one column each.
    Sensitivity: S 8 in L1 and in L2 for all four entries together, what one entry costs; R 4 in L1, 2 in L2.
    Privacy: epsilon-DP, or rho-zCDP with mechanism=Gaussian(rho): 95 % for S, 5 % for R; where a schema scaled the
    data, 10 % of everything first for private medians of x and y (`QuantileCuts`).
    P-value: each entry's is exact for the noise of S and to second order for that of R; together weighted Bonferroni,
    0.3 of the level each for the linear entry and for sizes, 0.2 for the others. Level: as for `BandGCM`, for laws (not
    only means) that change gradually.
    Entries: (u, v) linear; (|u|, v) the size of X moves Y; (u, |v|) X moves the spread of Y; (|u|, |v|) sizes.
    Blind to effects of a fine wave; sizes are those about one centre, so power for them (never the level) is lost where
    the trends in z are larger than the residuals: give trend_x, trend_y.

    centres: of x and y, public; None: private medians where a schema scaled the data, 0 otherwise.
    winsorize: tau in units of scale_x, scale_y; default 1.1 (n epsilon/1000)^0.22, within [0.9, 2.5].
    trend_x, trend_y: public functions of z, subtracted from x and y, as in `ContrastGCM`.
    Others: as in `BandGCM`.
    """

    centres: Any = None
    winsorize: ArrayLike | None = None
    trend_x: Any = jax.tree.static(default=None)
    trend_y: Any = jax.tree.static(default=None)

    spec: ClassVar[TestSpec] = TestSpec(
        name="feature-gcm",
        needs_all="it sorts records by Z",
        summary="neighbours in the order of Z, their values and sizes; sees spread, bends and products given one Z",
        from_domain=from_domain,
        options=("residual_scale",),
        alternatives="dependence of X or its size with Y or its size given Z: line, bend, spread, product, not waves",
        accepts=lambda domain: on_a_line(domain) and continuous_columns_of_z(domain) <= 1 and bool(domain.z),
        suitability=lambda domain: {ANY: 3},
        planning=Planning(),
        theory="docs/theory/feature_gcm.md",
    )

    pairwise = None  # type: ignore[assignment]  # centres are those of one pair
    for_several_columns = "ContrastFeatures"

    def __post_init__(self):
        super().__post_init__()
        if self.winsorize is not None:
            check.positive(winsorize=self.winsorize)

    def mechanism_in_force(self):
        return divide(Laplace(self.epsilon) if self.mechanism is None else self.mechanism, SHARES)

    def specialize(self, shapes):
        """The private medians where they are wanted, then the test about them."""
        require_one_column("FeatureGCM", shapes, "x", "y")
        test = super().specialize(shapes)
        if self.winsorize is None:
            test = dataclasses.replace(test, winsorize=default_width(shapes.x.shape[0], self._nominal_epsilon()))
        if self.centres is not None:
            return test
        if shapes.domain is None or self.trend_x is not None or self.trend_y is not None:
            return dataclasses.replace(test, centres=(0.0, 0.0))
        whole = Laplace(self.epsilon) if self.mechanism is None else self.mechanism
        first = QuantileCuts(mechanism=whole.share(CENTRE_SHARE), bins=(2, 2), reference=partition.Uniform())
        left = whole.share(1.0 - CENTRE_SHARE)
        rest = dataclasses.replace(test, epsilon=None, mechanism=left, centres=(0.0, 0.0))  # `on_centres` replaces them
        return Sequential(first=first, second=rest, then=on_centres)

    def _nominal_epsilon(self):
        """What noise of this budget amounts to in pure epsilon, for the default width alone."""
        if self.epsilon is not None:
            return jnp.asarray(self.epsilon, float)
        mechanism = self.mechanism
        return jnp.sqrt(2.0 * mechanism.rho) if hasattr(mechanism, "rho") else getattr(mechanism, "epsilon", 1.0)

    def _public_variance(self, num_records: int) -> float:
        k = self.neighbors(num_records)
        return num_records * (1.0 + 0.5 / k) * TYPICAL_VARIANCE**2 / MAX_PRODUCT**2

    def _noise_variance(self, num_records: int) -> float:
        noise = self.mechanism_in_force()["sums"].variance(self.sensitivity(num_records)["sums"])
        return as_number(noise) / MAX_PRODUCT**2

    def largest_sum(self, num_records: int) -> float:
        return size_features.DIAMETER**2 * num_records * self.neighbors(num_records)

    def widths(self):
        """tau of x and of y."""
        factor = check.positive_or_nan(self.winsorize)
        return tuple(factor * check.positive_or_nan(scale) for scale in (self.scale_x, self.scale_y))

    def statistic(self, key, data):
        """Dict of S (2, 2) and R (2, 2)."""
        x, y = sides(data, self.trend_x, self.trend_y)
        parts = zip((x[:, 0], y[:, 0]), self.centres, self.widths(), strict=True)
        x, y = (size_features.features(values, centre, width) for values, centre, width in parts)
        order, near = self._near(key, data)
        x, y = neighbour_order.in_order(order, x, y)
        return {
            "sums": bands.band_sum(x, y, near, self.neighbors(x.shape[0]), (1.0, 1.0), "plain"),
            "squares": bands.products(size_features.squares(x), size_features.squares(y)),
        }

    def sensitivity(self, num_records):
        budget, k = self.mechanism_in_force(), self.neighbors(num_records)
        rounding = 0.0 if k & (k - 1) == 0 else 8.0 * num_records * bands.UNIT_ROUNDOFF
        norm = budget["sums"].norm
        return {
            "sums": Sensitivity(
                SUMS_MOVE, norm, Relation.REPLACE_ONE, error=rounding, lower=-2.0 * num_records, upper=2.0 * num_records
            ),
            "squares": Sensitivity(SQUARES_MOVE[norm], norm, Relation.REPLACE_ONE, lower=0.0, upper=1.0 * num_records),
        }

    def pair_p_values(self, key, release):
        """P-value of each entry, (2, 2)."""
        budget, sensitivity, count = self.mechanism_in_force(), release.sensitivity, release.num_records
        factor = (1.0 + 0.5 / self.neighbors(count)) * size_features.SPREADS
        variance_noise = factor**2 * budget["squares"].variance(sensitivity["squares"])
        sd = null_laws.noisy_sd(factor * release.value["squares"], variance_noise, count * size_features.SPREADS)
        sd = budget["sums"].widened(release.value["sums"], sd, sensitivity["sums"], variance_noise)
        return budget["sums"].null_p_value(release.value["sums"], sd + self._poison(), sensitivity["sums"])

    def p_value(self, key, release):
        return jnp.minimum(1.0, null_laws.least(self.pair_p_values(None, release) / jnp.array(WEIGHTS)))

    def estimate(self, release):
        """The noisy matrix S."""
        return release.value["sums"]
