"""MarginAdaptive: the absolute difference against a threshold that follows the private margin. Default for 2x2.

Theory: docs/theory/margin_adaptive.md. Symbols: Y = `difference`, M1 = c11 + c10,
t0(m) = null quantile at rate m/N, t_L = its smallest L-Lipschitz majorant, L = `lipschitz` D.
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.independence import noise_law
from jaxdp.independence.tables.case_control import CaseControlTest, of_groups
from jaxdp.spec import Planning, TestSpec
from jaxdp.statistics.tables import binomial, unit_circle
from jaxdp.statistics.tables.taxicab import flip_score, flip_scores_at
from jaxdp.statistics.tables.unit_circle import Groups

DIFFERENCE, DISTANCE = "difference", "distance"
ENUMERATED_CELLS = 2**22  # above this, the bound D + max |t_L(m+1) - t_L(m)| replaces the enumeration
TABLE_CELLS = 2**24  # a table of all counts is kept up to here
SCANNED_CELLS, SCANNED_AT_ONCE = 2**31, 64  # beyond it all counts are looked at once, some columns at a time
BISECTED = "its thresholds are quantiles found by bisection"
NOISE_REACH = 40.0  # noise scales that a quantile may lie beyond the statistic: tails down to 1e-17


@frozen_pytree
class MarginAdaptive(CaseControlTest):
    """Private test of a 2x2 case/control table with public groups; the default for such tables.

    Statistic: q = |Y| - t_L(M1), Y = (c11 N0 - c10 N1)/N, where t_L(m) is the smallest L-Lipschitz majorant
    of the (1 - level)-quantile of |Y| + noise at null rate m/N. So the private margin M1 sets the bar.
    Sensitivity: the largest change of q over all lattice edges, enumerated (one person's x changes, so one
    count moves by 1); at most D (1 + lipschitz), D = max(N1, N0)/N. Relation REPLACE_ATTRIBUTE.
    Privacy: epsilon-DP by Laplace noise, or rho-zCDP with mechanism=Gaussian(rho).
    P-value: the largest tail of q + noise over null rates, exact for the counts and for the noise.

    score_kind: "difference" (|Y|), or "distance", the number of people whose x must change until
        chi-squared crosses its quantile (Johnson and Shmatikov 2013; needs a table of all counts).
    lipschitz: L in units of D: larger follows the margin more closely and costs more noise.
    thresholds: t_L(0), ..., t_L(N) if already known (a public function of the other arguments).
    """

    score_kind: str = jax.tree.static(default=DIFFERENCE)
    lipschitz: float = jax.tree.static(default=0.06)
    thresholds: ArrayLike | None = None

    spec: ClassVar[TestSpec] = of_groups(
        name="margin-adaptive",
        summary="two binary columns, y a public group label; recommended for 2x2",
        planning=Planning("tables:margin_adaptive_power", table=True, reference="tables:chi_squared_power"),
        theory="docs/theory/margin_adaptive.md",
    )
    gradient_free = BISECTED

    def __post_init__(self):
        super().__post_init__()
        check.one_of((DIFFERENCE, DISTANCE), score_kind=self.score_kind)
        check.positive(lipschitz=self.lipschitz)

    def specialize(self, shapes):
        test = super().specialize(shapes)
        return test.prepared()

    def prepared(self):
        """This test with its thresholds computed; once per budget and group sizes, then cached."""
        if self.thresholds is not None:
            return self
        thresholds = _thresholds(self.mechanism_in_force(), self.groups, self.level, self.lipschitz, self.score_kind)
        return dataclasses.replace(self, thresholds=thresholds)

    def score(self, exposed_cases, exposed_controls):
        exposed = exposed_cases + exposed_controls
        base = _base_score(self.score_kind, self.groups, self.level)
        return base(exposed_cases, exposed_controls) - _look_up(self._table(), exposed)

    def move(self):
        table = self._table()
        if _cells(self.groups) > ENUMERATED_CELLS:
            return _unit(self.score_kind, self.groups) + jnp.max(jnp.abs(jnp.diff(table)))
        cases, controls = (jnp.arange(size + 1.0) for size in self.groups)
        return largest_step(self.score(cases[:, None], controls[None, :]))

    def score_range(self):
        table = self._table()
        lower, upper = _base_range(self.score_kind, self.groups)
        return lower - jnp.max(table), upper - jnp.min(table)

    def critical_value(self, level: float | None = None):
        """The value from which on the test rejects at `level`; near 0 at its own level."""
        return CaseControlTest.critical_value(self.prepared(), level)

    def _table(self):
        if self.thresholds is None:
            raise ValueError("call prepared() first: the thresholds t_L(m) are not computed yet.")
        return jnp.asarray(self.thresholds, float)


def largest_step(table):
    """Largest change of a table of scores (a, b) over lattice edges."""
    across, down = (jnp.max(jnp.abs(jnp.diff(table, axis=axis))) for axis in (0, 1))
    return jnp.maximum(across, down)


def lipschitz_majorant(values, slope):
    """Smallest function >= values (k,) whose neighbouring entries differ by at most `slope`."""
    rise = slope * jnp.arange(values.shape[0], dtype=values.dtype)
    from_left = jax.lax.cummax(values + rise) - rise
    from_right = jax.lax.cummax(values - rise, reverse=True) + rise
    return jnp.maximum(from_left, from_right)


def _look_up(table, margin):
    return table[jnp.clip(jnp.asarray(margin, jnp.int32), 0, table.shape[0] - 1)]


def _unit(kind: str, groups: Groups) -> float:
    """D: how far the bare score moves."""
    return max(groups) / groups.total if kind == DIFFERENCE else 1.0


def _base_range(kind: str, groups: Groups) -> tuple[float, float]:
    if kind == DIFFERENCE:
        return 0.0, groups.cases * groups.controls / groups.total
    return -float(groups.total), float(groups.total)


def _base_score(kind: str, groups: Groups, level: float):
    if kind == DIFFERENCE:
        return lambda cases, controls: jnp.abs(unit_circle.difference(cases, controls, groups))
    table = jnp.asarray(distance_table(groups, level), float)
    return lambda cases, controls: table[cases.astype(jnp.int32), controls.astype(jnp.int32)]


@functools.lru_cache(maxsize=8)
def distance_table(groups: Groups, level: float):
    """Signed number of changes until chi-squared crosses its (1 - level)-quantile, int array (N1 + 1, N0 + 1)."""
    from scipy.stats import chi2

    if _cells(groups) > TABLE_CELLS:
        raise ValueError(f"the distance score needs a table of all counts, too large for {tuple(groups)} people.")
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        cases, controls = (jnp.arange(size + 1.0) for size in groups)
        statistic = unit_circle.chi_squared(cases[:, None], controls[None, :], groups)
        return np.asarray(flip_score(statistic > chi2.isf(level, 1))).astype(np.int32)


def distance_scores(groups: Groups, level: float, cases, controls):
    """The entries of `distance_table` at some counts (k,), for groups too large to keep it too."""
    if _cells(groups) <= TABLE_CELLS:
        return jnp.asarray(distance_table(groups, level), float)[cases, controls]
    low, high = _accepted_cases(groups, level)
    return flip_scores_at(low, high, groups.cases + 1, cases, controls)


@functools.lru_cache(maxsize=8)
def _accepted_cases(groups: Groups, level: float):
    """Smallest and largest number of exposed cases that chi-squared accepts, for each number of exposed controls.

    All between are accepted: the accepted tables are the whole points of an ellipse (docs/theory/unit_circle.md).
    """
    from scipy.stats import chi2

    if _cells(groups) > SCANNED_CELLS:
        raise ValueError(
            f"the distance score looks at all pairs of counts of {tuple(groups)} people: {_cells(groups):.2g}, "
            f"of at most {SCANNED_CELLS:.2g}; take FirstTables, which has no score of distance."
        )
    low, high, threshold = [], [], chi2.isf(level, 1)
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        cases = jnp.arange(groups.cases + 1.0)
        for start in range(0, groups.controls + 1, SCANNED_AT_ONCE):
            controls = jnp.arange(start, min(start + SCANNED_AT_ONCE, groups.controls + 1), dtype=float)
            accepted = unit_circle.chi_squared(cases[:, None], controls[None, :], groups) <= threshold
            none = ~jnp.any(accepted, axis=0)
            low.append(np.asarray(jnp.where(none, groups.cases + 1, jnp.argmax(accepted, axis=0))))
            high.append(np.asarray(jnp.where(none, -1, groups.cases - jnp.argmax(accepted[::-1], axis=0))))
    return np.concatenate(low).astype(np.int32), np.concatenate(high).astype(np.int32)


def _cells(groups: Groups) -> int:
    return (groups.cases + 1) * (groups.controls + 1)


def _thresholds(mechanism, groups: Groups, level: float, lipschitz: float, kind: str):
    """t_L(0), ..., t_L(N): on the host and cached for a concrete budget, in the trace for a traced one."""
    leaves = jax.tree.leaves(mechanism)
    if not all(check.is_concrete(leaf) and np.ndim(leaf) == 0 for leaf in leaves):
        return _majorant(mechanism, groups, level, lipschitz, kind)
    budget = tuple(float(leaf) for leaf in leaves)
    kind_of_noise: Any = type(mechanism)
    return _cached_thresholds(kind_of_noise, budget, groups, level, lipschitz, kind)


@functools.lru_cache(maxsize=64)
def _cached_thresholds(mechanism_type, budget, groups, level, lipschitz, kind):
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        mechanism = mechanism_type(*budget)
        return np.asarray(jax.jit(lambda m: _majorant(m, groups, level, lipschitz, kind))(mechanism))


def _majorant(mechanism, groups: Groups, level: float, lipschitz: float, kind: str):
    unit = _unit(kind, groups)
    norm = getattr(mechanism, "norm", Norm.L1)
    sensitivity = Sensitivity(unit * (1.0 + lipschitz), norm, Relation.REPLACE_ATTRIBUTE)
    survival = noise_law.survival(mechanism, sensitivity, "MarginAdaptive")
    reach = NOISE_REACH * mechanism.scale(sensitivity) + 1.0
    # The law at rate p equals the law at 1 - p, so half of the margins are enough.
    half = np.arange(groups.total // 2 + 1) / groups.total
    statistic = _base_score(kind, groups, level)
    low = binomial.quantiles(statistic, survival, level, groups, half, reach)
    mirrored = jnp.concatenate([low, low[: groups.total - half.size + 1][::-1]])
    return lipschitz_majorant(mirrored, lipschitz * unit)
