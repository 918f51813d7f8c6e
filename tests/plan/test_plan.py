"""Planning: formulas against replicates of the real tests, and the laws that they are made of."""

import jax
import numpy as np
import pytest
from planned_columns import SCHEMA
from scipy import stats
from simulated_power import REPLICATES, simulated

import jaxdp
from jaxdp import plan
from jaxdp.accounting.renyi import zcdp_epsilon, zcdp_rho
from jaxdp.data.dataset import BINARY, Column
from jaxdp.data.schema import Schema
from jaxdp.plan import laws, solve
from jaxdp.plan.methods import plans
from jaxdp.plan.solve import PlannedTest
from jaxdp.statistics.tables.association import squared_correlation

# given Z the kernel fit of the vote's small blocks is biased, which the formula does not know (docs/planning.md)
FORMULAS = [name for name, row in plans().items() if row.formula is not None and name != "test-of-tests"]
MODEL_ERROR = 0.02  # of a formula, allowed on top of the binomial window


def agree(predicted, counted):
    low, high = (stats.binom.ppf(q, counted.replicates, counted.rate) / counted.replicates for q in (1e-6, 1 - 1e-6))
    assert low - MODEL_ERROR <= predicted <= high + MODEL_ERROR, (predicted, counted)


@pytest.mark.full
def test_the_planned_records_give_the_planned_power():
    n = plan.required_n("partition-gcm", epsilon=1.0, effect=0.25, power=0.8)
    counted = simulated("partition-gcm", n, 1.0, 0.25, replicates=4000)  # sd 0.0064
    assert abs(counted.rate - 0.8) <= 0.03
    assert plan.power("partition-gcm", n=n - 10, epsilon=1.0, effect=0.25) < 0.8


@pytest.mark.full
def test_a_variance_released_with_noise_of_its_own_size_is_planned_as_it_is_judged():
    planned = PlannedTest.of("partition-gcm", engine="formula")
    assert planned.power(38, 8.0, 0.0) < 0.03  # the p-value allows for that noise: level 0.015
    for effect in (0.0, 0.8):
        agree(planned.power(38, 8.0, effect), simulated("partition-gcm", 38, 8.0, effect, replicates=4000))


@pytest.mark.full
def test_formula_against_simulation():
    predicted = plan.power("conditional-kendall", n=300, epsilon=1.0, effect=0.25)
    assert 0.2 < predicted < 0.95  # neither near the level nor near one
    agree(predicted, simulated("conditional-kendall", 300, 1.0, 0.25))


@pytest.mark.full
@pytest.mark.parametrize(
    ("method", "n", "epsilon", "given", "effect"),
    [
        ("linear-regression", 1000, 4.0, 1, 0.24),
        ("linear-regression", 3000, 1.0, 0, 0.14),
        ("linear-regression", 5000, 4.0, 3, 0.06),
        ("partial-correlation", 3000, 4.0, 2, 0.09),
        ("partial-correlation", 20_000, 1.0, 3, 0.043),
        ("winsorised-partial-correlation", 1000, 4.0, 1, 0.097),
        ("winsorised-partial-correlation", 5000, 4.0, 3, 0.044),
    ],
)
@pytest.mark.optimised
def test_linear_tests_are_planned_with_the_noise_of_z(method, n, epsilon, given, effect):
    """Their p-values widen for a variance that the noise hides, and what Z explains leaves less of X and Y."""
    lines = plan.Setting(z=(Column(),) * given, scaled=True, bent=False)
    predicted = plan.power(method, n=n, epsilon=epsilon, effect=effect, setting=lines)
    agree(predicted, simulated(method, n, epsilon, effect, lines))


@pytest.mark.full
@pytest.mark.parametrize(("n", "epsilon", "effect"), [(300, 1.0, 0.4), (200, 1.0, 0.6), (1000, 0.5, 0.2)])
def test_two_means_are_planned_with_the_noise_in_the_size_of_the_groups(n, epsilon, effect):
    """That noise stretches the range of the scores, and its product with that in the mean adds to their spread."""
    two_groups = plan.Setting(x=Column(BINARY, 2), z=(), scaled=True)
    predicted = plan.power("mean-difference", n=n, epsilon=epsilon, effect=effect, setting=two_groups)
    counted = simulated("mean-difference", n, epsilon, effect, two_groups, replicates=4000)
    assert abs(predicted - counted.rate) <= 0.03  # sd of the count 0.008


@pytest.mark.nightly
@pytest.mark.parametrize("method", FORMULAS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_every_formula_against_simulation(method, epsilon):
    effect = 0.6 if "gcm-paper" in method or method == "private-gcm" else 0.3
    n = plan.required_n(method, epsilon=epsilon, effect=effect)
    if n > 20_000 or (method.startswith("private-gcm") and n > 2000):
        pytest.skip("too many records to simulate")
    # the checker takes a scan inside vmap for a second use of its key
    with jax.debug_key_reuse(method not in ("noisy-table", "projected-chi2", "subsample-aggregate", "test-of-tests")):
        counted = simulated(method, n, epsilon, effect, replicates=1000)
    # above 0.8 where the test's smallest n is more than enough
    agree(plan.power(method, n=n, epsilon=epsilon, effect=effect), counted)


@pytest.mark.full
def test_gaussian_noise_is_planned_for_epsilon_and_delta():
    rho = zcdp_rho(1.0, 1e-6)
    assert zcdp_epsilon(rho, 1e-6) <= 1.0 < zcdp_epsilon(1.001 * rho, 1e-6)
    n = plan.required_n("partition-gcm", epsilon=1.0, effect=0.3, delta=1e-6)
    assert n > plan.required_n("partition-gcm", epsilon=1.0, effect=0.3)  # one number gains nothing from delta
    planned = PlannedTest.of(
        "partition-gcm", engine="simulation", replicates=REPLICATES, key=jax.random.key(3), delta=1e-6
    )
    agree(0.8, planned.simulated(n, 1.0, 0.3))
    row = plan.answer("partition-gcm", n=n, epsilon=1.0, effect=0.3, delta=1e-6)
    assert (row.delta, row.rho) == (1e-6, rho)
    with pytest.raises(ValueError, match="no Gaussian form"):
        plan.power("local-permutation", n=100, epsilon=1.0, effect=0.3, delta=1e-6)


@pytest.mark.nightly
def test_the_vote_without_z_against_simulation():
    lines = plan.Setting(z=(), scaled=True)
    n = plan.required_n("test-of-tests", epsilon=2.0, effect=0.3, setting=lines)
    with jax.debug_key_reuse(False):
        counted = simulated("test-of-tests", n, 2.0, 0.3, lines, replicates=1000)
    agree(plan.power("test-of-tests", n=n, epsilon=2.0, effect=0.3, setting=lines), counted)


@pytest.mark.nightly
@pytest.mark.parametrize("method", [name for name, row in plans().items() if row.has_formula(row.setting, 1e-6)])
def test_every_gaussian_formula_against_simulation(method):
    effect = 0.8 if method.startswith("private-gcm") else 0.3
    n = plan.required_n(method, epsilon=4.0, effect=effect, delta=1e-6)
    if n > 20_000 or (method.startswith("private-gcm") and n > 2000):
        pytest.skip("too many records to simulate")
    planned = PlannedTest.of(method, engine="simulation", replicates=REPLICATES, key=jax.random.key(3), delta=1e-6)
    agree(plan.power(method, n=n, epsilon=4.0, effect=effect, delta=1e-6), planned.simulated(n, 4.0, effect))


@pytest.mark.nightly
@pytest.mark.parametrize("method", [name for name, row in plans().items() if row.formula is None])
def test_tests_without_a_formula_are_simulated(method):
    low, high = (plan.power(method, n=60, epsilon=4.0, effect=effect, replicates=100) for effect in (0.1, 2.0))
    assert high > low + 0.2


@pytest.mark.full
def test_a_schema_is_planned_as_the_command_line_tests_it():
    schema = Schema.from_dict(SCHEMA)
    setting = plan.Setting.of_schema(schema, "dose", "response", ["age"])
    n = plan.required_n("partition-gcm", epsilon=1.0, effect=0.25, setting=setting)
    agree(0.8, simulated("partition-gcm", n, 1.0, 0.25, setting))
    coarse = plan.Setting.of_schema(schema, "grade", "smoker", ["town"])
    agree(
        plan.power("conditional-kendall", n=700, epsilon=1.0, effect=0.25, setting=coarse),
        simulated("conditional-kendall", 700, 1.0, 0.25, coarse),
    )


def test_a_linear_test_that_is_named_is_planned_for_means_linear_in_z():
    """A sine in Z is what it can not remove: power there was false alarms."""
    bent, other = plan.Setting(scaled=True), plans()["band-gcm"]
    linear = plans()["winsorised-partial-correlation"].granted(bent)
    assert not linear.bent
    assert other.granted(bent) == bent
    place = np.linspace(0.0, 1.0, 1001)
    assert np.allclose(np.diff(linear.mean_at(place, np), 2), 0.0)
    assert np.var(linear.mean_at(place, np)) == pytest.approx(np.var(bent.mean_at(place, np)), rel=0.01)
    assert plans()["winsorised-partial-correlation"].rests_on_lines(linear)
    assert not other.rests_on_lines(linear)


def test_the_non_private_reference_is_the_textbook_formula():
    effect, n = 0.25, 142
    rho = effect / np.hypot(1.0, effect)
    expected = stats.norm.sf(1.959964 - np.sqrt(n) * rho / np.sqrt(1.0 + rho**2))
    planned = PlannedTest.of("partition-gcm", engine="formula")
    assert planned.reference(n, effect) == pytest.approx(expected, abs=1e-4)


def test_winsorised_moments_against_draws():
    random = np.random.default_rng(0)
    u, v = random.standard_normal((2, 400_000))
    x, y = np.clip((0.4 + u) / 0.7, -1, 1), np.clip((-0.3 + 0.5 * u + v) / 0.9, -1, 1)
    found = laws.winsorised_moments([0.4], [-0.3], 0.5, 0.7, 0.9)
    assert found["covariance"][0] == pytest.approx(np.cov(x, y)[0, 1], abs=4e-3)
    assert found["var_y"][0] == pytest.approx(y.var(), abs=4e-3)
    centred = (x - x.mean()) * (y - y.mean())
    assert found["product_variance"][0] == pytest.approx(centred.var(), abs=4e-3)


def test_the_normal_table_and_the_vote():
    table = laws.normal_table(2, 2, 0.5)
    assert table[0, 0] == pytest.approx(0.25 + np.arcsin(0.5) / (2 * np.pi), abs=1e-4)
    assert laws.normal_table(3, 4, 0.3).sum() == pytest.approx(1.0)
    assert laws.vote_power(15, 0.15, 0.15, 1.0, 0.05) == pytest.approx(0.05, abs=1e-9)


@pytest.mark.full
def test_heavy_tails_have_the_planned_sd():
    draw = jax.jit(plan.Setting(z=(), scaled=True, tails=5.0, residual_sd=0.01).design(200_000, 0.0))
    x = np.asarray(draw(jax.random.key(0)).x) / 0.01
    assert np.std(x) == pytest.approx(1.0, abs=0.03)
    assert stats.kurtosis(x) > 2.0
    with pytest.raises(ValueError, match="tails"):
        plan.Setting(tails=1.5)


def test_the_correlation_of_a_small_block_is_the_square_of_a_normal_deviate():
    """Its quantiles in blocks of ten normal pairs are those of chi-squared with one degree of freedom."""
    draws = jax.random.normal(jax.random.key(0), (2, 40_000, 10))
    values = np.asarray(jax.jit(jax.vmap(lambda x, y: squared_correlation(jaxdp.Data(x, y))))(*draws))
    for place in (0.25, 0.5, 0.75, 0.95):
        window = 5.0 * np.sqrt(place * (1.0 - place) / values.size)
        assert np.mean(values <= stats.chi2.ppf(place, 1)) == pytest.approx(place, abs=window)
    plain = 10.0 * np.asarray([np.corrcoef(x, y)[0, 1] ** 2 for x, y in zip(*np.asarray(draws)[:, :4000], strict=True)])
    assert np.mean(plain <= stats.chi2.ppf(0.5, 1)) < 0.45


@pytest.mark.parametrize("first", [30_000, 45_000, 50_000])
def test_a_search_by_simulation_tries_the_largest_number_before_it_gives_up(first):
    """Doubling from 50 passes 25 600 and would go on at 51 200."""
    found = solve._smallest_simulated(lambda n, *_: 0.05 if n < first else 0.95, 0.8, 50, 50_000)
    assert first <= found <= 50_000
    assert solve._smallest_simulated(lambda n, *_: 0.05, 0.8, 50, 50_000) is None
