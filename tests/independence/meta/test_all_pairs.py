"""All pairs by any test: one release where the test knows how, else pair by pair under one budget, charged once."""

import sys
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp._base.rounding import as_fraction
from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, ORDINAL, Column, Domain
from jaxdp.independence import pair_by_pair

sys.path.insert(0, str(Path(jaxdp.__file__).parent.parent / "examples"))

from cell_signs import CellSigns

LAW = jaxdp.simulate.SineLaw(noise_sd=1.0, complexity=2.0)
CRT = jaxdp.CRTNormal(epsilon=0.7, law=LAW)
SMALL = {
    "kendall": jaxdp.ConditionalKendall(epsilon=0.7, accept_coarse_cells=True),
    "crt": CRT,
    "own": CellSigns(epsilon=0.7, num_cells=5),
    "decision": jaxdp.LocalPermutation(epsilon=0.7, num_permutations=39),
    "stages": jaxdp.ChosenCells(epsilon=0.7, candidates=(2, 4)),
}


def features(n=60, d=3, seed=0):
    """d columns with one confounder; the first two depend on each other given it."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, n)
    table = np.sin(2 * z)[:, None] + rng.normal(size=(n, d))
    table[:, 1] += 3 * table[:, 0]
    return table, z


def key(seed=0):
    return jax.random.key(seed)


@pytest.mark.parametrize(
    "test", [pytest.param(SMALL[name], id=name, marks=[] if name == "kendall" else pytest.mark.full) for name in SMALL]
)
def test_pairs_are_runs_of_the_test_with_its_share(test):
    table, z = features()
    result = jaxdp.all_pairs(test, key(), table, z)
    p = np.asarray(result.p_values)
    np.testing.assert_array_equal(p, p.T)
    assert np.all(np.isnan(np.diag(p)))
    assert result.cost.epsilon == pytest.approx(0.7, rel=2.0**-47)
    assert result.method == test.spec.name
    assert len(result.releases) == 3
    share = pair_by_pair._share(test, Fraction(1, 3))
    with jax.debug_key_reuse(False):
        for place, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            own = jax.random.split(key(), 3)[place]
            one = jaxdp.run(share, own, jaxdp.Data(table[:, i], table[:, j], z))
            assert p[i, j] == pytest.approx(float(one.p_value), rel=2e-3, abs=1e-5)
            released = jax.tree.leaves(result.releases[place].value)
            for found, wanted in zip(released, jax.tree.leaves(one.release.value), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.full
def test_the_dependent_pair_is_found_at_a_large_budget():
    table, z = features(400, 3)
    for test in (CellSigns(epsilon=60.0), jaxdp.ConditionalKendall(epsilon=60.0, accept_coarse_cells=True)):
        p = np.asarray(jaxdp.all_pairs(test, key(1), table, z).p_values)
        assert np.unravel_index(np.nanargmin(p), p.shape) == (0, 1)
        assert p[0, 1] < 0.05


FULL = [pytest.param(name, marks=pytest.mark.full) for name in ("crt", "stages")]


@pytest.mark.parametrize("name", ["kendall", "own", *FULL])
@pytest.mark.parametrize("epsilon", [0.7, 1.0])
def test_a_release_charges_its_budget_once_and_to_the_last_bit(tmp_path, name, epsilon):
    ledger = jaxdp.Ledger.create(tmp_path / "budget.db", epsilon=epsilon)
    table, z = features()
    test = pair_by_pair._share(SMALL[name], Fraction(str(epsilon)) / Fraction("0.7"))
    assert test.epsilon == epsilon
    result = jaxdp.all_pairs(test, jaxdp.fresh_key(), table, z, ledger=ledger)
    assert result.mode == "release"
    assert [row.method for row in ledger.rows()] == [f"all-pairs[{test.spec.name}]"]
    assert float(ledger.spent.epsilon) == epsilon  # counted in units of 1e-12
    assert epsilon * (1 - 2.0**-47) <= result.cost.epsilon <= epsilon
    each = sum(as_fraction(release.cost.epsilon) for release in result.releases)
    assert each <= as_fraction(epsilon)
    assert all(release.mode == "release" and release.certificates for release in result.releases)
    p = np.asarray(result.p_values)
    assert p.dtype == np.float64
    assert np.all((p[~np.eye(3, dtype=bool)] >= 0) & (p[~np.eye(3, dtype=bool)] <= 1))


def test_nothing_is_charged_or_read_where_the_budget_is_too_small(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "budget.db", epsilon=0.5)
    table, z = features()
    spent = jaxdp.fresh_key()
    with pytest.raises(jaxdp.BudgetExhausted):
        jaxdp.all_pairs(SMALL["kendall"], spent, table, z, ledger=ledger)
    with pytest.raises(ValueError, match="lattice steps"):
        jaxdp.all_pairs(CellSigns(epsilon=1e-13), spent, table, z, ledger=ledger)
    with pytest.raises(ValueError, match="needs z"):
        jaxdp.all_pairs(CRT, spent, table, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0
    spent.require_unused()


def test_one_key_gives_every_pair_noise_of_its_own():
    """Equal features: the statistics of the three pairs are equal, what is released is not."""
    table = np.repeat(features(50, 2)[0][:, :1], 3, axis=1)
    for used in (key(3), jaxdp.fresh_key()):
        released = [
            float(release.value)
            for release in jaxdp.all_pairs(CellSigns(epsilon=1.0), used, table, features(50)[1]).releases
        ]
        assert len(set(released)) == 3


@pytest.mark.full
def test_levels_of_features_reach_tests_of_codes_and_of_scores():
    rng = np.random.default_rng(4)
    table = np.stack([rng.integers(0, 2, 80), rng.integers(0, 2, 80), rng.integers(0, 4, 80)], axis=1)
    columns = (Column(ORDINAL, 2, "a"), Column(ORDINAL, 2, "b"), Column(ORDINAL, 4, "c"))
    coded = jaxdp.all_pairs(jaxdp.ConditionalKendall(epsilon=3.0), key(), table, feature_columns=columns)
    bounds = [float(release.sensitivity["u"].bound) for release in coded.releases]
    assert bounds == [1.0, 2.0, 2.0]  # both binary without z; one binary
    scored = jaxdp.all_pairs(CellSigns(epsilon=3.0, num_cells=2), key(), table, table[:, 0], feature_columns=columns)
    spread = Domain(*((Column(CONTINUOUS, count),) for count in (2, 4)))
    scores = [table[:, 1] * 2.0 - 1.0, table[:, 2] * (2.0 / 3.0) - 1.0]
    with jax.debug_key_reuse(False):
        one = jaxdp.run(
            CellSigns(epsilon=1.0, num_cells=2), jax.random.split(key(), 3)[2], jaxdp.Data(*scores, table[:, 0], spread)
        )
    assert float(scored.p_values[1, 2]) == pytest.approx(float(one.p_value), rel=1e-3)
    with pytest.raises(ValueError, match="must describe the 3 features"):
        jaxdp.all_pairs(jaxdp.ConditionalKendall(epsilon=3.0), key(), table, feature_columns=columns[:2])


def test_strata_of_z_count(monkeypatch):
    table, _ = features()
    z = np.arange(60) % 3
    result = jaxdp.all_pairs(SMALL["kendall"], key(), table, z, columns=(Column(CATEGORICAL, 3),))
    assert float(result.releases[0].sensitivity["u"].bound) == 3.0


def test_one_program_serves_all_pairs_of_one_kind(monkeypatch):
    traces = []

    @jaxdp.private_test
    class Counted(CellSigns):
        def statistic(self, key, data):
            traces.append(1)
            return super().statistic(key, data)

    table, z = features(40, 5)
    jaxdp.all_pairs(Counted(epsilon=1.0), key(), table, z)
    jaxdp.all_pairs(Counted(epsilon=2.0), key(1), table, z)
    assert len(traces) == 1


def test_under_jit_and_with_a_traced_budget():
    table, z = features()
    found = jax.jit(lambda e: jaxdp.all_pairs(CellSigns(epsilon=e, num_cells=5), key(), table, z))(0.7)
    plain = jaxdp.all_pairs(SMALL["own"], key(), table, z)
    np.testing.assert_allclose(found.p_values, plain.p_values, rtol=1e-4)
    assert float(found.cost.epsilon) == pytest.approx(0.7)
    bad = jax.jit(lambda e: jaxdp.all_pairs(CellSigns(epsilon=e), key(), table, z).p_values)(-1.0)
    assert np.all(np.isnan(bad))


@pytest.mark.parametrize("mechanism", [None, jaxdp.Gaussian(0.1)], ids=["laplace", "gaussian"])
def test_band_gcm_makes_one_release_of_all_pairs(mechanism):
    """Its matrix equals single pairs but for the noise, its bound is that of one pair times the number of pairs."""
    table, z = features(120)
    test = jaxdp.BandGCM(epsilon=None if mechanism else 0.7, mechanism=mechanism)
    result = jaxdp.all_pairs(test, key(), table, z)
    assert len(result.releases) == 1
    assert result.p_values.shape == (3, 3)
    one = jaxdp.core.specialize(test, jaxdp.Data(table[:, 0], table[:, 1], z)).sensitivity(120).bound
    assert float(result.releases[0].sensitivity.bound) == pytest.approx(
        float(one) * (3 if mechanism is None else 3**0.5)
    )
    sums = (
        jaxdp.AllPairs(test=test).specialize(jaxdp.Data(table, table, z)).statistic(key(), jaxdp.Data(table, table, z))
    )
    wanted = [
        float(jaxdp.core.specialize(test, data).statistic(None, data))
        for data in (jaxdp.Data(table[:, i], table[:, j], z) for i, j in ((0, 1), (0, 2), (1, 2)))
    ]
    np.testing.assert_allclose(sums, wanted, rtol=1e-5, atol=1e-4)


def test_tests_that_cannot_be_asked_are_refused_with_a_way_out():
    table, z = features()
    with pytest.raises(ValueError, match="use conditional-kendall"):
        jaxdp.all_pairs(jaxdp.UnitCircle(epsilon=1.0), key(), table)
    with pytest.raises(ValueError, match="cannot be divided over the pairs: give conditional-kendall epsilon="):
        jaxdp.all_pairs(jaxdp.ConditionalKendall(mechanism=object()), key(), table, z)
    with pytest.raises(ValueError, match="publishes a selection"):
        jaxdp.all_pairs(jaxdp.MICrTopPair(epsilon=1.0), key(), table)
    with pytest.raises(ValueError, match="takes any test"):
        jaxdp.AllPairs(test=jaxdp.ConditionalKendall(epsilon=1.0))
    with pytest.raises(TypeError, match="test must be a private test"):
        jaxdp.all_pairs(jaxdp.Laplace(1.0), key(), table)


@pytest.mark.full
def test_gaussian_budgets_are_divided_too():
    table, z = features()
    kendall = jaxdp.ConditionalKendall(mechanism=jaxdp.Gaussian(0.3), accept_coarse_cells=True)
    result = jaxdp.all_pairs(kendall, key(), table, z)
    assert result.cost.rho == pytest.approx(0.3, rel=2.0**-47)
    assert result.cost.rho <= 0.3
    assert jnp.isinf(result.cost.epsilon)
