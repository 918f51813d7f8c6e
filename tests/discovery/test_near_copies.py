"""Columns that are nearly copies of each other take away each other's edges, and the note says so."""

import jax
import numpy as np
import pytest

import jaxdp

NORMAL = {"kind": "continuous", "bounds": [-4, 4]}
COPIES = "nearly copies of each other by this release: b and d."


def searched(method: str, copied: float, heavy: bool = False):
    rng = np.random.default_rng(1)
    a, *noise = rng.standard_t(2.0, (4, 6000)) if heavy else rng.normal(size=(4, 6000))
    b = 0.8 * a + 0.6 * noise[0]
    table = {"a": a, "b": b, "c": 0.8 * b + 0.6 * noise[1], "d": copied * b + np.sqrt(1.0 - copied**2) * noise[2]}
    schema = {"columns": dict.fromkeys(table, NORMAL)}
    return jaxdp.discover(
        table, columns=list(table), schema=schema, epsilon=4.0, method=method, key=jax.random.key(2), force=True
    )


@pytest.mark.parametrize("method", ["neighbour_pc", "moment_pc"])
@pytest.mark.parametrize(("copied", "said"), [(0.9, False), (0.999, True)])
def test_the_note_names_columns_that_are_nearly_copies(method, copied, said):
    assert (COPIES in searched(method, copied).note) == said


@pytest.mark.parametrize("method", ["neighbour_pc", "moment_pc"])
def test_heavy_tails_are_no_copies(method):
    assert "nearly copies" not in searched(method, 0.9, heavy=True).note


def test_an_edge_that_was_there_goes_with_the_copy():
    """What the note is for."""
    edges = [{frozenset(edge) for edge in searched("neighbour_pc", copied).edges} for copied in (0.8, 0.999)]
    assert frozenset({"b", "c"}) in edges[0]
    assert frozenset({"b", "c"}) not in edges[1]


def test_two_columns_that_are_close_are_not_said_to_be_copies():
    """By its number two columns of a correlation of .8 look like copies among others."""
    rng = np.random.default_rng(3)
    a, own, c = rng.normal(size=(3, 6000))
    table = {"a": a, "b": 0.8 * a + 0.6 * own, "c": c}
    schema = {"columns": dict.fromkeys(table, NORMAL)}
    how = {"schema": schema, "epsilon": 4.0, "method": "neighbour_pc", "force": True}
    note = jaxdp.discover(table, **how, key=jax.random.key(2)).note
    assert "are nearly copies" not in note
    assert "may be nearly copies of each other by this release: a and b. If they are" in note
