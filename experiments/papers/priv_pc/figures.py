"""Figure 1 (F1 against the total budget), table 2 (running times, counts of tests), and continuous data."""

import math
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.papers.priv_pc.config import Config
from experiments.papers.priv_pc.methods import (
    DELTA,
    GAUSSIAN,
    METHODS,
    PUBLISHED,
    PUBLISHED_THRESHOLDS,
    gaussian,
    published,
)
from jaxdp import discovery
from jaxdp.data import networks
from jaxdp.data.records import as_records
from jaxdp.discovery.choose import TEST_LEVEL, TESTS_PER_PAIR
from jaxdp.simulate.designs.networks import sample_network

ROOT_SEED = 2020


def figure_1(recorder, config: Config) -> None:
    """Mean skeleton F1 against the true graph and the papers' reference graph, and seconds per search."""
    for name in config.networks:
        data = draw(name, config)
        recorder.add(**measure("no privacy (Kendall)", name, math.inf, data, lambda key, r, _: discovery.pc(key, r)))
        for epsilon in config.budgets:
            for method, search in METHODS.items():
                recorder.add(**measure(method, name, epsilon, data, search))
            tuned = [measure(PUBLISHED, name, epsilon, data, published(z)) for z in PUBLISHED_THRESHOLDS]
            recorder.add(**max(tuned, key=lambda row: row["f1"]))
        for epsilon in config.gaussian_budgets:
            recorder.add(**{**measure(GAUSSIAN, name, epsilon, data, gaussian), "delta": DELTA})


def draw(name: str, config: Config, seeds: int | None = None):
    """One data set per seed."""
    network = networks.load(name)
    return [sample_network(_key(seed), network, config.num_records) for seed in range(seeds or config.seeds)]


def measure(method: str, name: str, epsilon: float, data, search) -> dict:
    """One cell: a search on every data set."""
    network, graphs, seconds = networks.load(name), [], []
    for seed, records in enumerate(data):
        start = time.perf_counter()
        graphs.append(search(jax.random.fold_in(_key(seed), 1), records, epsilon))
        seconds.append(time.perf_counter() - start)
    true = [discovery.skeleton_f1(graph, network) for graph in graphs]
    return {
        "figure": "figure 1",
        "network": name,
        "method": method,
        "budget": epsilon,
        "true_epsilon": float(graphs[0].cost.epsilon),
        "rho": float(graphs[0].cost.rho),
        "f1": float(np.mean(true)),
        "f1_sd": float(np.std(true)),
        "f1_reference": float(np.mean([discovery.skeleton_f1(graph, reference_graph(name)) for graph in graphs])),
        "shd": float(np.mean([discovery.shd(graph, network) for graph in graphs])),
        "tests": float(np.mean([graph.num_tests for graph in graphs])),
        "complete": float(np.mean([graph.complete for graph in graphs])),
        "search_seconds": float(np.median(seconds)),
        "num_records": data[0].num_records,
        "seeds": len(data),
    }


def reference_graph(name: str) -> np.ndarray:
    """The skeleton that the Priv-PC experiments score against, bool (d, d)."""
    names = networks.load(name).names
    skeleton = np.zeros((len(names), len(names)), bool)
    for edge in networks.REFERENCE_SKELETONS[name]:
        i, j = (names.index(part) for part in edge.split())
        skeleton[i, j] = skeleton[j, i] = True
    return skeleton


CONTINUOUS = np.zeros((5, 5), bool)
for _cause, _effect in ((0, 2), (1, 2), (2, 3), (2, 4)):
    CONTINUOUS[_cause, _effect] = True


def continuous(recorder, config: Config) -> None:
    """What the papers leave open: five columns, one binary, by PartitionGCM or LocalPermutation."""
    data = [continuous_records(_key(seed), config.continuous_records) for seed in range(config.seeds)]
    for epsilon in config.continuous_budgets:
        for method, search in CONTINUOUS_METHODS.items():
            graphs = [search(jax.random.fold_in(_key(seed), 2), r, epsilon) for seed, r in enumerate(data)]
            recorder.add(
                figure="continuous",
                network="four arcs, five columns",
                method=method,
                budget=epsilon,
                true_epsilon=float(graphs[0].cost.epsilon),
                f1=float(np.mean([discovery.skeleton_f1(graph, CONTINUOUS) for graph in graphs])),
                mixed_pairs_right=float(np.mean([_mixed_pairs_right(graph) for graph in graphs])),
                tests=float(np.mean([graph.num_tests for graph in graphs])),
                complete=float(np.mean([graph.complete for graph in graphs])),
                num_records=config.continuous_records,
                seeds=len(data),
            )


def local_permutation_pc(key, records, epsilon):
    """PC with LocalPermutation: tests, level and budget of `discovery.partition_pc`."""
    d = len(records.columns)
    tests = TESTS_PER_PAIR * d * (d - 1) // 2
    test = jaxdp.LocalPermutation(epsilon=epsilon / tests, level=TEST_LEVEL, accept_coarse_cells=True)
    return discovery.pc(key, records, test=test, level=TEST_LEVEL, max_tests=tests, stable=False)


CONTINUOUS_METHODS = {
    "partition_pc": lambda key, records, epsilon: discovery.partition_pc(
        key, records, epsilon=epsilon, accept_coarse_cells=True
    ),
    "pc with LocalPermutation": local_permutation_pc,
}


def _mixed_pairs_right(graph) -> float:
    """Share of the four pairs of a continuous column and the binary one that are joined, or not, as in the truth."""
    return float(np.mean(graph.skeleton[:4, 4] == CONTINUOUS[:4, 4]))


def continuous_records(key, n: int):
    """a, b uniform on [-1, 1]; c = (a + b)/2 + noise; d = sine of c + noise; e = sign of c, flipped now and then."""
    key_a, key_b, key_c, key_d, key_e = jax.random.split(key, 5)

    def uniform(k):
        return jax.random.uniform(k, (n,), minval=-1.0, maxval=1.0)

    def noise(k):
        return 0.2 * jax.random.normal(k, (n,))

    a, b = uniform(key_a), uniform(key_b)
    c = 0.5 * (a + b) + noise(key_c)
    d = 0.7 * jnp.sin(2.0 * c) + noise(key_d)
    e = (c + noise(key_e) > 0).astype(float)
    values = jnp.stack([*(jnp.clip(column, -1.0, 1.0) for column in (a, b, c, d)), e], axis=1)
    return as_records(values, (0, 0, 0, 0, 2), ("a", "b", "c", "d", "e"))


def _key(seed: int):
    return jax.random.fold_in(jax.random.key(ROOT_SEED), seed)
