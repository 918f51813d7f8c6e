"""Regressions with a level that no record has, as a drafted schema declares one: what they hold fixed, and say."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp.data.dataset import Column, Domain
from jaxdp.independence.continuous.residual_test import MomentMatrix
from jaxdp.mechanisms import Gaussian

SCHEMA = {
    "columns": {
        "drug": {"kind": "categorical", "levels": ["active", "placebo", "(other)"]},
        "age": {"kind": "continuous", "bounds": [20, 90]},
        "pressure": {"kind": "continuous", "bounds": [80, 200]},
        "relapse": {"kind": "binary", "levels": ["no", "yes"]},
        "visits": {"kind": "continuous", "bounds": [0, 10]},
    }
}


def patients(n: int = 6000):
    rng = np.random.default_rng(0)
    placebo, age = rng.integers(0, 2, n), np.clip(50.0 + 12.0 * rng.standard_normal(n), 20.0, 90.0)
    log_odds = -0.5 + 0.8 * placebo + 0.03 * (age - 50.0)
    return {
        "drug": np.where(placebo, "placebo", "active"),
        "age": age,
        "pressure": np.clip(130.0 - 6.0 * placebo + 0.35 * (age - 50.0) + 14.0 * rng.standard_normal(n), 80.0, 200.0),
        "relapse": np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-log_odds)), "yes", "no"),
        "visits": 1.0 * np.minimum(rng.poisson(np.exp(0.3 + 0.03 * (age - 50.0))), 10),
    }


@pytest.mark.parametrize(
    ("method", "y", "slope"),
    [
        ("linear-regression", "pressure", 0.35),
        ("partial-correlation", "pressure", None),
        ("logistic-regression", "relapse", 0.03),
        ("poisson-regression", "visits", 0.03),
    ],
)
def test_a_level_that_no_record_has_is_not_held_fixed(method, y, slope):
    """The p-value was 1 at every epsilon, since the column of that level does not vary."""
    asked = {"x": "age", "y": y, "given": "drug", "schema": SCHEMA, "epsilon": 10.0, "method": method}
    found = jaxdp.test(patients(), key=jax.random.key(1), **asked)
    assert found.p_value < 0.001
    low, high = found.interval
    assert slope is None or low < slope < high
    assert "A level of drug is so rare, or absent" in " ".join(str(found).split())


def test_the_contrasts_of_the_levels_that_records_have_are_answered():
    asked = {"x": "drug", "y": "pressure", "schema": SCHEMA, "epsilon": 10.0, "method": "linear-regression"}
    found = jaxdp.test(patients(), key=jax.random.key(1), **asked)
    assert found.p_value < 0.001
    (low, none), (high, other) = (np.ravel(end) for end in found.interval)
    assert low < -6.0 < high
    assert none is None
    assert other is None


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize(
    ("rare", "shares", "told"),
    [(2, [0.5, 0.485, 0.015], "so rare, or absent"), (0, [0.01, 0.5, 0.49], "the level that most records have")],
)
def test_a_rare_level_that_moves_both_columns_by_an_sd_rejects_no_more_true_nulls_than_the_level_says(
    rare, shares, told
):
    """One in seventy has it; what it leaves where it is not held fixed is counted as an error of its own size."""
    columns = {name: {"kind": "continuous", "bounds": [-4, 4]} for name in "xy"}
    columns["g"] = {"kind": "categorical", "levels": ["a", "b", "c"]}
    rejected, noted, n = 0, 0, 6000
    for seed in range(60):
        rng = np.random.default_rng(seed)
        group = rng.choice(3, size=n, p=shares)
        x, y = (np.clip(rng.standard_normal(n) + (group == rare), -4.0, 4.0) for _ in range(2))
        asked = {"x": "x", "y": "y", "given": "g", "schema": {"columns": columns}, "method": "linear-regression"}
        table = {"g": np.array(["a", "b", "c"])[group], "x": x, "y": y}
        found = jaxdp.test(table, epsilon=1.0, key=jax.random.key(seed), **asked)
        rejected += found.p_value < 0.05
        noted += told in " ".join(str(found).split())
    assert noted > 20  # else nothing is tried
    assert rejected <= 9  # P = 0.002 at .05


def rejected_beside_a_rare_level(test, make, kinds):
    """The share of 150 nulls rejected at .05. make(key): x, y, z of 6000 records."""
    domain = Domain(*((Column(*kind),) for kind in kinds))

    def p_value(key):
        first, second = jax.random.split(key)
        x, y, z = (values.astype(float) for values in make(first))
        data = jaxdp.Data(x[:, None], y, z[:, None], domain)
        return core.run_opened(test, core.source_from_key(second), data).p_value

    found = jax.jit(jax.vmap(p_value))(jax.random.split(jax.random.key(0), 150))
    return float(jnp.mean(found <= 0.05))


YES_OR_NO, NUMBERS = ("binary", 2), ("continuous",)


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("cls", [jaxdp.LinearRegression, jaxdp.PartialCorrelation])
def test_a_rare_level_that_decides_a_rare_x_is_counted_by_how_far_x_is_from_its_mean(cls):
    """One in fifty others has X, all of a level of one in a hundred: 5 sds off, and .29 of true nulls were found."""

    def make(key):
        keys = jax.random.split(key, 3)
        z = jax.random.uniform(keys[0], (6000,)) < 0.01
        x = z | (jax.random.uniform(keys[1], (6000,)) < 0.02)
        return x, jnp.clip(0.25 * (jax.random.normal(keys[2], (6000,)) + z), -1.0, 1.0), z

    assert rejected_beside_a_rare_level(cls(epsilon=1.0), make, (YES_OR_NO, NUMBERS, YES_OR_NO)) <= 0.1


@pytest.mark.full
@pytest.mark.optimised
def test_a_rare_level_that_decides_a_rare_outcome_is_counted_by_how_far_that_is_from_its_mean():
    """All of one in a hundred, one in twenty of the others: .47 of true nulls were found."""

    def make(key):
        keys = jax.random.split(key, 3)
        z = jax.random.uniform(keys[0], (6000,)) < 0.01
        y = z | (jax.random.uniform(keys[2], (6000,)) < 0.05)
        return jnp.clip(0.25 * (jax.random.normal(keys[1], (6000,)) + 2.0 * z), -1.0, 1.0), y, z

    test = jaxdp.LogisticRegression(epsilon=1.0)
    assert rejected_beside_a_rare_level(test, make, (NUMBERS, YES_OR_NO, YES_OR_NO)) <= 0.1


ASKED = [
    ("linear-regression", "pressure"),
    ("partial-correlation", "pressure"),
    ("logistic-regression", "relapse"),
    ("poisson-regression", "visits"),
]


def schema_of_drugs(*levels):
    return {"columns": SCHEMA["columns"] | {"drug": {"kind": "categorical", "levels": list(levels)}}}


@pytest.mark.parametrize("levels", [("(other)", "active", "placebo"), ("(other)", "active", "no drug", "placebo")])
@pytest.mark.parametrize(("method", "y"), ASKED)
def test_a_first_level_that_no_record_has_costs_nothing(method, y, levels):
    """The indicators of the other levels add up to a constant, and the p-value was 1 at every epsilon."""
    asked = {"x": "age", "y": y, "given": "drug", "epsilon": 10.0, "method": method}
    first, last = (
        jaxdp.test(patients(), key=jax.random.key(1), schema=schema_of_drugs(*order), **asked)
        for order in (levels, (*levels[1:], levels[0]))
    )
    assert first.p_value < max(0.001, 100.0 * last.p_value)
    assert first.interval is not None
    told = " ".join(str(first).split())
    assert "A level of drug is so rare, or absent" in told
    assert "count as having the level that most records have" in told
    assert "count as having the first level" in " ".join(str(last).split())


@pytest.mark.parametrize("levels", [["no", "yes"], ["yes", "no"]])
def test_of_two_levels_a_rare_one_counts_as_the_other(levels):
    rng = np.random.default_rng(0)
    x, y = np.clip(rng.standard_normal((2, 3000)), -4.0, 4.0)
    columns = {name: {"kind": "continuous", "bounds": [-4, 4]} for name in "xy"}
    schema = {"columns": columns | {"g": {"kind": "binary", "levels": levels}}}
    asked = {"x": "x", "y": "y", "given": "g", "schema": schema, "epsilon": 2.0, "method": "linear-regression"}
    found = jaxdp.test({"g": np.full(3000, "yes"), "x": x, "y": y}, key=jax.random.key(1), **asked)
    assert "count as having the other level" in " ".join(str(found).split())


@pytest.mark.parametrize("method", ["linear-regression", "partial-correlation"])
def test_levels_of_x_without_the_first_one_are_compared_and_have_no_effects(method):
    """Each level is compared with the first one, which no record has."""
    schema = schema_of_drugs("(other)", "active", "placebo")
    asked = {"x": "drug", "y": "pressure", "schema": schema, "epsilon": 10.0, "method": method}
    found = jaxdp.test(patients(), key=jax.random.key(1), **asked)
    assert found.p_value < 0.001
    assert all(end is None for ends in found.to_dict()["interval"] for row in ends for end in row)
    told = " ".join(str(found).split())
    assert "The first level of drug, with which the others are compared, is so rare" in told
    assert "count as having" not in told


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("cls", [jaxdp.LogisticRegression, jaxdp.PoissonRegression])
def test_given_nine_even_levels_that_both_columns_follow_a_slope_is_found(cls):
    """Moments of indicators, whose sum over the levels hardly varies, hid the columns in two of three runs."""
    levels, n, slope = 9, 20_000, 0.3
    counts = cls is jaxdp.PoissonRegression
    outcome = Column(from_zero=True) if counts else Column("binary", 2)
    domain = Domain((Column("continuous"),), (outcome,), (Column("categorical", levels),))
    test = cls(epsilon=1.0)

    def found(key):
        keys = jax.random.split(key, 4)
        z = jax.random.randint(keys[0], (n,), 0, levels)
        of_level = jnp.linspace(-1.0, 1.0, levels)[z]
        x = jnp.clip(jax.random.normal(keys[1], (n,)) + of_level, -4.0, 4.0)
        mean = slope * (x - of_level) + 0.6 * of_level
        if counts:
            y = jnp.minimum(jax.random.poisson(keys[2], jnp.exp(mean)), 16) / 8.0 - 1.0
        else:
            y = (jax.random.uniform(keys[2], (n,)) < jax.nn.sigmoid(mean)).astype(float)
        data = jaxdp.Data(0.25 * x[:, None], y, z[:, None].astype(float), domain)
        answer = core.run_opened(test, core.source_from_key(keys[3]), data)
        return jnp.stack([answer.p_value, *answer.interval])

    p, low, high = jax.jit(lambda keys: jax.lax.map(found, keys))(jax.random.split(jax.random.key(0), 12)).T
    assert np.mean(p < 0.05) > 0.8
    ends = np.isfinite(low) & np.isfinite(high)
    assert counts or ends.all()  # of counts the noise still hides how wide an interval is in half of the runs
    assert np.mean((low < 4.0 * slope) & (4.0 * slope < high), where=ends) > 0.8


@pytest.mark.parametrize(("budget", "reached"), [({"epsilon": 1.0}, 0.93), ({"mechanism": Gaussian(1.0)}, 0.9)])
def test_moments_beside_nine_levels_move_within_their_bound_and_by_most_of_it(budget, reached):
    """Codes that do not exist, missing ones and infinities are tried beside the levels."""
    domain = Domain((Column(),), (Column("binary", 2),), (Column("categorical", 9),))
    others = np.linspace(-0.5, 0.5, 20)
    ends, strange = (-1.0, 0.0, 1.0, np.nan, np.inf), (np.nan, np.inf, -1.0, 99.0)
    records = np.array(list(itertools.product(ends, (0.0, 1.0, np.nan), (*range(9), *strange))))

    def data(record):
        x, y, z = (
            np.append(1.0 * own, column) for own, column in zip(record, (others, others > 0, others), strict=True)
        )
        return jaxdp.Data(x[:, None], y, z[:, None], domain)

    def stages(test):
        return test.first if isinstance(test.first, MomentMatrix) else stages(test.second)

    with jax.enable_x64(True):
        query = stages(core.specialize(jaxdp.LogisticRegression(**budget, enforce_rule=False), data(records[0])))
        vectors = np.array([query.statistic(None, data(record)) for record in records])
    bound = query.sensitivity(len(others) + 1).bound
    order = 2 if query.euclidean else 1
    farthest = max(np.linalg.norm(vectors - vector, ord=order, axis=1).max() for vector in vectors)
    assert reached * bound < farthest <= bound
