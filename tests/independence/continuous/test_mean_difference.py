"""The difference of two means: what it estimates, one pivot for p-value and interval, flags, and the bounds."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from experiments.evidence.coverage import groups as evidence
from jaxdp import catalogue, core
from jaxdp.data.dataset import Data
from jaxdp.independence.continuous import moment_examples
from jaxdp.independence.continuous.mean_difference import GroupSizes, MeanDifference
from jaxdp.independence.continuous.moment_examples import linear, two_groups
from jaxdp.mechanisms import Exact, Gaussian
from jaxdp.spec import Options
from jaxdp.statistics import group_scores
from jaxdp.statistics.group_scores import Groups

PUBLIC = {"bounds": {"wage": (0.0, 100.0)}, "levels": {"sex": ["Female", "Male"]}}


def table(seed: int, n: int = 3000, moved: float = 1.0, share: float = 0.5):
    """Lognormal wages, those of men times `moved`."""
    rng = np.random.default_rng(seed)
    male = rng.random(n) < share
    return {"sex": np.where(male, "Male", "Female"), "wage": 10.0 * rng.lognormal(size=n) * np.where(male, moved, 1.0)}


def asked(columns, seed: int = 0, epsilon: float = 1.0, **settings):
    key = jax.random.key(seed)
    public = {**PUBLIC, **settings}
    return jaxdp.test(columns, x="sex", y="wage", epsilon=epsilon, method="mean-difference", key=key, **public)


def clipped_mean(moved: float) -> float:
    place = (np.arange(200_000) + 0.5) / 200_000
    return float(np.minimum(10.0 * moved * np.exp(stats.norm.ppf(place)), 100.0).mean())


def test_intervals_cover_the_difference_of_the_means_of_skewed_groups():
    truth = clipped_mean(1.4) - clipped_mean(1.0)
    found = [asked(table(seed, moved=1.4), seed, epsilon=4.0) for seed in range(12)]
    covered = sum(one.interval[0] <= truth <= one.interval[1] for one in found)
    assert covered >= 9  # of 12 at 0.95 fewer are one in three hundred; winsorised at a private scale it was 0
    assert all((one.p_value < 0.05) == (one.interval[0] > 0.0 or one.interval[1] < 0.0) for one in found)


def test_the_sentence_names_levels_units_and_bounds():
    found = asked(table(1, moved=2.0))
    told = " ".join(found.sentences())
    assert "Male - Female" in told
    assert "wage clipped to [0, 100]" in told
    assert found.effect > 0.0
    turned = asked(table(1, moved=2.0), levels={"sex": ["Male", "Female"]})
    assert "Female - Male" in " ".join(turned.sentences())
    assert turned.effect < 0.0


def test_a_response_of_two_levels_is_a_difference_of_shares():
    rng = np.random.default_rng(0)
    arm = rng.random(4000) < 0.5
    columns = {"arm": np.where(arm, "new", "old"), "cured": np.where(rng.random(4000) < 0.3 + 0.2 * arm, "yes", "no")}
    levels = {"arm": ["old", "new"], "cured": ["no", "yes"]}
    public = {"epsilon": 4.0, "method": "mean-difference", "levels": levels, "key": jax.random.key(2)}
    found = jaxdp.test(columns, x="arm", y="cured", **public)
    assert found.interval[0] < 0.2 < found.interval[1]
    assert "shares: where arm is new, less where it is old" in " ".join(found.sentences())


def test_detectable_effect_interval_and_effect_are_on_one_scale():
    found = asked(table(3), seed=3)
    half = 0.5 * (found.interval[1] - found.interval[0])
    missed = found.missed()
    assert missed["detectable_effect"] == pytest.approx(half * (1.96 + 0.84) / 1.96, rel=0.15)
    assert f"{missed['detectable_effect']:.3g}" in missed["power"]


def test_too_small_a_group_has_no_interval_and_the_answer_says_why():
    found = asked(table(4, n=1000, moved=5.0, share=0.02), epsilon=0.5)
    assert found.p_value == 1.0
    assert found.effect is None
    assert found.interval is None
    assert list(found.to_dict()["effect_notes"]) == ["small group"]
    assert "too few records for this epsilon" in " ".join(found.sentences())
    assert found.missed()["detectable_effect"] == math.inf


def test_bounds_too_wide_for_the_budget_are_named_and_reasonable_ones_are_not():
    wide = asked(table(5), epsilon=1.0, bounds={"wage": (0.0, 10_000.0)})
    assert list(wide.to_dict()["effect_notes"]) == ["wide bounds"]
    assert "closer bounds" in " ".join(wide.sentences())
    assert "winsorised-mean-difference" in " ".join(wide.sentences())
    assert asked(table(5), epsilon=1.0).to_dict()["level_rule"] is None


def test_z_is_refused_before_anything_is_spent(tmp_path):
    columns = {**table(6, n=200), "age": np.random.default_rng(0).uniform(20, 60, 200)}
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=1.0)
    bounds = {**PUBLIC["bounds"], "age": (20, 60)}
    public = {"levels": PUBLIC["levels"], "bounds": bounds, "epsilon": 0.5, "ledger": ledger}
    with pytest.raises(ValueError, match="given age"):
        jaxdp.test(columns, x="sex", y="wage", given="age", method="mean-difference", **public)
    assert ledger.spent.epsilon == 0.0
    with pytest.raises(ValueError, match="two levels"):
        jaxdp.run(MeanDifference(epsilon=1.0), jax.random.key(0), linear(jax.random.key(0), 50, 0))


# --- the statistic


@pytest.mark.parametrize("share", [0.1, 0.5, 0.93])
def test_the_scores_add_up_to_the_difference(share):
    """The identity of the theory page, for any released mean, and with a wrong share by its stated error."""
    rng = np.random.default_rng(0)
    group, response = rng.random(400) < share, rng.uniform(-1, 1, 400)
    with jax.enable_x64(True):
        of = jax.tree.map(float, group_scores.five_sums(jnp.asarray(group), jnp.asarray(response)))
    true, difference = group.mean(), response[group].mean() - response[~group].mean()
    for centre in (-0.8, 0.0, 0.3):
        for error in (0.0, 0.01):
            groups = Groups(share=true - error, centre=centre, count_noise=0.0, sum_noise=0.0)
            with jax.enable_x64(True):
                found = float(groups.scores(of)["scores"] * groups.range) / 400
            p = true - error
            off = (response.mean() - centre + difference * (1 - 2 * p) - difference * error) * error / (p * (1 - p))
            assert found == pytest.approx(difference + off, abs=1e-9)


def test_without_noise_it_is_welchs_test():
    data = two_groups(jax.random.key(1), 4000, 0.3)
    data = dataclasses.replace(data, x=jnp.where(data.y > 0, 0.3 * data.x, data.x))
    with jax.enable_x64(True):
        found = jaxdp.run(MeanDifference(mechanism=Exact()), jax.random.key(0), data)
    x, y = (np.asarray(part, float) for part in (data.x, data.y))
    plain = stats.ttest_ind(x[y > 0], x[y < 0], equal_var=False)
    low, high = plain.confidence_interval(0.95)
    assert float(found.effect) == pytest.approx(x[y > 0].mean() - x[y < 0].mean(), abs=1e-4)
    assert float(found.interval[1] - found.interval[0]) == pytest.approx(high - low, rel=0.02)
    assert float(found.p_value) == pytest.approx(float(plain.pvalue), rel=0.2)


def test_chunks_give_the_same_answer_as_a_table():
    data = two_groups(jax.random.key(3), 900, 0.4)
    rows = jax.tree.map(lambda part: np.asarray(part, float), data)
    pieces = [dataclasses.replace(rows, x=rows.x[i : i + 250], y=rows.y[i : i + 250]) for i in range(0, 900, 250)]
    groups = Groups(share=0.4, centre=-0.1, count_noise=1.0, sum_noise=4.0)
    test = dataclasses.replace(MeanDifference(epsilon=1.0), stage="scores", groups=groups)
    with jax.enable_x64(True):
        for query in (test, GroupSizes(mechanism=jaxdp.Laplace(1.0), of=test)):
            whole = query.statistic(None, jax.tree.map(jnp.asarray, rows))
            sums = [query.partial(piece, 900) for piece in pieces]
            added = query.finish(functools.reduce(query.merge, sums))
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), whole, added)


# --- the bounds


def moved(query, one, other):
    """By how much a query's values move between two data sets: a flat array."""
    with jax.enable_x64(True):
        values = [query.statistic(None, jax.tree.map(jnp.asarray, data)) for data in (one, other)]
    return np.concatenate([np.ravel(np.abs(a - b)) for a, b in zip(*map(jax.tree.leaves, values), strict=True)])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sizes_move_by_their_bound_and_no_further(norm):
    mechanism = jaxdp.Laplace(1.0) if norm == "l1" else Gaussian(1.0)
    query = GroupSizes(mechanism=mechanism, of=MeanDifference(epsilon=1.0))
    bound, order = query.sensitivity(4).bound, 1 if norm == "l1" else 2
    reached = max(np.linalg.norm(moved(query, *pair), order) for pair in moment_examples.worst_pairs_of_sizes())
    assert 0.999 * bound <= reached <= bound * (1 + 1e-9)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("centre", [-0.9, 0.0, 0.6])
def test_scores_move_by_one_and_no_further(share, centre):
    """All corners of a record, and random ones: red if a bound were cut by a tenth."""
    groups = Groups(share=share, centre=centre, count_noise=0.0, sum_noise=0.0)
    rng = np.random.default_rng(0)
    group = np.concatenate([np.repeat([False, True], 3), rng.random(60) < 0.5])
    response = np.concatenate([np.tile([-1.0, centre, 1.0], 2), rng.uniform(-1, 1, 60)])
    one = [
        groups.scores(group_scores.five_sums(np.array([g]), np.array([r])))
        for g, r in zip(group, response, strict=True)
    ]
    for name in ("scores", "squares"):
        values = np.array([float(value[name]) for value in one])
        assert 0.999 <= np.ptp(values) <= 1.0 + 1e-6


# --- level and coverage


def share_within(count: int, of: int, rate: float) -> bool:
    """Whether so many of so many fit a rate of at most this, one chance in ten thousand."""
    return count <= stats.binom.ppf(1.0 - 1e-4, of, rate)


def missed(design: str, n: int, epsilon: float, replicates: int):
    """(intervals that miss the truth, rejections of no difference, data sets), by the builder."""
    row = evidence.measure(design, evidence.DESIGNS[design], n, epsilon, replicates)
    assert row["p_and_interval_agree"] == 1.0
    answered = round(row["answered"] * replicates)
    covered = 0 if row["covered"] is None else round(row["covered"] * answered)
    return answered - covered, round(row["rejected"] * replicates), replicates


@pytest.mark.optimised
def test_level_and_coverage_of_skewed_groups():
    with jax.enable_x64(True):
        wrong, rejected, count = missed("lognormal, null", 500, 1.0, 400)
    assert share_within(wrong, count, 0.05)
    assert share_within(rejected, count, 0.05)


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("epsilon", evidence.EPSILONS)
@pytest.mark.parametrize(
    "design",
    [
        "normal, sds 1:4",
        "normal, 5/95, small group's sd x 4, null",
        "normal, 5/95, large group's sd x 4, null",
        "lognormal, scaled by 1.5",
        "lognormal, 5/95",
        "lognormal, bounds at 1 sd",
        "zeros in 9 of 10, 10/90, scaled by 2",
        "zeros in 9 of 10, 5/95, null",
        "t3, null",
    ],
)
def test_level_and_coverage(design, epsilon):
    with jax.enable_x64(True):
        for n in (500, 3000):
            wrong, rejected, count = missed(design, n, epsilon, 600)
            assert share_within(wrong, count, 0.055), (design, n)
            assert not design.endswith("null") or share_within(rejected, count, 0.055), (design, n)


@pytest.mark.optimised
def test_the_evidence_asks_as_people_ask():
    """A row of the record comes from the test that `jaxdp.test` builds: same release, same numbers."""
    data = evidence.draw(jax.random.key(1), 500, jnp.asarray(evidence.DESIGNS["normal"].numbers))
    columns = {"wage": np.asarray(data.x, float), "sex": np.where(np.asarray(data.y) > 0, "Male", "Female")}
    found = asked(columns, seed=7, bounds={"wage": (-1.0, 1.0)})
    scaled = Data(columns["wage"], np.asarray(columns["sex"] == "Male", float), None, evidence.DOMAIN)
    with jax.enable_x64(True):
        test = catalogue.find("mean-difference").build(1.0, evidence.DOMAIN, Options(num_records=500))
        again = core.run(test, jax.random.key(7), scaled)
    assert float(again.effect) == pytest.approx(found.effect, rel=1e-9)


def test_an_interval_from_few_records_is_within_what_is_possible():
    released = core.run(MeanDifference(epsilon=0.2), jax.random.key(0), two_groups(jax.random.key(0), 5000))
    assert -group_scores.FAR <= float(released.interval[0]) <= float(released.interval[1]) <= group_scores.FAR


@pytest.mark.parametrize("method", ["mean-difference", "winsorised-mean-difference"])
def test_of_two_columns_of_two_levels_x_is_the_group(method):
    """A trial as it is asked: shares of an event between arms, and not of the arms between outcomes."""
    rng = np.random.default_rng(3)
    arm = rng.random(6000) < 0.2
    event = rng.random(6000) < np.where(arm, 0.30, 0.10)
    columns = {"arm": np.where(arm, "new", "old"), "event": np.where(event, "yes", "no")}
    schema = {"arm": {"kind": "binary", "levels": ["old", "new"]}, "event": {"kind": "binary", "levels": ["no", "yes"]}}
    how = {"schema": {"columns": schema}, "epsilon": 8.0, "key": jax.random.key(1), "method": method}
    found = jaxdp.test(columns, x="arm", y="event", **how)
    assert found.interval[0] < 0.2 < found.interval[1]
    assert found.effect == pytest.approx(0.2, abs=0.05)
    if method == "mean-difference":
        said = " ".join(found.sentences())
        assert "of event = yes, a difference of shares: where arm is new, less where it is old" in said
