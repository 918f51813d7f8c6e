"""The 21 functions with noise: the laws, exact sampling, and the accuracy of the default private coefficient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.simulate.designs import functions21
from jaxdp.statistics import mic_star
from jaxdp.statistics.mic.mic_pairs import data_sets

pytestmark = pytest.mark.optimised


@pytest.mark.full
def test_levels_order_the_noise_and_the_coefficient():
    laws = [functions21.law(12, level) for level in (0.2, 0.5, 0.9)]
    assert laws[0].sd > laws[1].sd > laws[2].sd
    star = [float(mic_star(functions21.masses(law, 60, 50).astype(np.float32), max_parts=6)) for law in laws]
    assert star[0] < star[1] < star[2] < 1.0


def test_samples_follow_the_masses():
    law = functions21.law(13, sd=0.1)
    data = functions21.sample(jax.random.key(0), 20_000, law)
    points = [np.asarray(v, float) for v in (data.x, data.y)]
    assert all(v.min() >= 0 and v.max() <= 1 for v in points)
    cells = [np.linspace(0, 1, 5)] * 2
    counts = np.histogram2d(points[1], points[0], cells)[0]

    def inside(c):
        return stats.norm.cdf((cells[0][:, None] - c) / law.sd)

    joint = np.diff(inside(law.y), axis=0) @ np.diff(inside(law.x), axis=0).T
    assert stats.chisquare(counts.ravel(), 20_000 * (joint / joint.sum()).ravel()).pvalue > 1e-6
    masses = functions21.masses(law, 40, 30)
    assert masses.shape == (30, 40)
    assert masses.sum() == pytest.approx(1.0)
    assert masses.sum(0) == pytest.approx(np.full(40, 1 / 40), abs=2e-3)


@pytest.mark.parametrize("wrong", [(0, 0.5), (22, 0.5), (1, 0.0), (1, 1.0), (1, None)])
def test_unknown_laws_are_refused(wrong):
    with pytest.raises(ValueError, match=r"function|level"):
        functions21.law(*wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("choice", [{"sd": (0.01, 0.03, 0.07, 0.15)}, {"level": functions21.LEVELS}])
def test_default_error_at_a_thousand_records_and_epsilon_one(choice):
    """Mean |released - MIC*| over 21 functions at our own or the paper's levels: at most 0.030 (paper 0.051).

    The defaults were tuned at other levels (odd multiples of 0.05) and other seeds.
    """
    n, test = 1000, jaxdp.MICrLaplace(epsilon=1.0, bounds=functions21.UNIT_SQUARE)
    ((name, values),) = choice.items()
    laws = [functions21.law(f, **{name: value}) for f in range(1, 22) for value in values]
    star, x, y = [], [], []
    for i, law in enumerate(laws):
        data = functions21.sample(jax.random.fold_in(jax.random.key(20), i), n, law)
        x.append(data.x)
        y.append(data.y)
    for start in range(0, len(laws), 21):
        masses = [functions21.masses(law) for law in laws[start : start + 21]]
        star.append(np.asarray(mic_star(np.stack(masses).astype(np.float32))))
    settings = {"budget": test.cells_allowed(n), "c": test.master_factor(n)}
    values = data_sets(jnp.stack(x), jnp.stack(y), bounds=functions21.UNIT_SQUARE, **settings)
    scale = float(test.sensitivity(n).bound)
    noisy = values[:, None] + scale * jax.random.laplace(jax.random.key(99), (len(laws), 50))
    chance = float(test._null_table(n).mean())
    released = np.clip((np.asarray(noisy) - chance) / (1 - chance), 0, 1)
    found = np.abs(released - np.concatenate(star)[:, None]).mean()
    print(f"mean error {found:.4f} over {len(laws)} laws, {name}")
    assert found <= 0.030
