"""What the command line tells people who try it for the first time: hints, warnings, progress, notes of `check`."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp.ask.pairs import PairsQuery
from jaxdp.ask.reading import Table
from jaxdp.cli import options, plan
from jaxdp.cli.main import build_parser, main
from jaxdp.data.column_rules import column_rule
from jaxdp.data.parse_report import ColumnReport, describe_ties
from jaxdp.report import sections


def refused(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def test_a_seed_in_python_is_told_the_key():
    with pytest.raises(TypeError, match=r"no keyword 'seed'.*key=jax\.random\.key\(1\)"):
        jaxdp.test({}, x="a", y="b", epsilon=1.0, bounds={"a": (0, 1), "b": (0, 1)}, seed=1)


@pytest.mark.parametrize(
    ("word", "near"),
    [("sandwich", "linear-regression"), ("fisher", r"'fisherz' \(partial-correlation\) or 'fisher-exact'")],
)
def test_a_test_by_the_name_of_its_statistic_is_pointed_to(word, near):
    with pytest.raises(ValueError, match=f"no test called '{word}'; .*{near}"):
        catalogue.find(word)
    with pytest.raises(ValueError, match="; jaxdp methods"):
        catalogue.find("qqqq")


def test_a_file_in_the_place_of_an_action_is_given_one(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a,b\n1,2\n")
    assert f"did you mean jaxdp schema draft {tmp_path}/d.csv?" in refused(capsys, "schema", tmp_path / "d.csv")
    assert f"did you mean jaxdp ledger show {tmp_path}/d.csv?" in refused(capsys, "ledger", tmp_path / "d.csv")


def test_bounds_that_are_too_narrow_are_no_error_of_notation():
    report = ColumnReport(column_rule("delay", {"kind": "continuous", "bounds": [0, 10]}))
    report.add(np.array([5.0, 50.0, 60.0, 70.0, 80.0]))
    told = "80% of the cells of column 'delay' lie outside its bounds [0, 10]: correct the bounds or the unit"
    assert report.sentence == told


def test_a_date_out_of_bounds_is_told_that_bounds_are_midnights():
    rule = column_rule("t", {"kind": "continuous", "date": True, "bounds": ["2013-01-01", "2013-12-31"]})
    report = ColumnReport(rule)
    report.add(["2013-06-01", "2013-12-30T23:00:00", "2013-12-31", "2013-12-31T05:00:00"])
    assert report.outside == 1
    assert "a bound without a time is its midnight" in report.replaced[0]


def test_check_counts_persons_where_one_record_is_a_person(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("id,u\n" + "".join(f"{i // 3},0.{i % 7}\n" for i in range(30)))
    (tmp_path / "s.toml").write_text('unit = "id"\n[columns.u]\nkind = "continuous"\nbounds = [0, 1]\n')
    assert main(["check", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml")]) == 0
    shown = capsys.readouterr().out
    assert "a query reads 10 records, one for each id" in shown
    assert "each line of the file is one row" in shown


def test_check_does_not_ask_for_bounds_that_follow_from_its_count():
    report = ColumnReport(column_rule("w", {"kind": "continuous", "bounds": [0, 100]}))
    report.add(np.linspace(0.0, 9.0, 50))
    assert "if public knowledge allows it, not because of this count" in report.crowding


def test_a_page_shows_no_folder_of_its_owner():
    typed = "jaxdp test /home/me/d.csv --schema s.toml --out=/home/me/out --x a"
    assert options.without_folders(typed) == "jaxdp test d.csv --schema s.toml --out=out --x a"


def test_flags_are_told_in_words():
    told = dict(
        sections.narrative({"answer": "", "epsilon": 1.0, "mode": "release", "level_rule": {"flags": ["labels"]}})
    )
    assert told["What the answer rests on"] == ["Take care: numbers that may be labels of groups (labels)."]


def test_all_pairs_tell_what_they_do_without_a_terminal(capsys):
    with options.stages(3, every=0.0) as on_stage:
        on_stage("pair 1 of 2: a ~ b")
    assert capsys.readouterr().err == "jaxdp: pair 1 of 2: a ~ b\n"
    with options.stages(3, every=3600.0) as on_stage, options.stages(3) as silent:
        on_stage("one")
        silent("two")
    assert capsys.readouterr().err == ""


def test_every_pair_is_told_before_it_is_tested():
    random = np.random.default_rng(1)
    table = {name: random.integers(0, 2 + place, 60) for place, name in enumerate("abc")}
    kinds = {"a": "binary", "b": "categorical", "c": "ordinal"}  # indicators of b: no release of all pairs together
    columns = {name: {"kind": kinds[name], "levels": list(range(2 + k))} for k, name in enumerate("abc")}
    schema = jaxdp.Schema.from_dict({"columns": columns})
    told: list[str] = []
    query = PairsQuery.of(schema, epsilon=3.0, method="partition-gcm")
    answer = query.ask(Table.of(table, schema), jax.random.key(1), on_stage=told.append)
    assert answer.content["sees"] == "covariance of X and Y"
    assert any("a run that is stopped loses its answers" in text for text in told)
    assert [text.partition(",")[0] for text in told if text.startswith("pair ")] == [
        "pair 1 of 3: a ~ b",
        "pair 2 of 3: a ~ c",
        "pair 3 of 3: b ~ c",
    ]


@pytest.mark.parametrize("cells", [[[1, 2], [3], 4], [b"\xff", "a"]])
def test_cells_of_lists_and_bytes_are_one_sentence(cells):
    schema = jaxdp.Schema.from_dict({"columns": {"a": {"kind": "categorical", "levels": ["a", "b"]}}})
    with pytest.raises(
        ValueError, match="column 'a' has cells that are lists or bytes: give one number or text a cell"
    ):
        schema.read_table({"a": cells})


@pytest.mark.parametrize(("method", "told"), [("quantile-table", True), ("partition-gcm", False)])
def test_a_plan_by_simulation_says_that_it_takes_minutes(capsys, method, told):
    args = build_parser().parse_args(["plan", "--method", method, "--n", "100", "--epsilon", "1", "--power", "0.8"])
    plan._tell_simulated(args, None)
    assert ("takes minutes" in capsys.readouterr().err) == told


@pytest.mark.parametrize(
    ("values", "rule", "told"),
    [
        (np.arange(365.0), {}, True),
        (np.arange(730.0)[np.arange(730) % 7 < 5], {}, True),
        (np.arange(365.0), {"step": 1}, False),
        (np.arange(90.0), {}, False),
        (np.arange(365.0) / 2, {}, False),
        (np.random.default_rng(0).integers(0, 4000, 1000).astype(float), {}, False),
        (np.random.default_rng(0).integers(0, 400, 300).astype(float), {}, False),
    ],
    ids=["days", "working days", "codes", "few", "no whole numbers", "a sparse sample", "a dense sample"],
)
def test_a_counter_of_days_is_told_from_a_quantity(values, rule, told):
    column = ColumnReport(column_rule("day", {"kind": "continuous", "bounds": [0, 4000], **rule}))
    column.add(values)
    found = describe_ties([column])
    assert any("as numbered days do. To condition on days, give dates (date = true)" in one for one in found) == told


def test_a_counter_of_days_as_z_warns_the_owner(capsys):
    random = np.random.default_rng(0)
    table = {name: random.uniform(0, 10, 400) for name in "xy"} | {"z": np.arange(400.0)}
    asked = {"bounds": {"x": (0, 10), "y": (0, 10), "z": (0, 400)}, "epsilon": 1.0}
    jaxdp.test(table, x="x", y="y", **asked, key=jax.random.key(1))
    assert "numbered days" not in capsys.readouterr().err
    jaxdp.test(table, x="x", y="y", given="z", **asked, key=jax.random.key(2))
    assert "warning: whole numbers of 'z' (400 values) hardly repeat" in capsys.readouterr().err


def test_repeated_numbers_of_many_columns_are_one_line_and_told_once(capsys):
    random, rule = np.random.default_rng(1), {"kind": "continuous", "bounds": [0, 10]}
    columns = {name: ColumnReport(column_rule(name, rule)) for name in ("site", "age", "wage", "u")}
    for name in ("site", "age"):
        columns[name].add(random.integers(10, size=200).astype(float))
    columns["wage"].add(np.round(random.uniform(0, 2, 200), 1) + 0.05)
    columns["u"].add(random.uniform(0, 10, 200))
    warning, note = describe_ties(columns.values())
    assert warning.startswith("warning: whole numbers of 'site' (10 values), 'age' (10 values) may be codes")
    assert note.startswith("note: numbers of 'wage' (21 values) repeat")
    assert len(warning) < 250
    table = {name: random.uniform(0, 10, 200) for name in "xy"} | {"z": random.integers(9, size=200)}
    bounds = dict.fromkeys("xyz", (0, 10))
    for seed in (1, 2):
        jaxdp.test(table, x="x", y="y", given="z", epsilon=1.0, bounds=bounds, key=jax.random.key(seed))
    assert capsys.readouterr().err.count("whole numbers of 'z' (9 values) may be codes") == 1
