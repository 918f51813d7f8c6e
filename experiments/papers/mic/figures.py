"""Figures 2 and 4: bias and variance of each mechanism over the 189 laws, by n; and the heavy-tail ranges."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.papers.mic import synthetic
from experiments.papers.mic.config import PAPER_TABLE_2
from experiments.papers.mic.tuning import null_mean
from jaxdp.independence.mic import mic_parameters, mic_sensitivity
from jaxdp.noise import floats
from jaxdp.simulate.designs import functions21
from jaxdp.statistics.mic import mic_pairs
from jaxdp.statistics.mic.mic_grids import buckets, grids

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
_TABLE_BATCH = 16


def accuracy(recorder, chosen, epsilon: float) -> None:
    """Rows of figure 2 (epsilon 1) or 4 (epsilon 0.1): quantiles over laws of bias and variance, and errors."""
    _, star = synthetic.laws(chosen.every)
    everywhere = chosen
    for n in everywhere.sizes:
        chosen = everywhere.at(n)
        x, y = synthetic.samples(chosen.every, n, chosen.data_sets, chosen.seed)
        c, cells = PAPER_TABLE_2[n]["laplace"][epsilon]
        values = synthetic.coefficients(x, y, cells, c)
        own = mic_parameters.cells_allowed(n, epsilon)
        default = values if own == cells else synthetic.coefficients(x, y, own, mic_parameters.MASTER_FACTOR)
        tight, published = mic_sensitivity.range_bound(n, own), mic_sensitivity.paper_range_bound(n)
        chance = null_mean(n, own)
        add = functools.partial(_add, recorder, n=n, epsilon=epsilon, star=star, data_sets=chosen.data_sets)
        add("MICr-Lap", found=synthetic.laplace_errors(values, star, published / epsilon, chosen.draws))
        bound = mic_sensitivity.range_bound(n, cells)
        exact = synthetic.laplace_errors(values, star, bound / epsilon, chosen.draws)
        add("MICr-Lap, exact constant", found=exact)
        found = synthetic.laplace_errors(default, star, tight / epsilon, chosen.draws, chance)
        add("MICrLaplace default", found=found)
        mice, mice_bounds = mass_coefficients(x, y)
        for name, scale in zip(("MICe-Lap", "MICe-Lap, exact constant"), mice_bounds, strict=True):
            add(name, found=synthetic.laplace_errors(mice, star, scale / epsilon, chosen.draws))
        for name, released, true in noisy_tables(x, y, n, epsilon, chosen):
            add(name, found=synthetic.errors(released, star), true_epsilon=true)


def _add(recorder, mechanism, n, epsilon, star, data_sets, found, true_epsilon=None) -> None:
    recorder.add(
        part="accuracy",
        mechanism=mechanism,
        n=n,
        epsilon=epsilon,
        true_epsilon=epsilon if true_epsilon is None else true_epsilon,
        laws=len(star),
        data_sets=data_sets,
        weighted=float(found["absolute"] @ synthetic.weights(star)),
        mean=float(found["absolute"].mean()),
        bias=np.quantile(found["bias"], QUANTILES).tolist(),
        variance=np.quantile(found["variance"], QUANTILES).tolist(),
    )


def mass_coefficients(x, y):
    """MICe with B = n**0.6, c = 15 of every data set, and the published and the exact sensitivity."""
    n = x.shape[-1]
    budget = max(n**0.6, 4.0)
    flat = [v.reshape(-1, n) for v in (x, y)]
    ranks = np.concatenate([np.argsort(np.argsort(v, axis=1), axis=1) for v in flat]).T.astype(np.int32)
    sizes = grids(budget, 15.0)
    values = np.asarray(mic_pairs.halves(jnp.asarray(ranks), buckets(sizes, len(flat[0])), "mass"))
    bounds = (mic_sensitivity.paper_mass_bound(n, budget), mic_sensitivity.mass_bound(n, sizes))
    return values.reshape(x.shape[:2]), bounds


def noisy_tables(x, y, n, epsilon, chosen):
    """Released values (laws, data sets, draws) of the mechanisms that noise counts, with their true cost."""
    c, cells = PAPER_TABLE_2[n]["geometric"][epsilon]
    settings = {"epsilon": epsilon, "bounds": functions21.UNIT_SQUARE}
    shapes = jaxdp.Data(*[jax.ShapeDtypeStruct((n,), jnp.float32)] * 2)
    for name, test in (
        ("MICr-Geom", jaxdp.published.PaperMICrGeometric(**settings, max_cells=float(cells), c=float(c))),
        ("MICr-Geom, split", jaxdp.published.MICrGeometricSplit(**settings)),
        ("MICrGeometric lattice", jaxdp.MICrGeometric(**settings)),
    ):
        test = test.specialize(shapes)
        yield name, table_releases(test, x, y, chosen), float(test.mechanism_in_force().epsilon)


def table_releases(test, x, y, chosen):
    """Scores of noisy counts: (laws, data sets, draws)."""
    n, draws = x.shape[-1], chosen.geometric_draws
    scale = float(test.mechanism_in_force().scale(test.sensitivity(n)))

    @jax.jit
    def some(key, x, y):
        counts = jax.vmap(test.counts)(x, y)
        noise = floats.two_sided_geometric(key, scale, (draws, *counts.shape))
        noisy = (counts[None] + noise).reshape(-1, counts.shape[-1])
        return test.score(noisy.T, n, scale).reshape(draws, -1)

    flat = [v.reshape(-1, n) for v in (x, y)]
    count = len(flat[0])
    padded = [np.resize(v, (-(-count // _TABLE_BATCH), _TABLE_BATCH, n)) for v in flat]
    keys = jax.random.split(jax.random.key(chosen.seed), len(padded[0]))
    found = [np.asarray(some(keys[i], *batch)).T for i, batch in enumerate(zip(*padded, strict=True))]
    return np.concatenate(found)[:count].reshape(*x.shape[:2], draws)


def heavy_tails(recorder, chosen, epsilon: float = 1.0) -> None:
    """exp(4x) of the laws on the public box [0, e^6]: linear box, private transform, and the true range."""
    _, star = synthetic.laws(chosen.every)
    box = ((0.0, float(np.exp(6.0))),) * 2
    for n in [size for size in chosen.sizes if 250 <= size <= 1000]:
        x, y = synthetic.samples(chosen.every, n, 1, chosen.seed)
        tests = {
            "linear box": (jaxdp.MICrLaplace(epsilon=epsilon, bounds=box), np.exp(4 * x), np.exp(4 * y)),
            "private transform": (
                jaxdp.MICrLaplace(epsilon=epsilon, bounds=box, range_share=0.3),
                np.exp(4 * x),
                np.exp(4 * y),
            ),
            "oracle range": (jaxdp.MICrLaplace(epsilon=epsilon, bounds=functions21.UNIT_SQUARE), x, y),
        }
        for name, (test, a, b) in tests.items():
            released = _released(test, a[:, 0], b[:, 0], chosen)
            recorder.add(
                part="heavy_tails",
                ranges=name,
                n=n,
                epsilon=epsilon,
                mean=float(np.abs(released - star[:, None]).mean()),
                laws=len(star),
            )


def _released(test, x, y, chosen, draws: int = 4):
    """Result.statistic of each data set, (laws, draws)."""

    def one(key, x, y):
        data = jaxdp.Data(x, y)
        return jaxdp.run(test, key, data).statistic

    keys = jax.random.split(jax.random.key(chosen.seed), (len(x), draws))
    run = jax.jit(lambda keys, x, y: jax.lax.map(lambda item: jax.vmap(one, (0, None, None))(*item), (keys, x, y)))
    return np.asarray(run(keys, jnp.asarray(x), jnp.asarray(y)))
