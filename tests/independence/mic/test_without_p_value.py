"""Queries without a p-value, and searches inside compiled programs, end in one sentence."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.independence.mic.mic_pairs import MICrPairs, MICrTopPair

BOUNDS = [(-1.0, 1.0)] * 3


@pytest.mark.parametrize("query", [MICrPairs(epsilon=1.0, bounds=BOUNDS), MICrTopPair(epsilon=1.0, bounds=BOUNDS)])
def test_run_names_release(query):
    values = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    with pytest.raises(TypeError, match=r"has no p-value to run for: jaxdp.release\(test, key, data\)"):
        jaxdp.run(query, jax.random.key(0), values)
