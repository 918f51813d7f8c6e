"""What people meet first: cautions, costs as read, columns given for settings, dates, lazy frames, pictures."""

import datetime

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jaxdp
from jaxdp._base.amounts import spent
from jaxdp._base.printed import printed
from jaxdp.core import Cost, Relation
from jaxdp.report.sections import narrative

MARK = 987_654_321


def columns(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=n), "b": rng.normal(size=n)}


def ask(table=None, key=0, **how):
    made = {"x": "a", "y": "b", "epsilon": 1.0, "bounds": {"a": (-4, 4), "b": (-4, 4)}, **how}
    return jaxdp.test(columns() if table is None else table, key=None if key is None else jax.random.key(key), **made)


def test_few_records_and_a_large_epsilon_are_said():
    few = " ".join(ask(columns(15)).sentences())
    assert "Few records (15)" in few
    assert "Few records" not in " ".join(ask().sentences())
    large = ask(key=None, epsilon=1000.0)
    assert "Epsilon of 1000 protects little" in " ".join(large.sentences())
    assert "99.9 of 100" not in " ".join(ask(key=None, epsilon=5.5).sentences())
    assert "up to 99.6 of 100" in " ".join(ask(key=None, epsilon=5.5).sentences())
    assert "protects little" not in " ".join(ask(key=None, epsilon=2.0).sentences())


def test_a_release_without_a_ledger_says_so(tmp_path):
    assert "No ledger recorded" in " ".join(ask(key=None).sentences())
    assert "No ledger recorded" not in " ".join(ask().sentences())
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0)
    assert "No ledger recorded" not in " ".join(ask(key=None, ledger=ledger).sentences())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0 - 2.0**-48, "1"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-6, "1e-06"),
        (0.12345678, "0.123457"),
        (2.0000001, "2.00001"),
    ],
)
def test_a_cost_is_read_rounded_and_never_below_what_was_spent(value, text):
    assert spent(value) == text
    assert float(text) >= value * (1.0 - 1e-12)


def test_a_cost_hides_the_rounding_of_a_sum_of_shares_and_nothing_else():
    for value, text in ((1.0 - 2.0**-48, "1.0"), (1.00000000001, "1.00000000001"), (0.12345678, "0.12345678")):
        assert str(Cost(epsilon=value, delta=0.0, relation=Relation.REPLACE_ONE)).startswith(f"epsilon={text},")


OBJECTS = [
    pd.Series([MARK] * 3),
    np.array([MARK] * 3),
    pl.Series([MARK] * 3),
    {MARK},
    b"987654321",
    [MARK, MARK],
    np.array([str(MARK)] * 2),
]


@pytest.mark.parametrize(
    "name", ["x", "y", "given", "epsilon", "method", "sees", "missing", "memory", "level", "records"]
)
@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_no_message_quotes_a_column_that_was_given_for_a_setting(name, value):
    with pytest.raises((TypeError, ValueError)) as raised:
        ask(**{name: value})
    error: BaseException | None = raised.value
    while error is not None:
        assert str(MARK) not in str(error)
        error = error.__cause__ or error.__context__


def test_bounds_that_are_a_column_are_not_quoted():
    with pytest.raises((TypeError, ValueError)) as raised:
        ask(bounds={"a": [MARK] * 5, "b": (-4, 4)})
    assert str(MARK) not in str(raised.value)
    assert printed(np.array(3)) == "a ndarray"
    assert printed("a") == "'a'"


@pytest.mark.parametrize(
    "ends",
    [
        ("2020-01-01", "2021-12-31"),
        (datetime.date(2020, 1, 1), datetime.date(2021, 12, 31)),
        (np.datetime64("2020-01-01"), np.datetime64("2021-12-31", "ns")),
    ],
)
def test_bounds_may_be_dates(ends):
    days = pd.date_range("2020-02-01", periods=200, freq="D")
    table = {
        "a": days.strftime("%Y-%m-%d").to_numpy(),
        "b": np.arange(200.0) + np.random.default_rng(0).normal(size=200),
    }
    answer = ask(table, epsilon=8.0, bounds={"a": ends, "b": (-10, 210)})
    assert answer.dependence_found


def test_a_lazy_frame_is_a_table():
    lazy = pl.LazyFrame({**columns(), "unused": ["text"] * 200})
    assert ask(lazy).p_value == ask(pl.DataFrame(columns())).p_value
    with pytest.raises(ValueError, match="'c'"):
        ask(lazy, x="c", bounds={"c": (0, 1), "b": (-4, 4)})


def test_a_picture_has_savefig(tmp_path):
    path = ask().plot().savefig(tmp_path / "answer.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"a picture is a PNG.*got a name that ends in \.pdf"):
        ask().plot().savefig(tmp_path / "answer.pdf")


def test_a_column_in_place_of_its_levels_tells_no_two_records_alike():
    table = {"a": columns()["a"], "b": np.tile(["u", "v"], 100)}
    with pytest.raises(ValueError, match=r"'b': of 200 levels some are the same: write each once") as refused:
        ask(table, bounds={"a": (-4, 4)}, levels={"b": pd.Series(table["b"])})
    assert "number" not in str(refused.value)


def test_a_page_does_not_offer_to_pay_again():
    result = {
        "answer": "No dependence found.", "epsilon": 1.0, "mode": "release", "relation": "replace_one",
        "command": "jaxdp test d.csv --x a --y b --overwrite",
    }  # fmt: skip
    told = " ".join(dict(narrative(result))["How to run it again"])
    assert "--overwrite" not in told
    assert "costs nothing to read again" in told


@pytest.mark.parametrize("column", [pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0]), pa.chunked_array([[1.0, 2.0]])])
def test_a_single_column_is_no_table(column):
    with pytest.raises(TypeError, match=f"source must be .*got {type(column).__name__}"):
        ask(column)
