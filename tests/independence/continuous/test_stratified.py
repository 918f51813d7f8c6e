"""Batched chi-squared, G and Cochran-Mantel-Haenszel against SciPy and the textbook sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.discovery.engine import table_scores
from jaxdp.statistics import chi_squared, cochran_mantel_haenszel, g_test
from jaxdp.statistics.tables import stratified


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    return rng.poisson(np.array([3.0, 20.0, 200.0])[:, None, None, None], (3, 4, 3, 2))


@pytest.mark.parametrize(("test", "power"), [(chi_squared, 1), (g_test, 0)])
@pytest.mark.parametrize("where", [np.asarray, jnp.asarray])
def test_one_stratum_equals_scipy(tables, test, power, where):
    for table in tables[:, 0]:
        theirs = stats.chi2_contingency(table, correction=False, lambda_=power)
        ours = test(where(table[None]))
        assert float(ours.statistic) == pytest.approx(theirs.statistic, rel=1e-9)
        assert int(ours.degrees) == theirs.dof
        assert float(ours.p_value) == pytest.approx(theirs.pvalue, rel=1e-7, abs=1e-12)


def test_strata_add_up_and_batches_are_rows(tables):
    for test in (chi_squared, g_test):
        whole = test(tables)
        for row, table in enumerate(tables):
            parts = [test(stratum[None]) for stratum in table]
            assert float(whole.statistic[row]) == pytest.approx(sum(float(part.statistic) for part in parts))
            assert int(whole.degrees[row]) == sum(int(part.degrees) for part in parts)
            assert float(whole.p_value[row]) == pytest.approx(
                stats.chi2.sf(float(whole.statistic[row]), int(whole.degrees[row]))
            )


def mantel_haenszel(table):
    """Textbook sums, stratum by stratum."""
    excess = variance = 0.0
    for (a, b), (c, d) in table.astype(float):
        n = a + b + c + d
        if n < 2:
            continue
        excess += a - (a + b) * (a + c) / n
        variance += (a + b) * (c + d) * (a + c) * (b + d) / (n**2 * (n - 1))
    return excess**2 / variance


def test_mantel_haenszel_equals_the_textbook_and_the_discovery_score():
    tables = np.random.default_rng(1).poisson(15.0, (5, 6, 2, 2))
    found = cochran_mantel_haenszel(tables)
    on_device = jax.jit(cochran_mantel_haenszel)(jnp.asarray(tables))
    scores = table_scores.kendall_scores(tables, np.zeros(5), np.zeros(5))
    for row, table in enumerate(tables):
        expected = mantel_haenszel(table)
        assert float(found.statistic[row]) == pytest.approx(expected, rel=1e-12)
        assert float(on_device.statistic[row]) == pytest.approx(expected, rel=1e-4)  # float32 under jit
        assert float(found.p_value[row]) == pytest.approx(stats.chi2.sf(expected, 1), rel=1e-9)
        assert scores[row] ** 2 == pytest.approx(expected, rel=1e-9)


def test_empty_and_degenerate_strata_test_nothing():
    nothing = np.zeros((2, 3, 2, 2), int)
    nothing[1, 0, 0] = 5  # one row only
    for test in (chi_squared, g_test, cochran_mantel_haenszel):
        found = test(nothing)
        assert np.array_equal(found.statistic, [0.0, 0.0])
        assert np.array_equal(found.degrees, [0, 0])
        assert np.array_equal(found.p_value, [1.0, 1.0])
    with pytest.raises(ValueError, match="2 x 2"):
        cochran_mantel_haenszel(np.zeros((1, 3, 2)))


def test_sizes_under_independence():
    rng = np.random.default_rng(2)
    levels = rng.multinomial(400, np.outer([0.3, 0.7], [0.4, 0.6]).ravel(), size=(4000, 3)).reshape(4000, 3, 2, 2)
    window = stats.binom.ppf([5e-7, 1 - 5e-7], 4000, 0.05)
    for test in (chi_squared, g_test, cochran_mantel_haenszel):
        # the limit law at 400 records per stratum is within 0.004 of the level
        assert window[0] - 16 <= np.sum(test(levels).p_value <= 0.05) <= window[1] + 16


def test_expected_counts():
    assert np.allclose(stratified.expected_counts(np.array([[[1, 2], [3, 4]]])), [[[1.2, 1.8], [2.8, 4.2]]])
