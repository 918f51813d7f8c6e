"""What a noisy moment matrix cannot say: intervals of columns that nobody calls normal, and columns that are narrow."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp import catalogue, core
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.statistics import moments


def table(seed: int, n: int = 4000, dependent: float = 0.5):
    rng = np.random.default_rng(seed)
    carat, own = rng.lognormal(size=n), rng.normal(size=n)
    return {"carat": carat, "price": dependent * carat + own}


BOUNDS = {"carat": (0.0, 12.0), "price": (-10.0, 15.0)}


@pytest.mark.parametrize("method", ["winsorised-partial-correlation"])
def test_winsorised_columns_have_an_estimate_that_is_named_and_no_interval(method):
    """Was: an interval of the slope that held the slope of these columns in none of 10 tables, without a word."""
    query = {"x": "carat", "y": "price", "epsilon": 2.0, "bounds": BOUNDS, "method": method}
    answer = jaxdp.test(table(0), key=jax.random.key(0), **query)
    assert answer.dependence_found
    assert answer.interval is None
    assert "winsorised at a private scale" in " ".join(answer.sentences())
    asserted = jaxdp.test(table(0), fields={"normal": True}, key=jax.random.key(0), **query)
    assert asserted.interval[0] < asserted.effect < asserted.interval[1]
    assert asserted.p_value == pytest.approx(answer.p_value)


def test_two_columns_of_levels_keep_their_interval():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 2000)
    columns = {"x": x, "y": np.where(rng.random(2000) < 0.2, 1 - x, x)}
    answer = jaxdp.test(
        columns, x="x", y="y", epsilon=1.0, levels={"x": [0, 1], "y": [0, 1]}, method="winsorised-partial-correlation",
        key=jax.random.key(0)
    )  # fmt: skip
    assert answer.interval[0] > 0.3


def rejected(half_width: float, n: int, of: int, r: float = 0.0):
    """Rejections of X and Y given one Z, off the middle of bounds this many sds away."""
    domain = Domain((Column(),), (Column(),), (Column(),))
    test = catalogue.find("winsorised-partial-correlation").build(1.0, domain)

    @jax.jit
    def one(key):
        key_data, key_run = jax.random.split(key)
        z, x, y = jax.random.normal(key_data, (3, n))
        y = r * x + np.sqrt(1 - r * r) * y + z
        data = Data(0.3 + (x + z) / half_width, -0.4 + y / half_width, z[:, None] / 4.0, domain)
        result = core.run(test, key_run, data)
        return result.p_value < 0.05, result.effect

    found = jax.lax.map(one, jax.random.split(jax.random.key(3), of), batch_size=10)
    return int(found[0].sum()), np.asarray(found[1])


def test_bounds_absurdly_wide_find_nothing_and_say_so():
    """Was: 0.92 to 0.95 of true nulls rejected at 40 000 sds and more."""
    count, effects = rejected(40_000.0, 2000, 40)
    assert count <= binom.ppf(1 - 1e-4, 40, 0.05)
    assert np.isnan(effects).mean() > 0.8
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(3e8, 2e4, 3000), "b": rng.normal(2e8, 2e4, 3000)}
    answer = jaxdp.test(
        columns, x="a", y="b", epsilon=1.0, bounds=dict.fromkeys("ab", (-1e9, 1e9)), key=jax.random.key(1),
        method="winsorised-partial-correlation"
    )  # fmt: skip
    assert answer.p_value == 1.0
    assert answer.effect is None
    assert answer.content["level_rule"]["flags"] == ["narrow column"]
    assert "narrower than its bounds" in " ".join(answer.sentences())
    assert answer.missed()["power"] == "Nothing could have been found, however strong; the answer says why."


@pytest.mark.full
@pytest.mark.parametrize("half_width", [4.0, 400.0])
def test_sensible_bounds_are_never_called_narrow(half_width):
    count, effects = rejected(half_width, 2000, 60, r=0.3)
    assert count >= 54
    assert not np.isnan(effects).any()


def test_the_variance_of_a_clipped_normal_column():
    values = np.clip(np.random.default_rng(0).normal(size=400_000)[:, None] / moments.CLIPS_OF_Z, -1, 1).var(axis=0)
    np.testing.assert_allclose(moments.clipped_variance(moments.CLIPS_OF_Z), values, rtol=0.02)


def test_a_test_without_stages_is_settled_as_it_is():
    data = Data(np.zeros(50), np.zeros(50), None, Domain((Column(),), (Column(),)))
    public = jaxdp.WinsorisedPartialCorrelation(epsilon=1.0, centres=0.0, scales=1.0, clip=1.0)
    result = core.run(public, jax.random.key(0), data)
    assert dataclasses.replace(public).settled(data, result.release).clip == 1.0
