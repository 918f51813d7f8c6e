"""Worst neighbours of MIC, made by hand from the proofs (docs/theory/mic.md)."""

import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import Data


def corner(n=20, columns=None):
    """MICr (docs/theory/mic.md): all records in one corner, then one in the opposite. columns: of a table (n, d)."""
    low = np.full((n, columns or 2), -0.9)
    high = low.copy()
    high[0] = 0.9
    return [(low, high) if columns else tuple(Data(side[:, 0], side[:, 1]) for side in (low, high))]


def corner_of_three():
    """The same in a table of three columns: every pair moves."""
    return corner(columns=3)


def alternating_columns(columns=30, each=33):
    """MICe (docs/theory/mic.md): columns in turn all low and all high; the last record moves to the front of x.

    Every boundary then has one record on its wrong side: as many moves as columns, where the bound counts one more.
    """
    x = np.arange(columns * each, dtype=float)
    high = (x // each) % 2 == 1
    y, order = np.empty_like(x), np.random.default_rng(0)
    y[~high], y[high] = (order.permutation(x.size // 2) + shift for shift in (0, x.size // 2))
    return [(Data(x, y), Data(np.where(x == x[-1], -1.0, x), y))]


def outlier():
    """All records of `features` in one corner, and one of them in the opposite corner: every coefficient moves."""
    low = jnp.full((24, 3), -0.9)
    return low, low.at[0].set(0.9)


def outlier_of_one_pair():
    """The first pair of `features` alone moves: the record goes to the opposite corner in two columns."""
    low = jnp.full((24, 3), -0.9)
    return low, low.at[0, :2].set(0.9)
