"""The Benchpress module: its script as Snakemake runs it, and files that fit together."""

import contextlib
import json
import re
import runpy
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

MODULE = Path(__file__).parents[2] / "examples" / "benchpress" / "jaxdp_discover"


def ran(folder, table, **options):
    """The adjacency matrix that the script writes of this table. (Benchpress's `add_timeout` is a stand-in.)"""
    table.to_csv(folder / "data.csv", index=False)
    output = {name: str(folder / name) for name in ("adjmat", "time", "ntests")}
    given = {"seed": "1", "epsilon": "8", "delta": "None", "bounds": "None", "timeout": "None"} | options
    snakemake = types.SimpleNamespace(input={"data": str(folder / "data.csv")}, output=output, wildcards=given)
    runpy.run_path(str(MODULE / "script.py"), {"snakemake": snakemake})
    assert float(Path(output["time"]).read_text()) > 0
    return pd.read_csv(output["adjmat"])


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """Benchpress's module, which would end a search that takes too long; the folder that the script adds goes again."""
    module = types.ModuleType("add_timeout")
    monkeypatch.setitem(sys.modules, "add_timeout", module)
    monkeypatch.setattr(sys, "path", list(sys.path))
    module.timeoutf = lambda *given: pytest.fail("no limit was asked for")
    return module


@pytest.mark.full
def test_categorical_data_have_their_levels_in_the_second_row(tmp_path):
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 2, 4000), rng.integers(0, 3, 4000)
    b = np.where(rng.random(4000) < 0.8, a, 1 - a)
    table = pd.DataFrame({"a": [2, *a], "b": [2, *b], "c": [3, *c]})
    found = ran(tmp_path, table)
    assert list(found.columns) == ["a", "b", "c"]
    assert found.to_numpy().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.full
def test_continuous_data_are_clipped_to_the_bounds_and_a_seed_gives_its_graph_again(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000))
    table = pd.DataFrame({"a": a, "b": b, "c": (a + b) / np.sqrt(2)})
    first = ran(tmp_path, table, bounds="4", delta="1e-6")
    assert first["c"].tolist() == [1, 1, 0]
    assert first.loc[0, "b"] == first.loc[1, "a"] == 0
    assert first.loc[2].tolist() == [0, 0, 0]  # a -> c <- b
    assert first.equals(ran(tmp_path, table, bounds="4", delta="1e-6"))


@pytest.mark.full
def test_a_limit_of_time_is_left_to_benchpress(tmp_path, stand_in):
    asked = []
    stand_in.timeoutf = lambda *given: asked.append(given) or contextlib.nullcontext()
    ran(tmp_path, pd.DataFrame({"a": [2, *[0, 1] * 60], "b": [2, *[1, 0] * 60]}), timeout="60")
    assert [given[0] for given in asked] == [60]


def test_the_files_of_the_module_fit_together():
    item = json.loads((MODULE / "schema.json").read_text())["items"]
    read = set(re.findall(r'(?:options|wildcards)\["(\w+)"\]', (MODULE / "script.py").read_text()))
    assert read == {*item["properties"], "seed"} - {"id"}
    assert set(item["required"]) == set(item["properties"]) == set(item["examples"][0])
    info = json.loads((MODULE / "info.json").read_text())
    assert info["outputs"] == "adjmat"
    assert info["graph_types"] == ["CPDAG"]
