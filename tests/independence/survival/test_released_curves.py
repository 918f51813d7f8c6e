"""Curves of Kaplan and Meier from released counts, their bands, and restricted means."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from trial_tables import BINARY_BOUND, EVENT, SHAPE, TWO, asked, drawn_table, trial

import jaxdp
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.independence.survival import kaplan_meier
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS
from jaxdp.statistics.survival_curves import DRAWS, survival_curves


def kept_table(records: int):
    """Counts of a table whose curves differ between the groups, without noise; and its textbook curves."""
    table = drawn_table(9, records)
    at_risk = np.cumsum(table.sum(2)[:, ::-1], axis=1)[:, ::-1][:, :BINS] - 0.5 * table[:, :BINS, 0]
    return table, np.cumprod(1.0 - table[:, :BINS, 1] / at_risk, axis=1)


def test_without_noise_the_curves_are_those_of_kaplan_and_meier():
    table, textbook = kept_table(20_000)
    blocks = 12
    with jax.enable_x64(True):
        counts = log_rank.blocked(jnp.asarray(table)[None], blocks)[0]
        found = survival_curves(
            counts, table.sum(), jnp.zeros((DRAWS, *counts.shape)), log_rank.ends(blocks), np.zeros(blocks)
        )
    ends = textbook[:, BINS // blocks - 1 :: BINS // blocks]
    assert np.asarray(found.survival)[:, 1:] == pytest.approx(ends, abs=0.004)
    greenwood = 1.96 * np.sqrt(ends * (1.0 - ends) / np.asarray(table).sum((1, 2))[:, None])
    width = 0.5 * np.asarray(found.high - found.low)[:, 1:]
    assert np.all(width > greenwood), "a band of whole curves is wider than intervals of single places"
    assert np.all(width < 3.0 * greenwood)
    assert np.all(np.diff(np.asarray(found.low)) <= 1e-12)
    assert np.all(np.diff(np.asarray(found.high)) <= 1e-12)


@pytest.mark.optimised
def test_bands_hold_whole_curves():
    records, replicates, times = 2000, 300, 200
    alive = lambda group, t: np.exp(-0.9 * t) if group else 1.0 - 0.7 * t  # noqa: E731
    rng = np.random.default_rng(11)
    group = rng.random((replicates, records)) < 0.4
    chance = rng.random(group.shape)
    death, gone = np.where(group, -np.log(chance) / 0.9, chance / 0.7), rng.exponential(np.where(group, 0.8, 4.0))
    seen = np.minimum(np.minimum(death, gone), 1.0)
    of_bin, event = log_rank.codes(2.0 * seen - 1.0, (death <= gone).astype(float))
    place = np.ravel_multi_index((group.astype(int), of_bin.astype(int), event.astype(int)), SHAPE)
    tables = np.stack([np.bincount(one, minlength=np.prod(SHAPE)) for one in place]).reshape(-1, *SHAPE)
    with jax.enable_x64(True):
        domain = Domain((TWO,), (Column(), EVENT))
        shapes = Data(*(jax.ShapeDtypeStruct(shape, float) for shape in ((records,), (records, 2))), None, domain)
        test = jaxdp.LogRank(epsilon=1.0).specialize(shapes)
        query, bound = dataclasses.replace(test.first, of=None), test.first.sensitivity(records)

        def one(both):
            counts = log_rank.blocked(both[1][None], test.second.blocks)[0]
            counts = counts + query.mechanism.noise(both[0], bound, counts.shape)
            return kaplan_meier.estimated(
                query, bound, counts, records, log_rank.ends(test.second.blocks), np.zeros(test.second.blocks)
            )

        found = jax.lax.map(one, (jax.random.split(jax.random.key(1), replicates), jnp.asarray(tables, float)))
    blocks, t = test.second.blocks, np.linspace(0.0, 1.0, times)
    ends = log_rank.ends(blocks)
    low = np.asarray(found.low)[:, :, np.searchsorted(ends, t)]
    high = np.asarray(found.high)[:, :, np.searchsorted(ends, t, side="right") - 1]
    truth = np.stack([alive(group, t) for group in (0, 1)])
    held = np.all((low <= truth) & (truth <= high), axis=2).sum(0)
    assert np.all(held >= stats.binom.ppf(BINARY_BOUND, replicates, 0.95))
    assert np.all(np.median(high - low, axis=0)[:, times // 2] < 0.4), "and say something"


def test_a_band_goes_on_where_nobody_is_left_at_risk():
    table, _ = kept_table(300)
    table[:, BINS // 2 :] = 0.0
    with jax.enable_x64(True):
        counts = log_rank.blocked(jnp.asarray(table)[None], 12)[0]
        noise = 2.0 * jax.random.laplace(jax.random.key(0), (DRAWS, *counts.shape))
        found = survival_curves(counts, table.sum(), noise, log_rank.ends(12), np.zeros(12))
    survival, low, high = (np.asarray(part) for part in (found.survival, found.low, found.high))
    assert np.all(np.isnan(survival[:, -1]))
    assert np.all(low[:, -1] == 0.0)
    assert np.all(np.isfinite(high))
    assert np.isnan(found.difference) == (float(found.until) < 0.5)


def test_an_answer_has_the_curve_of_each_group_in_days(tmp_path):
    answer = asked(trial(3000, 0.6), 2.0)
    curves = answer.to_dict()["curves"]
    control, drug = curves["groups"]
    assert (control["name"], drug["name"]) == ("arm = control", "arm = drug")
    assert (control["at"][0], control["at"][-1], curves["over"]) == (0.0, 730.0, "days")
    middle = int(np.argmin(np.abs(np.array(control["at"]) - 365.0)))
    assert abs(control["at"][middle] - 365.0) < 30.0
    for group, rate in ((control, 1.0), (drug, 0.6)):
        alive = np.exp(-rate * control["at"][middle] / 365.0)
        assert group["low"][middle] < alive < group["high"][middle]
        assert group["low"][middle] < group["value"][middle] < group["high"][middle]
    told = " ".join("\n".join(answer.sentences()).split())
    place = f"days {control['at'][middle]:.4g}"
    assert f"Share without died = yes at {place}: arm = control {control['value'][middle]:.2f} (band" in told
    assert answer.plot().save(tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_curves_are_a_function_of_the_release_alone():
    answer, again = asked(trial(600, 0.6), 1.0), asked(trial(600, 1.0), 1.0)
    columns = [[answer.schema.rule(name) for name in part] for part in (["arm"], ["days", "died"])]
    blank = Data(np.zeros(600), np.zeros((600, 2)), None, Domain((TWO,), (Column(), EVENT)))
    found = jaxdp.LogRank(epsilon=1.0).released_curves(blank, answer.release, *columns)
    assert found["groups"] == answer.content["curves"]["groups"]
    assert found["groups"] != again.content["curves"]["groups"]


def test_without_noise_the_difference_is_that_of_areas_below_the_curves():
    table, textbook = kept_table(20_000)
    with jax.enable_x64(True):
        counts = log_rank.blocked(jnp.asarray(table)[None], 24)[0]
        found = survival_curves(counts, table.sum(), jnp.zeros((DRAWS, *counts.shape)), log_rank.ends(24), np.zeros(24))
    steps = np.concatenate([np.ones((2, 1)), textbook], axis=1)
    areas = 0.5 * (steps[:, 1:] + steps[:, :-1]) @ np.diff(log_rank.ends(BINS))
    assert float(found.until) == 1.0
    assert np.asarray(found.means) == pytest.approx(areas, abs=0.002)
    (low,), (difference,), (high,) = found.low_difference, found.difference, found.high_difference
    assert float(difference) == pytest.approx(areas[1] - areas[0], abs=0.002)
    assert low < difference < high


def test_an_answer_has_the_difference_of_restricted_means_in_days():
    answer = asked(trial(3000, 0.6), 2.0)
    found = answer.to_dict()["curves"]["restricted_means"]
    control, drug = (365.0 * (1.0 - np.exp(-rate * 730.0 / 365.0)) / rate for rate in (1.0, 0.6))
    low, high = found["interval"]
    assert found["until"] == 730.0
    assert low < drug - control < high
    assert 10.0 < high - low < 120.0
    assert found["difference"] == pytest.approx(found["means"][1] - found["means"][0])
    told = " ".join("\n".join(answer.sentences()).split())
    assert "Restricted mean days without died = yes, up to 730: arm = control" in told
    assert f"95 % interval {low:.3g} to {high:.3g}." in told


def test_no_difference_is_given_where_a_curve_ends_early():
    found = asked(trial(400, 1.0), 0.5).to_dict()["curves"]
    assert "restricted_means" not in found
    assert not any("Restricted" in sentence for sentence in found["sentences"])


def test_an_answer_whose_ratio_and_means_point_in_opposite_directions_says_so():
    """Under the null noise of two releases decides both, so that some answers do and some do not."""
    table, said = trial(4000, 1.0), []
    for seed in range(8):
        answer = asked(table, 1.0, key=jax.random.key(seed))
        found, effect = answer.to_dict()["curves"].get("restricted_means"), answer.to_dict()["effect"]
        opposed = bool(found) and effect is not None and effect * found["difference"] > 0.0
        assert any(kaplan_meier.OPPOSED in sentence for sentence in answer.sentences()) is opposed
        said.append(opposed)
    assert len(set(said)) == 2
