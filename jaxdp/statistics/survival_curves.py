"""Kaplan-Meier curves of groups with bands, and areas below them, from noisy counts of group x block x event.

Symbols as in docs/theory/log_rank.md#curves: J blocks; Y at risk at the start of a block, d events in it, H the
cumulative hazard at the ends of blocks, S = exp(-H). To first order H errs by the noise times known slopes, and by
errors of sampling that are independent by block.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

CLEAR = 3.0  # noise sds of a number at risk: a curve is estimated up to the last block that more of them reach
LEFT = 0.02  # of those at risk at the start of a block, at its end at least
DRAWS, SEED = 2000, 7  # of the errors, whose quantiles the bands take; the same ones for every release
MISS = 0.05
HALF_OF_GRID = 0.5  # restricted means are compared where both curves are known as far as this
BENT = 1.0 / 6.0  # of a block's width times a curve's fall in it: what its shape within blocks may add to its area


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SurvivalCurves:
    """Of each of K groups, at the start of the grid and the ends of J blocks, (K, J + 1).

    survival: S; NaN from where too few are at risk. low, high: a band that holds the whole curve, which falls in time;
    it goes on where S is not known. until: as a share of the grid, up to where every group is known. means: areas below
    the curves up to there, (K,), in lengths of the grid. difference, low_difference, high_difference: of each further
    area less the first, (K - 1,), with intervals that hold together; NaN where `until` is below half.
    """

    survival: Any
    low: Any
    high: Any
    until: Any
    means: Any
    difference: Any
    low_difference: Any
    high_difference: Any


def survival_curves(counts, num_records, noise, ends, step) -> SurvivalCurves:
    """From `log_rank.blocked` counts with noise; n is public. noise: (DRAWS, *counts), draws of its law.

    ends: of the blocks, as `log_rank.ends`. step: as `log_rank.step_lengths`.
    """
    groups, blocks = counts.shape[0], counts.shape[1] // 2
    noise_variance = jnp.mean(noise**2)
    counts, noise = (part - jnp.mean(part, axis=(-2, -1), keepdims=True) for part in (counts, noise))
    counts = counts + num_records / counts.size  # n is known
    at_risk = at_risk_of(counts)[1]
    noise_sd = jnp.sqrt(noise_variance * (1.0 + 2.0 * (blocks - jnp.arange(blocks + 1))))[None, :]
    known = jnp.cumprod(1.0 * (at_risk > CLEAR * noise_sd), axis=1)[:, 1:]
    hazards, open_by = _hazards(counts, step)
    slopes = jax.vmap(jax.jacfwd(lambda own: _hazards(own[None], step)[0][0]))(counts)
    scatter = jnp.sqrt(jnp.maximum(counts[:, :blocks], 0.0) + 1.0) / _exposed(at_risk)
    normal = jax.random.normal(jax.random.key(SEED), (len(noise), groups, blocks))
    too_many = (noise_sd / jnp.maximum(at_risk, noise_sd + 1e-9))[:, 1:]
    wider = (1.0 + 0.5 * too_many) * known
    off = (jnp.einsum("bkc,kjc->bkj", noise, slopes) + scatter[None] * normal) * wider[None]
    open_until = jnp.cumsum(open_by * known, axis=1)
    low, high = _bands(jnp.cumsum(hazards * known, axis=1), jnp.cumsum(off, axis=2), open_until, known)
    survival = jnp.where(
        known > 0, jnp.clip(_falling(jnp.exp(-jnp.cumsum(hazards * known, axis=1))), low, high), jnp.nan
    )
    all_known = jnp.prod(known, axis=0)
    widths = all_known * jnp.diff(ends)
    hazards, open_by = (jnp.where(widths > 0, part, 0.0) for part in (hazards, open_by))
    means = _areas(hazards, widths)
    of_difference = jnp.einsum("bkj,dkj->bd", off, jax.jacfwd(lambda h: _less_first(_areas(h, widths)))(hazards))
    sd = jnp.sqrt(jnp.mean(of_difference**2, axis=0)) + 1e-12
    reach = sd * jnp.quantile(jnp.max(jnp.abs(of_difference) / sd[None], axis=1), 1.0 - MISS)
    left = jnp.exp(-jnp.cumsum(hazards, axis=1))
    fallen = jnp.maximum((left * jnp.expm1(hazards)) @ widths, 0.0)
    either = _less_first(_areas(hazards - open_by, widths)) - _less_first(_areas(hazards + open_by, widths))
    away = jnp.hypot(reach, BENT * jnp.maximum(fallen[1:], fallen[0])) + 0.5 * jnp.abs(either)
    until = jnp.asarray(ends)[jnp.sum(all_known).astype(int)]
    difference = jnp.where(until >= HALF_OF_GRID, _less_first(means), jnp.nan)
    survival, low, high = (jnp.concatenate([jnp.ones((groups, 1)), part], axis=1) for part in (survival, low, high))
    return SurvivalCurves(survival, low, high, until, means, difference, difference - away, difference + away)


def _less_first(of_groups):
    return of_groups[1:] - of_groups[0]


def at_risk_of(counts):
    """(leaving within each block (K, J), at risk at its start and at the end of the grid (K, J + 1))."""
    blocks = counts.shape[1] // 2
    leave = counts[:, :blocks] + counts[:, blocks : 2 * blocks]
    stay = jnp.concatenate([leave, counts[:, 2 * blocks :]], axis=1)
    return leave, jnp.cumsum(stay[:, ::-1], axis=1)[:, ::-1]


def _exposed(at_risk):
    """The logarithmic mean of those at risk at both ends of a block, (K, J)."""
    start = jnp.maximum(at_risk[:, :-1], 1.0)
    return _mean(start, at_risk[:, 1:])


def _mean(start, end):
    """The logarithmic mean within 1 % for ends of 1 to 10."""
    end = jnp.clip(end, LEFT * start, start)
    return (2.0 * jnp.sqrt(start * end) + 0.5 * (start + end)) / 3.0


def _hazards(counts, step):
    """Of whole blocks, (K, J), and how far they may be off either way by when in a step censored records leave.

    Between leaving at any time within it, as events do, and leaving at its end.
    """
    at_risk, events = at_risk_of(counts)[1], counts[:, : counts.shape[1] // 2]
    start = jnp.maximum(at_risk[:, :-1], 1.0)
    within = events / _mean(start, at_risk[:, 1:])
    open_by = 0.5 * jnp.asarray(step)[None] * jnp.maximum(within - events / _mean(start, start - events), 0.0)
    return within - open_by, open_by


def _bands(total, off, open_until, known):
    """(low, high) of S, (K, J): from H, draws of its error (DRAWS, K, J), what steps leave open, and what is known."""
    sd = jnp.sqrt(jnp.mean(off**2, axis=0)) + 1e-12
    reach = sd * jnp.quantile(jnp.max(jnp.abs(off) * (known / sd)[None], axis=2), 1.0 - MISS, axis=0)[:, None]
    low = jnp.where(known > 0, jnp.exp(-total - reach - open_until), 0.0)
    high = jnp.where(known > 0, jnp.exp(-total + reach + open_until), 1.0)
    return jax.lax.cummax(low, axis=1, reverse=True), jax.lax.cummin(jnp.minimum(high, 1.0), axis=1)


def _falling(survival):
    """Halfway between the largest falling curve below this one and the smallest above it, (K, J)."""
    below = jax.lax.cummin(jnp.minimum(survival, 1.0), axis=1)
    return 0.5 * (below + jax.lax.cummax(jnp.minimum(survival, 1.0), axis=1, reverse=True))


def _areas(hazards, widths):
    """Below curves of these hazards of blocks, constant within a block, (K,). widths: of blocks, 0 after the last."""
    before = jnp.exp(hazards - jnp.cumsum(hazards, axis=1))
    flat = jnp.abs(hazards) < 1e-6
    of_block = jnp.where(flat, 1.0 - 0.5 * hazards, -jnp.expm1(-hazards) / jnp.where(flat, 1.0, hazards))
    return jnp.sum(widths[None] * before * of_block, axis=1)
