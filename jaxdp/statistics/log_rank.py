"""The log-rank statistic as a sum of scores of records about noisy hazards and noisy shares at risk.

Times lie on a public grid of `BINS` bins, of equal width in the root of the time since its lower bound, or in its
logarithm where that is how it is scaled; a record at the end of the grid is without an event. Symbols as in
docs/theory/log_rank.md: S strata, K groups, J blocks of bins, lambda the hazard of all groups of a stratum together,
g the share of a group among those at risk, L the scores of a cell (stratum, group, bin, event), b the log hazard ratios
against the first group. Scores are what each group has beyond its share, C = K numbers (1 of two groups: `in_all`);
laws are those of K - 1 `contrasts` of them.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.statistics.survival_curves import at_risk_of

BINS = 768
END = 1.0 - 1e-9  # of scaled times: from here on a record is at the end of the grid
EXPOSED = (0.5, 1.0)  # of its own bin a record is at risk: one that is censored in it, one with an event
CLEAR = 3.0  # noise sds of a number at risk: the grid ends where it is smaller
MIN_SHARE = 0.01  # of a group among those at risk
MAX_HAZARD = 0.5  # of a bin; a negative hazard is noise that others balance
TINY = 1e-6
ROUNDING = 1e-4  # of a bin, which steps that end with it may lack
# share of the records, and noise sds of their number: of fewer in a group, noise chooses who has an interval (#small)
SMALL, SMALL_CLEAR = 0.125, 4.5
CROWDED = (0.15, 0.35)  # of the records leave within a block: from here on what changes within it counts; counts fully
SUDDEN = (0.4, 0.6)  # difference between groups in who is lost within a block: from here on it counts; counts fully
LEAVES = 0.25  # sds of U, of what those who leave at once may hide at a ratio of e: no interval from here on
LATE = 0.25  # of a step: how much later than its middle those who are censored in it leave, give or take as much
EARLY = 1.0 / 12.0  # of a step and their hazard in it: how much before its middle those leave who may leave at any time
COUNTS = 0.5  # of the variance of U without noise: what may change within blocks is said from here on
ROUGHNESS = 0.6  # sd of a second difference of g between thirds of the grid; it falls with the 3/2 power of the width


def ends(parts: int, even: bool = False, steps: int = 0) -> np.ndarray:
    """Where `parts` bins or blocks end, as shares of the grid's length, and its start, (parts + 1,).

    even: of a time that is scaled by its logarithm. steps: values of a time that takes whole steps, of which blocks
    are made; it ends between two of them.
    """
    if steps:
        return np.clip((_first_steps(parts, steps) - 0.5) / (steps - 1), 0.0, 1.0)
    places = np.linspace(0.0, 1.0, parts + 1)
    return places if even else places**2


def codes(time, event, even: bool = False, blocks: int = 0, steps: int = 0) -> tuple[Any, Any]:
    """(bin, event) of records, from times on [-1, 1] and events 0 and 1; bin `BINS`: at the end of the grid.

    blocks, steps: of a time that takes `steps` whole values, each of which lies in one block.
    """
    made = np if isinstance(time, np.ndarray) else jnp
    at_end = time >= END
    share = made.clip(0.5 * (time + 1.0), 0.0, 1.0)
    event = made.where(at_end, 0, event)
    place = _of_steps(share, event, blocks, steps, made) if steps else share if even else made.sqrt(share)
    inner = made.clip(made.floor(place * BINS + ROUNDING * (steps > 0)), 0, BINS - 1)
    return made.where(at_end, BINS, inner), event


def _first_steps(blocks: int, steps: int) -> np.ndarray:
    """The first step of each block, and that of the end of the grid, (J + 1,): blocks of at least one step each."""
    last = steps - 1
    wanted = np.round(last * np.linspace(0.0, 1.0, blocks + 1) ** 2).astype(int)
    places = np.arange(blocks + 1)
    return np.minimum(np.maximum.accumulate(wanted - places) + places, last - blocks + places)


def _of_steps(share, event, blocks: int, steps: int, made):
    """Places on the grid, as shares of its length, of records at steps of the time: an event in the middle of its step.

    The steps of a block are of equal length, or of equal length in the root of the time where it has more than bins.
    """
    first = made.asarray(_first_steps(blocks, steps))
    step = made.clip(made.round(share * (steps - 1)), 0, steps - 2)
    block = made.clip(made.searchsorted(first, step, side="right") - 1, 0, blocks - 1)
    low, high = first[block], first[block + 1]
    place = step + 0.5 + LATE * (1 - event)
    roots = made.sqrt(1.0 * low), made.sqrt(1.0 * high)
    fine = (made.sqrt(place) - roots[0]) / (roots[1] - roots[0])
    return (block + made.where(high - low > BINS // blocks, fine, (place - low) / (high - low))) / blocks


def step_lengths(blocks: int, steps: int) -> np.ndarray:
    """Of a step of the time, in blocks, within each of them, (J,); 0 of a time without steps."""
    return 1.0 / np.diff(_first_steps(blocks, steps)) if steps else np.zeros(blocks)


def blocked(table, blocks: int):
    """Counts (S, K, 2 J + 1) from a table (S, K, BINS + 1, 2): events and censored of each block, those at the end."""
    inner = table[:, :, :BINS].reshape(*table.shape[:2], blocks, BINS // blocks, 2).sum(axis=3)
    return jnp.concatenate([inner[..., 1], inner[..., 0], table[:, :, BINS:].sum(axis=(2, 3))[:, :, None]], axis=2)


def exposure(blocks: int, step):
    """Bins of each block that a record of each count is at risk, on average, (J, 2 J + 1). step: `step_lengths`."""
    width = BINS // blocks
    later = np.triu(np.ones((blocks, blocks)), 1)
    own = np.eye(blocks)
    events, censored = (width * later + 0.5 * part * own for part in (width + 1, width))
    censored = censored + width * LATE * jnp.diag(step)
    return jnp.concatenate([events, censored, np.full((blocks, 1), float(width))], axis=1)


def in_all(groups: int) -> np.ndarray:
    """(C, K - 1): the coordinates of scores, from what groups 2, ..., K have beyond their shares.

    Of two groups one; of more all K, of which the first has what the others lack: with Laplace noise they take less of
    it than K - 1 contrasts (docs/theory/log_rank.md#groups).
    """
    return np.eye(1) if groups == 2 else np.concatenate([-np.ones((1, groups - 1)), np.eye(groups - 1)])


def from_all(groups: int) -> np.ndarray:
    """(K - 1, C): orthogonal contrasts from these coordinates. Each compares a group with those before it."""
    if groups == 2:
        return np.eye(1)
    rows = np.zeros((groups - 1, groups))
    for row in range(1, groups):
        rows[row - 1, :row] = -1.0 / row
        rows[row - 1, row] = 1.0
        rows[row - 1] /= math.sqrt(2.0 * np.sum(rows[row - 1] ** 2))
    return rows


def contrasts(groups: int) -> np.ndarray:
    """(K - 1, K - 1): orthogonal contrasts of all K groups, from what groups 2, ..., K have beyond their shares.

    Of two groups it is 1.
    """
    return from_all(groups) @ in_all(groups)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Curves:
    """What noisy counts of blocks say.

    hazard: of a bin, (S, J). share: g in the middle of the block, of the groups after the first, (S, K - 1, J).
    counted: 1, and 0 where too few are at risk, (S, J). events: noisy, (S, J). covariance: of the noise in `share`,
    (S, K - 1, J, K - 1, J). weight: of a stratum, (S,), the largest is 1. mean (K - 1,), variance (K - 1, K - 1): of
    what the noise in hazards and shares does to U, and what may change within crowded blocks. crowded: whether
    that counts, (S,). ends: shares at the start and at the end of a block, (S, 2, K - 1, J); sudden: 0, up to 1 where a
    group leaves at once that others do not leave with, and beside it, (S, J). count_variance: of the noise in a count.
    coarse: how far U may be off either way by when those who are censored in a step of the time leave, (K - 1,).
    small: whether a group is small and noise hides how small; of one stratum.
    """

    hazard: Any
    share: Any
    counted: Any
    events: Any
    covariance: Any
    weight: Any
    mean: Any
    variance: Any
    crowded: Any
    ends: Any
    sudden: Any
    count_variance: Any
    coarse: Any
    small: Any = False

    @classmethod
    def of(cls, counts, num_records, count_variance, step) -> Curves:
        """From `blocked` with noise of this variance in each count; n is public. step: `step_lengths`."""
        size = counts.size
        counts = counts + (num_records - jnp.sum(counts)) / size
        of_strata = jax.vmap(lambda own: _of_stratum(own, size, count_variance, step))
        hazard, share, counted, events, covariance, mean, variance, bent, coarse, ends, sudden = of_strata(counts)
        turn = contrasts(counts.shape[1])
        mean = jnp.einsum("ck,sk->sc", turn, mean)
        variance = jnp.einsum("ck,skl,dl->scd", turn, variance, turn)
        one = jnp.ones(len(counts))
        of_blocks = hazard, share, counted, counted * events, covariance
        found = cls(*of_blocks, one, mean, variance, None, ends, sudden, count_variance, None)
        size_of = jnp.trace(found._spread_of(jnp.zeros(turn.shape[0])), axis1=1, axis2=2)
        useful = (size_of + TINY) / (size_of + jnp.trace(variance, axis1=1, axis2=2) + TINY)
        weight = useful / jnp.max(useful)
        return dataclasses.replace(
            found,
            weight=weight,
            mean=weight @ mean,
            variance=jnp.einsum("s,scd->cd", weight**2, variance),
            crowded=jnp.sum((bent @ turn.T) ** 2, axis=1) > COUNTS * size_of,
            coarse=turn @ (weight @ coarse),
            small=_is_small(counts[0], num_records, count_variance) if len(counts) == 1 else jnp.asarray(False),
        )

    @property
    def width(self) -> int:
        """Bins of a block."""
        return BINS // self.hazard.shape[1]

    @property
    def _turn(self):
        return jnp.asarray(contrasts(self.share.shape[1] + 1))

    @property
    def _shares(self):
        """g of every bin, (S, K - 1, BINS)."""
        return self._of_bins(self.share)

    def _of_bins(self, share):
        blocks = self.hazard.shape[1]
        at = np.clip((np.arange(BINS) + 0.5) / self.width - 0.5, 0.0, blocks - 1.0)  # in middles of blocks
        left = np.minimum(at.astype(int), max(blocks - 2, 0))
        low, high = (jnp.take(share, np.minimum(left + step, blocks - 1), axis=-1) for step in (0, 1))
        return low + jnp.asarray(at - left, low.dtype)[None, None] * (high - low)

    def scores(self):
        """L of every cell, (S, K, BINS + 1, 2, C)."""
        off = self._off(in_all(self.share.shape[1] + 1))
        expected = off * jnp.repeat(self.hazard, self.width, axis=1)[:, None, :, None]
        nothing = jnp.zeros_like(expected[:, :, :1])
        before = jnp.concatenate([nothing, jnp.cumsum(expected, axis=2)], axis=2)
        found = off * jnp.repeat(self.counted, self.width, axis=1)[:, None, :, None]
        inner = jnp.stack([-EXPOSED[0] * expected, found - EXPOSED[1] * expected], axis=3)
        return jnp.concatenate([inner, jnp.zeros_like(inner[:, :, :1])], axis=2) - before[:, :, :, None, :]

    def squares(self):
        """L^2 of every cell, (S, K, BINS + 1, 2): squared lengths of its contrasts."""
        found = jnp.sum(self.scores() ** 2, axis=-1)
        return found if self.share.shape[1] == 1 else 0.5 * found  # of all groups it is twice that of the contrasts

    def _off(self, turn):
        """What an event in a bin scores before hazards count, (S, K, BINS, C) for `turn` (C, K - 1)."""
        own = jnp.asarray(np.eye(self.share.shape[1] + 1)[:, 1:])
        off = own[None, :, None, :] - jnp.swapaxes(self._shares, 1, 2)[:, None, :, :]
        return jnp.einsum("s,skbl,cl->skbc", self.weight, off, jnp.asarray(turn))

    def _chances(self, ratios):
        """p of every bin, (S, K - 1, BINS): chances that an event is in each group after the first.

        ratios: b, (K - 1,).
        """
        return _chances_of(self._shares, ratios[None, :, None])

    def _of_blocks(self, values):
        return jnp.mean(values.reshape(*values.shape[:-1], -1, self.width), axis=-1)

    def expected(self, ratios, share=None):
        """Mean of U at these log hazard ratios, (K - 1,). share: other shares in the middle of blocks.

        All who are at risk at the start of a bin count as at risk at its events, while those of greater hazard leave
        earlier within it: chances are those at the ratio e^b exp(-(h_k - h_1)/2), h the hazards of the groups there.
        """
        shares, raised = self._of_bins(self.share if share is None else share), jnp.exp(ratios)[None, :, None]
        hazard = jnp.repeat(jnp.maximum(self.hazard, 0.0), self.width, axis=1)[:, None]
        more = hazard * (raised - 1.0) / (1.0 + jnp.sum(shares * (raised - 1.0), axis=1, keepdims=True))
        moved = self._of_blocks(_chances_of(shares, ratios[None, :, None] - 0.5 * more) - shares)
        return self._turn @ jnp.einsum("s,skj,sj->k", self.weight, moved, jnp.maximum(self.events, 0.0))

    def _spread_of(self, ratios):
        """Variance of U at these ratios but for the noise, by stratum without weights, (S, K - 1, K - 1)."""
        chances = self._chances(ratios)
        events = jnp.repeat(jnp.maximum(self.events, 0.0), self.width, axis=1) / self.width
        own = jnp.einsum("skb,sb->sk", chances, events)
        both = jnp.einsum("skb,slb,sb->skl", chances, chances, events)
        apart = jnp.eye(own.shape[1])[None] * own[:, None, :] - both
        return jnp.einsum("ck,skl,dl->scd", self._turn, apart, self._turn)

    def spread(self, ratios):
        """`_spread_of` over all strata, (K - 1, K - 1): the shape of the variance of U."""
        return jnp.einsum("s,scd->cd", self.weight**2, self._spread_of(ratios))

    def expected_squares(self, ratios):
        """Mean of V at these log hazard ratios but for the noise; at 0 it is the trace of `spread`."""
        off, moved = self._off(self._turn), self._chances(ratios) - self._shares
        lead = lambda later: jnp.concatenate([-jnp.sum(later, axis=1, keepdims=True), later], axis=1)  # noqa: E731
        moved = lead(moved)
        own = moved + lead(self._shares).at[:, 0].add(1.0)
        passed = jnp.cumsum(off * jnp.repeat(self.hazard, self.width, axis=1)[:, None, :, None], axis=2)
        of_event = own * jnp.sum(off**2, axis=3) - 2.0 * moved * jnp.sum(off * passed, axis=3)
        return jnp.sum(self._of_blocks(of_event) * jnp.maximum(self.events, 0.0)[:, None])

    def expected_variance(self, ratios):
        """Of the noise in `expected`, (K - 1, K - 1), and of what it may be off by where a group leaves at once."""
        moved = self._of_blocks(self._chances(ratios) - self._shares)
        return self._noise_of(moved, self._steep(ratios)) + self._left_at_once(moved, ratios)

    def _steep(self, ratios):
        """Slopes of `expected`, before `contrasts`, by the shares of each block, (S, K - 1, K - 1, J)."""
        chances, raised = self._chances(ratios), jnp.exp(ratios)
        # p_k (1/g_k if it is the same group, less what the denominator grows by), less 1 if it is
        own = chances / self._shares
        grown = (raised - 1.0)[None, :, None] * own[:, :1] / raised[0]
        same = jnp.eye(own.shape[1])[None, :, :, None]
        steep = same * (own - 1.0)[:, :, None] - chances[:, :, None] * grown[:, None]
        return self._of_blocks(steep) * self.events[:, None, None]

    def expected_beyond(self, ratios, sds):
        """How far below and above itself `expected` is where shares are off by so many sds of their noise.

        They are off in the direction that moves it most, of those equally likely. Of two groups; 0 at ratio 0.
        """
        steep = self.weight[:, None] * self._steep(ratios)[:, 0, 0]
        moved = jnp.einsum("sab,sb->sa", self.covariance[:, 0, :, 0], steep)
        step = sds * moved / jnp.sqrt(jnp.maximum(jnp.sum(moved * steep), TINY**2))
        now, *ends = (
            self.expected(ratios, jnp.clip(self.share + side * step[:, None], MIN_SHARE, 1.0 - MIN_SHARE))[0]
            for side in (0.0, -1.0, 1.0)
        )
        return jnp.maximum(now - jnp.minimum(*ends), 0.0), jnp.maximum(jnp.maximum(*ends) - now, 0.0)

    def departed(self, variance):
        """Whether a group leaves at once, so that nothing is known about a ratio. variance: of U with its noise."""
        ones = jnp.ones(self.share.shape[1])
        moved = self._of_blocks(self._chances(ones) - self._shares)
        return jnp.trace(self._left_at_once(moved, ones)) > LEAVES**2 * variance

    def _left_at_once(self, moved, ratios):
        """(K - 1, K - 1): squares of events times what the end of a block farther from its mean says of them.

        0 at ratios 0: whoever leaves, the null hypothesis expects U = 0.
        """
        at_ends = jax.vmap(lambda shares: _chances_of(shares, ratios[None, :, None]) - shares, 1, 1)(self.ends)
        off = jnp.max(jnp.abs(at_ends - moved[:, None]), axis=1)
        found = jnp.einsum("s,skj,sj->k", self.weight, off, self.sudden * jnp.maximum(self.events, 0.0))
        return self._turn @ jnp.diag(found**2) @ self._turn.T

    def _noise_of(self, moved, steep):
        """(K - 1, K - 1) of a weighted sum: moved by an event in a block, (S, K - 1, J); steep by a share."""
        counted = self.weight[:, None] * self.counted
        of_events = jnp.einsum("skj,slj,sj->kl", moved, moved, counted**2)
        of_shares = jnp.einsum("skaj,sajbi,slbi,s->kl", steep, self.covariance, steep, self.weight**2)
        found = (self.share.shape[1] + 1.0) * self.count_variance * of_events + of_shares
        return self._turn @ found @ self._turn.T

    @property
    def information(self):
        """(Sum of g (1 - g) over events, of each group; variance of the noise in it), (K,) each.

        Of two groups both are the same, the slope of `expected` at 0 but for what bins hide.
        """
        first = lambda part, axis: -jnp.sum(part, axis=axis, keepdims=True)  # noqa: E731
        shares = jnp.concatenate([1.0 + first(self._shares, 1), self._shares], axis=1)
        noise = jnp.concatenate([first(self.covariance, 1), self.covariance], axis=1)
        noise = jnp.concatenate([first(noise, 3), noise], axis=3)
        moved, steep = (self._of_blocks(part) for part in (shares * (1.0 - shares), 1.0 - 2.0 * shares))
        steep = steep * (self.weight[:, None] * self.events)[:, None]
        counted = self.weight[:, None] * self.counted
        of_events = jnp.sum((counted[:, None] * moved) ** 2, axis=(0, 2))
        variance = shares.shape[1] * self.count_variance * of_events
        variance = variance + jnp.einsum("skj,skjki,ski->k", steep, noise, steep)
        return jnp.einsum("s,sj,skj->k", self.weight, self.events, moved), variance


def _of_stratum(counts, size: int, count_variance, step):
    """hazard, share, counted, events, covariance of a stratum; mean and variance of its part of U, of the groups.

    counts: (K, 2 J + 1). size: counts of all strata, over which known n spread the noise.
    """
    groups, blocks = counts.shape[0], counts.shape[1] // 2
    width, at_risk = BINS // blocks, exposure(blocks, step)
    events = jnp.sum(counts[:, :blocks], axis=0)
    exposed = counts @ at_risk.T  # (K, J), in bins
    noise_sd = jnp.sqrt(groups * count_variance * jnp.sum(at_risk**2, axis=1))
    counted = jnp.cumprod(jnp.where(jnp.sum(exposed, axis=0) > CLEAR * noise_sd, 1.0, 0.0).at[0].set(1.0))
    pooled = jnp.maximum(jnp.sum(exposed, axis=0), jnp.maximum(noise_sd, width))
    hazard = counted * jnp.clip(events / pooled, -MAX_HAZARD, MAX_HAZARD)
    raw = jnp.clip(exposed[1:] / pooled[None], 0.0, 1.0)
    same = jnp.eye(groups - 1)[:, :, None]
    sampling = (same * (raw[:, None] + 0.05) - raw[:, None] * raw[None]) * (width / pooled)[None, None]
    own = jnp.stack([sampling[place, place] for place in range(groups - 1)])
    noise = (groups - 1.0) / groups**2 * (noise_sd / pooled) ** 2
    smooth = jax.vmap(_smoother)(counted[None] / (noise[None] + own))  # (K - 1, J, J)
    share = jnp.clip(jnp.einsum("kij,kj->ki", smooth, raw), MIN_SHARE, 1.0 - MIN_SHARE)
    share = share * jnp.minimum(1.0, (1.0 - MIN_SHARE) / jnp.sum(share, axis=0, keepdims=True))
    # noise in the shares, and in events less expected ones: linear in that of the counts
    is_of = jnp.asarray(np.eye(groups)[1:])  # (K - 1, K)
    off = is_of[:, None, :] - share[:, :, None]
    of_share = off[..., None] * (at_risk * (counted / pooled)[:, None])[None, :, None, :]
    of_share = jnp.einsum("kij,kjgc->kigc", smooth, of_share).reshape((groups - 1) * blocks, -1)
    entered = counted[:, None] * (jnp.eye(blocks, counts.shape[1]) - hazard[:, None] * at_risk)
    of_events = jnp.stack([entered] * groups, axis=1).reshape(blocks, -1)

    def noise_of(one, other):
        return count_variance * (one @ other.T - jnp.outer(jnp.sum(one, axis=1), jnp.sum(other, axis=1)) / size)

    shares = noise_of(of_share, of_share).reshape(groups - 1, blocks, groups - 1, blocks)
    gone, both = noise_of(of_events, of_events), noise_of(of_share, of_events).reshape(groups - 1, blocks, blocks)
    rough = jnp.eye(blocks)[None] - smooth
    left = jnp.einsum(
        "kij,lij,klj,i->kl", rough, rough, counted[None, None] * sampling, jnp.diag(gone)
    )  # of their own scatter
    variance = jnp.einsum("kilj,ij->kl", shares, gone) + jnp.einsum("kij,lji->kl", both, both) + left
    bent = _bent(counts, share, groups * count_variance, step)
    variance = variance + jnp.diag(bent**2)
    mean = jnp.trace(both, axis1=1, axis2=2)
    coarse = _coarse(counts, share, hazard, jnp.maximum(exposed, jnp.maximum(noise_sd, width)[None]), step * width)
    of_ends = _suddenly(counts, share, count_variance)
    return hazard, share, counted, events, shares, mean, variance, bent, coarse, *of_ends


def _is_small(counts, num_records, count_variance):
    """Of the smallest group, by its released number of records; counts: (K, 2 J + 1), which add up to n."""
    fewest = jnp.min(jnp.sum(counts, axis=1))
    noise_sd = jnp.sqrt(count_variance * counts.shape[1] * (1.0 - 1.0 / counts.shape[0]))
    return (fewest < SMALL * num_records) & (fewest < SMALL_CLEAR * noise_sd)


def _chances_of(shares, ratios):
    """p from shares (S, K - 1, ...) and log ratios of as many axes."""
    raised = shares * jnp.exp(ratios)
    return raised / (1.0 - jnp.sum(shares, axis=1, keepdims=True) + jnp.sum(raised, axis=1, keepdims=True))


def _coarse(counts, share, hazard, exposed, step):
    """How far U may be off by when in their step of the time records leave, (K - 1,).

    exposed: bins at risk, (K, J). step: in bins, (J,).
    """
    events, censored = counts[:, : len(step)], counts[:, len(step) : 2 * len(step)]
    leaving = jnp.clip(events + censored, 0.0)
    least = jnp.maximum(exposed - LATE * step[None] * censored, 0.5 * exposed)  # if they leave in the middle
    of_group = LATE * censored + EARLY * leaving * jnp.clip(step[None] * leaving / least, 0.0, 1.0)
    beyond = of_group[1:] - share * jnp.sum(of_group, axis=0)[None]
    most = jnp.maximum(hazard, 0.0) * jnp.sum(exposed, axis=0) / jnp.sum(least, axis=0)
    return beyond @ (step * most)


def _noise_at_risk(blocks: int, noise_variance):
    """Its sd in the numbers at risk, (J + 1,)."""
    return jnp.sqrt(noise_variance * (1.0 + 2.0 * (blocks - jnp.arange(blocks + 1.0))))


def _suddenly(counts, share, count_variance):
    """(ends, sudden) of `Curves`: of a group whose follow-up ends within a block, while that of another goes on."""
    blocks = share.shape[1]
    at_risk, censored = at_risk_of(counts)[1], counts[:, blocks : 2 * blocks]
    noise_sd = _noise_at_risk(blocks, count_variance)
    ends = jnp.maximum(at_risk, 0.0)
    ends = ends[1:] / jnp.maximum(jnp.sum(ends, axis=0), jnp.sqrt(1.0 * len(counts)) * noise_sd)[None]
    gone = jnp.clip(censored / jnp.maximum(at_risk[:, :-1], CLEAR * noise_sd[None, :-1]), 0.0, 1.0)
    few, most = SUDDEN
    own = jnp.clip((jnp.max(gone, axis=0) - jnp.min(gone, axis=0) - few) / (most - few), 0.0, 1.0)
    padded = jnp.pad(own, 1)  # g is a line between middles of blocks: those beside it are off too
    sudden = jnp.maximum(own, jnp.maximum(padded[:-2], padded[2:]))
    return jnp.clip(jnp.stack([ends[:, :-1], ends[:, 1:]]), 0.0, 1.0), sudden


def _bent(counts, share, noise_variance, step):
    """What U may be off by where many leave within a block, (K - 1,).

    The share of a group among those at risk may go from its value at the start of the block to that at its end
    anywhere within it, and the hazard with it: events of the block times the farthest of both from g. An end at which
    the noise hides who is left is as far as any share can be. Within a step of the time there is no order to be wrong
    about. noise_variance: of a count of all groups.
    """
    blocks = share.shape[1]
    leave, at_risk = at_risk_of(counts)
    everybody = jnp.sum(at_risk, axis=0)
    noise_sd = _noise_at_risk(blocks, noise_variance)
    known = everybody > CLEAR * noise_sd
    ends = jnp.clip(at_risk[1:] / jnp.maximum(everybody, noise_sd)[None], 0.0, 1.0)
    farthest = jnp.maximum(share, 1.0 - share)
    start, end = (
        jnp.where(seen[None], jnp.abs(of_end - share), farthest)
        for seen, of_end in ((known[:-1], ends[:, :-1]), (known[1:], ends[:, 1:]))
    )
    few, most = CROWDED
    leaving = jnp.sum(leave, axis=0) / jnp.maximum(everybody[0], noise_sd[0])
    weight = jnp.clip((leaving - few) / (most - few), 0.0, 1.0) * (1.0 - step)
    events = jnp.maximum(jnp.sum(counts[:, :blocks], axis=0), 0.0)
    return jnp.maximum(start, end) @ (weight * events)


def _smoother(weights):
    """Matrix (J, J): means that are near to a line where the weights are small, and near to the points elsewhere."""
    blocks = weights.shape[0]
    slope, bend = (jnp.asarray(np.diff(np.eye(blocks), n=order, axis=0)) for order in (1, 2))
    stiff = bend.T @ bend / (ROUGHNESS**2 * (3.0 / blocks) ** 3) + slope.T @ slope * blocks
    return jnp.linalg.solve(jnp.diag(weights) + stiff, jnp.diag(weights))
