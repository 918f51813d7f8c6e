"""Bisection within compiled programs."""

import jax
import jax.numpy as jnp


def bisected(holds, start, end, steps: int):
    """The last place known to hold and the first known not to, between `start`, where a condition holds, and `end`.

    holds: condition of a number, or of each of an array, that ceases once on the way from start to end, whichever is
    larger. One that always holds gives `end` twice, to the precision of so many halvings; one that never does, `start`.
    """

    def halve(_, ends):
        inside, outside = ends
        middle = 0.5 * (inside + outside)
        held = holds(middle)
        return jnp.where(held, middle, inside), jnp.where(held, outside, middle)

    return jax.lax.fori_loop(0, steps, halve, (start, end))
