"""MICe, MICr and their companions against brute force, minepy's stored values and declared policies."""

import csv
import functools
import os
import pathlib

import jax
import jax.numpy as jnp
import mic_reference as reference
import numpy as np
import pytest

from jaxdp import statistics
from jaxdp.published import mic_minepy
from jaxdp.statistics.mic import (
    coefficients,
    mic_axis,
    mic_bins,
    mic_blocks,
    mic_companions,
    mic_grids,
    mic_pairs,
    mic_scores,
)
from jaxdp.statistics.tables import information

FIXTURE = pathlib.Path(__file__).parents[2] / "data" / "mic_minepy_1_2_6.csv"
BOX = ((0.0, 1.0), (0.0, 1.0))


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def scatter(seed, n=24):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    return x, np.clip(0.5 + 0.4 * np.sin(7 * x) + 0.1 * rng.normal(size=n), 0, 1)


def test_mutual_information_against_the_definition():
    tables = np.random.default_rng(0).integers(0, 5, (20, 3, 4)).astype(float)
    tables[0], tables[1] = 0.0, np.eye(3, 4)
    expected = [reference.information(table) if table.sum() else 0.0 for table in tables]
    np.testing.assert_allclose(statistics.mutual_information(tables), expected, atol=1e-12)


def test_short_logarithm_is_as_accurate_as_stated():
    x = jnp.arange(1, 200_001, dtype=jnp.float32)
    exact = np.arange(1, 200_001) * np.log2(np.arange(1, 200_001))
    error = np.abs(np.asarray(information.xlog2x(x), float) - exact) / np.maximum(np.arange(1, 200_001), 1)
    assert np.max(error / np.maximum(np.log2(np.arange(1, 200_001)), 1)) < 4e-7
    assert information.xlog2x(jnp.float32([0.0, 1.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("p", [2, 3, 5, 6])
def test_segments_against_every_subpartition(p):
    tables = np.random.default_rng(p).integers(0, 6, (p, 3, 12)).astype(float)
    tables[:, 1, 0] = 0.0
    sums = mic_axis.cumulative(mic_axis.pad_rows(jnp.asarray(tables)))
    found = np.asarray(jax.jit(mic_axis.best_information, static_argnums=1)(sums, p))
    for k, lane in [(k, lane) for k in range(2, p + 1) for lane in range(12)]:
        exact = [reference.best_over_segments(tables[..., lane], j) for j in range(2, k + 1)]
        assert found[k - 2, lane] == pytest.approx(max(exact), abs=1e-12)
    assert np.all(np.diff(found, axis=0) >= -1e-12), "more segments never lose information"


@pytest.mark.full
def test_padding_changes_nothing():
    table = jnp.asarray(np.random.default_rng(1).integers(0, 6, (7, 4, 3)).astype(float))
    padded = jnp.pad(table, ((0, 44), (0, 6), (0, 0)))  # 51 rows: the blocked layout
    best = jax.jit(mic_axis.best_information, static_argnums=1)
    plain = best(mic_axis.cumulative(table), 4)
    for fixed in (None, jnp.int32(4)):
        wide = best(mic_axis.cumulative(padded), 4, (fixed, None, None))
        np.testing.assert_allclose(wide, plain, atol=1e-12)


@pytest.mark.parametrize("grid", ["capped", "full"])
@pytest.mark.parametrize("budget", [4.0, 9.0, 12.3])
def test_mic_r_against_brute_force(grid, budget):
    x, y = scatter(3)
    cells = [functools.partial(reference.range_cells, v, 0.0, 1.0) for v in (x, y)]
    expected = reference.coefficient(*cells, budget, 2, grid == "full")
    assert float(coefficients.mic_r(x, y, bounds=BOX, budget=budget, c=2, grid=grid)) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("grid", ["capped", "full"])
def test_mic_e_against_brute_force(grid):
    x, y = scatter(4)
    ranks = [np.argsort(np.argsort(v)) for v in (x, y)]
    cells = [functools.partial(reference.rank_cells, r) for r in ranks]
    expected = reference.coefficient(*cells, 12.3, 2, grid == "full")
    assert float(coefficients.mic_e(x, y, budget=12.3, c=2, grid=grid)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.full
def test_every_bucketing_gives_the_same_scores():
    x, y = scatter(5, 200)
    features = jnp.stack([jnp.asarray(x), jnp.asarray(y)], 1)
    one = jnp.zeros(1, jnp.int32)
    sizes = mic_grids.grids(17.0, 3)
    found = []
    for most in (1, 2, 9):
        buckets = mic_grids.buckets(sizes, 10**12, most)
        assert len(buckets) == min(most, 3)
        scores = [jnp.max(mic_scores.bucket_scores(features, one, one + 1, b, "range")) for b in buckets]
        found.append(float(max(scores)))
    assert max(found) - min(found) < 1e-12


def test_few_programs_for_ten_thousand_records():
    sizes = mic_grids.grids(10_000**0.6, 15)
    for problems in (1, 1000, 10**6):
        groups = mic_grids.buckets(sizes, problems)
        assert len(groups) <= mic_grids.MAX_PROGRAMS <= 12
        assert sorted(grid for bucket in groups for grid in bucket.grids) == sorted(sizes)
        for bucket in groups:
            assert all(grid <= (bucket.fixed, bucket.parts, bucket.master) for grid in bucket.grids)


def test_a_single_coefficient_compiles_few_programs():
    """Counted by the compiler's own events; 12 at most for any n up to 10 000."""
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(listener := lambda name, *_, **__: compiled.append(name))
    try:
        x, y = scatter(9, 211)
        coefficients.mic_r(x, y, bounds=BOX, budget=40.0, c=5.5)
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    assert 1 <= sum("backend_compile" in name for name in compiled) <= 12


def minepy_fixture():
    with FIXTURE.open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def fixture_pair(kind, n, seed):
    """The data that the fixture's generator used: `tests/data/README.md`."""
    rng = np.random.default_rng(int(seed))
    x = rng.uniform(size=int(n))
    noise = rng.normal(size=int(n))
    y = [noise, np.sin(9 * x) + 0.3 * noise, (x - 0.5) ** 2 + 0.05 * noise][int(kind)]
    return x, y


@pytest.mark.full
def test_minepys_rule_on_tie_free_data_against_its_stored_values():
    for row in minepy_fixture():
        x, y = fixture_pair(row["kind"], row["n"], row["seed"])
        settings = {"budget": max(row["n"] ** row["alpha"], 4.0), "c": row["c"]}
        matrix = mic_minepy.characteristic_matrix_e(x, y, **settings)
        assert float(mic_minepy.mic_e(x, y, **settings)) == pytest.approx(row["mic"], abs=1e-9)
        assert float(mic_companions.total_information(matrix)) == pytest.approx(row["tic"], abs=1e-8)
        assert float(mic_companions.maximum_asymmetry(matrix)) == pytest.approx(row["mas"], abs=1e-9)
        assert float(mic_companions.maximum_edge_value(matrix)) == pytest.approx(row["mev"], abs=1e-9)
        assert float(mic_companions.minimum_cell_number(matrix)) == pytest.approx(row["mcn"], abs=1e-9)


def test_minepys_rule_with_ties_against_the_baseball_values():
    folder = os.environ.get("JAXDP_DATA")
    if not folder:
        pytest.skip("set JAXDP_DATA to the folder with baseball.csv and mice_minepy_baseball.csv")
    with open(f"{folder}/baseball.csv") as file:
        table = np.array([[float(v) for v in row[5:]] for row in list(csv.reader(file))[1:]])
    with open(f"{folder}/mice_minepy_baseball.csv") as file:
        stored = list(csv.DictReader(file))
    score = jax.jit(lambda x, y: mic_minepy.mic_e(x, y, budget=337**0.6, c=15))
    for i in np.random.default_rng(0).integers(0, len(stored), 25):
        row = stored[i]
        found = score(jnp.asarray(table[:, int(row["i"])]), jnp.asarray(table[:, int(row["j"])]))
        assert float(found) == pytest.approx(float(row["mic_e"]), abs=1e-6)


@pytest.mark.full
def test_pairs_equal_single_calls_and_data_sets():
    rng = np.random.default_rng(2)
    table = rng.uniform(size=(60, 5))
    table[:, 3] = np.round(table[:, 0], 1)
    bounds = np.tile([0.0, 1.0], (5, 1))
    many = mic_pairs.mic_r_pairs(table, bounds=bounds, budget=12.0, c=3)
    pairs = mic_pairs.all_pairs(5)
    for value, (i, j) in zip(np.asarray(many), pairs, strict=True):
        one = coefficients.mic_r(table[:, i], table[:, j], bounds=BOX, budget=12.0, c=3)
        assert value == pytest.approx(float(one), abs=1e-12)
    sets = mic_pairs.data_sets(table[:, [0, 1]].T, table[:, [2, 3]].T, bounds=BOX, budget=12.0, c=3)
    np.testing.assert_allclose(sets, np.asarray(many)[[1, 5]], atol=1e-12)
    shown = mic_pairs.mic_r_pairs(table, bounds=bounds, budget=12.0, c=3, progress=True)
    np.testing.assert_array_equal(shown, many)


@pytest.mark.full
@pytest.mark.parametrize(("kind", "n"), [("range", 70), ("mass", 400)])
def test_blocks_of_pairs_equal_pairs_one_by_one(kind, n):
    """12 columns and 66 pairs: counted by bits; at n = 400 and in several runs of words."""
    table = np.round(np.random.default_rng(n).uniform(size=(n, 12)), 2)
    table[:, 4] = table[:, 2] ** 2
    score = functools.partial(mic_pairs.mic_r_pairs, bounds=np.tile([0.0, 1.0], (12, 1)))
    score = functools.partial(mic_pairs.mic_e_pairs if kind == "mass" else score, table, budget=9.0, c=2)
    found, pairs = np.asarray(score()), mic_pairs.all_pairs(12)
    chosen = [0, 12, 40, 65]
    np.testing.assert_allclose(score(pairs[chosen]), found[chosen], rtol=0, atol=1e-12)
    order = np.random.default_rng(0).permutation(66)
    np.testing.assert_array_equal(score(pairs[order][:, ::-1]), found[order])


@pytest.mark.full
def test_counting_by_bits_equals_adding_records(monkeypatch):
    table = jnp.asarray(np.random.default_rng(0).uniform(size=(130, 12)))
    score = functools.partial(mic_pairs.mic_r_pairs, bounds=np.tile([0.0, 1.0], (12, 1)), budget=6.0, c=2)
    found = score(table)
    monkeypatch.setattr(mic_blocks, "_WORDS_BELOW", 0)
    jax.clear_caches()
    np.testing.assert_allclose(score(table), found, rtol=0, atol=1e-12)
    inside = jax.jit(score)(table)
    np.testing.assert_allclose(inside, found, rtol=0, atol=1e-12)


@pytest.mark.full
def test_single_precision_is_close():
    x, y = scatter(6, 60)
    exact = float(coefficients.mic_r(x, y, bounds=BOX, budget=12.0, c=3))
    single = float(coefficients.mic_r(x.astype(np.float32), y.astype(np.float32), bounds=BOX, budget=12.0, c=3))
    assert single == pytest.approx(exact, abs=5e-6)


def test_exchanging_the_columns_transposes_the_matrix():
    x, y = scatter(7, 60)
    forward = coefficients.characteristic_matrix_r(x, y, bounds=BOX, budget=12.0, c=3)
    np.testing.assert_allclose(
        forward, coefficients.characteristic_matrix_r(y, x, bounds=BOX, budget=12.0, c=3).T, atol=1e-12
    )
    allowed = np.outer(range(2, 7), range(2, 7)) <= 12
    np.testing.assert_array_equal(np.isfinite(forward), allowed)


@pytest.mark.full
def test_mic_star_of_known_laws():
    known = coefficients.mic_star(jnp.stack([jnp.ones((6, 6)), jnp.eye(6)]))
    np.testing.assert_allclose(known, [0.0, 1.0], atol=1e-12)
    density = np.random.default_rng(0).uniform(size=(5, 6))
    every = [
        reference.best_over_segments(t, k) / np.log2(k) for t in (density, density.T) for k in range(2, t.shape[0] + 1)
    ]
    assert float(coefficients.mic_star(density)) == pytest.approx(max(every), abs=1e-12)


CONSTANT, RAMP = np.full(100, 0.3), np.linspace(0, 1, 100)
FIXTURE_SIZE = {"budget": 100**0.6, "c": 15.0}


@pytest.mark.parametrize(("x", "y"), [(CONSTANT, RAMP), (RAMP, CONSTANT), (CONSTANT, CONSTANT)])
def test_constant_columns_share_no_range_information(x, y):
    assert float(coefficients.mic_r(x[:60], y[:60], bounds=BOX, budget=12.0, c=3)) == pytest.approx(0.0, abs=1e-14)
    assert float(mic_minepy.mic_e(x, y, **FIXTURE_SIZE)) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.full
def test_tied_columns_look_independent_to_mic_e():
    ties = float(coefficients.mic_e(np.zeros(60), np.zeros(60), budget=12.0, c=3))
    draws = np.random.default_rng(0).uniform(size=(200, 2, 60))
    null = mic_pairs.halves(
        jnp.argsort(jnp.concatenate([draws[:, 0], draws[:, 1]]).T, axis=0).astype(jnp.int32),
        mic_grids.buckets(mic_grids.grids(12.0, 3), 200),
        "mass",
    )
    assert ties <= float(jnp.max(null)), "the two scramblings of the record numbers are related"
    for count in (7, 1000, 4096):
        for stream in (1, 2):
            assert len(np.unique(mic_bins.record_priority(count, stream))) == count


def test_two_rows_and_two_clusters():
    assert float(coefficients.mic_r([0.1, 0.9], [0.2, 0.7], bounds=BOX, budget=4, c=2)) == pytest.approx(1.0)
    assert float(coefficients.mic_e([0.1, 0.9], [0.2, 0.7], budget=4, c=2)) == pytest.approx(1.0)


def test_bad_values_follow_the_declared_policy():
    x, y = scatter(8, 100)
    odd = x.copy()
    odd[:4] = [np.nan, np.inf, -np.inf, 7.0]
    clean = x.copy()
    clean[:4] = [0.0, 1.0, 0.0, 1.0]
    settings = {"bounds": BOX, "budget": 12.0, "c": 3}
    found = [float(coefficients.mic_r(v[:60], y[:60], **settings)) for v in (odd, clean)]
    assert found[0] == found[1]
    low = x.copy()
    low[0] = -5.0
    missing = np.where(np.arange(100) == 0, np.nan, low)
    ours, theirs = (60, {"budget": 12.0, "c": 3}), (100, FIXTURE_SIZE)
    for mic_e, (keep, settings) in ((coefficients.mic_e, ours), (mic_minepy.mic_e, theirs)):
        found = [float(mic_e(v[:keep], y[:keep], **settings)) for v in (low, missing)]
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coefficients.mic_r([0.1, 0.2], [0.1, 0.2], bounds=((1, 0), (0, 1)), budget=4, c=1), "lower < upper"),
        (lambda: coefficients.mic_r([0.1, 0.2], [0.1, 0.2], bounds=((0, 1),), budget=4, c=1), "bounds"),
        (
            lambda: coefficients.mic_r([0.1, 0.2], [0.1, 0.2], bounds=BOX, budget=3.9, c=1),
            "budget must be a number >= 4",
        ),
        (lambda: coefficients.mic_r([0.1, 0.2], [0.1, 0.2], bounds=BOX, budget=float("nan"), c=1), "budget"),
        (lambda: coefficients.mic_r([0.1, 0.2], [0.1, 0.2], bounds=BOX, budget=4, c=0), "c must be"),
        (
            lambda: coefficients.mic_r([0.1, 0.2], [0.1, 0.2], bounds=BOX, budget=4, c=1, grid="minepy"),
            "grid must be one of",
        ),
        (lambda: coefficients.mic_e([0.1, 0.2], [0.1], budget=4, c=1), "one length"),
        (lambda: coefficients.mic_e([0.1], [0.1], budget=4, c=1), "n >= 2"),
        (lambda: coefficients.mic_e([0.1, 0.2], [0.1, 0.2], budget=4, c=1, grid="odd"), "grid must be one of"),
        (lambda: mic_pairs.mic_r_pairs(np.ones((4, 3)), bounds=[[0, 1]], budget=4, c=1), "bounds"),
        (lambda: mic_pairs.mic_e_pairs(np.ones((4, 3)), [[0, 3]], budget=4, c=1), "columns 0 to 2"),
    ],
)
def test_public_mistakes_raise_one_clear_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
