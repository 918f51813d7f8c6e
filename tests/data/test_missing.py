"""Cells that say no value are not taken for dependence: the owner is refused before a charge, or drops the records."""

import functools

import jax
import numpy as np
import pandas as pd
import pytest

import jaxdp
from jaxdp._base.owner import OwnerWarning
from jaxdp.data.columns import CONTINUOUS, Column
from jaxdp.data.parse_report import ParseReport
from jaxdp.data.readers import FormError
from jaxdp.data.records import Records, as_records
from jaxdp.data.schema import Schema
from jaxdp.data.units import DrawnRows, Units

LEVELS = {"x": [0, 1, 2], "y": [0, 1, 2], "z": [0, 1, 2, 3]}
BOUNDS = {"x": (-5, 5), "y": (-5, 5), "z": (-5, 5)}


def confounded(n=2000, seed=0):
    """X and Y are independent given Z, and dependent without it."""
    generator = np.random.default_rng(seed)
    z = generator.integers(0, 4, n)
    draw = [np.clip((z + generator.integers(0, 3, n)) // 2, 0, 2) for _ in range(2)]
    return pd.DataFrame({"x": draw[0], "y": draw[1], "z": z}).astype(float)


def emptied(frame, columns, count, seed=1):
    """The frame with so many records of empty cells."""
    places = np.random.default_rng(seed).choice(len(frame), count, replace=False)
    changed = frame.copy()
    changed.loc[places, list(columns)] = np.nan
    return changed


def ask(frame, key=0, **options):
    options = {"levels": LEVELS} | options
    return jaxdp.test(frame, x="x", y="y", given="z", epsilon=1.0, key=jax.random.key(key), **options)


def size(answer):
    """n as it is printed."""
    return answer.to_dict()["n"]


def harm(frame, given=("z",), **options):
    """What the owner is told, from the counts alone."""
    schema = Schema.from_dict(
        {"columns": {name: {"kind": "continuous", "bounds": [-5, 5]} | options.get(name, {}) for name in frame}}
    )
    report = ParseReport()
    report.add_piece(schema.rules, {name: frame[name].to_numpy() for name in frame})
    return report.harm(given)


def test_an_empty_confounder_is_refused_and_costs_nothing(tmp_path):
    frame = emptied(confounded(), ["z"], 100)
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    with pytest.raises(ValueError, match=r"100 of 2000 cells of column 'z'.*nothing was charged.*drop"):
        jaxdp.test(frame, x="x", y="y", given="z", epsilon=1.0, levels=LEVELS, ledger=ledger)
    assert ledger.rows() == []


def test_dropping_is_what_the_owner_would_do_by_hand(capsys):
    frame = emptied(emptied(confounded(), ["z"], 100), ["x", "y"], 50, seed=2)
    answer, by_hand = ask(frame, missing="drop"), ask(frame.dropna())
    assert answer.p_value == by_hand.p_value
    assert size(answer) == size(by_hand) == len(frame.dropna())
    assert f"{2000 - len(frame.dropna())} records lack a value" in capsys.readouterr().err
    assert "left out" in str(answer)
    assert "left out" not in str(by_hand)


@pytest.mark.full
def test_filled_cells_reject_true_nulls_and_dropped_ones_do_not():
    frames = [emptied(confounded(4000, seed), ["z"], 400, seed) for seed in range(20)]
    filled = sum(ask(frame, key, force=True).p_value < 0.05 for key, frame in enumerate(frames))
    dropped = sum(ask(frame, key, missing="drop").p_value < 0.05 for key, frame in enumerate(frames))
    assert filled > 10  # otherwise this design shows nothing
    assert dropped <= 4  # P(more) = 0.003 at level 0.05


def test_few_empty_cells_do_no_harm():
    frame = confounded()
    assert harm(frame) == ""
    assert harm(emptied(frame, ["z"], 11)) == ""
    assert "column 'z'" in harm(emptied(frame, ["z"], 12))
    assert harm(emptied(frame, ["x"], 11)) == ""
    assert "column 'x'" in harm(emptied(frame, ["x"], 12))
    assert "empty" in harm(emptied(frame, ["x", "y"], 12))
    assert "column 'x'" in harm(emptied(frame, ["x"], 300), given=("x", "z"))


def wages(seed, n=3000):
    """Two independent columns, the first of which is empty mostly where the second is large."""
    generator = np.random.default_rng(seed)
    age, wage = generator.uniform(18, 90, n), generator.gamma(4.0, 4.0, n)
    gone = generator.random(n) < np.where(age > 60, 0.9, 0.1)
    return pd.DataFrame({"wage": np.where(gone, np.nan, wage), "age": age})


def test_a_column_that_is_empty_for_some_values_of_the_other_is_refused(tmp_path):
    """Filled, the independent columns are called dependent; with incomplete records left out they are not."""
    settings = {"x": "wage", "y": "age", "epsilon": 1.0, "bounds": {"wage": (0, 60), "age": (18, 90)}}
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    with pytest.raises(ValueError, match=r"cells of column 'wage'.*nothing was charged.*drop"):
        jaxdp.test(wages(0), ledger=ledger, **settings)
    assert ledger.rows() == []
    filled = [jaxdp.test(wages(s), key=jax.random.key(s), force=True, **settings).p_value for s in range(3)]
    dropped = [jaxdp.test(wages(s), key=jax.random.key(s), missing="drop", **settings).p_value for s in range(3)]
    assert max(filled) < 0.05  # otherwise this design shows nothing
    assert max(dropped) > 0.05


def test_check_reports_a_column_that_a_test_would_refuse(tmp_path, capsys):
    from jaxdp.cli.main import main

    wages(0).to_csv(tmp_path / "w.csv", index=False)
    text = (
        '[columns.wage]\nkind = "continuous"\nbounds = [0, 60]\n[columns.age]\nkind = "continuous"\nbounds = [18, 90]\n'
    )
    (tmp_path / "w.toml").write_text(text)
    assert main(["check", str(tmp_path / "w.csv"), "--schema", str(tmp_path / "w.toml")]) == 2
    assert "'wage'" in capsys.readouterr().err


def test_a_declared_stand_in_is_a_value():
    frame = emptied(confounded(), ["z"], 300)
    assert harm(frame)
    assert harm(frame, z={"missing": 0}) == ""


def test_unlisted_levels_are_refused_unless_other_says_what_they_are():
    frame = confounded()
    with pytest.raises(ValueError, match="hold no value of it"):
        ask(frame, levels=LEVELS | {"z": [0, 1, 2]})
    with pytest.raises(ValueError, match=r"column 'x' hold none of its levels. They would count as 0"):
        ask(frame, levels=LEVELS | {"x": [0, 1]})
    assert size(ask(frame, levels=LEVELS | {"x": [0, 1]}, missing="drop")) == np.sum(frame["x"] < 2)
    kinds = {name: {"kind": "ordinal", "levels": levels} for name, levels in LEVELS.items()}
    kinds["x"] = {"kind": "ordinal", "levels": [0, 1], "other": 1}
    assert size(ask(frame, levels=None, schema={"columns": kinds})) == 2000
    dropped = ask(frame, levels=LEVELS | {"z": [0, 1, 2]}, missing="drop")
    assert size(dropped) == np.sum(frame["z"] < 3)


def test_a_confounder_beyond_its_bounds_is_refused():
    frame = confounded()
    shifted = frame.assign(z=np.where(np.arange(2000) < 44, 6.0 + np.arange(2000), frame["z"]))
    assert harm(shifted) == ""
    shifted.loc[44, "z"] = 7.0
    assert "outside its bounds" in harm(shifted)
    assert harm(shifted, given=()) == ""
    with pytest.raises(ValueError, match="widen the bounds"):
        ask(shifted, levels=None, bounds=BOUNDS, method="partition-gcm")
    ask(shifted, levels=None, bounds=BOUNDS)  # leaves such records out by itself


def test_searches_and_mic_ask_by_the_same_rule():
    frame = emptied(confounded(), ["x"], 100)
    with pytest.raises(ValueError, match="column 'x'"):
        jaxdp.discover(frame, epsilon=1.0, levels=LEVELS, key=jax.random.key(0))
    graph = jaxdp.discover(frame, epsilon=1.0, levels=LEVELS, key=jax.random.key(0), missing="drop")
    assert "left out" in graph.note
    both = emptied(confounded(), ["x", "y"], 100)
    with pytest.raises(ValueError, match="nothing was charged"):
        jaxdp.mic(both, x="x", y="y", epsilon=1.0, bounds=BOUNDS, key=jax.random.key(0))


def test_strict_neither_refuses_nor_drops():
    frame = emptied(confounded(), ["z"], 100)
    assert size(ask(frame, strict=True)) == 2000
    with pytest.raises(ValueError, match="strict"):
        ask(frame, strict=True, missing="drop")
    with pytest.raises(ValueError, match="records"):
        ask(frame, records=2000, missing="drop")
    with pytest.raises(ValueError, match="'refuse' or 'drop'"):
        ask(frame, missing="dorp")


def test_units_are_the_first_complete_rows():
    frame = confounded(600)
    frame["who"] = np.arange(600) // 2
    frame.loc[0, "z"] = np.nan
    columns = {name: {"kind": "ordinal", "levels": levels} for name, levels in LEVELS.items()}
    schema = Schema.from_dict({"columns": columns, "unit": "who", "missing": "drop"})
    data = schema.read(frame, x="x", y="y", given="z", codes=True)
    assert data.x.shape == (300,)
    assert data.z[0, 0] == frame.loc[1, "z"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("bounds", [[-5, 5], [-8e307, 8e307]])
def test_the_largest_floats_are_values_beyond_the_bounds(bounds):
    """They are clipped; what is counted of the other values says what it said without them."""
    rng = np.random.default_rng(3)
    heaped = np.where(rng.uniform(size=2000) < 0.4, rng.integers(-4, 5, 2000), rng.uniform(-5.0, 5.0, 2000))
    schema = Schema.from_dict({"columns": {"z": {"kind": "continuous", "bounds": bounds}}})
    told = []
    for values in (heaped, np.r_[heaped, np.finfo(float).max], np.r_[heaped, np.finfo(float).max, -1e308]):
        report = ParseReport()
        report.add_piece(schema.rules, {"z": values})
        column = report.columns["z"]
        assert column.outside == len(values) - len(heaped)
        told.append((column.rounded, column.piles, column.tied, column.counts_on, column.unstepped))
    assert told[0][0] == (1.0, pytest.approx(700, abs=30))
    assert told[1] == told[2] == told[0]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bounds_as_wide_as_floats_allow_are_looked_through():
    schema = Schema.from_dict({"columns": {"z": {"kind": "continuous", "bounds": [-8e307, 8e307]}}})
    report = ParseReport()
    report.add_piece(schema.rules, {"z": np.linspace(-8e307, 8e307, 200)})
    assert not report.unsaid(["z"], ["z"])
    assert not report.tied(["z"])


def far_off(n=10_000, sd=5.0, seed=0):
    """X, Y and Z whose stand-in, 50, lies 9 sds from their mean, and two groups."""
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({name: np.minimum(generator.exponential(sd, n), 100.0) for name in ("x", "y", "z")})
    return frame.assign(g=generator.integers(0, 2, n))


@pytest.mark.parametrize(
    ("sd", "method", "empty", "count", "refused"),
    [
        (5.0, "mean-difference", ["y"], 2, ""),  # 2 cells of 9 sds: 18 of 25
        (5.0, "mean-difference", ["y"], 3, "3 of 10000 cells of column 'y' .*far from the others"),
        (10.0, "mean-difference", ["y"], 6, ""),
        (10.0, "mean-difference", ["y"], 7, "column 'y'"),
        (5.0, "partial-correlation", ["x", "y"], 1, "far from the others"),
        (5.0, "linear-regression", ["z"], 1, "column 'z'"),
        (5.0, "linear-regression", ["x"], 2, ""),
        (5.0, None, ["x", "y"], 25, ""),  # neighbours and cells, which no distance moves
        (
            5.0,
            None,
            ["x", "y"],
            26,
            "26 of 10000 cells of column '.' are empty or hold no value of it. Filled with one",
        ),
    ],
)
def test_means_and_slopes_count_cells_by_how_far_off_they_are_filled(sd, method, empty, count, refused):
    frame = emptied(far_off(sd=sd), empty, count)
    schema = {"columns": {name: {"kind": "continuous", "bounds": [0, 100]} for name in ("x", "y", "z")}}
    schema["columns"]["g"] = {"kind": "binary", "levels": [0, 1]}
    query = {"x": "g", "y": "y"} if method == "mean-difference" else {"x": "x", "y": "y", "given": "z"}
    how = {"schema": schema, "method": method, "epsilon": 1.0, "key": jax.random.key(0), **query}
    if not refused:
        assert size(jaxdp.test(frame, **how)) == 10_000
        return
    with pytest.raises(ValueError, match=refused):
        jaxdp.test(frame, **how)


def test_pairs_by_a_test_of_means_and_slopes_count_so_too():
    schema = {"columns": {name: {"kind": "continuous", "bounds": [0, 100]} for name in ("x", "y", "z")}}
    how = {"schema": schema, "columns": ["x", "y", "z"], "epsilon": 3.0, "key": jax.random.key(0)}
    with pytest.raises(ValueError, match=r"3 of 10000 cells of column 'y' .*far from the others"):
        jaxdp.test_pairs(emptied(far_off(), ["y"], 3), method="partial-correlation", **how)


@pytest.mark.full
@pytest.mark.parametrize("distance", [0.0, 1.0, 3.0])
def test_the_most_cells_of_z_that_pass_keep_the_level_without_noise(distance):
    """Half of the variance of X and of Y is due to Z; as many as pass are filled, and the correlation is not noised."""
    n, rejected = 10_000, 0
    count = int(25 / (1.0 + distance**2))
    generator = np.random.default_rng(2)
    for _ in range(1000):
        z, x, y = generator.normal(size=(3, n))
        x, y, filled = x + z, y + z, np.r_[np.full(count, distance), z[count:]]
        left = [v - v.mean() - (filled - filled.mean()) * np.cov(v, filled)[0, 1] / filled.var() for v in (x, y)]
        product = left[0] * left[1]
        rejected += abs(product.sum()) > 1.96 * np.sqrt(product @ product)
    assert 0.03 < rejected / 1000 < 0.09  # .057 in theory, +- 4.4 standard errors


PERSONS = {"unit": "id", "columns": {name: {"kind": "continuous", "bounds": [0, 5]} for name in ("x", "y", "z")}}


def persons(rows_of_others, seed=0):
    """600 persons with a first row each, and further rows, none of them empty."""
    generator = np.random.default_rng(seed)
    ids = np.r_[np.arange(600), np.repeat(np.arange(600 - len(rows_of_others), 600), rows_of_others)]
    return pd.DataFrame({"id": ids, **{name: generator.uniform(0.0, 5.0, len(ids)) for name in ("x", "y", "z")}})


def in_memory(frame, schema, folder, monkeypatch):
    return frame


def in_chunks(frame, schema, folder, monkeypatch):
    """The same table on a disk, of which no person fits into memory."""
    frame.to_parquet(folder / "t.parquet")
    monkeypatch.setattr("jaxdp.ask.reading.Reading.limit", 1000)
    return folder / "t.parquet"


@pytest.mark.parametrize("table", [in_memory, in_chunks])
@pytest.mark.parametrize("rows", ["first", "random"])
def test_cells_are_counted_in_the_rows_that_stand_for_persons(rows, table, tmp_path, monkeypatch):
    """Rows of some persons once hid that others have no value, and empty rows of one person were taken for many."""
    schema = PERSONS | {"rows": rows}
    many = persons([60] * 200)
    assert len(many) == 12_600
    many.loc[:29, ["x", "y"]] = np.nan
    ask = functools.partial(jaxdp.test, schema=schema, x="x", y="y", epsilon=1.0, key=jax.random.key(0))
    source = table(many, schema, tmp_path, monkeypatch)
    with pytest.raises(ValueError, match=r"30 of 600 cells of column 'x' .*\(cells are those of one row for each id\)"):
        ask(source)
    graph = {"schema": schema, "columns": ["x", "y", "z"], "epsilon": 1.0, "key": jax.random.key(0)}
    if table is in_memory:
        with pytest.raises(ValueError, match="30 of 600 cells of column 'x'"):
            jaxdp.discover(source, **graph)
    one = persons([100])
    one.loc[600:, "x"] = np.nan
    assert size(ask(table(one, schema, tmp_path, monkeypatch))) == 600


@pytest.mark.parametrize("rows", ["all", "first", "random"])
def test_values_that_persons_repeat_are_no_piles(rows):
    frame = persons([5, 10, 20, 40] * 50)
    frame["z"] = np.random.default_rng(1).uniform(0.0, 5.0, 600).round(3)[frame["id"]]
    answer = jaxdp.test(
        frame, schema=PERSONS | {"rows": rows}, x="x", y="y", given="z", epsilon=1.0, key=jax.random.key(0)
    )
    assert size(answer) == 600


def test_check_counts_the_rows_that_a_test_reads(tmp_path, capsys):
    from jaxdp.cli.main import main

    table = persons([60] * 200)
    table.loc[:29, "x"] = np.nan
    table["id"] = table["id"].astype("Int64")
    table.loc[[100, 101, 102], "id"] = pd.NA
    table.to_csv(tmp_path / "p.csv", index=False)
    columns = "".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [0, 5]\n' for name in ("x", "y"))
    (tmp_path / "p.toml").write_text(f'unit = "id"\nrows = "first"\n{columns}')
    assert main(["check", str(tmp_path / "p.csv"), "--schema", str(tmp_path / "p.toml")]) == 2
    told = capsys.readouterr()
    assert "30 of 598 cells of column 'x'" in told.err
    assert "3 rows have no id, and count together as one record" in told.out


def test_rows_without_an_id_are_told_to_the_owner(capsys, tmp_path):
    frame = persons([3] * 10)
    frame["id"] = [f"p{one}" for one in frame["id"]]
    how = {"schema": PERSONS, "x": "x", "y": "y", "epsilon": 1.0}
    for gone, told in ((1, False), (40, True)):
        frame.loc[: gone - 1, "id"] = ""
        frame.to_csv(tmp_path / "p.csv", index=False)
        for source in (frame, tmp_path / "p.csv"):
            jaxdp.test(source, key=jax.random.key(0), **how)
            assert (f"{gone} rows have no id, and count together as one record" in capsys.readouterr().err) is told


def unrelated(n=5000, empty=0.05):
    """Three independent columns far from the middle of their bounds, of which two are empty in the same records."""
    generator = np.random.default_rng(0)
    values = np.clip(generator.normal(0.6, 0.1, (n, 3)), -1, 1)
    values[generator.random(n) < empty, :2] = np.nan
    return values


SCALED = {"columns": {name: {"kind": "continuous", "bounds": [-1, 1]} for name in "xyw"}}


@pytest.mark.parametrize("form", ["frame", "file"])
def test_reading_refuses_what_a_test_of_the_same_columns_refuses(tmp_path, form):
    """For `jaxdp.run`, a search or another library: filled, independent columns are dependent with certainty."""
    table = pd.DataFrame(unrelated(), columns=list("xyw"))
    if form == "file":
        table.to_csv(tmp_path / "d.csv", index=False)
        table = tmp_path / "d.csv"
    schema = Schema.from_dict(SCALED)
    way_out = "column '[xy]' are empty .* taken for dependence: .*missing = .drop..*report=.*for the owner"
    with pytest.raises(FormError, match=way_out):
        schema.read_table(table)
    with pytest.raises(FormError, match=way_out):
        schema.read(table, x="x", y="y")
    with pytest.raises(FormError, match=way_out):
        schema.read(table, x="w", y="y", given="x")
    assert len(schema.read(table, x="w", y=None).x) == 5000  # no cell of this column is empty
    assert np.isfinite(schema.read_table(table, report=ParseReport())[0]).all()  # whoever counts them may fill them
    assert len(schema.read_table(table, strict=True)[0]) == 5000
    complete = Schema.from_dict({**SCALED, "missing": "drop"})
    assert 4700 < len(complete.read_table(table)[0]) < 4800
    declared = {name: {**rule, "missing": 0} for name, rule in SCALED["columns"].items()}
    assert len(Schema.from_dict({"columns": declared}).read_table(table)[0]) == 5000


def test_reading_a_few_cells_without_a_value_fills_them(recwarn):
    table = pd.DataFrame(unrelated(empty=0.0), columns=list("xyw"))
    table.loc[:14, "x"] = np.nan  # sqrt(5000)/4 = 17.7
    schema = Schema.from_dict({"columns": {**SCALED["columns"], "x": {"kind": "continuous", "bounds": [0.2, 1]}}})
    assert np.isfinite(schema.read(table, x="x", y="y").x).all()
    assert not recwarn.list
    table.loc[:14, "y"] = np.nan  # six sds off in the same records: as many as 90 for a test of means
    with pytest.warns(OwnerWarning, match="far from the others, .* by the tests for which jaxdp.test would refuse"):
        Schema.from_dict(SCALED).read(table, x="x", y="y")


def test_arrays_with_many_nans_warn_that_dependence_may_be_invented(recwarn):
    values = unrelated(empty=0.009)  # below a hundredth of the cells
    described = tuple(Column(CONTINUOUS, 0, name) for name in "xyw")
    test = jaxdp.ConditionalKendall(epsilon=0.5)
    told = "of 5000 cells of column '(x|v0)' are NaN.* dependence may be invented"
    for data, options in ((values, {"levels": (0, 0, 0)}), ((values, described), {}), (Records(values, described), {})):
        with pytest.warns(OwnerWarning, match=told):
            jaxdp.interop.PrivateQueries(test, data, epsilon=1.0, max_given=0, **options)
    with pytest.warns(OwnerWarning, match="of 5000 cells of x are NaN.* dependence may be invented"):
        jaxdp.run(jaxdp.QuantileTable(epsilon=1.0), jax.random.key(0), jaxdp.Data(values[:, 0], values[:, 1]))
    recwarn.clear()
    few = unrelated(empty=0.0)
    few[:17, :2] = np.nan
    as_records(few, (0, 0, 0))
    jaxdp.run(jaxdp.QuantileTable(epsilon=1.0), jax.random.key(0), jaxdp.Data(few[:, 0], few[:, 1]))
    assert not [one for one in recwarn if "NaN" in str(one.message)]


def test_a_test_that_leaves_records_out_warns_nobody(recwarn):
    values = unrelated(empty=0.05)
    jaxdp.run(jaxdp.ScoreTest(epsilon=1.0), jax.random.key(0), jaxdp.Data(values[:, 2], values[:, 0], values[:, 2:]))
    assert not [one for one in recwarn if "NaN" in str(one.message)]


@pytest.mark.parametrize("rows", ["first", "random"])
def test_rows_without_an_id_are_one_person_however_that_is_spelled(rows):
    """An empty cell, NA, nan, NULL and none were five persons, whom the owner was told to be one."""
    ids = ["a", "", "NA", "nan", "NULL", "none", None, float("nan"), "b", "<NA>"]
    units, one_row = Units(), DrawnRows(rows)
    units.add(ids)
    one_row.add(ids)
    assert len(units.chosen(rows)) == len(one_row) == 3
    assert units.without_id == one_row.without_id == 8
    assert one_row.one_pass()(ids)[0].sum() == 3
    table = {"x": [0.0] * 10, "y": [0.0] * 10, "id": ["p", "", "NA", "nan", "NULL", "none", "q", "q", "p", "p"]}
    schema = Schema.from_dict({"columns": dict.fromkeys("xy", SCALED["columns"]["x"]), "unit": "id"})
    assert len(schema.read(table, x="x", y="y").x) == 3


def coded(columns, count, code=-999.0, n=2000, seed=0):
    """Independent normal columns x, y and z, in which so many records hold a code in these columns."""
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(n, 3)), columns=list("xyz"))
    frame.loc[: count - 1, list(columns)] = code
    return frame


def test_codes_for_missing_beyond_the_bounds_are_refused_as_empty_cells_are(tmp_path):
    """Clipped to a bound in X and Y together they were dependence in 60 of 60 nulls; sqrt(2000)/4 = 11.2."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    told = "12 of 2000 cells of column 'x' and 12 of column 'y' hold one and the same value outside the bounds.*charged"
    with pytest.raises(ValueError, match=told) as refusal:
        jaxdp.test(coded("xy", 12), x="x", y="y", epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    assert "999" not in str(refusal.value)
    assert "write such cells as empty" in str(refusal.value)
    assert ledger.rows() == []
    with pytest.raises(ValueError, match="one and the same value"):  # complete or not, they are there
        jaxdp.test(coded("xy", 12), x="x", y="y", epsilon=1.0, bounds=BOUNDS, key=jax.random.key(0), missing="drop")
    admitted = ((coded("xy", 12), {"strict": True}), (coded("xy", 12), {"force": True}), (coded("xy", 11), {}))
    for seed, (frame, way) in enumerate((*admitted, (coded("x", 200), {}))):
        how = {"x": "x", "y": "y", "epsilon": 1.0, "bounds": BOUNDS, "key": jax.random.key(seed)}
        assert size(jaxdp.test(frame, **how, **way)) == 2000


@pytest.mark.parametrize(
    ("columns", "given", "refused"),
    [("xy", "", True), ("x", "", False), ("z", "z", True), ("xz", "z", True), ("y", "xyz", True), ("yz", "", True)],
)
@pytest.mark.parametrize("code", [-999.0, 9999.0, -6.0])
def test_codes_are_counted_of_z_and_of_two_other_columns(columns, given, refused, code):
    assert ("one and the same value" in harm(coded(columns, 20, code), given)) is refused


def test_means_and_slopes_count_codes_by_how_far_off_their_bound_is():
    frame, how = coded("xy", 5), {"x": "x", "y": "y", "epsilon": 1.0, "bounds": BOUNDS, "key": jax.random.key(0)}
    assert size(jaxdp.test(frame, **how)) == 2000
    with pytest.raises(ValueError, match="5 of 2000 cells of column 'x' and 5 of column 'y' hold one and the same"):
        jaxdp.test(frame, method="linear-regression", **how)


@pytest.mark.parametrize(
    "values",
    [
        lambda generator, n: generator.normal(size=n),
        lambda generator, n: np.round(2.0 * generator.normal(size=n)) / 2.0,
        lambda generator, n: generator.poisson(0.5, n) - 0.5,
        lambda generator, n: np.round(generator.pareto(1.5, n)),
    ],
    ids=["normal", "steps", "counts", "heavy"],
)
@pytest.mark.parametrize("n", [200, 1000, 5000, 50_000])
def test_honest_tails_beyond_the_bounds_are_no_codes(values, n):
    schema = Schema.from_dict({"columns": {"x": {"kind": "continuous", "bounds": [-2, 2]}}})
    for seed in range(5):
        report = ParseReport()
        report.add_piece(schema.rules, {"x": values(np.random.default_rng(seed), n)})
        assert report.columns["x"].outside > 0
        assert report.columns["x"].coded == (0, 0.0)


def test_a_zero_is_a_value_on_the_logarithm_and_a_code_far_off_is_one_beside_a_tail():
    schema = Schema.from_dict({"columns": {"x": {"kind": "continuous", "bounds": [0.1, 10], "scale": "log"}}})
    values = np.random.default_rng(0).lognormal(size=2000)
    for code, found in ((0.0, (0, 0.0)), (-1.0, (60, -1.0)), (1e9, (60, 1.0))):
        report = ParseReport()
        report.add_piece(schema.rules, {"x": np.r_[values, np.full(60, code)]})
        assert report.columns["x"].coded == found
    schema = Schema.from_dict({"columns": {"x": {"kind": "continuous", "bounds": [-1, 1]}}})
    report = ParseReport()
    report.add_piece(schema.rules, {"x": np.r_[np.random.default_rng(0).normal(size=2000), np.full(60, -99.0)]})
    assert report.columns["x"].coded == (60, -1.0)


@pytest.mark.parametrize("table", [in_memory, in_chunks])
def test_reading_searches_and_chunks_refuse_codes_too(table, tmp_path, monkeypatch):
    schema = {"columns": {name: {"kind": "continuous", "bounds": [-5, 5]} for name in "xyz"}}
    source = table(coded("xy", 40), schema, tmp_path, monkeypatch)
    told = "one and the same value outside the bounds"
    with pytest.raises(ValueError, match=told):
        jaxdp.test(source, schema=schema, x="x", y="y", epsilon=1.0, key=jax.random.key(0))
    with pytest.raises(ValueError, match=told):
        jaxdp.discover(source, schema=schema, epsilon=1.0, method="moment_pc", key=jax.random.key(0), delta=1e-6)
    with pytest.raises(FormError, match=f"{told}.*write such cells as empty"):
        Schema.from_dict(schema).read(source, x="x", y="y")
    assert len(Schema.from_dict(schema).read(source, x="x", y="z").x) == 2000
    if table is in_memory:
        found = jaxdp.describe(source, schema=schema, epsilon=1.0, key=jax.random.key(0))  # each column by itself
        assert len(found.columns) == 3


def test_check_names_codes(tmp_path, capsys):
    from jaxdp.cli.main import main

    text = "".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [-5, 5]\n' for name in "xyz")
    (tmp_path / "s.toml").write_text(text)
    for columns, code in (("xy", 2), ("x", 0)):
        coded(columns, 40).to_csv(tmp_path / "d.csv", index=False)
        assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml")]) == code
        told = capsys.readouterr()
        assert "40 of 2000 cells of 'x' hold one and the same value outside the bounds" in told.out
        assert ("write such cells as empty" in told.err) is (code == 2)
