"""Attacks on a declared sensitivity: search for neighbours whose statistics differ by more than the bound.

Random pairs, corner points, coordinate moves and gradient ascent, all in compiled batches.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core
from jaxdp._base.display import Compact
from jaxdp.core import Norm, Relation

WITHOUT_VALUE = (math.nan, math.inf, -math.inf, -0.0)


@dataclasses.dataclass(frozen=True, repr=False)
class Attack(Compact):
    """What the search found: `ratio` is the largest change divided by the declared bound.

    data: worst data set; replacement: the rows (length 1) that take the place of its first record (the first
    record leaves, under add-or-remove). pairs: neighbours tried.
    """

    ratio: float
    data: object
    replacement: object
    pairs: int


def falsify(
    test: Any,
    key: jax.Array,
    generate: Callable[..., Any],
    *,
    starts: int = 256,
    moves: int = 60,
    climbs: int = 40,
    box: float = 1.0,
    corners: float = 0.5,
    weights: tuple[float, ...] | None = None,
) -> Attack:
    """Searches for neighbours that break the sensitivity of a test.

    test: any private test or query of one stage (resolved for the shapes that `generate` makes).
    generate: key -> data; its rows, and values from {-box, 0, box} for floats, are the domain searched. A quarter of
        the pairs hold entries without a value: NaN, infinities, -0.0.
    starts: random pairs; the best 16 of them take `moves` coordinate moves, the best of those `climbs` gradient steps.
    corners: share of float entries that start at a corner. The statistic's own randomness is the same on both sides.
    weights: one weight per released part; their weighted sum of changes is maximised instead of the largest one.
    """
    keys = jax.random.split(key, 4)
    shapes = jax.eval_shape(generate, keys[0])
    test = core.specialize(test, shapes)
    if isinstance(test, core.Sequential):
        raise ValueError("a staged test is attacked stage by stage: give its first query, then its resolved test.")

    def measure(pair):
        return change(test, pair, weights)

    pair = functools.partial(_pair, generate, box, corners)
    with jax.debug_key_reuse(False):
        scored = jax.jit(jax.vmap(lambda key: (made := pair(key), measure(made))))
        pairs, scores = scored(jax.random.split(keys[1], starts))
        best = np.argsort(-np.asarray(scores))[: min(16, starts)]
        chosen = jax.tree.map(lambda leaf: leaf[best], pairs)
        walk = jax.vmap(functools.partial(_walk, measure, generate, box, moves))
        chosen, scores = jax.jit(walk)(jax.random.split(keys[2], best.size), chosen)
        tried = starts + best.size * moves
        if climbs:
            chosen, climbed = jax.jit(jax.vmap(functools.partial(_climb, measure, box, climbs)))(chosen)
            scores, tried = climbed, tried + best.size * climbs
    scores = np.asarray(scores)
    data, replacement = jax.tree.map(lambda leaf: np.asarray(leaf[int(np.argmax(scores))]), chosen)
    return Attack(float(np.max(scores)), data, replacement, tried)


def change(test, pair, weights=None):
    """Change of the statistic between neighbours, divided by its bound: the largest over parts, or weighted."""
    data, replacement = pair
    count = core.num_records(data)
    bounds = test.sensitivity(count)
    ratios = []
    for first, second, bound in zip(*_statistics(test, data, replacement, bounds), strict=True):
        difference = jnp.ravel(jnp.asarray(first, float) - jnp.asarray(second, float))
        size = {
            Norm.L1: lambda d: jnp.sum(jnp.abs(d)),
            Norm.L2: lambda d: jnp.sqrt(jnp.sum(d**2) + 1e-30),
            Norm.LINF: lambda d: jnp.max(jnp.abs(d)),
        }[bound.norm](difference)
        share = size / (bound.bound + 2.0 * jnp.max(jnp.asarray(bound.error)))
        ratios.append(jnp.where(jnp.isnan(share), jnp.inf, share))  # a statistic that is no number has no bound
    return jnp.max(jnp.stack(ratios)) if weights is None else jnp.dot(jnp.stack(ratios), jnp.array(weights))


def neighbour(data, replacement, relation: Relation):
    """The data with its first record replaced (its x only, under replace-attribute) or removed."""
    if relation is Relation.REPLACE_ATTRIBUTE:
        return dataclasses.replace(data, x=jnp.concatenate([replacement.x, data.x[1:]]))
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return jax.tree.map(lambda leaf: leaf[1:], data)
    return jax.tree.map(lambda leaf, row: jnp.concatenate([row, leaf[1:]]), data, replacement)


def _statistics(test, data, replacement, bounds):
    structure: Any
    flat, structure = jax.tree.flatten(bounds, is_leaf=core.is_bound)
    other = neighbour(data, replacement, flat[0].relation)
    values = (core.exact_statistic(test, jax.random.key(0), version) for version in (data, other))
    return *(structure.flatten_up_to(value) for value in values), flat


def _pair(generate, box, corners, key):
    """A random data set and a random record, with some float entries at corners."""
    key_data, key_other, key_corners = jax.random.split(key, 3)
    other = jax.tree.map(lambda leaf: leaf[:1], generate(key_other))
    return _cornered(key_corners, (generate(key_data), other), box, corners)


def _cornered(key, tree, box, share):
    """The tree with a random share of its float entries at -box, 0 or box; one random draw for all leaves.

    In one tree of four these entries have no value instead: NaN, an infinity or -0.0.
    """
    structure: Any
    leaves, structure = jax.tree.flatten(tree)
    draws = jax.random.uniform(key, (1 + sum(leaf.size for leaf in leaves),))
    # the share itself is random: some starts are all corners, some none
    amount, start, moved = 2.0 * share * draws[0], 1, []
    spoiled = jnp.floor(1024.0 * draws[0]) % 4 == 0  # low bits of the same draw
    for leaf in leaves:
        here = draws[start : start + leaf.size].reshape(leaf.shape)
        start += leaf.size
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            corner = jnp.clip(jnp.floor(3.0 * here / jnp.maximum(amount, 1e-6)) - 1.0, -1.0, 1.0) * box
            place = jnp.floor(len(WITHOUT_VALUE) * here / jnp.maximum(amount, 1e-6)).astype(int)
            without = jnp.array(WITHOUT_VALUE)[jnp.clip(place, 0, len(WITHOUT_VALUE) - 1)]
            corner = jnp.where(spoiled, without, corner)
            leaf = jnp.where(here < amount, corner.astype(leaf.dtype), leaf)
        moved.append(leaf)
    return structure.unflatten(moved)


def _walk(measure, generate, box, moves, key, pair):
    """Coordinate moves: one row takes new values in some columns; kept unless the change shrinks."""

    def step(carry, key):
        pair, score = carry
        key_fresh, key_corners, key_move = jax.random.split(key, 3)
        fresh = _cornered(key_corners, generate(key_fresh), box, 0.5)
        return _kept(measure, pair, score, _moved(key_move, pair, fresh)), None

    (pair, score), _ = jax.lax.scan(step, (pair, measure(pair)), jax.random.split(key, moves))
    return pair, score


def _kept(measure, pair, score, proposal):
    """The proposal and its score unless it is worse."""
    found = measure(proposal)
    better = found >= score
    return jax.tree.map(lambda new, old: jnp.where(better, new, old), proposal, pair), jnp.where(better, found, score)


def _moved(key, pair, fresh):
    data, replacement = pair
    count = core.num_records(data)
    structure: Any
    leaves, structure = jax.tree.flatten(data)
    draws = jax.random.uniform(key, (1 + len(leaves),))
    row = jnp.minimum(jnp.floor(draws[0] * (count + 1)), count)  # count stands for the replacement
    columns = draws[1:] < 0.6
    moved = []
    for i, (leaf, new) in enumerate(zip(leaves, structure.flatten_up_to(fresh), strict=True)):
        here = (jnp.arange(count) == row).reshape(-1, *([1] * (leaf.ndim - 1)))
        moved.append(jnp.where(jnp.broadcast_to(here & columns[i], leaf.shape), new, leaf))
    rows = structure.flatten_up_to(replacement)
    news = structure.flatten_up_to(fresh)
    turn = row == count
    replaced = [
        jnp.where(turn & columns[i], new[-1:], old) for i, (old, new) in enumerate(zip(rows, news, strict=True))
    ]
    return structure.unflatten(moved), structure.unflatten(replaced)


def _climb(measure, box, climbs, pair):
    """Signed gradient steps on the float entries, shrinking, kept inside the box if they start inside."""

    def objective(floats, pair):
        return measure(_with_floats(pair, floats))

    def step(carry, size):
        pair, score = carry
        slope = jax.grad(objective)(_floats(pair), pair)
        nudged = [
            jnp.clip(leaf + size * box * jnp.sign(jnp.nan_to_num(g)), jnp.minimum(-box, leaf), jnp.maximum(box, leaf))
            for leaf, g in zip(_floats(pair), slope, strict=True)
        ]
        return _kept(measure, pair, score, _with_floats(pair, nudged)), None

    sizes = jnp.geomspace(0.5, 1e-3, climbs)
    (pair, score), _ = jax.lax.scan(step, (pair, measure(pair)), sizes)
    return pair, score


def _is_float(leaf) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def _floats(pair):
    return [leaf for leaf in jax.tree.leaves(pair) if _is_float(leaf)]


def _with_floats(pair, floats):
    structure: Any
    leaves, structure = jax.tree.flatten(pair)
    supply = iter(floats)
    return structure.unflatten([next(supply) if _is_float(leaf) else leaf for leaf in leaves])
