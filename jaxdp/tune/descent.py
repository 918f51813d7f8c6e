"""Ascent by optax on unconstrained points: first-order or L-BFGS, all restarts in one vmapped program."""

import jax
import jax.numpy as jnp

from jaxdp._base import check

ADAM, LBFGS = "adam", "lbfgs"
LEARNING_RATE = 0.1
LINE_SEARCH_STEPS = 8


def restarts_of(key, start, count: int, spread: float):
    """`count` starting points: the given one, and others moved by normal draws of sd `spread`; leading axis."""
    leaves, treedef = jax.tree.flatten(start)
    keys = jax.random.split(key, len(leaves))
    moved = [
        leaf + spread * jax.random.normal(k, (count, *leaf.shape)).at[0].set(0.0)
        for k, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(treedef, moved)


def ascend(function, starts, *, steps: int, optimizer: str = LBFGS):
    """Maximises function(point) from each of the stacked starts: (points, values), best of each path.

    function: point -> scalar, differentiable. Returns the best point seen on each path and its value, (restarts,).
    """
    check.one_of((ADAM, LBFGS), optimizer=optimizer)
    check.at_least(1, steps=steps)
    path = _lbfgs if optimizer == LBFGS else _adam
    return jax.vmap(lambda start: path(lambda point: -function(point), start, steps))(starts)


def _adam(loss, start, steps: int):
    import optax

    transform = optax.chain(optax.zero_nans(), optax.adam(LEARNING_RATE))
    value_and_grad = jax.value_and_grad(loss)
    return _descend(loss, start, steps, transform, lambda point, state: value_and_grad(point))


def _lbfgs(loss, start, steps: int):
    import optax

    transform = optax.lbfgs(
        memory_size=5, linesearch=optax.scale_by_zoom_linesearch(max_linesearch_steps=LINE_SEARCH_STEPS)
    )
    value_and_grad = optax.value_and_grad_from_state(loss)
    return _descend(loss, start, steps, transform, lambda point, state: value_and_grad(point, state=state))


def _descend(loss, start, steps: int, transform, value_and_grad):
    """The best point of a path and minus its loss. value_and_grad: (point, state) -> value and gradient there."""
    import optax

    update = optax.with_extra_args_support(transform).update

    def step(carry, _):
        point, state, best = carry
        value, gradient = value_and_grad(point, state)
        best = _better(best, (point, value))
        updates, state = update(gradient, state, point, value=value, grad=gradient, value_fn=loss)
        return (optax.apply_updates(point, updates), state, best), None

    carry = (start, transform.init(start), (start, jnp.inf))
    (point, _, best), _ = jax.lax.scan(step, carry, None, length=steps)
    point, value = _better(best, (point, loss(point)))
    return point, -value


def _better(best, candidate):
    """The pair (point, value) of the smaller value; NaN loses."""
    wins = candidate[1] < best[1]
    return jax.tree.map(lambda new, old: jnp.where(wins, new, old), candidate, best)
