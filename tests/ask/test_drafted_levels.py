"""`jaxdp.draft_schema(levels_of=...)`: what is named, what never leaves, sensitivity, charge, refusals, files."""

import itertools
import json
import pickle
import re
import tomllib

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.ask.draft_schema import ColumnLevels, DraftQuery
from jaxdp.cli.main import main
from jaxdp.data import parse_report
from jaxdp.data.column_rules import STABILITY
from jaxdp.data.schema import Schema
from jaxdp.data.vocabulary import NOT_NAMED, OTHER, Vocabulary

ROWS = 2000
SECRET = "Zacharias Quill"


def table(rows=ROWS):
    rng = np.random.default_rng(1)
    town = rng.choice(["north", "south", "west", "far"], rows, p=[0.5, 0.3, 0.195, 0.005]).astype(object)
    town[7] = SECRET
    return {
        "town": town,
        "name": np.array([f"person {place}" for place in range(rows)], object),
        "age": rng.normal(50.0, 12.0, rows),
        "ill": rng.choice(["no", "yes"], rows).astype(object),
    }


def drafted(levels_of=("town",), **how):
    how = {"epsilon": 1.0, "delta": 1e-6, "key": jax.random.key(3)} | how
    return jaxdp.draft_schema(table(), levels_of=list(levels_of), **how)


def counts(codes, columns=1):
    query = ColumnLevels(epsilon=1.0, delta=1e-6, num_columns=columns)
    return query.statistic(None, np.asarray(codes, float).reshape(-1, columns))


def test_a_replaced_record_moves_counts_by_two_at_most_and_some_by_two():
    most = 0
    for place in range(4):
        rest = [0, 0, 1, 3]
        found = [
            np.asarray(counts([*rest[:place], code, *rest[place + 1 :]])["00000"]) for code in (NOT_NAMED, 0, 1, 2, 3)
        ]
        most = max(most, *(int(np.abs(a - b).sum()) for a, b in itertools.combinations(found, 2)))
    declared = ColumnLevels(epsilon=1.0, delta=1e-6).sensitivity(4)["00000"]
    assert most == declared.bound == 2.0


def test_each_column_has_its_share_of_epsilon_and_of_delta():
    query = ColumnLevels(epsilon=1.0, delta=1e-6, num_columns=4)
    cost = jaxdp.core.cost_of(query, np.zeros((50, 4)))
    assert (float(cost.epsilon), float(cost.delta)) == (pytest.approx(1.0), pytest.approx(1e-6))
    assert query.threshold() > 3 * ColumnLevels(epsilon=1.0, delta=1e-6).threshold()


def test_frequent_levels_are_named_and_the_rest_is_one_level():
    found = drafted(["town", "name"])
    entry = found.columns["town"]
    assert entry["levels"] == ["north", "south", "west", OTHER]
    assert entry["other"] == OTHER
    assert entry["released"] == {
        "epsilon": 1.0,
        "columns": 2,
        "method": STABILITY,
        "delta": 1e-6,
        "least": entry["released"]["least"],
        "draft": found.columns["name"]["released"]["draft"],
        "simulated": True,
    }
    assert "levels" not in found.columns["name"]
    assert "hashed:16" in found.flags["name"]
    assert 'levels = "TODO"' in found.text
    with pytest.raises(ValueError, match=r"'name': no level stands out.* write levels from public knowledge"):
        _ = found.schema


def test_what_few_records_hold_leaves_nowhere(tmp_path, capsys, monkeypatch):
    """Not in the answer, its pickle, its text, messages of failures, nor the ledger."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=9.0, delta=1e-3)
    for key in (jax.random.key(2), None):
        found = drafted(ledger=None if key is not None else ledger, key=key)
        shown = [repr(found), found.text, str(found.columns), str(found.flags), repr(pickle.dumps(found))]
        assert not any(SECRET in text or "'far'" in text for text in shown)
    assert SECRET.encode() not in (tmp_path / "l.db").read_bytes()
    vocabulary = Vocabulary()
    vocabulary.codes([SECRET])
    assert repr(vocabulary) == "Vocabulary()"
    with pytest.raises(jaxdp.BudgetExhausted) as caught:
        drafted(ledger=jaxdp.Ledger.create(tmp_path / "small.db", epsilon=0.1, delta=1e-3), key=None)
    assert SECRET not in str(caught.value)
    monkeypatch.setattr(DraftQuery, "_entry_of_levels", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as broken:
        drafted(ledger=ledger, key=None)
    assert "The charge stands" in " ".join(broken.value.__notes__)
    assert SECRET not in str(broken.value) + " ".join(broken.value.__notes__)
    told = capsys.readouterr()
    assert SECRET not in told.out + told.err


def test_a_release_is_charged_once_for_bounds_and_levels(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0, delta=1e-5)
    found = drafted(columns=["age"], ledger=ledger, key=None)
    assert found.mode == "release"
    assert set(found.columns) == {"age", "town"}
    assert found.columns["age"]["bounds"][0] < 40
    drafted(ledger=ledger, key=None, epsilon=0.5)
    both, levels = ledger.rows()
    assert (both.method, both.epsilon, both.delta) == ("private-bounds+private-levels", 1.0, 1e-6)
    assert both.columns == "private bounds of age; private levels of town"
    assert (levels.method, levels.epsilon) == ("private-levels", 0.5)


@pytest.mark.parametrize("columns", [0, 1, 12])
@pytest.mark.parametrize("coded", [1, 3])
def test_what_is_released_costs_no_more_than_what_is_charged(columns, coded):
    numbers, texts = ([f"{kind}{place}" for place in range(count)] for kind, count in (("c", columns), ("t", coded)))
    query = DraftQuery.of(columns=numbers, levels_of=texts, epsilon=0.9, delta=1e-6)
    for method in ("quartiles", "centre-spread") if columns else (STABILITY,):
        cost = jaxdp.core.cost_of(query.query(method), np.zeros((9, columns + coded)))
        assert 0.899 <= float(cost.epsilon) <= 0.9 * (1 + 1e-12)  # shares are rounded down, their sum in floats is not
        assert float(cost.delta) <= query.paid_delta(method) == 1e-6


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"delta": 0.0}, r'cannot be found at delta 0.*--delta 1e-6.*levels = "hashed:16"'),
        ({"delta": 1e-13}, "at least 1e-12"),
        ({"delta": 0.01}, "more than one in 2000 records"),
        ({"epsilon": 0.02}, r"2000 records are too few for the levels of town: .* from about 13\d\d records on"),
        ({"columns": ["town"]}, "each once"),
    ],
)
def test_refusals_come_before_the_charge(tmp_path, how, told):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0, delta=0.1)
    with pytest.raises(ValueError, match=told):
        drafted(ledger=ledger, **{"key": None} | how)
    assert not ledger.rows()


def test_one_record_of_each_person_counts():
    rows = table()
    rows["patient"] = np.arange(ROWS) // 2
    rows["town"] = np.where(np.arange(ROWS) % 2 == 0, "even", rows["name"])  # every person has one row of each
    how = {"levels_of": ["town"], "delta": 1e-6, "epsilon": 0.1, "unit": "patient"}
    found = jaxdp.draft_schema(rows, **how, key=jax.random.key(4))
    assert found.columns["town"]["levels"] == ["even", OTHER]  # about half of 1000 persons
    assert found.columns["town"]["released"]["unit"] == "patient"
    assert found.columns["town"]["released"]["least"] > 250
    assert re.match(r"about [345]\d%", found.flags["town"])
    lone = {"town": np.where(rows["patient"] == 3, "hers", "all"), "patient": rows["patient"]}
    lone = {name: np.concatenate([own, own[6:8].repeat(1000)]) for name, own in lone.items()}  # one person, 2002 rows
    assert jaxdp.draft_schema(lone, **how, key=jax.random.key(5)).columns["town"]["levels"] == ["all", OTHER]


def test_others_count_as_unlisted_where_they_are_conditioned_on():
    rows = table()
    rng = np.random.default_rng(2)
    rows["town"] = rng.choice([*"abc", *(f"r{place}" for place in range(200))], ROWS, p=[0.3] * 3 + [0.0005] * 200)
    found = jaxdp.draft_schema(rows, levels_of=["town"], epsilon=1.0, delta=1e-6, key=jax.random.key(5))
    assert found.columns["town"]["levels"] == ["a", "b", "c", OTHER]
    columns = {**found.columns, "ill": {"kind": "binary", "levels": ["no", "yes"]}}
    schema = Schema.from_dict({"columns": columns | {"age": {"kind": "continuous", "bounds": [0, 100]}}})
    how = {"schema": schema, "epsilon": 1.0, "key": jax.random.key(6)}
    assert 0.0 <= float(jaxdp.test(rows, x="town", y="ill", **how).p_value) <= 1.0
    with pytest.raises(ValueError, match="column 'town' are empty or hold no value of it"):
        jaxdp.test(rows, x="age", y="ill", given="town", **how)
    how["key"] = jax.random.key(7)
    kept = jaxdp.test(rows, x="age", y="ill", given="town", missing="drop", **how)
    assert kept.content["n"] == np.isin(rows["town"], ["a", "b", "c"]).sum()
    report = parse_report.ParseReport()
    schema.read(rows | {"town": rows["name"]}, x="town", y="ill", report=report)
    assert not report.failing()  # all of them others: the column is what it was drafted as


def test_texts_that_can_be_no_level_are_not_numbered():
    vocabulary = Vocabulary()
    codes = vocabulary.codes(["a", "", "NA", OTHER, "x" * 81, "a\nb", 3, " a ", None, "b"])
    assert codes.tolist() == [0, -1, -1, -1, -1, -1, 1, 0, -1, 2]
    compact, numbers = Vocabulary.compact(codes[[1, 6, 9, 9]])
    assert compact.tolist() == [-1, 0, 1, 1]
    assert vocabulary.texts(numbers[[1, 0]]) == ["3", "b"]


@pytest.fixture
def csv_file(tmp_path):
    data = {name: table()[name] for name in ("town", "age", "ill")}
    lines = [",".join(data), *(",".join(map(str, row)) for row in zip(*data.values(), strict=True))]
    path = tmp_path / "study.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_every_reader_drafts_the_same(tmp_path, csv_file):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(csv_file)
    frame.to_parquet(tmp_path / "d.parquet")
    sources = [csv_file, tmp_path / "d.parquet", frame, frame.astype({"town": "category"}), table()]
    for source in sources:
        found = jaxdp.draft_schema(source, levels_of=["town"], epsilon=1.0, delta=1e-6, key=jax.random.key(3))
        assert found.columns["town"]["levels"] == ["north", "south", "west", OTHER]
    found = jaxdp.draft_schema(csv_file, levels_of=["town"], epsilon=1.0, delta=1e-6, strict=True)
    assert found.columns["town"]["levels"] == ["north", "south", "west", OTHER]


def test_from_a_file_with_a_header_to_an_answer(tmp_path, csv_file, capsys):
    ledger, schema = tmp_path / "l.db", tmp_path / "s.toml"
    assert main(["ledger", "create", str(ledger), "--epsilon", "3", "--delta", "1e-5"]) == 0
    draft = ["schema", "draft", str(csv_file), "--private", "--columns", "age", "--ledger", str(ledger)]
    draft += ["--epsilon", "1", "--out", str(schema)]
    assert main([*draft, "--levels-of", "town,ill"]) == 2
    assert "cannot be found at delta 0" in capsys.readouterr().err
    assert main([*draft, "--levels-of", "town,ill", "--delta", "1e-6"]) == 0
    said = capsys.readouterr().err
    assert "the bounds of age and the levels of town and ill cost epsilon=1.0, delta=1e-06" in said
    assert tomllib.loads(schema.read_text())["columns"]["ill"]["levels"] == ["no", "yes", OTHER]
    assert main(["check", str(csv_file), "--schema", str(schema)]) == 0
    checked = capsys.readouterr()
    assert "the private draft named no such level" in checked.out + checked.err
    assert "choose with other" not in checked.out + checked.err
    asked = ["test", str(csv_file), "--schema", str(schema), "--x", "town", "--y", "ill", "--epsilon", "1"]
    assert main([*asked, "--ledger", str(ledger), "--out", str(tmp_path / "out")]) == 0
    assert 0.0 <= json.loads((tmp_path / "out" / "result.json").read_text())["p_value"] <= 1.0
    assert next(row.method for row in jaxdp.Ledger.open(ledger).rows()) == "private-bounds+private-levels"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--levels-of", "town"], "--levels-of goes with --private"),
        (["--private", "--levels-of", "towns", "--epsilon", "1", "--seed", "1"], "no column 'towns'"),
        (["--private", "--columns", "age", "--levels", "town", "--epsilon", "1", "--seed", "1"], "--levels-of"),
        (["--private", "--epsilon", "1", "--seed", "1"], "--levels-of"),
    ],
)
def test_the_command_says_what_is_missing(csv_file, capsys, words, told):
    assert main(["schema", "draft", str(csv_file), *words]) == 2
    assert told in capsys.readouterr().err
