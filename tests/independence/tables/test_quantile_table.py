"""QuantileTable: sensitivity of its cuts, level where cuts collide, what it sees; how `--sees` chooses tests."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, spearmanr

import jaxdp
from jaxdp import catalogue, null_laws
from jaxdp.ask import calls
from jaxdp.data import Column, Data, Domain
from jaxdp.independence.tables import noisy_table, quantile_table
from jaxdp.spec import ANY, KINDS_OF_ALTERNATIVES
from jaxdp.statistics import partition
from jaxdp.statistics.tables import noisy_table_statistics, quantile_bins

PLAIN = Domain((Column(),), (Column(),))
CODED = Domain((Column("categorical", 4),), (Column(),))


def dependent(key, n, kind=0.0):
    """Columns on [-1, 1]: 0 independent, 1 a parabola, 2 a circle, 3 a product, 4 one spread, 5 half of x constant."""
    key_x, key_e, key_u = jax.random.split(key, 3)
    x, e = jax.random.normal(key_x, (n,)), jax.random.normal(key_e, (n,))
    turn = 2 * jnp.pi * jax.random.uniform(key_u, (n,))
    circle = 1.4 * jnp.cos(turn) + 0.2 * x, 1.4 * jnp.sin(turn) + 0.2 * e
    xs = jnp.stack([x, x, circle[0], x, x, jnp.where(turn < jnp.pi, 0.0, x)])
    ys = jnp.stack([e, 0.57 * x**2 + e, circle[1], x * e, jnp.exp(x / 2) * e, e])
    which = jnp.asarray(kind, int)
    return Data(jnp.clip(xs[which] / 4, -1, 1), jnp.clip(ys[which] / 4, -1, 1), None, PLAIN)


def test_one_value_moves_a_score_by_one_and_never_more():
    generator = np.random.default_rng(0)
    largest = 0.0
    for _ in range(200):
        values = generator.choice(np.linspace(-1.2, 1.2, 9), size=7)
        other = values.copy()
        other[0] = generator.choice([-1.2, 1.2, np.nan, 0.3])
        steps = [quantile_bins.steps(column, partition.Uniform()) for column in (values, other)]
        scores = [quantile_bins.quantile_scores(column, 3) for column in steps]
        largest = max(largest, float(jnp.max(jnp.abs(scores[0] - scores[1]))))
    assert largest == quantile_table.SCORE_MOVE


def test_cuts_are_quantiles_and_bins_follow_them():
    values = np.linspace(-0.9, 0.9, 90)
    steps = quantile_bins.steps(values, partition.Uniform())
    cuts = jnp.argmax(quantile_bins.quantile_scores(steps, 3), axis=1) + 1
    counts = np.bincount(np.asarray(quantile_bins.bins(steps, cuts)), minlength=3)
    assert counts.tolist() == [30, 30, 30]


def test_multinomial_counts_have_their_total_means_and_variances():
    chances = jnp.array([0.5, 0.25, 0.0, 0.25])
    counts = np.asarray(noisy_table.multinomial_by_binomials(jax.random.key(0), 40, chances, 20_000))
    assert (counts.sum(axis=1) == 40).all()
    assert (counts[:, 2] == 0).all()
    np.testing.assert_allclose(counts.mean(axis=0), 40 * chances, atol=5 * np.sqrt(10 / 20_000))
    np.testing.assert_allclose(counts.var(axis=0), 40 * chances * (1 - chances), rtol=0.06)


def test_smallest_rank_is_exact_for_exchangeable_draws():
    values = jax.random.normal(jax.random.key(1), (2000, 2, 20))
    found = np.asarray(jax.vmap(null_laws.smallest_rank)(values))
    hits = int((found <= 0.1).sum())
    assert binom.ppf(1e-6, 2000, 0.1) <= hits <= binom.ppf(1 - 1e-6, 2000, 0.1)
    assert np.isnan(null_laws.smallest_rank(values[0].at[0, 3].set(jnp.nan)))


def rejections(kind, replicates, n=1000, epsilon=0.5):
    test = jaxdp.QuantileTable(epsilon=epsilon, num_bins=3, num_null=199)
    design = functools.partial(dependent, n=n, kind=float(kind))
    return jaxdp.power.rejection_rate(test, design, jax.random.key(7), replicates).rejections


@pytest.mark.optimised
@pytest.mark.full
def test_level_where_cuts_collide():
    """At most a binomial window above 0.06, the level that the theory page promises for columns with ties."""
    assert rejections(5, 1000) <= binom.ppf(1 - 1e-4, 1000, 0.06)


@pytest.mark.optimised
@pytest.mark.full
def test_a_floor_on_the_margins_would_break_the_level(monkeypatch):
    def floored(sums):
        kept = jnp.maximum(sums, 0.125 / sums.shape[-1] * jnp.sum(sums, axis=-1, keepdims=True))
        return kept / jnp.sum(kept, axis=-1, keepdims=True)

    monkeypatch.setattr(noisy_table_statistics, "nearest_shares", floored)
    monkeypatch.setattr(quantile_table, "chi_squared", cut_off)  # where the margins are what is expected
    jax.clear_caches()
    design = functools.partial(with_an_empty_level, n=1000)
    test = jaxdp.QuantileTable(epsilon=0.5, num_null=199)
    found = jaxdp.power.rejection_rate(test, design, jax.random.key(7), 1000).rejections
    monkeypatch.undo()
    jax.clear_caches()
    bound = binom.ppf(1 - 1e-4, 1000, 0.06)
    assert found > bound
    assert jaxdp.power.rejection_rate(test, design, jax.random.key(7), 1000).rejections <= bound


@pytest.mark.optimised
@pytest.mark.full
def test_level_where_most_levels_are_held_by_nobody(monkeypatch):
    """As where texts of few levels are hashed. With margins that are cut off at 0 in what is expected, it was .09."""
    test = jaxdp.QuantileTable(epsilon=1.0, num_null=199)
    bound = binom.ppf(1 - 1e-4, 2000, 0.055)
    design = functools.partial(with_many_empty_levels, n=500)
    assert jaxdp.power.rejection_rate(test, design, jax.random.key(8), 2000).rejections <= bound
    monkeypatch.setattr(noisy_table_statistics, "nearest_shares", noisy_table_statistics.shares)
    monkeypatch.setattr(quantile_table, "chi_squared", cut_off)
    jax.clear_caches()
    assert jaxdp.power.rejection_rate(test, design, jax.random.key(8), 2000).rejections > bound
    monkeypatch.undo()
    jax.clear_caches()


@pytest.mark.full
@pytest.mark.parametrize("ordered", [False, True])
def test_level_where_many_levels_are_rare(ordered, monkeypatch):
    """Margins cut off at 0 and divided by their sum made the null too flat: .39 were rejected, .33 of ordered ones."""
    bound = binom.ppf(1 - 1e-4, 100, 0.055)
    assert rejected_of_rare_levels(ordered, 100) <= bound
    monkeypatch.setattr(noisy_table_statistics, "nearest_shares", noisy_table_statistics.shares)
    assert rejected_of_rare_levels(ordered, 100) > bound


def rejected_of_rare_levels(ordered, replicates, n=500.0, scale=2.0, draws=99):
    """True nulls with p <= .05, of 30 x 30 levels with shares in proportion to 1/k^2; NumPy draws the null tables."""

    def p_value(tables):
        statistics = noisy_table_statistics.chi_squared(tables, n, 2 * scale**2)[None]
        if ordered:
            found = noisy_table_statistics.rank_correlation(tables, n, 2 * scale**2)
            statistics = jnp.concatenate([found.size[None], statistics])
        return null_laws.smallest_rank(statistics)

    def null_law(table):
        _, rows, columns = noisy_table_statistics.fitted_margins(table, n)
        return jnp.ravel(rows[:, None] * columns[None, :])

    generator = np.random.default_rng(9)
    shares = 1.0 / np.arange(1.0, 31.0) ** 2
    law = np.outer(shares, shares).ravel() / shares.sum() ** 2
    null_law, p_value, count = jax.jit(null_law), jax.jit(p_value), 0
    for _ in range(replicates):
        noise = generator.laplace(0.0, scale, (1 + draws, 30, 30))
        table = generator.multinomial(int(n), law).reshape(1, 30, 30) + noise[:1]
        fitted = np.asarray(null_law(table[0]), float)
        null = generator.multinomial(int(n), fitted / fitted.sum(), draws).reshape(draws, 30, 30) + noise[1:]
        count += float(p_value(np.concatenate([table, null]))) <= 0.05 * (1 + 1e-6)
    return count


@pytest.mark.parametrize("wide", [False, True])
def test_nearest_shares_are_the_projection_of_noisy_margins(wide):
    with jax.enable_x64(wide):
        sums = 5.0 + 10.0 * jax.random.normal(jax.random.key(0), (500, 12))
        sums = sums[jnp.sum(sums, axis=1) > 1.0]
        totals = jnp.sum(sums, axis=1)
        projected = jax.vmap(noisy_table.project_to_simplex)(sums, totals) / totals[:, None]
        np.testing.assert_allclose(noisy_table_statistics.nearest_shares(sums), projected, atol=1e-5)
        np.testing.assert_array_equal(noisy_table_statistics.nearest_shares(jnp.array([-1.0, -3.0])), [0.0, 0.0])


def cut_off(table, total, noise_variance):
    table, rows, columns = noisy_table_statistics.fitted_margins(table, total)
    expected = total * rows[..., :, None] * columns[..., None, :]
    return jnp.sum((table - expected) ** 2 / (expected + noise_variance), axis=(-2, -1))


def with_many_empty_levels(key, n):
    """Independent codes, of 16 levels of which two occur and of two."""
    x, y = jax.random.randint(key, (2, n), 0, 2)
    return Data(x, y, None, Domain((Column("categorical", 16),), (Column("binary", 2),)))


def with_an_empty_level(key, n):
    """Independent codes of three levels, the third of them empty."""
    x, y = jax.random.randint(key, (2, n), 0, 2)
    return Data(x, y, None, Domain((Column("ordinal", 3),), (Column("ordinal", 3),)))


def with_a_trend(key, n, slope):
    """Normal columns on [-1, 1], y = slope x + noise whose sd grows with x."""
    x, e = jax.random.normal(key, (2, n))
    return Data(jnp.clip(x / 4, -1, 1), jnp.clip((slope * x + jnp.exp(0.5 * x) * e) / 8, -1, 1), None, PLAIN)


@pytest.mark.optimised
def test_an_interval_leaves_out_zero_only_where_the_p_value_is_small():
    """A null, a weak and a strong trend, and a parabola, whose interval holds 0."""

    def one(key):
        key_data, key_run = jax.random.split(key)
        weak, key_other = with_a_trend(key_data, 500, 0.2), jax.random.fold_in(key_data, 1)
        bent = dependent(key_other, 500, 1.0)
        test = jaxdp.QuantileTable(epsilon=1.0, num_bins=3, num_null=199)
        found = [jaxdp.run(test, jax.random.fold_in(key_run, k), data) for k, data in enumerate((weak, bent))]
        return [(result.p_value, *result.interval) for result in found]

    with jax.debug_key_reuse(False):
        trend, bent = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(2), 150)))
    for p_value, low, high in (trend, bent):
        assert not ((low > 0) | (high < 0))[p_value > 0.05 * (1 + 1e-6)].any()
    assert 20 < ((trend[1] > 0) | (trend[2] < 0)).sum() < 140  # both cases occur
    assert (bent[0] <= 0.05).sum() > 100
    assert ((bent[1] <= 0) & (bent[2] >= 0)).sum() > 130


def test_the_interval_of_two_levels_leaves_out_zero_exactly_where_the_p_value_is_small():
    """A tenth of the records in a level of each: without the rule an interval holds 0 beside p <= .05 in a quarter."""
    side = (Column("binary", 2),)

    def one(key):
        key_x, key_y, key_run = jax.random.split(key, 3)
        x = jax.random.bernoulli(key_x, 0.1, (500,))
        y = jax.random.bernoulli(key_y, jnp.where(x, 0.35, 0.07))
        data = Data(x.astype(int), y.astype(int), domain=Domain(side, side))
        result = jaxdp.run(jaxdp.QuantileTable(epsilon=4.0, num_null=199), key_run, data)
        return result.p_value, *result.interval

    p_value, low, high = map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), 100)))
    shown, found = np.isfinite(low), p_value <= 0.05 * (1 + 1e-6)
    assert (((low > 0) | (high < 0)) == found)[shown].all()
    assert found.sum() > 90
    assert 50 < shown.sum() < 100  # both cases occur


def test_the_rank_correlation_of_groups_is_scipys_and_its_error_that_of_replicates():
    rng = np.random.default_rng(3)
    chances = np.array([[0.30, 0.02, 0.02], [0.05, 0.10, 0.12], [0.02, 0.25, 0.12]])
    tables = rng.multinomial(4000, chances.ravel(), 2000).reshape(-1, 3, 3).astype(float)
    found = noisy_table_statistics.rank_correlation(jnp.asarray(tables), 4000.0, 0.0)
    codes = np.repeat(np.indices((3, 3)).reshape(2, -1), tables[0].astype(int).ravel(), axis=1)
    assert float(jnp.tanh(found.z[0])) == pytest.approx(spearmanr(*codes).statistic, abs=1e-5)
    noisy = tables + rng.laplace(scale=10.0, size=tables.shape)
    with_noise = noisy_table_statistics.rank_correlation(jnp.asarray(noisy), 4000.0, 200.0)
    for one in (found, with_noise):
        assert float(jnp.median(one.error)) == pytest.approx(float(jnp.std(one.z)), rel=0.06)
    of_independence = 1.0 / np.sqrt(4000.0) / (1.0 - np.tanh(np.median(found.z)) ** 2)
    assert abs(of_independence / np.std(found.z) - 1.0) > 0.15  # what the test above can tell apart


@pytest.mark.optimised
@pytest.mark.full
def test_an_interval_covers_the_rank_correlation_of_independent_columns_and_of_spreads():
    """Symmetric noise whose sd grows: R is 0 whatever the cuts are."""

    def one(key):
        key_data, key_run = jax.random.split(key)
        test = jaxdp.QuantileTable(epsilon=1.0, num_bins=3, num_null=199)
        return jaxdp.run(test, key_run, with_a_trend(key_data, 600, 0.0)).interval

    with jax.debug_key_reuse(False):
        low, high = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(4), 400))
    misses = int(((low > 0) | (high < 0)).sum())
    assert misses <= binom.ppf(1 - 1e-4, 400, 0.05)


def test_an_answer_says_the_direction_beside_the_p_value():
    rng = np.random.default_rng(1)
    age = rng.uniform(20, 60, 800)
    table = {"age": age, "wage": np.clip(10 + 0.3 * age + rng.normal(size=800) * 5, 0, 60)}
    bounds = {"age": (20.0, 60.0), "wage": (0.0, 60.0)}
    answer = jaxdp.test(table, x="age", y="wage", epsilon=1.0, bounds=bounds, key=jax.random.key(0))
    assert answer.content["method"] == "quantile-table"
    assert answer.interval[0] > 0.2
    told = " ".join(str(answer).split())
    assert "Spearman's rank correlation of groups, 3 quantile groups of age and 3 quantile groups of wage" in told
    assert "Higher age goes with higher wage" in told


@pytest.mark.optimised
@pytest.mark.full
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_it_sees_what_covariance_misses(kind):
    assert rejections(kind, 100, epsilon=1.0) >= 90


def test_a_coded_column_keeps_its_levels_and_costs_no_cuts():
    data = Data(jnp.arange(40) % 4, jnp.linspace(-1, 1, 40), None, CODED)
    staged = jaxdp.core.specialize(jaxdp.QuantileTable(epsilon=1.0), data)
    assert staged.first.bins == (0, 3)
    assert staged.second.shape == (4, 3)
    assert not staged.second.ordered  # four unordered levels
    assert float(jaxdp.core.cost_of(jaxdp.QuantileTable(epsilon=1.0), data).epsilon) == pytest.approx(1.0)
    assert float(staged.second.mechanism_in_force().epsilon) == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("sees", "given", "name"),
    [
        (None, 0, "quantile-table"),
        (ANY, 0, "quantile-table"),
        ("monotone", 0, "conditional-kendall"),
        ("linear", 1, "band-gcm"),
        ("linear", 2, "contrast-gcm"),
        (None, 1, "band-gcm"),
    ],
)
def test_the_wish_chooses_the_test(sees, given, name):
    domain = Domain((Column(),), (Column(),), (Column(),) * given)
    assert catalogue.default(domain, sees=sees).name == name


def test_every_kind_that_can_be_wished_is_offered_by_the_command_line():
    (declared,) = (one for one in calls.TestOptions.__annotations__["sees"].__metadata__ if hasattr(one, "choices"))
    assert declared.choices == KINDS_OF_ALTERNATIVES


def test_no_test_for_the_wish_is_a_sentence():
    several = Domain((Column(),) * 2, (Column(),))
    with pytest.raises(ValueError, match=r"no test sees 'any' dependence in these columns; there is one for linear"):
        catalogue.default(several, sees=ANY)
    with pytest.raises(ValueError, match="sees must be"):
        catalogue.default(several, sees="all")


@pytest.mark.full
def test_the_command_line_says_what_was_seen(tmp_path, capsys):
    from jaxdp.cli.main import main

    generator = np.random.default_rng(0)
    x, e = generator.normal(size=(2, 400))
    rows = "\n".join(f"{a:.4f},{b:.4f}" for a, b in zip(x, x**2 + 0.3 * e, strict=True))
    (tmp_path / "d.csv").write_text(f"a,b\n{rows}\n")
    column = '[columns.{}]\nkind = "continuous"\nbounds = [-9, 9]\n'
    (tmp_path / "s.toml").write_text(column.format("a") + column.format("b"))
    ask = ["test", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--x", "a", "--y", "b", "--seed", "1"]
    assert main([*ask, "--epsilon", "4", "--out", str(tmp_path / "any")]) == 0
    content = json.loads((tmp_path / "any" / "result.json").read_text())
    assert content["method"] == "quantile-table"
    assert content["dependence_found"]
    assert content["sees"] == "any dependence of two columns"
    assert "any dependence of two columns" in capsys.readouterr().out
    assert main([*ask, "--epsilon", "4", "--sees", "linear", "--out", str(tmp_path / "linear")]) == 0
    assert json.loads((tmp_path / "linear" / "result.json").read_text())["method"] == "conditional-kendall"
    assert main([*ask, "--epsilon", "4", "--sees", "any", "--method", "band-gcm", "--out", str(tmp_path / "no")]) == 2


def test_more_groups_than_a_table_can_have_are_refused_when_it_is_built():
    with pytest.raises(ValueError, match="num_bins must be at most 50, got 51"):
        jaxdp.QuantileTable(epsilon=1.0, num_bins=51)
