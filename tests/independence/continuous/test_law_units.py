"""Laws of X given Z through `jaxdp.test` are in the columns' own units, as the schema states them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import catalogue
from jaxdp.ask.independence import Query
from jaxdp.core import run
from jaxdp.data.known import schema_of
from jaxdp.statistics import conditional_law

UNIT = {"kind": "continuous", "bounds": [-1, 1]}
GIVEN = {
    "age": {"kind": "continuous", "bounds": [18, 90]},
    "day": {"kind": "continuous", "date": True, "bounds": ["2024-01-01", "2024-12-31"]},
    "income": {"kind": "continuous", "bounds": [1, 1000], "scale": "log"},
    "paid": {"kind": "continuous", "bounds": [0, 5000], "step": 1},
    "site": {"kind": "categorical", "levels": ["a", "b", "c"]},
    "dose": {"kind": "ordinal", "levels": [10, 20, 30]},
    "grade": {"kind": "ordinal", "levels": ["low", "middle", "high"]},
}
ROWS = {
    "age": [20.0, 85.5, 54.0],
    "day": ["2024-01-01", "2024-03-01", "2024-12-31"],
    "income": [1.0, 10.0, 700.0],
    "paid": [5.0, 1000.0, 4999.0],
    "site": ["c", "a", "b"],
    "dose": [30, 10, 20],
    "grade": ["middle", "low", "high"],
}
OWN = np.array(
    [
        [20.0, 19723.0, 1.0, 5.0, 2.0, 30.0, 1.0],
        [85.5, 19783.0, 10.0, 1000.0, 0.0, 10.0, 0.0],
        [54.0, 20088.0, 700.0, 4999.0, 1.0, 20.0, 2.0],
    ]
)
X = {
    "arm": ({"kind": "binary", "levels": ["placebo", "drug"]}, ["drug", "placebo", "drug"], [1.0, 0.0, 1.0]),
    "pressure": ({"kind": "continuous", "bounds": [60, 200]}, [60.0, 130.0, 199.0], [60.0, 130.0, 199.0]),
    "steps": ({"kind": "ordinal", "levels": [70, 80, 90, 100]}, [100, 70, 80], [100.0, 70.0, 80.0]),
}
WEIGHTS = np.array([1e-2, 1e-4, 1e-3, 1e-4, 0.5, 0.1, 1.0])


def mean(z):
    return z @ jnp.asarray(WEIGHTS)


def asked(columns, law, *, given=("z",), method="private-crt-normal", **how):
    schema = schema_of({"columns": columns}, None, None, None, None)
    return Query.of(schema, x="x", y="y", given=list(given), method=method, law=law, **{"epsilon": 1.0, **how})


def read(query, table):
    return query.schema.read(table, x=query.x, y=query.y, given=query.given, codes=False)


@pytest.mark.parametrize("name", X)
def test_a_law_in_own_units_is_asked_in_them(name):
    kind, cells, own = X[name]
    law = jaxdp.GaussianLaw(function=mean, noise_sd=3.0)
    columns = {"x": kind, "y": UNIT, **GIVEN}
    query = asked(columns, law, given=GIVEN)
    data = read(query, {"x": cells, "y": [0.5, -0.5, 1.0], **ROWS})
    scaled = query.settings.law
    with jax.enable_x64(True):
        np.testing.assert_allclose(scaled.own_z(jnp.asarray(data.z)), OWN, rtol=1e-9)
        np.testing.assert_allclose(scaled.own_x(jnp.asarray(data.x)), own, rtol=1e-12)
        half = scaled.x[1]
        left = data.x - conditional_law.means(scaled, data.z)
        np.testing.assert_allclose(half * left, np.asarray(own) - OWN @ WEIGHTS, rtol=1e-9)
        assert float(half * scaled.spread()) == pytest.approx(3.0)
        # what the test releases is what it would of the numbers themselves
        by_hand = jaxdp.CRTNormal(epsilon=1.0, law=law).statistic(None, jaxdp.Data(np.asarray(own), data.y, OWN))
        found = query._test(data, 3).statistic(None, data)
        for part in ("statistic", "variance"):
            np.testing.assert_allclose(found[part], by_hand[part], rtol=1e-9)
        keys = jax.random.split(jax.random.key(0), 200)
        draws = jax.vmap(lambda key: conditional_law.draws(scaled, key, data.z, jnp.zeros(3)))(keys)
        assert float(half * jnp.std(draws)) == pytest.approx(3.0, rel=0.15)


def test_a_coin_is_drawn_as_the_levels_of_the_schema_are_scaled():
    kind, cells, _ = X["arm"]
    law = jaxdp.BernoulliLaw(function=lambda z: 0.25 + 0.0 * z[:, 0])
    columns = {"x": kind, "y": UNIT, "z": {"kind": "continuous", "bounds": [0, 9]}}
    query = asked(columns, law)
    data = read(query, {"x": cells, "y": [0.0, 0.0, 0.0], "z": [1.0, 2.0, 3.0]})
    assert catalogue.described(query._test(data, 3))["law"] == "BernoulliLaw"  # as answers name it
    keys = jax.random.split(jax.random.key(0), 2000)
    of_law, about = query.settings.law, conditional_law.means(query.settings.law, data.z)
    draws = jax.vmap(lambda key: conditional_law.draws(of_law, key, data.z, about))(keys)
    assert set(np.unique(draws)) == {-1.0, 1.0}
    np.testing.assert_allclose(np.mean(draws == 1.0), 0.25, atol=0.03)
    np.testing.assert_allclose(about, -0.5, rtol=1e-6)


REFUSED = {
    "logarithm": ({"x": {"kind": "continuous", "bounds": [1, 100], "scale": "log"}}, "scales their logarithm"),
    "nominal": ({"x": {"kind": "categorical", "levels": ["a", "b", "c"]}}, "one column X of numbers"),
    "unequal steps": ({"z": {"kind": "ordinal", "levels": [1, 2, 4]}}, "'z' are numbers that do not rise in equal"),
    "falling": ({"x": {"kind": "ordinal", "levels": ["3", "2", "1"]}}, "'x' are numbers that do not rise in equal"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_law_can_be_stated_of_is_refused_before_a_table_is_opened(case):
    other, told = REFUSED[case]
    plain = dict.fromkeys("xyz", UNIT)
    law = jaxdp.GaussianLaw(function=lambda z: z[:, 0])
    how = {"schema": {"columns": plain | other}, "x": "x", "y": "y", "given": "z", "epsilon": 1.0, "law": law}
    with pytest.raises(ValueError, match=told):
        jaxdp.test("absent.csv", method="private-crt", **how)


def test_a_coin_is_refused_of_levels_that_a_schema_has_scaled():
    law = jaxdp.BernoulliLaw(function=lambda z: 0.5 + 0.0 * z[:, 0])
    columns = {"x": {"kind": "binary", "levels": ["0", "1"]}, "y": UNIT, "z": UNIT}
    data = read(asked(columns, law), {"x": ["0", "1"] * 10, "y": np.zeros(20), "z": np.zeros(20)})
    with pytest.raises(ValueError, match="BernoulliLaw is of an x of 0 and 1"):
        jaxdp.run(jaxdp.CRTNormal(epsilon=1.0, law=law), jax.random.key(0), data)


def arms(rng, shape):
    z = rng.uniform(-1, 1, shape)
    y = np.clip(0.8 * np.sin(3 * z) + rng.exponential(0.3, shape) - 0.3, -1, 1)
    return np.where(rng.random(shape) < 0.2 + 0.1 * z, "1", "0"), y, z


def doses(rng, shape):
    z = rng.uniform(18, 90, shape)
    return 5 + 0.03 * (z - 54) + rng.normal(size=shape), 0.02 * (z - 54) + rng.normal(size=shape), z


LEVELS = {
    "bernoulli": (
        jaxdp.BernoulliLaw(function=lambda z: 0.2 + 0.1 * z[:, 0]),
        arms,
        {"kind": "binary", "levels": ["0", "1"]},
        ([-1, 1], [-1, 1]),
    ),
    "normal": (
        jaxdp.GaussianLaw(function=lambda z: 5 + 0.03 * (z[:, 0] - 54), noise_sd=1.0),
        doses,
        {"kind": "continuous", "bounds": [0, 10]},
        ([-5, 5], [18, 90]),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("method", ["private-crt", "private-crt-normal"])
@pytest.mark.parametrize("name", LEVELS)
def test_a_true_null_keeps_its_level_by_a_law_in_the_units_of_the_schema(name, method):
    law, drawn, kind, bounds = LEVELS[name]
    repeats, n = 500, 500
    numbers = [{"kind": "continuous", "bounds": ends} for ends in bounds]
    few = {"fields": {"num_resamples": 39}}  # resamples change the power alone
    query = asked({"x": kind, "y": numbers[0], "z": numbers[1]}, law, method=method, epsilon=4.0, **few)
    table = dict(zip("xyz", drawn(np.random.default_rng(5), (repeats, n)), strict=True))
    data = read(query, {name: values.ravel() for name, values in table.items()})
    data = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(repeats, n, *leaf.shape[1:]), data)
    test = query._test(jax.tree.map(lambda leaf: leaf[0], data), n)
    one = functools.partial(run, test)
    p_values = jax.jit(lambda keys, data: jax.lax.map(lambda k: one(*k).p_value, (keys, data), batch_size=50))(
        jax.random.split(jax.random.key(6), repeats), data
    )
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], repeats, 0.05)
    assert low <= np.sum(np.asarray(p_values) <= 0.05 * (1 + 1e-6)) <= high
