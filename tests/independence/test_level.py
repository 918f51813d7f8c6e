"""Type-I error of every configuration (experiments/evidence/audit/nulls.py), and the code that counts it."""

import dataclasses
import functools
import json

import jax
import pytest
from cases import BY_NAME, CASES

import jaxdp
from experiments.evidence.audit import nulls

pytestmark = pytest.mark.optimised


def test_every_configuration_of_the_contract_table_has_a_null():
    assert set(nulls.rows()) >= {case.name for case in CASES}
    assert all("uncorrected" in name for name in set(nulls.rows()) - set(BY_NAME))


@pytest.mark.full
@pytest.mark.parametrize("name", ["goodness-of-fit", "test-of-tests", "margin-adaptive"])
def test_level_at_ten_thousand_nulls(name):
    row = nulls.measure(name, 10_000, jax.random.key(1))
    assert row["holds"], row["levels"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(nulls.rows()))
def test_level_of_nightly_size(name):
    cheap = (
        "partition-gcm",
        "private-crt-normal",
        "test-of-tests",
        "goodness-of-fit",
        "margin-adaptive",
        "conditional-kendall-codes",
    )
    row = nulls.measure(name, 100_000 if name in cheap else 10_000, jax.random.key(2))
    assert row["holds"], row["levels"]


def test_a_test_that_rejects_too_often_is_reported(monkeypatch):
    """The same test on data with a small effect: its rejections leave the window at both levels."""
    null = nulls.NULLS["private-crt-normal"]
    monkeypatch.setitem(nulls.NULLS, "private-crt-normal", dataclasses.replace(null, n=200))
    shifted = functools.partial(jaxdp.simulate.sine_confounder, n=200, effect=0.2)
    monkeypatch.setattr(nulls, "draw", lambda name: shifted)
    row = nulls.measure("private-crt-normal", 2000, jax.random.key(3))
    assert [part["holds"] for part in row["levels"]] == [False, False]


def test_windows_and_their_sides():
    assert nulls.window(100_000, 0.05) == (4666, 5341)
    assert nulls.window(10_000, 0.01) == (55, 152)


def test_rows_are_kept_and_torn_lines_measured_again(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(nulls, "measure", lambda name, count, key, show: calls.append(name) or made(name, count))
    arguments = ["nulls", "--replicates", "50", "--out", str(tmp_path), "--names", "test-of-tests", "gcm"]
    monkeypatch.setattr("sys.argv", arguments)
    nulls.main()
    nulls.main()
    assert calls == ["test-of-tests", "gcm"]
    path = tmp_path / "nulls.jsonl"
    path.write_text(path.read_text()[:-40])
    nulls.main()
    assert calls == ["test-of-tests", "gcm", "gcm"]
    monkeypatch.setattr("sys.argv", [*arguments, "--replicates", "60"])
    nulls.main()
    assert calls[3:] == ["test-of-tests", "gcm"]
    assert {row["replicates"] for row in nulls.finished(path).values()} == {60}


def made(name, count):
    part = {"rejections": 1, "rate": 0.05, "window": [0, 9], "holds": True}
    return {"name": name, "n": 9, "replicates": count, "promise": "limit", "levels": [part, part], "holds": True}


def test_recorded_rows_say_what_they_found():
    """Every recorded row says whether it lies in its window; one outside is there to be read, not hidden."""
    rows = nulls.finished(nulls.HERE / "nulls.jsonl")
    assert set(rows) <= set(nulls.rows())
    assert len(rows) >= 20
    text = nulls.table(rows)
    for row in rows.values():
        assert row["replicates"] >= 10_000
        assert json.loads(json.dumps(row["holds"])) == (
            "OUTSIDE" not in text.split(f"| {row['name']} |")[1].split("\n")[0]
        )
