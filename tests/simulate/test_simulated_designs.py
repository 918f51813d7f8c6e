"""Designs have the independence structure they claim: the null is null, confounded, and the alternative is not."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.data import networks
from jaxdp.data.schema import Schema
from jaxdp.simulate import power
from jaxdp.simulate.designs import by_name, confounder, discrete, functions21
from jaxdp.simulate.engine.replicates import Design

N, CELLS = 20_000, 500
NULL, CLEAR = stats.norm.isf(0.5e-6), 8.0
EFFECTS = {"functions21": 0.5, "case-control": 0.1, "network": 1.0}


sampled = jax.jit(lambda design, key: design(key))  # the effect is an argument: both hypotheses share a program


def sample(design, seed):
    return jax.tree.map(np.asarray, sampled(design, jax.random.key(seed)))


@functools.cache
def drawn(name, effect, **constants):
    design = by_name.design(name).build(N, effect, constants)
    return sample(design, 20)


def scores(values):
    """Normal scores with ties at their mean rank: heavy tails and codes become comparable."""
    return stats.norm.ppf((stats.rankdata(values) - 0.5) / len(values))


def strata(z):
    """Exact strata of discrete columns, times fine quantile cells of a continuous one."""
    cell = np.zeros(N, int)
    for column in z.reshape(N, -1).T:
        kinds = np.unique(column)
        code = (
            np.searchsorted(kinds, column) if kinds.size < 20 else stats.rankdata(column).astype(int) * CELLS // (N + 1)
        )
        cell = cell * 1000 + code
    return np.unique(cell, return_inverse=True)[1]


def dependence(data, given=True):
    """Approximately standard normal if x and y are independent (given z): within-stratum score correlation."""
    x, y = scores(data.x), scores(data.y)
    if given and data.z is not None:
        cell = strata(data.z)
        count = np.bincount(cell)
        x, y = (v - (np.bincount(cell, v) / count)[cell] for v in (x, y))
    product = x * y
    return abs(product.sum()) / np.sqrt((product**2).sum())


ORDERED = ("sine", "shah-peters", "post-nonlinear", "heteroscedastic", "heavy-tailed", "discrete", "mixed")


@pytest.mark.full
@pytest.mark.parametrize("name", ORDERED)
def test_given_z_the_null_is_null_and_the_alternative_is_not(name):
    null, alternative = drawn(name, 0.0), drawn(name, 0.3)
    assert dependence(null) < NULL
    assert dependence(alternative) > CLEAR


@pytest.mark.parametrize("name", [name for name in ORDERED if name != "mixed"])
def test_the_null_is_confounded(name):
    """Without z even the null looks dependent, so a test that ignores z fails on it."""
    assert dependence(drawn(name, 0.0), given=False) > CLEAR


@pytest.mark.parametrize("name", ["functions21", "case-control", "network"])
def test_marginal_designs(name):
    assert dependence(drawn(name, 0.0), given=False) < NULL
    assert dependence(drawn(name, EFFECTS[name]), given=False) > CLEAR


def test_the_functions_have_one_margin_under_both_hypotheses():
    null, relation = (sample(Design.of(functions21.relation(N, effect=effect)), 3) for effect in (0.0, 0.5))
    for role in ("x", "y"):
        assert stats.ks_2samp(getattr(null, role), getattr(relation, role)).pvalue > 1e-6


def test_margins_are_as_stated():
    tails = drawn("heavy-tailed", 0.0)
    noise = tails.x - np.asarray(confounder.wave(tails.z, 2.0))
    assert stats.kstest(noise, stats.t(2.5).cdf).pvalue > 1e-6
    assert stats.kstest(noise, "norm").pvalue < 1e-12
    spread = drawn("heteroscedastic", 0.0)
    noise = (spread.x - np.asarray(confounder.wave(spread.z, 2.0))) / (0.5 + 0.5 * np.abs(spread.z))
    assert stats.kstest(noise + 1.0, "expon").pvalue > 1e-6
    shah = drawn("shah-peters", 0.0)
    assert stats.kstest((shah.x - np.asarray(confounder.wave(shah.z, 2.0))) / 0.3, "norm").pvalue > 1e-6
    post = drawn("post-nonlinear", 0.0)
    assert stats.kstest((np.cbrt(post.y) + np.sin(post.z)) / 0.5, "norm").pvalue > 1e-6
    table = drawn("case-control", 0.1)
    for group, rate in ((0, 0.3), (1, 0.4)):
        assert stats.binomtest(int(table.x[table.y == group].sum()), N // 2, rate).pvalue > 1e-6


def test_codes_stay_within_their_levels():
    data = drawn("discrete", 0.0)
    for values, column in ((data.x, data.domain.x[0]), (data.y, data.domain.y[0]), (data.z, data.domain.z[0])):
        assert set(np.unique(values)) == set(range(column.levels))
    mixed = drawn("mixed", 0.0)
    assert np.abs(mixed.x).max() <= 1.0
    assert set(np.unique(mixed.y)) == {-1.0, 1.0}


def test_separation_agrees_with_networkx():
    import networkx

    for name in networks.names():
        network = networks.load(name)
        graph = networkx.DiGraph([(p, c) for c, v in network.variables.items() for p in v.parents])
        names = [v for v in network.names if v in graph]
        for i, x in enumerate(names):
            for y in names[:i]:
                for given in [(), *((z,) for z in names if z not in (x, y))]:
                    assert discrete.separated(network, x, y, given) == networkx.is_d_separator(
                        graph, {x}, {y}, set(given)
                    )


SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "continuous", "bounds": [18, 90]},
            "dose": {"kind": "continuous", "bounds": [1, 100], "scale": "log"},
            "smoker": {"kind": "binary", "levels": ["no", "yes"]},
            "grade": {"kind": "ordinal", "levels": [1, 2, 3, 4]},
            "site": {"kind": "categorical", "levels": ["a", "b", "c"]},
        }
    }
)
ROWS = {
    "age": [20, 80, 30],
    "dose": [2, 3, 99],
    "smoker": ["no", "yes", "no"],
    "grade": [1, 4, 2],
    "site": ["a", "b", "c"],
}


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize(
    "roles",
    [
        {"x": "dose", "y": "smoker", "given": ["age", "site"]},
        {"x": ["site", "age"], "y": "grade", "given": "dose"},
        {"x": "smoker", "y": ["site", "dose"]},
    ],
)
def test_schema_data_have_the_shape_of_a_reading(roles, codes):
    read = SCHEMA.read(ROWS, codes=codes, **roles)
    made = jax.eval_shape(
        jaxdp.simulate.from_schema(SCHEMA, 3, codes=codes, **roles), jax.eval_shape(jax.random.key, 0)
    )
    assert made.domain == read.domain
    for role in ("x", "y", "z"):
        ours, theirs = getattr(made, role), getattr(read, role)
        assert (ours is None) == (theirs is None)
        assert ours is None or ours.shape == theirs.shape


def test_schema_data_keep_to_the_hypothesis():
    roles = {"x": "dose", "y": "grade", "given": ["age", "site"]}

    null, other = (sample(Design.of(jaxdp.simulate.from_schema(SCHEMA, N, effect=e, **roles)), 4) for e in (0.0, 0.3))
    assert dependence(null) < NULL
    assert dependence(other) > CLEAR
    assert np.abs(null.x).max() <= 1.0
    assert set(np.round(null.y, 4)) == set(np.round(np.float32([-1, -1 / 3, 1 / 3, 1]), 4))
    assert set(np.unique(null.z[:, 1])) == {0.0, 1.0, 2.0}
    counts = np.unique(null.z[:, 1], return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 1e-6


LISTED = functools.partial(confounder.sine_confounder, ordered=True)


@pytest.mark.full
def test_records_listed_by_z_are_of_the_same_law():
    test = jaxdp.BandGCM(epsilon=5.0, enforce_rule=False)
    listed, plain = (
        power.p_values(test, functools.partial(design, n=100, effect=0.3), jax.random.key(seed), 2000)
        for seed, design in enumerate((LISTED, confounder.sine_confounder))
    )
    assert stats.ks_2samp(listed, plain).pvalue > 1e-3


def test_a_test_of_neighbours_does_not_see_how_records_are_listed():
    data = LISTED(jax.random.key(2), 100)
    assert np.all(np.diff(data.z) > 0)  # no two are equal, which chance would order
    moved = np.random.default_rng(3).permutation(100)
    shuffled = jax.tree.map(lambda column: column[moved], data)
    statistic = jax.jit(lambda sample: jaxdp.BandGCM(epsilon=1.0, enforce_rule=False).statistic(None, sample))
    assert float(statistic(data)) == float(statistic(shuffled))
    with pytest.raises(ValueError, match="one column of Z"):
        LISTED(jax.random.key(0), 100, dim=2)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="did you mean 'dose'"):
        jaxdp.simulate.from_schema(SCHEMA, 10, x="doses", y="age")
    with pytest.raises(ValueError, match="at least one column"):
        jaxdp.simulate.from_schema(SCHEMA, 10, x=[], y="age")
    with pytest.raises(ValueError, match="so effect must be 0"):
        by_name.design("network").build(10, 1.0, {"x": "asia", "y": "smoke"})
    with pytest.raises(ValueError, match="outer_x must be one of"):
        by_name.design("post-nonlinear").build(10, 0.0, {"outer_x": "sin"})(jax.random.key(0))
    with pytest.raises(ValueError, match="of the kind of"):
        by_name.design("sine").build(10, 0.0, {"dim": 1.5})
