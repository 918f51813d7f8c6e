"""The sensitivity that ConditionalKendall declares for its null variance: as documented, never below an attack."""

import jax
import numpy as np
import pytest
from rank_falsifiers import moves
from test_conditional_kendall import domain

import jaxdp
from jaxdp.core import Relation
from jaxdp.data.dataset import ORDINAL, Column, Domain
from jaxdp.statistics import concordance

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE

# docs/theory/conditional_kendall.md#variance
DOCUMENTED = {
    ((3, 3, 2), ADD): 1 / 3,
    ((3, 3, 2), REPLACE): 0.357,
    ((3, 3, 1), REPLACE): 0.357,
    ((2, 3, 2), ADD): 1 / 3,
    ((2, 3, 2), REPLACE): 0.357,
    ((2, 3, 1), REPLACE): 0.357,
    ((2, 2, 2), ADD): 0.25,
    ((2, 2, 2), REPLACE): 0.375,
    ((2, 2, 1), REPLACE): 0.375,
}


def declared(shape, relation):
    test = jaxdp.ConditionalKendall(epsilon=1.0, relation=relation)
    data = jaxdp.Data(*(np.zeros(50, int) for _ in shape), domain=domain(*shape))
    return float(jaxdp.core.specialize(test, data).sensitivity(50)["v"].bound)


def general(tables):
    with jax.enable_x64(True):
        return concordance.kendall_variance(concordance.strata_of_table(tables))


def binary(tables):
    with jax.enable_x64(True):
        return concordance.cmh_variance(concordance.strata_of_table(tables))


@pytest.mark.parametrize(("shape", "relation"), DOCUMENTED)
def test_declared_bound_of_the_variance_is_the_documented_one(shape, relation):
    assert declared(shape, relation) == DOCUMENTED[shape, relation]


def test_general_arrival_attains_the_declared_bound():
    """One new record in a stratum of 400 where a is constant and b untied: the tie correction opens at once."""
    table = np.zeros((1, 2, 400), np.int64)
    table[0, 0] = 1
    more = table.copy()
    more[0, 1, 0] = 1
    before, after = general(np.stack([table, more]))
    bound = declared((3, 3, 2), ADD)
    assert 0.98 * bound < after - before <= bound


def test_binary_arrival_attains_the_declared_bound():
    found = moves(binary, 6, (2, 2, 2))
    bound = declared((2, 2, 2), ADD)
    assert 0.99 * bound <= max(found["up"], found["down"]) <= bound + 1e-12


def test_no_small_replacement_passes_the_declared_bound():
    assert moves(general, 5, (2, 3, 3))["replace"] <= declared((3, 3, 2), REPLACE)
    assert moves(binary, 6, (2, 2, 2))["replace"] <= declared((2, 2, 2), REPLACE)


# docs/theory/spearman.md: U 5 on an arrival, 10 on a replacement, 6 without strata; V 3 and 4
SPEARMAN = {
    ((3, 3, 2), ADD): (5.0, 3.0),
    ((3, 3, 2), REPLACE): (10.0, 4.0),
    ((3, 3, 0), REPLACE): (6.0, 4.0),
    ((2, 3, 2), ADD): (5.0, 3.0),
    ((2, 3, 2), REPLACE): (10.0, 4.0),
    ((2, 2, 2), ADD): (5.0, 3.0),
    ((2, 2, 2), REPLACE): (10.0, 4.0),
    ((2, 2, 0), REPLACE): (6.0, 4.0),
}


@pytest.mark.parametrize(("shape", "relation"), SPEARMAN, ids=str)
def test_spearman_declares_the_documented_bounds(shape, relation):
    """No attack reaches more than three quarters of V's bound, so that a cut of the proven one shows only here."""
    test = jaxdp.ConditionalSpearman(epsilon=1.0, relation=relation)
    columns = [np.zeros(50, int) if levels else None for levels in shape]
    described = [(Column(ORDINAL, levels),) if levels else () for levels in shape]
    bounds = jaxdp.core.specialize(test, jaxdp.Data(*columns, domain=Domain(*described))).sensitivity(50)
    assert (float(bounds["u"].bound), float(bounds["v"].bound)) == SPEARMAN[shape, relation]
