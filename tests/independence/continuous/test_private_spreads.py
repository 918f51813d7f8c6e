"""PrivateSpreads: how far a record moves a score, and the sd that it finds where a median falls into a gap."""

import jax
import numpy as np
import pytest

from jaxdp import core
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.independence.continuous import moment_stages
from jaxdp.independence.continuous.moment_stages import PrivateScales, PrivateSpreads
from jaxdp.mechanisms import Laplace

ONE = Domain((Column(),), (Column(),), ())


def spread(kind=PrivateSpreads, epsilon: float = 1.0, centres: float = 0.0):
    return kind(
        mechanism=Laplace(epsilon), columns=lambda data: data.x[:, None], num_columns=1, bound=1.0, centres=centres
    )


def table(x) -> Data:
    return Data(np.asarray(x, float), np.zeros(len(x)), None, ONE)


def test_no_record_moves_a_score_by_more_than_its_sensitivity_and_some_move_one_by_as_much():
    rng, query, worst = np.random.default_rng(0), spread(), 0.0
    bound = query.sensitivity(30)["000"].bound
    with jax.enable_x64(True):
        for _ in range(60):
            x = rng.choice([0.0, 0.01, 0.3, 1.0], 30) * rng.uniform(-1, 1, 30)
            moved = x.copy()
            moved[0] = rng.choice([0.0, 1.0, rng.uniform(-1, 1)])
            x[0] = rng.choice([0.0, 1.0, rng.uniform(-1, 1)])
            before, after = (np.asarray(query.statistic(None, table(part))["000"]) for part in (x, moved))
            worst = max(worst, np.abs(before - after).max())
    assert 0.9 * bound < worst <= bound


@pytest.mark.parametrize("sd", [0.003, 0.02, 0.25])
def test_it_finds_the_sd_of_a_normal_column(sd):
    x = np.clip(sd * np.random.default_rng(1).normal(size=20_000), -1.0, 1.0)
    query = spread()
    with jax.enable_x64(True):
        released = core.release(query, jax.random.key(0), table(x))
        assert float(query.chosen(released)[0]) == pytest.approx(sd, rel=0.1)


@pytest.mark.parametrize("centre", [0.55, 0.95])
def test_it_finds_the_sd_of_a_rating_where_the_median_falls_into_a_gap(centre):
    """Five numbers, most of them the last two: the median of the distances is any number below the next one."""
    x = np.random.default_rng(2).choice(np.linspace(-1, 1, 5), 20_000, p=[0.02, 0.05, 0.16, 0.35, 0.42])
    around, found = np.sqrt(np.mean((x - centre) ** 2)), {}
    with jax.enable_x64(True):
        for kind in (PrivateSpreads, PrivateScales):
            query = spread(kind, 4.0, centre)
            keys = jax.random.split(jax.random.key(3), 20)
            found[kind] = np.array([float(query.chosen(core.release(query, key, table(x)))[0]) for key in keys])
    assert np.abs(np.log(found[PrivateSpreads] / around)).max() < 0.3
    assert np.ptp(np.log(found[PrivateScales])) > 0.6


def test_records_in_chunks_have_the_scores_of_one_table():
    x, query = np.random.default_rng(4).uniform(-1, 1, 3000), spread()
    with jax.enable_x64(True):
        whole = query.statistic(None, table(x))["000"]
        parts = [query.partial(table(part)) for part in np.split(x, 3)]
        chunked = query.finish(parts[0] + parts[1] + parts[2])["000"]
    assert np.array_equal(np.asarray(whole), chunked)


def test_its_public_share_is_that_of_a_normal_column_and_no_column_has_more_than_one():
    x = np.random.default_rng(5).normal(size=2_000_000)
    assert np.minimum(x**2 / moment_stages.REACH**2, 1.0).mean() == pytest.approx(moment_stages.LEFT, abs=1e-3)
    shares = moment_stages.spread_shares()
    assert shares.min() >= 0.0
    assert shares.max() == 1.0


@pytest.mark.parametrize("kind", [PrivateSpreads, PrivateScales])
@pytest.mark.parametrize("value", [0.0, 1e-9, 0.01, 1.0])
def test_scores_keep_to_their_declared_range(kind, value):
    query = spread(kind, centres=-1.0 if value == 1.0 else 0.0)
    with jax.enable_x64(True):
        scores = np.asarray(query.statistic(None, table(np.full(30, value)))["000"])
    bound = query.sensitivity(30)["000"]
    assert bound.lower <= scores.min()
    assert scores.max() <= bound.upper
