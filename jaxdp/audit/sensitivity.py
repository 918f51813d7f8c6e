"""Attacks on a declared sensitivity: search for neighbours whose statistics differ by more than the bound.

Random pairs, corner points, coordinate moves and gradient ascent, all in compiled batches.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core
from jaxdp.core import Norm, Relation, Sensitivity


@dataclasses.dataclass(frozen=True)
class Attack:
    """What the search found: `ratio` is the largest change divided by the declared bound.

    data: worst data set; replacement: the rows (length 1) that take the place of its first record (the first
    record leaves, under add-or-remove). pairs: neighbours tried.
    """

    ratio: float
    data: object
    replacement: object
    pairs: int


def falsify(
    test,
    key,
    generate,
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
    generate: key -> data; its rows, and values from {-box, 0, box} for floats, are the domain searched.
    starts: random pairs; the best 16 of them take `moves` coordinate moves, the best of those `climbs` gradient steps.
    corners: share of float entries that start at a corner. The statistic's own randomness is the same on both sides.
    weights: one weight per released part; their weighted sum of changes is maximised instead of the largest one.
    """
    keys = jax.random.split(key, 4)
    shapes = jax.eval_shape(generate, keys[0])
    test = core.resolve(test, shapes)
    if isinstance(test, core.Sequential):
        raise ValueError("a staged test is attacked stage by stage: give its first query, then its resolved test.")
    measure = lambda pair: change(test, pair, weights)  # noqa: E731
    pair = functools.partial(_pair, generate, box, corners)
    with jax.debug_key_reuse(False):
        pairs = jax.jit(jax.vmap(pair))(jax.random.split(keys[1], starts))
        scores = jax.jit(lambda pairs: jax.lax.map(measure, pairs, batch_size=64))(pairs)
        best = np.argsort(-np.nan_to_num(np.asarray(scores), nan=-1.0))[: min(16, starts)]
        chosen = jax.tree.map(lambda leaf: leaf[best], pairs)
        walk = jax.vmap(functools.partial(_walk, measure, generate, box, moves))
        chosen, scores = jax.jit(walk)(jax.random.split(keys[2], best.size), chosen)
        tried = starts + best.size * moves
        if climbs:
            chosen, climbed = jax.jit(jax.vmap(functools.partial(_climb, measure, box, climbs)))(chosen)
            scores, tried = climbed, tried + best.size * climbs
    scores = np.nan_to_num(np.asarray(scores), nan=-1.0)
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
        ratios.append(size / (bound.bound + 2.0 * jnp.max(jnp.asarray(bound.error))))
    return jnp.max(jnp.stack(ratios)) if weights is None else jnp.dot(jnp.stack(ratios), jnp.array(weights))


def neighbour(data, replacement, relation: Relation):
    """The data with its first record replaced, or without it under add-or-remove."""
    if relation is Relation.ADD_OR_REMOVE_ONE:
        return jax.tree.map(lambda leaf: leaf[1:], data)
    return jax.tree.map(lambda leaf, row: jnp.concatenate([row, leaf[1:]]), data, replacement)


def _statistics(test, data, replacement, bounds):
    is_bound = lambda node: isinstance(node, Sensitivity)  # noqa: E731
    structure: Any
    flat, structure = jax.tree.flatten(bounds, is_leaf=is_bound)
    other = neighbour(data, replacement, flat[0].relation)
    values = (test.statistic(jax.random.key(0), version) for version in (data, other))
    return *(structure.flatten_up_to(value) for value in values), flat


def _pair(generate, box, corners, key):
    """A random data set and a random record, with some float entries at corners."""
    keys = jax.random.split(key, 4)
    data = _cornered(keys[0], generate(keys[1]), box, corners)
    other = jax.tree.map(lambda leaf: leaf[:1], generate(keys[2]))
    return data, _cornered(keys[3], other, box, corners)


def _cornered(key, data, box, share):
    structure: Any
    leaves, structure = jax.tree.flatten(data)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([_corner(k, leaf, box, share) for k, leaf in zip(keys, leaves, strict=True)])


def _corner(key, leaf, box, share):
    if not jnp.issubdtype(leaf.dtype, jnp.floating):
        return leaf
    key_where, key_value, key_amount = jax.random.split(key, 3)
    value = jax.random.choice(key_value, jnp.array([-box, 0.0, box], leaf.dtype), leaf.shape)
    # the share itself is random: some starts are all corners, some none
    amount = jax.random.uniform(key_amount) * 2 * share
    return jnp.where(jax.random.uniform(key_where, leaf.shape) < amount, value, leaf)


def _walk(measure, generate, box, moves, key, pair):
    """Coordinate moves: one row takes new values in some columns; kept unless the change shrinks."""

    def step(carry, key):
        pair, score = carry
        keys = jax.random.split(key, 4)
        fresh = _cornered(keys[1], generate(keys[0]), box, 0.5)
        proposal = _moved(keys[2], pair, fresh)
        found = measure(proposal)
        better = found >= score
        keep = lambda new, old: jnp.where(better, new, old)  # noqa: E731
        return (jax.tree.map(keep, proposal, pair), jnp.where(better, found, score)), None

    (pair, score), _ = jax.lax.scan(step, (pair, measure(pair)), jax.random.split(key, moves))
    return pair, score


def _moved(key, pair, fresh):
    data, replacement = pair
    count = core.num_records(data)
    key_row, key_columns = jax.random.split(key)
    row = jax.random.randint(key_row, (), 0, count + 1)  # count stands for the replacement
    structure: Any
    leaves, structure = jax.tree.flatten(data)
    columns = jax.random.bernoulli(key_columns, 0.6, (len(leaves),))
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
        proposal = _with_floats(pair, nudged)
        found = measure(proposal)
        better = found >= score
        keep = lambda new, old: jnp.where(better, new, old)  # noqa: E731
        return (jax.tree.map(keep, proposal, pair), jnp.where(better, found, score)), None

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
