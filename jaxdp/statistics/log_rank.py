"""The log-rank statistic as a sum of scores of records about noisy hazards and noisy shares at risk.

Times lie on a public grid of `BINS` bins; a record at the end of the grid is without an event. Symbols as in
docs/theory/log_rank.md: J blocks of bins, lambda the hazard of both groups together, g the share of the second group
among those at risk, L the score of a cell (group, bin, event), b the log hazard ratio.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

BINS = 96
END = 1.0 - 1e-9  # of scaled times: from here on a record is at the end of the grid
EXPOSED = (0.5, 1.0)  # of its own bin a record is at risk: one that is censored in it, one with an event
CLEAR = 3.0  # noise sds of a number at risk: the grid ends where it is smaller
MIN_SHARE = 0.01  # of either group among those at risk
MAX_HAZARD = 0.5  # of a bin; a negative hazard is noise that others balance
ROUGHNESS = 0.3  # sd of a second difference of g between thirds of the grid; it falls with the 3/2 power of the width


def codes(time, event) -> tuple[Any, Any]:
    """(bin, event) of records, from times on [-1, 1] and events 0 and 1; bin `BINS`: at the end of the grid."""
    made = np if isinstance(time, np.ndarray) else jnp
    at_end = time >= END
    inner = made.clip(made.floor(0.5 * (time + 1.0) * BINS), 0, BINS - 1)
    return made.where(at_end, BINS, inner), made.where(at_end, 0, event)


def blocked(table, blocks: int):
    """Counts (2, 2 J + 1) from a table (2, BINS + 1, 2): events and censored of each block, and those at the end."""
    inner = table[:, :BINS].reshape(2, blocks, BINS // blocks, 2).sum(axis=2)
    return jnp.concatenate([inner[:, :, 1], inner[:, :, 0], table[:, BINS:].sum(axis=(1, 2))[:, None]], axis=1)


def exposure(blocks: int) -> np.ndarray:
    """Bins of each block that a record of each count is at risk, on average, (J, 2 J + 1)."""
    width = BINS // blocks
    later = np.triu(np.ones((blocks, blocks)), 1)
    own = np.eye(blocks)
    events, censored = (width * later + 0.5 * part * own for part in (width + 1, width))
    return np.concatenate([events, censored, np.full((blocks, 1), float(width))], axis=1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Curves:
    """What noisy counts of blocks say; arrays (J,) but for the last three.

    hazard: of a bin. share: g in the middle of the block. counted: 1, and 0 where too few are at risk. events: noisy.
    covariance: of the noise in `share`, (J, J). mean, variance: of what the noise in hazards and shares does to U.
    count_variance: of the noise in a count.
    """

    hazard: Any
    share: Any
    counted: Any
    events: Any
    covariance: Any
    mean: Any
    variance: Any
    count_variance: Any

    @classmethod
    def of(cls, counts, num_records, count_variance) -> Curves:
        """From `blocked` with noise of this variance in each count; n is public."""
        counts = counts + (num_records - jnp.sum(counts)) / counts.size
        blocks = counts.shape[1] // 2
        width, at_risk = BINS // blocks, jnp.asarray(exposure(blocks))
        events = jnp.sum(counts[:, :blocks], axis=0)
        exposed = counts @ at_risk.T  # (2, J), in bins
        noise_sd = jnp.sqrt(2.0 * count_variance * jnp.sum(at_risk**2, axis=1))
        counted = jnp.cumprod(jnp.where(jnp.sum(exposed, axis=0) > CLEAR * noise_sd, 1.0, 0.0).at[0].set(1.0))
        pooled = jnp.maximum(jnp.sum(exposed, axis=0), jnp.maximum(noise_sd, width))
        hazard = counted * jnp.clip(events / pooled, -MAX_HAZARD, MAX_HAZARD)
        raw = jnp.clip(exposed[1] / pooled, 0.0, 1.0)
        sampling = (raw * (1.0 - raw) + 0.05) * width / pooled
        smooth = _smoother(counted / (0.25 * (noise_sd / pooled) ** 2 + sampling))
        share = jnp.clip(smooth @ raw, MIN_SHARE, 1.0 - MIN_SHARE)
        # noise in the shares, and in events less expected ones: linear in that of the counts, (J, 2 (2 J + 1))
        off = jnp.arange(2.0)[None, :, None] - share[:, None, None]
        of_share = smooth @ _centred(off * (at_risk * (counted / pooled)[:, None])[:, None, :])
        own = jnp.eye(blocks, counts.shape[1])
        of_events = _centred(jnp.stack([counted[:, None] * (own - hazard[:, None] * at_risk)] * 2, axis=1))
        shares, gone, both = (
            count_variance * one @ other.T
            for one, other in ((of_share, of_share), (of_events, of_events), (of_share, of_events))
        )
        left = (jnp.eye(blocks) - smooth) ** 2 @ (counted * sampling)  # of the shares' own scatter
        variance = jnp.sum(shares * gone) + jnp.sum(both * both.T) + left @ jnp.diag(gone)
        return cls(hazard, share, counted, counted * events, shares, jnp.trace(both), variance, count_variance)

    @property
    def width(self) -> int:
        """Bins of a block."""
        return BINS // self.hazard.shape[0]

    @property
    def _shares(self):
        """g of every bin, (BINS,)."""
        middles = (jnp.arange(self.hazard.shape[0]) + 0.5) * self.width
        return jnp.interp(jnp.arange(BINS) + 0.5, middles, self.share)

    def scores(self):
        """L of every cell, (2, BINS + 1, 2)."""
        off = jnp.arange(2.0)[:, None] - self._shares[None, :]
        expected = off * jnp.repeat(self.hazard, self.width)[None, :]
        before = jnp.concatenate([jnp.zeros((2, 1)), jnp.cumsum(expected, axis=1)], axis=1)
        found = off * jnp.repeat(self.counted, self.width)[None, :]
        own = jnp.stack([-EXPOSED[0] * expected, found - EXPOSED[1] * expected], axis=2)
        return jnp.concatenate([own, jnp.zeros((2, 1, 2))], axis=1) - before[:, :, None]

    def _moved(self, ratio):
        """(p - g, its derivative by g) at every bin: p the share of events in the second group at hazard ratio e^b."""
        whole = 1.0 + self._shares * jnp.expm1(ratio)
        return self._shares * (jnp.exp(ratio) / whole - 1.0), jnp.exp(ratio) / whole**2 - 1.0

    def _of_blocks(self, values):
        return jnp.mean(values.reshape(-1, self.width), axis=1)

    def expected(self, ratio):
        """Mean of U at this log hazard ratio."""
        return jnp.sum(jnp.maximum(self.events, 0.0) * self._of_blocks(self._moved(ratio)[0]))

    def spread(self, ratio):
        """Variance of U at this log hazard ratio in units of that at 0: p is an event's chance of the second group."""
        moved, _ = self._moved(ratio)
        weights = jnp.repeat(jnp.maximum(self.events, 0.0), self.width)
        now, null = (jnp.sum(weights * p * (1.0 - p)) for p in (self._shares + moved, self._shares))
        return now / jnp.maximum(null, 1e-9)

    def expected_variance(self, ratio):
        """Of the noise in `expected`."""
        moved, steep = (self._of_blocks(part) for part in self._moved(ratio))
        steep = self.events * steep
        return 2.0 * self.count_variance * jnp.sum((self.counted * moved) ** 2) + steep @ self.covariance @ steep

    @property
    def information(self):
        """(Sum of g (1 - g) over events, the slope of `expected` at 0; variance of the noise in it)."""
        g = self._shares
        moved, steep = (self._of_blocks(part) for part in (g * (1.0 - g), 1.0 - 2.0 * g))
        steep = self.events * steep
        variance = 2.0 * self.count_variance * jnp.sum((self.counted * moved) ** 2) + steep @ self.covariance @ steep
        return jnp.sum(self.events * moved), variance


def _smoother(weights):
    """Matrix (J, J): means that are near to a line where the weights are small, and near to the points elsewhere."""
    blocks = weights.shape[0]
    slope, bend = (jnp.asarray(np.diff(np.eye(blocks), n=order, axis=0)) for order in (1, 2))
    stiff = bend.T @ bend / (ROUGHNESS**2 * (3.0 / blocks) ** 3) + slope.T @ slope * blocks
    return jnp.linalg.solve(jnp.diag(weights) + stiff, jnp.diag(weights))


def _centred(linear):
    """Of noise from which its mean over all counts was taken: (J, 2, 2 J + 1) as (J, 2 (2 J + 1))."""
    flat = linear.reshape(linear.shape[0], -1)
    return flat - jnp.mean(flat, axis=1, keepdims=True)
