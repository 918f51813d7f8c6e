"""Published tests whose level rests on what nothing checks are flagged, whatever the kinds of the columns."""

import jax
import numpy as np
import pytest

import jaxdp

NUMBER = {"kind": "continuous", "bounds": [-6, 6]}
KINDS = [
    {"kind": "categorical", "levels": list(range(6))},
    {"kind": "ordinal", "levels": list(range(6))},
    {"kind": "continuous", "bounds": [0, 5]},
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["kind"])
def test_private_gcm_says_that_nothing_checks_its_fit(kind):
    """Given six levels of Z it rejected .13 of true nulls at epsilon 1 and all at 10 (n = 500), without a word."""
    rng = np.random.default_rng(1)
    z = rng.integers(0, 6, 200)
    x = z % 3 + rng.normal(size=200)
    table = {"x": x, "y": x, "z": z}
    schema = {"columns": {"x": NUMBER, "y": NUMBER, "z": kind}}
    how = {"x": "x", "y": "y", "given": "z", "method": "private-gcm", "schema": schema, "force": True}
    answer = jaxdp.test(table, epsilon=100.0, key=jax.random.key(2), **how)
    assert answer.dependence_found
    assert answer.content["level_rule"]["flags"] == ["fit"]
    assert "Nothing checks it" in " ".join(answer.sentences())


@pytest.mark.parametrize("method", ["micr-geometric-split", "micr-geometric-paper"])
def test_published_coefficients_say_that_their_null_law_is_that_of_even_columns(method):
    """Of two exponential columns .16 and .44 of true nulls were rejected (n = 200, epsilon 4)."""
    rng = np.random.default_rng(1)
    table = dict.fromkeys(("x", "y"), rng.exponential(size=100))
    schema = {"columns": dict.fromkeys(table, NUMBER)}
    answer = jaxdp.test(table, x="x", y="y", method=method, epsilon=20.0, schema=schema, key=jax.random.key(2))
    assert answer.dependence_found
    assert answer.content["level_rule"]["flags"] == ["uneven columns"]
    assert "columns that fill their bounds evenly" in " ".join(answer.sentences())
