"""Long draws of exact noise run in programs that are compiled as users' are, whatever the test says.

Most tests compile quickly (`conftest.py`), which suits programs that run once on little. A release that selects among
scores draws hundreds of thousands of random words instead: without XLA's optimisations that takes several times as
long as compiling the two programs well.
"""

import functools

import jax

from jaxdp.noise import lattice

WORDS = 1 << 18  # random words of a draw: from here on running it slowly costs more than compiling it well

_in_passes = lattice._in_passes


@functools.wraps(_in_passes)
def in_passes(key, rows, draw, value=None, size=None):
    """The function of the package, optimised where the draw is long."""
    drawn = value.size if size is None else size
    if rows * drawn < WORDS:
        return _in_passes(key, rows, draw, value, size)
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    try:
        return _in_passes(key, rows, draw, value, size)
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


def pytest_configure(config):
    lattice._in_passes = in_passes
