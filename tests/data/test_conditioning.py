"""What a column of Z stands for: dates with cycles, amounts with their roundness, labels; what the owner is told."""

import csv
import datetime
import json
import re

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.cli.main import main
from jaxdp.data import conditioning
from jaxdp.data.column_rules import column_rule
from jaxdp.data.draft import draft
from jaxdp.data.schema import Schema

OWNER = "for the owner of the file, not for release"
SIDES = {name: {"kind": "continuous", "bounds": [-7, 9]} for name in "xy"}
YEAR = {"kind": "continuous", "date": True, "bounds": ["2023-01-01", "2024-01-01"]}
STAMPS = YEAR | {"bounds": ["2023-01-01T00:00", "2024-01-01T00:00"]}
INCOME = {"kind": "continuous", "bounds": [0, 200_000]}
WEEKDAYS = np.array([1.0, -0.5, 0.7, -1.0, 0.9, -0.8, 0.0])


def rule(**entry):
    return column_rule("z", {"kind": "continuous", **entry})


def schema(z):
    return {"columns": {**SIDES, "z": z}}


def whole_days(rng, n=1000, follows="fortnight"):
    """Dates of a year; X and Y are higher in every other week, or at the turn of the month."""
    day = np.datetime64("2023-01-01") + rng.integers(0, 365, n)
    of_month = (day - day.astype("datetime64[M]")).astype(int)
    trend = 1.5 * (day.astype(int) % 14 < 7) if follows == "fortnight" else 1.5 * ((of_month >= 27) | (of_month < 2))
    return {"x": trend + rng.normal(size=n), "y": trend + rng.normal(size=n), "z": day}


def dates(rng, n=1000, hours=False, effect=0.0):
    """X and Y follow the season, the weekday and, with hours, the time of day; given these, y moves by effect x."""
    days = rng.uniform(0.0, 365.0, n)
    days = days if hours else np.floor(days)
    trend = np.sin(2 * np.pi * days / 365) + WEEKDAYS[np.floor(days).astype(int) % 7]
    trend += 1.5 * np.sin(2 * np.pi * days + 0.7) * hours
    when = np.datetime64("2023-01-01", "us") + np.round(days * 86_400e6).astype("timedelta64[us]")
    own, other = rng.normal(size=(2, n))
    return {"x": trend + own, "y": trend + effect * own + other, "z": when}


def incomes(rng, n=1000):
    """Nearly a half are rounded, to 1000 or 500, by people whose X and Y are higher by 1.2 sd."""
    z, kind = np.exp(rng.normal(10.5, 0.5, n)), rng.uniform(size=n)
    z = np.where(kind < 0.3, np.round(z, -3), np.where(kind < 0.45, 500 * np.round(z / 500), np.round(z)))
    trend = np.log(z) - 10.5 + 1.2 * (kind < 0.45)
    return {"x": trend + rng.normal(size=n), "y": trend + rng.normal(size=n), "z": z}


def labels(rng, n=1000):
    """Values to two decimals that stand for devices, each with many records or few, and with its own X and Y."""
    names = np.random.default_rng(0)
    values, weights = np.round(names.uniform(25, 82, 300), 2), names.gamma(0.5, size=300)
    device = rng.choice(300, n, p=weights / weights.sum())
    effect = names.normal(0.0, 1.5, 300)[device]
    return {"x": effect + rng.normal(size=n), "y": effect + rng.normal(size=n), "z": values[device]}


def rejections(make, z, count, **how):
    """Of `count` tables, through the builder."""
    rng = np.random.default_rng(1)
    ask = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "schema": schema(z), **how}
    return sum(jaxdp.test(make(rng), key=jax.random.key(r), **ask).p_value <= 0.05 for r in range(count))


def test_a_date_stands_for_its_date_its_time_of_day_and_its_weekday():
    stamps = rule(date=True, bounds=["2024-01-01 00:00", "2024-12-31 12:00"], missing="2024-03-03")
    cells = ["2024-03-09 06:00", "2024-03-09", "", "1999-01-01"]  # a Saturday; missing, a Sunday; the lower bound
    found = conditioning.values(stamps, cells)
    assert [column.name for column in conditioning.columns(stamps)] == ["z", "z (time of day)", "z (weekday)"]
    assert found[:, 0].tolist() == stamps.codes(cells).tolist()
    assert found[:, 1] == pytest.approx([-0.5, -1.0, -1.0, -1.0], abs=2e-3)
    assert np.all(np.abs(found[:, 1]) < 1.0)  # midnight lies inside the bounds: such records count
    assert found[:, 2].tolist() == [5.0, 5.0, 6.0, 0.0]
    for row, cell in enumerate(cells):
        assert np.array_equal(conditioning.values(stamps, [cell])[0], found[row])


def test_a_date_without_times_stands_for_its_day_of_the_fortnight_too():
    cells = ["2024-03-01", "2024-03-15", "2024-03-22", "2024-02-29", "2024-12-31"]
    found = conditioning.values(rule(date=True, bounds=["2024-01-01", "2024-12-31"]), cells)
    assert found[0, 1] == found[1, 1] != found[2, 1]
    assert found[0, 1] % 7 == found[2, 1] % 7 == 4.0  # Fridays
    month = rule(date=True, bounds=["2024-01-01", "2024-12-31"], cycles=["week", "month"])
    assert conditioning.values(month, cells)[:, 1:].tolist() == [[4, 0], [4, 14], [4, 21], [3, 28], [1, 30]]
    columns = conditioning.columns(month)
    assert [(column.days, column.levels, column.repeats) for column in columns] == [
        (366, 0, False),
        (0, 7, True),
        (0, 31, True),
    ]


def test_dates_without_times_keep_the_level_whatever_the_days_are():
    """30 tables each; binomial(30, 0.05): beyond 7 at 1e-4. Before days were compared with themselves: 30 and 25."""
    for follows in ("fortnight", "month"):
        assert rejections(lambda rng, follows=follows: whole_days(rng, follows=follows), YEAR, 30) <= 7
    for n in (400, 1000):  # too few for comparing days, or enough of them
        assert rejections(lambda rng, n=n: whole_days(rng, n), YEAR, 30) <= 7


def test_findings_given_few_records_a_day_say_what_could_explain_them():
    def flags(table, z):
        ask = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "key": jax.random.key(1)}
        answer = jaxdp.test(table, **ask, schema=schema(z))
        return answer.content["level_rule"]["flags"], answer.content["answer"]

    rng = np.random.default_rng(4)
    turn = whole_days(rng, 600, "month")
    found, said = flags(turn, YEAR)
    assert found == ["few records a day"]
    assert "unless X and Y follow the day of the month" in said
    assert flags(whole_days(rng, 600), YEAR)[0] == []  # nothing found
    for cycles in (["fortnight"], ["month"]):
        assert flags(turn, YEAR | {"cycles": cycles})[0] == []  # nothing found
    assert flags(dates(rng, 1000, effect=0.5), YEAR)[0] == []


@pytest.mark.parametrize(
    ("entry", "cycles"),
    [
        ({"date": True, "bounds": ["2024-01-01", "2024-12-31"]}, ("fortnight",)),
        ({"date": "%d.%m.%Y %H:%M", "bounds": ["01.01.2024 00:00", "31.12.2024 00:00"]}, ("day", "week")),
        ({"date": "%d.%m.%Y", "bounds": ["01.01.2024", "31.12.2024"]}, ("fortnight",)),
        ({"date": True, "bounds": ["2024-01-01", "2024-01-12"]}, ("week",)),
        ({"date": True, "bounds": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 12, 31)]}, ("day", "week")),
        ({"date": True, "bounds": ["2024-01-01 00:00", "2024-01-05 00:00"]}, ("day",)),  # less than a week
        ({"date": True, "bounds": ["2024-01-01 08:00", "2024-01-01 18:00"]}, ()),
        ({"date": True, "bounds": ["2024-01-01", "2024-12-31"], "cycles": ["day", "week"]}, ("day", "week")),
        ({"date": True, "bounds": ["2024-01-01", "2024-12-31"], "cycles": []}, ()),
    ],
)
def test_cycles_are_those_that_public_knowledge_leaves_room_for(entry, cycles):
    assert rule(**entry).cycles == cycles


def test_roundness_is_the_largest_heap_that_divides():
    assert conditioning.roundness(np.array([3000.0, 1500, 1250, 7, 0, 999.999]), (1000.0, 500.0)).tolist() == [
        0, 1, 2, 2, 0, 2,
    ]  # fmt: skip
    assert conditioning.roundness(np.array([0.3, 0.35, 100.1]), (0.1, 0.05)).tolist() == [0, 1, 0]
    assert rule(bounds=[0, 200_000], step=1).heaps == (10_000, 5000, 1000, 500, 100, 50, 10, 5)
    assert rule(bounds=[18, 90], step=1).heaps == ()  # few values: records of equal age are compared
    assert rule(bounds=[0, 200_000]).heaps == ()
    assert rule(bounds=[0, 200_000], heaps=1000).heaps == (1000.0,)
    assert conditioning.values(rule(bounds=[0, 200_000], heaps=[500, 1000]), ["2500", "3000", "1"])[:, 1].tolist() == [
        1,
        0,
        2,
    ]
    assert conditioning.values(rule(bounds=[0, 200_000], step=1, heaps=[]), ["2500"]).shape == (1, 1)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"bounds": [0, 9], "cycles": ["day"]}, "write date = true too"),
        ({**YEAR, "cycles": ["hour"]}, '"fortnight" and "month"'),
        ({**YEAR, "cycles": "day"}, '"fortnight" and "month"'),
        ({**YEAR, "heaps": [5]}, "takes cycles, not heaps"),
        ({"bounds": [0, 9], "heaps": [10]}, "below the width"),
        ({"bounds": [0, 9], "heaps": [0]}, "above 0"),
        ({"bounds": [0, 9], "heaps": "5"}, "a number such as 1000"),
        ({"bounds": [0, 9], "heaps": [3], "labels": True}, "remove heaps"),
        ({"bounds": [0, 9], "labels": "yes"}, "true or false"),
    ],
)
def test_mistakes_about_z_are_one_sentence(entry, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        rule(**entry)
    with pytest.raises(ValueError, match="takes levels, not cycles"):
        column_rule("z", {"kind": "ordinal", "levels": [1, 2], "cycles": []})


def test_dates_keep_the_level_and_find_what_there_is():
    """30 tables each; binomial(30, 0.05): beyond 7 at 1e-4. All of them are rejected given the date alone."""
    assert rejections(dates, YEAR, 30) <= 7
    assert rejections(dates, YEAR | {"cycles": []}, 30) == 30
    assert rejections(lambda rng: dates(rng, effect=0.5), YEAR, 10) == 10


@pytest.mark.full
def test_timestamps_rounded_numbers_and_labels_keep_the_level():
    """60 tables each; binomial(60, 0.05): beyond 11 at 1e-4."""
    assert rejections(lambda rng: dates(rng, hours=True), STAMPS, 60) <= 11
    assert rejections(incomes, INCOME | {"step": 1}, 60) <= 11
    assert rejections(incomes, INCOME | {"heaps": [1000, 500]}, 60) <= 11
    assert rejections(incomes, INCOME | {"heaps": []}, 20) > 11
    device = {"kind": "continuous", "bounds": [20, 90]}
    assert rejections(labels, device | {"labels": True}, 60) <= 11
    assert rejections(labels, device | {"heaps": []}, 20) > 11


def test_answers_say_what_was_conditioned_on_and_what_was_left_out():
    def answer(table, z):
        ask = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "schema": schema(z), "key": jax.random.key(1)}
        return jaxdp.test(table, **ask)

    rng = np.random.default_rng(2)
    day, stamp, amount = dates(rng), dates(rng, hours=True), incomes(rng)
    for table, z, said in (
        (day, YEAR, "z by its date and its day of the fortnight"),
        (stamp, STAMPS, "z by its date, its time of day and its weekday"),
        (amount, INCOME | {"heaps": [1000, 500]}, "z and whether it is a multiple of 1000, 500"),
        (amount, INCOME | {"labels": True}, "z value by value"),
    ):
        found = answer(table, z)
        assert said in found.content["conditioned_on"]
        assert said in " ".join(repr(found).split())
        assert not {"cycles", "heaps"} & set(found.content["level_rule"]["flags"])
    for table, z, flag, doubt in (
        (day, YEAR | {"cycles": []}, "cycles", "follow the hour or the weekday"),
        (stamp, STAMPS | {"cycles": ["week"]}, "cycles", "follow the hour or the weekday"),
        (amount, INCOME | {"heaps": []}, "heaps", "rounded values of Z differ"),
    ):
        found = answer(table, z)
        assert flag in found.content["level_rule"]["flags"]
        assert "true nulls are rejected" in found.content["level_rule"]["sentence"]
        assert doubt in found.content["answer"]
    assert answer(amount, INCOME | {"bounds": [0, 300_000], "heaps": [500]}).content["level_rule"]["flags"] == []


@pytest.mark.parametrize(
    ("make", "z", "cause", "way_out"),
    [
        (lambda rng: dates(rng, hours=True), YEAR, "hold a time of day", {"cycles": ["day", "week"]}),
        (lambda rng: dates(rng, hours=True), YEAR | {"cycles": ["week"]}, "hold a time of day", {"cycles": []}),
        (incomes, INCOME, "far more frequent than the values beside them", {"heaps": [1000, 500]}),
        (labels, {"kind": "continuous", "bounds": [20, 90]}, "labels = true", {"labels": True}),
        (incomes, INCOME, r"heaps = \[\d+\], if people round", {"heaps": [1000, 500]}),
    ],
)
def test_the_owner_is_refused_where_the_schema_says_nothing_of_what_repeats(tmp_path, make, z, cause, way_out):
    table = make(np.random.default_rng(3))
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    ask = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0}
    with pytest.raises(ValueError, match=cause) as error:
        jaxdp.test(table, **ask, schema=schema(z), ledger=ledger)
    assert OWNER in str(error.value)
    assert "nothing was charged" in str(error.value)
    assert ledger.rows() == []
    with pytest.raises(ValueError, match=cause):
        jaxdp.test_pairs(table, columns=["x", "y"], given="z", epsilon=1.0, schema=schema(z))
    for how in ({"schema": schema(z), "force": True}, {"schema": schema(z | way_out)}):
        assert 0.0 <= jaxdp.test(table, **ask, **how, key=jax.random.key(1)).p_value <= 1.0
    jaxdp.test(table, x="x", y="z", epsilon=1.0, schema=schema(z), key=jax.random.key(1))  # nobody conditions on it


def test_advice_that_the_schema_has_taken_is_not_repeated():
    """Values of persons with several rows repeat without being round."""
    rng = np.random.default_rng(5)
    table = {name: rng.normal(size=2000) for name in "xy"} | {"z": np.repeat(rng.lognormal(10.5, 0.5, 200), 10)}
    how = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "key": jax.random.key(1)}
    with pytest.raises(
        ValueError, match=r"step = \.\.\., if .* labels = true.* names the person.* leave z out"
    ) as told:
        jaxdp.test(table, schema=schema(INCOME), **how)
    assert "heaps = [1" not in str(told.value)
    with pytest.raises(ValueError, match=r"beside the heaps .* labels = true.* names the person.* leave z out"):
        jaxdp.test(table, schema=schema(INCOME | {"heaps": [10_000]}), **how)


@pytest.mark.parametrize("heaps", [None, [0.1]])
def test_heaps_are_advised_where_they_would_be_accepted_alone(heaps):
    """Standardised whole numbers with rounding are multiples of nothing: heaps = [0.1] was advised, then refused."""
    rng = np.random.default_rng(6)
    z = np.where(rng.uniform(size=3000) < 0.4, 10 * rng.integers(2, 9, 3000), rng.integers(18, 90, 3000))
    table = {name: rng.normal(size=3000) for name in "xy"} | {"z": (z - z.mean()) / z.std()}
    entry = {"kind": "continuous", "bounds": [-3, 3]} | ({} if heaps is None else {"heaps": heaps})
    how = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "key": jax.random.key(1)}
    with pytest.raises(ValueError, match=r"step = \.\.\..*, if it.* Or leave z out") as refused:
        jaxdp.test(table, schema=schema(entry), **how)
    assert not re.search(r"heaps = \[\d", str(refused.value))
    step = float(1 / z.std())
    jaxdp.test(table, schema=schema({"kind": "continuous", "bounds": [-3, 3], "step": step}), **how)


def test_all_heaps_that_are_needed_are_advised_at_once():
    """Most round to 1000 and some to 500: one without the other was refused again."""
    rng = np.random.default_rng(6)
    z, who = rng.lognormal(10.5, 0.5, 4000), rng.uniform(size=4000)
    amounts = np.where(who < 0.55, 1000 * np.round(z / 1000), z.round())
    amounts = np.where(who < 0.05, 500 * np.round(z / 500), amounts)
    table = {name: rng.normal(size=4000) for name in "xy"} | {"z": amounts}
    how = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "key": jax.random.key(1)}
    with pytest.raises(ValueError, match=r"in the schema: heaps = \[[\d, ]+\], if") as refused:
        jaxdp.test(table, schema=schema(INCOME), **how)
    named = [int(heap) for heap in re.search(r"heaps = \[([\d, ]+)\]", str(refused.value))[1].split(",")]
    jaxdp.test(table, schema=schema(INCOME | {"heaps": named}), **how)


def test_where_heaps_do_not_help_the_resolution_of_the_column_is_named():
    """Ages of concrete: 1, 3, 7, 28 days and so on; the advice to write heaps = [10] was refused when it was taken."""
    rng = np.random.default_rng(5)
    days = rng.choice([1, 3, 7, 14, 28, 56, 90, 91, 100, 120, 180, 270, 360, 365], 2000)
    table = {name: rng.normal(size=2000) for name in "xy"} | {"z": days}
    how = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "key": jax.random.key(1)}
    z = {"kind": "continuous", "bounds": [0, 400], "heaps": [10]}
    with pytest.raises(ValueError, match="step = 1 in place of heaps"):
        jaxdp.test(table, schema=schema(z), **how)
    del z["heaps"]
    assert jaxdp.test(table, schema=schema(z | {"step": 1}), **how).content["n"] == 2000


@pytest.mark.parametrize("share", [0.15, 0.05])
def test_heaps_that_the_schema_names_wrongly_are_no_word_about_the_others(share):
    """Unrefused, 111 of 160 true nulls were rejected at a share of 0.15, where rounders were 2 sd higher in X and Y."""
    rng = np.random.default_rng(5)
    rounds = rng.uniform(size=2000) < share
    z = rng.lognormal(10.5, 0.5, 2000)
    table = {name: rng.normal(size=2000) for name in "xy"} | {
        "z": np.where(rounds, 1200 * np.round(z / 1200), np.round(z))
    }
    how = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0}
    with pytest.raises(
        ValueError, match=r"beside the heaps of the schema, .* far more frequent .* heaps = \[1000, 100\]"
    ):
        jaxdp.test(table, schema=schema(INCOME | {"heaps": 1000}), **how, key=jax.random.key(1))
    with pytest.raises(ValueError, match=r"beside the heaps of the schema"):
        jaxdp.test(table, schema=schema(INCOME | {"heaps": 1000, "step": 1}), **how, key=jax.random.key(1))
    jaxdp.test(table, schema=schema(INCOME | {"step": 1}), **how, key=jax.random.key(1))
    jaxdp.test(table, schema=schema(INCOME | {"heaps": [1000, 100]}), **how, key=jax.random.key(1))
    jaxdp.test(table, schema=schema(INCOME | {"heaps": [1200]}), **how, key=jax.random.key(1))


@pytest.mark.parametrize(("n", "share", "multiple"), [(1000, 0.06, 1000), (2000, 0.05, 1000), (20_000, 0.02, 100)])
def test_few_rounded_values_are_refused_where_they_would_count(n, share, multiple):
    """Unrefused, 8, 9 and 36 of 40 true nulls were rejected, where rounders were 1.5 sd higher in X and in Y."""
    rng = np.random.default_rng(8)
    z = rng.lognormal(10, 0.6, n)
    table = {name: rng.normal(size=n) for name in "xy"}

    def ask(share, z_entry):
        rounds = rng.uniform(size=n) < share
        amounts = np.where(rounds, multiple * np.round(z / multiple), np.round(z))
        how = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "key": jax.random.key(1)}
        return jaxdp.test(table | {"z": amounts}, **how, schema=schema(z_entry))

    with pytest.raises(ValueError, match=rf"multiples of {multiple} in column 'z'.*heaps = \[{multiple}\]"):
        ask(share, INCOME)
    ask(share, INCOME | {"heaps": [multiple]})
    ask(0.1 / n**0.5, INCOME)


@pytest.mark.parametrize(
    "make",
    [
        lambda rng, n: rng.uniform(0, 1, n),
        lambda rng, n: np.append(rng.integers(18, 80, n - 1), 34.1),  # ages, and one in another form
        lambda rng, n: np.round(rng.lognormal(2, 0.8, n).clip(0, 80), 2),  # money with cents
        lambda rng, n: np.round(rng.integers(0, 2048, n) * 0.0244, 2),  # the steps of a converter
        lambda rng, n: np.round(rng.normal(20, 7, n), 1),  # measured to its resolution: hundreds of values, no piles
        lambda rng, n: rng.poisson(30, n) * 1.0,
        lambda rng, n: np.where(rng.uniform(size=n) < 0.3, 0.0, rng.uniform(0, 9, n)),  # one pile
    ],
)
def test_measured_values_are_no_piles(make):
    rng = np.random.default_rng(4)
    for n in (300, 3000):
        table = {"x": rng.normal(size=n), "y": rng.normal(size=n), "z": make(rng, n)}
        z = {"kind": "continuous", "bounds": [-10, 90]}
        jaxdp.test(table, x="x", y="y", given="z", epsilon=1.0, schema=schema(z), key=jax.random.key(1))


def test_strict_callers_must_say_whether_dates_have_times():
    table = dates(np.random.default_rng(5))
    ask = {"x": "x", "y": "y", "given": "z", "epsilon": 1.0, "strict": True, "key": jax.random.key(1)}
    with pytest.raises(ValueError, match="say whether cells hold times of day"):
        jaxdp.test(table, **ask, schema=schema(YEAR))
    jaxdp.test(table, **ask, schema=schema(YEAR | {"cycles": ["week"]}))


def test_all_pairs_and_pieces_condition_on_the_same_columns():
    table, read = dates(np.random.default_rng(6)), Schema.from_dict(schema(YEAR))
    whole = read.read(table, x="x", y="y", given="z")
    assert whole.z.shape == (1000, 2)
    pieces = [{name: values[part] for name, values in table.items()} for part in (slice(0, 7), slice(7, None))]
    assert np.array_equal(whole.z, np.concatenate([read.coded(p, ["x"], ["y"], ["z"], False).z for p in pieces]))
    values, columns = read.read_table(table, ["x", "y"], given=["z"])
    assert np.array_equal(values[:, 2:], whole.z)
    assert columns[2:] == whole.domain.z
    answers = jaxdp.test_pairs(
        table, columns=["x", "y"], given="z", epsilon=1.0, schema=schema(YEAR), key=jax.random.key(1)
    )
    assert "its day of the fortnight" in answers.content["conditioned_on"]
    assert answers.pairs[0]["method"] == "band-gcm"
    setting = jaxdp.plan.Setting.of_schema(read, "x", "y", ["z"])
    assert setting.z == whole.without_names().domain.z
    drawn = jaxdp.simulate.from_schema(read, 200, x="x", y="y", given="z")(jax.random.key(1))
    assert drawn.z.shape == (200, 2)
    day = np.round(0.5 * (np.asarray(drawn.z[:, 0]) + 1.0) * 365)
    assert np.array_equal(np.asarray(drawn.z[:, 1]), day % 14)
    assert drawn.domain == whole.domain


def test_check_and_the_command_line_name_the_cause(tmp_path, capsys):
    table = incomes(np.random.default_rng(7))
    stamps = dates(np.random.default_rng(7), hours=True)["z"]
    with open(tmp_path / "d.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "y", "z", "seen"])
        writer.writerows(zip(*table.values(), np.datetime_as_string(stamps, "s"), strict=True))
    text = "".join(f"[columns.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
                   for name, entry in {**SIDES, "z": INCOME, "seen": YEAR}.items())  # fmt: skip
    (tmp_path / "s.toml").write_text(text)
    files = [str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml")]
    assert main(["check", *files]) == 0
    said = capsys.readouterr().out
    assert "far more frequent than the values beside them" in said
    assert "hold a time of day" in said
    assert "seen by its date and its day of the fortnight" in said
    ask = ["--x", "x", "--y", "y", "--epsilon", "1", "--seed", "1"]
    for given in ("z", "seen"):
        assert main(["test", *files, *ask, "--given", given, "--out", str(tmp_path / given)]) == 2
        assert OWNER in capsys.readouterr().err
    (tmp_path / "s.toml").write_text(text + 'cycles = ["day", "week"]\n')
    assert main(["test", *files, *ask, "--given", "seen", "--out", str(tmp_path / "out")]) == 0
    assert "its time of day and its weekday" in " ".join(capsys.readouterr().out.split())


def test_a_draft_writes_cycles_and_offers_heaps(tmp_path):
    (tmp_path / "d.csv").write_text("seen_at,income\n")
    text = draft(tmp_path / "d.csv")
    assert "# date = true" in text
    assert '# cycles = ["day", "week"]' in text
    assert "# heaps = [1000, 500]" in text
    pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    columns = {"d": [datetime.date(2020, 1, 1)], "t": [datetime.datetime(2020, 1, 1)]}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    text = draft(tmp_path / "d.parquet")
    assert '\n# cycles = ["fortnight"]' in text
    assert '\ncycles = ["day", "week"]' in text


def test_a_wrong_bound_of_dates_is_answered_by_one_in_the_column_s_format():
    with pytest.raises(ValueError, match=r"without quotes, or a text such as 2024-12-31T00:00:00Z, got '2013"):
        rule(date="%Y-%m-%dT%H:%M:%SZ", bounds=["2013-01-01 00:00", "2014-01-01 00:00"])
    with pytest.raises(ValueError, match=r"such as 2024-12-31, got '2013"):
        rule(date=True, bounds=["2013/01", "2014-01-01"])
