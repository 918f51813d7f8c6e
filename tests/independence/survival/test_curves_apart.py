"""Curves that cross: what the bands show beside a log-rank test that averages over time."""

import jax
import numpy as np

import jaxdp


def told(shape: float) -> str:
    """Sentences about the curves, where hazards of the second group fall (shape below 1) or are those of the first."""
    random = np.random.default_rng(1)
    group = random.random(4000) < 0.5
    time = np.where(group, random.weibull(shape, 4000), random.weibull(1.8, 4000)) * 24
    lost = random.uniform(6, 60, 4000)
    table = {
        "care": np.where(group, "surgery", "drug"),
        "months": np.minimum(np.minimum(time, lost), 60.0),
        "died": np.where(time <= lost, "yes", "no"),
    }
    levels = {"care": ["drug", "surgery"], "died": ["no", "yes"]}
    asked = {"x": "care", "y": ["months", "died"], "method": "log-rank", "epsilon": 2.0, "key": jax.random.key(1)}
    answer = jaxdp.test(table, bounds={"months": (0, 60)}, levels=levels, **asked)
    assert shape != 0.6 or answer.p_value > 0.05
    return " ".join(answer.content["curves"]["sentences"])


def test_an_answer_says_where_curves_differ_that_the_test_finds_alike():
    assert "the bands lie apart: there the curves differ" in told(0.6)
    assert "apart" not in told(1.8)
