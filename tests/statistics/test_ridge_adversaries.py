"""Rounding of kernel ridge residuals: adversarial systems against an extended-precision reference."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from experiments.evidence.audit import ridge as adversaries
from jaxdp.statistics.kernel_ridge import kernels, ridge, ridge_error

pytestmark = [
    pytest.mark.optimised,
    pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs 80-bit floats"),
]


@pytest.mark.full
def test_no_adversarial_system_passes_a_bound():
    found = adversaries.attack({2: 30, 5: 30, 12: 20, 40: 20}, seed=1)
    assert found["above"] == 0
    assert all(0.0 < value <= 1.0 for value in found["largest"].values())


@pytest.mark.nightly
def test_systems_of_nightly_size():
    found = adversaries.attack({2: 300, 3: 300, 8: 300, 20: 200, 100: 100, 300: 30, 1000: 4, 2000: 1}, seed=2)
    assert found["above"] == 0


@pytest.mark.parametrize("n", [8, 20])
def test_both_references_agree(n):
    rng = np.random.default_rng(0)
    for _ in range(10):
        system = adversaries.draw(rng, n)
        decimals, refined = adversaries._by_decimals(system), adversaries._by_refinement(system)
        least = adversaries.smallest_ridge(n, system.kernel().entry_error(system.z.shape[1]))
        assert np.abs(decimals - refined).max() <= 2.0**-60 * (1.0 + 2.0 / max(system.ridge, least)) * n


def test_the_least_ridge_is_the_least_that_is_let_through():
    with jax.enable_x64(True):
        for n in (2, 50, 2000):
            least = adversaries.smallest_ridge(n, 7.0)
            assert np.isfinite(float(ridge_error.residual_error(least, n, 7.0)))
            with pytest.raises(ValueError, match="too small to be solved"):
                ridge_error.residual_error(0.99 * least, n, 7.0)


def test_a_solve_without_refinement_is_caught(monkeypatch):
    """The bound counts on two steps of refinement: float32 weights pass it by far."""
    rng = np.random.default_rng(3)
    z, signs = rng.normal(size=(20, 1)), rng.choice([-1.0, 1.0], (20, 2))
    system = adversaries.System(kernels.RBF, 1.0, 1e-3, z, signs)
    assert max(adversaries.ratios(system).values()) <= 1.0

    def rough(gram, alpha, factor, columns):
        return jax.scipy.linalg.cho_solve((factor.astype(np.float32), True), columns.astype(np.float32)).astype(
            np.float64
        )

    monkeypatch.setattr(ridge, "solve_refined", rough)
    other = dataclasses.replace(system, z=np.concatenate([z, z[:1]]), targets=np.concatenate([signs, signs[:1]]))
    assert adversaries.ratios(other)["residual"] > 1.0  # another size: traced anew


def test_recorded_run_found_nothing_above():
    record = json.loads((adversaries.HERE / "ridge.json").read_text())
    assert record["systems"] >= 10_000
    assert record["above"] == 0
