"""Many tables: transcripts of the sparse vector form by enumeration, selection laws, family-wise error, streaming."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, chi2, expon, laplace
from test_lattice import key_of

import jaxdp
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.independence.tables.gwas import (
    BestTables,
    EveryTable,
    FirstTables,
    Tables,
    ThresholdNoise,
    decide,
    first_threshold,
)
from jaxdp.independence.tables.unit_circle import UnitCircle
from jaxdp.mechanisms.selection import ExponentialMechanism, TopK, peeled
from jaxdp.mechanisms.sparse_vector import exponential_gap_tail
from jaxdp.noise.lattice import SELECTION_LIMIT
from jaxdp.noise.source import FloatNoise, LatticeNoise
from jaxdp.published.unit_circle import PaperFirstTables, PaperThresholdNoise

SMALL = {"num_cases": 20, "num_controls": 20}


def null_tables(key, num_tables, rate=0.3, size=20):
    key_cases, key_controls = jax.random.split(key)

    def draw(k):
        return jnp.sum(jax.random.bernoulli(k, rate, (num_tables, size)), axis=1)

    return Tables(draw(key_cases), draw(key_controls))


def transcript_law(queries, noise, bound):
    """Probability of every answer vector of `ThresholdNoise` at threshold 0, by quadrature over the threshold noise."""
    first, second = noise.scales(bound)
    grid = (np.arange(200_000) + 0.5) / 200_000
    rho = expon.ppf(grid) * first - first if first > 0 else np.zeros(1)
    if isinstance(noise, PaperThresholdNoise):
        fires = [laplace.sf(rho - q, scale=second) for q in queries]
    else:
        fires = [expon.sf((rho - q) / second + 1.0) for q in queries]
    law = {}
    for answers in itertools.product((0, 1), repeat=len(queries)):
        if sum(answers) >= noise.count:  # the run stops at the last allowed above-threshold answer
            stop = np.cumsum(answers).tolist().index(noise.count) + 1
            if any(answers[stop:]):
                continue
            answers = answers[:stop]
        probability = np.ones_like(rho)
        for answer, fire in zip(answers, fires, strict=False):
            probability = probability * (fire if answer else 1.0 - fire)
        law[answers] = probability.mean()
    return law


def worst_loss(noise, bound, shifts):
    """Largest transcript loss over far and near queries and all sign patterns of a move by `bound`."""
    worst = 0.0
    for queries in shifts:
        here = transcript_law(queries, noise, bound)
        for signs in itertools.product((-1.0, 1.0), repeat=len(queries)):
            there = transcript_law(np.asarray(queries) + bound * np.asarray(signs), noise, bound)
            worst = max(worst, max(abs(np.log(here[a] / there[a])) for a in here if here[a] > 1e-12))
    return worst


def test_corrected_algorithm_stays_within_epsilon_and_reaches_most_of_it():
    bound, epsilon = 0.3, 1.0
    noise = ThresholdNoise(epsilon=epsilon, count=1, outputs=3)
    first, second = noise.scales(bound)
    near, far = [0.0, 0.0, 0.0], [8.0 * first + second, 8.0 * first + second, -3.0 * second]
    loss = worst_loss(noise, bound, [near, far, [0.5, -0.5, 0.2]])
    assert 0.97 * epsilon < loss <= epsilon * (1 + 1e-3)
    # The falsifier: noise for nine tenths of the move is caught.
    short = worst_loss(ThresholdNoise(epsilon=epsilon / 0.9, count=1, outputs=3), bound, [far])
    assert short > 1.05 * epsilon


def test_two_above_threshold_answers_stay_within_epsilon():
    noise = ThresholdNoise(epsilon=1.0, count=2, outputs=3)
    assert 0.3 < worst_loss(noise, 0.2, [[0.0, 0.1, -0.1], [5.0, -3.0, -3.0]]) <= 1.0 + 1e-3


@pytest.mark.full
def test_printed_algorithm_exceeds_its_epsilon_and_reports_the_true_one():
    """16 outputs at the boundary lose 16 epsilon/(4 s1) = 4, four times the claim."""
    noise = PaperThresholdNoise(epsilon=1.0, count=1, outputs=16)

    def accept(q):
        return laplace.cdf(-q, scale=noise.scales(1.0)[1])

    loss = 16 * np.log(accept(0.0) / accept(1.0))
    assert loss == pytest.approx(4.0)
    assert float(noise.cost(Relation.REPLACE_ATTRIBUTE).epsilon) == pytest.approx(loss)
    assert worst_loss(PaperThresholdNoise(epsilon=1.0, count=1, outputs=4), 1.0, [[0.0] * 4]) > 0.99
    tables = null_tables(jax.random.key(0), 16)
    result = jaxdp.run(PaperFirstTables(epsilon=1.0, count=1, kind=UnitCircle, **SMALL), jax.random.key(1), tables)
    assert float(result.cost.epsilon) == pytest.approx(4.0)


def test_gap_tail_equals_quadrature():
    first, second = 0.7, 1.9
    grid = expon.ppf((np.arange(400_000) + 0.5) / 400_000) * first
    for x in (-2.0, 0.0, 3.0):
        expected = expon.sf(np.maximum(x + grid, 0.0) / second).mean()
        assert float(exponential_gap_tail(x, first, second)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("mode", ["simulation", pytest.param("release", marks=pytest.mark.full)])
def test_perturb_has_the_enumerated_law(mode):
    noise = ThresholdNoise(epsilon=2.0, count=1, outputs=3)
    queries = np.array([0.2, -0.3, 0.1])
    sensitivity = Sensitivity(0.5, Norm.LINF, Relation.REPLACE_ATTRIBUTE)
    source = LatticeNoise if mode == "release" else FloatNoise
    perturb = jax.jit(jax.vmap(lambda k: noise.perturb(source(k), jnp.asarray(queries, float), sensitivity)))
    with jax.enable_x64(True):
        keys = jax.random.split(key_of(2) if mode == "release" else jax.random.key(2), 15_000)
        answers = np.asarray(perturb(keys))
    for transcript, probability in transcript_law(queries, noise, 0.5).items():
        padded = np.array([*transcript, *[-1] * (3 - len(transcript))])
        seen = np.sum(np.all(answers == padded, axis=1))
        assert binom.ppf(1e-7, len(keys), probability) <= seen <= binom.isf(1e-7, len(keys), probability)


def test_family_wise_error_of_the_sequential_form():
    """400 families of 60 null tables at level 0.2: at least one report in at most 20 % of them."""
    test = FirstTables(epsilon=2.0, count=2, max_outputs=50, level=0.2, kind=UnitCircle, **SMALL)
    example = null_tables(jax.random.key(3), 60)
    resolved = test.specialize(example)
    mechanism, sensitivity = resolved.mechanism_in_force(), resolved.sensitivity(60)

    def any_report(key):
        key_tables, key_noise = jax.random.split(key)
        scores = resolved.statistic(None, null_tables(key_tables, 60))
        return jnp.any(mechanism.perturb(FloatNoise(key_noise), scores, sensitivity) == 1)

    families = np.asarray(jax.jit(jax.vmap(any_report))(jax.random.split(jax.random.key(4), 400)))
    assert families.sum() <= binom.ppf(1 - 1e-6, 400, 0.2)
    single = resolved.single()
    threshold = float(first_threshold(single, resolved.noise(), 0.2 / 50))
    assert float(mechanism.threshold) == pytest.approx(threshold, rel=1e-4)


@pytest.mark.full
def test_family_wise_error_and_power_of_the_selection_form():
    test = BestTables(epsilon=4.0, count=3, level=0.2, kind=UnitCircle, **SMALL)

    @jax.jit
    def smallest(key, boost):
        key_tables, key_run = jax.random.split(key)
        tables = null_tables(key_tables, 40)
        tables = Tables(jnp.minimum(tables.exposed_cases.at[:2].add(boost), 20), tables.exposed_controls)
        result = jaxdp.run(test, key_run, tables)
        return jnp.min(result.p_value), result.release.earlier[0].value

    null = np.array([smallest(key, 0)[0] for key in jax.random.split(jax.random.key(5), 150)])
    assert np.sum(null <= 0.2) <= binom.ppf(1 - 1e-6, 150, 0.2)
    chosen = np.array([np.asarray(smallest(key, 13)[1]) for key in jax.random.split(jax.random.key(6), 30)])
    assert np.mean([0 in row or 1 in row for row in chosen]) > 0.5  # three of 40 at random: 0.15


@pytest.mark.full
def test_one_shot_gumbel_equals_peeling():
    """Ordered pairs of four scores: frequencies against the product of exponential mechanisms."""
    scores, epsilon = np.array([0.0, 1.0, 2.0, -1.0]), 3.0
    mechanism = TopK(epsilon=epsilon, count=2)
    sensitivity = Sensitivity(1.0, Norm.LINF, Relation.REPLACE_ATTRIBUTE)
    keys = jax.random.split(jax.random.key(7), 30_000)
    one_shot = np.asarray(jax.vmap(lambda k: mechanism.perturb(FloatNoise(k), jnp.asarray(scores), sensitivity))(keys))

    def one_by_one(k):
        return peeled(FloatNoise(k), ExponentialMechanism(epsilon=epsilon / 2), jnp.asarray(scores), sensitivity, 2)

    in_turn = np.asarray(jax.vmap(one_by_one)(jax.random.split(jax.random.key(8), 30_000)))
    weight = np.exp(epsilon / 2 * scores / 2)
    for a, b in itertools.permutations(range(4), 2):
        probability = weight[a] / weight.sum() * weight[b] / (weight.sum() - weight[a])
        for drawn in (one_shot, in_turn):
            seen = np.sum((drawn[:, 0] == a) & (drawn[:, 1] == b))
            assert binom.ppf(1e-7, 30_000, probability) <= seen <= binom.isf(1e-7, 30_000, probability)


def test_exact_selection_loss_is_within_epsilon():
    """Ordered top-two probabilities of the exponential mechanism for scores that each move by 1."""
    scores, epsilon = np.array([0.0, 3.0, 1.0]), 1.0

    def law(values):
        weight = np.exp(epsilon / 2 * values / 2)
        pairs = itertools.permutations(range(3), 2)
        return {(a, b): weight[a] / weight.sum() * weight[b] / (weight.sum() - weight[a]) for a, b in pairs}

    here = law(scores)
    moved = [law(scores + np.array(signs)) for signs in itertools.product((-1, 1), repeat=3)]
    assert max(abs(np.log(here[p] / there[p])) for there in moved for p in here) <= epsilon


def permute_and_flip(scores, epsilon):
    """Exact law of one selection: a random order, each accepted with probability exp(epsilon (score - best)/2)."""
    accepted = np.exp(epsilon / 2 * (scores - scores.max()))
    found, orders = np.zeros(scores.size), list(itertools.permutations(range(scores.size)))
    for order in orders:
        left = 1.0 / len(orders)
        for k in order:
            found[k] += left * accepted[k]
            left *= 1.0 - accepted[k]
    return found


def law_of_pairs(scores, epsilon):
    """Of the ordered pairs that two selections at epsilon/2 each give."""
    first, law = permute_and_flip(scores, epsilon / 2), {}
    for a in range(scores.size):
        rest = [k for k in range(scores.size) if k != a]
        second = permute_and_flip(scores[rest], epsilon / 2)
        law |= {(a, b): first[a] * second[i] for i, b in enumerate(rest)}
    return law


def test_selection_by_permute_and_flip_loses_epsilon_and_no_more():
    epsilon, losses = 1.0, []
    for scores in (np.array([0.0, 3.0, 1.0]), np.array([60.0, 30.0, 0.0])):
        here = law_of_pairs(scores, epsilon)
        moved = [law_of_pairs(scores + np.array(signs), epsilon) for signs in itertools.product((-1, 1), repeat=3)]
        losses.append(max(abs(np.log(here[p] / there[p])) for there in moved for p in here))
    assert max(losses) <= epsilon * (1.0 + 1e-9)
    assert max(losses) > 0.95 * epsilon


def test_many_scores_are_selected_by_permute_and_flip(monkeypatch):
    """Simulated ordered pairs of four scores, where three are many, against the exact law."""
    monkeypatch.setattr("jaxdp.mechanisms.selection.SELECTION_LIMIT", 3)
    scores, epsilon = np.array([0.0, 1.0, 2.0, -1.0]), 3.0
    sensitivity = Sensitivity(1.0, Norm.LINF, Relation.REPLACE_ATTRIBUTE)

    def draw(k):
        return TopK(epsilon=epsilon, count=2).perturb(FloatNoise(k), jnp.asarray(scores), sensitivity)

    drawn = np.asarray(jax.vmap(draw)(jax.random.split(jax.random.key(7), 30_000)))
    for (a, b), probability in law_of_pairs(scores, epsilon).items():
        seen = np.sum((drawn[:, 0] == a) & (drawn[:, 1] == b))
        assert binom.ppf(1e-7, 30_000, probability) <= seen <= binom.isf(1e-7, 30_000, probability)


def test_a_release_chooses_among_more_tables_than_proposals_can(tmp_path):
    count = SELECTION_LIMIT + 1
    cases, controls = np.full((2, count), 10)
    cases[-1], controls[-1] = 48, 2
    tables = Tables(jnp.asarray(cases), jnp.asarray(controls))
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=900.0, relation="replace_attribute")
    test = BestTables(epsilon=400.0, count=1, num_cases=50, num_controls=50)
    result = jaxdp.run(test, jaxdp.fresh_key(), tables, ledger=ledger)
    assert np.asarray(result.release.earlier[0].value).tolist() == [count - 1]
    assert float(result.p_value[0]) < 1e-6
    with pytest.raises(ValueError, match="at most 4096 scores"):  # before the charge
        jaxdp.run(dataclasses.replace(test, law="gumbel"), jaxdp.fresh_key(), tables, ledger=ledger)
    assert ledger.spent.epsilon == pytest.approx(400.0)


def test_streamed_counts_equal_a_direct_count():
    rng = np.random.default_rng(0)
    genotypes = rng.choice([0.0, 1.0, 2.0, np.nan, -9.0], size=(50, 37), p=[0.4, 0.3, 0.2, 0.05, 0.05])
    case = rng.integers(0, 2, 50)
    for least in (1, 2):
        tables = Tables.from_genotypes((genotypes[:, i : i + 10] for i in range(0, 37, 10)), case, at_least=least)
        carrier = genotypes >= least
        assert np.array_equal(tables.exposed_cases, carrier[case == 1].sum(0))
        assert np.array_equal(tables.exposed_controls, carrier[case == 0].sum(0))
    with pytest.raises(ValueError, match="at least one block"):
        Tables.from_genotypes([], case)
    with pytest.raises(ValueError, match=r"must have shape \(50, k\)"):
        Tables.from_genotypes([genotypes[:20]], case)


@pytest.mark.parametrize("kind", [UnitCircle, jaxdp.MarginAdaptive])
def test_one_person_moves_every_table_by_one_at_most(kind):
    """Worst case over a whole genotype: K tables move together, L1 distance K move."""
    before = Tables(jnp.array([19, 19, 19, 0]), jnp.array([2, 3, 4, 18]))
    after = Tables(jnp.array([20, 20, 20, 1]), before.exposed_controls)
    test = EveryTable(epsilon=0.5, kind=kind, **SMALL).specialize(before)
    change = float(jnp.sum(jnp.abs(test.statistic(None, before) - test.statistic(None, after))))
    bound = float(test.sensitivity(4).bound)
    assert 0.5 * bound < change <= bound * (1 + 1e-6)
    assert float(test.mechanism_in_force().epsilon) == pytest.approx(2.0)
    single = test.single()
    scale = float(test.mechanism_in_force().scale(test.sensitivity(4)))
    assert scale == pytest.approx(float(single.mechanism_in_force().scale(single.sensitivity(40))), rel=1e-6)


@pytest.mark.full
def test_shared_null_curve_equals_the_exact_tail():
    test = EveryTable(epsilon=1.0, kind=UnitCircle, **SMALL).specialize(Tables(jnp.zeros(1), jnp.zeros(1)))
    single = test.single()
    values = jnp.linspace(1.2, 6.0, 40)
    from jaxdp.independence.tables.gwas import null_curve

    exact = np.asarray(single.null_tail(values, single.sensitivity(40)))
    np.testing.assert_allclose(np.asarray(null_curve(single, values)), exact, rtol=5e-3)


@pytest.mark.full
def test_releases_and_mistakes():
    tables = Tables(np.array([15, 8, 9]), np.array([3, 8, 10]))
    result = jaxdp.run(BestTables(epsilon=8.0, count=1, kind=UnitCircle, **SMALL), jaxdp.fresh_key(), tables)
    assert result.mode == "release"
    assert float(result.cost.epsilon) == pytest.approx(8.0)
    first = FirstTables(epsilon=30.0, count=1, kind=UnitCircle, **SMALL)
    result = jaxdp.run(first, jaxdp.fresh_key(), Tables(np.array([8, 20, 20]), np.array([8, 0, 0])))
    assert (result.mode, float(result.cost.epsilon)) == ("release", 30.0)
    assert result.release.value.tolist() == [0, 1, -1]
    assert result.p_value.tolist() == [1.0, 0.05, 1.0]
    (facts,) = result.release.certificates
    assert 29.9 < facts.epsilon <= 30
    assert float(facts.moves * facts.step) >= float(first.specialize(tables).single().move())
    printed = jaxdp.run(PaperFirstTables(epsilon=30.0, count=1, kind=UnitCircle, **SMALL), jaxdp.fresh_key(), tables)
    assert (printed.mode, float(printed.cost.epsilon)) == ("release", 30.0 * 3 / 4)
    with pytest.raises(ValueError, match="count must be at most the number of tables"):
        jaxdp.run(BestTables(epsilon=1.0, count=9, **SMALL), jax.random.key(0), tables)
    with pytest.raises(ValueError, match="num_controls must be given"):
        FirstTables(epsilon=1.0, num_cases=20)
    assert chi2.isf(0.05, 1) == pytest.approx(UnitCircle(epsilon=1.0, **SMALL).threshold)


def test_command_line_and_picture(tmp_path):
    """A case/control file through the real command, and the picture of released p-values."""
    import json

    from jaxdp.cli.main import main
    from jaxdp.report.manhattan import draw as manhattan

    rng = np.random.default_rng(1)
    disease = rng.integers(0, 2, 300)
    carrier = (rng.random(300) < np.where(disease, 0.8, 0.3)).astype(int)
    (tmp_path / "d.csv").write_text(
        "disease,carrier\n" + "\n".join(f"{a},{b}" for a, b in zip(disease, carrier, strict=True))
    )
    rules = "".join(f'[columns.{name}]\nkind = "binary"\nlevels = ["0", "1"]\n' for name in ("disease", "carrier"))
    (tmp_path / "s.toml").write_text(rules)
    options = ["--x", "carrier", "--y", "disease", "--epsilon", "1", "--method", "unit-circle", "--seed", "0"]
    assert (
        main(["test", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), *options, "--out", str(tmp_path)])
        == 0
    )
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["method"] == "unit-circle"
    assert content["relation"] == "replace_attribute"
    assert content["p_value"] < 1e-3
    picture = manhattan(np.array([3, 70]), np.array([1e-9, 0.4]), 100, tmp_path / "m.png")
    assert picture.stat().st_size > 5000


def test_decisions_have_the_law_of_a_noisy_score():
    single, scale, times = UnitCircle(epsilon=1.0, **SMALL), 0.2, 20_000
    for cases, controls in ((10, 10), (18, 3), (0, 0)):
        tables = Tables(jnp.full(times, cases), jnp.full(times, controls))
        score = float(single.score(jnp.array(float(cases)), jnp.array(float(controls))))
        seen = int(jnp.sum(decide(single, jax.random.key(cases), tables, 1.1, scale)))
        p = laplace.sf(1.1 - score, scale=scale)
        assert binom.ppf(1e-7, times, p) <= seen <= binom.isf(1e-7, times, p)
    with pytest.raises(ValueError, match="for simulations"):
        decide(single, key_of(1), tables, 1.1, scale)
