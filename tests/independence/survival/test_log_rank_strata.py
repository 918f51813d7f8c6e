"""LogRank given strata: records are compared within them, one record moves what one stratum's table would, refusals."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data
from jaxdp.independence.survival import log_rank as private
from jaxdp.independence.survival import survival_examples
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS, Curves

BINARY_BOUND = 1e-4
SHAPE = (2, private.PAIR, *private.OF_TIME)


def drawn_table(records: int = 3000):
    """Counts of two strata whose hazards, shares and censoring differ."""
    data = survival_examples.times_in_strata(jax.random.key(3), records, 1.4)
    test = jaxdp.LogRank(epsilon=1.0, blocks=12).specialize(data).second
    return np.asarray(test.table(data), float)


def numerator(table):
    """O - E of each stratum by the textbook; a censored record counts half in its bin."""
    at_risk = np.cumsum(table.sum(3)[..., ::-1], axis=2)[..., ::-1][..., :BINS] - 0.5 * table[:, :, :BINS, 0]
    events = table[:, :, :BINS, 1]
    return at_risk, events, (events[:, 1] - at_risk[:, 1] / at_risk.sum(1) * events.sum(1)).sum(1)


def test_scores_add_up_to_the_stratified_numerator_and_a_product_of_errors():
    rng, blocks = np.random.default_rng(1), 12
    table = drawn_table()
    at_risk, events, of_strata = numerator(table)
    hazard, share = rng.uniform(0.0, 2.0 / BINS, (2, blocks)), rng.uniform(0.2, 0.8, (2, 1, blocks))
    with jax.enable_x64(True):
        about = dataclasses.replace(
            survival_examples.known(2),
            hazard=hazard,
            share=share,
            counted=np.ones((2, blocks)),
            events=np.ones((2, blocks)),
            weight=np.array([1.0, 0.5]),
        )
        shares = np.asarray(about._shares)[:, 0]
        found = float(jnp.sum(table * about.scores()[..., 0]))
    total, lam = at_risk.sum(1), np.repeat(hazard, BINS // blocks, axis=1)
    product = (total * (at_risk[:, 1] / total - shares) * (events.sum(1) / total - lam)).sum(1)
    assert found == pytest.approx(np.dot([1.0, 0.5], of_strata + product), rel=1e-9)
    assert np.all(np.abs(product) > 1.0), "the errors are large enough to be seen"


def test_without_noise_the_released_sum_is_the_stratified_numerator():
    table = drawn_table(20_000)
    with jax.enable_x64(True):
        about = Curves.of(log_rank.blocked(jnp.asarray(table), 48), table.sum(), 1e-9, np.zeros(48))
        found = float(jnp.sum(table * about.scores()[..., 0]))
        variance = float(about.spread(jnp.zeros(1))[0, 0])
    *_, of_strata = numerator(table)
    *_, pooled = numerator(table.sum(0, keepdims=True))
    assert np.asarray(about.weight) == pytest.approx(1.0, abs=0.02)
    assert found == pytest.approx(of_strata.sum(), abs=0.1 * np.sqrt(variance))
    assert abs(pooled.sum() - of_strata.sum()) > np.sqrt(variance), "and not that of the whole groups"


def test_scores_of_records_in_any_strata_differ_by_the_range_at_most_and_reach_it():
    test = jaxdp.LogRank(epsilon=1.0, **survival_examples.IN_STRATA)
    records = np.eye(math.prod(SHAPE)).reshape(-1, *SHAPE)
    found = np.stack(jax.tree.leaves(jax.jit(lambda tables: jax.lax.map(test.finish, tables))(records)), axis=1)
    of_stratum = found.reshape(2, -1, 2)
    spread = np.ptp(of_stratum, axis=(0, 1))
    assert np.all(spread <= 1.0 + 1e-5)
    assert np.all(spread >= 0.99)
    assert np.any(np.ptp(of_stratum, axis=1) < 0.9, axis=1).any(), "one stratum alone would need less noise"


def test_a_record_that_changes_its_stratum_moves_the_counts_by_two():
    query = jaxdp.LogRank(epsilon=1.0, blocks=6).specialize(survival_examples.times_in_strata(jax.random.key(0), 50))
    ((before, after),) = survival_examples.worst_pairs_in_strata()
    counts = [query.first.statistic(None, data) for data in (before, after)]
    assert float(jnp.sum(jnp.abs(counts[0] - counts[1]))) == float(query.first.sensitivity(4).bound) == 2.0


def test_the_joint_levels_of_several_columns_are_the_strata():
    one = survival_examples.times_in_strata(jax.random.key(5), 2000, 2.0)
    other = jax.random.bernoulli(jax.random.key(6), 0.5, (2000,)).astype(float)
    both = dataclasses.replace(one.domain, z=(Column(BINARY, 2), Column(BINARY, 2)))
    joint = dataclasses.replace(one.domain, z=(Column(CATEGORICAL, 4),))
    found = [
        jaxdp.run(jaxdp.LogRank(epsilon=2.0), jax.random.key(7), Data(one.x, one.y, z, domain))
        for z, domain in ((jnp.stack([one.z, other], axis=1), both), (2.0 * one.z + other, joint))
    ]
    assert float(found[0].p_value) == float(found[1].p_value)


def test_a_column_of_one_level_changes_nothing():
    plain = survival_examples.times(jax.random.key(8), 500, 1.5)
    domain = dataclasses.replace(plain.domain, z=(Column(CATEGORICAL, 1),))
    given = Data(plain.x, plain.y, jnp.zeros(500), domain)
    found = [jaxdp.run(jaxdp.LogRank(epsilon=1.0), jax.random.key(9), one) for one in (plain, given)]
    assert float(found[0].p_value) == float(found[1].p_value)


def test_an_empty_stratum_has_next_to_no_weight():
    table = np.concatenate([drawn_table(2000), np.zeros((1, *SHAPE[1:]))])
    with jax.enable_x64(True):
        counts = log_rank.blocked(jnp.asarray(table), 12)
        noise = 4.0 * jax.random.laplace(jax.random.key(2), (50, *counts.shape))
        weights = [np.asarray(Curves.of(counts + one, table.sum(), 32.0, np.zeros(12)).weight) for one in noise[:20]]
    assert np.all(np.array(weights)[:, 2] < 0.3)
    assert np.all(np.array(weights)[:, :2] > 0.5)


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("given", [True, False])
def test_strata_that_groups_and_hazards_follow_are_no_effect(given):
    def drawn(key):
        data = survival_examples.equal_times_in_strata(key, 1000)
        return data if given else Data(data.x, data.y, None, dataclasses.replace(data.domain, z=()))

    found = jaxdp.power.rejection_rate(jaxdp.LogRank(epsilon=1.0), drawn, jax.random.key(5), 1500).rejections
    if given:
        assert found <= stats.binom.ppf(1 - BINARY_BOUND, 1500, 0.05)
    else:
        assert found > 300, "without the strata the groups differ"


KNOWN = {
    "bounds": {"days": (0.0, 730.0), "age": (18.0, 90.0)},
    "levels": {"arm": ["control", "drug"], "died": ["no", "yes"], "sex": ["f", "m"], "site": list("abcdefgh")},
}


def trial(records: int, ratio: float):
    rng = np.random.default_rng(6)
    sex = rng.integers(0, 2, records)
    arm = (rng.random(records) < 0.3 + 0.4 * sex).astype(int)
    death, gone = rng.exponential(1.0 / (0.5 * 3.0**sex * ratio**arm)), rng.exponential(np.where(arm, 1.5, 4.0))
    return {
        "arm": np.array(["control", "drug"])[arm],
        "sex": np.array(["f", "m"])[sex],
        "site": np.array(list("abcdefgh"))[rng.integers(0, 8, records)],
        "age": rng.uniform(18.0, 90.0, records),
        "days": np.round(365.0 * np.minimum(death, gone)),
        "died": np.array(["no", "yes"])[(death <= gone).astype(int)],
    }


def asked(table, epsilon: float, given, **more):
    how = {"x": "arm", "y": ["days", "died"], "method": "log-rank", **KNOWN, **more}
    return jaxdp.test(table, given=given, epsilon=epsilon, **how)


def test_an_answer_given_strata_has_the_common_ratio_and_says_why_there_are_no_curves():
    answer = asked(trial(3000, 0.6), 2.0, "sex", key=jax.random.key(2))
    without = asked(trial(3000, 0.6), 2.0, None, key=jax.random.key(2))
    low, high = answer.interval
    assert low < np.log(0.6) < high < 0.0
    assert without.interval[0] > np.log(0.6), "whole groups differ by sex"
    told = " ".join("\n".join(answer.sentences()).split())
    assert "log hazard ratio of died = yes, arm = drug against control given Z" in told
    assert "given Z" not in " ".join(without.sentences())
    assert "curves" not in answer.to_dict()
    assert private.ADJUSTED in answer.content["effect_notes"]
    assert "no survival curves and no restricted means" in told
    assert "curves" in without.to_dict()


def test_a_picture_of_an_answer_given_strata_is_drawn(tmp_path):
    answer = asked(trial(600, 0.6), 2.0, "sex", key=jax.random.key(2))
    assert answer.plot().save(tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("site", "given 8 strata finds next to nothing in 300 records at this budget, with which 453 are needed"),
        ("site", "condition on fewer levels \\(at most 5 together\\), or give more epsilon"),
        (["site", "sex", "died"], "named once|at most 16 strata"),
        ("age", "cut age at public values into levels, or leave it out"),
    ],
)
def test_strata_that_will_not_do_are_refused_before_anything_is_charged(tmp_path, given, told):
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=5.0)
    with pytest.raises(ValueError, match=told):
        asked(trial(300, 0.6), 1.0, given, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0


@pytest.mark.parametrize("typed", ["cox", "CoxPH", "stratified log-rank", "proportional hazards"])
def test_names_of_regressions_lead_to_log_rank_and_the_answer_says_so(typed):
    answer = asked(trial(400, 0.6), 2.0, None, method=typed, key=jax.random.key(1))
    assert answer.content["method"] == "log-rank"
    assert "log-rank" in answer.content["taken"]


@pytest.mark.parametrize(
    ("more", "hinted"),
    [
        ({}, True),
        ({"given": "sex"}, True),
        ({"method": "partition-gcm"}, False),
        ({"given": "age"}, False),
        ({"x": "age"}, False),
        ({"y": "days"}, False),
        ({"bounds": {"days": (-730.0, 730.0), "age": (18.0, 90.0)}}, False),
    ],
)
def test_two_columns_that_may_be_a_time_and_its_event_are_hinted_at(more, hinted):
    how = {"given": None, "method": None, "key": jax.random.key(1), **more}
    answer = asked(trial(200, 1.0), 2.0, **how)
    told = [one for one in answer.content["cautions"] if "log-rank" in one]
    assert len(told) == hinted
    if hinted:
        assert told[0].startswith("If days is a time to an event and died says whether it came, ask log-rank")
        assert 'kind = "survival"' in told[0]
        assert told[0] in " ".join("\n".join(answer.sentences()).split())
