"""`jaxdp.draft_schema`: the cells it finds, its sensitivity, its charge, its refusals, its files."""

import contextlib
import dataclasses
import datetime
import itertools
import math
import re
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.ask.draft_schema import CENTRE, QUARTILES, ColumnQuantiles, DraftQuery, ends, outward, places
from jaxdp.cli import schema as schema_command
from jaxdp.cli.main import main
from jaxdp.data.schema import Schema

ROWS = 3000
EXACT = 1e3


def table(size=ROWS):
    rng = np.random.default_rng(5)
    income = rng.lognormal(10.0, 0.8, size)
    income[:40] = math.nan
    day = np.array([f"2024-{month:02d}-15" for month in rng.integers(1, 13, size)], object)
    return {
        "income": income,
        "age": rng.normal(50.0, 12.0, size),
        "zeros": np.where(rng.uniform(size=size) < 0.4, 0.0, rng.exponential(3.0, size)),
        "small": rng.normal(0.0, 1e-3, size),
        "day": day,
        "constant": np.full(size, 5.0),
        "town": rng.choice(["a", "b"], size).astype(object),
    }


def drafted(columns, **how):
    return jaxdp.draft_schema(table(), columns=columns, **{"epsilon": EXACT, "key": jax.random.key(2)} | how)


def scores(values, about=None, levels=(0.25, 0.5)):
    query = ColumnQuantiles(epsilon=1.0, levels=levels, about=about)
    found = query.statistic(None, np.asarray(values, float)[:, None])
    return np.stack([np.asarray(found[name]) for name in query.parts])


@pytest.mark.parametrize("about", [None, np.array([2.0])])
def test_a_replaced_record_moves_every_score_by_one_at_most_and_some_by_one(about):
    choices = [-math.inf, -8.0, 0.0, 1.0, 3.0, math.nan]
    rest = [-8.0, 1.0, 1.0, 3.0, 2.0**30, math.nan]
    most = 0.0
    for place in (0, 1):  # a missing value of an even record lies below, of an odd one above
        one = [scores([*rest[:place], value, *rest[place:]], about) for value in choices]
        most = max(most, *(np.abs(a - b).max() for a, b in itertools.combinations(one, 2)))
    with jax.enable_x64(True):
        declared = ColumnQuantiles(epsilon=1.0).sensitivity(7)["00000-0"]
    assert most == float(declared.bound) == 1.0


def test_the_best_cell_holds_the_quantile():
    rng = np.random.default_rng(0)
    for values in (rng.normal(1e3, 5.0, 999), rng.exponential(1e-3, 500), np.r_[np.zeros(400), rng.normal(size=600)]):
        for level, found in zip((0.25, 0.5), scores(values), strict=True):
            best = int(np.argmax(found))
            grid = np.r_[-np.inf, ends(True), np.inf]
            right = np.quantile(values, level, method="inverted_cdf")
            assert found[best] == 0.0
            assert any(grid[k] < right <= grid[k + 1] for k in np.flatnonzero(found == 0.0))
            assert grid[best] <= places(True)[best] <= grid[best + 1]


def test_bounds_hold_nearly_all_values_and_are_not_far_wider():
    for epsilon, method in ((EXACT, QUARTILES), (0.25, CENTRE)):
        found = drafted(["income", "age", "small"], epsilon=epsilon)
        data = table()
        for name, entry in found.columns.items():
            assert entry["released"]["method"] == method
            low, high = entry["bounds"]
            values = data[name][~np.isnan(data[name])]
            assert np.mean((values >= low) & (values <= high)) >= 0.9
            central = np.quantile(values, 0.99) - np.quantile(values, 0.01)
            assert 0.3 * central <= high - low <= 4.0 * central


def test_dates_have_dates_as_bounds_and_a_test_takes_the_schema():
    found = drafted(["day", "age"], dates=["day"])
    low, high = found.columns["day"]["bounds"]
    assert low < "2024-01-15" < "2024-12-15" < high
    answer = jaxdp.test(table(), x="day", y="age", schema=found.schema, epsilon=1.0, key=jax.random.key(0))
    assert 0.0 <= float(answer.p_value) <= 1.0


def test_dates_of_another_form_have_it_in_the_schema_and_bounds_that_it_reads(tmp_path):
    form = "%d.%m.%y"  # as texts, years before 1969 would be read as later than 2000
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=k) for k in range(ROWS)]
    data = {"day": [day.strftime("%d.%m.%Y") for day in days]}
    found = jaxdp.draft_schema(data, columns=["day"], dates={"day": "%d.%m.%Y"}, epsilon=EXACT, key=jax.random.key(2))
    found.save(tmp_path / "s.toml")
    for schema in (found.schema, Schema.load(tmp_path / "s.toml")):
        rule = schema.rule("day")
        assert rule.lower < rule.numbers([data["day"][0]])[0] < rule.numbers([data["day"][-1]])[0] < rule.upper
    short = dataclasses.replace(found, columns={"day": found.columns["day"] | {"date": form}})
    assert short.schema.rule("day").lower == found.schema.rule("day").lower


@pytest.mark.parametrize(
    ("cells", "dates", "told"),
    [
        (np.array(["2024-03-01"] * 50, "datetime64[D]"), (), r"name it in dates too \(--dates NAME; in Python dates"),
        (["2024-03-01"] * 50, (), r"look like dates or times: name it in dates too \(--dates NAME; in Python dates"),
        (["01.03.2024"] * 50, ["day"], r'look like dates or times: .*dates=\{"NAME": "%d\.%m\.%Y"\}'),
        (["3 %"] * 50, (), "look like percentages: .* schema, with percent = true"),
        (["1,5"] * 50, (), "look like numbers with a decimal comma: say --decimal ,"),
    ],
)
def test_a_notation_that_a_draft_does_not_read_is_told_without_a_schema_that_nobody_has(cells, dates, told):
    with pytest.raises((TypeError, ValueError), match=told) as caught:
        jaxdp.draft_schema({"day": cells}, columns=["day"], dates=dates, epsilon=50.0, key=jax.random.key(0))
    assert not re.search("(in|or) the schema", str(caught.value))


def test_a_column_without_spread_gets_no_bounds():
    found = drafted(["constant", "zeros"])
    assert "bounds" not in found.columns["constant"]
    assert "no spread" in found.flags["constant"]
    assert 'bounds = "TODO"' in found.text
    assert found.columns["zeros"]["bounds"][1] > 5.0
    with pytest.raises(ValueError, match="'constant'"):
        _ = found.schema


@pytest.mark.parametrize(("epsilon", "method"), [(1.0, QUARTILES), (0.05, CENTRE)])
def test_bounds_that_clip_what_is_not_zero_are_flagged(epsilon, method):
    """74 % zeros: bounds of a released quartile (or median) at 0 clip nearly all else, and the draft says so."""
    rng = np.random.default_rng(2)
    values = {
        "many": np.where(rng.uniform(size=ROWS) < 0.74, 0.0, rng.exponential(100.0, ROWS)),
        "none": rng.normal(0.0, 10.0, ROWS),
        "positive": rng.exponential(100.0, ROWS),
    }
    clipped = 0
    for seed in range(4):
        for name, column in values.items():
            found = jaxdp.draft_schema({name: column}, columns=[name], epsilon=epsilon, key=jax.random.key(seed))
            assert found.columns[name]["released"]["method"] == method
            low, high = found.columns[name].get("bounds", (-math.inf, math.inf))
            clipped += np.mean((column < low) | (column > high)) > 0.2
            told = found.flags.get(name, "")
            assert ("exactly 0" in told or "no spread" in told) == (name == "many")
            assert told in found.text
    assert clipped >= (2 if method == QUARTILES else 0)


def test_values_that_share_a_cell_far_from_zero_are_told_why_they_get_no_bounds():
    far = {"far": np.random.default_rng(0).normal(1e6, 1.0, ROWS)}
    found = jaxdp.draft_schema(far, columns=["far"], epsilon=EXACT, key=jax.random.key(1))
    assert "0.3 % of their size" in found.flags["far"]


def test_values_beyond_the_grid_get_no_bounds():
    far = {"far": np.full(ROWS, -1e13), "near": np.arange(ROWS, dtype=float)}
    found = jaxdp.draft_schema(far, columns=["far", "near"], epsilon=EXACT, key=jax.random.key(1), force=True)
    assert "end of the public grid" in found.flags["far"]
    assert "bounds" in found.columns["near"]


@pytest.mark.parametrize(
    ("epsilon", "delta", "method"), [(1.0, 0.0, QUARTILES), (0.15, 0.0, CENTRE), (0.5, 1e-6, None)]
)
def test_a_release_is_charged_once_and_has_certificates(tmp_path, epsilon, delta, method):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0, delta=1e-5)
    found = jaxdp.draft_schema(table(), columns=["income", "age"], epsilon=epsilon, delta=delta, ledger=ledger)
    assert found.mode == "release"
    (row,) = ledger.rows()
    assert (row.method, row.epsilon, row.delta) == ("private-bounds", epsilon, 0.0)  # two columns: delta buys nothing
    assert "delta" not in found.columns["age"]["released"]
    assert row.columns == "private bounds of income, age"
    assert method is None or found.columns["age"]["released"]["method"] == method


@pytest.mark.parametrize("method", [QUARTILES, CENTRE])
@pytest.mark.parametrize(("columns", "delta"), [(1, 0.0), (3, 0.0), (40, 1e-6)])
def test_what_is_released_costs_no_more_than_what_is_charged(method, columns, delta):
    query = DraftQuery.of(columns=[f"c{place}" for place in range(columns)], epsilon=0.3, delta=delta)
    cost = jaxdp.core.cost_of(query.query(method), np.zeros((5, columns)))
    assert query.paid_delta(method) == delta
    if delta:
        assert float(cost.rho) <= jaxdp.accounting.zcdp_rho(0.3, delta)
        assert query.column_epsilon(method) > 0.3 / columns
    else:
        assert float(cost.epsilon) <= 0.3
        assert float(cost.epsilon) == pytest.approx(0.3)


def chances(values, within, epsilon=1.0):
    """The probability that report-noisy-max selects one of the cells `within`, by its law on the real scores."""
    found = scores(values, levels=(0.5,))[0]
    noise = np.linspace(0.0, 80.0 / epsilon, 400_001)[1:]
    levels, counts = np.unique(found[~within], return_counts=True)
    (own,) = np.unique(found[within])
    log_below = sum(
        count * np.log(-np.expm1(-0.5 * epsilon * np.maximum(noise + own - level, 1e-300)))
        for level, count in (*zip(levels, counts, strict=True), (own, within.sum() - 1))
    )
    density = 0.5 * epsilon * np.exp(log_below - 0.5 * epsilon * noise)
    return within.sum() * np.trapezoid(density, noise)


def test_an_attack_comes_near_the_stated_epsilon_and_not_beyond():
    """A record moves below two gaps: the cells of the lower one gain, the many of the upper one lose."""
    low, middle, high = 2.0**-19, 2.0**-18.8, 2.0**39
    base = [low] * 4 + [middle] + [high] * 4
    within = (places(True) > low * 1.01) & (places(True) < middle * 0.99)
    some, more = (chances([*base, last], within) for last in (high, low))
    assert 0.9 <= math.log(more / some) <= 1.0


def test_too_few_records_are_refused_before_anything_is_charged(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    with pytest.raises(ValueError, match=r"at least 3000 are needed, or epsilon 0\.3, or fewer columns"):
        jaxdp.draft_schema(
            {"a": np.arange(1000.0), "b": np.arange(1000.0), "c": np.arange(1000.0)},
            columns=["a", "b", "c"],
            epsilon=0.1,
            ledger=ledger,
        )
    with pytest.raises(ValueError, match="town"):
        jaxdp.draft_schema(table(), columns=["town"], epsilon=0.5, ledger=ledger)
    assert not ledger.rows()
    with pytest.raises(jaxdp.BudgetExhausted):
        jaxdp.draft_schema(table(), columns=["age"], epsilon=2.0, ledger=ledger)


def test_one_record_of_each_person_counts():
    rows = table() | {"patient": np.repeat(np.arange(ROWS // 3), 3)}
    found = jaxdp.draft_schema(rows, columns=["age"], epsilon=0.2, unit="patient", key=jax.random.key(2))
    assert found.schema.unit == "patient"
    released = tomllib.loads(found.text)["columns"]["age"]["released"]
    assert (released["unit"], released["method"]) == ("patient", CENTRE)  # 1000 persons, not 3000 rows


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"columns": []}, "at least one column"),
        ({"columns": ["age", "age"]}, "each once"),
        ({"columns": ["age"], "dates": ["day"]}, "not among the columns"),
        ({"columns": ["age"], "epsilon": 0.0}, "epsilon"),
        ({"columns": ["age"], "delta": 1.0}, "delta"),
    ],
)
def test_public_mistakes_are_told(how, told):
    with pytest.raises(ValueError, match=told):
        drafted(**{"columns": ["age"]} | how)


def test_unknown_keywords_are_told():
    with pytest.raises(TypeError, match="bounds"):
        drafted(["age"], bounds={"age": (0, 1)})


def test_bounds_are_rounded_outward():
    assert outward(-11_437.0, 98_304.0) == (-20_000, 100_000)
    assert outward(17.2, 61.3) == (17, 62)
    assert outward(-0.00341, 0.0033) == (-0.0035, 0.0033)


@pytest.fixture
def csv_file(tmp_path):
    data = table()
    data["income"] = np.nan_to_num(data["income"], nan=1e4)
    names = ["income", "age", "town"]
    lines = [",".join(names)]
    lines += [",".join(map(str, row)) for row in zip(*(data[name] for name in names), strict=True)]
    path = tmp_path / "study.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_from_a_file_with_a_header_to_an_answer(tmp_path, csv_file, capsys):
    ledger, schema = tmp_path / "l.db", tmp_path / "s.toml"
    assert main(["ledger", "create", str(ledger), "--epsilon", "2"]) == 0
    draft = ["schema", "draft", str(csv_file), "--private", "--columns", "income,age", "--ledger", str(ledger)]
    assert main([*draft, "--epsilon", "0.5", "--out", str(schema)]) == 0
    assert "cost epsilon=0.5" in capsys.readouterr().err
    assert set(Schema.load(schema).names) == {"income", "age"}
    assert "# [columns.town]" in schema.read_text()
    assert main(["check", str(csv_file), "--schema", str(schema)]) == 0
    asked = ["test", str(csv_file), "--schema", str(schema), "--x", "income", "--y", "age", "--epsilon", "1"]
    assert main([*asked, "--ledger", str(ledger), "--out", str(tmp_path / "out")]) == 0
    assert [row.epsilon for row in jaxdp.Ledger.open(ledger).rows()] == [0.5, 1.0]
    assert main([*draft, "--epsilon", "0.2", "--out", str(schema)]) == 2  # it exists: refused, not paid for
    assert main([*draft, "--epsilon", "0.2", "--out", str(tmp_path / "none" / "s.toml")]) == 2
    csv_file.write_text(csv_file.read_text().partition("\n")[2])  # without its header
    assert main([*draft, "--epsilon", "0.2"]) == 2
    assert len(jaxdp.Ledger.open(ledger).rows()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
@pytest.mark.parametrize("full", ["file", "standard output", "both"])
def test_a_paid_draft_that_cannot_be_written_is_printed_elsewhere(tmp_path, csv_file, capsys, monkeypatch, full):
    """It was lost, with "internal error ... it may quote data" and without a word about the charge."""
    ledger, out = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0), tmp_path / "s.toml"
    draft = ["schema", "draft", str(csv_file), "--private", "--columns", "age", "--ledger", str(ledger.path)]
    to_file = [] if full == "standard output" else ["--out", str(out)]
    with contextlib.suppress(OSError), open("/dev/full", "w") as device, open("/dev/full", "w") as screen:
        monkeypatch.setattr(schema_command, "open", lambda *where, **how: (out.touch(), device)[1], raising=False)
        if full != "file":
            monkeypatch.setattr("sys.stdout", screen)
        code = main([*draft, "--epsilon", "0.5", *to_file])
        monkeypatch.undo()
    said = capsys.readouterr()
    assert code == 2
    assert "[columns.age]" in (said.out if full == "file" else said.err)
    (line,) = [line for line in said.err.splitlines() if "error:" in line]
    assert "cannot be written: no space left on device. Bounds and levels were charged (epsilon=0.5" in line
    where = "standard output" if full == "file" else "standard error"
    assert f"The charge stands; the draft is printed on {where}" in line
    assert len(ledger.rows()) == 1
    assert not out.exists()


def test_a_seeded_draft_is_marked_and_no_release_takes_it(tmp_path, csv_file, capsys):
    schema, ledger = tmp_path / "s.toml", jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    words = ["--private", "--columns", "income,age", "--epsilon", "2", "--seed", "1", "--out", str(schema)]
    assert main(["schema", "draft", str(csv_file), *words]) == 0
    capsys.readouterr()
    found = drafted(["income", "age"])
    assert all(text.startswith("# NOT PRIVATE: simulation.") for text in (schema.read_text(), found.text, repr(found)))
    assert "simulated = true" in found.text
    asked = {"x": "income", "y": "age", "epsilon": 1.0}
    for known in (schema, found.schema):
        with pytest.raises(ValueError, match=r"column 'income' was found in the records with a seed"):
            jaxdp.test(csv_file, schema=known, ledger=ledger, **asked)
    with pytest.raises(ValueError, match="with a seed"):
        jaxdp.discover(csv_file, schema=schema, epsilon=1.0, ledger=ledger)
    assert not ledger.rows()
    assert jaxdp.test(csv_file, schema=schema, key=jax.random.key(1), **asked).mode == "simulation"
    released = jaxdp.draft_schema(table(), columns=["age"], epsilon=1.0)
    assert not released.mark
    assert "simulated" not in released.columns["age"]["released"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--private", "--columns", "age", "--epsilon", "1"], "--ledger"),
        (["--private", "--columns", "age", "--seed", "1"], "--epsilon"),
        (["--columns", "age"], "--private"),
        (["--private", "--columns", "agee", "--epsilon", "1", "--seed", "1"], "no column 'agee'"),
        (["--private", "--columns", "age", "--epsilon", "1", "--seed", "1", "--unit", "who"], "no column 'who'"),
    ],
)
def test_the_command_says_what_is_missing(csv_file, capsys, words, told):
    assert main(["schema", "draft", str(csv_file), *words]) == 2
    assert told in capsys.readouterr().err


def test_a_typed_column_of_times_is_drafted_with_its_cycles(tmp_path):
    """As the draft without --private writes it, so that it can be conditioned on."""
    pyarrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    stamps = np.datetime64("2024-01-01T00:00:00") + np.arange(ROWS) * np.timedelta64(1300, "s")
    columns = {"seen": pyarrow.array(stamps.astype("datetime64[us]")), "day": pyarrow.array(stamps.astype("M8[D]"))}
    frame = pyarrow.table(columns | {"age": np.linspace(18.0, 80.0, ROWS), "dose": np.linspace(0.0, 9.0, ROWS)})
    path = tmp_path / "visits.parquet"
    parquet.write_table(frame, path)
    how = {"columns": ["seen", "day"], "dates": ["seen", "day"], "epsilon": EXACT}
    of_pandas = frame.to_pandas()[["seen"]].assign(day=[str(day)[:10] for day in stamps])
    for seed, source in enumerate((path, frame, of_pandas)):
        found = jaxdp.draft_schema(source, **how, key=jax.random.key(seed))
        assert found.columns["seen"]["cycles"] == ["day", "week"]
        assert "cycles" not in found.columns["day"]
    known = {"columns": {**found.columns, "age": {"kind": "continuous", "bounds": [0, 90]}}}
    known["columns"]["dose"] = {"kind": "continuous", "bounds": [0, 9]}
    found.save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml").rule("seen").cycles == ("day", "week")
    answer = jaxdp.test(frame, x="age", y="dose", given="seen", epsilon=1.0, schema=known, key=jax.random.key(4))
    assert answer.content["conditioned_on"].startswith("Conditioned on seen by")


def test_a_draft_with_an_odd_name_of_the_unit_is_valid():
    pid = 'pid "x"'
    table = {pid: np.arange(400), "age": np.random.default_rng(0).uniform(20, 60, 400)}
    drafted = jaxdp.draft_schema(table, columns=["age"], epsilon=5.0, unit=pid, key=jax.random.key(0))
    assert tomllib.loads(drafted.text)["unit"] == pid
