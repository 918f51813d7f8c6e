"""LogRank: the identity behind its scores, their range over all cells, blocks and bins of the time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trial_tables import SHAPE, by_hand, drawn_table

import jaxdp
from jaxdp.data.dataset import Data, Domain
from jaxdp.independence.survival import survival_examples
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS, Curves


def curves(seed: int = 1, blocks: int = 12, **replaced) -> Curves:
    rng = np.random.default_rng(seed)
    known = survival_examples.KNOWN
    fields = {
        "hazard": rng.uniform(0.0, 2.0 / BINS, (1, blocks)),
        "share": rng.uniform(0.2, 0.8, (1, 1, blocks)),
        **replaced,
    }
    return Curves(
        counted=np.ones((1, blocks)),
        events=np.full((1, blocks), 50.0),
        covariance=np.zeros((1, 1, blocks, 1, blocks)),
        weight=np.ones(1),
        mean=known.mean,
        variance=known.variance,
        crowded=known.crowded,
        ends=np.stack([fields["share"]] * 2, axis=1),
        sudden=np.zeros((1, blocks)),
        count_variance=known.count_variance,
        coarse=known.coarse,
        **fields,
    )


def test_scores_add_up_to_the_log_rank_numerator_and_a_product_of_errors():
    with jax.enable_x64(True):
        table, about = drawn_table(), curves()
        at_risk, events, numerator = by_hand(table)
        shares, hazards = np.asarray(about._shares)[0, 0], np.repeat(about.hazard[0], BINS // 12)
        total = at_risk.sum(0)
        product = total * (at_risk[1] / total - shares) * (events.sum(0) / total - hazards)
        found = float(jnp.sum(table * about.scores()[0, ..., 0]))
    assert found == pytest.approx(numerator + product.sum(), rel=1e-9)
    assert abs(product.sum()) > 1.0, "the errors are large enough to be seen"


@pytest.mark.parametrize(
    ("share", "noise_sd", "small"),
    [
        (0.05, 9.0, True),
        (0.05, 1.0, False),
        (0.12, 9.0, True),
        (0.2, 9.0, False),
        (0.88, 9.0, True),
        (0.5, 30.0, False),
    ],
)
def test_a_small_group_has_no_interval_where_noise_hides_how_small_it_is(share, noise_sd, small):
    """Noise would choose who has one: of 5 % of 1000 records at epsilon 1, .76 of those given held the ratio."""
    with jax.enable_x64(True):
        counts = jnp.ones((2, 25)) * jnp.array([[1.0 - share], [share]]) * 1000.0 / 25.0
        about = Curves.of(counts[None], 1000, noise_sd**2, np.zeros(12))
        strata = Curves.of(jnp.stack([counts, counts]), 2000, noise_sd**2, np.zeros(12))
    assert bool(about.small) == small
    assert not strata.small, "not measured"


def test_without_noise_the_released_sum_is_the_log_rank_numerator():
    with jax.enable_x64(True):
        table = drawn_table()
        about = Curves.of(log_rank.blocked(jnp.asarray(table)[None], 48), table.sum(), 1e-9, np.zeros(48))
        found = float(jnp.sum(table * about.scores()[0, ..., 0]))
    *_, numerator = by_hand(table)
    assert found == pytest.approx(numerator, abs=0.05 * np.sqrt(table.sum() / 8))


def test_scores_of_two_records_differ_by_the_range_at_most_and_reach_it():
    test = jaxdp.LogRank(epsilon=1.0, **survival_examples.ABOUT_KNOWN_CURVES)
    possible = np.ones(SHAPE, bool)
    possible[:, BINS, 1] = False  # no event at the end
    records = np.eye(possible.size)[possible.ravel()].reshape(-1, 1, *SHAPE)
    found = np.stack(jax.tree.leaves(jax.jit(lambda tables: jax.lax.map(test.finish, tables))(records)), axis=1)
    spread = np.ptp(found, axis=0)
    assert np.all(spread <= 1.0 + 1e-5)
    assert np.all(spread >= 0.99)


def test_a_record_moves_the_counts_by_two():
    query = jaxdp.LogRank(epsilon=1.0).specialize(survival_examples.times(jax.random.key(0), 50)).first
    before, after = (query.statistic(None, data) for data in survival_examples.worst_pairs()[0])
    assert float(jnp.sum(jnp.abs(before - after))) == float(query.sensitivity(4).bound) == 2.0


def test_a_time_at_the_upper_bound_is_no_event():
    of_bin, event = log_rank.codes(np.array([-1.0, 0.999, 1.0]), np.array([1.0, 1.0, 1.0]))
    assert of_bin.tolist() == [0, BINS - 1, BINS]
    assert event.tolist() == [1, 1, 0]


def test_time_and_event_come_in_either_order():
    data = survival_examples.times(jax.random.key(3), 400)
    turned = Data(data.x, data.y[:, ::-1], None, Domain(data.domain.x, data.domain.y[::-1]))
    found = [jaxdp.run(jaxdp.LogRank(epsilon=1.0), jax.random.key(5), one) for one in (data, turned)]
    assert float(found[0].p_value) == float(found[1].p_value)


def test_bins_have_equal_width_in_the_root_of_the_time_or_in_its_logarithm_where_the_schema_scales_by_it():
    share, places = np.array([0.01, 0.25, 0.81, 1.0]), np.array([0.1, 0.5, 0.9])
    for even, expected in ((False, places), (True, share[:3])):
        of_bin, _ = log_rank.codes(2.0 * share - 1.0, np.ones(4), even)
        assert of_bin.tolist() == [*np.floor(expected * BINS + 1e-9), BINS]
        edges = log_rank.ends(BINS, even)
        inside, _ = log_rank.codes(edges[1:] + edges[:-1] - 1.0, np.ones(BINS), even)
        assert inside.tolist() == list(range(BINS)), "the middle of a bin lies between its ends"
        assert log_rank.ends(12, even) == pytest.approx(edges[:: BINS // 12])


def test_the_mean_of_the_squares_is_known_where_the_groups_differ():
    """Of scores about the hazard of all: with a ratio they scatter less than O - E does about its mean."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 2, 40_000)
    of_bin, event = log_rank.codes(rng.exponential(1.0 / 12.0 / 2.0**group) * 2.0 - 1.0, np.ones(40_000))
    table = np.zeros((1, *SHAPE))
    np.add.at(table[0], (group, of_bin.astype(int), event.astype(int)), 1.0)
    with jax.enable_x64(True):
        about = Curves.of(log_rank.blocked(jnp.asarray(table), 48), table.sum(), 1e-9, np.zeros(48))
        squares = float(jnp.sum(table * about.scores()[..., 0] ** 2))
        at = {ratio: jnp.array([np.log(ratio)]) for ratio in (1.0, 2.0)}
        expected = {ratio: float(about.expected_squares(one)) for ratio, one in at.items()}
        spread = {ratio: float(about.spread(one)[0, 0]) for ratio, one in at.items()}
    assert expected[2.0] == pytest.approx(squares, rel=0.03)
    assert expected[1.0] == pytest.approx(spread[1.0])
    assert spread[2.0] > 1.25 * expected[2.0]


@pytest.mark.parametrize("ratios", [(1.0, 2.0), (1.0, 0.5), (1.0, 1.5, 0.75)])
def test_ratios_are_not_drawn_to_one_by_the_order_that_bins_hide(ratios):
    """Hazards that grow to .04 of a bin, no sampling and no noise: log ratios were .002 to .004 too small in size."""
    left = np.exp(-4.0 * np.outer(ratios, log_rank.ends(BINS) ** 4)) / len(ratios)
    table = np.zeros((1, len(ratios), BINS + 1, 2))
    table[0, :, :BINS, 1], table[0, :, BINS, 0] = -np.diff(1e6 * left), 1e6 * left[:, -1]
    with jax.enable_x64(True):
        about = Curves.of(log_rank.blocked(jnp.asarray(table), 128), 1e6, 1e-9, np.zeros(128))
        found = log_rank.from_all(len(ratios)) @ jnp.einsum("skbe,skbec->c", table, about.scores()) - about.mean
        truth = jnp.log(jnp.array(ratios[1:]))
        off = jnp.linalg.solve(jax.jacfwd(about.expected)(truth), found - about.expected(truth))
    assert np.abs(off).max() < 0.001


def test_what_may_change_within_a_block_counts_where_many_leave_in_it_alone():
    """Two groups; shares of 1/2 and of less at the end of the first block."""
    share, calm = jnp.full((1, 6), 0.5), np.full((2, 13), 50.0)
    calm[:, -1] = 300.0
    crowd = np.array(calm)
    crowd[0, 0], crowd[1, 0] = 300.0, 900.0
    none, some = (
        log_rank._bent(jnp.asarray(counts), share, 1.0, jnp.zeros(share.shape[1])) for counts in (calm, crowd)
    )
    assert float(none[0]) == 0.0
    start = abs(1750.0 / 2900.0 - 0.5)
    assert float(some[0]) == pytest.approx(1200.0 * start)
