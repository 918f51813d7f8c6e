"""Notations of a schema: a cell is read as declared or not at all, never by a factor off."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest

from jaxdp.data.column_rules import column_rule
from jaxdp.data.notation import Notation
from jaxdp.data.schema import Schema

GERMAN = Notation(decimal=",", thousands=".")


@pytest.mark.parametrize(
    ("notation", "cell", "number"),
    [
        (GERMAN, "1.234,5", 1234.5),
        (GERMAN, "1.234.567", 1234567.0),
        (GERMAN, "-0,25", -0.25),
        (GERMAN, ",5", 0.5),
        (GERMAN, "12,", 12.0),
        (GERMAN, " 7 ", 7.0),
        (GERMAN, "1,5e3", 1500.0),
        (GERMAN, "1.5", math.nan),
        (GERMAN, "12.34,5", math.nan),
        (GERMAN, "1,234,567", math.nan),
        (Notation(), "1_0", math.nan),
        (GERMAN, "1_0", math.nan),
        (GERMAN, ",", math.nan),
        (GERMAN, "-", math.nan),
        (GERMAN, "e5", math.nan),
        (GERMAN, "", math.nan),
        (GERMAN, "nan", math.nan),
        (Notation(decimal=","), "1.234,5", math.nan),
        (Notation(thousands=","), "1,234.5", 1234.5),
        (Notation(thousands=","), "1,23", math.nan),
        (Notation(thousands=" "), "1\u202f234", 1234.0),
        (Notation(thousands="'"), "1'234.5", 1234.5),
        (Notation(percent=True), "12.5 %", 12.5),
        (Notation(percent=True), "12.5", 12.5),
        (Notation(percent=True, decimal=","), "12,5%", 12.5),
        (Notation(), "12%", math.nan),
        (Notation(date="iso"), "1970-01-02", 1.0),
        (Notation(date="iso"), "1970-01-02T12:00:00", 1.5),
        (Notation(date="iso"), "02.01.1970", math.nan),
        (Notation(date="%d.%m.%Y"), "02.01.1970", 1.0),
        (Notation(date="%d.%m.%Y"), "31.02.1970", math.nan),
        (Notation(date="iso"), datetime.date(1969, 12, 31), -1.0),
        (Notation(date="iso"), pd.Timestamp("1970-01-01 06:00"), 0.25),
        (Notation(date="iso"), pd.NaT, math.nan),
        (Notation(date="iso"), 7, math.nan),
        (GERMAN, 1.5, 1.5),
        (GERMAN, None, math.nan),
    ],
)
def test_a_cell_is_read_as_declared_or_not_at_all(notation, cell, number):
    np.testing.assert_array_equal(notation.numbers([cell]), [number])


def test_typed_columns_are_taken_as_they_are():
    np.testing.assert_array_equal(GERMAN.numbers(np.array([1.5, 2.0])), [1.5, 2.0])
    days = np.array(["1970-01-03", "NaT"], dtype="datetime64[ns]")
    np.testing.assert_array_equal(Notation(date="iso").numbers(days), [2.0, math.nan])
    rule = column_rule("day", {"kind": "continuous", "bounds": [0, 1]})
    with pytest.raises(TypeError, match="holds dates: write date = true"):
        rule.codes(days)


def test_missing_is_the_middle_of_the_bounds():
    linear = column_rule("c", {"kind": "continuous", "bounds": [10, 30]})
    log = column_rule("c", {"kind": "continuous", "bounds": [1, 100], "scale": "log", "missing": "middle"})
    assert (linear.missing, log.missing) == (20.0, 10.0)
    for rule in (linear, log):
        np.testing.assert_allclose(rule.codes(["", "oops"]), 0.0, atol=1e-15)


def test_dates_have_dates_as_bounds():
    for bounds in ([datetime.date(2024, 1, 1), datetime.date(2024, 1, 11)], ["2024-01-01", "2024-01-11"]):
        rule = column_rule("day", {"kind": "continuous", "bounds": bounds, "date": True})
        np.testing.assert_allclose(rule.codes(["2024-01-01", "2024-01-06", "2030-01-01", ""]), [-1, 0, 1, 0])
    german = {"kind": "continuous", "bounds": ["01.01.2024", "11.01.2024"], "date": "%d.%m.%Y", "missing": "01.01.2024"}
    np.testing.assert_allclose(column_rule("day", german).codes(["06.01.2024", "x"]), [0, -1])


@pytest.mark.parametrize("entry", [{"boolean": True}, {"levels": [False, True]}])
def test_truth_values_in_any_usual_spelling(entry):
    rule = column_rule("smoker", {"kind": "binary", **entry})
    cells = ["True", "false", "YES", "n", "1", "0.0", True, np.False_, "", "perhaps"]
    np.testing.assert_array_equal(rule.codes(cells), [1, 0, 1, 0, 1, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(rule.codes(np.array([True, False])), [1, 0])
    words = column_rule("raucht", {"kind": "binary", "boolean": ["nein", "ja"], "missing": "ja"})
    np.testing.assert_array_equal(words.codes(["Ja", "NEIN", "", "true"]), [1, 0, 1, 0])


def test_the_notation_of_the_whole_table_is_written_once():
    table = {
        "decimal": ",",
        "thousands": ".",
        "columns": {
            "a": {"kind": "continuous", "bounds": [0, 2000]},
            "b": {"kind": "continuous", "bounds": [0, 1], "decimal": ".", "thousands": ""},
            "c": {"kind": "ordinal", "levels": [0.5, 1000]},
            "d": {"kind": "continuous", "bounds": ["2024-01-01", "2024-12-31"], "date": True},
        },
    }
    schema = Schema.from_dict(table)
    np.testing.assert_allclose(schema.rule("a").codes(["1.000,0"]), [0.0])
    np.testing.assert_allclose(schema.rule("b").codes(["0.5"]), [0.0])
    np.testing.assert_array_equal(schema.rule("c").codes(["0,5", "1.000"]), [0, 1])


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"kind": "continuous", "bounds": [0, 1], "decimal": ";"}, "decimal must be"),
        ({"kind": "continuous", "bounds": [0, 1], "thousands": "."}, "not the decimal mark"),
        ({"kind": "continuous", "bounds": [0, 1], "percent": "yes"}, "percent must be true or false"),
        ({"kind": "continuous", "bounds": [0, 1], "date": "iso"}, "date must be true"),
        ({"kind": "continuous", "bounds": [0, 1], "date": True}, "must be a date such as"),
        ({"kind": "continuous", "bounds": [0, 1], "date": True, "percent": True}, "takes no percent"),
        ({"kind": "continuous", "bounds": [0, 1], "boolean": True}, "not boolean"),
        ({"kind": "continuous", "bounds": [0, 1], "missing": 2}, "missing must lie within"),
        ({"kind": "ordinal", "boolean": True}, "write kind = 'binary'"),
        ({"kind": "binary", "boolean": ["a", "A"]}, "must differ"),
        ({"kind": "binary", "boolean": ["a"]}, "words for false and true"),
        ({"kind": "binary", "boolean": True, "levels": ["a", "b"]}, "remove levels"),
        ({"kind": "binary", "levels": ["a", "b"], "decimal": ","}, "take no decimal"),
        ({"kind": "continuous", "bounds": [0, 1], "decimals": ","}, "did you mean 'decimal'"),
    ],
)
def test_mistakes_in_notations_are_one_sentence(entry, said):
    with pytest.raises((ValueError, TypeError), match=said):
        column_rule("c", entry)


@pytest.mark.parametrize(
    ("form", "bounds", "clipped", "middle"),
    [
        ("%H:%M", ["00:00", "23:00"], "[00:00, 23:00]", "11:30"),
        (True, ["2020-01-01", "2020-01-02T12:00"], "[2020-01-01 00:00, 2020-01-02 12:00]", "2020-01-01 18:00"),
        (True, ["2020-01-01", "2020-12-31"], "[2020-01-01, 2020-12-31]", "2020-07-01"),
        ("%d/%m/%Y %H:%M", ["01/02/2020 00:00", "02/02/2020 00:00"], "[2020-02-01 00:00, 2020-02-02 00:00]", None),
    ],
)
def test_bounds_within_a_few_days_are_shown_with_their_minutes(form, bounds, clipped, middle):
    rule = Schema.from_dict({"columns": {"t": {"kind": "continuous", "date": form, "bounds": bounds}}}).rule("t")
    assert rule.clipped == f"clipped to {clipped}"
    assert middle is None or rule.shown(rule.unscaled(0.0)) == middle
