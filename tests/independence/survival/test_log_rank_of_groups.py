"""LogRank of more than two groups: range of the scores, O - E of each group, its law, answers, curves and refusals."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

import jaxdp
from jaxdp import plan
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence.survival import log_rank as private
from jaxdp.independence.survival import several_groups
from jaxdp.independence.survival.several_groups import SeveralGroups
from jaxdp.mechanisms import Laplace
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS, Curves

BINARY_BOUND = 1e-4


def domain(groups: int) -> Domain:
    return Domain((Column(CATEGORICAL, groups, "arm"),), (Column(), Column(BINARY, 2, "died")))


def drawn_table(groups: int = 3, records: int = 4000, ratio: float = 1.0, seed: int = 0):
    """Groups whose shares at risk change with the time; the last one's hazard is `ratio` times as large."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, records)
    time = rng.exponential(0.8, records) / np.where(group == groups - 1, ratio, 1.0)
    gone = rng.exponential(2.0 / (1.0 + group))
    seen = np.minimum(np.minimum(time, gone), 1.0)
    of_bin, event = log_rank.codes(2.0 * seen - 1.0, (time <= gone).astype(float))
    table = np.zeros((1, groups, *private.OF_TIME))
    np.add.at(table[0], (group, of_bin.astype(int), event.astype(int)), 1.0)
    return table


def by_hand(table):
    """At risk and events by group, O - E of all groups with its covariance (ties as in the tables of the record)."""
    at_risk = np.cumsum(table.sum(2)[:, ::-1], axis=1)[:, ::-1][:, :BINS] - 0.5 * table[:, :BINS, 0]
    events = table[:, :BINS, 1]
    share, each = at_risk / at_risk.sum(0), events.sum(0)
    ties = each * np.clip((at_risk.sum(0) - each) / np.maximum(at_risk.sum(0) - 1.0, 1e-9), 0.0, 1.0)
    covariance = np.diag(share @ ties) - np.einsum("kb,lb,b->kl", share, share, ties)
    return at_risk, events, (events - share * each).sum(1), covariance


def curves_of(table, blocks: int = 48, variance: float = 1e-9) -> Curves:
    return Curves.of(log_rank.blocked(jnp.asarray(table), blocks), table.sum(), variance, np.zeros(blocks))


def scored(groups: int, mechanism, **fields):
    """The second stage about curves that noisy counts gave."""
    with jax.enable_x64(True):
        table = drawn_table(groups, 600)
        noise = 5.0 * np.random.default_rng(1).laplace(size=(1, groups, 2 * 12 + 1))
        about = Curves.of(log_rank.blocked(jnp.asarray(table), 12) + noise, table.sum(), 50.0, np.zeros(12))
    fields = {"blocks": 12, "groups": groups, "stage": private.SCORES, "curves": about, **fields}
    return jaxdp.LogRank(mechanism=mechanism, **fields)


@pytest.mark.parametrize("groups", [3, 5])
@pytest.mark.parametrize("mechanism", [jaxdp.Laplace(1.0), jaxdp.Gaussian(0.5)])
def test_two_records_move_all_scores_by_the_bound_at_most_and_reach_it(groups, mechanism):
    with jax.enable_x64(True):
        test = scored(groups, mechanism)
        scores = np.asarray(test.curves.scores())
        every = scores.reshape(-1, groups)
        metric = "cityblock" if mechanism.norm is Norm.L1 else "euclidean"
        apart = distance.squareform(distance.pdist(every, metric))
        worst = [np.unravel_index(place, scores.shape[:4]) for place in divmod(int(apart.argmax()), len(apart))]
        moved = []
        for place in worst:
            table = np.zeros(test.shape)
            table[place] = 1.0
            moved.append(np.asarray(test.finish(table)["scores"]))
        bound = float(test.sensitivity(600)["scores"].bound)
    reached = np.linalg.norm(moved[0] - moved[1], 1 if mechanism.norm is Norm.L1 else 2)
    assert reached <= bound * (1.0 + 1e-9)
    assert reached >= (0.999 if mechanism.norm is Norm.L1 else 0.97) * bound


def test_squares_of_two_records_differ_by_the_bound_at_most_and_reach_it():
    with jax.enable_x64(True):
        test = scored(3, jaxdp.Laplace(1.0))
        squares = np.asarray(test.curves.squares())
        found = []
        for place in (squares.argmax(), squares.argmin()):
            table = np.zeros(squares.shape)
            table[np.unravel_index(place, squares.shape)] = 1.0
            found.append(float(test.finish(table)["squares"]))
    assert found[0] - found[1] == pytest.approx(float(test.sensitivity(600)["squares"].bound), rel=1e-9)


def test_scores_add_up_to_the_numerator_of_each_group_and_a_product_of_errors():
    rng, blocks = np.random.default_rng(1), 12
    table = drawn_table()
    with jax.enable_x64(True):
        hazard, share = rng.uniform(0.0, 2.0 / BINS, (1, blocks)), rng.uniform(0.15, 0.4, (1, 2, blocks))
        about = dataclasses.replace(curves_of(table, blocks), hazard=hazard, share=share, counted=np.ones((1, blocks)))
        later = np.asarray(about._shares)[0]
        found = np.asarray(jnp.einsum("skbe,skbec->c", table, about.scores()))
    shares = np.concatenate([1.0 - later.sum(0, keepdims=True), later])
    at_risk, events, numerator, _ = by_hand(table[0])
    total, each = at_risk.sum(0), events.sum(0)
    product = total * (at_risk / total - shares) * (each / total - np.repeat(hazard[0], BINS // blocks))
    assert found == pytest.approx(numerator + product.sum(1), rel=1e-9)
    assert np.all(np.abs(product.sum(1)) > 1.0), "the errors are large enough to be seen"


@pytest.mark.parametrize("ratio", [1.0, 1.3])
def test_with_next_to_no_noise_the_p_value_is_that_of_the_log_rank_test(ratio):
    table = drawn_table(4, 4000, ratio)
    *_, numerator, covariance = by_hand(table[0])
    length = numerator[1:] @ np.linalg.solve(covariance[1:, 1:], numerator[1:])
    with jax.enable_x64(True):
        about, sensitivity = curves_of(table), Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE)
        sums = jnp.einsum("skbe,skbec->c", table, about.scores())
        squares = jnp.sum(table * about.squares())
        law = SeveralGroups.of(
            sums, squares, about, variance_noise=0.0, unit=2.0, mechanism=Laplace(1e6), sensitivity=sensitivity
        )
        found, p_value = float(law.length()), float(law.p_value())
        estimate, (low, high) = law.effect()
    assert found == pytest.approx(length, rel=0.08, abs=0.3)
    assert p_value == pytest.approx(stats.chi2.sf(found, 3), abs=1e-6)
    assert np.all((low < np.log([[1.0], [1.0], [ratio]])) & (np.log([[1.0], [1.0], [ratio]]) < high))
    assert np.asarray(estimate)[-1] == pytest.approx(np.log(ratio), abs=0.15)


def test_the_law_of_the_squared_length_counts_the_scale_of_laplace_noise():
    """Where the noise is most of the variance; a normal law is far off."""
    rng, draws = np.random.default_rng(2), 400_000
    with jax.enable_x64(True):
        table = drawn_table(3, 300)
        law = SeveralGroups.of(
            jnp.zeros(3),
            40.0,
            dataclasses.replace(curves_of(table), mean=jnp.zeros(2), variance=jnp.zeros((2, 2))),
            variance_noise=0.0,
            unit=20.0,
            mechanism=Laplace(1.0),
            sensitivity=Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE),
        )
        variance, total = np.asarray(law.variance), np.asarray(law._total(law.variance))
        one = rng.multivariate_normal(np.zeros(2), variance, draws)
        one += 20.0 * rng.laplace(size=(draws, 3)) @ log_rank.from_all(3).T
        lengths = np.einsum("bk,bk->b", one, np.linalg.solve(total, one.T).T)
        for level in (0.5, 0.05, 0.01):
            limit = np.quantile(lengths, 1.0 - level)
            value = np.linalg.cholesky(total) @ np.array([np.sqrt(limit), 0.0])
            p_value = float(dataclasses.replace(law, value=jnp.asarray(value)).p_value())
            assert p_value == pytest.approx(level, abs=0.1 * level)
    assert abs(stats.chi2.sf(np.quantile(lengths, 0.99), 2) - 0.01) > 0.002


def trial(records: int, ratios=(1.0, 0.6, 1.0), rate: float = 1.0, seed: int = 4):
    """Days to death in arms a, b, c, ..., with censoring that differs."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, len(ratios), records)
    death, gone = rng.exponential(1.0 / (rate * np.array(ratios)[arm])), rng.exponential(4.0 / (1.0 + arm))
    return {
        "arm": np.array(list("abcdefghi"))[arm],
        "days": np.round(365.0 * np.minimum(death, gone)),
        "died": np.array(["no", "yes"])[(death <= gone).astype(int)],
        "sex": np.array(["f", "m"])[rng.integers(0, 2, records)],
    }


def asked(table, epsilon: float, groups: int = 3, **more):
    public = {
        "bounds": {"days": (0.0, 730.0)},
        "levels": {"arm": list("abcdefghi")[:groups], "died": ["no", "yes"], "sex": ["f", "m"]},
        "key": jax.random.key(2),
    }
    return jaxdp.test(table, x="arm", y=["days", "died"], epsilon=epsilon, method="log-rank", **{**public, **more})


def test_an_answer_has_the_ratio_of_each_group_against_the_first_and_every_curve(tmp_path):
    answer = asked(trial(3000), 4.0)
    content, told = answer.to_dict(), " ".join(" ".join(answer.sentences()).split())
    assert answer.p_value < 0.001
    assert content["effect_rows"] == ["arm = b against a", "arm = c against a"]
    assert content["effect_columns"] == ["days and died"]
    (low,), (high,) = (end[0] for end in content["interval"])
    assert low < np.log(0.6) < high < 0.0
    assert "log hazard ratio, with 95 % intervals: " in told
    assert content["intervals_hold_together"] is False  # each is by itself
    assert f"arm = b against a, days and died: {content['effect'][0][0]:.3g}, {low:.3g} to {high:.3g}" in told
    assert private.SENTENCES[private.SEPARATE] in told
    assert [group["name"] for group in content["curves"]["groups"]] == ["arm = a", "arm = b", "arm = c"]
    means = content["curves"]["restricted_means"]
    own = [365.0 * (1.0 - np.exp(-rate * 730.0 / 365.0)) / rate for rate in (1.0, 0.6, 1.0)]
    for (low, high), found, true in zip(means["intervals"], means["differences"], own[1:], strict=True):
        assert low < found < high
        assert low < true - own[0] < high
        assert 10.0 < high - low < 150.0
    assert "Restricted mean days without died = yes, up to 730: arm = a" in told
    assert "all the intervals hold at once with 95 % confidence." in told
    assert answer.plot().save(tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_groups_of_ordered_levels_have_names_too():
    schema = {
        "arm": {"kind": "ordinal", "levels": list("abc")},
        "died": {"kind": "binary", "levels": ["no", "yes"]},
        "days": {"kind": "continuous", "bounds": [0.0, 730.0]},
    }
    public = {"epsilon": 4.0, "method": "log-rank", "key": jax.random.key(2)}
    answer = jaxdp.test(trial(3000), x="arm", y=["days", "died"], schema={"columns": schema}, **public)
    assert answer.to_dict()["effect_rows"] == ["arm = b against a", "arm = c against a"]
    assert "arm = c against a, days and died:" in " ".join(" ".join(answer.sentences()).split())


def test_groups_with_too_few_events_are_said_and_have_no_interval():
    answer = asked(trial(600, (1.0, 1.0, 1.0), rate=0.01), 1.0)
    notes = answer.content["effect_notes"]
    assert private.FEW_EVENTS in notes
    assert private.SEPARATE not in notes
    assert answer.p_value > 0.01


def test_nothing_is_said_about_intervals_that_are_not_given():
    """It was said how each is to be read, though noise hid them all, and that crowded times widen them."""
    rng = np.random.default_rng(0)
    time = np.minimum(rng.exponential(0.5, 800), 182.0)
    table = {"arm": rng.integers(0, 3, 800), "days": time, "died": np.ones(800, int)}
    public = {"bounds": {"days": (0, 182)}, "levels": {"arm": [0, 1, 2], "died": [0, 1]}}
    content = asked(table, 1.0, **public).content
    assert np.all(np.asarray(content["interval"]) == None)  # noqa: E711
    notes = content["effect_notes"]
    assert set(notes) == {private.FEW_EVENTS, private.CROWDED}
    assert "The p-value allows for what may change within it" in notes[private.CROWDED]
    assert notes[private.CROWDED].endswith("would sharpen it.")


@pytest.mark.parametrize(
    ("records", "groups", "more", "told"),
    [
        (100, 3, {}, "of 3 groups finds next to nothing in 100 records at this budget, with which 142 are needed"),
        (150, 3, {"given": "sex"}, "of 3 groups in 2 strata .* compare or merge fewer groups, leave Z out, or give"),
        (5000, 9, {}, "X must be one column of 2 to 8 levels, and arm has 9; name or merge"),
    ],
)
def test_more_groups_than_the_noise_leaves_are_refused_before_anything_is_charged(
    tmp_path, records, groups, more, told
):
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=5.0)
    with pytest.raises(ValueError, match=told):
        asked(trial(records, (1.0,) * groups), 1.0, groups, ledger=ledger, **more)
    assert float(ledger.spent.epsilon) == 0.0


def test_a_margin_is_for_two_groups():
    with pytest.raises(ValueError, match="a margin is about one effect"):
        asked(trial(600), 2.0, margin=0.4)


def design(key, n: int, ratio: float = 1.0) -> Data:
    """Three groups, of a half, three tenths and a fifth of the records, with censoring that differs."""
    keys = jax.random.split(key, 3)
    group = jnp.sum(jax.random.uniform(keys[0], (n, 1)) < jnp.array([[0.5, 0.2]]), axis=1)
    time = jax.random.exponential(keys[1], (n,)) / jnp.where(group == 2, ratio, 1.0)
    gone = jax.random.exponential(keys[2], (n,)) / (0.2 + 0.5 * group)
    y = jnp.stack([2.0 * jnp.minimum(jnp.minimum(time, gone), 1.0) - 1.0, 1.0 * (time <= gone)], axis=1)
    return Data(1.0 * group, y, None, domain(3))


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("test", [jaxdp.LogRank(epsilon=1.0), jaxdp.LogRank(mechanism=jaxdp.Gaussian(0.1))])
def test_level_and_power_of_three_groups(test):
    found = jaxdp.power.rejection_rate(test, lambda key: design(key, 1000), jax.random.key(5), 1500).rejections
    assert found <= stats.binom.ppf(1 - BINARY_BOUND, 1500, 0.05)
    assert jaxdp.power.rejection_rate(test, lambda key: design(key, 1000, 2.0), jax.random.key(6), 200).rate > 0.6


def test_tables_of_a_plan_of_three_groups_are_those_of_its_records():
    from jaxdp.plan.survival import times

    setting = plan.SurvivalSetting(x=Column(CATEGORICAL, 3))
    data = times(jax.random.key(1), n=100_000, setting=setting, effect=0.8)
    for group, ratio in enumerate(np.exp([0.0, 0.4, 0.8])):
        cells = setting.cells(0.8)[0, group]
        own = np.asarray(data.x) == group
        assert own.mean() == pytest.approx(1.0 / 3.0, abs=0.01)
        assert np.asarray(data.y)[own, 1].mean() == pytest.approx(3.0 * cells[..., 1].sum(), abs=0.01)
        assert cells[:10, 1].sum() / setting.cells(0.8)[0, 0, :10, 1].sum() == pytest.approx(ratio, rel=0.01)


def test_signs_are_all_but_for_the_whole_one():
    signs = several_groups._signs(4)
    assert signs.shape == (8, 4)
    assert len({tuple(one) for one in (*signs, *-signs)}) == 16
