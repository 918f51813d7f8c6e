"""Flags that doubt a level stand beside found dependences; the page's table is that of the records."""

import jax
import numpy as np

import jaxdp
from experiments.evidence.level import flags


def answer(r: float):
    rng = np.random.default_rng(3)
    columns = dict(zip("abcd", rng.normal(size=(4, 800)), strict=True))
    columns["b"] = columns["b"] + r * columns["a"]
    bounds = dict.fromkeys("abcd", (-5, 5))
    return jaxdp.test(columns, x="a", y="b", given=["c", "d"], epsilon=4.0, bounds=bounds, key=jax.random.key(1))


def test_a_flag_that_doubts_the_level_stands_beside_a_found_dependence_alone():
    found, nothing = answer(2.0), answer(0.0)
    assert found.dependence_found
    assert not nothing.dependence_found
    assert found.to_dict()["level_rule"]["flags"] == ["curvature"]
    assert nothing.to_dict()["level_rule"]["flags"] == []
    assert nothing.to_dict()["level_rule"]["verdict"] == "run"
    assert "nearly flat or straight" in " ".join(nothing.sentences())  # what the level rests on is said all the same


def test_no_doubt_stands_beside_half_of_the_right_answers():
    for (test, flag), verdicts in flags.of_suite().items():
        if flag in flags.DOUBTS:
            shares = verdicts[flags.HOLDS]
            assert sum(shares) / len(shares) < 0.06, (test, flag)
    assert flags.table() in flags.PAGE.read_text(encoding="utf-8")
