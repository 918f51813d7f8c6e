"""Subsampling: the formula against all subsets, the pairings that are false, the inverses."""

import itertools
import math

import jax
import numpy as np
import pytest

from jaxdp import accounting
from jaxdp.core import Cost, Relation

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE


def response(epsilon, holds):
    """Probability that a randomised response says yes."""
    return 1 / (1 + math.exp(-epsilon if holds else epsilon))


def fixed_size_loss(epsilon, sample_size, num_records):
    """Exact loss, over all subsets, of asking the subset 'is the special record here' when record 0 is replaced."""
    subsets = list(itertools.combinations(range(num_records), sample_size))
    with_it = np.mean([response(epsilon, 0 in subset) for subset in subsets])
    without = response(epsilon, False)
    return max(math.log(with_it / without), math.log((1 - without) / (1 - with_it)))


def poisson_loss(epsilon, rate, num_records):
    """The same for Poisson subsets, when record 0 is added."""
    with_it = 0.0
    for chosen in itertools.product((False, True), repeat=num_records):
        weight = math.prod(rate if taken else 1 - rate for taken in chosen)
        with_it += weight * response(epsilon, chosen[0])
    without = response(epsilon, False)
    return max(math.log(with_it / without), math.log((1 - without) / (1 - with_it)))


@pytest.mark.parametrize(("sample_size", "num_records"), [(4, 10), (1, 6), (5, 6), (6, 6)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_fixed_size_is_exact(epsilon, sample_size, num_records):
    claimed = accounting.fixed_size_epsilon(epsilon, sample_size=sample_size, num_records=num_records)
    reached = fixed_size_loss(epsilon, sample_size, num_records)
    assert reached <= claimed * (1 + 1e-12)
    assert reached > 0.999 * claimed  # a claim cut by a tenth would be passed


@pytest.mark.parametrize("rate", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_poisson_is_exact(epsilon, rate):
    claimed = accounting.poisson_epsilon(epsilon, rate=rate)
    reached = poisson_loss(epsilon, rate, 5)
    assert reached <= claimed * (1 + 1e-12)
    assert reached > 0.999 * claimed


def test_poisson_of_the_survey():
    # Interface notes, section 2.2: log(1 + q (e^eps - 1)) = 0.29539 against a PLD of 0.29540.
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    theirs = distributions.from_laplace_mechanism(1.0, sampling_prob=0.2).get_epsilon_for_delta(1e-12)
    assert accounting.poisson_epsilon(1.0, rate=0.2) == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.3, 1.0, 20.0])
@pytest.mark.parametrize(("sample_size", "num_records"), [(1, 1), (4, 10), (1000, 10**9)])
def test_inverse(epsilon, sample_size, num_records):
    sizes = {"sample_size": sample_size, "num_records": num_records}
    base = accounting.fixed_size_base_epsilon(epsilon, **sizes)
    assert accounting.fixed_size_epsilon(base, **sizes) <= epsilon * (1 + 1e-15)
    assert accounting.fixed_size_epsilon(base * (1 + 1e-9), **sizes) > epsilon
    rate = sample_size / num_records
    base = accounting.poisson_base_epsilon(epsilon, rate=rate)
    assert accounting.poisson_epsilon(base, rate=rate) == pytest.approx(epsilon, rel=1e-12)


def test_costs():
    cost = accounting.subsample_fixed_size(Cost(epsilon=1.0, delta=1e-6), sample_size=100, num_records=1000)
    assert cost.epsilon == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-14)
    assert (cost.delta, cost.rho, cost.relation) == (1e-7, math.inf, REPLACE)
    cost = accounting.subsample_poisson(Cost(epsilon=1.0, relation=ADD), rate=0.1)
    assert cost.rho == pytest.approx(cost.epsilon**2 / 2)
    assert cost.relation is ADD


def test_wrong_relation_is_refused():
    with pytest.raises(ValueError, match="replace_one only"):
        accounting.subsample_fixed_size(Cost(epsilon=1.0, relation=ADD), sample_size=1, num_records=10)
    with pytest.raises(ValueError, match="add_or_remove_one only"):
        accounting.subsample_poisson(Cost(epsilon=1.0, relation=REPLACE), rate=0.1)


def test_why_poisson_needs_add_or_remove():
    """Replacing a record moves the answer up in one world and down in the other; the formula knows one move."""
    epsilon, rate, neither = 1.0, 0.5, 0.01
    with_old, with_new = neither * math.exp(epsilon), neither * math.exp(-epsilon)  # epsilon-DP for one record more
    mixed_old = rate * with_old + (1 - rate) * neither
    mixed_new = rate * with_new + (1 - rate) * neither
    assert math.log(mixed_old / mixed_new) > 1.5 * accounting.poisson_epsilon(epsilon, rate=rate)
    assert math.log(mixed_old / neither) == pytest.approx(accounting.poisson_epsilon(epsilon, rate=rate))


@pytest.mark.parametrize(
    "call",
    [
        lambda: accounting.fixed_size_epsilon(1.0, sample_size=11, num_records=10),
        lambda: accounting.fixed_size_epsilon(1.0, sample_size=0, num_records=10),
        lambda: accounting.fixed_size_epsilon(1.0, sample_size=2.5, num_records=10),
        lambda: accounting.fixed_size_epsilon(math.nan, sample_size=1, num_records=10),
        lambda: accounting.poisson_epsilon(1.0, rate=0.0),
        lambda: accounting.poisson_epsilon(1.0, rate=1.5),
        lambda: accounting.poisson_epsilon(-1.0, rate=0.5),
        lambda: accounting.subsample_poisson(Cost(epsilon=math.inf, rho=0.5, relation=ADD), rate=0.5),
    ],
)
def test_mistakes(call):
    with pytest.raises(ValueError, match=r"must be|pure epsilon only"):
        call()


def test_traced_epsilon():
    with jax.enable_x64(True):
        base = jax.jit(lambda epsilon: accounting.fixed_size_base_epsilon(epsilon, sample_size=4, num_records=10))(1.0)
    assert float(base) == pytest.approx(
        accounting.fixed_size_base_epsilon(1.0, sample_size=4, num_records=10), rel=1e-12
    )
