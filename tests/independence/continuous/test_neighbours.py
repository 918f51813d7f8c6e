"""Attacks on sensitivities and record/replay of whole runs (experiments/evidence/audit/neighbours.py)."""

import dataclasses

import pytest

import jaxdp
from experiments.evidence.audit import neighbours
from jaxdp.audit import cases
from jaxdp.independence.tables.unit_circle import UnitCircle


def test_attack_reaches_an_attained_bound():
    row = neighbours.attack("unit-circle", 20, 20_000)
    assert row["holds"]
    assert row["pairs"] >= 19_000
    assert row["largest_share_of_bound"] > 0.99


def test_a_bound_cut_by_a_tenth_is_caught(monkeypatch):
    real = UnitCircle.sensitivity

    def cut(self, num_records):
        bound = real(self, num_records)
        return dataclasses.replace(bound, bound=0.9 * bound.bound)

    monkeypatch.setattr(UnitCircle, "sensitivity", cut)
    assert not neighbours.attack("unit-circle", 20, 2000)["holds"]


def test_replay_of_a_configuration(monkeypatch):
    assert neighbours.replayed("goodness-of-fit", 30)["holds"]
    monkeypatch.setattr(jaxdp.Laplace, "distance", classmethod(lambda cls, *rest: float("inf")))
    row = neighbours.replayed("goodness-of-fit", 2)
    assert not row["holds"]
    assert row["differences"][0]["what"] == "value moved further than declared"


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(neighbours.attackable()))
def test_attacks_of_nightly_size(name):
    for n in (size for size in neighbours.RECORDS if size >= cases.find(name).example.min_records):
        assert neighbours.attack(name, n, 1_000_000, seed=1)["holds"], n
