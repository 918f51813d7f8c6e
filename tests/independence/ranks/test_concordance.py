"""Kendall, Spearman and their conditional forms: values against loops and SciPy, constants by exhaustion."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rank_falsifiers import moves
from scipy import stats

from jaxdp.statistics import concordance
from jaxdp.statistics.tables import contingency

TIGHT = 0.9  # a constant cut by a tenth must fail


def loop_s(a, b):
    return int(np.sum(np.sign(a[:, None] - a) * np.sign(b[:, None] - b)) // 2)


@pytest.mark.parametrize("levels", [1, 2, 3, 10**6])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_kendall_s_equals_the_double_loop(n, levels):
    rng = np.random.default_rng(n + levels)
    a, b = rng.integers(0, levels, n), rng.integers(0, levels, n)
    assert int(concordance.kendall_s(a, b)) == loop_s(a, b)


@pytest.mark.parametrize("levels", [2, 4])
def test_conditional_statistics_equal_loops_on_both_paths(levels):
    rng = np.random.default_rng(levels)
    a, b, block = rng.integers(0, levels, 200), rng.integers(0, levels, 200), rng.integers(0, 5, 200)
    parts = [(a[block == k], b[block == k]) for k in range(5)]
    expected = sum(loop_s(x, y) / (len(x) + 2.5) for x, y in parts)
    assert float(concordance.conditional_kendall(a, b, block)) == pytest.approx(expected, rel=1e-6)
    records = concordance.strata_of_records(a, b, block)
    tabled = concordance.strata_of_table(contingency.stratified_table(a, b, block, (5, levels, levels)))
    with jax.enable_x64(True):
        for part in ("s", "size", "cubes_a", "product", "squares_b"):
            nonzero = np.asarray(records.size) > 0
            assert np.array_equal(np.asarray(getattr(records, part))[nonzero], np.asarray(getattr(tabled, part)))
        for f in (concordance.kendall_variance, concordance.spearman_u, concordance.paper_statistic):
            assert float(f(records)) == pytest.approx(float(f(tabled)), rel=1e-12)


def test_tau_and_rho_equal_scipy_without_ties():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=40), rng.normal(size=40)
    assert float(concordance.kendall_tau(x, y)) == pytest.approx(stats.kendalltau(x, y)[0], rel=1e-6)
    assert float(concordance.spearman(x, y)) == pytest.approx(stats.spearmanr(x, y)[0], rel=1e-6)


def test_counts_do_not_overflow_at_a_hundred_thousand():
    n = 100_000
    half = np.arange(n) % 2
    assert int(concordance.kendall_s(half, half)) == (n // 2) ** 2
    assert int(concordance.kendall_s(np.arange(n), -np.arange(n))) == -(n * (n - 1) // 2)
    s = concordance.strata_of_table(np.array([[n // 2 * 10**3, 0], [0, n // 2 * 10**3]]))
    assert int(s.s) == (n // 2 * 10**3) ** 2


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_signed_tau_moves_by_exactly_four_over_n(n):
    def tau(t):
        return 2.0 * np.asarray(concordance.strata_of_table(t).s) / (n * (n - 1))

    assert moves(tau, n, (3, 3))["replace"] == pytest.approx(4 / n, rel=1e-12)
    assert moves(tau, n, (2, 2))["replace"] == pytest.approx(2 / n, rel=1e-12)


def test_absolute_tau_moves_by_exactly_four_over_n():
    def tau(t):
        return np.abs(2.0 * np.asarray(concordance.strata_of_table(t).s) / 20)

    assert moves(tau, 5, (4, 4))["replace"] == pytest.approx(4 / 5, rel=1e-12)


def test_the_papers_kendall_constant_is_exceeded():
    """2/(n - 1) is claimed for replacements and additions; an addition to n records reaches 4/(n + 1)."""
    n = 50
    before = np.arange(1, n + 1)
    a, b = np.append(before, 0), np.append(before, n + 1)
    change = float(concordance.kendall_tau(before, before)) - float(concordance.kendall_tau(a, b))
    assert change == pytest.approx(4 / (n + 1), rel=1e-5)
    assert change > 1.9 * 2 / (n - 1)


@pytest.mark.parametrize("n", [3, 4])
def test_spearman_moves_by_exactly_six_over_n_plus_one(n):
    shape = (n + 1, n + 1)

    def rho(t):
        return 3.0 * np.asarray(concordance.strata_of_table(t).product) / (n * (n**2 - 1))

    assert moves(rho, n, shape)["replace"] == pytest.approx(6 / (n + 1), rel=1e-9)


def test_numerator_of_conditional_spearman_on_arrival():
    with jax.enable_x64(True):

        def u(t):
            return np.asarray(concordance.spearman_u(concordance.strata_of_table(t[:, None])))

        reached = moves(u, 4, (5, 5))
    assert max(reached["up"], reached["down"]) == pytest.approx((5 * 4 - 7) / 5, rel=1e-9)


def of_strata(function):
    def statistic(tables):
        with jax.enable_x64(True):
            return np.asarray(function(concordance.strata_of_table(tables)))

    return statistic


def test_theorem_b_general_constants_are_reached_and_kept():
    smallest_divisor = of_strata(lambda s: concordance.kendall_u(s, offset=-1.0))
    reached = moves(smallest_divisor, 5, (2, 3, 3))
    assert reached["replace"] == pytest.approx(3.0, rel=1e-12)
    assert max(reached["up"], reached["down"]) == pytest.approx(1.5, rel=1e-12)
    used = moves(of_strata(concordance.kendall_u), 5, (2, 3, 3))
    assert used["replace"] < 3.0


@pytest.mark.parametrize(("shape", "replace", "arrival"), [((2, 2, 2), 2.0, 1.0), ((2, 2, 3), 2.0, 1.0)])
def test_theorem_b_binary_constants_are_reached_and_kept(shape, replace, arrival):
    reached = moves(of_strata(lambda s: concordance.kendall_u(s, offset=-1.0)), 5, shape)
    assert reached["replace"] == pytest.approx(replace, rel=1e-12)
    assert max(reached["up"], reached["down"]) == pytest.approx(arrival, rel=1e-12)


def test_without_strata_binary_moves_by_one_and_general_by_two():
    n = 6
    u = of_strata(lambda s: concordance.kendall_u(s, offset=-1.0))
    assert moves(u, n, (1, 2, 2))["replace"] == pytest.approx(1.0, rel=1e-12)
    assert moves(u, n, (1, 3, 3))["replace"] == pytest.approx(2.0, rel=1e-12)


def test_null_variances_stay_within_their_bounds():
    general = moves(of_strata(concordance.kendall_variance), 5, (2, 3, 3))
    assert general["replace"] <= 0.357
    assert general["up"] <= 1 / 3
    assert general["down"] <= 0.023
    binary = moves(of_strata(concordance.cmh_variance), 6, (2, 2, 2))
    assert binary["replace"] <= 0.375
    assert TIGHT * 0.25 < binary["up"] <= 0.25 + 1e-12
    assert binary["down"] <= 0.125


def test_general_null_variance_nears_a_third():
    """One new record in a stratum where a is constant and b untied: the tie correction opens at once."""
    n = 400
    table = np.zeros((1, 2, n), np.int64)
    table[0, 0] = 1
    more = table.copy()
    more[0, 1, 0] = 1
    values = of_strata(concordance.kendall_variance)(np.stack([table, more]))
    assert TIGHT / 3 < values[1] - values[0] <= 1 / 3


PROVEN = 0.357  # docs/theory/conditional_kendall.md#the-fall-of-an-arrival


def test_general_null_variance_reaches_the_replacement_that_is_proven():
    """A record leaves a stratum in which it was one of a group tied in both columns, for the one above."""
    n, tied = 400, 296
    opened, group = np.zeros((2, n, n), np.int64), np.zeros((2, n, n), np.int64)
    opened[:, 0] = 1
    opened[1, 1, 0] = 1
    rest = np.arange(1, n - tied + 1)
    group[:, rest, rest] = 1
    group[:, 0, 0] = tied, tied - 1
    values = of_strata(concordance.kendall_variance)(np.stack([opened, group], axis=1))
    assert TIGHT * PROVEN < values[1] - values[0] <= PROVEN


def test_an_arrival_lowers_the_general_null_variance_by_at_most_a_sixtieth():
    """All pairs of groups that the new record may join, the others untied: where the proof says the least is."""
    worst = 0.0
    for n in range(2, 401):
        shares = [_untied(n, np.arange(n + 1.0)), _untied(n + 1, np.arange(n + 1.0) + 1.0)]
        falls = 0.0
        for part, (before, after) in enumerate(zip(*shares, strict=True)):
            change = _weight(n + 1)[part] * np.outer(after, after) - _weight(n)[part] * np.outer(before, before)
            falls = falls - np.minimum(change, 0.0)
        worst = max(worst, float(falls.max()))
    assert 0.0166 < worst <= 0.0167
    a = np.linspace(0.0, 1.0, 401)[:, None]

    def one_sided(u, v):
        return 3.0 * (1.0 - u**3) * v**2 * (1.0 - v)

    assert np.min((1 - a**3) * (1 - a.T**3) - one_sided(a, a.T) - one_sided(a.T, a)) > -0.1544


def _untied(n, t):
    """Shares of triples and of pairs that are not all tied, if t of n records are tied and the others aren't."""
    return 1.0 - t * (t - 1) * (t - 2) / max(n * (n - 1.0) * (n - 2.0), 1.0), 1.0 - t * (t - 1) / (n * (n - 1.0))


def _weight(n):
    return n * (n - 1.0) * (n - 2.0) / (9.0 * (n + 2.5) ** 2), n * (n - 1.0) / (2.0 * (n + 2.5) ** 2)


def test_spearman_variance_on_arrival():
    small = moves(of_strata(concordance.spearman_variance), 5, (2, 3, 3))
    assert small["up"] <= 3.0
    assert small["down"] <= 1.0
    n = 400
    table = np.zeros((1, 2, n), np.int64)
    table[0, 0] = 1
    more = table.copy()
    more[0, 1, 0] = 1
    values = of_strata(concordance.spearman_variance)(np.stack([table, more]))
    assert TIGHT * 3 < values[1] - values[0] <= 3.0


def test_definition_six_moves_by_two_whatever_n():
    reached = moves(of_strata(concordance.paper_statistic), 4, (2, 3, 3))["replace"]
    assert reached == pytest.approx(36 / np.sqrt(297), rel=1e-9)
    n = 60  # a stratum of three among single records: the claim 4.5/sqrt(n - 1) is far below
    tables = np.zeros((2, n - 2, 3, 4), np.int64)
    tables[:, 1:, 0, 0] = 1
    tables[:, 0, 1, 1] = tables[:, 0, 2, 2] = 1
    tables[0, 0, 0, 0] = tables[1, 0, 0, 3] = 1
    assert tables[0].sum() == tables[1].sum() == n
    change = abs(float(np.diff(of_strata(concordance.paper_statistic)(tables))[0]))
    assert change == pytest.approx(36 / np.sqrt(297), rel=1e-9)
    assert change > 3 * 4.5 / np.sqrt(n - 1)


@pytest.mark.full
def test_null_variances_match_permutations():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 3, 60), rng.integers(0, 4, 60)
    samples = jnp.asarray(np.stack([rng.permutation(b) for _ in range(4000)]))
    one = jnp.zeros(60, int)
    u = jax.vmap(lambda y: concordance.conditional_kendall(a, y, one))(samples)
    rho = jax.vmap(lambda y: concordance.conditional_spearman(a, y, one))(samples)
    strata = concordance.strata_of_records(a, b)
    with jax.enable_x64(True):
        expected = float(concordance.kendall_variance(strata)), float(concordance.spearman_variance(strata))
    # sd of a sample variance of normal values: sqrt(2/4000) = 2.2 %, times 4.9 at 1e-6; ties add 1/n terms.
    assert np.var(np.asarray(rho)) == pytest.approx(expected[1], rel=0.11)
    assert np.var(np.asarray(u)) == pytest.approx(expected[0], rel=0.15)


@pytest.mark.parametrize(
    ("a", "b"),
    [((0, 1), (0, 1)), ((0, 1, 2), (0, 0, 1)), ((0, 1, 2, 2), (0, 1, 2, 3)), ((0, 0, 1, 1, 2), (0, 1, 1, 1, 2))],
)
def test_kendall_variance_is_that_of_all_permutations(a, b):
    """Of tiny strata, from tables and from records."""
    table = np.zeros((1, 3, 4))
    np.add.at(table, (0, a, b), 1)
    pairs = list(itertools.combinations(range(len(a)), 2))

    def score(y):
        return sum(np.sign(a[i] - a[j]) * np.sign(y[i] - y[j]) for i, j in pairs)

    exact = np.var([score(y) for y in itertools.permutations(b)]) / (len(a) + 2.5) ** 2
    assert float(concordance.kendall_variance(concordance.strata_of_table(table.astype(int)))) == pytest.approx(exact)
    with jax.enable_x64(True):
        records = concordance.strata_of_records(np.array(a), np.array(b))
        assert float(concordance.kendall_variance(records)) == pytest.approx(exact, rel=1e-12)


def test_single_records_ties_and_empty_strata_have_values():
    assert float(concordance.conditional_kendall(np.ones(1), np.ones(1), np.zeros(1, int))) == 0.0
    assert float(concordance.conditional_kendall(np.ones(5), np.arange(5), np.zeros(5, int))) == 0.0
    assert float(concordance.spearman(np.ones(1), np.ones(1))) == 0.0
    empty = concordance.strata_of_table(np.zeros((3, 2, 2), np.int64))
    with jax.enable_x64(True):
        for f in (
            concordance.kendall_u,
            concordance.kendall_variance,
            concordance.cmh_variance,
            concordance.spearman_u,
            concordance.spearman_variance,
            concordance.paper_statistic,
        ):
            assert float(f(empty)) == 0.0
    with pytest.raises(ValueError, match="common length"):
        concordance.kendall_s(np.ones(3), np.ones(4))
