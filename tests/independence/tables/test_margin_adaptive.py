"""MarginAdaptive: exact size, exact power, enumerated sensitivity, the majorant, traced budgets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom
from test_unit_circle import exact_power

import jaxdp
from jaxdp.independence.tables import margin_adaptive
from jaxdp.independence.tables.margin_adaptive import MarginAdaptive, largest_step, lipschitz_majorant
from jaxdp.mechanisms import Gaussian
from jaxdp.statistics.tables.unit_circle import Groups

pytestmark = pytest.mark.optimised


def prepared(epsilon, cases, controls, **kwargs):
    return MarginAdaptive(epsilon=epsilon, num_cases=cases, num_controls=controls, **kwargs).prepared()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("epsilon", "far", "rare"), [(0.1, 0.674, 0.378), pytest.param(0.3, 0.932, 0.862, marks=pytest.mark.nightly)]
)
def test_power_and_exact_size(epsilon, far, rare):
    test = prepared(epsilon, 300, 300)
    critical = test.critical_value()
    assert exact_power(test, critical, 0.65, 0.5) == pytest.approx(far, abs=0.02)
    assert exact_power(test, critical, 0.14, 0.05) == pytest.approx(rare, abs=0.02)
    between = np.concatenate([[0.0, 1.0], np.geomspace(1e-4, 0.5, 97), 1.0 - np.geomspace(1e-3, 0.5, 41)])
    size = max(exact_power(test, critical, p, p) for p in between)
    assert 0.0495 <= size <= 0.05 + 1e-5


@pytest.mark.nightly
@pytest.mark.usefixtures("x64")
def test_distance_score_has_its_power():
    test = prepared(0.1, 300, 300, score_kind="distance")
    critical = test.critical_value()
    assert exact_power(test, critical, 0.65, 0.5) == pytest.approx(0.67, abs=0.02)
    assert exact_power(test, critical, 0.14, 0.05) == pytest.approx(0.285, abs=0.02)


@pytest.mark.usefixtures("x64")
def test_unequal_groups_keep_their_size_and_their_sensitivity():
    test = prepared(0.5, 40, 120)
    cases, controls = (jnp.arange(size + 1.0) for size in test.groups)
    step = float(largest_step(test.score(cases[:, None], controls[None, :])))
    declared = float(test.sensitivity(160).bound)
    unit = 120 / 160
    assert step == pytest.approx(declared, rel=1e-12)
    assert unit < declared <= unit * 1.06 * (1 + 1e-12)
    critical = test.critical_value()
    size = max(exact_power(test, critical, p, p) for p in np.linspace(0, 1, 201))
    assert size <= 0.05 + 1e-5


def test_majorant_is_the_smallest_lipschitz_one():
    values = np.random.default_rng(0).normal(size=60).astype(np.float32)
    index = np.arange(60)
    expected = np.max(values[None, :] - 0.1 * np.abs(index[:, None] - index[None, :]), axis=1)
    np.testing.assert_allclose(lipschitz_majorant(jnp.asarray(values), 0.1), expected, atol=1e-5)


@pytest.mark.full
def test_gaussian_budget_and_cost():
    x = jnp.concatenate([jnp.ones(45), jnp.zeros(5), jnp.ones(10), jnp.zeros(40)])
    data = jaxdp.Data(x, jnp.concatenate([jnp.ones(50), jnp.zeros(50)]))
    result = jaxdp.run(MarginAdaptive(mechanism=Gaussian(rho=0.5)), jax.random.key(2), data)
    assert float(result.p_value) < 1e-3
    assert float(result.cost.rho) == pytest.approx(0.5)
    assert result.cost.relation is jaxdp.Relation.REPLACE_ATTRIBUTE


@pytest.mark.full
def test_null_p_values_are_super_uniform():
    """3000 nulls through the public entry point, inside the binomial window at 0.05."""
    test = prepared(1.0, 30, 30)
    y = jnp.concatenate([jnp.ones(30), jnp.zeros(30)])

    def one(key):
        key_data, key_run = jax.random.split(key)
        x = jax.random.bernoulli(key_data, 0.3, (60,)).astype(float)
        return jaxdp.run(test, key_run, jaxdp.Data(x, y)).p_value

    p_values = np.asarray(
        jax.jit(lambda k: jax.lax.map(one, k, batch_size=100))(jax.random.split(jax.random.key(3), 3_000))
    )
    for level in (0.01, 0.05, 0.2):
        assert np.sum(p_values <= level) <= binom.ppf(1 - 1e-6, p_values.size, level)
    assert np.mean(p_values <= 0.05) > 0.02


@pytest.mark.parametrize("groups", [Groups(13, 21), Groups(30, 4)])
def test_distances_without_a_table_are_those_of_the_table(groups, monkeypatch):
    """For groups whose table of all counts would be too large, as of 10 000 people in halves."""
    cases, controls = (part.ravel() for part in np.meshgrid(*(np.arange(size + 1) for size in groups), indexing="ij"))
    for level in (0.05, 1e-6):
        expected = margin_adaptive.distance_scores(groups, level, cases, controls)
        monkeypatch.setattr(margin_adaptive, "TABLE_CELLS", 0)
        found = margin_adaptive.distance_scores(groups, level, cases, controls)
        monkeypatch.undo()
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    with pytest.raises(ValueError, match="take FirstTables"):
        margin_adaptive.distance_scores(Groups(100_000, 100_000), 0.05, cases, controls)
