"""No message of a public call quotes a cell of a column, a list or a mapping that was given for an argument."""

import dataclasses
import inspect

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
import queries

import jaxdp
from jaxdp import data
from jaxdp.catalogue import entries
from jaxdp.data.dataset import Column, Domain
from jaxdp.data.known import schema_of
from jaxdp.discovery.choose import named
from jaxdp.discovery.engine.knowledge import Knowledge
from jaxdp.discovery.graph import graph_from_dict
from jaxdp.plan.setting import Setting

MARK = 987_654_321
WORDS = [f"cell-{MARK}", f"other-{MARK}", f"cell-{MARK}"]
VALUES = {
    "array": np.array([MARK] * 3),
    "floats": np.array([MARK + 0.5, MARK - 0.5]),
    "series": pd.Series([MARK] * 3),
    "texts in a series": pd.Series(WORDS),
    "polars": pl.Series([MARK] * 3),
    "list of texts": WORDS,
    "tuple of texts": tuple(WORDS),
    "list of numbers": [MARK, MARK],
    "array of texts": np.array(WORDS),
    "objects": np.array(WORDS, object),
    "mapping": {"a": [MARK] * 3, "b": WORDS},
    "frame": pd.DataFrame({"a": [MARK] * 3}),
    "set": {MARK},
    "bytes": str(MARK).encode(),
    "long text": "\n".join(WORDS * 20),
}
BOUNDS = {"a": (-4.0, 4.0), "b": (-4.0, 4.0), "c": (-4.0, 4.0)}
TABLE = {name: np.linspace(-1.0, 1.0, 60) for name in BOUNDS}
SCHEMA = {"columns": {name: {"kind": "continuous", "bounds": list(pair)} for name, pair in BOUNDS.items()}}
KEY = jax.random.key(0)
ENDS = {"a": (-4.0, 4.0), "b": (-4.0, 4.0)}


def session(**how):
    return jaxdp.Session(TABLE, schema=SCHEMA, epsilon=9.0, key=KEY), how


CALLS = {  # name -> (call, arguments that are right); the call must fail before it computes for long
    "test": (jaxdp.test, {"table": TABLE, "x": "a", "y": "b", "epsilon": 1.0, "schema": SCHEMA, "key": KEY}),
    "test with bounds": (jaxdp.test, {"table": TABLE, "x": "a", "y": "b", "epsilon": 1.0, "bounds": ENDS, "key": KEY}),
    "test_pairs": (jaxdp.test_pairs, {"table": TABLE, "epsilon": 1.0, "schema": SCHEMA, "key": KEY}),
    "mic": (jaxdp.mic, {"table": TABLE, "x": "a", "y": "b", "epsilon": 1.0, "schema": SCHEMA, "key": KEY}),
    "all mic": (jaxdp.mic, {"table": TABLE, "epsilon": 1.0, "schema": SCHEMA, "key": KEY}),
    "describe": (jaxdp.describe, {"table": TABLE, "epsilon": 1.0, "schema": SCHEMA, "key": KEY}),
    "discover": (jaxdp.discover, {"table": TABLE, "epsilon": 1.0, "schema": SCHEMA, "key": KEY}),
    "gwas": (jaxdp.gwas, {"genotypes": "absent", "names": ["a"], "bounds": BOUNDS, "epsilon": 1.0, "key": KEY}),
    "plan": (jaxdp.plan, {"x": "a", "y": "b", "schema": SCHEMA, "epsilon": 1.0, "effect": 0.3, "power": 0.8}),
    "plan by name": (jaxdp.plan, {"method": "partition-gcm", "epsilon": 1.0, "effect": 0.3, "power": 0.8}),
    "Session": (jaxdp.Session, {"table": TABLE, "schema": SCHEMA, "epsilon": 1.0, "key": KEY}),
    "schema_of": (schema_of, {"schema": None, "bounds": BOUNDS, "levels": None}),
    "Schema": (jaxdp.Schema, {"rules": dict(jaxdp.Schema.from_dict(SCHEMA).rules)}),
    "Schema.from_dict": (jaxdp.Schema.from_dict, {"spec": SCHEMA}),
    "Schema.load": (jaxdp.Schema.load, {"path": "absent"}),
    "read": (jaxdp.Schema.from_dict(SCHEMA).read, {"source": TABLE, "x": "a", "y": "b"}),
    "read_table": (jaxdp.Schema.from_dict(SCHEMA).read_table, {"source": TABLE}),
    "Setting": (Setting, {}),
    "Setting.of_schema": (Setting.of_schema, {"schema": jaxdp.Schema.from_dict(SCHEMA), "x": "a", "y": "b"}),
    "Setting.table": (Setting.table, {}),
    "Column": (Column, {}),
    "Domain": (Domain, {"x": (), "y": (), "z": ()}),
    "Data": (data.Data, {"x": np.zeros(9), "y": np.zeros(9)}),
    "Knowledge": (Knowledge, {}),
    "graph_from_dict": (graph_from_dict, {"content": {"names": ["a"]}}),
    "Ledger.create": (jaxdp.Ledger.create, {"path": "absent/l.db", "epsilon": 1.0}),
    "Ledger.open": (jaxdp.Ledger.open, {"path": "absent.db"}),
    "catalogue.find": (jaxdp.catalogue.find, {"name": "partition-gcm"}),
    "find a search": (named, {"name": "table_pc"}),
    "run": (jaxdp.run, {"test": jaxdp.PartitionGCM(epsilon=1.0), "key": KEY, "data": None}),
    "audit": (jaxdp.audit.audit, {"name": "absent"}),
}  # fmt: skip
CALLS |= {  # queries of a table that are not written out above
    name: (
        asked.call,
        {next(iter(inspect.signature(asked.call).parameters)): queries.table(), **asked.keywords, "key": KEY},
    )
    for name, asked in queries.EVERY.items()
    if asked.call not in [call for call, _ in CALLS.values()]
}


def fields_of(*names):
    """Classes of the package with their public fields."""
    return {name: getattr(jaxdp, name) for name in names if dataclasses.is_dataclass(getattr(jaxdp, name))}


CLASSES = fields_of(*jaxdp.exported_names())


def arguments():
    for name, (call, _) in CALLS.items():
        for parameter in inspect.signature(call).parameters.values():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                yield name, parameter.name


def messages(error):
    while error is not None:
        yield from (str(error), *getattr(error, "__notes__", ()))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def raised(call, **how):
    """What the call says where it fails."""
    try:
        call(**how)
    except Exception as error:
        return list(messages(error))
    return []


def quoted(name, parameter, value):
    call, right = CALLS[name]
    return [text for text in raised(call, **{**right, parameter: value}) if str(MARK)[:6] in text]


@pytest.mark.parametrize(("name", "parameter"), list(arguments()))
def test_a_call_quotes_no_cell(name, parameter):
    found = {kind: texts for kind, value in VALUES.items() if (texts := quoted(name, parameter, value))}
    assert not found, f"{name}({parameter}=) quotes what it is given: name its type and place (_base/printed.py)"


@pytest.mark.parametrize("kind", VALUES)
def test_mappings_by_column_quote_no_cell(kind):
    value = VALUES[kind]
    for argument in ("bounds", "levels"):
        call, right = CALLS["test"]
        how = {
            **right,
            "schema": None,
            "bounds": {**BOUNDS},
            argument: {**(BOUNDS if argument == "bounds" else {}), "a": value},
        }
        if argument == "levels":
            del how["bounds"]["a"]
        assert not [text for text in raised(call, **how) if str(MARK)[:6] in text]


@pytest.mark.parametrize("key", data.column_rules.COLUMN_KEYS + data.column_rules.GIVEN_KEYS)
@pytest.mark.parametrize("kind", ["continuous", "categorical"])
def test_keys_of_a_column_quote_no_cell(key, kind):
    right = {"kind": kind, **({"bounds": [0, 1]} if kind == "continuous" else {"levels": ["x", "y"]})}
    for value in VALUES.values():
        assert not [text for text in raised(data.column_rules.column_rule, name="a", entry={**right, key: value})
                    if str(MARK)[:6] in text]  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_quotes_no_cell(name):
    for field in inspect.signature(CLASSES[name]).parameters:
        right = {"epsilon": 1.0} if "epsilon" in inspect.signature(CLASSES[name]).parameters else {}
        for value in VALUES.values():
            found = [text for text in raised(CLASSES[name], **{**right, field: value}) if str(MARK)[:6] in text]
            assert not found, field


@pytest.mark.parametrize(
    "entry", [entry for entry in entries().values() if entry.spec.private], ids=lambda entry: entry.name
)
def test_fields_of_a_test_quote_no_cell(entry):
    for field in dataclasses.fields(entry.cls):
        for value in (VALUES["array"], VALUES["list of texts"]):
            how = {**CALLS["test"][1], "method": entry.name, "fields": {field.name: value}, "table": {}}
            assert not [text for text in raised(jaxdp.test, **how) if str(MARK)[:6] in text], field.name
