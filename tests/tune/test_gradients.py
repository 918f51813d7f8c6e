"""Gradients of every test of the catalogue against finite differences, and what has none is refused by the tuner."""

import functools

import jax
import jax.numpy as jnp
import pytest

import jaxdp
from jaxdp import catalogue, tune
from jaxdp._base.pytree import frozen_pytree
from jaxdp.audit import cases, contract, gradients
from jaxdp.core import PrivateQuery, PrivateTest
from jaxdp.independence.continuous.neighbour_test import NeighbourTest
from jaxdp.independence.tables.gwas import GenomeTest
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.spec import DECISION, P_VALUE
from jaxdp.statistics.neighbours import soft_sign

PLAINEST = {
    entry.name: cases.of(entry)[0]
    for entry in catalogue.entries().values()
    if cases.of(entry) and entry.spec.publishes in (P_VALUE, DECISION)
}
BUDGET, LANES = 4.0, 6
key = functools.partial(jax.random.key)


def rows(configured):
    return max(cases.RECORDS, configured.example.min_records)


def built(name):
    """The test of the plainest example; None for a query without p-value."""
    test = PLAINEST[name].build(BUDGET, rows(PLAINEST[name]))
    return test if hasattr(test, "p_value") else None


def slopes(name, names=None):
    configured = PLAINEST[name]
    sets = [configured.example.data(key(seed), rows(configured)) for seed in range(LANES)]
    data = jax.tree.map(lambda *leaves: jnp.stack(leaves), *sets)
    return gradients.slopes_of(built(name), data, key(7), rows(configured), names)


def checked(name):
    test = built(name)
    return () if test is None else gradients.names_of(test, rows(PLAINEST[name]))


SMOOTH = [name for name in PLAINEST if checked(name)]
WITHOUT = [name for name in PLAINEST if built(name) is not None and built(name).no_gradient(gradients.BUDGET)]


@pytest.mark.full
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_every_test_are_those_of_finite_differences(name, monkeypatch):
    """On a grid so fine that values are as good as not rounded, where a test rounds them."""
    monkeypatch.setattr(soft_sign, "GRID", 2.0**36)
    monkeypatch.setattr(NeighbourTest, "smooth_above", 0.0)
    found = slopes(name)
    assert {number: one.apart for number, one in found.items() if not one.agree} == {}
    assert any(one.moves for one in found.values()) or name == "all-pairs"


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in WITHOUT if not isinstance(built(name), GenomeTest)])
def test_what_is_said_to_have_no_gradient_has_none(name):
    """Tests of many tables have the gradient of the test of one, which is among these."""
    test = built(name)
    names = (gradients.BUDGET,) if test.epsilon is not None else ()
    for number, one in slopes(name, names).items():
        assert not (one.moves and one.agree), number


def test_tests_without_a_gradient_are_found_by_what_they_say():
    assert len(SMOOTH) > 15
    assert {"quantile-table", "noisy-table", "goodness-of-fit", "every-table", "micr-laplace"} <= set(WITHOUT)
    for name in WITHOUT:
        assert tune.offered(built(name), 60) == (), name


@pytest.mark.parametrize("name", ["private-crt", "subsample-aggregate"])
def test_the_tuner_refuses_a_number_without_a_gradient_in_one_sentence(name):
    test = built(name)
    leaf = {"private-crt": "winsorize", "subsample-aggregate": "upper"}[name]
    why = f"{type(test).__name__} has no gradient in {leaf}: {test.no_gradient(leaf)}; compare values of its fields by"
    with pytest.raises(ValueError, match=why):
        tune.tune(test, [leaf], design=functools.partial(sine_confounder, n=60, effect=0.5), key=key(0))


def test_regions_take_the_gradient_of_partition_gcm_away():
    assert "split" in tune.offered(jaxdp.PartitionGCM(epsilon=1.0), 100)
    with pytest.raises(ValueError, match="rank among simulated draws"):
        tune.tunable.start_of(jaxdp.PartitionGCM(epsilon=1.0, num_regions=2), ("split",), 100)


def without_z(key, n):
    data = sine_confounder(key, n)
    return jaxdp.Data(data.x, data.y)


@frozen_pytree
class Stopped(PrivateTest):
    """A mean whose scale is hidden from differentiation, as a search for it would."""

    scale: float = 1.0

    spec = jaxdp.TestSpec(name="stopped", summary="a mean", examples=(jaxdp.Example(without_z),))

    def mechanism_in_force(self):
        return jaxdp.Laplace(self.epsilon)

    def statistic(self, key, data):
        return jnp.sum(jnp.tanh(data.x / jax.lax.stop_gradient(jnp.asarray(self.scale))))

    def sensitivity(self, num_records):
        return jaxdp.core.Sensitivity(2.0, jaxdp.core.Norm.L1, jaxdp.Relation.REPLACE_ONE, error=1e-12 * num_records)

    def p_value(self, key, release):
        sd = jnp.sqrt(1.0 * release.num_records)
        return self.mechanism_in_force().null_p_value(release.value, sd, release.sensitivity)


def test_the_contract_finds_a_gradient_that_is_silently_zero():
    one = contract._Checked(cases.of(contract.entry_of(Stopped))[0], key(0))
    wrong = [found for found, _ in contract._gradients(one) if found]
    assert len(wrong) == 1
    assert wrong[0].startswith("the gradient in scale is 100% off finite differences")


def test_the_default_of_a_query_is_to_have_every_gradient():
    assert PrivateQuery(epsilon=1.0).no_gradient("epsilon") == ""
