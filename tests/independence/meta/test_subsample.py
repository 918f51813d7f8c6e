"""Sub-sampling rate by gradient descent against the closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import tune


def test_gradient_descent_equals_the_closed_form_for_thousands_of_settings():
    with jax.enable_x64(True):
        epsilon = jnp.linspace(0.02, 8.0, 2000)
        rate = np.asarray(tune.subsample_size(1.0, epsilon))
        closed = np.asarray(tune.subsample_size_closed_form(1.0, epsilon))
    assert np.max(np.abs(rate - closed)) <= 1e-6


def test_values_of_the_table():
    with jax.enable_x64(True):
        for epsilon, expected in ((0.5, 0.07243), (1.0, 0.16542), (2.0, 0.43816), (0.3, 0.05), (4.0, 1.0), (1e4, 1.0)):
            assert float(tune.subsample_size(1.0, epsilon)) == pytest.approx(expected, abs=1e-5)
        assert float(tune.subsample_size(1e5, 2.170903)) == pytest.approx(5e4, rel=1e-5)
    assert tune.subsample_size(jnp.array([[1e3], [1e5]]), jnp.array([[0.5, 1.0]])).shape == (2, 2)


def test_the_optimum_is_a_minimum_and_sub_sampling_never_helps_accuracy():
    with jax.enable_x64(True):
        best = -jnp.log(tune.subsample_size(1.0, 1.0))
        around = [float(tune.noise_objective(best + shift, 1.0)) for shift in (-0.05, 0.0, 0.05)]
        assert around[1] < min(around[0], around[2])
        assert float(tune.signal_to_noise(0.16542, 1.0)) == pytest.approx(1.90, abs=0.01)
        assert bool(jnp.all(tune.signal_to_noise(jnp.linspace(0.05, 1.0, 50), 1.0) >= 1.0 - 1e-12))
    with pytest.raises(ValueError, match="epsilon"):
        tune.subsample_size(100, -1.0)
