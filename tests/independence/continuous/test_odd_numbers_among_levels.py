"""An infinity or a huge number in a column of levels, as only records made by hand hold one: no bound is passed."""

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp.data.dataset import BINARY, CONTINUOUS, Column, Domain

N = 4000
TESTS = {
    "logistic": (jaxdp.LogisticRegression(epsilon=4.0), Column(BINARY, 2)),
    "Poisson": (jaxdp.PoissonRegression(epsilon=4.0), Column(from_zero=True)),
    "linear": (jaxdp.LinearRegression(epsilon=4.0), Column()),
    "correlation": (jaxdp.PartialCorrelation(epsilon=4.0), Column()),
}


def columns(name):
    rng = np.random.default_rng(0)
    x, z = np.sign(rng.normal(size=(2, N)))
    y = {"logistic": np.sign(rng.normal(size=N)), "Poisson": rng.poisson(3.0, N) / 10.0 - 1.0}
    return {"x": x, "y": y.get(name, rng.uniform(-1, 1, N)), "z": z}


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("column", ["x", "z"])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 1e200])
def test_one_cell_moves_a_release_by_no_more_than_its_bound(name, column, odd):
    test, y = TESTS[name]
    levels = Column(CONTINUOUS, 2)
    domain = Domain((levels,), (y,), (levels,))
    plain = columns(name)
    other = {**plain, column: np.concatenate([[odd], plain[column][1:]])}
    with jax.enable_x64(True):
        one, another = (jaxdp.Data(made["x"], made["y"], made["z"][:, None], domain) for made in (plain, other))
        settled, _ = core._execute(test, core.source_from_key(jax.random.key(0)), one)
        sums = [jax.tree.map(np.asarray, settled.statistic(jax.random.key(1), data)) for data in (one, another)]
    moved = jax.tree.map(lambda a, b: float(np.sum(np.abs(a - b))), *sums)
    bounds = settled.sensitivity(N)
    for part, sensitivity in bounds.items():
        assert moved[part] <= sensitivity.bound, f"{part} moved by {moved[part]}"


@pytest.mark.parametrize("test", [jaxdp.LogisticRegression(epsilon=4.0), jaxdp.PoissonRegression(epsilon=4.0)])
@pytest.mark.parametrize(
    ("widths", "told"),
    [
        ((2, 1, 1), "one column X .* there are 2"),
        ((1, 2, 1), "one column Y, and there are 2"),
        ((1, 1, 14), "up to 10"),
    ],
)
def test_columns_that_nobody_described_are_counted(test, widths, told):
    x, y, z = (np.zeros((3000, width)) for width in widths)
    with pytest.raises(ValueError, match=told):
        core.run(test, jax.random.key(0), jaxdp.Data(x, y, z))
