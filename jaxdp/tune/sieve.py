"""Budgets of a discovery run, tuned on a public guess of how the queries lie about their threshold.

Theory: docs/theory/priv_pc.md#round, #errors (exact errors; exponential noise in the sieve, Laplace noise to
examine). Symbols:
t = `tweak`, eps_s = `sieve`, eps_x = `examine`, e1 + e2 = eps_s; b1 = Delta/e1, b2 = 2 Delta/e2, b3 = Delta/eps_x.
Margins are in units of Delta; a positive margin should fire.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.amounts import spent
from jaxdp._base.pytree import frozen_pytree
from jaxdp.mechanisms.sparse_vector import exponential_gap_tail
from jaxdp.noise import survival
from jaxdp.tune import descent

STEPS = 60
THRESHOLD_SHARE = 1.0 / (1.0 + 2.0 ** (2.0 / 3.0))  # of the sieve's budget, as `SparseVector` divides it
START_SHARES, START_TWEAKS = (0.5, 0.7, 0.4), (0.0, 1.0, 4.0)


@frozen_pytree
class SieveSettings:
    """One round of budget e1 + e2 + eps_x and its threshold tweak t, in units of Delta; arrays or numbers.

    For `jaxdp.discovery.priv_pc(..., sieve_share=settings.sieve_share, tweak=settings.tweak)`. tuned_on: in words.
    """

    threshold: float
    query: float
    examine: float
    tweak: float
    tuned_on: str = jax.tree.static(default="")

    @property
    def sieve_share(self) -> float:
        """The part of a round's budget that the sieve gets."""
        sieve = self.threshold + self.query
        return sieve / (sieve + self.examine)


def expected_errors(settings: SieveSettings, margins: ArrayLike, rounds: float, weights: ArrayLike = 1.0) -> jax.Array:
    """Expected wrong answers per query of a run that may fire its sieve `rounds` times in all.

    margins: (q,) distances of the queries from the threshold in units of Delta; those that should fire are >= 0.
    A query fires if it passes the sieve (lowered by t) and the examination; their noises are independent, so the two
    probabilities are exact for m = n. Every above-threshold answer of the sieve beyond `rounds` leaves a query
    unanswered, one error each.
    """
    margins = jnp.asarray(margins, float)
    first, second, third = 1.0 / settings.threshold, 2.0 / settings.query, 1.0 / settings.examine
    passes = exponential_gap_tail(-(margins + settings.tweak) + second - first, first, second)
    fires = passes * survival.laplace(-margins, third)
    wrong = jnp.where(margins >= 0.0, 1.0 - fires, fires)
    unanswered = jax.nn.relu(jnp.sum(passes) - rounds) / margins.size
    return jnp.mean(jnp.asarray(weights) * wrong) + unanswered


def sieve_settings(epsilon: float, margins: ArrayLike, rounds: int, weights: ArrayLike = 1.0) -> SieveSettings:
    """Share of the sieve and tweak that make the fewest expected errors on public guesses of margins, by gradient.

    epsilon: budget of the whole run, epsilon/rounds for each round. margins, rounds: as in `expected_errors`.
    weights: cost of each error. Errors: ValueError.
    """
    check.positive(epsilon=epsilon)
    check.at_least(1, rounds=rounds)
    with jax.enable_x64(True):
        margins = jnp.asarray(np.asarray(margins, float))
        found = _tune_sieve(jnp.asarray(epsilon / rounds, float), margins, float(rounds), jnp.asarray(weights, float))
        span = f"{margins.size} public guesses of margins from {float(margins.min()):g} to {float(margins.max()):g}"
    return SieveSettings(
        **{name: float(getattr(found, name)) for name in ("threshold", "query", "examine", "tweak")},
        tuned_on=f"expected errors on {span}, {rounds} rounds, epsilon {spent(epsilon)} in all",
    )


def settings_at(point, epsilon) -> SieveSettings:
    """Settings of an unconstrained point: the logit of the sieve's share, and t in units of Delta/epsilon."""
    logit, tweak = point
    sieve = jax.nn.sigmoid(logit) * epsilon
    return SieveSettings(
        threshold=THRESHOLD_SHARE * sieve,
        query=(1.0 - THRESHOLD_SHARE) * sieve,
        examine=epsilon - sieve,
        tweak=tweak / epsilon,
    )


@jax.jit
def _tune_sieve(epsilon, margins, rounds, weights):
    def objective(point):
        return -expected_errors(settings_at(point, epsilon), margins, rounds, weights)

    shares = jnp.array(START_SHARES)
    starts = (jnp.log(shares / (1.0 - shares)), jnp.array(START_TWEAKS))
    points, values = descent.ascend(objective, starts, steps=STEPS)
    best = jnp.argmax(values)
    return settings_at(jax.tree.map(lambda leaf: leaf[best], points), epsilon)


def order_errors(budgets: ArrayLike, margins: ArrayLike, counts: ArrayLike) -> jax.Array:
    """Expected wrong answers of all orders: Laplace noise of scale 1/eps_k on queries of margin m_k, q_k of each order.

    budgets: per query of each order, (orders,). margins: typical |distance| from the threshold in units of the
    sensitivity, (orders,). counts: number of queries (orders,).
    """
    return jnp.sum(jnp.asarray(counts) * 0.5 * jnp.exp(-jnp.asarray(margins) * jnp.asarray(budgets)))


def order_budgets(epsilon: float, margins: ArrayLike, counts: ArrayLike) -> np.ndarray:
    """Per-query budgets of the orders, array (orders,), with sum of counts times budgets equal to epsilon, by gradient.

    The fewest expected errors (`order_errors`) for public guesses of margins and numbers of queries. Pure composition.
    """
    margins, counts = np.asarray(margins, float), np.asarray(counts, float)
    check.positive(epsilon=epsilon, margins=margins, counts=counts)
    if margins.shape != counts.shape or margins.ndim != 1:
        raise ValueError(f"margins and counts need one number an order, got shapes {margins.shape} and {counts.shape}.")
    with jax.enable_x64(True):
        return np.asarray(_tune_orders(jnp.asarray(epsilon, float), jnp.asarray(margins), jnp.asarray(counts)))


@jax.jit
def _tune_orders(epsilon, margins, counts):
    def budgets(logits):
        return epsilon * jax.nn.softmax(logits) / counts

    def objective(logits):
        return -jnp.log(order_errors(budgets(logits), margins, counts))

    points, _ = descent.ascend(objective, jnp.log(counts)[None], steps=STEPS)
    return budgets(points[0])
