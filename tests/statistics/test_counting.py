"""Counting engines: bitmaps, cubes of margins and joint tables against NumPy, streams, dirty codes."""

import itertools

import jax
import numpy as np
import pytest

from jaxdp.data.records import as_records
from jaxdp.discovery.engine import counts, table_scores
from jaxdp.statistics.tables import contingency
from jaxdp.statistics.tables.bitmaps import Bitmaps

LEVELS = (1, 2, 3, 4, 5, 2, 3)


def counted(codes, columns):
    table = np.zeros([LEVELS[k] for k in columns], np.int64)
    np.add.at(table, tuple(codes[:, k] for k in columns), 1)
    return table


@pytest.fixture(scope="module")
def codes():
    rng = np.random.default_rng(0)
    return np.stack([np.minimum(rng.integers(0, n, 2500), rng.integers(0, n, 2500)) for n in LEVELS], axis=1)


@pytest.fixture(scope="module")
def engine(codes):
    return Bitmaps(codes, LEVELS)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_bitmaps_count_every_set_of_columns(engine, codes, size):
    for columns in itertools.combinations(range(len(LEVELS)), size):
        assert np.array_equal(engine.tables(np.array([columns]))[0], counted(codes, columns))


def test_bitmaps_keep_the_order_of_the_sets(engine, codes):
    """Reversed rows are a permutation that is its own inverse; repeated ones must come back as often."""
    for same in ([(5, 6), (1, 6), (1, 2)], [(1, 6), (5, 6)], [(1, 2), (1, 2), (1, 6)]):
        tables = engine.tables(np.array(same))
        for table, columns in zip(tables, same, strict=True):
            assert np.array_equal(table, counted(codes, columns))


def test_sets_of_many_cells_are_counted_from_records(engine, codes, monkeypatch):
    monkeypatch.setattr("jaxdp.statistics.bitmaps.MAX_CORNERS", 1)
    assert np.array_equal(engine.tables(np.array([[2, 3, 4]]))[0], counted(codes, (2, 3, 4)))


def test_bitmaps_of_a_stream_of_chunks(codes):
    streamed = Bitmaps((codes[start : start + 700] for start in range(0, len(codes), 700)), LEVELS)
    assert np.array_equal(streamed.tables(np.array([[1, 3, 6]]))[0], counted(codes, (1, 3, 6)))
    assert np.array_equal(
        contingency.joint_table((codes[start : start + 700] for start in range(0, len(codes), 700)), LEVELS),
        counted(codes, range(len(LEVELS))),
    )


@pytest.mark.parametrize(
    "dirty", [np.array([[-3, 9, 1], [0, 1, 700]]), np.array([[np.nan, np.inf, 1.7], [0, 1, -np.inf]])]
)
def test_both_engines_put_dirty_codes_into_the_nearest_level(dirty):
    levels = (2, 3, 2)
    joint = contingency.joint_table(dirty, levels)
    assert joint.sum() == 2
    assert np.array_equal(joint, Bitmaps(dirty, levels).tables(np.array([[0, 1, 2]]))[0])
    columns = [np.asarray(contingency.as_codes(dirty[:, k], n)) for k, n in enumerate(levels)]
    assert np.array_equal(contingency.codes_by_column(dirty, levels), np.stack(columns))


def test_cubes_joint_tables_and_bitmaps_agree_in_every_order_of_axes(codes, monkeypatch):
    records = as_records(codes, LEVELS)
    cube = counts.Counts(records)
    monkeypatch.setattr("jaxdp.discovery.engine.counts.CUBE_CELLS", 1)
    summed = counts.Counts(records)
    monkeypatch.setattr("jaxdp.discovery.engine.counts.JOINT_CELLS", 1)
    packed = counts.Counts(records)
    for sets in ([(0, 1, 2), (0, 5, 2), (0, 1, 6)], [(3, 1), (3, 5)], [(6, 0, 4, 1), (2, 0, 4, 5)]):
        for source in (cube, summed, packed):
            tables = source.tables(np.array(sets))
            for table, columns in zip(tables, sets, strict=True):
                assert np.array_equal(table, counted(codes, columns))


def test_batches_answer_every_query_once(codes):
    source = counts.Counts(as_records(codes, LEVELS))
    queries = [(i, j, given) for i, j in itertools.combinations(range(7), 2) for given in ((), (3,), (4, 2))]
    queries = [(i, j, given) for i, j, given in queries if not {i, j} & set(given)]
    seen = []
    for positions, batch in counts.batches(source, queries):
        seen += positions.tolist()
        for position, table in zip(positions, batch, strict=True):
            i, j, given = queries[position]
            pair = table.sum(axis=0)
            pair = pair if LEVELS[i] <= LEVELS[j] else pair.T
            assert np.array_equal(pair, counted(codes, (i, j)))
            assert sorted(table.sum((1, 2))) == sorted(counted(codes, given).ravel()) if given else True
    assert sorted(seen) == list(range(len(queries)))


def test_joint_table_traces():
    codes = np.array([[0, 1], [1, 2], [1, 2]])
    traced = jax.jit(lambda c: contingency.table([c[:, 0], c[:, 1]], (2, 3)))(codes)
    assert np.array_equal(traced, contingency.joint_table(codes, (2, 3)))


@pytest.mark.parametrize("most_corners", [512, 4])
def test_padded_batches_hold_the_same_counts_and_scores(codes, monkeypatch, most_corners):
    """Empty levels before the last change no statistic; sets of many cells are counted another way."""
    monkeypatch.setattr("jaxdp.discovery.engine.counts.JOINT_CELLS", 1)
    monkeypatch.setattr("jaxdp.statistics.bitmaps.MAX_CORNERS", most_corners)
    source = counts.Counts(as_records(codes, LEVELS))
    queries = [(i, j, given) for i, j in itertools.combinations(range(7), 2) for given in ((), (3,), (4, 2))]
    queries = [(i, j, given) for i, j, given in queries if not {i, j} & set(given)]
    for pad_from in (1, 3):
        seen = []
        for positions, batch in counts.batches(source, queries, pad_from):
            seen += positions.tolist()
            for position, table in zip(positions, batch, strict=True):
                i, j, given = queries[position]
                exact = counted(codes, (*given, *((i, j) if LEVELS[i] <= LEVELS[j] else (j, i))))
                assert sorted(table[table > 0]) == sorted(exact[exact > 0])
                if pad_from == 3:
                    assert (table.shape[-2:] == (2, 2)) == (LEVELS[i] == LEVELS[j] == 2)
        assert sorted(seen) == list(range(len(queries)))
        assert len(list(counts.batches(source, queries, pad_from))) < len(list(counts.batches(source, queries)))
    for statistic in ("chi2", "g", "kendall"):
        padded = table_scores.scores(source, queries, statistic)
        with monkeypatch.context() as exactly:
            exactly.setattr(counts.Counts, "can_pad", False)
            np.testing.assert_allclose(padded, table_scores.scores(source, queries, statistic), rtol=1e-9, atol=1e-9)
