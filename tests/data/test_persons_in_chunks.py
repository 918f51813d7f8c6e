"""Tables in chunks whose rows are not all records: several rows of a person, incomplete rows that are left out."""

import dataclasses
import functools

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from test_uses_z import Unpaid

import jaxdp
from jaxdp import catalogue
from jaxdp._base.owner import OWNER
from jaxdp.ask import reading
from jaxdp.data import streamed
from jaxdp.data.chosen_rows import ChosenRows
from jaxdp.data.chunks import RowsOfDraws
from jaxdp.data.dataset import Column, Domain
from jaxdp.data.person_rows import PersonRows
from jaxdp.data.schema import Schema
from jaxdp.data.units import DrawnRows
from jaxdp.independence.tables import noisy_table
from jaxdp.spec import Options

PERSONS = 700
COLUMNS = {
    "b": {"kind": "binary", "levels": ["no", "yes"]},
    "g": {"kind": "ordinal", "levels": [1, 2, 3], "missing": 1},
    "z": {"kind": "ordinal", "levels": [0, 1, 2, 3]},
    "v": {"kind": "continuous", "bounds": [-5, 5]},
    "w": {"kind": "continuous", "bounds": [-5, 5]},
}
BY_PERSON = {"columns": COLUMNS, "unit": "id", "rows": "random"}
SCHEMAS = {
    "one row drawn": BY_PERSON,
    "the first row": BY_PERSON | {"rows": "first"},
    "complete rows": {"columns": COLUMNS, "missing": "drop"},
    "one complete row": BY_PERSON | {"missing": "drop"},
}
ALL_ROWS = {
    "all rows": BY_PERSON | {"rows": "all"},
    "all complete rows": BY_PERSON | {"rows": "all", "missing": "drop"},
}
QUERIES = {
    "noisy-table": {"x": "b", "y": "g"},
    "conditional-kendall": {"x": "b", "y": "g", "given": "z"},
    "partition-gcm": {"x": "v", "y": "g", "given": "z"},
    "partial-correlation": {"x": "v", "y": "g", "given": "z"},
    "mean-difference": {"x": "b", "y": "v"},
    "linear-regression": {"x": "v", "y": "w", "given": "z"},
    "winsorised-partial-correlation": {"x": "v", "y": "w", "given": "z"},
    "winsorised-mean-difference": {"x": "b", "y": "v"},
    "stratified-table": {"x": "b", "y": "g", "given": "z"},
    "quantile-table": {"x": "v", "y": "w"},
    "band-gcm": {"x": "v", "y": "g", "given": "w"},
}
FIRST = ("noisy-table", "conditional-kendall", "partition-gcm", "partial-correlation", "mean-difference")
OF_MEANS = ("partial-correlation", "mean-difference", "conditional-kendall")  # statistics that draws are averaged of
MORE_OF_MEANS = ("linear-regression", "winsorised-partial-correlation", "winsorised-mean-difference")
JUDGED_BY_PERSON = ("noisy-table", "partition-gcm", "stratified-table")  # by a second moment of persons


def made_up(seed=3):
    """Persons with one to nine rows, who come in no order, and cells without a value."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(PERSONS), rng.integers(1, 10, PERSONS))
    rng.shuffle(ids)
    rows = len(ids)
    return pa.table(
        {
            "id": pa.array([f"person {one}" for one in ids]),
            "b": pa.array(rng.choice(["no", "yes"], rows), mask=rng.random(rows) < 0.1),
            "g": pa.array(rng.integers(1, 4, rows), pa.int64(), mask=rng.random(rows) < 0.2),
            "z": pa.array(rng.integers(0, 4, rows)),
            "v": pa.array(rng.normal(size=rows)),
            "w": pa.array(rng.normal(size=rows)),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, table = tmp_path_factory.mktemp("persons"), made_up()
    third = len(table) // 3
    for number in range(4):
        pa.parquet.write_table(table.slice(number * third, third), place / f"{number}.parquet", row_group_size=100)
    return str(place)


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr(reading.Reading, "limit", 1000)
    monkeypatch.setattr(streamed, "MIN_ROWS", 150)


def asked(source, method, schema, **how):
    how = {"force": True, "key": jax.random.key(5), "epsilon": 1.0} | how
    return jaxdp.test(source, schema=schema, method=method, **QUERIES[method], **how)


@pytest.mark.parametrize(
    ("method", "schema"),
    [
        *((method, schema) for method in FIRST for schema in SCHEMAS),
        *((method, schema) for method in OF_MEANS for schema in ALL_ROWS),
        *((method, "all rows") for method in JUDGED_BY_PERSON),
        *(pytest.param(method, "all complete rows", marks=pytest.mark.full) for method in JUDGED_BY_PERSON),
        *(pytest.param(method, "all rows", marks=pytest.mark.full) for method in (*MORE_OF_MEANS, "quantile-table")),
    ],
)
def test_the_release_is_that_of_the_table_in_memory(folder, small_memory, monkeypatch, method, schema):
    spec = (SCHEMAS | ALL_ROWS)[schema]
    how = {"epsilon": 30.0 if method in JUDGED_BY_PERSON else 3.0}  # noise would leave no share to a second moment
    chunked = asked(folder, method, spec, **how)
    with monkeypatch.context() as patched:
        patched.setattr(reading.Reading, "limit", 10**12)
        wanted = asked(made_up(), method, spec, **how)
    for left, right in zip(*(jax.tree.leaves(one.release.value) for one in (chunked, wanted)), strict=True):
        np.testing.assert_allclose(np.asarray(left, float), np.asarray(right, float), rtol=1e-12, atol=1e-2)
    assert _names_of(chunked.release) == _names_of(wanted.release)
    assert chunked.content["n"] == wanted.content["n"]
    assert chunked.content["unit"] == wanted.content["unit"]


def _names_of(release):
    return [type(one.value).__name__ for one in (*release.earlier, release)], jax.tree.structure(release.value)


def test_pairs_and_searches_take_the_same_records(folder, small_memory, monkeypatch):
    names = ["b", "g", "z"]
    how = {"schema": SCHEMAS["one complete row"], "columns": names, "epsilon": 2.0, "force": True}

    def both(source):
        pairs = jaxdp.test_pairs(source, key=jax.random.key(3), **how)
        graph = jaxdp.discover(source, method="table_pc", key=jax.random.key(4), **how)
        return [row["p_value"] for row in pairs.pairs], graph

    with monkeypatch.context() as patched:
        patched.setattr(reading.Reading, "limit", 10**12)
        wanted, whole = both(made_up())
    found, graph = both(folder)
    assert found == pytest.approx(wanted)
    np.testing.assert_array_equal(graph.cpdag, whole.cpdag)
    monkeypatch.setattr(streamed, "BYTES_PER_CODE", 10**6)  # sums of chunks in place of codes
    np.testing.assert_array_equal(both(folder)[1].cpdag, whole.cpdag)


def test_one_row_of_each_person_counts_whatever_the_order_of_a_pass():
    ids = np.random.default_rng(1).permutation(np.repeat(np.arange(50), 4))
    chosen = ChosenRows(Schema.from_dict(BY_PERSON), ["b"])
    chosen.find(iter([{"b": ["no"] * 200, "id": ids}]), None)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(ids)
        records = chosen.one_pass()
        kept = np.concatenate([records({"id": part})[0][:, 0] for part in np.split(order, 8)])
        assert sorted(order[kept]) == list(range(50)), seed
    with pytest.raises(ValueError, match="other units than in the pass before"):
        chosen.one_pass()({"id": [50]})


class OfPersons(jaxdp.PartialCorrelation):
    """A stranger's: of persons it releases another statistic, whose bound says nothing about a mean over draws."""

    def statistic_of_persons(self, key, rows):
        return super().statistic_of_persons(key, rows)


class Finished(jaxdp.PartitionGCM):
    """A stranger's, which has sums of records, but whose sums of persons are those of another statistic."""

    def statistic_of_persons(self, key, rows):
        return super().statistic_of_persons(key, rows)

    def finish(self, totals):
        return super().finish(totals)


def test_a_subclass_with_a_statistic_of_persons_of_its_own_has_no_sums_of_them():
    shapes = jaxdp.Data(*(jax.ShapeDtypeStruct((500,), float) for _ in range(3)))
    for cls, told in (
        (jaxdp.PartialCorrelation, ""),
        (jaxdp.PartitionGCM, ""),
        (OfPersons, "its statistic of persons is not the one that its sums give"),
        (Finished, "its statistic of persons is not the one that its sums give"),
    ):
        last = jaxdp.core.specialize(cls(epsilon=1.0), shapes)
        while isinstance(last, jaxdp.core.Sequential):
            last = last.second
        assert jaxdp.core.needs_all(last, shapes, of_persons=True) == told
        assert jaxdp.core.needs_all(last, shapes) == ""


def test_each_draw_has_one_row_of_each_person_and_takes_rows_equally_often_whatever_the_order_of_a_pass():
    counts = np.random.default_rng(2).integers(1, 40, 60)
    ids = np.random.default_rng(1).permutation(np.repeat(np.arange(60), counts))
    chosen = ChosenRows(Schema.from_dict(BY_PERSON), ["b"], hidden=True, draws=16)
    chosen.find(iter([{"b": ["no"] * len(ids), "id": ids}]), None)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(ids)
        records = chosen.one_pass()
        drawn = np.concatenate([records({"id": part})[0] for part in np.array_split(order, 8)])
        assert drawn.shape == (len(ids), 16)
        for draw in drawn.T:
            assert sorted(order[draw]) == list(range(60))
        for person, count in enumerate(counts):
            times = drawn[order == person].sum(axis=1)
            assert times.max() - times.min() <= 1, (person, count)


def test_a_release_draws_rows_by_a_secret():
    piece = {"b": ["no"] * 400, "id": np.repeat(np.arange(40), 10)}

    def drawn(hidden):
        found = ChosenRows(Schema.from_dict(BY_PERSON), ["b"], hidden).find(iter([piece]), None)
        return np.flatnonzero(found.one_pass()(piece)[0][:, 0]) % 10

    assert np.array_equal(drawn(False), drawn(False))
    releases = [drawn(True) for _ in range(200)]
    assert not np.array_equal(*releases[:2])
    counts = np.bincount(np.concatenate(releases), minlength=10)
    assert np.all(np.abs(counts - 800) < 5 * 800**0.5)  # each row of a person as often as any other


@pytest.mark.parametrize(
    ("ask", "way_out"),
    [
        (lambda at, how: asked(at, "band-gcm", BY_PERSON | {"rows": "all"}, **how), "must have all records in memory"),
        (lambda at, how: asked(at, "noisy-table", BY_PERSON, keep_sums="sums", **how), "leave out keep_sums"),
        (
            lambda at, how: asked(at, "noisy-table", BY_PERSON, records=700, **how),
            "cannot be combined with strict or records",
        ),
        (
            lambda at, how: jaxdp.test(at, schema=BY_PERSON, x="b", y="b2", epsilon=1.0, method="unit-circle", **how),
            "one complete row for each record",
        ),
        (
            lambda at, how: jaxdp.discover(at, schema=BY_PERSON, columns=["b", "v"], epsilon=1.0, **how),
            "name a search by --method",
        ),
    ],
)
def test_what_chunks_cannot_do_is_refused_before_a_charge(folder, small_memory, tmp_path, monkeypatch, ask, way_out):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(COLUMNS, "b2", COLUMNS["b"])
    with pytest.raises(ValueError, match=way_out):
        ask(folder, {"ledger": Unpaid(), "key": None, "force": False})


@pytest.mark.parametrize(
    "ask",
    [
        lambda at, how: asked(at, "band-gcm", BY_PERSON | {"rows": "all"}, **how),
        lambda at, how: jaxdp.test(
            at, schema=BY_PERSON, epsilon=1.0, method="test-of-tests", **QUERIES["partition-gcm"], **how
        ),
        lambda at, how: jaxdp.discover(at, schema=BY_PERSON, columns=["b", "v"], epsilon=1.0, **how),
    ],
)
def test_a_refusal_that_shows_how_many_rows_persons_have_is_marked_for_the_owner(folder, small_memory, ask):
    with pytest.raises(ValueError, match="memory") as refused:
        ask(folder, {"ledger": Unpaid(), "key": None, "force": False})
    assert OWNER in str(refused.value)
    assert "the table has about" not in str(refused.value)


def rows_of(persons, levels, rng, columns=()):
    """Rows of persons who have one to nine of them, and which of these are drawn: what a pass over chunks gives."""
    owners = np.repeat(np.arange(persons), rng.integers(1, 10, persons))
    rng.shuffle(owners)
    chosen = DrawnRows("all", 16)
    chosen.add(owners.tolist())
    drawn, places = chosen.one_pass()(owners.tolist())
    if levels:
        data = jaxdp.Data(*(rng.integers(0, count, len(owners)).astype(float) for count in levels))
    else:
        data = jaxdp.Data(
            *(rng.uniform(-1, 1, (len(owners), count)) for count in columns), rng.uniform(-1, 1, len(owners))
        )
    return RowsOfDraws(data, drawn, places)


def in_memory(rows):
    """The same draws as arrays, the persons in the order of their places."""
    order = [np.flatnonzero(drawn)[np.argsort(rows.persons[drawn])] for drawn in rows.drawn.T]
    return PersonRows.of_draws([jax.tree.map(lambda leaf, at=at: leaf[at], rows.rows) for at in order])


@pytest.mark.parametrize("columns", [(1, 1), (2, 3)])
@pytest.mark.parametrize("weights", [None, (1.0, -0.25, 0.6, float("nan"))])
@pytest.mark.parametrize("chunks", [1, 40])
def test_products_of_persons_add_up_to_the_statistic_of_persons(columns, weights, chunks):
    """40 chunks: a draw has no row in some of them."""
    rows = rows_of(90, None, np.random.default_rng(4), columns)
    test = jaxdp.PartitionGCM(epsilon=1.0, by_person=True, num_cells=4, weights=weights)
    with jax.enable_x64(True):
        whole = in_memory(rows)
        query = jaxdp.core.specialize(test, whole.shapes)
        wanted = query.statistic_of_persons(None, whole)
        found = query.finish_of_persons(summed_in(chunks, query, rows))
    assert found.keys() == wanted.keys() >= {"persons"}
    for name in wanted:
        assert np.shape(found[name]) == np.shape(wanted[name])
        np.testing.assert_allclose(found[name], wanted[name], atol=90 * query.lattice, rtol=1e-4)


@pytest.mark.parametrize("levels", [(2, 3), (4, 5, 3)])
@pytest.mark.parametrize("chunks", [1, 40])
def test_cells_of_persons_give_the_second_moment_of_persons(levels, chunks, monkeypatch):
    rows, domain = rows_of(90, levels, np.random.default_rng(5)), Domain(*((Column(levels=count),) for count in levels))
    rows = dataclasses.replace(rows, rows=dataclasses.replace(rows.rows, domain=domain))
    monkeypatch.setattr(noisy_table, "BLOCK_PERSONS", 32)
    with jax.enable_x64(True):
        whole = in_memory(rows)
        method = "stratified-table" if len(levels) == 3 else "noisy-table"
        table = catalogue.find(method).build(30.0, domain, Options(num_records=90))
        table = jaxdp.core.specialize(dataclasses.replace(table, by_person=True), whole.shapes)
        first = jaxdp.release(table.first, jax.random.key(1), whole)
        query = table.then(table.second, table.first, first)
        found, wanted = query.finish_of_persons(summed_in(chunks, query, rows)), query.statistic_of_persons(None, whole)
    assert 0.0 < float(wanted) < 90 * noisy_table.SPREAD
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def summed_in(chunks, query, rows):
    parts = np.array_split(np.arange(len(rows)), chunks)
    sums = [query.partial_of_persons(jax.tree.map(lambda leaf, at=at: leaf[at], rows), 90) for at in parts]
    return functools.reduce(query.merge, sums)
