"""Budgets of a discovery run, tuned on a public guess of how the queries lie about their threshold.

Source: formula sheet on Priv-PC, sections 5.1 and 5.4 (exact errors of sieve-and-examine with Laplace noise). Symbols:
t = `tweak`, eps_s = `sieve`, eps_x = `examine`, e1 + e2 = eps_s; b1 = Delta/e1, b2 = 2 Delta/e2, b3 = Delta/eps_x.
Margins are in units of Delta; a positive margin should fire.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import _check
from jaxdp._pytree import frozen_pytree
from jaxdp.tune import descent

STEPS = 60
PAPER_SHARES = (0.25, 0.25, 0.5)  # threshold, query, examine: eps/2 for each stage, halved in the sieve


@frozen_pytree
class SieveSettings:
    """One round of budget e1 + e2 + eps_x and its threshold tweak t, in units of Delta; arrays or numbers."""

    threshold: float
    query: float
    examine: float
    tweak: float

    @classmethod
    def of_paper(cls, epsilon: float) -> "SieveSettings":
        """The published split, t = 0."""
        return cls(threshold=0.25 * epsilon, query=0.25 * epsilon, examine=0.5 * epsilon, tweak=0.0)


def expected_errors(settings: SieveSettings, margins, rounds: float, weights=1.0):
    """Expected wrong answers per query of a run that may fire its sieve `rounds` times in all.

    margins: (q,) distances of the queries from the threshold in units of Delta; those that should fire are >= 0.
    A query fires if it passes the sieve (lowered by t) and the examination; their noises are independent, so the two
    probabilities are exact for m = n. Every sieve firing beyond `rounds` leaves a query unanswered, one error each.
    """
    margins = jnp.asarray(margins, float)
    first, second, third = 1.0 / settings.threshold, 2.0 / settings.query, 1.0 / settings.examine
    passes = _gap_tail(-(margins + settings.tweak), first, second)
    fires = passes * _laplace_tail(-margins, third)
    wrong = jnp.where(margins >= 0.0, 1.0 - fires, fires)
    unanswered = jax.nn.relu(jnp.sum(passes) - rounds) / margins.size
    return jnp.mean(jnp.asarray(weights) * wrong) + unanswered


def _laplace_tail(x, scale):
    beyond = 0.5 * jnp.exp(-jnp.abs(x) / scale)
    return jnp.where(x >= 0.0, beyond, 1.0 - beyond)


def _gap_tail(x, first, second):
    """P(nu - rho >= x) for Laplace scales b1 != b2; close scales are moved apart by 1e-3, an error below 1e-6."""
    second = jnp.where(jnp.abs(second / first - 1.0) < 1e-3, 1.001 * first, second)
    size = jnp.abs(x)
    tail = (second**2 * jnp.exp(-size / second) - first**2 * jnp.exp(-size / first)) / (2.0 * (second**2 - first**2))
    return jnp.where(x >= 0.0, tail, 1.0 - tail)


def sieve_settings(epsilon: float, margins, rounds: int, weights=1.0) -> SieveSettings:
    """Budgets and tweak that make the fewest expected errors on these public guesses of margins, by gradient.

    epsilon: budget of the whole run, epsilon/rounds for each round. margins, rounds: as in `expected_errors`.
    weights: cost of each error. Errors: ValueError.
    """
    _check.positive(epsilon=epsilon)
    _check.at_least(1, rounds=rounds)
    with jax.enable_x64(True):
        margins = jnp.asarray(np.asarray(margins, float))
        found = _tune_sieve(jnp.asarray(epsilon / rounds, float), margins, float(rounds), jnp.asarray(weights, float))
    return SieveSettings(**{name: float(getattr(found, name)) for name in ("threshold", "query", "examine", "tweak")})


def settings_at(point, epsilon) -> SieveSettings:
    """Settings of an unconstrained point: logits of the three shares, and t in units of the query noise."""
    logits, tweak = point
    shares = jax.nn.softmax(logits)
    return SieveSettings(
        threshold=shares[0] * epsilon, query=shares[1] * epsilon, examine=shares[2] * epsilon, tweak=tweak / epsilon
    )


@jax.jit
def _tune_sieve(epsilon, margins, rounds, weights):
    objective = lambda point: -expected_errors(settings_at(point, epsilon), margins, rounds, weights)  # noqa: E731
    starts = (jnp.log(jnp.array([PAPER_SHARES, (0.2, 0.5, 0.3), (0.1, 0.3, 0.6)])), jnp.array([0.0, 4.0, 1.0]))
    points, values = descent.ascend(objective, starts, steps=STEPS)
    best = jnp.argmax(values)
    return settings_at(jax.tree.map(lambda leaf: leaf[best], points), epsilon)


def order_errors(budgets, margins, counts):
    """Expected wrong answers of all orders: Laplace noise of scale 1/eps_k on queries of margin m_k, q_k of each order.

    budgets: per query of each order, (orders,). margins: typical |distance| from the threshold in units of the
    sensitivity, (orders,). counts: number of queries (orders,).
    """
    return jnp.sum(counts * 0.5 * jnp.exp(-margins * budgets))


def order_budgets(epsilon: float, margins, counts):
    """Per-query budgets of the orders, array (orders,), with sum of counts times budgets equal to epsilon, by gradient.

    The fewest expected errors (`order_errors`) for public guesses of margins and numbers of queries. Pure composition.
    """
    margins, counts = np.asarray(margins, float), np.asarray(counts, float)
    _check.positive(epsilon=epsilon, margins=margins, counts=counts)
    if margins.shape != counts.shape or margins.ndim != 1:
        raise ValueError(f"margins and counts need one number an order, got shapes {margins.shape} and {counts.shape}.")
    with jax.enable_x64(True):
        return np.asarray(_tune_orders(jnp.asarray(epsilon, float), jnp.asarray(margins), jnp.asarray(counts)))


@jax.jit
def _tune_orders(epsilon, margins, counts):
    budgets = lambda logits: epsilon * jax.nn.softmax(logits) / counts  # noqa: E731
    objective = lambda logits: -jnp.log(order_errors(budgets(logits), margins, counts))  # noqa: E731
    points, _ = descent.ascend(objective, jnp.log(counts)[None], steps=STEPS)
    return budgets(points[0])
