"""What nobody said of levels: that the codes of `levels=` have an order, that a draft's `(other)` is none."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.ask.independence import Query
from jaxdp.data.known import schema_of

WARDS = [0, 1, 2, 3]
LEVELS = {"x": [0, 1], "y": [0, 1], "ward": WARDS}
RATES_OF_X, RATES_OF_Y = np.array([0.3, 0.5, 0.2, 0.6]), np.array([0.3, 0.5, 0.6, 0.1])
DRAFTED = {
    "columns": 2,
    "epsilon": 0.5,
    "delta": 1e-6,
    "method": "stability-histogram",
    "least": 54,
    "draft": "0a1b2c3d",
}


def by_ward(seed, n=4000):
    """X and Y that differ between wards, in no order of their codes, and are independent within each."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(4, n)
    return {"ward": ward, "x": rng.random(n) < RATES_OF_X[ward], "y": rng.random(n) < RATES_OF_Y[ward]}


def coded(seed):
    return {name: values.astype(int) for name, values in by_ward(seed).items()}


def test_codes_of_a_column_given_are_not_taken_for_numbers():
    """All true nulls were rejected: a straight line through four codes leaves most of what wards explain."""
    how = {"x": "x", "y": "y", "given": "ward", "epsilon": 8.0, "method": "logistic-regression", "levels": LEVELS}
    found = [jaxdp.test(coded(seed), key=jax.random.key(seed), **how) for seed in range(30)]
    assert sum(answer.p_value <= 0.05 for answer in found) <= 5  # .003 of the time if .05 are rejected
    assert "ordered levels" not in found[0].content["assumption"]


def test_an_order_that_a_schema_declares_counts_and_is_named_among_what_the_level_rests_on():
    columns = {name: {"kind": "ordinal" if name == "ward" else "binary", "levels": LEVELS[name]} for name in LEVELS}
    how = {"x": "x", "y": "y", "given": "ward", "epsilon": 8.0, "method": "logistic-regression"}
    found = jaxdp.test(coded(1), key=jax.random.key(1), schema={"columns": columns}, **how)
    assert found.p_value < 0.001
    assert "ordered levels counted as equally spaced numbers" in found.content["assumption"]


def test_codes_have_an_order_as_x_and_y_alone():
    known = schema_of(None, {"z": [0, 1]}, {"a": WARDS, "b": WARDS, "c": ["r", "s", "t"]})
    domain = Query.of(known, x="a", y="c", given=["b", "z"], epsilon=1.0).domain
    assert [column.unordered for column in (*domain.x, *domain.y, *domain.z)] == [False, True, True, False]
    declared = schema_of({"columns": {name: {"kind": "ordinal", "levels": WARDS} for name in "ab"}}, None, None)
    assert not Query.of(declared, x="a", y="a", given="b", epsilon=1.0).domain.z[0].unordered


@pytest.mark.parametrize(("given", "counted"), [(None, 3000), ("code", 2600)])
def test_records_of_other_levels_are_left_out_where_they_are_conditioned_on_alone(given, counted):
    rng = np.random.default_rng(3)
    table = {
        "code": np.concatenate([rng.choice(["a", "b"], 2600), [f"rare {k}" for k in range(400)]]),
        "s": rng.choice(["u", "v"], 3000),
        "t": rng.choice(["u", "v"], 3000),
    }
    entry = {"kind": "categorical", "levels": ["a", "b", "(other)"], "other": "(other)", "released": DRAFTED}
    schema = {
        "missing": "drop",
        "columns": {"code": entry} | {name: {"kind": "binary", "levels": ["u", "v"]} for name in "st"},
    }
    asked = {"x": "s", "y": "t", "given": "code"} if given else {"x": "code", "y": "t"}
    found = jaxdp.test(table, schema=schema, epsilon=1.0, key=jax.random.key(0), **asked)
    assert found.content["n"] == counted
    if not given:
        pairs = jaxdp.test_pairs(table, schema=schema, epsilon=1.0, key=jax.random.key(0))
        assert pairs.content["n"] == counted
        strength = jaxdp.mic(table, schema=schema, **asked, epsilon=1.0, key=jax.random.key(0))
        assert strength.content["n"] == counted
