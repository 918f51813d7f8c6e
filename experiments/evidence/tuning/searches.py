"""Discovery settings: tuned on simulated data of two networks, scored on others at the same epsilon."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from experiments.evidence.tuning.config import Config
from jaxdp import discovery, published, tune
from jaxdp.data import networks
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import Z, default_query
from jaxdp.discovery.engine.skeleton import find_skeleton
from jaxdp.discovery.engine.sparse_loop import Values
from jaxdp.simulate.designs.networks import sample_network

TUNED_ON, HELD_OUT = ("cancer", "earthquake"), ("survey", "asia")
NUM_RECORDS = 20_000
CHECK = 1.96  # standard errors by which the tuned settings must win on fresh data of the networks tuned on
SIEVE_SAMPLES = 8


@dataclasses.dataclass(frozen=True)
class Search:
    """A search and how its settings are found. settings(config, epsilon, rounds) -> keyword arguments."""

    name: str
    run: Callable[..., Any]
    epsilon: float
    settings: Callable[[Config, float], dict[str, float]]
    scaled: tuple[str, ...] = ()  # settings in units of the noise, which grows with the number of rounds


def searches(recorder, config: Config) -> None:
    """Mean skeleton F1 of default and tuned searches, same data and keys."""
    for search in SEARCHES:
        if config.names and search.name not in config.names:
            continue
        found = search.settings(config, search.epsilon)
        gains = [_scores(search, name, config.searches, found, 1) for name in TUNED_ON]
        together = np.concatenate(gains, axis=1)
        accepted = bool(_errors(together) > CHECK and min(map(_errors, gains)) > -CHECK)  # and loses on neither
        for name in ("tuned on", *(HELD_OUT if accepted else ())):
            scores = together if name == "tuned on" else _scores(search, name, config.searches, found, 2)
            difference = scores[1] - scores[0]
            recorder.add(
                figure="searches",
                test=search.name,
                n=NUM_RECORDS,
                epsilon=search.epsilon,
                tuned=found,
                accepted=accepted,
                design=name,
                replicates=difference.size,
                default_rate=float(scores[0].mean()),
                tuned_rate=float(scores[1].mean()),
                difference_se=float(difference.std(ddof=1) / math.sqrt(difference.size)),
                tuned_on=f"{' and '.join(TUNED_ON)}, {NUM_RECORDS} simulated rows each",
            )


def _errors(scores: np.ndarray) -> float:
    """Mean gain in its standard errors; scores (2, seeds)."""
    difference = scores[1] - scores[0]
    return float(difference.mean() / max(difference.std(ddof=1) / math.sqrt(difference.size), 1e-12))


def _rounds(name: str) -> int:
    columns = len(networks.load(name).names)
    return columns * (columns - 1) // 2


def _scores(search: Search, name: str, seeds: int, found: dict[str, float], stream: int) -> np.ndarray:
    """F1 (2, seeds) of the default and of the tuned settings."""
    stretch = _rounds(name) / _rounds(TUNED_ON[0])
    settings = {key: value * (stretch if key in search.scaled else 1.0) for key, value in found.items()}
    return _scores_of(search, name, seeds, ({}, settings), stream)


def _scores_of(search: Search, name: str, seeds: int, settings, stream: int) -> np.ndarray:
    """F1 (len(settings), seeds), all on the same data and keys."""
    network = networks.load(name)
    rows = []
    for key in jax.random.split(jax.random.fold_in(jax.random.key(2020), stream), seeds):
        key_data, key_search = jax.random.split(key)
        records = sample_network(key_data, network, NUM_RECORDS)
        graphs = [
            search.run(jax.random.clone(key_search), records, epsilon=search.epsilon, **fields) for fields in settings
        ]
        rows.append([discovery.skeleton_f1(graph, network) for graph in graphs])
    return np.array(rows).T


def margins(name: str, samples: int) -> np.ndarray:
    """Distances of the queries of a noiseless search from the threshold, over simulated data sets."""
    network, seen = networks.load(name), []
    for key in jax.random.split(jax.random.key(7), samples):
        records = sample_network(key, network, NUM_RECORDS)
        values = Values(Counts(records), default_query(Z, NUM_RECORDS).values)

        def ask(queries, values=values):
            answers = []
            for value in values.of(queries):
                seen.append(float(value))
                answers.append(bool(value >= 0.0))
                if answers[-1]:
                    break
            return answers

        find_skeleton(len(network.names), ask, max_order=None, batched=False, ahead=True)
    return np.array(seen)


def _sieve(config: Config, epsilon: float) -> dict[str, float]:
    """Share of the sieve and tweak: the gradient's answer beside a grid, scored by F1."""
    rounds = _rounds(TUNED_ON[0])
    found = tune.sieve_settings(epsilon * SIEVE_SAMPLES, margins(TUNED_ON[0], SIEVE_SAMPLES), rounds * SIEVE_SAMPLES)
    gradient = {"sieve_share": found.sieve_share, "tweak": found.tweak}
    unit = rounds / epsilon
    table = [{"sieve_share": share, "tweak": t * unit} for share in (0.35, 0.5, 0.65) for t in (-2.0, 0.0, 2.0)]
    return _best_of(discovery.priv_pc, [gradient, *table], config, epsilon)


def _best(run, options: dict[str, tuple], config: Config, epsilon: float) -> dict[str, float]:
    table = [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]
    return _best_of(run, table, config, epsilon)


def _best_of(run, table: list[dict[str, float]], config: Config, epsilon: float) -> dict[str, float]:
    """The settings of the largest mean F1 over both networks (of one size), all on the same data and keys."""
    search = Search("", run, epsilon, lambda config, epsilon: {})
    means = sum(_scores_of(search, name, config.searches, table, 0).mean(axis=1) for name in TUNED_ON)
    return table[int(np.argmax(means))]


ROOT = math.sqrt(NUM_RECORDS)
SEARCHES = (
    Search("priv_pc", discovery.priv_pc, 2.0, _sieve, ("tweak",)),
    Search(
        "adaptive_pc",
        published.adaptive_pc,
        2.0,
        functools.partial(
            _best,
            published.adaptive_pc,
            {"margin": (ROOT / 40.0, ROOT / 20.0, ROOT / 10.0, ROOT / 5.0), "expected_degree": (1.0, 2.0, 3.0)},
        ),
    ),
    Search(
        "svt_pc",
        discovery.svt_pc,
        1.0,
        functools.partial(_best, discovery.svt_pc, {"raise_by": (0.0, 5.0, 10.0, 20.0, 40.0), "z": (3.0, 4.0, 5.0)}),
    ),
)
