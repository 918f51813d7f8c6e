"""What noise of the cube changes: distance of `neighbour_pc` at a pure epsilon, with it and with Laplace noise.

python -m experiments.evidence.discovery.neighbour_noise [--columns 10 20]   # appends to neighbour_noise.jsonl
python -m experiments.evidence.discovery.neighbour_noise --table             # of docs/theory/neighbour_pc.md#numbers

Random structural models (`structural_models.py`), ten thousand records, of seeds on which nothing was chosen (choice:
400 and 401). Both searches have one key, so the same centres and scales. "before": Laplace noise for numbers that are
released together, and the shares of the budget that went with it.
"""

from __future__ import annotations

import itertools
import pathlib
from unittest import mock

import jax
import numpy as np

import jaxdp
from experiments import record
from experiments.evidence.discovery import structural_models
from experiments.evidence.discovery.causes import CAUSES, parts
from experiments.evidence.discovery.joint_noise import AFTER, BEFORE, mean
from jaxdp.discovery import cpdag_of
from jaxdp.discovery.engine.max_min_budget import Budget
from jaxdp.discovery.methods.max_min_pc import CUBE_SHARES, SHARES
from jaxdp.discovery.methods.neighbour_pc import NeighbourScores

FILE, PAGE = pathlib.Path(__file__).with_suffix(".jsonl"), pathlib.Path("docs/theory/neighbour_pc.md")
EPSILONS, N, FIRST_SEED, RUNS = (1.0, 3.0), 10_000, 410, {10: 3, 20: 1}


def measured(model: str, columns: int, epsilon: float, seed: int) -> list[dict]:
    """One sample of a model: a row for each noise."""
    dag, table, schema = structural_models.drawn(model, columns, N, seed)
    true, plain, exact, kept, rows = cpdag_of(dag), Budget.of, NeighbourScores.__call__, {}, []

    def scored(self, queries):
        new = [query for query in queries if query not in kept]
        kept.update(zip(new, exact(self, new)[0].tolist(), strict=True))
        return np.array([kept[query] for query in queries]), np.zeros(len(queries))

    for how in (BEFORE, AFTER):
        of = mock.patch.object(Budget, "of", lambda *budget, cube=False, how=how: plain(*budget, cube=how == AFTER))
        shares = mock.patch.dict(CUBE_SHARES, SHARES if how == BEFORE else {})
        with of, shares, mock.patch.object(NeighbourScores, "__call__", scored):
            options = {"epsilon": epsilon, "method": "neighbour_pc", "key": jax.random.key(seed)}
            graph = jaxdp.discover(table, schema=schema, **options)
        found, pointed = np.asarray(graph.cpdag), true & ~true.T
        drawn = found & ~found.T
        expected = 0.0 if graph.arrow_shares is None else float(graph.arrow_shares[drawn].sum())
        facts = {"model": model, "columns": columns, "seed": seed, "epsilon": epsilon, "noise": how}
        facts |= {"empty": int(np.triu(true | true.T).sum()), "skeleton_f1": jaxdp.discovery.skeleton_f1(found, true)}
        arrows = {"arrows": int(drawn.sum()), "right": int((drawn & pointed).sum()), "expected": round(expected, 3)}
        causes = parts(found, true)
        rows.append(facts | {"shd": sum(causes.values())} | causes | arrows)
    return rows


def table(rows: list[dict]) -> str:
    """Markdown: means before and after, by columns, budget and model."""
    heads = ("columns", "epsilon", "model", "graphs", "no edges", "distance", "skeleton F1", *CAUSES)
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    models = ("all", *dict.fromkeys(row["model"] for row in rows))
    for columns, epsilon, model in itertools.product(RUNS, EPSILONS, models):
        some = [row for row in rows if (row["columns"], row["epsilon"]) == (columns, epsilon)]
        some = [row for row in some if model in ("all", row["model"])]
        before, after = ([row for row in some if row["noise"] == how] for how in (BEFORE, AFTER))
        if before:
            pairs = [f"{mean(before, key):.{d}f} → {mean(after, key):.{d}f}" for key, d in MEASURES.items()]
            cells = (str(columns), f"{epsilon:g}", model, str(len(before)), f"{mean(before, 'empty'):.0f}", *pairs)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


MEASURES = {"shd": 1, "skeleton_f1": 2} | dict.fromkeys(CAUSES, 1)


def differences(rows: list[dict]) -> str:
    """Mean change of the distance and its standard error; arrows, those right and those expected to be."""
    lines = []
    for columns, epsilon in itertools.product(RUNS, EPSILONS):
        some = [row for row in rows if (row["columns"], row["epsilon"]) == (columns, epsilon)]
        before, after = ([row for row in some if row["noise"] == how] for how in (BEFORE, AFTER))
        change = np.array([row["shd"] for row in after], float) - [row["shd"] for row in before]
        if len(change) > 1:
            arrows = [f"{mean(side, 'right'):.2f} of {mean(side, 'arrows'):.2f}" for side in (before, after)]
            lines.append(
                f"{columns} columns, epsilon {epsilon:g}: {change.mean():+.2f} +- "
                f"{change.std(ddof=1) / len(change) ** 0.5:.2f} of {len(change)} ({(change < 0).sum()} nearer, "
                f"{(change > 0).sum()} further); right arrows {' → '.join(arrows)}, "
                f"{mean(after, 'expected'):.2f} expected"
            )
    return "\n".join(lines)


def main() -> None:
    parser = record.command_line(__doc__)
    parser.add_argument("--columns", type=int, nargs="+", choices=RUNS, default=list(RUNS))
    asked = parser.parse_args()
    if not asked.table:
        done = {(row["model"], row["columns"], row["epsilon"], row["seed"]) for row in record.rows(FILE)}
        for columns in asked.columns:
            seeds = range(FIRST_SEED, FIRST_SEED + RUNS[columns])
            for seed, model, epsilon in itertools.product(seeds, structural_models.MODELS, EPSILONS):
                if (model, columns, epsilon, seed) not in done:
                    record.append(FILE, measured(model, columns, epsilon, seed))
    record.fill(PAGE, "neighbour-noise", table(record.rows(FILE)))
    print(differences(record.rows(FILE)))


if __name__ == "__main__":
    main()
