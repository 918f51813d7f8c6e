"""Schema: public knowledge in, scaled or coded arrays out, one record at a time."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import catalogue
from jaxdp.data.coding import ColumnRule
from jaxdp.data.column_rules import column_rule
from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, ORDINAL, Column
from jaxdp.data.notation import to_numbers
from jaxdp.data.parse_report import ParseReport
from jaxdp.data.schema import Schema

TOML = """
[columns.age]
kind = "continuous"
bounds = [20, 80]
missing = 35

[columns.smoker]
kind = "binary"
levels = ["no", "yes"]

[columns.job]
kind = "categorical"
levels = ["clerk", "nurse", "other"]
other = "other"

[columns.pain]
kind = "ordinal"
levels = [1, 2, 3, 4, 5]
missing = 3
"""


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(TOML)
    return Schema.load(path)


@pytest.fixture
def table():
    return {
        "age": np.array([20.0, 80.0, 50.0, 10.0, 1e9, math.nan]),
        "smoker": ["no", "yes", " yes ", "", "maybe", "no"],
        "job": ["clerk", "nurse", "other", "pilot", "", "clerk"],
        "pain": [1, 5, 3, 9, None, 2],
    }


def test_toml_and_json_read_alike(schema, tmp_path):
    spec = {
        "columns": {
            "age": {"kind": "continuous", "bounds": [20, 80], "missing": 35},
            "smoker": {"kind": "binary", "levels": ["no", "yes"]},
            "job": {"kind": "categorical", "levels": ["clerk", "nurse", "other"], "other": "other"},
            "pain": {"kind": "ordinal", "levels": [1, 2, 3, 4, 5], "missing": 3},
        }
    }
    (tmp_path / "s.json").write_text(json.dumps(spec))
    assert Schema.load(tmp_path / "s.json") == schema == Schema.from_dict(spec)
    assert schema.names == ("age", "smoker", "job", "pain")


def test_continuous_values_are_clipped_scaled_and_filled(schema, table):
    data = schema.read(table, x="age", y="smoker", report=ParseReport())
    np.testing.assert_allclose(data.x, [-1.0, 1.0, 0.0, -1.0, 1.0, -0.5], atol=1e-15)
    assert data.x.dtype == np.float64
    assert data.z is None


def test_two_levels_and_ordered_levels_are_equally_spaced(schema, table):
    data = schema.read(table, x="smoker", y="pain", report=ParseReport())
    np.testing.assert_array_equal(data.x, [-1, 1, 1, -1, -1, -1])  # empty -> missing, "maybe" -> other: "no"
    np.testing.assert_allclose(data.y, [-1, 1, 0, -1, 0, -0.5], atol=1e-15)
    assert data.domain.y == (Column(CONTINUOUS, 5, "pain"),)


def test_unordered_levels_become_indicators(schema, table):
    data = schema.read(table, x="job", y="age")
    assert data.x.shape == (6, 3)
    np.testing.assert_array_equal(data.x.argmax(axis=1), [0, 1, 2, 2, 0, 0])
    np.testing.assert_array_equal(data.x.sum(axis=1), -1.0)  # one indicator is 1, two are -1
    assert [column.name for column in data.domain.x] == ["job=clerk", "job=nurse", "job=other"]


def test_conditions_are_codes_and_scaled_numbers(schema, table):
    data = schema.read(table, x="smoker", y="pain", given=["job", "age"], report=ParseReport())
    np.testing.assert_array_equal(data.z[:, 0], [0, 1, 2, 2, 0, 0])
    assert data.z.shape == (6, 2)
    assert data.domain.z == (Column(CATEGORICAL, 3, "job"), Column(CONTINUOUS, 0, "age"))


def test_codes_on_request(schema, table):
    data = schema.read(table, x="job", y="pain", given="smoker", codes=True, report=ParseReport())
    np.testing.assert_array_equal(data.x, [0, 1, 2, 2, 0, 0])
    np.testing.assert_array_equal(data.y, [0, 4, 2, 0, 2, 1])
    assert data.domain.y == (Column(ORDINAL, 5, "pain"),)
    values, columns = schema.read_table(table, report=ParseReport())
    assert values.shape == (6, 4)
    assert [column.name for column in columns] == list(schema.names)
    np.testing.assert_array_equal(values[:, 2], data.x)


def test_several_columns_of_x(schema, table):
    data = schema.read(table, x=["age", "job"], y="smoker", report=ParseReport())
    assert data.x.shape == (6, 4)
    assert len(data.domain.x) == 4


def test_every_array_stays_inside_its_domain(schema):
    # Whatever the cells hold: shapes follow the row count, values stay in the public range.
    cells = [
        "",
        "1e400",
        "-inf",
        "nan",
        "x",
        "1_0",
        "0x1",
        "é",
        "NULL",
        "5e-324",
        " 35 ",
        "1;2",
        '"',
        "True",
        None,
        7,
        -0.0,
    ]
    table = {name: np.array(cells, dtype=object) for name in schema.names}
    values, columns = schema.read_table(table, report=ParseReport())
    assert values.shape == (len(cells), 4)
    assert np.isfinite(values).all()
    for column, described in zip(values.T, columns, strict=True):
        low, high = (-1, 1) if described.kind == CONTINUOUS else (0, described.levels - 1)
        assert column.min() >= low
        assert column.max() <= high


def test_a_record_is_coded_alone(schema):
    # Equal keys of a dictionary (1, 1.0, True) must not make a record's code depend on the records before it.
    rule = column_rule("c", {"kind": "categorical", "levels": ["1", "True", "1.0"], "other": "1.0"})
    cells = [True, 1, 1.0, "1", "True"]
    together = rule.codes(np.array(cells, dtype=object))
    alone = [rule.codes(np.array([cell], dtype=object))[0] for cell in cells]
    reverse = rule.codes(np.array(cells[::-1], dtype=object))[::-1]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, reverse)
    np.testing.assert_array_equal(together, [1, 0, 0, 0, 1])  # 1.0 is 1, as its column may be one of floats


def test_number_levels_match_by_value():
    rule = column_rule("c", {"kind": "ordinal", "levels": [0, 1, 2.5], "other": 1, "missing": 2.5})
    np.testing.assert_array_equal(rule.codes(["0", "1.0", " 2.50", "7", "", "x"]), [0, 1, 2, 1, 2, 2])
    np.testing.assert_array_equal(rule.codes(np.array([True, False])), [1, 0])


@pytest.mark.parametrize("mark", ["", " ", "NA", "n/a", "NaN", "null", "None", "<NA>"])
def test_missing_marks_go_to_missing_unless_declared(mark):
    entry = {"kind": "categorical", "levels": ["a", "b", "c"], "missing": "b", "other": "c"}
    assert column_rule("c", entry).codes([mark])[0] == 1
    if mark.strip():
        declared = column_rule("c", {**entry, "levels": ["a", "b", "c", mark]})
        assert declared.codes([mark])[0] == 3


def test_defaults_are_the_middle_and_the_first_level():
    assert column_rule("c", {"kind": "continuous", "bounds": [2, 4]}).codes(["?"])[0] == 0.0
    rule = column_rule("c", {"kind": "ordinal", "levels": ["low", "high"]})
    np.testing.assert_array_equal(rule.codes(["", "middling", "high"]), [0, 0, 1])


def test_scaling_hits_both_ends_for_extreme_bounds():
    for bounds in ([-1e308, 1e307], [1e-300, 2e-300], [1e15, 1e15 + 1], [-3, 1e-12]):
        rule = column_rule("c", {"kind": "continuous", "bounds": bounds})
        scaled = rule.codes(np.array([bounds[0], bounds[1], 0.5 * bounds[0] + 0.5 * bounds[1]], dtype=float))
        np.testing.assert_allclose(scaled[:2], [-1.0, 1.0], atol=1e-12)
        assert -1.0 <= scaled[2] <= 1.0


def test_log_scale():
    rule = column_rule("c", {"kind": "continuous", "bounds": [0.01, 100], "scale": "log", "missing": 1})
    np.testing.assert_allclose(
        rule.codes(["0.01", "0.1", "1", "10", "100", "-5", "1e9", ""]), [-1, -0.5, 0, 0.5, 1, -1, 1, 0], atol=1e-12
    )


def test_numbers_keep_float64_exactly():
    np.testing.assert_array_equal(to_numbers(["0.1", "1e-5", "7"]), [0.1, 1e-5, 7.0])
    found = to_numbers(["0.1", "oops", "7"])
    np.testing.assert_array_equal(found[[0, 2]], [0.1, 7.0])
    assert math.isnan(found[1])


def test_schema_is_public_and_lazy():
    assert jaxdp.Schema is Schema
    assert isinstance(Schema.from_dict({"columns": {"a": {"kind": "binary", "levels": [0, 1]}}}).rule("a"), ColumnRule)


def test_names_must_be_names(schema, table):
    with pytest.raises(TypeError, match="x must be a column name"):
        schema.read(table, x=3, y="age")
    with pytest.raises(ValueError, match="x names no column"):
        schema.read(table, x=[], y="age")
    with pytest.raises(ValueError, match="at least one column, and each column once"):
        schema.read_table(table, ["age", "age"])


@pytest.mark.full
def test_log_scale_keeps_the_level_where_z_crowds():
    # X and Y depend on the logarithm of a log-normal Z only. Cells of equal width put most records into one cell.
    n, replicates = 1000, 100
    random = np.random.default_rng(7)
    z = np.exp(random.normal(size=(replicates, n)))
    x, y = (np.log(z) + random.normal(0.0, 0.5, z.shape) for _ in "xy")

    def rejections(scale):
        spec = {name: {"kind": "continuous", "bounds": [-5, 5]} for name in "xy"}
        schema = Schema.from_dict(
            {"columns": {**spec, "z": {"kind": "continuous", "bounds": [0.01, 100], "scale": scale}}}
        )
        columns = ({"x": x[i], "y": y[i], "z": z[i]} for i in range(replicates))
        data = [schema.read(table, x="x", y="y", given="z") for table in columns]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *data)
        test = catalogue.find("partition-gcm").build(1.0, data[0].domain)
        keys = jax.random.split(jax.random.key(3), replicates)

        def p_value(pair):
            return jaxdp.run(test, *pair).p_value

        return int(jnp.sum(jax.jit(lambda *a: jax.lax.map(p_value, a, batch_size=20))(keys, stacked) <= 0.05))

    most = stats.binom.ppf(1 - 1e-6, replicates, 0.05)
    assert rejections("linear") > 2 * most
    assert rejections("log") <= most


def test_a_step_says_how_many_values_are_possible():
    rule = column_rule("age", {"kind": "continuous", "bounds": [18, 90], "step": 1})
    assert [column.values for column in rule.code_column()] == [73]
    assert column_rule("c", {"kind": "continuous", "bounds": [0, 0.3], "step": 0.1}).code_column()[0].values == 4
    assert column_rule("c", {"kind": "continuous", "bounds": [0, 1]}).code_column()[0].values == 0


@pytest.mark.parametrize("step", [0, -1, 100, 1e-12, "one", True])
def test_a_step_is_a_distance_within_the_bounds(step):
    with pytest.raises((ValueError, TypeError), match="step"):
        column_rule("age", {"kind": "continuous", "bounds": [18, 90], "step": step})
    with pytest.raises(ValueError, match="takes levels, not step"):
        column_rule("age", {"kind": "ordinal", "levels": [1, 2], "step": 1})


@pytest.mark.parametrize(
    ("kind", "known"), [("nominal", "categorical"), ("Numeric", "continuous"), ("BINARY", "binary")]
)
def test_kinds_by_other_names_are_told_in_ours(kind, known):
    with pytest.raises(ValueError, match=f'write kind = "{known}"'):
        column_rule("a", {"kind": kind})
