"""LocalPermutation: exact level, coupled sensitivity, power, and the law of its permutations."""

import functools
import itertools

import jax
import numpy as np
import pytest
from scipy import stats
from test_gcm import window

import jaxdp
from jaxdp.data import Column, Domain
from jaxdp.independence.continuous import local_permutation
from jaxdp.simulate.designs.confounder import sine_confounder

pytestmark = pytest.mark.optimised


@pytest.mark.full
@pytest.mark.parametrize(
    ("n", "alternative"),
    [
        (20, "two-sided"),
        (20, "greater"),
        (60, "two-sided"),
        *(pytest.param(300, side, marks=pytest.mark.nightly) for side in ("two-sided", "greater")),
    ],
)
def test_the_level_is_exact_given_the_cells(n, alternative):
    domain = Domain(z=(Column(kind="categorical", levels=2),))

    def design(key, n):
        key_z, key_x, key_y = jax.random.split(key, 3)
        z = 1.0 * jax.random.bernoulli(key_z, 0.3, (n,))
        noise = jax.random.exponential(key_x, (n,)), jax.random.cauchy(key_y, (n,))
        return jaxdp.Data(z + noise[0], 3 * z + noise[1], z, domain)

    test = jaxdp.LocalPermutation(epsilon=1.0, num_permutations=39, alternative=alternative)
    count = jaxdp.power.rejection_rate(test, functools.partial(design, n=n), jax.random.key(0), 10_000)
    low, high = window(10_000)
    assert low <= count.rejections <= high


@pytest.mark.full
@pytest.mark.parametrize(("n", "effect", "expected"), [(300, 0.25, 0.68), (1000, 0.1, 0.65)])
def test_power_of_the_one_sided_test(n, effect, expected):
    test = jaxdp.LocalPermutation(epsilon=1.0, alternative="greater")
    design = functools.partial(sine_confounder, n=n, effect=effect)
    assert jaxdp.power.rejection_rate(test, design, jax.random.key(1), 300).rate > expected - 0.12


def permuted_sums(x, y, cell):
    """All values of sum x_i y_pi(i) over permutations within cells, sorted."""
    blocks = [np.flatnonzero(cell == b) for b in np.unique(cell)]
    choices = [[(block, p) for p in itertools.permutations(block)] for block in blocks]
    sums = [sum(float(x[list(b)] @ y[list(p)]) for b, p in combo) for combo in itertools.product(*choices)]
    return np.sort(sums)


def coupled_distance(a, b):
    """The smallest D such that the two uniform laws can be coupled within D: sup of quantile distances."""
    size = np.lcm(a.size, b.size)
    return np.abs(np.repeat(a, size // a.size) - np.repeat(b, size // b.size)).max()


def test_permuted_sums_of_neighbours_couple_within_six():
    rng, worst = np.random.default_rng(2), 0.0
    for _ in range(60):
        x, y = rng.choice([-1.0, 1.0], size=(2, 7))
        cell = np.array([0, 0, 0, 1, 1, 1, 1])
        x2, y2, cell2 = x.copy(), y.copy(), cell.copy()
        x2[3], y2[3], cell2[3] = rng.choice([-1.0, 1.0]), rng.choice([-1.0, 1.0]), rng.integers(2)
        worst = max(worst, coupled_distance(permuted_sums(x, y, cell), permuted_sums(x2, y2, cell2)))
    assert 3.0 < worst <= local_permutation.PERMUTED_BOUND


def test_the_observed_sum_reaches_its_bound():
    test = jaxdp.LocalPermutation(epsilon=1.0, winsorize=1.0, alternative="greater", num_permutations=19)
    z = np.zeros(4)
    values = [
        float(test.statistic(jax.random.key(0), jaxdp.Data(np.ones(4), np.array([y, 1, 1, 1.0]), z))["greater"][0])
        for y in (1.0, -1.0)
    ]
    assert abs(values[0] - values[1]) == local_permutation.REFERENCE_BOUND


def test_permutations_are_uniform_within_cells_and_never_leave_them():
    x = np.array([1.0, 0, 0, 0, 0, 0])
    y = np.array([0.1, 0.2, 0.3, 0.9, 0.9, 0.9])
    domain = Domain(z=(Column(kind="categorical", levels=2),))
    data = jaxdp.Data(x, y, np.array([0, 0, 0, 1, 1, 1.0]), domain)
    test = jaxdp.LocalPermutation(epsilon=1.0, winsorize=1.0, alternative="greater", num_permutations=6000)
    partners = np.round(np.asarray(test.statistic(jax.random.key(3), data)["greater"][1]), 3)
    counts = [(np.isclose(partners, v)).sum() for v in (0.1, 0.2, 0.3)]
    assert sum(counts) == 6000
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_test_that_can_never_reject_is_refused():
    with pytest.raises(ValueError, match="can never reject"):
        jaxdp.LocalPermutation(epsilon=1.0, num_permutations=19)
    with pytest.raises(ValueError, match="one column"):
        jaxdp.run(
            jaxdp.LocalPermutation(epsilon=1.0),
            jax.random.key(0),
            jaxdp.Data(np.zeros((50, 2)), np.zeros(50), np.zeros(50)),
        )
