"""Chi-squared of a case/control table and its unit-circle form: pure functions of counts.

Source: Kakizaki, Fukuchi and Sakuma 2017; docs/theory/unit_circle.md. Symbols:
c11, c10 = `exposed_cases`, `exposed_controls` (people with X = 1 among the N1 cases, the N0 controls);
M1 = c11 + c10; tau = `threshold`, the chi-squared quantile; u = `norm`. Neighbours: one person's X
changes, the groups stay, so exactly one of c11, c10 moves by 1.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp


class Groups(NamedTuple):
    """Public group sizes: N1 cases and N0 controls."""

    cases: int
    controls: int

    @property
    def total(self) -> int:
        """N = N1 + N0."""
        return self.cases + self.controls


def difference(exposed_cases, exposed_controls, groups: Groups):
    """Y = (c11 N0 - c10 N1)/N, the excess of exposed cases over independence; any shapes that broadcast."""
    share = groups.cases / groups.total
    return exposed_cases * (1.0 - share) - exposed_controls * share


def chi_squared(exposed_cases, exposed_controls, groups: Groups):
    """Pearson's statistic N (c11 N0 - c10 N1)^2/(N1 N0 M1 M0), 0 where a margin is empty."""
    exposed = exposed_cases + exposed_controls
    spread = exposed * ((groups.total - exposed) / groups.total)
    weight = groups.total / (groups.cases * groups.controls / groups.total)
    excess = difference(exposed_cases, exposed_controls, groups)
    return jnp.where(spread > 0, weight * excess**2 / jnp.where(spread > 0, spread, 1.0), 0.0)


def vector(exposed_cases, exposed_controls, groups: Groups, threshold):
    """The image of the table under the affine map that sends chi^2 = tau to the unit circle: a pair.

    v = (1 - 2 M1/N, 2 Y sqrt(N/(tau N1 N0))): the paper's map up to a rotation, without eigenvectors.
    """
    first = 1.0 - 2.0 * (exposed_cases + exposed_controls) / groups.total
    stretch = jnp.sqrt(groups.total / threshold / groups.cases / groups.controls)
    return first, 2.0 * stretch * difference(exposed_cases, exposed_controls, groups)


def norm(exposed_cases, exposed_controls, groups: Groups, threshold):
    """u = |v|; u > 1 exactly where chi^2 > tau. u^2 = 1 + (4 M1 M0/N^2)(chi^2/tau - 1)."""
    first, second = vector(exposed_cases, exposed_controls, groups, threshold)
    return jnp.sqrt(first**2 + second**2)


def norm_range(groups: Groups, threshold) -> tuple[float, float]:
    """Public range of u: chi^2 <= N and M1 M0 <= N^2/4, so u^2 <= max(1, N/tau)."""
    return 0.0, math.sqrt(max(1.0, groups.total / threshold))


def group_moves(groups: Groups, threshold) -> tuple[float, float]:
    """Length |v - v'| of one step: Delta_1 for a change among the cases, Delta_0 among the controls."""
    n1, n0, n = groups.cases, groups.controls, groups.total
    first = 2.0 / n * math.sqrt((n * n0 + threshold * n1) / (threshold * n1))
    second = 2.0 / n * math.sqrt((n * n1 + threshold * n0) / (threshold * n0))
    return first, second


def norm_sensitivity(groups: Groups, threshold) -> float:
    """max(Delta_1, Delta_0): | |v| - |v'| | <= |v - v'| and one count moves by 1.

    Proof: docs/theory/unit_circle.md#sensitivity.
    """
    return max(group_moves(groups, threshold))


def paper_sensitivity(groups: Groups, threshold) -> float:
    """Theorem 6 of the paper, sqrt(Delta_1^2 + Delta_0^2): valid, too large by up to sqrt(2)."""
    return math.hypot(*group_moves(groups, threshold))


def chi_squared_sensitivity(groups: Groups) -> float:
    """Exact change of chi^2 itself, (N^2/(N1 N0))(1 - 1/(max(N1, N0) + 1)) (docs/theory/unit_circle.md#sensitivity)."""
    n1, n0, n = groups.cases, groups.controls, groups.total
    return n * n / (n1 * n0) * (1.0 - 1.0 / (max(n1, n0) + 1.0))


def gamma_error(gamma, exposed, groups: Groups, threshold, critical_value, scale):
    """P(accept | chi^2 > tau + gamma) of "reject if u + Laplace(scale) > critical_value", at margin M1 = `exposed`.

    Bound, attained at chi^2 = tau + gamma; Theorem 7 of the paper is the case critical_value = 1
    (docs/theory/unit_circle.md#gamma-error).
    """
    spread = 4.0 * exposed * (groups.total - exposed) / groups.total**2
    return _laplace_cdf(critical_value - jnp.sqrt(1.0 + spread * gamma / threshold), scale)


def _laplace_cdf(x, scale):
    beyond = 0.5 * jnp.exp(-jnp.abs(x) / scale)
    return jnp.where(jnp.asarray(x) < 0, beyond, 1.0 - beyond)
