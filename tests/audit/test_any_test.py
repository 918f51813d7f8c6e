"""Searches, plug-ins, tuning and mechanisms take whatever follows the contract."""

import importlib
import inspect
import pkgutil
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core, discovery, interop, mechanisms, tune
from jaxdp._base.rounding import as_fraction
from jaxdp.data.dataset import CONTINUOUS, ORDINAL, Column
from jaxdp.data.records import Records
from jaxdp.discovery import choose

BUILT = {
    "TopK": lambda kind: kind(epsilon=0.7, count=2),
    "Split": lambda kind: kind(parts={"a": jaxdp.Laplace(0.7)}),
    "Gaussian": lambda kind: kind(0.7),
    "SmoothLaplace": lambda kind: kind(epsilon=0.7, delta=1e-3),
    "SmoothGaussian": lambda kind: kind(epsilon=0.7, delta=1e-3),
    "StabilityThreshold": lambda kind: kind(epsilon=0.7, delta=1e-3),
}


def kinds():
    """Every public class of the package's mechanisms that perturbs."""
    for module in pkgutil.iter_modules(mechanisms.__path__, "jaxdp.mechanisms."):
        for name, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            here = kind.__module__ == module.name
            if here and hasattr(kind, "perturb") and not (name.startswith("_") or inspect.isabstract(kind)):
                yield name, kind


KINDS = dict(kinds())


def built(name):
    kind = KINDS[name]
    if not getattr(kind, "private", True):
        return kind()
    return BUILT.get(name, lambda kind: kind(epsilon=0.7))(kind)


def test_mechanisms_are_found():
    assert {"Laplace", "Gaussian", "RankThreshold", "SmoothCauchy", "Split", "RandomStopping"} <= set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_every_mechanism_satisfies_the_protocol(name):
    mechanism = built(name)
    assert isinstance(mechanism, core.Mechanism)
    assert jax.tree.structure(mechanism) == jax.tree.structure(built(name))  # a pytree, equal by its fields
    cost = mechanism.cost(jaxdp.Relation.REPLACE_ONE)
    assert isinstance(cost, jaxdp.Cost)
    if np.isinf(float(cost.rho)) and np.isinf(float(cost.epsilon)):
        assert not mechanism.private
        return
    third = mechanism.share(Fraction(1, 3)).cost(jaxdp.Relation.REPLACE_ONE)
    for whole, part in ((cost.epsilon, third.epsilon), (cost.delta, third.delta)):
        if np.isfinite(float(whole)) and float(whole) > 0:
            assert float(part) == pytest.approx(float(whole) / 3, rel=1e-12)
            assert 3 * as_fraction(float(part)) <= as_fraction(float(whole))


@pytest.mark.parametrize("mechanism", [jaxdp.Laplace(1.0), jaxdp.Gaussian(1.0), mechanisms.Exact()])
def test_mechanisms_with_exact_p_values_satisfy_theirs(mechanism):
    assert isinstance(mechanism, core.AdditiveMechanism)
    assert isinstance(mechanism, core.NullMechanism)


def test_geometric_noise_is_additive_and_selections_are_not():
    assert isinstance(jaxdp.Geometric(1.0), core.AdditiveMechanism)
    assert not isinstance(jaxdp.Geometric(1.0), core.NullMechanism)
    assert not isinstance(jaxdp.ReportNoisyMax(epsilon=1.0), core.AdditiveMechanism)


def test_the_protocol_asks_for_no_more_than_what_it_says():
    assert core.Mechanism.__protocol_attrs__ == {"perturb", "cost", "share"}


def records(n=400, seed=0):
    """a -> b -> c continuous, d ordered and alone."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, n)
    b = np.clip(a + 0.2 * rng.normal(size=n), -1, 1)
    c = np.clip(b + 0.2 * rng.normal(size=n), -1, 1)
    columns = (*(Column(CONTINUOUS, 0, name) for name in "abc"), Column(ORDINAL, 3, "d"))
    return Records(np.stack([a, b, c, rng.integers(0, 3, n)], axis=1), columns)


@pytest.mark.full
def test_discover_runs_pc_with_a_named_test():
    graph = discovery.discover(jax.random.key(0), records(), epsilon=400.0, method="partition-gcm", max_order=1)
    assert graph.method == "pc[partition-gcm]"
    assert graph.skeleton[0, 1]
    assert graph.skeleton[1, 2]
    assert not graph.skeleton[0, 3]
    assert float(graph.cost.epsilon) == pytest.approx(400.0)


def test_a_named_test_is_built_for_the_columns_of_each_query():
    """As `jaxdp test` builds it: partition-gcm standardises on a schema's columns, by scales of their kind."""
    found = jaxdp.catalogue.find("partition-gcm")
    asked = choose.catalogue.Entry(found.spec, found.cls)
    from jaxdp.independence.recommended import ByName

    table = records()
    for query in ((0, 1), (0, 3)):
        data = table.query(*query, (2,), True)
        resolved = ByName(entry=asked, epsilon=1.0, level=0.01).specialize(core.public_shapes(data))
        wanted = found.build(1.0, data.domain).specialize(core.public_shapes(data))
        assert jax.tree.structure(resolved) == jax.tree.structure(wanted)
        for one, other in zip(jax.tree.leaves(resolved), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_decision_is_made_at_the_level_of_the_search():
    from jaxdp.independence.recommended import ByName

    entry = jaxdp.catalogue.find("local-permutation")
    data = records().query(0, 1, (2,), entry.spec.columns is jaxdp.Columns.SCORES)
    test = ByName(entry=entry, epsilon=1.0, level=choose.TEST_LEVEL).specialize(core.public_shapes(data))
    assert test.level == choose.TEST_LEVEL


def test_searches_stay_within_what_a_test_takes():
    coded = Records(records().values[:, 3:].repeat(3, axis=1).astype(int), (Column(ORDINAL, 3),) * 3)
    graph = discovery.discover(jax.random.key(0), coded, epsilon=30.0, method="projected-chi2")
    assert "at most 0 columns" in graph.note
    assert all(not decision.given for decision in graph.decisions)
    for method, message in {
        "conditional-kendal": "no search called",
        "private-crt": "private-crt needs law",
        "unit-circle": "compares groups",
        "projected-chi2": "takes no query about 'a' and 'b' alone",
    }.items():
        with pytest.raises(ValueError, match=message):
            discovery.discover(jax.random.key(0), records(), epsilon=1.0, method=method)


def test_a_release_by_name_is_charged_once(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "budget.db", epsilon=2.0)
    table = records(120)
    small = Records(table.values[:, :2], table.columns[:2])
    graph = discovery.discover(jaxdp.fresh_key(), small, epsilon=1.5, method="conditional-kendall", ledger=ledger)
    assert graph.mode == "release"
    assert [(row.method, row.epsilon) for row in ledger.rows()] == [("pc[conditional-kendall]", 1.5)]


def test_plug_ins_refuse_tests_of_public_groups():
    with pytest.raises(ValueError, match="compares groups"):
        interop.PrivateQueries(jaxdp.UnitCircle(epsilon=1.0), records(), epsilon=1.0)


@jaxdp.private_test
class Stretched(jaxdp.PartitionGCM):
    """A test of one's own with a number of its own."""

    stretch: float = 2.0

    def statistic(self, key, data):
        found = super().statistic(key, data)
        return {name: value * jnp.minimum(self.stretch, 1.0) for name, value in found.items()}


def test_numbers_of_ones_own_tests_can_be_tuned():
    test = Stretched(epsilon=1.0)
    assert {"stretch", "winsorize", "scale_x", "split"} <= set(tune.offered(test, 100))
    assert not {"ridge", "bandwidth", "weights", "epsilon"} & set(tune.offered(test, 100))
    point = tune.tunable.start_of(test, ("stretch",), 100)
    assert float(point["stretch"]) == pytest.approx(np.log(2.0))
    assert float(tune.tunable.at(test, point).stretch) == pytest.approx(2.0)
    with pytest.raises(ValueError, match=r"leaves of Stretched must be some of .*stretch.*, got num_cells"):
        tune.tunable.start_of(test, ("num_cells",), 100)
