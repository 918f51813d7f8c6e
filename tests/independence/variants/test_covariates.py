"""Hats of covariates: what they span, how far one record moves their moments, and which are taken."""

import dataclasses
import json
import pathlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from experiments.evidence.variants import level
from jaxdp import null_laws
from jaxdp.audit import bounds
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.independence.variants import score_test
from jaxdp.independence.variants.covariates import KNOTS, Hats, Straight
from jaxdp.independence.variants.score_stages import Model, NullModel, VariantLines, _known
from jaxdp.independence.variants.score_test import STRAIGHT_LINES, ScoreTest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "theory" / "score_test.md"
REACHED = 0.98
LEVEL = 0.05
MIXED = (Column(), Column(ORDINAL, 4), Column(CATEGORICAL, 3), Column(BINARY, 2))


def values(columns, n, seed=0):
    generator = np.random.default_rng(seed)
    made = [
        generator.integers(0, column.levels, n) if column.levels else generator.uniform(-1, 1, n) for column in columns
    ]
    return jnp.asarray(np.stack(made, axis=1).astype(float))


@pytest.mark.parametrize("columns", [MIXED, (Column(),), (Column(CATEGORICAL, 5), Column())])
def test_hats_add_up_to_one_and_hold_every_line(columns):
    z = values(columns, 200)
    basis = Hats(columns, 5)
    design = np.asarray(basis.design(z, 200, 1.0))
    assert design.shape == (200, basis.width)
    np.testing.assert_array_equal(design, np.round(design * 2**13) / 2**13)
    np.testing.assert_allclose(design @ basis.constant, 1.0)
    straight = np.asarray(Straight(columns).design(z, 200, 1.0))
    left = straight - design @ np.linalg.lstsq(design, straight, rcond=None)[0]
    assert np.abs(left).max() < 2e-4  # the grid of values


def test_the_matrix_holds_the_products():
    z, y = values(MIXED, 300), np.random.default_rng(1).uniform(-1, 1, 300)
    for basis in (Hats(MIXED, 5), Straight(MIXED)):
        for euclidean in (False, True):
            design = basis.design(z, 300, 1.0)
            released = basis.vector(design, jnp.asarray(y), euclidean) / basis.weights(euclidean)
            both = np.concatenate([np.asarray(design), y[:, None]], axis=1)
            np.testing.assert_allclose(basis.matrix(released, 300.0), both.T @ both, atol=0.1)


def test_the_typical_matrix_is_that_of_uniform_covariates():
    for basis in (Hats((Column(), Column(ORDINAL, 4)), 5), Straight((Column(),))):
        design = np.asarray(basis.design(values(basis.columns, 200_000), 200_000, 1.0))
        np.testing.assert_allclose(basis.typical(), design.T @ design / 200_000, atol=0.01)


def about(query, columns, knots, mechanism):
    """A stage of a test with these hats."""
    test = ScoreTest(epsilon=1.0, knots=knots)
    shapes = Data(
        np.zeros((9, 2)), np.zeros(9), np.zeros((9, len(columns))), Domain((Column(),) * 2, (Column(),), columns)
    )
    return query(mechanism=mechanism, of=test.started(shapes))


def pairs(columns):
    """One record's covariates move to other knots, or stay where only the phenotype and the variants turn over."""

    def made(x, y, z):
        rest = np.tile([[1.0], [-1.0]], (4, 1))
        return Data(
            np.concatenate([np.full((1, 2), x), np.tile(rest, (1, 2))]),
            np.concatenate([[y], 0.5 * rest[:, 0]]),
            np.concatenate([np.full((1, len(columns)), z), np.tile(0.0 * rest, (1, len(columns)))]),
            Domain((Column(),) * 2, (Column(),), columns),
        )

    first = made(1.0, 1.0, 1.0)
    rows = np.array(first.z)
    rows[0, 1:] = 0.0  # the first covariate stays, the others move
    moved = dataclasses.replace(first, z=rows)
    flipped = dataclasses.replace(made(-1.0, -1.0, 1.0), y=np.asarray(made(-1.0, -1.0, 1.0).y))
    return [(first, made(-1.0, y, z)) for y in (-1.0, 0.5) for z in (0.0, 1.0)] + [(moved, flipped)]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("mechanism", [jaxdp.Laplace(1.0), jaxdp.Gaussian(0.5)], ids=["laplace", "gaussian"])
def test_moments_of_hats_reach_their_bounds_and_never_pass_them(mechanism, count):
    """A bound of nine tenths would be passed."""
    columns = (Column(),) * count
    for query in (NullModel, VariantLines):
        (found,) = bounds.reached_by(about(query, columns, 5, mechanism), pairs(columns)).values()
        assert REACHED <= found.share <= 1.0 + 1e-9
        assert found.share / 0.9 > 1.0


@pytest.mark.parametrize("mechanism", [jaxdp.Laplace(1.0), jaxdp.Gaussian(0.5)], ids=["laplace", "gaussian"])
def test_random_neighbours_never_pass_the_bounds_of_hats(mechanism):
    def records(key, n):
        seed = int(jax.random.randint(key, (), 0, 1000))
        generator = np.random.default_rng(seed)
        x, y = generator.choice([-1.0, 0.0, 1.0], (n, 2)), generator.uniform(-1, 1, n)
        return Data(x, y, np.asarray(values(MIXED, n, seed)), Domain((Column(),) * 2, (Column(),), MIXED))

    found = bounds.search(about(NullModel, MIXED, 3, mechanism), records, 9, rounds=2, lanes=40)
    assert all(one.share <= 1.0 + 1e-9 for one in found.values())


def shapes(n, count):
    columns = (Column(),) * count
    return Data(np.zeros((n, 1)), np.zeros(n), np.zeros((n, count)), Domain((Column(),), (Column(),), columns))


def test_more_records_buy_more_knots_and_few_are_flagged():
    taken = [ScoreTest(epsilon=1.0).started(shapes(n, 2)).basis for n in (500, 20_000, 50_000, 1_000_000)]
    assert taken[0] == Straight((Column(),) * 2)
    assert [basis.knots for basis in taken[1:]] == sorted(basis.knots for basis in taken[1:])
    assert ScoreTest(epsilon=8.0).started(shapes(1_000_000, 1)).basis.knots == KNOTS[0][0]
    rule = ScoreTest(epsilon=1.0).validity
    assert STRAIGHT_LINES in rule(shapes(500, 1)).flags
    assert STRAIGHT_LINES in rule(shapes(10_000, 10)).flags
    assert rule(shapes(200_000, 1)).flags == ()
    assert ScoreTest(epsilon=1.0, knots=2).started(shapes(200_000, 1)).basis == Straight((Column(),))


def curved(key, n):
    """x and y both follow the square of z, and nothing else joins them."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n,), minval=-1.0)
    curve = 1.5 * (z**2 - 1.0 / 3.0)
    x = jnp.sum(jax.random.uniform(key_x, (2, n, 1)) < 0.3 * (1.0 + 0.6 * curve[None, :, None]), axis=0) - 1.0
    return Data(x, jnp.clip(0.3 * curve + 0.2 * jax.random.normal(key_y, (n,)), -1.0, 1.0), z)


def p_values(test, draw, n, replicates):
    def one(key):
        first, second = jax.random.split(key)
        return jaxdp.run(test, second, draw(first, n)).p_value

    keys = jax.random.split(jax.random.key(0), replicates)
    return np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=20))(keys))


@pytest.mark.full
@pytest.mark.optimised
def test_level_where_both_means_bend_with_a_covariate():
    """With straight lines nearly every null is rejected."""
    found = p_values(ScoreTest(epsilon=2.0), curved, 4000, 100)
    assert np.sum(found <= LEVEL) <= binom.ppf(1 - 1e-5, 100, LEVEL)
    assert np.mean(p_values(ScoreTest(epsilon=2.0, knots=2), curved, 4000, 20) <= LEVEL) > 0.8


@pytest.mark.full
@pytest.mark.optimised
def test_noise_that_both_lines_share_gives_the_scores_no_mean(monkeypatch):
    """Few carriers and cases: both lines are near -1 at every knot, and the mean was one and a half sds of S."""
    monkeypatch.setattr(score_test, "AFFORDABLE", 0.0)  # no bins, within which such a mean cancels anyway
    law = {"shape": 0, "bent_x": True, "bent_y": True, "maf": 0.02, "cases": 0.05, "effect": 0.0, "normal": False}

    def one(key):
        first, second = jax.random.split(key)
        return jaxdp.run(ScoreTest(epsilon=4.0, knots=17), second, level.drawn(first, 2000, 1, 1, True, law)).statistic

    keys = jax.random.split(jax.random.key(3), 80)
    scores = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=20))(keys))
    assert abs(scores.mean()) < 0.8 * scores.std()


def test_a_released_variance_of_nothing_is_no_evidence():
    """Few carriers among few cases leave a small V with a small S: D times the mean of r^2 bounds it from below."""
    nothing = jnp.zeros((1, 1))
    model = Model(
        nothing, nothing, nothing, 2.0, 1.0, nothing, nothing, 0.19, 0.9, *[nothing[0] > 0] * 4, nothing, nothing
    )
    test = dataclasses.replace(ScoreTest(epsilon=8.0), model=model)
    for squares, expected in ((0.0, 3.8), (-5.0, 3.8), (9.0, 9.0)):
        release = SimpleNamespace(value={"squares": jnp.array([squares]), "spread": jnp.array([80.0])})
        np.testing.assert_allclose(test._variance(release), expected)


@pytest.mark.parametrize("skewness", [0.0, 0.3, 1.0, 1.9])
def test_tails_of_skewed_sums_in_noise(skewness):
    scale, sd, draws = 1.2, 2.0, 200_000
    generator = np.random.default_rng(0)
    shape = 4.0 / max(skewness, 1e-4) ** 2
    centred = (
        (generator.gamma(shape, size=draws) - shape) / np.sqrt(shape) if skewness else generator.normal(size=draws)
    )
    sums = sd * centred + generator.laplace(0.0, scale, draws)
    for value in (2.0, 5.0, 9.0):
        found = float(null_laws.skewed(lambda t: jnp.exp(-jnp.abs(t) / scale), value, sd, skewness))
        seen = np.mean(np.abs(sums) >= value)
        # Wilson and Hilferty's cube is within a tenth of a gamma's tails here
        assert abs(found - seen) < 0.1 * seen + 4.0 * np.sqrt(seen / draws)
    exact = float(null_laws.normal_plus_laplace(5.0, sd, scale))
    if not skewness:
        assert found != exact
        assert abs(float(null_laws.skewed(lambda t: jnp.exp(-jnp.abs(t) / scale), 5.0, sd, 0.0)) - exact) < 1e-5


def test_the_table_of_the_page_is_that_of_the_record():
    rows = [json.loads(line) for line in (pathlib.Path(level.__file__).parent / "level.jsonl").read_text().splitlines()]
    assert all(level.table(rows, normal) in PAGE.read_text() for normal in (False, True))
    smooth = [row for row in rows if row["cell"]["shape"] in ("square", "abs") and not row["flags"]]
    after = [row["rejected 0.05"] for row in smooth if row["code"] == "after"]
    assert max(after) <= binom.ppf(0.999, 400, LEVEL) / 400


def test_where_hardly_a_record_lies_the_mean_of_all_records_is_fitted():
    gram, inverse, hidden = _known(jnp.diag(jnp.array([100.0, 200.0, 0.5])), 4.0, jnp.ones(3))
    np.testing.assert_allclose(gram, np.diag([100.0, 200.0, 0.0]), atol=1e-5)
    np.testing.assert_allclose(inverse, np.diag([0.01, 0.005, 0.0]), atol=1e-7)
    np.testing.assert_allclose(hidden, [0.0, 0.0, 1.0], atol=1e-6)


@pytest.mark.full
def test_rare_alleles_and_rare_cases_keep_the_level_where_the_covariate_has_empty_ends():
    """With nothing fitted at the ends both residuals have a large mean there: 14 of 15 such nulls were rejected."""
    columns = {"x": {"kind": "ordinal", "levels": [0, 1, 2]}, "y": {"kind": "binary", "levels": [0, 1]}}
    schema = {"columns": columns | {"z": {"kind": "continuous", "bounds": [-3.5, 3.5]}}}
    rejected = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        table = {"x": random.binomial(2, 0.015, 20_000), "y": (random.random(20_000) < 0.03).astype(int)}
        table["z"] = random.normal(size=20_000)
        key = jax.random.key(seed)
        answer = jaxdp.test(table, x="x", y="y", given="z", schema=schema, epsilon=2.0, method="score-test", key=key)
        rejected += answer.p_value <= 0.05
    assert rejected <= 2
