"""`dp_event(kind="tight")`: what dp-accounting's PLDAccountant makes of it, and who refuses it."""

import dataclasses
import itertools
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_ndtr

import jaxdp
from jaxdp import interop
from jaxdp._base.pytree import frozen_pytree
from jaxdp.accounting import convert
from jaxdp.core import Cost, Norm, PrivateQuery, Relation, Sensitivity

dp_accounting = pytest.importorskip("dp_accounting")
from dp_accounting import NeighboringRelation, UnsupportedEventError, dp_event  # noqa: E402
from dp_accounting.pld import PLDAccountant  # noqa: E402
from dp_accounting.rdp import RdpAccountant  # noqa: E402

REPLACE, ADD = NeighboringRelation.REPLACE_ONE, NeighboringRelation.ADD_OR_REMOVE_ONE
NORMAL = jaxdp.ConditionalKendall(mechanism=jaxdp.Gaussian(rho=0.1))


def result(test, key=None):
    columns = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 300))
    return jaxdp.run(test, jaxdp.fresh_key() if key is None else key, jaxdp.Data(*columns))


@frozen_pytree
class Count(PrivateQuery):
    """How many records have x above 0, of neighbours with a record more or less."""

    method: ClassVar[str] = "count"

    def mechanism_in_force(self):
        return jaxdp.Geometric(self.epsilon) if self.mechanism is None else self.mechanism

    def statistic(self, key, data):
        return jnp.sum(jnp.asarray(data.x) > 0.0)

    def sensitivity(self, num_records):
        norm = Norm.L1 if self.mechanism is None else Norm.L2
        return Sensitivity(1, norm, Relation.ADD_OR_REMOVE_ONE, lower=0, upper=1000)


def counted(**noise):
    columns = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 300))
    return jaxdp.release(Count(**noise), jaxdp.fresh_key(), jaxdp.Data(*columns))


def delta_of_normal(distance, e):
    left, right = 0.5 * distance - e / distance, -0.5 * distance - e / distance
    return math.exp(log_ndtr(left)) - math.exp(e + log_ndtr(right))


def test_normal_noise_is_accounted_by_its_distance_and_costs_less_than_by_zcdp():
    released = result(NORMAL)
    rounds = 20
    event = interop.dp_event(*[released] * rounds, kind="tight")
    accountant = PLDAccountant(neighboring_relation=REPLACE).compose(event)
    distance = math.sqrt(2.0 * 0.1 * rounds)
    for e in (0.0, 1.0, 5.0, 12.0):
        exact = delta_of_normal(distance, e)
        assert exact <= accountant.get_delta(e) <= exact * 1.02 + 1e-9
    bound = RdpAccountant(neighboring_relation=REPLACE).compose(interop.dp_event(*[released] * rounds))
    assert accountant.get_epsilon(1e-6) < 0.96 * bound.get_epsilon(1e-6)


def test_stages_that_are_pure_are_no_dearer_than_their_sum_and_composed_they_are_cheaper():
    released = result(jaxdp.PartitionGCM(epsilon=0.5))
    assert len(released.release.certificates) == 2
    event = interop.dp_event(*[released] * 20, kind="tight")
    epsilon = PLDAccountant(neighboring_relation=REPLACE).compose(event).get_epsilon(1e-6)
    plain = PLDAccountant(neighboring_relation=REPLACE).compose(interop.dp_event(*[released] * 20)).get_epsilon(1e-6)
    assert epsilon < 0.95 * plain
    single = PLDAccountant(neighboring_relation=REPLACE).compose(interop.dp_event(released, kind="tight"))
    assert single.get_epsilon(1e-12) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("noise", [{"epsilon": 0.5}, {"mechanism": jaxdp.Gaussian(rho=0.1)}])
def test_added_and_removed_records_have_the_law_of_the_noise_itself(noise):
    released = counted(**noise)
    accountant = PLDAccountant(neighboring_relation=ADD).compose(interop.dp_event(released, kind="tight"))
    if "epsilon" in noise:  # one count moves by one: binary randomised response
        exact = [math.tanh(0.25), (1.0 - math.exp(0.3 - 0.5)) / (1.0 + math.exp(-0.5))]
    else:
        exact = [delta_of_normal(math.sqrt(0.2), e) for e in (0.0, 0.3)]
    for e, least in zip((0.0, 0.3), exact, strict=True):
        assert least * (1.0 - 1e-9) <= accountant.get_delta(e) <= least * 1.001 + 1e-6


RELEASED = {
    "replaced, normal": lambda: result(NORMAL),
    "replaced, pure": lambda: result(jaxdp.PartitionGCM(epsilon=0.5)),
    "replaced, a cost": lambda: Cost(epsilon=1.0),
    "added, normal": lambda: counted(mechanism=jaxdp.Gaussian(rho=0.1)),
    "added, pure": lambda: counted(epsilon=0.5),
    "added, a cost": lambda: Cost(epsilon=1.0, relation=Relation.ADD_OR_REMOVE_ONE),
}


@pytest.mark.parametrize("kind", ["bound", "tight"])
@pytest.mark.parametrize("name", RELEASED)
def test_no_accountant_takes_an_event_under_the_other_relation(name, kind):
    event, own = interop.dp_event(RELEASED[name](), kind=kind), REPLACE if name.startswith("replaced") else ADD
    taken = set()
    for accountant, relation in itertools.product((PLDAccountant, RdpAccountant), (REPLACE, ADD)):
        try:
            spent = accountant(neighboring_relation=relation).compose(event).get_epsilon(1e-6)
        except UnsupportedEventError:
            continue
        assert 0.0 < spent < math.inf
        taken.add((accountant, relation))
    assert taken <= {(PLDAccountant, own), (RdpAccountant, own)}
    if kind == "tight":
        assert taken == {(PLDAccountant, own)}
    else:
        assert (RdpAccountant, own) in taken


def test_what_is_not_known_to_be_true_is_refused():
    with pytest.raises(ValueError, match=r"rho-zCDP alone does not say .* give kind=.tight. the release"):
        interop.dp_event(Cost(epsilon=math.inf, rho=0.1), kind="tight")
    with pytest.raises(ValueError, match="rho-zCDP alone"):  # a simulation has no lattice noise
        interop.dp_event(result(NORMAL, jax.random.key(0)), kind="tight")
    with pytest.raises(ValueError, match="delta has no tight event"):
        interop.dp_event(Cost(epsilon=1.0, delta=1e-6), kind="tight")
    with pytest.raises(ValueError, match="kind must be one of"):
        interop.dp_event(Cost(epsilon=1.0), kind="tightest")


def test_a_cost_that_the_draws_do_not_explain_counts_itself():
    """As of a person with several records, whose cost is a multiple of what the certificates say."""
    released = result(jaxdp.PartitionGCM(epsilon=0.5))
    dearer = dataclasses.replace(released, cost=Cost(epsilon=1.5))
    kinds = [type(part).__name__ for part in interop.dp_event(dearer, kind="tight").events]
    assert kinds == ["RandomizedResponseDpEvent", "TruncatedSubsampledGaussianDpEvent", "RandomizedResponseDpEvent"]
    spent = PLDAccountant(neighboring_relation=REPLACE).compose(interop.dp_event(dearer, kind="tight"))
    assert spent.get_epsilon(1e-12) == pytest.approx(1.5, abs=1e-3)
    normal = result(NORMAL)
    with pytest.raises(ValueError, match="rho-zCDP alone"):
        interop.dp_event(dataclasses.replace(normal, cost=Cost(epsilon=math.inf, rho=0.4)), kind="tight")


def test_dp_accounting_reads_events_as_these_were_made_for():
    """If one of these fails, a new version reads events otherwise: `convert.tight_event` and its page must follow."""
    normal = dp_event.GaussianDpEvent(2.0)
    spent = {
        (kind, relation): kind(neighboring_relation=relation).compose(normal).get_epsilon(1e-6)
        for kind, relation in itertools.product((PLDAccountant, RdpAccountant), (REPLACE, ADD))
    }
    assert spent[RdpAccountant, REPLACE] == spent[RdpAccountant, ADD]
    doubled = PLDAccountant(neighboring_relation=ADD).compose(dp_event.GaussianDpEvent(1.0)).get_epsilon(1e-6)
    assert spent[PLDAccountant, REPLACE] == pytest.approx(doubled, rel=1e-3)
    response = convert.pure_event(0.5, fixed_size=True)
    counted = PLDAccountant(neighboring_relation=REPLACE).compose(response, 10).get_epsilon(1e-6)
    listed = PLDAccountant(neighboring_relation=REPLACE).compose(dp_event.ComposedDpEvent([response] * 10))
    assert counted == pytest.approx(0.5, abs=1e-3)  # ten times as one: pages say to repeat results in the list
    assert listed.get_epsilon(1e-6) > 3.0
