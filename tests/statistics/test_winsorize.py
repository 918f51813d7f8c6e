"""The winsorising level: gradients against finite differences, its ends, float32 beside float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import tune
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.simulate.engine.replicates import Design
from jaxdp.statistics import winsorize
from jaxdp.tune.objective import without_effect
from jaxdp.tune.tunable import at, start_of

RATIOS = np.logspace(-11, 1.5, 26)  # of the noise's variance to n: from tau = 5.7 to 0.024


@jax.jit
def level_of(log_ratio):
    return jax.vmap(lambda r: jnp.log(winsorize.best_level(100.0, 100.0 * jnp.exp(r))))(log_ratio)


def test_the_gradient_of_the_level_is_that_of_finite_differences():
    with jax.enable_x64(True):
        logs, step = jnp.log(RATIOS), 1e-4
        found = jax.grad(lambda r: jnp.sum(level_of(r)))(logs)
        expected = (level_of(logs + step) - level_of(logs - step)) / (2.0 * step)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert np.all(np.asarray(expected) < -0.02)  # never flat between the ends
        twice = jax.grad(lambda r: jnp.sum(jax.grad(lambda q: jnp.sum(level_of(q)))(r)))(logs)
        bends = (level_of(logs + 0.01) - 2.0 * level_of(logs) + level_of(logs - 0.01)) / 0.01**2
        np.testing.assert_allclose(twice, bends, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("ratio", "end"), [(1e-13, 6.0), (1e3, 0.02)])
def test_at_an_end_the_level_does_not_move(ratio, end):
    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(lambda r: winsorize.best_level(1.0, r))(ratio)
    assert float(value) == pytest.approx(end, rel=1e-6)
    assert float(slope) == 0.0


def test_float32_knows_the_level_to_one_part_in_a_thousand():
    """So that it moves smoothly with the budget: a search for the flat top would jump by several parts."""
    few = np.log(RATIOS[RATIOS > 1e-8])
    with jax.enable_x64(True):
        exact = np.asarray(level_of(jnp.asarray(few)))
    assert level_of(jnp.asarray(few)).dtype == jnp.float32
    np.testing.assert_allclose(level_of(jnp.asarray(few)), exact, atol=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("what", ["p-value", "soft power"])
def test_gradients_of_the_default_level_reach_the_p_value(what):
    """`PartitionGCM` at its own winsorising level, which the budget and the share of the sum move."""
    design = Design.of(functools.partial(sine_confounder, n=100, effect=0.5))
    with jax.enable_x64(True):
        test = jaxdp.PartitionGCM(epsilon=1.0)
        sample = tune.Sample.draw((design, without_effect(design)), jax.random.key(0), 16)
        alone = jax.tree.map(lambda leaf: leaf[0, 0], sample)

        def value(point, log_epsilon):
            one = at(jaxdp.PartitionGCM(epsilon=jnp.exp(log_epsilon)), point)
            if what == "soft power":
                return tune.SoftPower(price=0.0).rates(one, sample)[0]
            return jaxdp.run(one, jax.random.wrap_key_data(alone.keys), alone.data).p_value

        compiled, slopes = jax.jit(value), jax.jit(jax.grad(value, argnums=(0, 1)))
        point, step = start_of(test, ("split",), 100), 1e-5
        for epsilon in (0.5, 1.0, 3.0):
            log = jnp.log(epsilon)
            share, budget = slopes(point, log)
            moved = {sign: {"split": point["split"] + sign * step} for sign in (1.0, -1.0)}
            by_share = (compiled(moved[1.0], log) - compiled(moved[-1.0], log)) / (2.0 * step)
            by_budget = (compiled(point, log + step) - compiled(point, log - step)) / (2.0 * step)
            np.testing.assert_allclose([share["split"], budget], [by_share, by_budget], rtol=1e-5)
            assert min(abs(by_share), abs(by_budget)) > 1e-4
