"""Tables that are read in chunks: files of a folder, Arrow data sets, DuckDB, Dask; the same answers as in memory."""

import functools
import io
import json
import os
import shutil
import stat

import jax
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import jaxdp
from jaxdp.ask import reading
from jaxdp.cli import main as command
from jaxdp.data import batches, kept_sums, parse_report, readers, streamed
from jaxdp.data.column_rules import column_rule
from jaxdp.data.schema import Schema

ROWS = 4000
SPEC = {
    "columns": {
        "x": {"kind": "continuous", "bounds": [-5, 15]},
        "y": {"kind": "continuous", "bounds": [-5, 15], "missing": 1},
        "z": {"kind": "ordinal", "levels": [0, 1, 2, 3]},
        "b": {"kind": "binary", "levels": ["no", "yes"], "missing": "no", "other": "yes"},
        "g": {"kind": "ordinal", "levels": [1, 2, 3], "missing": 1, "other": 1},
    }
}
QUERIES = {
    "partition-gcm": {"x": "x", "y": "y", "given": "z"},
    "conditional-kendall": {"x": "b", "y": "g", "given": "z"},
    "noisy-table": {"x": "b", "y": "g"},
}


def made_up(rows=ROWS):
    """A table with missing cells, unknown levels, values outside, texts and several types."""
    rng = np.random.default_rng(11)
    z = rng.integers(0, 4, rows)
    x, y = (np.where(rng.random(rows) < 0.02, 99.0 + (e := rng.normal(size=rows)), 2.0 * z + e) for _ in range(2))
    b = np.array(["no", "yes", "perhaps", " no", ""], object)[rng.choice(5, rows, p=[0.4, 0.4, 0.1, 0.05, 0.05])]
    b[rng.random(rows) < 0.02] = None
    missing = rng.random(rows) < 0.03
    return pa.table(
        {
            "x": pa.array(x, pa.float32()),
            "y": pa.array(y, mask=missing),
            "z": pa.array(z, pa.int8()),
            "b": pa.array(b.tolist(), pa.string()).dictionary_encode(),
            "g": pa.array(rng.integers(0, 5, rows), pa.int64(), mask=missing),
            "unused": pa.array(np.arange(rows)),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The table as three Parquet files in a folder, beside files that do not count."""
    place, table = tmp_path_factory.mktemp("large"), made_up()
    for number, (start, size) in enumerate(((0, 1500), (1500, 700), (2200, 1800))):
        part = place / f"part={number}"
        part.mkdir()
        pa.parquet.write_table(table.slice(start, size), part / "rows.parquet", row_group_size=400)
    (place / "_SUCCESS").write_text("")
    (place / ".hidden.parquet").write_text("not a table")
    return place


@pytest.fixture
def small_memory(monkeypatch):
    """As if nothing fitted into memory, with chunks of a few hundred rows."""
    monkeypatch.setattr(reading.Reading, "limit", 1000)
    monkeypatch.setattr(streamed, "MIN_ROWS", 300)


def asked(source, method, **how):
    return jaxdp.test(source, schema=SPEC, method=method, epsilon=1.0, key=jax.random.key(5), **QUERIES[method], **how)


@functools.cache
def in_memory(method):
    """What the table in memory releases."""
    return asked(made_up(), method).release


def same_release(one, other, method):
    room = 2.0**-15 * ROWS + 1e-6 if method == "partition-gcm" else 1e-9
    for left, right in zip(jax.tree.leaves(one.value), jax.tree.leaves(other.value), strict=True):
        np.testing.assert_allclose(np.asarray(left, float), np.asarray(right, float), rtol=1e-12, atol=room)


@pytest.mark.parametrize("method", QUERIES)
def test_a_folder_gives_the_answer_of_the_table_in_memory(folder, small_memory, method):
    same_release(asked(str(folder), method).release, in_memory(method), method)


def sources(folder):
    """The same table from every kind of source."""
    found = sorted(map(str, folder.rglob("rows.parquet")))
    yield "glob", f"{folder}/*/rows.parquet"
    yield "arrow", pa.dataset.dataset(found, format="parquet")
    duckdb = pytest.importorskip("duckdb")
    yield "duckdb", duckdb.sql(f"select * from read_parquet({found!r})")
    yield "query", f"duckdb:select * from read_parquet({found!r}) where true"
    yield "function", lambda: pa.dataset.dataset(found, format="parquet").to_batches()
    yield "stream", Streamed(made_up())
    frame = pytest.importorskip("dask.dataframe")
    yield "dask", frame.read_parquet(found)


class Streamed:
    """Speaks the Arrow PyCapsule protocol alone."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.full
def test_every_source_gives_the_sums_of_the_table_in_memory(folder, small_memory):
    for name, source in sources(folder):
        for method in ("conditional-kendall", "noisy-table"):
            same_release(asked(source, method).release, in_memory(method), method)
        assert batches.of(source).count() == ROWS, name


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("", "the query is empty"),
        ("select x fro t", r"cannot be read \(ParserException\): run it in DuckDB"),
        ("select x from missing", r"cannot be planned \(CatalogException\)"),
        ("create table t as select 1 as x", "must be one SELECT"),
        ("select 1 as x; select 2 as x", "must be one SELECT"),
        ("select cast('secret' as int) as x, 1 as y from range(20)", "the query (failed|cannot)"),
    ],
)
def test_a_mistake_in_a_query_is_told_without_a_cell(query, wrong):
    pytest.importorskip("duckdb")
    with pytest.raises(ValueError, match=wrong) as error:
        list(batches.of(f"duckdb:{query}").read(["x"]))
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None


def test_a_folder_without_tables_is_told_on_the_command_line(tmp_path, capsys):
    (tmp_path / "schema.json").write_text(json.dumps(SPEC))
    words = ["--schema", str(tmp_path / "schema.json"), "--x", "b", "--y", "g", "--epsilon", "1"]
    for source in (tmp_path / "*.parquet", folder_of(tmp_path / "empty")):
        assert command.main(["test", str(source), *words, "--out", str(tmp_path / "out")]) == 2
        assert f"{source}: no data files" in capsys.readouterr().err


def folder_of(path):
    path.mkdir()
    return path


def test_a_query_is_asked_on_the_command_line(folder, small_memory, tmp_path, capsys):
    pytest.importorskip("duckdb")
    (tmp_path / "schema.json").write_text(json.dumps(SPEC))
    query = f"duckdb:select b, g from '{folder}/*/*.parquet' where z < 2"
    words = [
        "test",
        query,
        "--schema",
        str(tmp_path / "schema.json"),
        "--x",
        "b",
        "--y",
        "g",
        "--method",
        "noisy-table",
    ]
    assert command.main([*words, "--epsilon", "1", "--memory", "1GB", "--out", str(tmp_path / "out"), "--json"]) == 0
    rows = int(np.sum(made_up()["z"].to_numpy() < 2))
    assert f'"n": {rows}' in capsys.readouterr().out


def test_the_schema_and_the_check_of_a_query_and_of_a_folder(folder, tmp_path, capsys):
    pytest.importorskip("duckdb")
    (tmp_path / "schema.json").write_text(json.dumps(SPEC))
    for source in (f"duckdb:select * from '{folder}/*/*.parquet'", str(folder)):
        assert command.main(["schema", "draft", source]) == 0
        drafted = capsys.readouterr().out
        assert all(f"[columns.{name}]" in drafted for name in ("x", "b", "unused"))
        assert command.main(["check", source, "--schema", str(tmp_path / "schema.json")]) == 0
        assert "4000" in capsys.readouterr().out


def test_a_reader_that_gives_its_rows_once_is_refused(small_memory):
    with pytest.raises(ValueError, match=r"gives its rows once.*reader.read_all"):
        asked(made_up().to_reader(), "noisy-table")


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64(), pa.bool_()])
@pytest.mark.parametrize("levels", [[0, 1, 2], ["0", "1", "2"], None])
def test_whole_numbers_with_gaps_count_as_objects_do(kind, levels):
    rule = {"kind": "ordinal", "levels": levels} if levels else {"kind": "continuous", "bounds": [0, 3], "missing": 1}
    rule = column_rule("a", rule)
    cells = [None, True, False, None] if kind == pa.bool_() else [None, 0, 1, 2, 3, None, 100]
    cells += [] if kind in (pa.bool_(), pa.int8()) else [2**53 + 1, 2**62 + 1]
    column = readers._cells("a", pa.chunked_array([pa.array(cells[:2], kind), pa.array(cells[2:], kind)]), False)
    objects, counted = np.array(cells, object), [parse_report.ColumnReport(rule), parse_report.ColumnReport(rule)]
    np.testing.assert_array_equal(rule.codes(column), rule.codes(objects))
    for one, values in zip(counted, (column, objects), strict=True):
        one.add(values)
    assert vars(counted[0]).keys() == vars(counted[1]).keys()
    assert str(counted[0]) == str(counted[1])
    np.testing.assert_array_equal(rule.codes(column[1:3]), rule.codes(objects[1:3]))


def test_texts_are_read_in_chunks_too(tmp_path, small_memory):
    made_up().to_pandas().to_csv(tmp_path / "table.csv", index=False)
    for source in (tmp_path / "table.csv", f"{tmp_path}/*.csv", tmp_path):
        same_release(asked(source, "noisy-table").release, asked(made_up(), "noisy-table").release, "noisy-table")


def test_each_cell_counts_as_in_memory(folder):
    """The coding of every cell, column by column, is that of the reader of tables in memory."""
    schema, names = Schema.from_dict(SPEC), tuple(SPEC["columns"])
    whole, _ = schema.read_table(made_up(), names)
    parts, _ = schema.read_table(str(folder), names)
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("levels", [[0, 1, 2], [1, 5, 9], [0.5, 2, 3], [-3, 7], [1, 2**40]])
def test_whole_numbers_are_coded_as_by_the_comparison_of_each(levels):
    rule = column_rule("a", {"kind": "ordinal", "levels": levels, "other": levels[1]})
    for kind in (np.int8, np.int16, np.int64, np.uint8, np.uint32, np.uint64):
        ends = np.iinfo(kind)
        near = [value for value in (-4, -3, -1, 0, 1, 2, 3, 5, 7, 9, 100, 2**40) if ends.min <= value <= ends.max]
        values = np.array([ends.min, ends.max, *near], kind)
        np.testing.assert_array_equal(rule.codes(values), rule.codes(values.astype(object)))


def test_a_table_that_fits_is_read_as_one(folder, monkeypatch):
    monkeypatch.setattr(streamed, "stream", None)
    same_release(asked(str(folder), "noisy-table").release, in_memory("noisy-table"), "noisy-table")


def test_a_test_that_needs_all_records_refuses_before_it_reads(folder, small_memory, monkeypatch):
    monkeypatch.setattr(readers, "pieces", None)
    with pytest.raises(ValueError, match=r"band-gcm must have all records in memory: .*about \d+ records fit .*4000"):
        jaxdp.test(
            str(folder), schema=SPEC, method="band-gcm", epsilon=1.0, x="x", y="y", given="z", key=jax.random.key(0)
        )


def test_the_owner_is_told_of_a_column_that_does_not_parse(folder, small_memory):
    wrong = {"columns": SPEC["columns"] | {"b": {"kind": "binary", "levels": ["0", "1"]}}}
    ask = functools.partial(
        jaxdp.test, str(folder), schema=wrong, method="noisy-table", x="b", y="g", epsilon=1.0, key=jax.random.key(0)
    )
    with pytest.raises(ValueError, match=r"'b' does not parse.*nothing was charged"):
        ask()
    assert ask(force=True).mode == "simulation"


def test_a_release_is_charged_once(folder, small_memory, tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.db", epsilon=2.0)
    answer = jaxdp.test(
        str(folder), schema=SPEC, method="noisy-table", x="b", y="g", epsilon=1.0, ledger=ledger, strict=True
    )
    assert answer.mode == "release"
    assert float(ledger.spent.epsilon) == pytest.approx(1.0)


def test_public_mistakes_of_sources_say_what_to_do(folder, tmp_path, small_memory):
    with pytest.raises(FileNotFoundError, match="no data files"):
        asked(f"{tmp_path}/*.parquet", "noisy-table")
    (tmp_path / "notes.md").write_text("read me")
    with pytest.raises(ValueError, match=r"no tables, such as notes.md"):
        asked(tmp_path, "noisy-table")
    (tmp_path / "notes.md").unlink()
    (tmp_path / "a.csv").write_text("x\n1\n")
    pa.parquet.write_table(made_up(), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="files of different kinds"):
        asked(tmp_path, "noisy-table")
    with pytest.raises(ValueError, match="column 'h' is not in"):
        list(batches.of(str(folder)).read(["h"]))


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 * 10**9), ("500 MB", 5 * 10**8), (10**9, 10**9)])
def test_memory_is_a_size(text, size):
    assert reading.bytes_of(text) == size


@pytest.mark.parametrize("text", ["2 apples", "-1", "1kB", True])
def test_memory_that_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="memory must be a size"):
        reading.bytes_of(text)


def test_the_command_reads_a_folder(folder, small_memory, tmp_path, capsys):
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SPEC))
    words = ["test", str(folder), "--schema", str(schema), "--x", "b", "--y", "g", "--method", "noisy-table"]
    words += ["--epsilon", "1", "--memory", "1GB", "--out", str(tmp_path / "out"), "--json"]
    assert command.main(words) == 0
    assert '"n": 4000' in capsys.readouterr().out


@pytest.mark.parametrize("method", ["table_pc", "max_min_pc", pytest.param("moment_pc", marks=pytest.mark.full)])
@pytest.mark.parametrize("as_codes", [True, False])
def test_a_search_of_a_folder_is_that_of_the_table_in_memory(folder, small_memory, monkeypatch, method, as_codes):
    """Columns of levels as codes of a byte, or sums in chunks: the same draws, and so the same graph."""
    monkeypatch.setattr(streamed, "BYTES_PER_CODE", 0 if as_codes else 10**6)
    ask = functools.partial(jaxdp.discover, schema=SPEC, method=method, epsilon=2.0, columns=["z", "b", "g"])
    if method == "max_min_pc" and not as_codes:
        with pytest.raises(ValueError, match=r"max_min_pc must have all records in memory.*moment_pc or table_pc"):
            ask(str(folder), key=jax.random.key(3))
        return
    found, wanted = (ask(source, key=jax.random.key(3)) for source in (str(folder), made_up()))
    np.testing.assert_array_equal(found.cpdag, wanted.cpdag)
    values = [[decision.value for decision in graph.decisions] for graph in (found, wanted)]
    np.testing.assert_allclose(*values, rtol=1e-3)  # a simulation adds the moments of a table in memory in float32


@pytest.mark.full
def test_a_search_of_continuous_columns_takes_sums(folder, small_memory):
    found, wanted = (
        jaxdp.discover(source, schema=SPEC, epsilon=2.0, columns=["x", "y", "z"], key=jax.random.key(3), **settings)
        for source, settings in ((str(folder), {}), (made_up(), {"method": "moment_pc"}))
    )
    assert found.method == "moment_pc"  # its sums come in chunks; in memory neighbour_pc would be chosen
    assert found.to_dict() | {"note": ""} == wanted.to_dict() | {"note": ""}


class InterruptedPassError(Exception):
    """As if the process were killed."""


def killed_at(monkeypatch, file):
    """The next reading stops as that file is opened; () -> the files that were opened."""
    opened, real = [], streamed._chunks

    def chunks(pieces, columns, count, chosen):
        if getattr(pieces, "keywords", None):
            opened.append(pieces.keywords["source"].split("part=")[1][0])
            if opened[-1] == file:
                raise InterruptedPassError
        return real(pieces, columns, count, chosen)

    monkeypatch.setattr(streamed, "_chunks", chunks)
    return opened


def interrupted(monkeypatch, file, ask):
    with monkeypatch.context() as patched:
        killed_at(patched, file)
        with pytest.raises(InterruptedPassError):
            ask()


def test_an_interrupted_pass_goes_on_where_it_was(folder, small_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_sums, "SECONDS", 0.0)
    kept = tmp_path / "kept"
    interrupted(monkeypatch, "2", functools.partial(asked, str(folder), "noisy-table", keep_sums=kept))
    assert sorted(path.name for path in kept.iterdir()) == ["0.sums", kept_sums.NOTICE]
    assert "NO NOISE" in (kept / kept_sums.NOTICE).read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.iterdir()} == {0o600}
    with monkeypatch.context() as patched:
        opened = killed_at(patched, None)
        same_release(asked(str(folder), "noisy-table", keep_sums=kept).release, in_memory("noisy-table"), "noisy-table")
    assert opened == ["2"]
    assert not kept.exists()


def test_later_stages_go_on_where_they_follow_the_same_release(folder, small_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_sums, "SECONDS", 0.0)
    kept, ask = tmp_path / "kept", functools.partial(asked, str(folder), "partition-gcm", keep_sums=tmp_path / "kept")
    wanted = in_memory("partition-gcm")
    interrupted(monkeypatch, "1", ask)
    with monkeypatch.context() as patched:
        opened = killed_at(patched, None)
        same_release(ask().release, wanted, "partition-gcm")
    assert opened[:2] == ["1", "2"]
    assert not kept.exists()


JOINT = {"method": "pair-contrasts", "fields": {"num_null": 39}}
KEEPING = {
    "pairs together": lambda source, **how: jaxdp.test_pairs(source, columns=["z", "b", "g"], **JOINT, **how),
    "pairs in turn": lambda source, **how: jaxdp.test_pairs(source, columns=["b", "g"], given="z", **how),
    "graph": lambda source, **how: jaxdp.discover(source, columns=["z", "b", "g"], method="table_pc", **how),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.full] * (name != "graph")) for name in KEEPING])
def test_other_queries_go_on_with_kept_sums_too(name, folder, small_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_sums, "SECONDS", 0.0)
    monkeypatch.setattr(streamed, "BYTES_PER_CODE", 10**6)
    kept, how = tmp_path / "kept", {"schema": SPEC, "epsilon": 3.0}
    ask = functools.partial(KEEPING[name], str(folder), **how, keep_sums=kept)
    interrupted(monkeypatch, "2", lambda: ask(key=jax.random.key(5)))
    assert list(kept.iterdir())
    with monkeypatch.context() as patched:
        opened = killed_at(patched, None)
        found = ask(key=jax.random.key(5)).to_dict()
    assert opened[0] == "2"
    assert not kept.exists()
    plain = KEEPING[name](str(folder), **how, key=jax.random.key(5)).to_dict()
    assert repr(found) == repr(plain)


def test_a_test_without_sums_says_so_where_the_table_is_not_too_large(folder, tmp_path):
    with pytest.raises(ValueError, match=r"band-gcm has no sums to keep, and this table fits .* leave keep_sums out"):
        jaxdp.test(
            str(folder),
            schema=SPEC,
            method="band-gcm",
            epsilon=1.0,
            **QUERIES["partition-gcm"],
            keep_sums=tmp_path / "kept",
        )


def test_kept_sums_of_something_else_are_refused(folder, small_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_sums, "SECONDS", 0.0)
    kept, copied = tmp_path / "kept", tmp_path / "copied"
    shutil.copytree(folder, copied)
    ask = functools.partial(asked, str(copied), keep_sums=kept)
    interrupted(monkeypatch, "2", functools.partial(ask, "noisy-table"))
    with pytest.raises(ValueError, match="of another query"):
        ask("conditional-kendall")
    touched = copied / "part=1" / "rows.parquet"
    os.utime(touched, ns=(1, 1))
    with pytest.raises(ValueError, match="files that have changed since"):
        ask("noisy-table")
    kept.chmod(0o755)
    with pytest.raises(ValueError, match=r"may be entered by others.*chmod 700"):
        ask("noisy-table")
    with pytest.raises(ValueError, match="holds other files"):
        asked(str(copied), "noisy-table", keep_sums=private(tmp_path / "other"))
    with pytest.raises(ValueError, match="holds other files"):
        asked(str(copied), "noisy-table", keep_sums=private(tmp_path / "noted", kept_sums.NOTICE, b"of another"))
    for number, content in enumerate((b"check sums", npz(rows=1))):
        with pytest.raises(ValueError, match="holds other files"):
            asked(str(copied), "noisy-table", keep_sums=private(tmp_path / f"{number}", "0.sums", content))
    with pytest.raises(ValueError, match="sums are kept of files alone"):
        asked(pa.dataset.dataset(str(folder)), "noisy-table", keep_sums=tmp_path / "new")


def private(folder, name="mine.txt", content=b"mine"):
    folder.mkdir(mode=0o700)
    (folder / name).write_bytes(content)
    return folder


def npz(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


@pytest.mark.parametrize("method", ["margin-adaptive", "unit-circle"])
def test_public_groups_are_counted_before_the_sums_are_taken(folder, small_memory, method):
    """The labels y are public, so they are read by themselves; what is private is two counts."""
    table = made_up()
    table = table.append_column("h", pa.array((table["z"].to_numpy() > 1).astype(np.int8)))
    spec = {"columns": SPEC["columns"] | {"h": {"kind": "binary", "levels": [0, 1]}}}
    found, wanted = (
        jaxdp.test(source, schema=spec, method=method, epsilon=1.0, key=jax.random.key(5), x="b", y="h")
        for source in (lambda: table.to_batches(max_chunksize=700), table)
    )
    np.testing.assert_array_equal(found.release.value, wanted.release.value)
    assert found.p_value == wanted.p_value


PAIRS = {
    "partition-gcm": {"columns": ["x", "y", "g"], "given": "z"},
    "winsorised-partial-correlation": {"columns": ["x", "y", "g"], "given": "z"},
    "conditional-kendall": {"columns": ["z", "b", "g"]},
    "quantile-table": {"columns": ["x", "b", "y"]},
}


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[pytest.mark.full] * (name == "quantile-table")) for name in PAIRS]
)
def test_all_pairs_of_a_folder_are_those_of_the_table_in_memory(folder, small_memory, method):
    fields = {"num_null": 39} if method == "quantile-table" else {}
    found, wanted = (
        jaxdp.test_pairs(
            source, schema=SPEC, epsilon=6.0, method=method, key=jax.random.key(3), fields=fields, **PAIRS[method]
        )
        for source in (str(folder), made_up())
    )
    room = 2e-2 if method == "partition-gcm" else 1e-9
    named = [{(pair["x"], pair["y"]): pair["p_value"] for pair in answers.pairs} for answers in (found, wanted)]
    assert named[0].keys() == named[1].keys()
    for pair, value in named[0].items():
        assert value == pytest.approx(named[1][pair], abs=room), pair
    assert found.cost.epsilon == wanted.cost.epsilon


def test_pairs_whose_test_needs_all_records_are_refused_before_reading(folder, small_memory, monkeypatch):
    monkeypatch.setattr(readers, "pieces", None)
    with pytest.raises(ValueError, match=r"must have all records in memory"):
        jaxdp.test_pairs(str(folder), schema=SPEC, epsilon=1.0, columns=["x", "y"], given="z", method="band-gcm")


def test_a_default_without_sums_names_what_would_work(folder, small_memory, monkeypatch):
    """Two numbers as Z have no default with sums: tests within coarse cells would find what Z explains."""
    monkeypatch.setattr(readers, "pieces", None)
    columns = {name: {"kind": "continuous", "bounds": [-5, 15]} for name in ("x", "y", "z", "g")}
    ask = functools.partial(jaxdp.test, str(folder), schema={"columns": columns}, epsilon=1.0, key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"^contrast-gcm must have all records in memory: [^;]*: use more memory\.$"):
        ask(x="x", y="y", given=["z", "g"])
    with pytest.raises(ValueError, match=r": use a test with sums \(quantile-table or partition-gcm\), or more memory"):
        jaxdp.test(str(folder), schema=SPEC, method="mann-whitney", epsilon=1.0, x="b", y="x", key=jax.random.key(0))


@pytest.mark.full
def test_sums_of_one_and_of_three_workers_are_equal(folder, small_memory):
    distributed = pytest.importorskip("distributed")
    frame = pytest.importorskip("dask.dataframe").read_parquet(sorted(map(str, folder.rglob("rows.parquet"))))
    frame = frame.repartition(npartitions=9)
    for workers in (1, 3):
        with (
            distributed.LocalCluster(workers, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
            distributed.Client(cluster),
        ):
            for method in QUERIES:
                same_release(asked(frame, method).release, in_memory(method), method)


@pytest.mark.full
def test_sums_of_a_cluster_are_exact_when_a_worker_dies(folder, small_memory):
    """Two processes; one is killed while it works. Counts are integers, and equal to those of the table in memory."""
    distributed = pytest.importorskip("distributed")
    frame = pytest.importorskip("dask.dataframe").read_parquet(sorted(map(str, folder.rglob("rows.parquet"))))
    frame = frame.repartition(npartitions=12)
    columns = streamed.Columns(Schema.from_dict(SPEC), ("b",), ("g",), ("z",), True)
    query = jaxdp.ConditionalKendall(epsilon=1.0)
    stream = streamed.stream(frame, columns, memory=10**9)
    query = jaxdp.core.specialize(query, stream)
    wanted = query.partial(columns.coded(next(readers.pieces(made_up(), columns.names))))
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def slow(chunk):
            if os.getpid() == pids[0]:
                os.kill(pids[0], 9)
            return query.partial(chunk, ROWS)

        found = stream.total(slow, query.merge)
        assert pids[0] not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found, wanted)


TYPED = "columns = {{'x': 'INTEGER', 'y': 'INTEGER', 'z': 'INTEGER'}}"


@pytest.mark.parametrize("read", ["read_csv('{}', header = true, %s)", "READ_CSV_AUTO('{}', %s)"])
def test_a_query_on_texts_is_refused_if_strict_and_what_is_wrong_with_it_is_for_the_owner(tmp_path, read):
    """One cell decides what DuckDB takes a column for, or that the first line is no header."""
    pytest.importorskip("duckdb")
    lines = ["x,y,z", *(f"{place % 7},1,3" for place in range(60_000))]
    lines[50_001] = "SECRET-4711,1,3"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    query = f"duckdb:select * from {(read % TYPED).format(path)}"
    how = {"x": "x", "y": "y", "bounds": {"x": [0, 7], "y": [0, 2]}, "epsilon": 1.0}
    with pytest.raises(ValueError, match="strict reading takes no query on texts"):
        jaxdp.test(query, **how, strict=True, records=60_000)
    with pytest.raises(ValueError, match=r"the query failed .* \(for the owner of the file") as error:
        jaxdp.test(query, **how)
    assert "SECRET" not in str(error.value)
    with pytest.raises(ValueError, match=r"column 'w' is not in the query .* \(for the owner of the file"):
        list(batches.of(query).read(["w"]))


def test_a_query_on_typed_files_may_be_strict(folder):
    pytest.importorskip("duckdb")
    query = f"duckdb:select b, g from '{folder}/*/*.parquet'"
    asked = jaxdp.test(query, x="b", y="g", schema=SPEC, epsilon=1.0, strict=True, key=jax.random.key(1))
    assert asked.to_dict()["n"] == 4000
    with pytest.raises(ValueError, match=r"column 'w' is not in the query \(2 columns\): check its name\.$"):
        list(batches.of(query).read(["w"]))
