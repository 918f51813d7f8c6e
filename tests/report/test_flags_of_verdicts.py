"""Flags that doubt a level stand beside found dependences; the page's table is that of the records."""

import jax
import numpy as np
import pytest

import jaxdp
from experiments.evidence.level import flags


def answer(r: float):
    rng = np.random.default_rng(3)
    columns = dict(zip("abcd", rng.normal(size=(4, 800)), strict=True))
    columns["b"] = columns["b"] + r * columns["a"]
    bounds = dict.fromkeys("abcd", (-5, 5))
    return jaxdp.test(columns, x="a", y="b", given=["c", "d"], epsilon=4.0, bounds=bounds, key=jax.random.key(1))


@pytest.fixture(params=["cycles", "heaps"])
def schema_flag(request):
    """A flag of the schema, an answer with a dependence and one without."""
    rng = np.random.default_rng(4)
    n = 400
    z = {
        "cycles": np.datetime_as_string(np.datetime64("2023-01-01") + rng.integers(0, 365, n), unit="D"),
        "heaps": rng.uniform(0.0, 9000.0, n),
    }[request.param]
    kind = {
        "cycles": {"date": "%Y-%m-%d", "bounds": ["2023-01-01", "2023-12-31"], "cycles": []},
        "heaps": {"bounds": [0, 9000], "heaps": []},
    }[request.param]
    x, y = rng.normal(size=(2, n))
    real = {"kind": "continuous", "bounds": [-5, 5]}
    schema = {"columns": {"x": real, "y": real, "z": {"kind": "continuous", **kind}}}

    def asked(second):
        columns = {"x": x, "y": second, "z": z}
        return jaxdp.test(columns, x="x", y="y", given="z", epsilon=4.0, schema=schema, key=jax.random.key(2))

    return request.param, asked(x + 0.2 * y), asked(y)


def test_a_flag_that_doubts_the_level_stands_beside_a_found_dependence_alone():
    found, nothing = answer(2.0), answer(0.0)
    assert found.dependence_found
    assert not nothing.dependence_found
    assert found.to_dict()["level_rule"]["flags"] == ["curvature"]
    assert nothing.to_dict()["level_rule"]["flags"] == []
    assert nothing.to_dict()["level_rule"]["verdict"] == "run"
    assert "nearly flat or straight" in " ".join(nothing.sentences())  # what the level rests on is said all the same


def test_every_flag_of_every_test_is_measured_or_says_why_not():
    named, measured = set(flags.named()), set(flags.measured())
    assert named - measured == set(flags.NOT_MEASURED)
    assert {flag for _, flag in named} == set(flags.FLAGS)


def test_what_the_schema_leaves_out_of_z_is_a_doubt_about_a_found_dependence(schema_flag):
    name, found, nothing = schema_flag
    assert found.dependence_found
    assert not nothing.dependence_found
    assert name in found.to_dict()["level_rule"]["flags"]
    assert name not in nothing.to_dict()["level_rule"]["flags"]


def test_no_doubt_stands_beside_half_of_the_right_answers():
    for (test, flag), verdicts in flags.measured().items():
        if flag in flags.DOUBTS and verdicts[flags.HOLDS]:
            shares = verdicts[flags.HOLDS]
            assert sum(shares) / len(shares) < 0.06, (test, flag)
    assert flags.table() in flags.PAGE.read_text(encoding="utf-8")
