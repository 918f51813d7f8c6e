"""An identifier of persons that repeats is named to the owner of a table, and to nobody else."""

import json
import warnings

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest

import jaxdp
from jaxdp._base.owner import OwnerWarning
from jaxdp.cli.main import main
from jaxdp.data import identifiers, plink, readers

PERSONS, VISITS, MARK = 60, 8, 7_000_001
SCHEMA = """[columns.dose]
kind = "continuous"
bounds = [-4, 4]
[columns.response]
kind = "continuous"
bounds = [-4, 4]
"""


def repeated(table):
    """What a `Watch` says of a whole table."""
    watch = identifiers.Watch.of(table, ",")
    if watch.names:
        for piece in readers.pieces(table, [], ",", also=watch.names):
            watch.add(piece)
    return watch.describe()


def panel(name="subject", seed=0, visits=VISITS):
    """Dose and response of each person, one value in all rows: independent persons, dependent rows."""
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(PERSONS), visits)
    made = {column: np.clip(rng.normal(size=PERSONS), -4, 4)[persons] for column in ("dose", "response")}
    return {name: persons + MARK, **made}


def asked(table, **how):
    return jaxdp.test(
        table, x="dose", y="response", epsilon=1.0, key=jax.random.key(0),
        **({"bounds": {"dose": (-4, 4), "response": (-4, 4)}} | how)
    )  # fmt: skip


def warned(table, **how):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asked(table, **how)
    return [str(one.message) for one in caught if issubclass(one.category, OwnerWarning)]


@pytest.fixture
def files(tmp_path):
    def write(table, schema=SCHEMA):
        pd.DataFrame(table).to_csv(tmp_path / "d.csv", index=False)
        (tmp_path / "s.toml").write_text(schema)
        return str(tmp_path / "d.csv"), str(tmp_path / "s.toml")

    return write


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize("name", ["subject", "patient_id", "code"])
def test_the_python_call_warns_about_a_column_that_no_schema_has(kind, name):
    told = warned(kind(panel(name)))
    if kind is pl.LazyFrame and name == "code":  # each look at a lazy table is a computation
        assert told == []
        return
    assert len(told) == 1
    assert repr(name) in told[0]
    assert f'unit = "{name}"' in told[0]
    assert "not for release" in told[0]
    assert str(MARK)[:4] not in told[0]


def test_no_warning_where_the_schema_says_unit_or_nothing_repeats():
    columns = {name: {"kind": "continuous", "bounds": [-4, 4]} for name in ("dose", "response")}
    assert warned(panel(), bounds=None, schema={"unit": "subject", "columns": columns}) == []
    assert warned(panel(visits=1)) == []


def test_the_warning_stands_in_the_line_of_the_caller():
    with pytest.warns(OwnerWarning) as caught:
        asked(panel())
    assert caught[0].filename == __file__


def test_the_command_warns_on_standard_error_and_writes_nothing_of_it(files, tmp_path, capsys):
    data, schema = files(panel())
    out = tmp_path / "out"
    command = ["test", data, "--schema", schema, "--x", "dose", "--y", "response", "--epsilon", "1", "--seed", "1"]
    assert main([*command, "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("'subject'") == 1
    assert "jaxdp: warning: column 'subject'" in shown.err
    written = shown.out + "".join(path.read_text() for path in out.iterdir() if path.suffix in (".json", ".html"))
    assert "subject" not in written
    assert str(MARK)[:4] not in shown.err


def test_a_failing_budget_is_not_charged_before_the_warning(files, tmp_path, capsys):
    data, schema = files(panel())
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnerWarning)
        with pytest.raises(OwnerWarning):
            jaxdp.test(data, x="dose", y="response", epsilon=1.0, schema=schema, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0


def test_a_strict_caller_learns_nothing(files, tmp_path, capsys):
    data, schema = files(panel())
    command = ["test", data, "--schema", schema, "--x", "dose", "--y", "response", "--epsilon", "1", "--seed", "1"]
    assert main([*command, "--strict", "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "subject" not in shown.err + shown.out


def test_check_names_the_column(files, capsys):
    data, schema = files(panel())
    assert main(["check", data, "--schema", schema]) == 0
    assert "warning: column 'subject' looks like the identifier" in capsys.readouterr().out
    assert main(["check", data, "--schema", schema, "--json"]) == 0
    assert "'subject'" in json.loads(capsys.readouterr().out)["notes"][0]
    data, schema = files(panel(), f'unit = "subject"\n{SCHEMA}')
    assert main(["check", data, "--schema", schema]) == 0
    assert "looks like the identifier" not in capsys.readouterr().out


def test_a_draft_says_by_the_name_alone_what_the_schema_may_need(files, capsys):
    data, _ = files(panel(visits=1))
    assert main(["schema", "draft", data]) == 0
    assert 'the schema must say unit = "subject"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "values", "warned"), [("subject", 12, True), ("area_id", 12, False), ("area_id", 40, True)]
)
def test_a_word_for_a_person_needs_ten_values_and_a_number_of_something_thirty(name, values, warned):
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, values, 400), "dose": rng.normal(size=400)}
    assert (repr(name) in repeated(table)) == warned


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("id", identifiers.PERSON), ("PatientID", identifiers.PERSON), ("subject_no", identifiers.PERSON),
        ("person.id", identifiers.PERSON), ("hhid", identifiers.PERSON), ("subject", identifiers.WORD),
        ("clinic_id", identifiers.NUMBER), ("paid", identifiers.LABEL), ("width", identifiers.LABEL),
        ("region", identifiers.LABEL), ("caseload", identifiers.LABEL),
    ]
)  # fmt: skip
def test_what_a_name_says(name, kind):
    assert identifiers.says(name) == kind


def ordinary(rows, seed=1):
    """Columns that repeat and identify nobody."""
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 81, rows),
        "day": np.arange(rows) % 31 + 1,
        "clinic_id": rng.integers(0, 12, rows),
        "country": rng.choice([f"c{i}" for i in range(60)], rows),
        "income": (rng.lognormal(10, 1, rows) // 1000 * 1000).astype(int),
        "salary": rng.integers(30_000, 60_000, rows),
        "score": rng.normal(size=rows).round(1),
        "date": np.array([f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(rows)]),
        "patient": rng.choice(["in", "out"], rows),
        "dose": np.arange(rows) % 5,
        "row": np.arange(rows),
    }


@pytest.mark.parametrize("rows", [60, 400, 3000, 70_000])
def test_ordinary_columns_raise_no_alarm(rows, tmp_path):
    table = ordinary(rows)
    assert repeated(table) == ""
    pd.DataFrame(table).to_csv(tmp_path / "t.csv", index=False)
    assert repeated(tmp_path / "t.csv") == ""


def test_repeats_that_begin_after_many_rows_are_found(tmp_path):
    ids = np.tile(np.arange(50_000), 2)
    pd.DataFrame({"code": ids, "a": np.zeros(100_000)}).to_csv(tmp_path / "t.csv", index=False)
    assert "'code'" in repeated(tmp_path / "t.csv")


def test_columns_of_odd_kinds_are_passed_over():
    table = {"lists": np.array([[1], [2]] * 240, object), "when": np.array(["2020-01-01"] * 480, "M8[D]"), **panel()}
    assert "'subject'" in repeated(table)


@pytest.fixture
def passes(monkeypatch):
    """How often rows of a file were read from its beginning, and how many each time."""
    found = []
    usual = readers._python_pieces

    def counted(*args, **how):
        found.append(0)
        for piece in usual(*args, **how):
            found[-1] += len(next(iter(piece.values())))
            yield piece

    monkeypatch.setattr(readers, "_python_pieces", counted)
    return found


COMMANDS = {
    "test": ["test", "--x", "dose", "--y", "response"],
    "all pairs": ["test", "--all-pairs"],
    "mic": ["mic", "--x", "dose", "--y", "response", "--cells", "4"],
    "discover": ["discover", "--method", "moment_pc"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_warns_in_the_pass_that_it_makes_anyway(name, files, tmp_path, passes, capsys):
    data, schema = files(panel("code"))
    command, *words = COMMANDS[name]
    rest = ["--schema", schema, "--epsilon", "1", "--seed", "1", "--out", str(tmp_path / "out")]
    assert main([command, data, *words, *rest]) == 0
    assert "jaxdp: warning: column 'code'" in capsys.readouterr().err
    assert passes == [PERSONS * VISITS]


def test_check_reads_the_rows_once_and_once_as_lines(files, passes, capsys):
    data, schema = files(panel("code"))
    assert main(["check", data, "--schema", schema]) == 0
    assert "column 'code' looks like" in capsys.readouterr().out
    assert passes == [PERSONS * VISITS]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("folder", [False, True])
def test_large_files_are_watched_by_the_columns_that_their_head_leaves_open(kind, folder, tmp_path, monkeypatch):
    """What repeats only after the first rows is seen too."""
    monkeypatch.setattr(identifiers, "MAX_BYTES", 1000)
    monkeypatch.setattr(readers, "PIECE_ROWS", 50)
    monkeypatch.setattr(identifiers, "SAMPLE", 50)
    table = pd.DataFrame(panel("code")).sort_index(key=lambda rows: rows % VISITS).reset_index(drop=True)
    path = tmp_path / "files" / f"d.{kind}"
    path.parent.mkdir()
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, row_group_size=50)
    source = path.parent if folder else path
    assert identifiers.Watch.of(source).names == ("code",)  # dose and response are no whole numbers
    told = warned(str(source))
    assert len(told) == 1
    assert "'code'" in told[0]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_in_chunks_is_watched(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxdp.ask.reading.Reading.limit", 1000)
    path = tmp_path / f"d.{kind}"
    table = pd.DataFrame(panel("code"))
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    (told,) = warned(str(path), method="partition-gcm")
    assert "'code'" in told


def test_files_of_odd_kinds_and_other_columns_are_read(tmp_path, monkeypatch):
    """Columns that nobody asked about may hold what cannot be read, and may be missing in a file."""
    table = pd.DataFrame({"lists": [[1]] * 480, "raw": [b"\xff"] * 480, **panel("code")})
    for part in ("1", "2"):
        table.drop(columns=[] if part == "1" else ["raw"]).to_parquet(tmp_path / f"{part}.parquet")
    (told,) = warned(str(tmp_path / "1.parquet"))
    assert "'code'" in told
    (tmp_path / "texts").mkdir()
    plain = table.drop(columns=["lists", "raw"])
    plain.to_csv(tmp_path / "texts" / "1.csv", index=False)
    plain.drop(columns="code").to_csv(tmp_path / "texts" / "2.csv", index=False)
    (told,) = warned(str(tmp_path / "texts"))
    assert "'code'" in told


def test_of_many_values_a_part_is_counted_exactly(monkeypatch):
    monkeypatch.setattr(identifiers, "MAX_KEPT", 500)
    for values in (np.repeat(np.arange(20_000), 3), np.char.mod("p%d", np.repeat(np.arange(20_000), 3)).astype(object)):
        column = identifiers._Column(identifiers.LABEL)
        for part in np.array_split(np.random.default_rng(0).permutation(values), 12):
            column.add(part)
        assert 200 <= len(column._hashes) <= 500, "further parts of a table are no reason to keep fewer"
        assert set(column._counts) == {3}
        assert 14_000 < column.number < 28_000  # the sd of 300 is a seventeenth of it
        assert column.of_persons("code")


def fileset(folder, persons, families=None, column="batch"):
    """A fileset of 480 rows and a table of them; persons: their IID."""
    rng = np.random.default_rng(0)
    plink.write_genotypes(folder / "study", rng.integers(-1, 2, (480, 2)).astype(np.int8), phenotype=["1", "2"] * 240)
    families = [f"f{row}" for row in range(480)] if families is None else families
    named = list(zip(families, persons, strict=True))
    (folder / "study.fam").write_text("".join(f"{a} {b} 0 0 0 {1 + k % 2}\n" for k, (a, b) in enumerate(named)))
    rows = [f"{a} {b} {rng.uniform(20, 80):.1f} {k // VISITS}" for k, (a, b) in enumerate(named)]
    (folder / "study.cov").write_text("\n".join([f"FID IID age {column}", *rows]) + "\n")
    table = ["--covariates", str(folder / "study.cov"), "--given", "age", "--bounds", "age=18:90"]
    asked = ["--epsilon", "9", "--seed", "1", "--count", "1", "--out", str(folder / "out")]
    return ["gwas", str(folder / "study"), *table, *asked]


@pytest.mark.parametrize(("column", "repeats"), [("patient_id", False), ("batch", True)])
def test_a_fileset_with_several_rows_of_a_person_is_told(column, repeats, tmp_path, capsys):
    """By a column of its table that says so, and by IIDs that repeat where no family does."""
    persons = [f"p{row // VISITS if repeats else row}" for row in range(480)]
    assert main(fileset(tmp_path, persons, column=column)) == 0
    told = capsys.readouterr().err
    assert f"warning: column '{'IID' if repeats else column}' looks like the identifier of a person" in told
    assert "keep one row of each" in told


def test_families_and_batches_raise_no_alarm(tmp_path, capsys):
    persons, families = [f"{row % 20}" for row in range(480)], [f"f{row // 20}" for row in range(480)]
    assert main(fileset(tmp_path, persons, families, column="day")) == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("place", ["study.fam", "study.cov"])
def test_two_rows_of_one_person_are_refused(place, tmp_path, capsys):
    command = fileset(tmp_path, [f"p{row}" for row in range(480)])
    first, second, *rest = (tmp_path / place).read_text().splitlines()
    again = second if place == "study.cov" else first
    kept = [first, second, again, *rest] if place == "study.cov" else [first, again, *rest]
    (tmp_path / place).write_text("\n".join(kept) + "\n")
    assert main(command) == 2
    assert "several rows of one FID and IID" in capsys.readouterr().err


def test_one_cell_too_large_for_a_whole_number_raises_no_warning_of_numpy():
    """Whether a record had such a cell could be seen by a caller, without the mark for the owner of the table."""
    values = np.arange(300.0) % 7
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for large in (1e19, -1e308):
            cells = np.r_[large, values[1:]]
            asked = {"bounds": {"a": (0, 10), "y": (0, 10)}, "epsilon": 1.0, "key": jax.random.key(0)}
            jaxdp.test({"a": cells, "y": values}, x="a", y="y", **asked)
