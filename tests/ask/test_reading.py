"""Ways of reading a table: every query has each of them, or refuses it in one sentence before anything is read."""

import dataclasses
import inspect

import jax
import numpy as np
import pytest
import queries

import jaxdp
from jaxdp.ask.calls import READING, CallOptions
from jaxdp.ask.reading import Reading, Table
from jaxdp.cli.main import main
from jaxdp.data.streamed import rows_of

SCHEMA = {"columns": {name: {"kind": "binary", "levels": [0, 1]} for name in "abc"}}
VALUES = {"strict": True, "records": 200, "force": True, "missing": "refuse", "memory": "1GB", "keep_sums": "sums"}
VALUES["rows"] = "first"  # of persons, which is the subject of tests/data/test_person_rows.py
CALLS = {
    "test": lambda table, **how: jaxdp.test(table, x="a", y="b", **how),
    "pairs": lambda table, **how: jaxdp.test_pairs(table, columns=["a", "b"], **how),
    "mic": lambda table, **how: jaxdp.mic(table, x="a", y="b", max_cells=4, **how),
    "describe": lambda table, **how: jaxdp.describe(table, **how),
    "discover": lambda table, **how: jaxdp.discover(table, **how),
}
SESSION = {
    "test": lambda session: session.test("a", "b"),
    "pairs": lambda session: session.test_pairs(["a", "b"]),
    "mic": lambda session: session.mic("a", "b", max_cells=4),
    "describe": lambda session: session.describe(),
    "discover": lambda session: session.discover(),
}
MANY = ("pairs", "mic", "discover")
REFUSED = {
    (name, way)
    for name, asked in queries.EVERY.items()
    for way in VALUES
    if asked.in_a_folder and way not in asked.query.ways
}


def table(size=200):
    a, b, c = np.random.default_rng(0).integers(0, 2, (3, size))
    return {"a": a, "b": b, "c": c}


@pytest.fixture
def file(tmp_path):
    rows = np.stack(list(table().values()), axis=1)
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in rows.tolist())]) + "\n")
    (tmp_path / "s.toml").write_text("".join(f'[columns.{k}]\nkind = "binary"\nlevels = ["0", "1"]\n' for k in "abc"))
    return path


def test_the_ways_are_the_fields_of_reading():
    assert set(VALUES) == set(READING) == {field.name for field in dataclasses.fields(Reading)}


@pytest.mark.parametrize(("name", "way"), sorted(REFUSED))
def test_what_a_query_can_not_read_is_refused_in_one_sentence(name, way, tmp_path):
    with pytest.raises(ValueError, match=f"leave out {way}.$"):
        queries.EVERY[name].ask(tmp_path, key=jax.random.key(0), **{way: VALUES[way]})


@pytest.mark.full
@pytest.mark.parametrize("name", MANY)
def test_every_other_way_gives_the_same_answer(name, file):
    """A simulation of the same file, read in each way and plainly; what counts as an empty cell is told of two."""
    how = {"epsilon": 3.0, "schema": str(file.with_name("s.toml"))}
    ways = [{way: value} for way, value in VALUES.items() if way not in ("keep_sums", "rows")]
    plain, *found = (CALLS[name](str(file), key=jax.random.key(0), **how, **more).to_dict() for more in ({}, *ways))
    told = [[text for text in one.pop("cautions", []) if text.startswith("Lines and cells")] for one in found]
    assert [bool(texts) for texts in told] == [bool({"strict", "force"} & set(way)) for way in ways]
    plain.pop("cautions", None)
    assert [repr(one) for one in found] == [repr(plain)] * len(ways)


def test_a_table_beyond_memory_is_refused_by_mic_before_it_is_read(file, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(Reading, "limit", 1000)
    with pytest.raises(ValueError, match=r"^mic must have all records in memory: .*name fewer columns, or give more"):
        CALLS["mic"](str(file), epsilon=1.0, schema=str(file.with_name("s.toml")), ledger=object())
    words = ["mic", str(file), "--schema", str(file.with_name("s.toml")), "--x", "a", "--y", "b", "--epsilon", "1"]
    assert main([*words, "--memory", "1GB", "--seed", "1", "--out", str(tmp_path / "out")]) == 2
    assert "mic must have all records in memory" in capsys.readouterr().err


@pytest.mark.parametrize("name", SESSION)
def test_a_session_hands_every_way_on(name, monkeypatch, file):
    seen = []
    usual = Table.of.__func__

    def of(cls, *args, **how):
        seen.append({way: how.get(way) for way in VALUES if way in how})
        return usual(cls, *args, **how)

    session = jaxdp.Session(
        str(file),
        schema=str(file.with_name("s.toml")),
        epsilon=9.0,
        queries=3,
        key=jax.random.key(0),
        memory="1GB",
        records=200,
    )
    monkeypatch.setattr(Table, "of", classmethod(of))
    SESSION[name](session)
    assert seen == [{"memory": "1GB", "records": 200}]


@pytest.mark.parametrize("name", ["test", "test_pairs", "mic", "discover", "Session"])
def test_help_shows_the_shared_keywords(name):
    shown = inspect.signature(getattr(jaxdp, name)).parameters
    assert set(CallOptions.__annotations__) - set(shown) == {way for call, way in REFUSED if call == name}
    assert not [part for part in shown.values() if part.kind is part.VAR_KEYWORD]
    assert (shown["strict"].default, shown["memory"].default) == (False, None)


@pytest.mark.parametrize("name", ["test", "mic", "discover", "gwas"])
def test_a_command_has_the_ways_of_reading_that_it_accepts(name, capsys):
    """Neither its help nor that of the function shows a way that it always refuses."""
    assert main([name, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    refused = {way for call, way in REFUSED if call == name}
    assert {way for way in READING if f"--{way.replace('_', '-')} " in told} == set(READING) - refused
    assert set(READING).intersection(inspect.signature(getattr(jaxdp, name)).parameters) == set(READING) - refused
    assert ("in chunks" in told) == (name in ("test", "discover"))  # of --keep-sums


def test_a_misspelt_keyword_is_told():
    with pytest.raises(TypeError, match="no keyword 'recrods'; did you mean 'records'"):
        CALLS["mic"](table(), epsilon=1.0, schema=SCHEMA, recrods=3)
    with pytest.raises(TypeError, match="no keyword 'memroy'; did you mean 'memory'"):
        jaxdp.Session(table(), epsilon=1.0, schema=SCHEMA, memroy="1GB")


def test_ways_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="goes without --strict"):
        Reading(strict=True, force=True)
    with pytest.raises(ValueError, match="memory must be a size"):
        Reading(memory="much")
    assert Reading(memory="2GB").memory == Reading(memory="2GB").limit == 2 * 10**9


@pytest.mark.parametrize(("unit", "told"), [("", "2 records lack a value, or"), ("patient", "2 rows lack a value, or")])
def test_what_is_left_out_is_counted_in_rows_where_a_record_is_a_person(unit, told, capsys):
    """The answer counts persons: a person with another row is not left out."""
    rows = {"patient": np.repeat(np.arange(60), 2), "x": np.tile([0.1, 0.6], 60), "y": np.linspace(0.0, 1.0, 120)}
    rows["y"][[3, 7]] = np.nan
    rows = rows if unit else {name: rows[name] for name in ("x", "y")}
    schema = {"missing": "drop"} | ({"unit": unit} if unit else {})
    schema["columns"] = {name: {"kind": "continuous", "bounds": [0, 1]} for name in ("x", "y")}
    answer = jaxdp.test(rows, schema=schema, x="x", y="y", epsilon=1.0, key=jax.random.key(0))
    assert answer.to_dict()["n"] == (60 if unit else 118)
    assert f"jaxdp: {told}" in capsys.readouterr().err


def parquet(folder, size=200):
    pandas, path = pytest.importorskip("pandas"), folder / "t.parquet"
    pytest.importorskip("pyarrow")
    pandas.DataFrame(table(size)).to_parquet(path)
    return path


@pytest.mark.parametrize("columns", [["a", "b"], ["a", "b", "c"]])
def test_all_pairs_take_the_stated_number_of_records_whatever_a_file_holds(tmp_path, columns):
    """In chunks the file's own number once came out after the charge, to a caller who must not see it."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0)
    how = {"columns": columns, "epsilon": 1.0, "schema": SCHEMA, "strict": True, "records": 150, "ledger": ledger}
    found = jaxdp.test_pairs(parquet(tmp_path), **how, keep_sums=tmp_path / "sums")
    assert found.content["n"] == 150
    assert ledger.spent.epsilon == pytest.approx(1.0)


def test_no_message_says_how_many_rows_a_file_holds_where_their_number_is_stated(tmp_path, monkeypatch):
    path = parquet(tmp_path, 4321)
    monkeypatch.setattr("jaxdp.data.streamed.BYTES_PER_VALUE", 10**6)
    how = {"schema": SCHEMA, "epsilon": 1.0, "memory": "100MB", "strict": True, "records": 1000}
    continuous = {"columns": {name: {"kind": "continuous", "bounds": [0, 1]} for name in "abc"}}
    for refused in (
        lambda: jaxdp.mic(path, x="a", y="b", **how),
        lambda: jaxdp.describe(path, **how),
        lambda: jaxdp.discover(path, method="neighbour_pc", **how | {"schema": continuous}),
    ):
        with pytest.raises(ValueError, match="the table has about 1000") as caught:
            refused()
        assert "4321" not in str(caught.value)


def test_a_search_does_not_say_how_many_rows_persons_have(tmp_path, monkeypatch):
    pandas, path = pytest.importorskip("pandas"), tmp_path / "t.parquet"
    pandas.DataFrame({**table(4321), "id": np.arange(4321) // 2}).to_parquet(path)
    monkeypatch.setattr("jaxdp.data.streamed.BYTES_PER_VALUE", 10**6)
    schema = {"unit": "id", "columns": {name: {"kind": "continuous", "bounds": [0, 1]} for name in "abc"}}
    with pytest.raises(ValueError, match=r"and the table has more \(for the owner") as caught:
        jaxdp.discover(path, schema=schema, epsilon=1.0, method="neighbour_pc", memory="100MB")
    assert "4321" not in str(caught.value)


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("strict", [False, True])
def test_rows_are_counted_by_the_delimiter_of_the_schema(tmp_path, monkeypatch, delimiter, strict):
    """A file of semicolons once counted as fitting into any memory, and its sums could not be kept."""
    path = tmp_path / "t.csv"
    rows = np.stack(list(table().values()), axis=1).tolist()
    path.write_text("\n".join([delimiter.join("abc"), *(delimiter.join(map(str, row)) for row in rows)]) + "\n")
    schema = {"delimiter": delimiter, **SCHEMA}
    assert rows_of(path, delimiter, strict) == 200
    if not strict:
        how = {"schema": schema, "x": "a", "y": "b", "epsilon": 1.0}
        kept = jaxdp.test(path, **how, key=jax.random.key(0), keep_sums=tmp_path / "sums")
        assert kept.p_value == jaxdp.test(path, **how, key=jax.random.key(0)).p_value
    monkeypatch.setattr("jaxdp.data.streamed.BYTES_PER_VALUE", 10**6)
    with pytest.raises(ValueError, match="strict reading of a file" if strict else "fit into 0.1 GB"):
        jaxdp.mic(path, schema=schema, x="a", y="b", epsilon=1.0, memory="100MB", strict=strict)


def test_a_session_on_a_ledger_has_no_delta_of_its_own(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0, delta=1e-6)
    with pytest.raises(ValueError, match="delta = 1e-06 is of the budget that the session keeps"):
        jaxdp.Session(table(), schema=SCHEMA, ledger=ledger, delta=1e-6)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-7, 1e300])
def test_an_epsilon_out_of_range_is_told_the_range(epsilon):
    with pytest.raises(ValueError, match="epsilon must lie between 1e-06 and 1000"):
        jaxdp.test(table(), schema=SCHEMA, x="a", y="b", epsilon=epsilon)


def test_a_name_with_a_dot_that_is_not_quoted_is_told_so():
    with pytest.raises(ValueError, match=r"a name with a dot stands in quotes, as in \[columns"):
        jaxdp.test(table(), schema={"columns": {"a": {"b": SCHEMA["columns"]["a"]}}}, x="a", y="b", epsilon=1.0)
