"""Unit circle mechanism: the identity, exact lattice sensitivities, true epsilons, exact size and power."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, chi2, laplace

import jaxdp
from jaxdp.independence.tables.chi2_laplace import ChiSquaredLaplace, DistanceScore
from jaxdp.independence.tables.margin_adaptive import largest_step
from jaxdp.independence.tables.unit_circle import UnitCircle, rate_interval
from jaxdp.mechanisms import Laplace
from jaxdp.noise import survival as tail
from jaxdp.published import PaperUnitCircle
from jaxdp.statistics.tables import binomial, unit_circle
from jaxdp.statistics.tables.taxicab import distance, flip_score
from jaxdp.statistics.tables.unit_circle import Groups

# 56 pairs of group sizes: equal, unequal, lopsided.
PAIRS = [Groups(a, b) for a, b in itertools.product((13, 20, 25, 31, 50, 77, 90), (12, 16, 21, 30, 40, 49, 64, 100))]


def lattice(groups):
    cases, controls = (np.arange(size + 1.0) for size in groups)
    return cases[:, None], controls[None, :]


def on_lattice(function, groups):
    """function(c11, c10) on all tables, evaluated on one shape for all groups (one compilation)."""
    corner = np.arange(101.0)
    return np.asarray(function(corner[:, None], corner[None, :]))[: groups.cases + 1, : groups.controls + 1]


def largest_change(table):
    return max(np.abs(np.diff(table, axis=axis)).max() for axis in (0, 1))


def integer_chi_squared(groups):
    """Chi-squared from whole numbers: N (c11 N0 - c10 N1)^2/(N1 N0 M1 M0)."""
    c11, c10 = (np.arange(size + 1, dtype=np.int64) for size in groups)
    c11, c10 = c11[:, None], c10[None, :]
    exposed = c11 + c10
    top = groups.total * (c11 * groups.controls - c10 * groups.cases) ** 2
    below = groups.cases * groups.controls * exposed * (groups.total - exposed)
    return np.where(below > 0, top / np.maximum(below, 1), 0.0)


def exact_power(test, critical, rate_cases, rate_controls):
    """P(score + Laplace > critical) summed over all tables."""
    cases, controls = (np.arange(size + 1) for size in test.groups)
    scale = float(test.mechanism_in_force().scale(test.sensitivity(test.groups.total)))
    score = np.asarray(test.score(jnp.asarray(cases, float)[:, None], jnp.asarray(controls, float)[None, :]))
    beyond = laplace.sf(float(critical) - score, scale=scale)
    return (
        binom.pmf(cases, test.groups.cases, rate_cases)
        @ beyond
        @ binom.pmf(controls, test.groups.controls, rate_controls)
    )


def rows(cases, controls, groups):
    """Data with these counts."""
    x = np.zeros(groups.total)
    x[:cases] = 1.0
    x[groups.cases : groups.cases + controls] = 1.0
    return jaxdp.Data(jnp.asarray(x), jnp.concatenate([jnp.ones(groups.cases), jnp.zeros(groups.controls)]))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("level", [0.05, 1e-3])
def test_norm_exceeds_one_exactly_where_chi_squared_exceeds_its_quantile(level):
    threshold = chi2.isf(level, 1)
    for groups in PAIRS:
        reference = integer_chi_squared(groups)
        norm = on_lattice(functools.partial(unit_circle.norm, groups=groups, threshold=threshold), groups)
        assert np.array_equal(norm > 1.0, reference > threshold), groups
        ours = on_lattice(functools.partial(unit_circle.chi_squared, groups=groups), groups)
        np.testing.assert_allclose(ours, reference, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_norm_equals_the_published_eigenvector_form():
    """|V(c)| with A, B, C, D, R of the paper: the quadratic form of the centred table over R."""
    rng = np.random.default_rng(0)
    for groups in PAIRS[::5]:
        n1, n0, n, threshold = groups.cases, groups.controls, groups.total, chi2.isf(0.05, 1)
        a = n0**2 * n + threshold * n1 * n0
        b = n1**2 * n + threshold * n1 * n0
        c = n1 * n0 * (threshold - n)
        radius = threshold * n1 * n0 * n**2 / 4
        values, vectors = np.linalg.eigh(np.array([[a, c], [c, b]]))
        counts = np.stack([rng.integers(0, n1 + 1, 40), rng.integers(0, n0 + 1, 40)], 1).astype(float)
        mapped = np.sqrt(values / radius) * ((counts - [n1 / 2, n0 / 2]) @ vectors)
        ours = unit_circle.norm(counts[:, 0], counts[:, 1], groups, threshold)
        np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), ours, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_declared_sensitivities_are_reached_on_the_lattice_and_never_passed():
    for groups, level in itertools.product(PAIRS, (0.05, 1e-3)):
        threshold = chi2.isf(level, 1)
        norm = on_lattice(functools.partial(unit_circle.norm, groups=groups, threshold=threshold), groups)
        ratio = largest_change(norm) / unit_circle.norm_sensitivity(groups, threshold)
        assert 0.99 <= ratio <= 1.0 + 1e-12, (groups, level, ratio)  # a constant cut by a tenth is passed
        statistic = on_lattice(functools.partial(unit_circle.chi_squared, groups=groups), groups)
        ratio = largest_change(statistic) / unit_circle.chi_squared_sensitivity(groups)
        assert 0.99 <= ratio <= 1.0 + 1e-12, (groups, ratio)


def test_paper_constant_is_looser_by_root_two_at_equal_groups():
    for groups, factor in ((Groups(300, 300), np.sqrt(2)), (Groups(100, 400), 1.03)):
        threshold = chi2.isf(0.05, 1)
        ratio = unit_circle.paper_sensitivity(groups, threshold) / unit_circle.norm_sensitivity(groups, threshold)
        assert ratio == pytest.approx(factor, abs=0.01)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", [UnitCircle, ChiSquaredLaplace, DistanceScore, jaxdp.MarginAdaptive])
def test_neighbouring_data_move_the_statistic_by_the_bound_at_most(kind):
    groups = Groups(9, 14)
    tables = list(itertools.product(range(groups.cases + 1), range(groups.controls + 1)))
    data = [rows(*table, groups) for table in tables]
    test = kind(epsilon=1.0).specialize(data[0])
    values = jax.vmap(lambda x: test.statistic(None, jaxdp.Data(x, data[0].y)))(jnp.stack([d.x for d in data]))
    found = largest_change(np.asarray(values).reshape(groups.cases + 1, groups.controls + 1))
    bound = float(test.sensitivity(groups.total).bound)
    assert 0.99 * bound <= found <= bound * (1 + 1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("groups", "epsilon"), [(Groups(300, 300), 0.1), pytest.param(Groups(60, 240), 1.0, marks=pytest.mark.nightly)]
)
def test_exact_size_for_every_null_rate(groups, epsilon):
    """Rates between those that the calibration looks at, on both sides of 1/2."""
    between = np.concatenate([[0.0, 1.0], np.geomspace(1e-4, 0.5, 97), 1.0 - np.geomspace(1e-3, 0.5, 41)])
    for kind in (UnitCircle, ChiSquaredLaplace):
        test = kind(epsilon=epsilon, num_cases=groups.cases, num_controls=groups.controls)
        critical = test.critical_value()
        size = max(exact_power(test, critical, p, p) for p in between)
        assert 0.0499 <= size <= 0.05 + 1e-6, (kind, size)


@pytest.mark.usefixtures("x64")
def test_power_is_that_of_the_table():
    for epsilon, far, rare in ((0.1, 0.456, 0.153), (0.3, 0.855, 0.599)):
        test = UnitCircle(epsilon=epsilon, num_cases=300, num_controls=300)
        critical = test.critical_value()
        assert exact_power(test, critical, 0.65, 0.5) == pytest.approx(far, abs=0.02)
        assert exact_power(test, critical, 0.14, 0.05) == pytest.approx(rare, abs=0.02)


@pytest.mark.full
@pytest.mark.usefixtures("x64")
def test_p_value_and_critical_value_agree():
    test = UnitCircle(epsilon=0.5, num_cases=40, num_controls=60)
    sensitivity = test.sensitivity(100)
    for level in (0.05,):
        critical = test.critical_value(level)
        assert float(test.null_tail(critical, sensitivity)) == pytest.approx(level, rel=1e-6)
    values = jnp.array([1.0, 1.5, 2.0])
    many = test.null_tail(values, sensitivity)
    assert np.allclose(many, [test.null_tail(v, sensitivity) for v in values])


def test_single_precision_null_law_is_close_to_double():
    groups = {"num_cases": 1500, "num_controls": 1700}  # thinned windows, not the whole lattice
    values = np.array([1.0, 1.02, 1.05, 1.1])
    with jax.enable_x64(True):
        test = UnitCircle(epsilon=1.0, **groups)
        double = np.asarray(test.null_tail(values, test.sensitivity(3200)))
    single = np.asarray(test.null_tail(values, test.sensitivity(3200)))
    np.testing.assert_allclose(single, double, rtol=2e-4)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("groups", [pytest.param(Groups(1100, 1300), marks=pytest.mark.nightly), Groups(2500, 90)])
@pytest.mark.full
def test_thinned_windows_equal_the_whole_lattice(groups, monkeypatch):
    """The larger group's window has a stride of 2 at these sizes; noise of scale one step, as at epsilon 1."""
    threshold = chi2.isf(0.05, 1)
    scale = unit_circle.norm_sensitivity(groups, threshold)
    statistic = functools.partial(unit_circle.norm, groups=groups, threshold=threshold)
    survival = functools.partial(tail.laplace, scale=scale)
    rates = np.array([0.0, 0.002, 0.02, 0.3])
    value = 1.0 + 2.0 * scale
    whole = np.asarray(binomial.tail(statistic, survival, value, groups, rates))
    monkeypatch.setattr(binomial, "WHOLE_LATTICE", 0)
    np.testing.assert_allclose(np.asarray(binomial.tail(statistic, survival, value, groups, rates)), whole, rtol=2e-4)
    counts, _ = binomial.window(max(groups), 0.3, binomial.NODES)
    assert counts[1] - counts[0] > 1


@pytest.mark.full
@pytest.mark.usefixtures("x64")
def test_binomial_probabilities_equal_scipy():
    for trials, rate in itertools.product((10, 5000), (0.0, 1e-4, 0.3, 1.0)):
        count = jnp.arange(trials + 1)
        np.testing.assert_allclose(
            binomial.probabilities(trials, rate, count), binom.pmf(np.arange(trials + 1), trials, rate), atol=1e-11
        )


@pytest.mark.usefixtures("x64")
def test_paper_variant_carries_the_epsilon_that_is_true_for_it():
    """Enumerated loss of its decision stays below the reported epsilon; with the tight noise it would pass."""
    for groups, epsilon in ((Groups(20, 80), 1.0),):
        test = PaperUnitCircle(epsilon=epsilon, num_cases=groups.cases, num_controls=groups.controls)
        test = test.prepared()
        scale = float(test.mechanism_in_force().scale(test.sensitivity(groups.total)))
        assert scale == pytest.approx(unit_circle.paper_sensitivity(groups, test.threshold) / epsilon, rel=1e-9)
        score = np.asarray(test.score(*lattice(groups)))
        true = float(test.mechanism_in_force().epsilon)
        losses = [np.abs(np.diff(bit, axis=axis)).max() for bit in decisions(score, scale) for axis in (0, 1)]
        assert 0.9 * true <= max(losses) <= true * (1 + 1e-9)


def decisions(score, scale):
    return laplace.logsf(-score, scale=scale), laplace.logcdf(-score, scale=scale)


@pytest.mark.usefixtures("x64")
def test_margin_threshold_with_tight_noise_exceeds_its_epsilon():
    """The exhibit against "M1 is public": loss 1.053 epsilon at N1 = N0 = 50, epsilon 0.1."""
    from jaxdp.published.unit_circle import margin_thresholds

    groups, threshold, epsilon = Groups(50, 50), chi2.isf(0.05, 1), 0.1
    scale = unit_circle.norm_sensitivity(groups, threshold) / epsilon
    cases, controls = lattice(groups)
    table = np.asarray(margin_thresholds(groups, scale, 0.05, threshold))
    score = np.asarray(unit_circle.norm(cases, controls, groups, threshold)) - table[(cases + controls).astype(int)]
    loss = max(np.abs(np.diff(bit, axis=axis)).max() for bit in decisions(score, scale) for axis in (0, 1))
    assert loss / epsilon == pytest.approx(1.053, abs=0.005)


@pytest.mark.usefixtures("x64")
def test_margin_thresholds_agree_with_monte_carlo():
    from jaxdp.published.unit_circle import margin_thresholds

    groups, threshold, draws = Groups(120, 80), chi2.isf(0.05, 1), 400_000
    scale = unit_circle.norm_sensitivity(groups, threshold)
    table = np.asarray(margin_thresholds(groups, scale, 0.05, threshold))
    assert table.shape == (201,)
    rng = np.random.default_rng(1)
    for margin in (0, 7, 100, 160):
        c11, c10 = rng.binomial(groups.cases, margin / 200, draws), rng.binomial(groups.controls, margin / 200, draws)
        null = np.asarray(unit_circle.norm(c11, c10, groups, threshold)) + rng.laplace(scale=scale, size=draws)
        assert binom.ppf(1e-6, draws, 0.05) <= np.sum(null > table[margin]) <= binom.isf(1e-6, draws, 0.05)


@pytest.mark.usefixtures("x64")
def test_gamma_error_bounds_the_measured_error():
    groups, epsilon, critical = Groups(60, 80), 0.5, 1.2
    threshold = chi2.isf(0.05, 1)
    scale = unit_circle.norm_sensitivity(groups, threshold) / epsilon
    cases, controls = lattice(groups)
    statistic = integer_chi_squared(groups)
    norm = np.asarray(unit_circle.norm(cases, controls, groups, threshold))
    accept = laplace.cdf(critical - norm, scale=scale)
    for gamma in (0.0, 2.0, 10.0):
        bound = np.asarray(unit_circle.gamma_error(gamma, cases + controls, groups, threshold, critical, scale))
        beyond = statistic > threshold + gamma
        assert np.all(accept[beyond] <= bound[beyond] * (1 + 1e-9))
        assert np.max(accept[beyond] / bound[beyond]) > 0.9
        paper = unit_circle.gamma_error(gamma, 30.0, groups, threshold, 1.0, scale)
        spread = 4 * gamma * 30 * 110 / (threshold * 140**2)
        assert float(paper) == pytest.approx(0.5 * np.exp((1 - np.sqrt(1 + spread)) / scale))


def test_distance_score_equals_brute_force_and_is_lipschitz():
    rng = np.random.default_rng(2)
    members = rng.random((9, 13)) < 0.15
    place = np.argwhere(members)
    grid = np.argwhere(np.ones_like(members)).reshape(9, 13, 2)
    expected = np.abs(grid[:, :, None, :] - place[None, None]).sum(-1).min(-1)
    assert np.array_equal(np.asarray(distance(jnp.asarray(members))), expected)
    score = np.asarray(flip_score(jnp.asarray(members)))
    assert float(largest_step(jnp.asarray(score))) == 1.0
    assert np.array_equal(score > 0, members)


def test_estimated_null_keeps_its_level_and_its_budget():
    groups = Groups(80, 80)
    test = UnitCircle(epsilon=1.0, num_cases=80, num_controls=80, null="estimated")

    def one(key):
        key_cases, key_controls, key_run = jax.random.split(key, 3)
        x = jnp.concatenate(
            [jax.random.bernoulli(key_cases, 0.3, (80,)), jax.random.bernoulli(key_controls, 0.3, (80,))]
        )
        y = jnp.concatenate([jnp.ones(80), jnp.zeros(80)])
        result = jaxdp.run(test, key_run, jaxdp.Data(x.astype(float), y))
        return result.p_value

    keys = jax.random.split(jax.random.key(3), 400)
    p_values = np.asarray(jax.jit(lambda k: jax.lax.map(one, k, batch_size=20))(keys))
    for level in (0.05, 0.1, 0.3):
        assert np.sum(p_values <= level) <= binom.ppf(1 - 1e-6, 400, level)
    assert np.min(p_values) < 0.1  # not merely 1
    # the miss probability of the margin's interval is no floor of the p-value
    strong = jaxdp.run(test, jax.random.key(4), rows(76, 4, groups))
    assert 9e-13 <= float(strong.p_value) < 1e-6
    result = jaxdp.run(test, jax.random.key(4), rows(60, 10, groups))
    assert float(result.p_value) < 0.01
    assert float(result.cost.epsilon) == pytest.approx(1.0)
    assert set(result.release.value) == {"norm", "margin"}


@pytest.mark.usefixtures("x64")
def test_rate_interval_covers():
    """Exact coverage over M1 ~ Binomial(N, p) with the noise on a fine grid."""
    total, miss, mechanism = 200, 0.01, Laplace(0.5)
    sensitivity = jaxdp.core.Sensitivity(1.0, jaxdp.core.Norm.L1, jaxdp.Relation.REPLACE_ATTRIBUTE)
    noise = laplace.ppf(np.linspace(0.0005, 0.9995, 999), scale=2.0)
    margins = np.arange(total + 1)
    low, high = rate_interval(jnp.asarray(margins[:, None] + noise[None]), total, mechanism, sensitivity, miss)
    for rate in (0.01, 0.2, 0.5):
        covered = np.mean((np.asarray(low) <= rate) & (rate <= np.asarray(high)), axis=1)
        assert binom.pmf(margins, total, rate) @ covered >= 1 - miss - 1e-3
    assert float(jnp.max(high - low)) < 0.4


@pytest.mark.full
def test_public_rate_is_sharper_than_the_supremum():
    release = jaxdp.release(UnitCircle(epsilon=0.1), jax.random.key(5), rows(200, 100, Groups(300, 300)))
    named = {"num_cases": 300, "num_controls": 300}
    sharp = UnitCircle(epsilon=0.1, null="public", rate=0.5, **named).p_value(None, release)
    safe = UnitCircle(epsilon=0.1, **named).p_value(None, release)
    assert 0.0 < float(sharp) < float(safe) < 1.0


def test_groups_come_from_y_and_mistakes_are_named():
    groups = Groups(30, 20)
    data = rows(10, 5, groups)
    assert UnitCircle(epsilon=1.0).specialize(data).groups == groups
    with pytest.raises(ValueError, match=r"say \(20, 30\), y says \(30, 20\)"):
        jaxdp.run(UnitCircle(epsilon=1.0, num_cases=20, num_controls=30), jax.random.key(0), data)
    with pytest.raises(ValueError, match="inside jit unit-circle needs num_cases"):
        jax.jit(lambda d: jaxdp.run(UnitCircle(epsilon=1.0), jax.random.key(0), d).p_value)(data)
    with pytest.raises(ValueError, match="go together"):
        UnitCircle(epsilon=1.0, num_cases=3)
    with pytest.raises(ValueError, match="at least one case"):
        UnitCircle(epsilon=1.0).specialize(jaxdp.Data(data.x, jnp.zeros(50)))
    with pytest.raises(ValueError, match="no conditional form"):
        UnitCircle(epsilon=1.0).specialize(jaxdp.Data(data.x, data.y, data.x))
    with pytest.raises(ValueError, match="rate is the public null rate"):
        UnitCircle(epsilon=1.0, null="public")
    with pytest.raises(ValueError, match="takes epsilon= alone"):
        PaperUnitCircle(mechanism=Laplace(1.0))
    with pytest.raises(ValueError, match="level must be"):
        UnitCircle(epsilon=1.0, level=0.7)


def test_missing_and_wild_values_count_as_unexposed_or_exposed():
    groups = Groups(30, 20)
    data = rows(10, 5, groups)
    test = UnitCircle(epsilon=1.0).specialize(data)
    wild = jaxdp.Data(data.x.at[0].set(jnp.nan).at[1].set(jnp.inf).at[31].set(-7.0), data.y)
    assert [float(c) for c in test.counts(wild)] == [9.0, 4.0]
