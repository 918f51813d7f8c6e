"""`jaxdp.describe`: what it counts, its sensitivity, its intervals, its charge, its files."""

import csv
import json
import math

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import audit
from jaxdp.ask.describe import (
    MAX_BINS,
    MIN_BINS,
    ColumnCounts,
    DescribeQuery,
    Intervals,
    ValueCells,
    cells_of,
    default_bins,
    in_own_units,
)
from jaxdp.cli.main import main
from jaxdp.core import Norm
from jaxdp.data.dataset import Data
from jaxdp.data.person_rows import PersonRows
from jaxdp.data.schema import Schema
from jaxdp.mechanisms import Gaussian

SCHEMA = {
    "columns": {
        "age": {"kind": "continuous", "bounds": [0, 64]},
        "town": {"kind": "categorical", "levels": ["a", "b", "c"]},
        "smoker": {"kind": "binary", "levels": ["no", "yes"], "missing": "no", "other": "yes"},
        "day": {"kind": "continuous", "date": True, "bounds": ["2024-01-01", "2024-12-31"]},
        "dose": {"kind": "continuous", "bounds": [1, 256], "scale": "log"},
    }
}
ROWS = 400
EXACT = 1e3  # the largest epsilon: noise below half a record on 5 columns


def table(size=ROWS):
    rng = np.random.default_rng(0)
    age = rng.integers(0, 64, size).astype(float)
    age[:20] = math.nan
    town = rng.choice(["a", "b", "c"], size, p=[0.5, 0.3, 0.2]).astype(object)
    town[:10], town[10:15] = "", "elsewhere"
    smoker = np.array(["no", "yes"], object)[rng.integers(0, 2, size)]
    smoker[:7], smoker[7:9] = "", "now and then"
    day = np.array([f"2024-{month:02d}-15" for month in rng.integers(1, 13, size)], object)
    return {"age": age, "town": town, "smoker": smoker, "day": day, "dose": 2.0 ** rng.integers(0, 8, size)}


def described(**how):
    return jaxdp.describe(table(), **{"schema": SCHEMA, "epsilon": EXACT, "key": jax.random.key(3)} | how)


def column(found, name):
    return next(one for one in found.columns if one["name"] == name)


def test_with_hardly_any_noise_it_counts_what_is_there():
    found, data = described(), table()
    town = column(found, "town")
    assert [level["count"] for level in town["levels"]] == [int(np.sum(data["town"] == name)) for name in "abc"]
    assert (town["missing"]["count"], town["unknown"]["count"]) == (10, 5)
    assert column(found, "age")["missing"]["count"] == 20
    assert column(found, "age")["missing"]["share"] == pytest.approx(20 / ROWS, abs=1e-3)
    smoker = column(found, "smoker")  # the schema says what such cells mean: they are values
    assert "missing" not in smoker
    assert "unknown" not in smoker
    counts = [level["count"] for level in smoker["levels"]]
    assert counts == [
        int(np.sum(np.isin(data["smoker"], ("no", "")))),
        int(np.sum(~np.isin(data["smoker"], ("no", "")))),
    ]
    ages = data["age"][~np.isnan(data["age"])]
    width = 64 / found.content["bins"]
    for quantile in column(found, "age")["quantiles"]:
        right = np.quantile(ages, quantile["at"])
        assert quantile["low"] <= right <= quantile["high"]
        assert abs(quantile["value"] - right) <= width
        assert quantile["high"] - quantile["low"] <= 2 * width
    doses = column(found, "dose")["quantiles"]
    assert doses[1]["low"] <= np.median(data["dose"]) <= doses[1]["high"]
    days = column(found, "day")["quantiles"]
    assert days[0]["low"] <= np.sort(data["day"])[ROWS // 4] <= days[0]["high"]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_replaced_record_moves_the_counts_by_the_declared_bound_and_no_more(columns, single):
    """All pairs of replaced records among cells of every kind; the bound is reached."""
    levels = (3, 0, 2)[:columns]
    choices = [[-2.0, -1.0, 0.0, 2.0], [-1.0, 0.25, 0.3, 1.0, math.nan], [-2.0, -1.0, 1.0]][:columns]
    grids = np.stack([np.ravel(grid) for grid in np.meshgrid(*choices, indexing="ij")], axis=1)
    cells = tuple(None if count else ValueCells.equal(4, (-1.0, 0.3, 1.0)) for count in levels) if single else ()
    query = ColumnCounts(epsilon=1.0, levels=levels, bins=4, cells=cells)
    counts = np.stack([np.asarray(query.statistic(None, row[None])) for row in grids])
    assert np.all(counts.sum(axis=1) == columns)  # one cell of each column
    change = counts[:, None] - counts[None, :]
    assert np.abs(change).sum(axis=2).max() == query.sensitivity(10).bound == 2 * columns
    wide = ColumnCounts(mechanism=Gaussian(rho=0.5), levels=levels, bins=4).sensitivity(10)
    assert wide.norm is Norm.L2
    assert np.sqrt((change**2).sum(axis=2)).max() == pytest.approx(float(wide.bound))


@pytest.mark.full
def test_an_attack_comes_near_the_stated_epsilon_and_not_beyond():
    """Two records that differ in both columns; each of the four cells that move is cut at its two counts."""
    query = ColumnCounts(epsilon=1.0, levels=(3, 0), bins=4)
    tables = [np.zeros((10, 2)), np.zeros((10, 2))]
    tables[0][0], tables[1][0] = (2.0, -1.0), (-1.0, math.nan)
    exact = [np.asarray(query.statistic(None, table)) for table in tables]
    sign, middle = np.sign(exact[0] - exact[1]), 0.5 * (exact[0] + exact[1])
    assert np.count_nonzero(sign) == 4

    @jax.jit
    def moved(key, table):
        def one(key):
            noisy = jaxdp.release(query, key, table).value
            return jax.numpy.sum(jax.numpy.clip((noisy - middle) * sign, -0.5, 0.5))  # elsewhere the sign is 0

        return jax.lax.map(one, jax.random.split(key, 200_000), batch_size=20_000)

    seen = [np.asarray(moved(jax.random.key(place), table)) for place, table in enumerate(tables)]
    found = audit.lower_bound(*seen, low_bits=False)
    assert 0.8 <= found.epsilon <= 1.0


def test_a_release_has_certified_noise_of_the_stated_size_and_one_charge(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    found = jaxdp.describe(table(), schema=SCHEMA, columns=["town", "age"], epsilon=0.5, ledger=ledger)
    assert found.mode == "release"
    (row,) = ledger.rows()
    assert (row.method, row.epsilon, row.columns) == ("describe", 0.5, "description of town, age")
    assert found.content["noise_sd"] == pytest.approx(math.sqrt(2.0) * 4 / 0.5, rel=1e-6)
    query = ColumnCounts(epsilon=0.5, levels=(3, 0), bins=8)
    values = np.stack([np.zeros(300), np.full(300, np.nan)], axis=1)
    released = jaxdp.release(query, jaxdp.fresh_key(), values)
    assert [one.law for one in released.certificates]
    assert float(released.cost.epsilon) == 0.5
    noise = np.asarray(released.value) - np.asarray(query.statistic(None, values))
    assert 0.0 < np.abs(noise).max() < 300.0


def test_a_spent_ledger_stops_it_before_it_reads(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=0.1)
    with pytest.raises(jaxdp.BudgetExhausted):
        described(epsilon=0.5, ledger=ledger, key=None)
    assert not ledger.rows()


def test_gaussian_noise_is_smaller_for_many_columns():
    pure, gaussian = described(epsilon=1.0), described(epsilon=1.0, delta=1e-6)
    assert gaussian.content["delta"] == 1e-6
    assert (float(gaussian.cost.epsilon), float(gaussian.cost.delta)) == (1.0, 1e-6)
    assert gaussian.content["noise_sd"] != pure.content["noise_sd"]
    many = [
        ColumnCounts(**how, levels=(2,) * 30, bins=4).noise_sd(100)
        for how in ({"epsilon": 1.0}, {"mechanism": Gaussian(rho=jaxdp.accounting.zcdp_rho(1.0, 1e-6))})
    ]
    assert many[1] < 0.5 * many[0]


COLUMNS = {
    "smooth": ({}, lambda rng, n: np.clip(rng.normal(0.1, 0.35, n), -1.0, 1.0)),
    "zeros": ({}, lambda rng, n: np.where(rng.uniform(size=n) < 0.45, 0.0, rng.uniform(-1.0, 1.0, n))),
    "at a bound": ({}, lambda rng, n: np.clip(rng.normal(0.8, 0.3, n), -1.0, 1.0)),
    "whole numbers": ({"bounds": [0, 7], "step": 1}, lambda rng, n: rng.binomial(7, 0.4, n).astype(float)),
    "another heap": ({}, lambda rng, n: np.where(rng.uniform(size=n) < 0.45, 0.33, rng.uniform(-1.0, 1.0, n))),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("noise", [{"epsilon": 0.4}, {"mechanism": Gaussian(rho=0.01)}])
def test_intervals_hold_the_counts_and_the_quantiles(noise, name):
    """Of fresh draws of the noise; 19 of 20 each, and the quantiles' more often, since they end at ends of cells."""
    entry, draw = COLUMNS[name]
    entry = {"kind": "continuous", "bounds": [-1, 1]} | entry
    rule = Schema.from_dict({"columns": {"v": entry}}).rule("v")
    rng, rows = np.random.default_rng(1), 1000
    values, runs = draw(rng, rows), 600
    with jax.enable_x64(True):  # as answers have it: single values are compared exactly
        query = ColumnCounts(**noise, levels=(0,), bins=16, cells=(cells_of(rule, 16),))
        exact = np.asarray(query.statistic(None, rule.scaled_number(values)[:, None]), float)
        intervals = Intervals(query, rows)
        noises = query.mechanism_in_force().noise(jax.random.key(99), query.sensitivity(rows), (runs, exact.size))
    held = {"count": 0, 0.25: 0, 0.5: 0, 0.75: 0}
    for noisy in exact + np.asarray(noises, float):
        found = intervals.describe(rule, noisy, query.cells_of(0))
        held["count"] += found["missing"]["low"] <= 0 <= found["missing"]["high"]
        for quantile in found["quantiles"]:
            right = np.quantile(values, quantile["at"], method="inverted_cdf")
            held[quantile["at"]] += quantile["low"] <= right <= quantile["high"]
            assert quantile["low"] <= quantile["value"] <= quantile["high"]
    least = 0.95 - 4.0 * math.sqrt(0.95 * 0.05 / runs)
    assert all(count / runs >= least for count in held.values()), held


@pytest.mark.parametrize(
    ("entry", "heap"),
    [
        ({"bounds": [-3, 17]}, 0.0),  # not the end of a bin
        ({"bounds": [0, 20]}, 0.0),
        ({"bounds": [0.1, 6.3]}, 6.3),  # what lies beyond counts on the bound
        ({"bounds": [1, 256], "scale": "log"}, 256.0),
        ({"bounds": [0, 20], "step": 1}, 7.0),
    ],
)
def test_a_quartile_on_a_value_that_many_records_share_is_that_value(entry, heap):
    rng, rows = np.random.default_rng(2), 20_000
    beyond = heap + 1.0 if heap and heap == entry["bounds"][1] else heap
    values = np.where(rng.uniform(size=rows) < 0.6, beyond, rng.uniform(*entry["bounds"], rows))
    if "step" in entry:
        values = np.round(values)
    schema = {"columns": {"v": {"kind": "continuous"} | entry}}
    found = jaxdp.describe({"v": values}, schema=schema, epsilon=2.0, key=jax.random.key(0), force=True)
    (column,) = found.columns
    median = column["quantiles"][1]
    assert (median["value"], median["low"], median["high"]) == (heap, heap, heap)
    assert "piled" not in median
    count = next(one for one in column["single"] if one["value"] == heap)
    assert count["low"] <= np.sum(np.clip(values, *entry["bounds"]) == heap) <= count["high"]
    assert sum(column["bins"]) == pytest.approx(rows, abs=200)


@pytest.mark.parametrize(("share", "told"), [(0.6, True), (0.0, False)])
def test_a_quartile_in_a_bin_that_holds_a_heap_is_said_to_lie_anywhere_in_it(share, told):
    rng = np.random.default_rng(3)
    values = np.where(rng.uniform(size=3000) < share, 7.3, rng.uniform(0.0, 20.0, 3000))
    found = jaxdp.describe({"v": values}, bounds={"v": (0, 20)}, epsilon=1.0, key=jax.random.key(0))
    median = found.columns[0]["quantiles"][1]
    assert median["low"] <= np.median(values) <= median["high"]
    assert median.get("piled", False) is told
    assert ("where many share one value" in " ".join(found.sentences())) is told


def test_bins_grow_with_the_records_and_shrink_with_the_noise():
    assert default_bins(1500, 14.1) == 16
    assert default_bins(10**7, 14.1) == MAX_BINS
    assert default_bins(20, 100.0) == MIN_BINS


def test_places_are_told_in_the_columns_units():
    schema = Schema.from_dict(SCHEMA)
    assert in_own_units(schema.rule("age"), 0.0) == 32.0
    assert in_own_units(schema.rule("dose"), 0.0) == pytest.approx(16.0)
    assert in_own_units(schema.rule("day"), -1.0) == "2024-01-01"
    assert in_own_units(schema.rule("day"), 1.0) == "2024-12-31"


def test_records_that_other_commands_leave_out_are_counted():
    found = described(schema={**SCHEMA, "missing": "drop"})
    assert found.content["n"] == ROWS
    assert column(found, "age")["missing"]["count"] == 20
    with pytest.raises(ValueError, match=r"every record is counted.*leave out missing"):
        described(missing="drop")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"columns": ["age", "age"]}, "each once"),
        ({"columns": []}, "at least one column"),
        ({"columns": ["agee"]}, "did you mean 'age'"),
        ({"epsilon": 1e4}, "epsilon must lie between"),
        ({"delta": 1.0}, "delta must be"),
    ],
)
def test_mistakes_are_named_before_anything_is_read(how, message):
    with pytest.raises(ValueError, match=message):
        DescribeQuery.of(Schema.from_dict(SCHEMA), **{"epsilon": 1.0} | how)


def test_it_is_shown_and_drawn():
    found = described(epsilon=0.5)
    shown = repr(found)
    assert shown.startswith(f"5 columns of {ROWS} records.")
    assert "NOT PRIVATE" in shown
    assert [line.split()[0] for line in found.table() if not line.startswith(" ")] == list(SCHEMA["columns"])
    assert found.plot().png.startswith(b"\x89PNG")
    session = jaxdp.Session(table(), schema=SCHEMA, epsilon=2.0, key=jax.random.key(1))
    assert session.describe(["town"], epsilon=0.5).columns[0]["name"] == "town"
    assert "description of 1 columns" in repr(session.asked)


def test_the_command_writes_a_table_a_picture_and_a_page(tmp_path, capsys):
    data, out = tmp_path / "d.csv", tmp_path / "out"
    rows = list(zip(*table().values(), strict=True))
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([list(SCHEMA["columns"]), *(["" if v != v else v for v in row] for row in rows)])
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    command = ["describe", str(data), "--schema", str(tmp_path / "s.json"), "--epsilon", "1", "--out", str(out)]
    assert main(command) == 0
    shown, content = capsys.readouterr().out, json.loads((out / "result.json").read_text())
    assert "quantile 0.25" in shown
    assert "No ledger recorded this spending" in shown
    assert content["columns"][1]["levels"][0].keys() == {"level", "count", "low", "high", "share"}
    with (out / "columns.csv").open() as file:
        assert [row["what"] for row in csv.DictReader(file)][:5] == [
            *("quantile 0.25", "median", "quantile 0.75", "(no value)", "a")
        ]
    page = (out / "report.html").read_text()
    assert "someone who knows every other record" in page.lower()
    assert "data:image/png" in page
    assert main(command) == 2  # an earlier answer stays


@pytest.mark.parametrize(("columns", "helps"), [(1, False), (80, True)])
def test_a_delta_is_advised_where_it_helps_only(columns, helps):
    """Normal noise is the larger one for few columns."""
    names = [f"c{place}" for place in range(columns)]
    drawn = np.random.default_rng(0).integers(0, 2, (columns, 20)).astype(str)
    schema = {"columns": {name: {"kind": "binary", "levels": ["0", "1"]} for name in names}}
    asked = {"schema": schema, "epsilon": 0.5, "key": jax.random.key(0)}
    found = jaxdp.describe(dict(zip(names, drawn, strict=True)), **asked)
    assert "Take care" in found.content["answer"]
    assert ("or --delta 1e-06, with which the sd is" in found.content["answer"]) == helps


def test_the_picture_shows_the_most_frequent_levels_and_says_what_it_leaves_out():
    from jaxdp.report import description, figures

    counts = [*range(1, 11), *range(400, 420)]
    levels = [{"level": f"l{k}", "count": c, "low": c - 1, "high": c + 1} for k, c in enumerate(counts)]
    _, axes = figures.canvas(3.0, 3.0)
    description._levels(axes, {"levels": levels})
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"l{k}" for k in range(10, 30)]
    assert axes.get_xlabel() == "10 more levels, of smaller counts, are in columns.csv"
    _, axes = figures.canvas(3.0, 3.0)
    description._levels(axes, {"levels": levels[:20]})
    assert not axes.get_xlabel()


def persons(count, rows=10):
    """Three rows in ten of a person are "yes" on average; values of a person differ between its rows."""
    rng = np.random.default_rng(4)
    ids = np.repeat(np.arange(count), rows)
    answer = np.where(rng.random(ids.size) < 0.3, "yes", "no").astype(object)
    return {"id": ids, "s": answer, "v": rng.normal(0.0, 1.0, ids.size)}


OF_PERSONS = {
    "unit": "id",
    "columns": {"s": {"kind": "binary", "levels": ["no", "yes"]}, "v": {"kind": "continuous", "bounds": [-4, 4]}},
}


@pytest.mark.full
@pytest.mark.parametrize("rows", ["all", "random"])
def test_intervals_of_persons_allow_for_the_draw_of_their_rows(rows):
    """What all rows of a person would give, each person counting once: that of another draw is no other truth."""
    count, runs, data = 600, 25, persons(600)
    share, truth, held = np.mean(data["s"] == "yes") * count, np.quantile(data["v"], [0.25, 0.5, 0.75]), []
    for _ in range(runs):
        found = jaxdp.describe(data, schema=OF_PERSONS, epsilon=20.0, rows=rows)
        yes, quartiles = found.columns[0]["levels"][1], found.columns[1]["quantiles"]
        held.append([yes["low"] <= share <= yes["high"]])
        held[-1] += [one["low"] <= at <= one["high"] for one, at in zip(quartiles, truth, strict=True)]
    assert np.mean(held, axis=0).min() >= 0.8  # of 25 runs .95 falls below that with probability .001
    assert yes["high"] - yes["low"] <= (20 if rows == "all" else 60)
    assert "draw" in found.content["answer"]
    assert ("all of its rows, whatever" in found.content["unit"]) == (rows == "all")


def test_the_first_rows_of_persons_are_not_drawn():
    data = persons(50)
    found = jaxdp.describe(data, schema=OF_PERSONS, columns=["s"], epsilon=EXACT, rows="first", key=jax.random.key(1))
    assert found.columns[0]["levels"][1]["count"] == np.sum(data["s"][::10] == "yes")
    assert "for these records only" in found.content["answer"]


def test_a_person_replaced_with_all_rows_moves_the_mean_counts_by_the_bound_and_no_more():
    """Lists of rows of every kind, alike and unlike; the bound of one record is reached."""
    query, rng = ColumnCounts(epsilon=1.0, levels=(3, 0), bins=4), np.random.default_rng(0)
    choices = [-2.0, -1.0, 0.0, 2.0], [-1.0, 0.25, 1.0, math.nan]
    fixed = np.stack([rng.choice(one, (5, 4)) for one in choices], axis=2)
    lists = [np.stack([rng.choice(one, 4) for one in choices], axis=1) for _ in range(30)]
    lists += [np.tile([first, second], (4, 1)) for first in choices[0] for second in choices[1]]

    def counted(own):
        draws = jax.numpy.concatenate([fixed, own[None]])
        return query.statistic_of_persons(None, PersonRows(Data(draws, draws)))

    counts = np.asarray(jax.vmap(counted)(np.stack(lists)))
    moved = np.abs(counts[:, None] - counts[None, :]).sum(axis=2)
    assert moved.max() == query.sensitivity(6).bound == 4
    assert np.unique(moved).size > 5
