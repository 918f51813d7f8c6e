"""Bisection, within compiled programs and of numbers of the host."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def bisected(holds, start, end, steps: int, *, xp: Any = jnp):
    """The last place known to hold and the first known not to, between `start`, where a condition holds, and `end`.

    holds: condition of a number, or of each of an array, that ceases once on the way from start to end, whichever is
    larger. One that always holds gives `end` twice, to the precision of so many halvings; one that never does, `start`.
    xp: `numpy` for numbers for which nothing compiles.
    """

    def halve(_, ends):
        inside, outside = ends
        middle = 0.5 * (inside + outside)
        held = holds(middle)
        return xp.where(held, middle, inside), xp.where(held, outside, middle)

    if xp is np:
        for step in range(steps):
            start, end = halve(step, (start, end))
        return start, end
    return jax.lax.fori_loop(0, steps, halve, (start, end))
