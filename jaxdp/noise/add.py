"""The seam between statistics and noise: one function per noise law, dispatched on the key's type.

A simulation key draws fast floats (`draw`); a release key draws exact lattice noise (`lattice`).
Both have the same law. `bound` and `error` come from the sensitivity: the computed statistic moves
by at most bound + 2 error between neighbours.
"""

import jax
import jax.numpy as jnp

from jaxdp.noise import draw, keys, lattice, random_runs, smooth_ladder, tape


def reach(sensitivity):
    """How far the computed statistic can move: the exact bound plus twice the numerical error."""
    return sensitivity.bound + 2.0 * sensitivity.error


def laplace(key, value, sensitivity, epsilon):
    """value + Laplace noise of scale reach/epsilon, independent over coordinates (L1 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.laplace(key, value, sensitivity, epsilon))
    else:
        floats = jnp.asarray(value, float)
        output = floats + reach(sensitivity) / epsilon * draw.laplace(key, floats.shape, floats.dtype)
    return tape.play("laplace", value, (reach(sensitivity), epsilon), key, output)


def geometric(key, value, sensitivity, epsilon):
    """Integer value + two-sided geometric noise of scale bound/epsilon (L1 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.geometric(key, value, sensitivity, epsilon))
    else:
        floats = jnp.asarray(value, float)
        output = floats + draw.two_sided_geometric(key, sensitivity.bound / epsilon, floats.shape, floats.dtype)
    return tape.play("geometric", value, (reach(sensitivity), epsilon), key, output)


def gaussian(key, value, sensitivity, rho):
    """value + normal noise of sd reach/sqrt(2 rho), independent over coordinates (L2 bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.gaussian(key, value, sensitivity, rho))
    else:
        floats = jnp.asarray(value, float)
        noise = draw.gaussian(key, floats.shape, floats.dtype)
        output = floats + reach(sensitivity) / jnp.sqrt(2.0 * rho) * noise
    return tape.play("gaussian", value, (reach(sensitivity), rho), key, output)


def argmax_exponential(key, scores, sensitivity, epsilon):
    """argmax of scores + exponential noise of mean 2 reach/epsilon, over the last axis (Linf bound)."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.argmax_exponential(key, scores, sensitivity, epsilon))
    else:
        noise = draw.exponential(key, jnp.shape(scores), jnp.asarray(scores).dtype)
        output = jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)
    return tape.play("argmax_exponential", scores, (reach(sensitivity), epsilon), key, output)


def argmax_gumbel(key, scores, sensitivity, epsilon):
    """argmax of scores + Gumbel noise of scale 2 reach/epsilon: the exponential mechanism."""
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.argmax_gumbel(key, scores, sensitivity, epsilon))
    else:
        noise = draw.gumbel(key, jnp.shape(scores), jnp.asarray(scores).dtype)
        output = jnp.argmax(scores + 2.0 * reach(sensitivity) / epsilon * noise, axis=-1)
    return tape.play("argmax_gumbel", scores, (reach(sensitivity), epsilon), key, output)


def best_of_runs(key, scores, sensitivity, epsilon, mean_runs):
    """Index of the best noisy score of a geometric number of runs (Linf bound), for releases alone."""
    return _certified(random_runs.best_of_runs(key, scores, sensitivity, epsilon, mean_runs))


def rank_at_most(key, reference, others, scale_numerator, epsilon, count):
    """Whether at most `count` of the noisy `others` reach the noisy `reference` (scalar, vector).

    All values carry Laplace noise of scale scale_numerator/epsilon.
    """
    if keys.mode_of(key) == keys.RELEASE:
        output = _certified(lattice.rank_at_most(key, reference, others, scale_numerator, epsilon, count))
    else:
        values = jnp.concatenate([jnp.atleast_1d(reference), others])
        noisy = values + scale_numerator / epsilon * draw.laplace(key, values.shape, values.dtype)
        output = jnp.sum(noisy[1:] >= noisy[0]) <= count
    return tape.play("rank_at_most", (reference, others), (scale_numerator, epsilon), key, output)


def sparse_threshold(key, threshold, sensitivity, budgets, firings, exponential):
    """The public threshold of sparse vector with its noise, as (center, noisy threshold); Linf bound.

    budgets: (threshold, each of `firings` yes-answers). exponential: Exp noise less its mean, or Laplace noise.
    The certificate is that of the whole sparse vector. Releases count in lattice steps.
    """
    if keys.mode_of(key) == keys.RELEASE:
        plan = lattice.plan_sparse(sensitivity, budgets, firings, not exponential)
        center, noisy = _certified((lattice.sparse_threshold(key, threshold, plan), plan.facts))
    else:
        center = jnp.asarray(threshold, float)
        noisy = center + reach(sensitivity) / budgets[0] * _centred(key, (), exponential)
    noisy = tape.play("sparse_threshold", threshold, (reach(sensitivity), *budgets), key, noisy)
    return center, noisy


def sparse_answers(key, queries, center, noisy, sensitivity, budgets, firings, exponential):
    """Whether each query (k,) with fresh noise reaches the noisy threshold; to be capped before it is released."""
    if keys.mode_of(key) == keys.RELEASE:
        plan = lattice.plan_sparse(sensitivity, budgets, firings, not exponential)
        return lattice.sparse_answers(key, queries, center, noisy, plan)
    queries = jnp.asarray(queries, float)
    return queries + 2.0 * reach(sensitivity) / budgets[1] * _centred(key, queries.shape, exponential) >= noisy


def sparse_answer(key, query, center, noisy, sensitivity, budgets, firings, exponential):
    """`sparse_answers` for one query (), as one small program: searches ask thousands in turn."""
    if keys.mode_of(key) == keys.RELEASE:
        plan = lattice.plan_sparse(sensitivity, budgets, firings, not exponential)
        return _RELEASED_ANSWER(key, jnp.reshape(query, (1,)), center, noisy, plan)[0]
    return jnp.asarray(query, float) + 2.0 * reach(sensitivity) / budgets[1] * _centred(key, (), exponential) >= noisy


_RELEASED_ANSWER = jax.jit(lattice.sparse_answers, static_argnums=4)


def smooth(key, value, sensitivity, mechanism):
    """Noise of scale width S around a center, for value = (center, S), both private; on a public lattice.

    mechanism: gives `ladder_decay()`, `noise(key, scale, shape)` and, for releases, its exact `law()`.
    S is rounded up to the ladder of `smooth_grid`, outputs to the nearest step, and into the public range.
    """
    center, scale = value
    if sensitivity is None or sensitivity.lower is None or sensitivity.upper is None:
        raise ValueError("noise of private scale needs the public range: give Sensitivity(..., lower=, upper=).")
    if keys.mode_of(key) == keys.RELEASE:
        law = mechanism.law()
        steps, rung = smooth_grid(center, scale, sensitivity.lower, sensitivity.upper, mechanism.ladder_decay())[:2]
        output = _certified(lattice.smooth(key, steps.astype(jnp.int64), rung.astype(jnp.int64), sensitivity, law))
    else:
        output = smooth_draws(key, value, sensitivity.lower, sensitivity.upper, mechanism)
    return tape.play("smooth", value, (sensitivity.upper - sensitivity.lower, mechanism.epsilon), key, output)


def smooth_draws(key, value, lower, upper, mechanism):
    """Float draws of the law of `smooth`, for simulations and null distributions."""
    center, scale = value
    steps, rung, step, spread = smooth_grid(center, scale, lower, upper, mechanism.ladder_decay())
    noisy = steps + mechanism.noise(key, jnp.exp(rung * spread), jnp.shape(steps))
    low, high = jnp.floor(lower / step), jnp.ceil(upper / step)
    return step * jnp.clip(jnp.floor(noisy + 0.5), low, high)


def smooth_grid(center, smooth, lower, upper, decay):
    """(center in steps, rung of the scale, step, distance of two rungs).

    e^(rung distance) >= S/step + 1, and between neighbours the rung moves by at most decay/distance if log S moves
    by at most decay (1 - 2^-20); the margins cover rounding (docs/theory/smooth_sensitivity.md). A missing center
    counts as the lower end, a missing S as the whole range.
    """
    lower, upper = jnp.asarray(lower, float), jnp.asarray(upper, float)
    # frexp: the range is m 2^e with 1/2 <= m < 1, exactly
    step = jnp.ldexp(jnp.ones((), lower.dtype), jnp.frexp(upper - lower)[1] - 1 - smooth_ladder.RESOLUTION)
    low, high = jnp.floor(lower / step), jnp.ceil(upper / step)
    steps = jnp.clip(jnp.floor(jnp.where(jnp.isnan(center), lower, center) / step), low, high)
    spread = decay / jnp.maximum(1.0, jnp.ceil(decay / smooth_ladder.FINEST))
    reach = jnp.clip(jnp.nan_to_num(smooth, nan=jnp.inf) / step, 0.0, high - low) + 1.0
    rung = jnp.maximum(0.0, jnp.ceil((jnp.log(reach) + 2.0**-38) / spread))
    return steps, rung, step, spread


def _centred(key, shape, exponential: bool):
    """Noise of scale 1 and mean 0."""
    return draw.exponential(key, shape) - 1.0 if exponential else draw.laplace(key, shape)


def _certified(drawn):
    """The released value; its certificate goes into the release being made."""
    output, facts = drawn
    tape.certify(facts)
    return output
