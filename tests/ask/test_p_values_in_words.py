"""A p-value is never told as 0, and where it is the smallest that its test can give, the answer says so."""

import json

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp._base import p_values
from jaxdp.ask.pair_answers import PairAnswers

LINE = np.linspace(-0.99, 0.99, 8000)


def test_words():
    assert p_values.describe(0.0) == "p < 1e-300" == p_values.describe(1e-310)
    assert p_values.number(0.0) == "<1e-300"
    assert p_values.describe(0.01234) == "p = 0.0123"
    assert p_values.describe(0.001, 0.001) == "p = 0.001, the smallest this test can give"
    assert [p_values.floored(0.0), p_values.floored(0.5)] == [1e-300, 0.5]
    assert np.isnan(p_values.floored(float("nan")))


def test_a_formula_is_not_taken_for_a_rank():
    """PartitionGCM has `num_null`, and its p-value is a formula unless Z has regions."""
    test = jaxdp.PartitionGCM(epsilon=1.0)
    assert p_values.smallest_of(test, 3e-5) is None
    assert p_values.smallest_of(jaxdp.QuantileTable(epsilon=1.0), 1.0 / 1000.0) == pytest.approx(0.001)
    assert p_values.smallest_of(jaxdp.QuantileTable(epsilon=1.0), 0.002) is None


def test_an_answer_far_out_is_not_0():
    bounds = {"x": (-1, 1), "y": (-1, 1)}
    table = {"x": LINE, "y": LINE}
    how = {"x": "x", "y": "y", "bounds": bounds, "key": jax.random.key(1), "epsilon": 50.0}
    answer = jaxdp.test(table, method="partition-gcm", **how)
    assert float(answer.p_value) == answer.content["p_value"] == 1e-300
    assert "(p < 1e-300)" in answer.content["answer"]
    assert "1e-300" in answer._repr_html_()
    assert answer.content["smallest_p_value"] is None
    ranked = jaxdp.test(table, method="quantile-table", **how | {"key": jax.random.key(2)})
    assert "p = 0.001, the smallest this test can give" in str(ranked)
    assert json.loads(json.dumps(ranked.to_dict()))["smallest_p_value"] == pytest.approx(0.001)


def test_a_table_of_pairs_marks_the_smallest():
    pair = {"x": "a", "y": "b", "method": "t", "adjusted": 0.001, "dependence_found": True}
    pair |= {"p_value": 0.001, "smallest_p": 0.001}
    far = pair | {"x": "c", "method": "u", "p_value": 1e-300, "adjusted": 1e-300, "smallest_p": None}
    lines = PairAnswers([far, pair], {}, None, "release", "t").table()
    assert lines[1].split()[3:] == ["<1e-300", "<1e-300", "yes", "u"]
    assert lines[2].endswith("t*")
    assert lines[-1] == "* the smallest p-value that this test can give"
    assert not any("*" in line for line in PairAnswers([far], {}, None, "release", "t").table())
