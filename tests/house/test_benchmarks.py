"""The benchmark harness: it measures, counts units, and refuses to report a speed for a wrong answer."""

import importlib
import json

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.benchmarks import __main__ as command
from experiments.benchmarks import harness, machine


def slow_sum(values):
    return sum(float(v) for v in values)


def case(error):
    values = np.arange(20_000.0, dtype=np.float32)
    return harness.Case(
        ours=lambda v: jnp.sum(v),
        arguments=(jnp.asarray(values),),
        units=2.0,
        agree=lambda: {"error": error, "tolerance": 1.0},
        peers={"loop": harness.Peer(slow_sum, (values,), units=1.0, goal=1.0, both_cores=False)},
    )


def test_figures_of_a_case():
    figures = harness.measure(case(0.5), 2)
    loop = figures["peers"]["loop"]
    np.testing.assert_allclose(loop["ratio"], loop["seconds_per_unit"] / figures["seconds_per_unit"])
    assert loop["extrapolated"]
    assert figures["compile_seconds"] > 0.0
    assert "loop" in command._line("row", "case", figures)


@pytest.mark.parametrize("error", [1.5, float("nan"), float("inf")])
def test_a_wrong_answer_has_no_speed(error):
    with pytest.raises(harness.Disagreement, match="exceeds"):
        harness.measure(case(error), 1)


def test_every_row_can_be_listed_and_built_from_its_cases():
    assert {"krr_cv", "gcm_pairs", "rff", "crt", "partition_gcm", "noise"} <= set(command.row_names())
    for name in command.row_names():
        row = importlib.import_module(f"experiments.benchmarks.rows.{name}")
        assert set(row.QUICK) <= set(row.CASES)
        assert callable(row.build)


def test_a_quick_row_agrees_with_its_peers():
    row = importlib.import_module("experiments.benchmarks.rows.gcm_pairs")
    built = row.build(**row.CASES[row.QUICK[0]])
    agreement = built.agree()
    assert agreement["error"] <= agreement["tolerance"]


def test_a_row_is_measured_when_all_of_its_cases_are_at_this_commit(tmp_path):
    commit, cases = machine.commit(), list(importlib.import_module("experiments.benchmarks.rows.band_gcm").CASES)
    report = {"cases": {case: {"commit": commit} for case in cases}}
    assert not command.is_measured("band_gcm", str(tmp_path))
    (tmp_path / "band_gcm.json").write_text(json.dumps(report))
    assert command.is_measured("band_gcm", str(tmp_path)) == bool(commit)
    report["cases"][cases[0]]["commit"] = "another"
    (tmp_path / "band_gcm.json").write_text(json.dumps(report))
    assert not command.is_measured("band_gcm", str(tmp_path))
