"""Every search charges its ledger once, with exactly what its graph says that it cost and what was asked for."""

import numpy as np
import pytest

import jaxdp
from jaxdp.data.dataset import BINARY, CONTINUOUS, Column
from jaxdp.data.records import Records
from jaxdp.discovery.spec import searches

CODED = {name: search for name, search in searches().items() if search.spec.accepts((2, 2, 2))}
OTHERS = {name: search for name, search in searches().items() if search.spec.accepts((0, 2, 0))}
DELTA = 1e-6


def records(kinds):
    generator = np.random.default_rng(0)
    first = generator.integers(0, 2, 300)
    columns = [first, np.where(generator.random(300) < 0.1, 1 - first, first), generator.integers(0, 2, 300)]
    described = []
    for place, kind in enumerate(kinds):
        if kind == CONTINUOUS:
            columns[place] = np.clip(columns[place] - 0.5 + 0.1 * generator.normal(size=300), -1, 1)
        described.append(Column(kind, 2 if kind == BINARY else 0, f"v{place}"))
    return Records(np.stack(columns, axis=1), tuple(described))


def asked(search, delta):
    """What a call asks for, and what its ledger must hold: (settings, epsilon, delta, rho)."""
    needs = search.spec.needs
    if "rho" in needs:
        return {"rho": 0.7}, None, None, 0.7
    if "delta" in needs or delta:
        return {"epsilon": 1.25, "delta": DELTA}, 1.25, DELTA, None
    return {"epsilon": 1.25}, 1.25, 0.0, None


def charged(search, data, delta, folder):
    """The graph, the row of the ledger, and what was asked for; None where the search opens no release key."""
    settings, epsilon, spent_delta, rho = asked(search, delta)
    if search.spec.name == "pc":
        settings |= {"test": jaxdp.ConditionalKendall(epsilon=0.25), "max_tests": 5}
        del settings["epsilon"]
    limits = {"rho": 1.0} if rho else {"epsilon": 2.0 if not search.spec.true_epsilon else 1e6, "delta": 1e-5}
    ledger = jaxdp.Ledger.create(folder / "l.db", **limits)
    try:
        graph = search(jaxdp.fresh_key(), data, ledger=ledger, **settings)
    except ValueError:
        assert search.spec.true_epsilon  # comparators and exhibits may be for simulations alone, and charge nothing
        assert ledger.rows() == []
        return None
    (row,) = ledger.rows()
    return graph, row, (epsilon, spent_delta, rho)


def check(found, search):
    graph, row, (epsilon, delta, rho) = found
    assert graph.mode == "release"
    for name in ("epsilon", "delta"):
        if rho is None:
            assert float(getattr(graph.cost, name)) == float(getattr(row, name))
    if rho is not None:
        assert float(row.rho) == float(graph.cost.rho) == rho
    elif not search.spec.true_epsilon:
        assert float(row.epsilon) == pytest.approx(epsilon, rel=1e-12)
        assert float(row.delta) in (0.0, delta)


@pytest.mark.full
@pytest.mark.parametrize("name", list(CODED))
def test_of_coded_columns(name, tmp_path):
    found = charged(CODED[name], records([BINARY] * 3), 0.0, tmp_path)
    if found is not None:
        check(found, CODED[name])


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in OTHERS if name not in CODED])
def test_of_mixed_columns(name, tmp_path):
    check(charged(OTHERS[name], records([CONTINUOUS, BINARY, CONTINUOUS]), 0.0, tmp_path), OTHERS[name])


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [name for name, search in searches().items() if search.takes("delta") and "rho" not in search.spec.needs],
)
def test_with_a_delta(name, tmp_path):
    search = searches()[name]
    kinds = [BINARY] * 3 if name in CODED else [CONTINUOUS, BINARY, CONTINUOUS]
    found = charged(search, records(kinds), DELTA, tmp_path)
    if found is not None:
        check(found, search)
        assert float(found[1].delta) == DELTA
