"""Tables 1 and 3, figures 3 and 5: the Baseball and Spellman collections, with the paper's settings beside ours.

The files are those of the MIC paper (baseball.csv, spellman.csv and the non-private MICe values of minepy 1.2.6).
Their ranges follow the paper and come from the data: fine for reproducing it, NOT PRIVATE as a practice.
"""

import csv
import pathlib
from typing import NamedTuple

import jax
import numpy as np

from experiments.papers.mic import config, synthetic
from experiments.papers.mic.tuning import null_mean
from jaxdp.independence.mic import mic_parameters, mic_sensitivity
from jaxdp.noise import floats
from jaxdp.statistics.mic import mic_pairs, mic_tables

# Median bias (median variance) in the paper: tables 1 (epsilon 1) and 3 (epsilon 0.1).
PAPER = {
    1.0: {
        "spellman23": {"MICe-Lap": (0.18, 0.23), "MICr-Lap": (0.14, 0.17), "MICr-Geom": (0.24, 0.01)},
        "baseball": {"MICe-Lap": (0.30, 0.21), "MICr-Lap": (0.02, 0.02), "MICr-Geom": (0.06, 9e-4)},
        "spellman4381": {"MICe-Lap": (0.26, 0.17), "MICr-Lap": (-0.01, 4e-4), "MICr-Geom": (0.02, 1e-4)},
    },
    0.1: {
        "spellman23": {"MICe-Lap": (0.20, 0.24), "MICr-Lap": (0.19, 0.24), "MICr-Geom": (0.31, 0.05)},
        "baseball": {"MICe-Lap": (0.36, 0.24), "MICr-Lap": (0.25, 0.18), "MICr-Geom": (0.33, 0.01)},
        "spellman4381": {"MICe-Lap": (0.41, 0.24), "MICr-Lap": (0.03, 0.01), "MICr-Geom": (0.14, 8e-4)},
    },
}
# Median absolute error in the paper at epsilon 1 (section 5.2).
PAPER_ABSOLUTE = {
    "spellman23": {"MICe-Lap": 0.46, "MICr-Lap": 0.39, "MICr-Geom": 0.25},
    "baseball": {"MICr-Lap": 0.097, "MICr-Geom": 0.068},
    "spellman4381": {"MICr-Lap": 0.016, "MICr-Geom": 0.019},
}
BINS = {"baseball": (0, 0.2, 0.4, 0.6, 0.8, 1), "spellman4381": (0, 0.1, 0.2, 0.3, 0.4, 1)}
_GEOMETRIC_BATCH = 32


class Collection(NamedTuple):
    """Pairs scaled to the unit interval: columns (n, d), pairs (m, 2), and the non-private MICe of each."""

    name: str
    columns: np.ndarray
    pairs: np.ndarray
    mice: np.ndarray


def baseball(folder: pathlib.Path) -> Collection:
    """8256 pairs of 129 statistics of 337 players."""
    with (folder / "baseball.csv").open() as file:
        table = np.array([[float(v) for v in row[5:]] for row in list(csv.reader(file))[1:]])
    stored = np.loadtxt(folder / "mice_minepy_baseball.csv", delimiter=",", skiprows=1, usecols=(0, 1, 4))
    low, high = table.min(0), table.max(0)
    return Collection("baseball", _scale(table, low, high), stored[:, :2].astype(np.int32), stored[:, 2])


def spellman4381(folder: pathlib.Path) -> Collection:
    """253 pairs of 23 time points over 4381 genes."""
    table = _spellman(folder)
    stored = np.loadtxt(folder / "mice_minepy_spellman4381.csv", delimiter=",", skiprows=1, usecols=(0, 1, 4))
    unit = _scale(table, np.full(23, table.min()), np.full(23, table.max()))
    return Collection("spellman4381", unit, stored[:, :2].astype(np.int32), stored[:, 2])


def spellman23(folder: pathlib.Path) -> Collection:
    """4381 genes against time, n = 23."""
    genes = _spellman(folder).T
    stored = np.loadtxt(folder / "mice_minepy_spellman23.csv", delimiter=",", skiprows=1, usecols=(0, 2))
    time = np.arange(1, 24)[:, None] / 24.0
    unit = _scale(genes, genes.min(0), genes.max(0))
    pairs = np.stack([np.zeros(len(stored)), 1 + stored[:, 0]], 1).astype(np.int32)
    return Collection("spellman23", np.concatenate([time, unit], 1), pairs, stored[:, 1])


COLLECTIONS = {"spellman23": spellman23, "baseball": baseball, "spellman4381": spellman4381}


def _spellman(folder):
    with (folder / "spellman.csv").open() as file:
        return np.array([[float(v) for v in row[1:]] for row in list(csv.reader(file))[1:]])


def _scale(table, low, high):
    """Onto [0, 1] with the paper's margin of one hundredth on either side; a constant column becomes 0.5."""
    width = high - low
    unit = (table - low + width / 100) / np.where(width > 0, 1.02 * width, 1.0)
    return np.where(width > 0, unit, 0.5)


def measure(recorder, chosen, collection: Collection, epsilon: float, draws: int = 100) -> None:
    """One row per mechanism: medians over pairs of bias, variance and absolute error against MICe."""
    take = slice(None) if chosen.pairs is None else _spread(len(collection.pairs), chosen.pairs)
    pairs, mice = collection.pairs[take], collection.mice[take]
    n = collection.columns.shape[0]
    paper_c, paper_cells = _interpolated("laplace", n, epsilon)
    own = mic_parameters.cells_allowed(n, epsilon)
    values = _micr(collection, pairs, paper_cells, paper_c)
    default = _micr(collection, pairs, own, mic_parameters.MASTER_FACTOR)
    mice_scale = mic_sensitivity.paper_mass_bound(n, n**0.6) / epsilon
    noise = {
        "MICe-Lap": (mice, mice_scale, 0.0),
        "MICr-Lap": (values, mic_sensitivity.paper_range_bound(n) / epsilon, 0.0),
        "MICr-Lap, exact constant": (values, mic_sensitivity.range_bound(n, paper_cells) / epsilon, 0.0),
        "MICrLaplace default": (default, mic_sensitivity.range_bound(n, own) / epsilon, null_mean(n, own)),
    }
    for mechanism, (value, scale, chance) in noise.items():
        found = synthetic.laplace_errors(value[:, None], mice, scale, draws, chance)
        _add(recorder, collection.name, mechanism, epsilon, n, found, mice)
    c, cells = _interpolated("geometric", n, epsilon)
    released, tables = geometric(collection, pairs, cells, c, epsilon, chosen.geometric_draws, chosen.seed)
    found = synthetic.errors(released[:, None, :], mice)
    _add(recorder, collection.name, "MICr-Geom", epsilon, n, found, mice, true_epsilon=tables * epsilon)


def _spread(count: int, wanted: int):
    return np.linspace(0, count - 1, min(count, wanted)).astype(int)


def _micr(collection, pairs, cells, c):
    columns = collection.columns.astype(np.float32)
    bounds = np.tile([0.0, 1.0], (columns.shape[1], 1))
    return np.asarray(mic_pairs.mic_r_pairs(columns, pairs, bounds=bounds, budget=float(cells), c=float(c)), float)


def _interpolated(mechanism: str, n: int, epsilon: float) -> tuple[float, float]:
    """(c, B) of the paper's table 2, linear in n."""
    sizes = sorted(config.PAPER_TABLE_2)
    at = [config.PAPER_TABLE_2[size][mechanism][epsilon] for size in sizes]
    c, cells = (float(np.interp(n, sizes, [pair[i] for pair in at])) for i in (0, 1))
    return float(round(c)), max(4.0, min(round(cells), n))


def geometric(collection, pairs, cells, c, epsilon, draws, seed):
    """The published mechanism: released values (pairs, draws), and its number of tables."""
    tables = mic_tables.grid_tables(cells, c, "capped")
    n, size = collection.columns.shape[0], mic_tables.flat_size(tables)
    columns = collection.columns.astype(np.float32)

    @jax.jit
    def some(key, x, y):
        counts = jax.vmap(lambda a, b: mic_tables.flat_counts(a, b, tables, x.dtype))(x, y)
        noise = floats.two_sided_geometric(key, 2.0 / epsilon, (draws, *counts.shape))
        noisy = jax.numpy.clip(counts[None] + noise, 0.0, 1.0 * n).reshape(-1, size)
        return mic_tables.score_of_flat(noisy.T, tables).reshape(draws, -1)

    padded = np.resize(pairs, (-(-len(pairs) // _GEOMETRIC_BATCH) * _GEOMETRIC_BATCH, 2))
    found = []
    for i, batch in enumerate(padded.reshape(-1, _GEOMETRIC_BATCH, 2)):
        key = jax.random.fold_in(jax.random.key(seed), i)
        found.append(np.asarray(some(key, columns[:, batch[:, 0]].T, columns[:, batch[:, 1]].T)).T)
    return np.concatenate(found)[: len(pairs)], len(tables)


def _add(recorder, name, mechanism, epsilon, n, found, mice, true_epsilon=None) -> None:
    told = PAPER[epsilon][name].get(mechanism)
    row = {
        "part": "real",
        "collection": name,
        "mechanism": mechanism,
        "epsilon": epsilon,
        "true_epsilon": epsilon if true_epsilon is None else true_epsilon,
        "n": n,
        "pairs": len(mice),
        "bias": float(np.median(found["bias"])),
        "variance": float(np.median(found["variance"])),
        "absolute": float(np.median(found["absolute"])),
        "paper_bias": told and told[0],
        "paper_variance": told and told[1],
        "paper_absolute": PAPER_ABSOLUTE[name].get(mechanism) if epsilon == 1.0 else None,
    }
    if name in BINS:
        inside = np.clip(np.digitize(mice, BINS[name][1:-1]), 0, len(BINS[name]) - 2)
        for key in ("bias", "variance"):
            row[f"{key}_by_bin"] = [
                []
                if not np.any(inside == i)
                else np.quantile(found[key][inside == i], (0, 0.25, 0.5, 0.75, 1)).tolist()
                for i in range(len(BINS[name]) - 1)
            ]
    recorder.add(**row)
