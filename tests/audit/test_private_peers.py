"""Private peers written again: without noise they are ordinary tests, their constants hold, pages show the records."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.evidence.compared import __main__ as tests_of
from experiments.evidence.compared import answers, block_tests, columns, estimators, packages, page, pairs, peers
from experiments.evidence.small_groups import __main__ as small
from experiments.record import rows
from jaxdp.data.dataset import Data

NO_NOISE = 1e18
BELOW = 1e-6  # of a level check


@pytest.fixture(scope="module")
def normal():
    rng = np.random.default_rng(5)
    z, x, e = rng.normal(size=(3, 80))
    return 0.5 * z + x, 0.3 * x + z + e, z


def block(test, x, y, z=None):
    with jax.enable_x64(True):
        return float(test(Data(jnp.asarray(x), jnp.asarray(y), None if z is None else jnp.asarray(z))))


def test_block_tests_equal_ordinary_ones(normal):
    x, y, z = normal
    group = np.arange(80) % 3
    two = np.where(group == 0, -1.0, 1.0)
    table = np.zeros((3, 3))
    np.add.at(table, tuple(3 * np.argsort(np.argsort(side)) // 80 for side in (x, y)), 1)
    for found, expected in (
        (block(block_tests.pearson, x, y), stats.pearsonr(x, y)[1]),
        (block(block_tests.partial_correlation, x, y, z), peers.partial_pearson(x, y, z)),
        (block(block_tests.welch, x, two), stats.ttest_ind(x[two < 0], x[two > 0], equal_var=False)[1]),
        (block(block_tests.kruskal, group, y), stats.kruskal(*(y[group == g] for g in range(3)))[1]),
        (block(block_tests.thirds, x, y), stats.chi2_contingency(table, correction=False)[1]),
    ):
        assert found == pytest.approx(expected, rel=1e-6)


def test_log_rank_of_a_block_equals_that_of_counts_in_fine_bins():
    rng = np.random.default_rng(2)
    group, place = rng.integers(2, size=90), rng.permutation(90)
    event = rng.uniform(size=90) < 0.7
    counts = np.zeros((2, 2, 90))
    np.add.at(counts, (event.astype(int), group, place), 1)
    found = block(block_tests.log_rank, group.astype(float), np.stack([place / 90, event], axis=1))
    assert found == pytest.approx(estimators.log_rank_of_counts(counts[1], counts[0]), rel=1e-6)


def test_estimates_without_noise_are_ordinary_ones(normal):
    x, y, _ = normal
    rng, ordinary = np.random.default_rng(0), stats.linregress(x, y)
    statistic = estimators._f_statistic(80, *estimators._moments(rng, x, y, NO_NOISE, 9.0))
    assert statistic == pytest.approx((ordinary.slope / ordinary.stderr) ** 2, rel=1e-6)
    low, high = estimators.noisy_gram(rng, x, y, NO_NOISE, 9.0)["asymptotic"][1:]
    assert 0.5 * (low + high) == pytest.approx(ordinary.slope, rel=0.1)  # eigenvalues are lifted
    many = rng.normal(size=40_000)
    yes = (rng.uniform(size=many.size) < 1 / (1 + np.exp(-0.1 * many))).astype(float)
    _, low, high = estimators.pass_glm(rng, many, yes, NO_NOISE, 5.0, radius=0.5)["posterior"]
    assert (low, high) == pytest.approx(estimators.logistic(many, yes)[1:], rel=0.05)
    group, time, event = answers.times(rng, 300, 0.4)
    found = estimators.noisy_log_rank(rng, group, time, event, NO_NOISE)[0]
    assert found == pytest.approx(estimators.log_rank_of_counts(*estimators.survival_counts(group, time, event)))


def test_constants_of_the_peers_hold_and_are_reached():
    grid = np.linspace(-1, 1, 9)
    sums = np.array([(y, y * u, u, u * u) for y in (-1, 1) for u in grid])
    assert max(np.linalg.norm(a - b) for a, b in itertools.product(sums, sums)) == pytest.approx(8**0.5)
    unit = [np.array([1, a, b]) / 3**0.5 for a, b in itertools.product(np.linspace(0, 1, 7), repeat=2)]
    grams = [np.outer(row, row) for row in unit]
    assert 0.9 < max(np.linalg.norm(a - b) for a, b in itertools.product(grams, grams)) <= 1.0


def test_level_of_the_rank_sums_as_published():
    rng, runs = np.random.default_rng(4), 400
    found = [estimators.kw_abs(rng, rng.integers(3, size=60), rng.normal(size=60), 1.0)[0] <= 0.05 for _ in range(runs)]
    assert 1 <= sum(found) <= stats.binom.ppf(1 - BELOW, runs, 0.05)


def test_the_test_of_tests_and_ours_answer_for_a_part():
    part, rng = answers.PARTS["slope"], np.random.default_rng(1)
    sets = [part.draw(rng, 2000, 0.5) for _ in range(4)]
    found = answers.ours(part, 0, sets, 2000)
    assert set(found) == {"jaxdp: linear-regression", "jaxdp: linear-regression, rho", "test of tests"}
    row = answers.summary(*found["jaxdp: linear-regression"], 0.5, part.unit)
    assert (row["rejected"], row["replicates"], row["answered"]) == (4, 4, 4)


def test_every_private_row_has_seconds():
    """Of a table: a row of tests that are not private has none."""
    for parts in page.SEVERAL.values():
        for line in page.rejections(parts).splitlines()[2:]:
            name, seconds = line.split(" | ")[0], line.rstrip("|").split("|")[-1].strip()
            assert bool(seconds) != name.startswith("| not private"), line


def test_rows_of_fewer_data_sets_are_listed():
    text, counts = page.data_sets(), {row["replicates"] for _, row in page._of_tables()}
    assert {int(line[2:].split(":")[0]) for line in text.splitlines()} == counts
    for table, row in page._of_tables():
        if row["replicates"] != page.USUAL:
            line = next(line for line in text.splitlines() if line.startswith(f"- {row['replicates']}:"))
            assert f"*{table}*" in line
            assert page._family(row["method"]) in line or f"all rows of *{table}*" in line


def test_rows_come_out_again_from_their_seeds():
    """Of ordinary tests without noise: the recorded number of rejections, on the data sets that the seed gives."""
    seen = set()
    for row in rows(page.TABLES):
        assert row["seed"] == tests_of.seed_of(row)
        if row["method"] in ("not private: t-test", "not private: chi-squared") and row["part"] in ("groups", "table"):
            rng, asked = np.random.default_rng(row["seed"]), (row["n"], row["law"], row["replicates"])
            if row["part"] == "groups":
                found = [
                    peers.welch(peers.Groups(*np.split(one, 2))) for one in tests_of.groups_drawn(None, rng, *asked)[1]
                ]
            else:
                data = tests_of.table_drawn(None, rng, *asked)
                cells = np.asarray(3 * data.x + data.y)
                found = [peers.chi2(np.bincount(one, minlength=9).reshape(3, 3).astype(float)) for one in cells]
            assert sum(p <= 0.05 for p in found) == row["rejections"]
            seen.add(row["part"])
    for row in rows(page.RECORD):
        assert row["seed"] == answers.seed_of(row)
        if row["method"] == "not private: least squares" and row["law"] != "slope 0.5":
            rng, part = np.random.default_rng(row["seed"]), answers.PARTS["slope"]
            sets = [part.draw(rng, row["n"], part.laws[row["law"]]) for _ in range(row["replicates"])]
            found = [(estimators.least_squares(*one), seen.add(row["part"]))[0] for one in sets]
            assert answers.summary(found, 1.0, part.laws[row["law"]], 1.0)["covered"] == row["covered"]
    assert seen == {"groups", "table", "slope"}


def test_holm_rejects_as_it_is_defined():
    assert pairs.holm([0.02, 0.01, 0.9]).tolist() == [True, True, False]  # 0.05/3, 0.05/2
    assert pairs.holm([0.03, 0.02, 0.9]).tolist() == [False, False, False]  # stops at the first that fails


def test_all_pairs_are_in_the_order_of_their_columns():
    """Answers of jaxdp come sorted by what was found: a strong pair is at its own place."""
    columns_ = pairs.drawn(np.random.default_rng(3), 2000, "none")
    columns_[5] = columns_[2]
    for answer in (pairs.ours(), pairs.METHODS["not private: chi-squared"]):
        assert pairs.PAIRS[int(np.argmin(answer(np.random.default_rng(0), *columns_)))] == (2, 5)
    row = pairs.summary([[0.0 if pair in ((0, 1), (0, 7)) else 1.0 for pair in pairs.PAIRS]] * 2, 1.0, "three")
    assert (row["families"], row["false"], row["found"]) == (2, 2, [2, 0, 0])


def test_numbers_of_a_described_column_and_of_bounds():
    rng = np.random.default_rng(0)
    counts, quartiles, bounds = (columns.PARTS[name] for name in ("counts", "quartiles", "bounds"))
    sets = np.stack([rng.choice(7, 500, p=columns.SHARES) for _ in range(3)])
    truth = np.stack([np.bincount(one, minlength=7) for one in sets])
    exact = columns.summary(counts, "six levels", sets, np.stack([truth, truth, truth]))
    assert (exact["error"], exact["covered"], exact["answered"]) == (0.0, 21, 21)
    off = columns.summary(counts, "six levels", sets, np.stack([truth + 3, truth + 2, truth + 4]))
    assert (off["error"], off["covered"], off["width"]) == (3.0, 0, 2.0)
    values = np.stack([np.arange(1.0, 101.0)])
    found = columns.summary(quartiles, "normal", values, np.array([[[25.0, 50.0, 80.0]]]))
    assert found == {"error": 0.0, "answered": 0}
    pairs_ = np.array([[[-10.0, 110.0], [np.nan, np.nan]]])
    found = columns.summary(bounds, "normal", np.stack([values[0], values[0]]), pairs_)
    assert (found["usable"], found["answered"]) == (1, 1)
    assert packages.widened("quartiles", 1.0, 2.0) == (-1.0, 4.0)
    assert np.isnan(packages.widened("ends at 0.01 and 0.99", 2.0, 2.0)).all()


@pytest.mark.parametrize(("name", "law"), [("counts", "six levels"), ("quartiles", "normal"), ("bounds", "normal")])
def test_what_jaxdp_says_of_a_column_is_read_in_its_place(name, law):
    part, rng = columns.PARTS[name], np.random.default_rng(1)
    sets = np.stack([part.laws[law](rng, 10_000) for _ in range(2)])
    ((_, found, *_),) = columns.own(part, law, sets, 5)
    row = columns.summary(part, law, sets, found)
    if name == "bounds":
        assert (row["usable"], row["answered"]) == (2, 2)
    else:
        assert row["error"] < {"counts": 8.0, "quartiles": 0.1}[name]
        assert row["covered"] > 0.7 * row["answered"]


def test_pages_hold_the_records():
    text = page.PAGE.read_text(encoding="utf-8")
    tables = [page.rejections(parts) for parts in page.SEVERAL.values()]
    tables += [page.estimates(name) for name in {row["part"] for row in rows(page.RECORD)}]
    assert len(tables) == len(page.SEVERAL) + len(answers.PARTS)
    for table in [*tables, *(made() for made in page.SINGLE.values())]:
        assert table in text, "python -m experiments.evidence.compared.page writes it anew"
    text = small.PAGE.read_text(encoding="utf-8")
    for table in (small.table(), small.intervals()):
        assert table in text, "python -m experiments.evidence.small_groups --table writes it anew"
