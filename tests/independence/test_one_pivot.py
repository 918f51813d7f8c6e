"""A 95 % interval leaves out the value of no dependence exactly when p < 0.05, for every test that shows one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue, core
from jaxdp.audit import cases
from jaxdp.audit.cases import RECORDS as NUM_RECORDS
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.independence import effect_sizes

LEVEL, RUNS, NUM = 0.05, 40, 500


def sized(one) -> bool:
    """Whether this example runs on X, Y, Z and its release has an effect."""
    return one.private and issubclass(one.entry.cls, core.PrivateTest) and bool(one.entry.spec.effect)


def with_effect():
    first = {one.entry.name: one for one in reversed(cases.all_examples().values()) if sized(one)}
    found = [*first.values(), cases.find("kruskal-wallis-pair")]
    return [pytest.param(one, id=one.name, marks=pytest.mark.full) for one in found]


def agreement(run):
    """(answers where interval and p-value say the same, answers with an interval, answers): random data and noise.

    Several p-values, one for each effect, are compared one by one; one for several effects with all of them.
    """
    p, interval = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(5), RUNS))
    if interval is None:
        return 0, 0, RUNS
    p, low, high = (np.asarray(number, float).reshape(RUNS, -1) for number in (p, *interval))
    shown, out = ~np.isnan(low), (low > 0.0) | (high < 0.0)
    if p.shape != low.shape:
        shown, out = shown.all(axis=1, keepdims=True), out.any(axis=1, keepdims=True)
    # a rank of LEVEL itself is a finding, of no direction where a table has more bins than two (test_effect_sizes.py)
    same = (out == (p < LEVEL)) | np.isclose(p, LEVEL, rtol=effect_sizes.OPEN)
    return int((shown & same).sum()), int(shown.sum()), shown.size


@pytest.mark.parametrize("one", with_effect())
def test_every_interval_is_of_the_p_value_beside_it(one):
    def run(key):
        key_data, key_run = jax.random.split(key)
        result = core.run(one.build(2.0, NUM_RECORDS), key_run, one.example.data(key_data, NUM_RECORDS))
        interval = result.interval
        if interval is not None:
            interval = jax.tree.map(lambda end: end - one.entry.cls.no_effect, interval)
        return result.p_value, interval

    agree, shown, _ = agreement(run)
    assert agree == shown


def pair(key, n, r, given):
    """X and Y of correlation r given Z, in half ranges of 4 sd."""
    key_columns, key_z = jax.random.split(key)
    x, e = jax.random.normal(key_columns, (2, n))
    z = jax.random.uniform(key_z, (n, given)) if given else None
    trend = z[:, 0] if given else 0.0
    y = r * x + jnp.sqrt(1.0 - r**2) * e + trend
    columns = (Column(),)
    return Data((x + trend) / 4, y / 4, z, Domain(columns, columns, columns * given))


@pytest.mark.parametrize(
    ("name", "given"), [("band-gcm", 1), ("contrast-gcm", 2), ("partition-gcm", 0), ("conditional-kendall", 0)]
)
def test_intervals_of_recommended_tests_agree_with_their_p_values(name, given):
    """Correlations about where the test begins to find them: both verdicts occur."""

    def run(key):
        key_data, key_run = jax.random.split(key)
        data = pair(key_data, NUM, 0.15, given)
        result = core.run(catalogue.find(name).build(4.0, data.domain), key_run, data)
        return result.p_value, result.interval

    agree, shown, runs = agreement(run)
    assert agree == shown
    assert shown > 0.5 * runs


@functools.cache
def power_plant(seed: int):
    """Two columns that bend with a third, and a weak dependence beside that."""
    rng = np.random.default_rng(seed)
    heat = rng.uniform(0, 35, 4000)
    pressure = 1015 - 0.2 * heat + rng.normal(0, 5, 4000)
    output = 500 - 2 * heat + 0.1 * (pressure - 1010) + rng.normal(0, 4, 4000)
    return {"heat": heat, "pressure": pressure, "output": output}


def test_a_found_dependence_has_no_interval_about_zero():
    """Was: found in every run, with an interval that held 0 in every run."""
    bounds = {"heat": (0, 40), "pressure": (990, 1040), "output": (400, 520)}
    verdicts = set()
    for seed in range(3):
        answer = jaxdp.test(
            power_plant(seed),
            x="pressure",
            y="output",
            given="heat",
            epsilon=1.0,
            bounds=bounds,
            key=jax.random.key(seed),
        )
        verdicts.add(answer.p_value < LEVEL)
        if answer.interval is not None:
            low, high = answer.interval
            assert (low > 0.0 or high < 0.0) == (answer.p_value < LEVEL)
    assert True in verdicts
