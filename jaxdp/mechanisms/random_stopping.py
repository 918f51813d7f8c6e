"""The best of a random number of private runs: selection whose price does not grow with the number of candidates.

Source: Liu and Talwar 2019; Papernot and Steinke 2022, Theorem 2 and Corollary 3; docs/theory/random_stopping.md.
Symbols: K = number of runs, TNB(eta, gamma) = its truncated negative binomial law, f = its generating function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.bisection import bisected
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import PureLaw
from jaxdp.noise import floats, random_runs
from jaxdp.noise.floats import reach
from jaxdp.randomness import keys

MAX_RUNS = 1 << 20  # ends the search for K where float32 sums no longer grow


@frozen_pytree
class RandomStopping(PureLaw):
    """Releases the index of the best score seen in K runs; each run looks at one random candidate with Laplace noise.

    K follows TNB(eta, gamma) on 1, 2, ...: P(K = k) proportional to (1 - gamma)^k times the product over l < k of
    (l + eta)/(l + 1). eta = 1 is the geometric law, eta = 0 the logarithmic one.
    Privacy: epsilon-DP for scores that each move by at most `bound` (Linf). Each run is epsilon/(2 + eta)-DP and the
    best of K such runs is (2 + eta) times that (Papernot and Steinke 2022, Corollary 3; the factor is the best
    possible as gamma -> 0). K itself stays secret. For few candidates `PermuteAndFlip` is better; this one pays the
    same for a million, and for runs that are no sums (`best_of`).
    mean_runs: E[K] > 1, public; gamma follows from it. Releases: exact noise for eta = 1 and mean_runs <= 2000
    (docs/theory/random_stopping.md); `best_of`, whose runs are the caller's, takes simulation keys only.
    """

    epsilon: ArrayLike
    eta: float = jax.tree.static(default=1.0)
    mean_runs: float = jax.tree.static(default=20.0)

    name: ClassVar[str] = "best_of_runs"
    norm: ClassVar[Norm] = Norm.LINF
    outputs_released: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        check.non_negative(eta=self.eta)
        check.in_range(1.0, 1e5, mean_runs=self.mean_runs)

    def each(self):
        """Budget of one run."""
        return check.budget(self.epsilon) / factor(self.eta)

    def lattice_draw(self, key, value, sensitivity):
        if self.eta != 1.0:
            raise ValueError(f"RandomStopping has exact noise for eta = 1 only, got eta = {self.eta}.")
        return random_runs.best_of_runs(key, value, sensitivity, self.epsilon, self.mean_runs)

    def float_draw(self, key, value, sensitivity):
        scale = reach(sensitivity) / self.each()

        def run(key):
            key_index, key_noise = jax.random.split(key)
            index = jax.random.randint(key_index, (), 0, value.shape[-1])
            return value[index] + scale * floats.laplace(key_noise, (), value.dtype), index

        return self.best_of(key, run)

    def best_of(self, key, run: Callable[[Any], tuple[Any, Any]]):
        """The output with the largest score of K runs. run: key -> (score, output), a program of budget `each()`.

        The score counts as released: it must be part of what that budget pays for.
        """
        if keys.admit(key) == keys.RELEASE:
            raise ValueError(
                "best_of has no exact noise for releases: the time it takes tells K; use perturb or jax.random.key."
            )
        key_count, key_runs = jax.random.split(key)
        count = number_of_runs(key_count, self.eta, self.mean_runs)

        def step(number, best):
            score, output = run(jax.random.fold_in(key_runs, number))
            wins = score > best[0]
            return jax.tree.map(lambda new, old: jnp.where(wins, new, old), (score, output), best)

        first = run(jax.random.fold_in(key_runs, 0))
        return jax.lax.fori_loop(1, count, step, first)[1]


def factor(eta: float) -> float:
    """What the best of K pure-DP runs costs in budgets of one run, K ~ TNB(eta, gamma): 2 + eta, for any gamma."""
    return 2.0 + eta


def mean_of(eta: float, gamma: float) -> float:
    """E[K] of TNB(eta, gamma): eta (1/gamma - 1)/(1 - gamma^eta), or (1/gamma - 1)/ln(1/gamma) for eta = 0."""
    odds = 1.0 / gamma - 1.0
    return odds / -np.log(gamma) if eta == 0.0 else eta * odds / -np.expm1(eta * np.log(gamma))


def gamma_of(eta: float, mean_runs: float) -> float:
    """The gamma with E[K] = mean_runs, by bisection on its logarithm."""
    _, high = bisected(lambda gamma: mean_of(eta, np.exp(gamma)) > mean_runs, -60.0, -1e-9, 200, xp=np)
    return float(np.exp(high))


def number_of_runs(key, eta: float, mean_runs: float):
    """A draw of K, int32 >= 1, by inversion."""
    gamma = gamma_of(eta, mean_runs)
    first = (1.0 - gamma) / -np.log(gamma) if eta == 0.0 else eta * (1.0 - gamma) / np.expm1(-eta * np.log(gamma))
    target = jax.random.uniform(key)

    def more(state):
        count, _, total = state
        return (total < target) & (count < MAX_RUNS)

    def step(state):
        count, mass, total = state
        mass = mass * (1.0 - gamma) * (count + eta) / (count + 1.0)
        return count + 1, mass, total + mass

    start = (jnp.asarray(1, jnp.int32), jnp.asarray(first, float), jnp.asarray(first, float))
    return jax.lax.while_loop(more, step, start)[0]
