"""`levels = "hashed:16"`: the public hash, every reader, what an answer says of it, and where it is refused."""

import gzip
import hashlib
import json

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.cli.main import main
from jaxdp.data import hashed_levels
from jaxdp.data.column_rules import column_rule
from jaxdp.data.schema import Schema

ROWS = 400
SCHEMA = {
    "columns": {
        "town": {"kind": "categorical", "levels": "hashed:16"},
        "ill": {"kind": "binary", "levels": ["no", "yes"]},
        "sex": {"kind": "binary", "levels": ["f", "m"]},
    }
}


def table(rows=ROWS):
    rng = np.random.default_rng(3)
    towns = [f"Ort {place} \N{LATIN SMALL LETTER U WITH DIAERESIS}" for place in range(60)]
    return {
        "town": rng.choice(towns, rows).tolist(),
        "ill": rng.choice(["no", "yes"], rows).tolist(),
        "sex": rng.choice(["f", "m"], rows).tolist(),
    }


def cells(texts, count=16):
    """The documented hash, by another road."""
    return [int(hashlib.sha256(text.encode()).hexdigest()[:16], 16) % count for text in texts]


def write(folder):
    data = table()
    lines = [",".join(data), *(",".join(row) for row in zip(*data.values(), strict=True))]
    path = folder / "d.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def schema_file(folder):
    path = folder / "s.json"
    path.write_text(json.dumps(SCHEMA))
    return path


def codes(source):
    return Schema.from_dict(SCHEMA).read_table(source, ["town"])[0][:, 0].tolist()


def test_the_hash_is_the_documented_one_and_never_changes():
    assert [hashed_levels.cell(text, 16) for text in ("north", "south", "\u00fc")] == cells(
        ["north", "south", "\u00fc"]
    )
    assert cells(["north", "south"]) == [1, 3]
    assert len({hashed_levels.cell(str(k), 16) for k in range(500)}) == 16


def test_every_reader_puts_a_record_into_the_same_cell(tmp_path):
    pandas, polars, pyarrow, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow", "duckdb"))
    path, data = write(tmp_path), table()
    expected = cells(data["town"])
    assert len(set(expected)) > 12
    with gzip.open(tmp_path / "d.csv.gz", "wb") as file:
        file.write(path.read_bytes())
    frame = pandas.DataFrame(data)
    frame.to_parquet(tmp_path / "d.parquet")
    sources = [
        path,
        tmp_path / "d.csv.gz",
        tmp_path / "d.parquet",
        data,
        frame,
        frame.astype({"town": "category"}),
        polars.DataFrame(data),
        pyarrow.table(data),
        duckdb.from_df(frame),
    ]
    for source in sources:
        assert codes(source) == expected


def test_chunks_are_answered_as_a_whole_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "d.parquet"
    pandas.DataFrame(table()).to_parquet(path)
    found = []
    for kept in ({}, {"keep_sums": tmp_path / "sums"}):  # sums are those of chunks
        answer = jaxdp.test(path, x="town", y="ill", schema=SCHEMA, epsilon=1.0, key=jax.random.key(0), **kept)
        found.append(float(answer.p_value))
    assert found[0] == pytest.approx(found[1])


def test_numbers_are_hashed_as_they_are_written():
    assert codes({"town": np.array([1, 2, 30])}) == cells(["1", "2", "30"]) == codes({"town": ["1 ", "2", "30"]})


def test_what_an_empty_cell_counts_as():
    rule = column_rule("town", {"kind": "categorical", "levels": "hashed:4"})
    assert not any(rule.present(["", "NA", None]))
    assert all(rule.present(["x", "cell 1", "other"]))
    filled = column_rule("town", {"kind": "categorical", "levels": "hashed:4", "missing": "at home"})
    assert filled.codes(["", "at home", None]).tolist() == cells(["at home"] * 3, 4)
    with pytest.raises(ValueError, match="are empty or hold no value"):
        jaxdp.test(
            table() | {"town": [""] * 100 + table()["town"][100:]}, x="town", y="ill", schema=SCHEMA, epsilon=1.0
        )


def test_a_record_is_coded_by_itself():
    data = table()["town"]
    assert codes({"town": data[:1]}) == codes({"town": data})[:1]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"kind": "ordinal", "levels": "hashed:16"}, "have no order"),
        ({"kind": "binary", "levels": "hashed:2"}, "have no order"),
        ({"kind": "categorical", "levels": "hashed"}, 'written as "hashed:16"'),
        ({"kind": "categorical", "levels": "hashed:1"}, "2 to 256 cells, got 1"),
        ({"kind": "categorical", "levels": "hashed:999"}, "2 to 256 cells, got 999"),
        ({"kind": "categorical", "levels": "hashed:16", "other": "x"}, "every text and no other"),
        ({"kind": "categorical", "levels": "hash:16"}, r'a list \(or "hashed:16"\)'),
        ({"kind": "categorical", "levels": "hashed:16", "missing": True}, "missing must be a text"),
    ],
)
def test_a_mistake_in_the_schema_is_told(entry, told):
    with pytest.raises((TypeError, ValueError), match=told):
        column_rule("town", entry)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: jaxdp.test(table(), x="ill", y="sex", given="town", schema=SCHEMA, epsilon=1.0),
        lambda: jaxdp.test_pairs(table(), given="town", schema=SCHEMA, epsilon=1.0),
        lambda: jaxdp.discover(table(), schema=SCHEMA, epsilon=1.0),
        lambda: Schema.from_dict(SCHEMA).read(table(), x="ill", y="sex", given="town"),
    ],
)
def test_hashed_levels_are_never_conditioned_on(ask):
    with pytest.raises(ValueError, match=r"'town' has hashed levels and cannot be conditioned on.*--levels-of"):
        ask()


SAID = "Hashed levels (town into 16 cells): a cell holds several levels"


def test_every_answer_names_them():
    keys = iter(jax.random.split(jax.random.key(1), 5))
    levels = {"town": "hashed:16", "ill": ["no", "yes"], "sex": ["f", "m"]}
    one = jaxdp.test(table(), x="town", y="ill", given="sex", levels=levels, epsilon=1.0, key=next(keys))
    answers = [
        one,
        jaxdp.test_pairs(table(), schema=SCHEMA, epsilon=1.0, key=next(keys)),
        jaxdp.describe(table(), schema=SCHEMA, epsilon=1.0, key=next(keys)),
        jaxdp.mic(table(), columns=["town", "ill"], schema=SCHEMA, max_cells=40, epsilon=1.0, key=next(keys)),
    ]
    for answer in answers:
        assert SAID in " ".join(answer.content["cautions"])
    other = jaxdp.test(table(), x="sex", y="ill", schema=SCHEMA, epsilon=1.0, key=next(keys))
    assert SAID not in " ".join(other.content["cautions"])
    assert [level["level"] for level in answers[2].content["columns"][0]["levels"]][:2] == ["cell 1", "cell 2"]


def test_the_command_line_takes_them(tmp_path, capsys):
    path, schema = write(tmp_path), schema_file(tmp_path)
    assert main(["check", str(path), "--schema", str(schema)]) == 0
    asked = ["test", str(path), "--schema", str(schema), "--x", "town", "--y", "ill", "--given", "sex"]
    assert main([*asked, "--epsilon", "1", "--seed", "1", "--out", str(tmp_path / "out")]) == 0
    assert SAID in " ".join(json.loads((tmp_path / "out" / "result.json").read_text())["cautions"])
    assert SAID in " ".join(capsys.readouterr().out.split())
    assert main([*asked[:-4], "--y", "sex", "--given", "town", "--epsilon", "1", "--seed", "1"]) == 2
    assert "cannot be conditioned on" in capsys.readouterr().err
    draft = ["schema", "draft", str(path), "--kind", "categorical", "--levels", "hashed:16"]
    assert main([*draft, "--out", str(tmp_path / "every.toml")]) == 0
    assert Schema.load(tmp_path / "every.toml").rule("town").hashed
