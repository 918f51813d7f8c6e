"""What noise of the cube changes: distance of `max_min_pc` at a pure epsilon, with it and with Laplace noise.

python -m experiments.evidence.discovery.joint_noise [--bif FOLDER]   # appends to joint_noise.jsonl what is missing
python -m experiments.evidence.discovery.joint_noise --table          # the tables of the pages

Random networks of seeds that nothing was tuned on (tuning used 41000 to 41014), and three samples of each of six
networks of the literature. "before": Laplace noise for numbers that are released together, and the shares of the
budget that went with it.
"""

from __future__ import annotations

import itertools
import pathlib
from unittest import mock

import jax
import numpy as np

from experiments.evidence.discovery.causes import CAUSES, parts
from experiments.evidence.discovery.directions import close
from experiments.evidence.discovery.tables import RECIPES, SIZES, command
from jaxdp import discovery
from jaxdp.discovery import cpdag_of
from jaxdp.discovery.engine.max_min_budget import Budget
from jaxdp.discovery.engine.max_min_scores import TableScores
from jaxdp.discovery.methods import max_min_pc as search
from jaxdp.simulate.designs.networks import sample_network

FILE = pathlib.Path(__file__).with_name("joint_noise.jsonl")
SEEDS, EPSILONS = range(9200, 9206), (3.0, 1.0)
BEFORE, AFTER = "laplace", "cube"


class Kept:
    """Scores of queries on one data set, each computed once for all searches."""

    def __init__(self):
        self._scores, self._kept = None, {}

    def __call__(self, counts, excess) -> Kept:
        """In place of the class of the scores."""
        self._scores = self._scores or TableScores(counts, excess)
        return self

    def of(self, queries):
        """q and v of each query."""
        new = [query for query in queries if query not in self._kept]
        if new:
            self._kept.update(zip(new, np.stack(self._scores(new), axis=1).tolist(), strict=True))
        return tuple(np.array([self._kept[query] for query in queries]).reshape(-1, 2).T.copy())


def found(records, epsilon: float, seed: int, how: str, kept: Kept):
    """The graph of one search."""
    plain, laplace = Budget.of, how == BEFORE
    of = mock.patch.object(Budget, "of", lambda *budget, cube=False: plain(*budget, cube=cube and not laplace))
    scores = mock.patch.object(search, "TableScores", lambda *given: kept(*given).of)
    shares = mock.patch.dict(search.CUBE_SHARES, search.SHARES) if laplace else mock.patch.dict(search.CUBE_SHARES)
    with of, scores, shares:
        return discovery.max_min_pc(jax.random.key(seed), records, epsilon=epsilon)


def measured(name: str, net, n: int, seed: int, epsilons) -> list[dict]:
    """One sample of a network: a row for every search."""
    records, true = sample_network(jax.random.key(seed), net, n), cpdag_of(net.dag)
    rows, kept = [], Kept()
    for epsilon, how in itertools.product(epsilons, (BEFORE, AFTER)):
        graph = found(records, epsilon, seed, how, kept)
        facts = {"network": name, "n": n, "seed": seed, "epsilon": epsilon, "noise": how}
        facts |= {"empty": int(np.triu(true | true.T).sum()), "forest": "spanning tree" in graph.note}
        rows.append(facts | close(graph, net) | parts(graph.cpdag, true))
    return rows


def table(rows: list[dict]) -> str:
    """Markdown: mean distance and skeleton F1 before and after, and the parts after."""
    heads = ("network", "n", "epsilon", "graphs", "empty graph", "distance", "skeleton F1", *CAUSES)
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for place in dict.fromkeys((row["network"], row["n"], row["epsilon"]) for row in rows):
        some = [row for row in rows if (row["network"], row["n"], row["epsilon"]) == place]
        first, second = ([row for row in some if row["noise"] == how] for how in (BEFORE, AFTER))
        both = {
            key: f"{mean(first, key):.{d}f} → {mean(second, key):.{d}f}" for key, d in (("shd", 1), ("skeleton_f1", 2))
        }
        causes = " | ".join(f"{mean(first, key):.1f} → {mean(second, key):.1f}" for key in CAUSES)
        lines.append(
            f"| {place[0]} | {place[1]} | {place[2]:g} | {len(first)} | {mean(first, 'empty'):.0f} | {both['shd']} | "
            f"{both['skeleton_f1']} | {causes} |"
        )
    return "\n".join(lines)


def mean(rows: list[dict], key: str) -> float:
    """The mean of one measure."""
    return float(np.mean([row[key] for row in rows]))


def differences(rows: list[dict]) -> str:
    """Mean change of the distance and its standard error, of random networks of each n and epsilon."""
    lines = []
    for n, epsilon in itertools.product(SIZES, EPSILONS):
        some = {(row["network"], row["seed"], row["noise"]): row["shd"] for row in rows if is_of(row, n, epsilon)}
        pairs = [place[:2] for place in some if place[2] == AFTER and place[0] in RECIPES]
        change = np.array([some[*pair, AFTER] - some[*pair, BEFORE] for pair in pairs], float)
        if len(change) > 1:
            error = change.std(ddof=1) / len(change) ** 0.5
            nearer, further = (change < 0).sum(), (change > 0).sum()
            lines.append(
                f"n = {n}, epsilon {epsilon:g}: {change.mean():.2f} +- {error:.2f} of {len(change)} "
                f"({nearer} nearer, {further} further)"
            )
    return "\n".join(lines)


def is_of(row: dict, n: int, epsilon: float) -> bool:
    """Whether a row is of this setting."""
    return row["n"] == n and row["epsilon"] == epsilon


def main() -> None:
    """Measures what is missing from the record, or prints its tables."""
    command(str(__doc__), FILE, SEEDS, measured, {"random": EPSILONS, "known": EPSILONS[:1]}, table, differences)


if __name__ == "__main__":
    main()
