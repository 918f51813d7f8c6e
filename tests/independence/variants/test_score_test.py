"""Score tests of variants: sensitivity attacked stage by stage, level, effects, choice, PLINK files."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import jaxdp
from jaxdp import core
from jaxdp.audit import bounds
from jaxdp.data import plink
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.independence.variants import covariates, score_examples
from jaxdp.independence.variants.best_variants import BestVariants
from jaxdp.independence.variants.score_stages import Lines, VariantChoice, VariantLines
from jaxdp.independence.variants.score_test import ScoreTest
from jaxdp.statistics import score_sums

REACHED = 0.95
LEVEL = 0.05


def about_known_lines(num=score_examples.VARIANTS, mechanism=None):
    """The last stage with lines and null model at zero, so that a pair can be made for them."""
    budget = {"epsilon": 1.0} if mechanism is None else {"mechanism": mechanism}
    test = ScoreTest(null_model=lambda z: jnp.zeros(len(z)), residual_limit=1.0, **budget)
    data = score_examples.worst_pairs()[0][0]
    started = test.started(core.public_shapes(data))
    return dataclasses.replace(started, ahead=(), lines=Lines(jnp.zeros((num, 1)), *(jnp.zeros(num) for _ in range(3))))


@pytest.mark.parametrize("mechanism", [None, jaxdp.Gaussian(0.5)], ids=["laplace", "gaussian"])
def test_scores_reach_their_bounds_and_never_pass_them(mechanism):
    """All variants of a person turn over; a bound of nine tenths would be passed."""
    check_reached(about_known_lines(mechanism=mechanism), score_examples.worst_pairs())


def check_reached(test, pairs):
    found = bounds.reached_by(test, pairs)
    assert set(found) == {"scores", "squares", "spread"}
    for one in found.values():
        assert REACHED <= one.share <= 1.0 + 1e-9
        assert one.share / 0.9 > 1.0


def test_stages_reach_their_bounds_and_never_pass_them():
    test = about_known_lines()
    for query in (VariantChoice, VariantLines):
        mechanism = jaxdp.Laplace(1.0) if query is VariantLines else jaxdp.TopK(epsilon=1.0)
        (one,) = bounds.reached_by(query(mechanism=mechanism, of=test), flipped()).values()
        assert REACHED <= one.share <= 1.0 + 1e-9


def flipped():
    """The worst pairs, and data in which the sums have one sign, so that no fold of |sum x r| hides a move."""
    rows = np.ones((9, score_examples.VARIANTS))
    before = Data(rows, np.ones(9), np.ones(9))
    after = Data(rows * np.where(np.arange(9) == 0, -1.0, 1.0)[:, None], np.ones(9), np.ones(9))
    return [*score_examples.worst_pairs(), (before, after)]


def test_random_neighbours_never_pass_the_bounds():
    found = bounds.search(about_known_lines(), score_examples.null_cohort, 9, rounds=3, lanes=60)
    assert all(one.share <= 1.0 + 1e-9 for one in found.values())


def test_sums_in_blocks_are_those_of_the_whole():
    generator = np.random.default_rng(0)
    x = generator.integers(-1, 2, (7, score_sums.BLOCK + 37)).astype(np.int8)
    weights = jnp.asarray(generator.integers(-8, 9, (7, 2)) / 8.0)
    np.testing.assert_array_equal(score_sums.products(jnp.asarray(x), weights), x.T.astype(float) @ weights)


def test_a_missing_genotype_counts_as_nothing():
    x = jnp.array([[1.0, np.nan], [-1.0, 1.0], [-9.0, 0.5]])
    line, design, residuals = jnp.full((2, 1), 0.25), jnp.ones((3, 1)), jnp.array([0.5, 1.0, -1.0])
    found = score_sums.scores(x, line, design, residuals)
    np.testing.assert_allclose(found["spread"], [0.75**2 + 1.0, 0.75**2 + 0.25**2])
    np.testing.assert_allclose(found["scores"], [0.75 * 0.5 - 1.0, 0.75 - 0.25])


@pytest.mark.parametrize("bins", [None, (jnp.array([0, 0, 1, 1]), 2)])
def test_a_record_without_a_phenotype_counts_nowhere(bins):
    """Its h stayed in the spread, so that effects shrank: .379 for .5 where 30 % had no phenotype."""
    x, line, design = jnp.array([[1.0], [-1.0], [0.5], [1.0]]), jnp.zeros((1, 1)), jnp.ones((4, 1))
    residuals = jnp.array([0.5, 1.0, -1.0, 0.0])
    found = score_sums.scores(x, line, design, residuals, bins, jnp.arange(4) < 3)
    cut = None if bins is None else (bins[0][:3], bins[1])
    assert found == score_sums.scores(x[:3], line, design[:3], residuals[:3], cut)


def test_missing_phenotypes_shrink_no_effect():
    """The slope of `cohort` is 0.2."""

    def one(key):
        of_data, of_gaps, of_noise = jax.random.split(key, 3)
        data = score_examples.cohort(of_data, 4000)
        y = jnp.where(jax.random.uniform(of_gaps, (4000,)) < 0.3, jnp.nan, data.y)
        return jaxdp.run(ScoreTest(epsilon=4.0), of_noise, dataclasses.replace(data, y=y))

    found = jax.jit(lambda keys: jax.lax.map(one, keys))(jax.random.split(jax.random.key(0), 30))
    low, high = (np.asarray(end)[:, 0] for end in found.interval)
    assert abs(np.mean(found.effect[:, 0]) - 0.2) < 0.01
    assert np.sum((low <= 0.2) & (high >= 0.2)) >= binom.ppf(1e-4, 30, 0.95)


def p_values(test, draw, n, replicates, seed=0):
    def one(key):
        first, second = jax.random.split(key)
        return jaxdp.run(test, second, draw(first, n)).p_value

    keys = jax.random.split(jax.random.key(seed), replicates)
    return np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=20))(keys))


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("draw", [score_examples.null_cohort, score_examples.binary_cohort])
def test_level_where_variants_and_phenotype_follow_a_covariate(draw):
    count, replicates = int(np.sum(p_values(ScoreTest(epsilon=2.0), draw, 2000, 400) <= LEVEL)), 400
    assert count <= binom.ppf(1 - 1e-5, replicates, LEVEL)


def test_a_public_limit_of_residuals_counts_as_the_same_limit_by_sds():
    """The null law once took the limit of the model in force of the one that was given: .105 of true nulls at .05."""
    rng, n = np.random.default_rng(0), 5000
    z = rng.uniform(-1, 1, (n, 3))
    y = np.clip(0.5 + 0.1 * z[:, 0] + 0.05 * rng.normal(size=n), -1, 1)
    data = Data(rng.binomial(2, 0.1, n) - 1.0, y, z)

    def settled(**fields):
        test, _ = core._execute(
            ScoreTest(epsilon=4.0, knots=2, **fields), core.source_from_key(jax.random.key(3)), data
        )
        return test

    limit = float(settled().model.limit)
    given, by_sds = settled(residual_limit=0.5 * limit), settled(winsorize=1.0)
    assert float(given._limits()[0]) == pytest.approx(0.5 * limit)
    for name in ("product_variance", "mean"):
        found = [np.asarray(getattr(test.lines, name)) for test in (given, by_sds)]
        np.testing.assert_allclose(*found, rtol=1e-4)


@pytest.mark.full
@pytest.mark.optimised
def test_without_the_covariate_the_level_is_lost():
    def unadjusted(key, n):
        return dataclasses.replace(score_examples.null_cohort(key, n), z=None)

    assert np.mean(p_values(ScoreTest(epsilon=2.0), unadjusted, 2000, 40) <= LEVEL) > 0.9


@pytest.mark.full
@pytest.mark.optimised
def test_effect_per_allele_and_its_interval():
    """The slope of `cohort` is 0.2; intervals hold for all four variants together."""
    covered, slopes = [], []
    for seed in range(30):
        data = score_examples.cohort(jax.random.key(seed), 4000)
        result = jaxdp.run(ScoreTest(epsilon=2.0), jax.random.key(1000 + seed), data)
        low, high = result.interval
        truth = np.array([0.2, 0.0, 0.0, 0.0])
        covered.append(bool(np.all((low <= truth) & (truth <= high))))
        slopes.append(float(result.effect[0]))
    assert np.sum(covered) >= binom.ppf(1e-4, len(covered), 0.95)
    assert abs(np.mean(slopes) - 0.2) < 0.006


def study(n=1500, num=40, hit=7, seed=0):
    """Two populations of different frequencies and prevalence; one variant raises the phenotype."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.5
    rate = np.clip(rng.uniform(0.2, 0.5, num) + np.where(group[:, None], 0.12, -0.12) * rng.choice([-1, 1], num), 0, 1)
    x = (rng.random((2, n, num)) < rate).sum(axis=0).astype(np.int8) - 1
    y = 0.25 * group + 0.2 * rng.standard_normal(n) + 0.2 * x[:, hit]
    return Data(x, np.clip(y, -1, 1), np.where(group, 1.0, -1.0) + 0.0 * y)


def test_best_variants_choose_the_planted_one_and_test_it():
    result = jaxdp.run(BestVariants(epsilon=4.0, count=2), jax.random.key(3), study())
    chosen = np.asarray(BestVariants.chosen(result)).tolist()
    assert 7 in chosen
    p_value = np.asarray(result.p_value)
    assert p_value.shape == (2,)
    assert p_value[chosen.index(7)] < 1e-3
    assert np.isclose(float(result.cost.epsilon), 4.0)


def test_every_variant_with_holm():
    result = jaxdp.run(ScoreTest(epsilon=4.0, each=True), jax.random.key(3), study(num=5, hit=2))
    p_value = np.asarray(result.p_value)
    assert p_value.shape == (5,)
    assert p_value.argmin() == 2
    assert p_value[2] < 1e-3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BestVariants(mechanism=jaxdp.Gaussian(0.5)), "best-variants takes epsilon="),
        (lambda: core.cost_of(BestVariants(epsilon=1.0, count=9), study(num=8)), "count must be at most"),
        (lambda: ScoreTest(epsilon=1.0, winsorize=-1.0), "winsorize"),
    ],
)
def test_public_mistakes_raise(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def files(folder, n=90, num=6, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, (n, num)).astype(np.int8)
    x[rng.random(x.shape) < 0.1] = plink.MISSING
    plink.write_genotypes(folder / "study", x, phenotype=rng.choice(["1", "2", "-9"], n))
    rows = [f"p{i} p{i} {rng.uniform(20, 80):.1f} {rng.normal():.3f}" for i in rng.permutation(n)]
    (folder / "study.cov").write_text("\n".join(["FID IID age ldl", *rows[:-1]]) + "\n")
    return x


def test_plink_files_are_read_as_they_were_written(tmp_path):
    x = files(tmp_path)
    found = plink.read_genotypes(tmp_path / "study")
    np.testing.assert_array_equal(found.counts, x)
    columns = plink.read_persons(tmp_path / "study.cov", ["age"], found.persons)["age"]
    assert len(columns) == len(x)
    assert columns.count("NA") == 1
    data = plink.cohort(found, found.phenotype, {"age": columns}, {"age": (20.0, 80.0)}, None)
    assert set(np.unique(data.y[~np.isnan(data.y)])) == {-1.0, 1.0}
    assert np.isnan(data.z).sum() == 1


def test_plink_bits_are_those_of_the_format(tmp_path):
    """As the format's page has it: 2, missing, 1, 0 copies are 00, 01, 10, 11, low bits first."""
    plink.write_genotypes(tmp_path / "one", np.array([[1], [plink.MISSING], [0], [-1]], np.int8))
    assert (tmp_path / "one.bed").read_bytes() == bytes([0x6C, 0x1B, 0x01, 0b11100100])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: (path / "study.bed").write_bytes(b"not a bed file"), "no PLINK 1 file"),
        (lambda path: (path / "study.fam").write_text("p0 p0 0 0 0 1\n"), "does not fit"),
        (lambda path: (path / "study.cov").write_text("age\n1\n"), "header FID IID"),
    ],
)
def test_files_that_do_not_fit_are_refused_in_a_sentence(tmp_path, spoil, said):
    files(tmp_path)
    spoil(tmp_path)
    with pytest.raises(ValueError, match=said):
        jaxdp.gwas(
            tmp_path / "study",
            covariates=tmp_path / "study.cov",
            names=["age"],
            bounds={"age": (18, 90)},
            epsilon=1.0,
            key=jax.random.key(0),
        )


def test_the_call_names_what_is_missing(tmp_path):
    with pytest.raises(ValueError, match="needs public bounds"):
        jaxdp.gwas(tmp_path / "study", covariates="c", names=["age"], epsilon=1.0)
    with pytest.raises(ValueError, match="neither a covariate nor the phenotype"):
        jaxdp.gwas(tmp_path / "study", bounds={"age": (1, 2)}, epsilon=1.0)


def covariate_beside(n, wide, seed):
    """Genotype and phenotype that follow one covariate alone, in bounds so many times as wide as its values."""
    rng = np.random.default_rng(seed)
    z = np.clip(rng.normal(size=n), -3, 3)
    genotypes, cases = rng.binomial(2, 0.3 + 0.2 * z / 3), rng.random(n) < 0.4 + 0.35 * z / 3
    return {"g": genotypes, "y": cases.astype(int), "z": z}, {"z": (-3 * wide, 3 * wide)}


@pytest.mark.parametrize(("n", "epsilon", "wide"), [(20_000, 0.3, 10.0), (2000, 1.0, 10.0), (5000, 1.0, 5.0)])
def test_a_covariate_that_the_noise_hides_leaves_no_finding(n, epsilon, wide):
    """Nothing of it was held fixed, and all of these nulls were rejected."""
    test, key = ScoreTest(epsilon=epsilon, binary=True), jax.random.key(4)
    drawn = [covariate_beside(n, wide, seed)[0] for seed in range(40)]
    columns = [np.stack([table[name] for table in drawn]) for name in "gyz"]

    def one(given):
        key, g, y, z = given
        return jaxdp.run(test, key, Data((g - 1.0)[:, None], 2.0 * y - 1.0, (z / (3 * wide))[:, None])).p_value

    found = jax.jit(lambda *given: jax.lax.map(one, given))(jax.random.split(key, 40), *columns)
    assert np.sum(np.asarray(found) < 0.05) <= 2


def test_the_answer_names_the_covariate_that_the_noise_hides():
    for wide, hidden in ((10.0, True), (1.0, False)):
        table, bounds = covariate_beside(20_000, wide, 0)
        how = {"x": "g", "y": "y", "given": "z", "bounds": bounds, "levels": {"g": [0, 1, 2], "y": [0, 1]}}
        answer = jaxdp.test(table, **how, method="score-test", epsilon=0.3, key=jax.random.key(1))
        notes = answer.content["effect_notes"]
        assert (answer.p_value == 1.0) is hidden
        assert ("covariates hidden by noise" in notes) is hidden
        if hidden:
            assert "by the noisy sums z hardly varies within its bounds" in notes["covariates hidden by noise"]
            assert answer.interval is None


GENOTYPE = Column(ORDINAL, 3)


def rare_ancestry(key, n):
    """Two of three levels are rare, and their allele frequency and share of cases differ from those of the first."""
    first, second, third = jax.random.split(key, 3)
    z = jax.random.categorical(first, jnp.log(jnp.array([0.94, 0.03, 0.03])), shape=(n,))
    rate = jnp.where(z > 0, 0.5, 0.1)
    x = jnp.sum(jax.random.uniform(second, (2, n)) < rate[None], axis=0) - 1.0
    y = jax.random.uniform(third, (n,)) < rate
    domain = Domain((GENOTYPE,), (Column(BINARY, 2),), (Column(CATEGORICAL, 3, "site"),))
    return Data(x[:, None], y.astype(float), z.astype(float)[:, None], domain)


def nearly_equal(key, n):
    """Two covariates of two levels that differ for few records; their difference moves both means."""
    of_z, of_x, of_y, of_off = jax.random.split(key, 4)
    first = jax.random.uniform(of_z, (n,)) < 0.5
    second = first ^ (jax.random.uniform(of_off, (n,)) < 0.025)
    off = first.astype(float) - second.astype(float)
    x = jnp.sum(jax.random.uniform(of_x, (2, n)) < 0.5 + 0.4 * off[None], axis=0) - 1.0
    y = jnp.clip(0.2 * jax.random.normal(of_y, (n,)) + 0.5 * off, -1.0, 1.0)
    domain = Domain((GENOTYPE,), (Column(),), (Column(BINARY, 2, "a"), Column(BINARY, 2, "b")))
    return Data(x[:, None], y, jnp.stack([first, second], axis=1).astype(float), domain)


@pytest.mark.parametrize(("draw", "n"), [(rare_ancestry, 2000), (nearly_equal, 3000)])
def test_rare_levels_and_nearly_equal_covariates_leave_no_finding(draw, n):
    """What they shift stayed in the scores: .593 and .507 of these nulls were rejected."""
    found = p_values(ScoreTest(epsilon=1.0), draw, n, 60)
    assert np.sum(found <= LEVEL) <= binom.ppf(1 - 1e-3, 60, LEVEL)


@pytest.mark.parametrize(
    ("draw", "n", "note", "said"),
    [
        (rare_ancestry, 2000, "rare levels", "Level 2 of site, 3 of site"),
        (nearly_equal, 3000, "covariates hidden by noise", "a combination of a, b"),
    ],
)
def test_the_answer_says_what_is_not_held_fixed(draw, n, note, said):
    test = ScoreTest(epsilon=1.0)
    data = draw(jax.random.key(1), n)
    for seed in range(5):  # the noise decides
        result = jaxdp.run(test, jax.random.key(seed), data)
        notes = test.effect_notes(core.public_shapes(data), result.release)
        if said in notes.get(note, ""):
            break
    else:
        raise AssertionError(notes)


def test_levels_of_functions_are_those_of_records():
    """Of both kinds of functions, whatever the place of a column."""
    rng = np.random.default_rng(0)
    columns = (Column(BINARY, 2), Column(CATEGORICAL, 3), Column(), Column(ORDINAL, 5))
    z = np.stack(
        [rng.integers(0, 2, 50), rng.integers(0, 3, 50), rng.uniform(-1, 1, 50), rng.integers(0, 5, 50)], axis=1
    )
    for basis, held in ((covariates.Straight(columns), [0, 0, 1, 1, 1]), (covariates.Hats(columns, 5), None)):
        places, functions = basis.levels
        assert places.tolist() == (held or [0, 0, 1, 1, 1, 3, 3, 3, 3, 3])
        codes = np.arange(len(places)) - np.array([np.argmax(places == place) for place in places])
        found = np.asarray(basis.design(jnp.asarray(z), 50, 1.0)) @ functions.T
        np.testing.assert_allclose(found, z[:, places] == codes[None], atol=1e-3)
