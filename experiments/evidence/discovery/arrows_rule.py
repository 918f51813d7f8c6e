"""The tuning of the rule of arrows of `neighbour_pc`: rules compared on the same released numbers.

python -m experiments.evidence.discovery.arrows_rule           # writes arrows_rule.jsonl
python -m experiments.evidence.discovery.arrows_rule --table   # the table of docs/theory/neighbour_pc.md#arrows

Lines, parabolas, hubs and sinks of `structural_models.py` at n = 1e4 and three budgets; these seeds chose the rule, so
they show what it was chosen by, not how good it is (that is `structural_models.jsonl`).
"""

import argparse
import itertools
import json
from pathlib import Path
from unittest import mock

import jax
import numpy as np

import jaxdp
from experiments.evidence.discovery.parents_prior import EVERY_NUMBER, EVERY_ORIENTATION, PRIORS
from experiments.evidence.discovery.structural_models import drawn
from experiments.record import provenance
from jaxdp.discovery import cpdag_of, shd
from jaxdp.discovery.engine import directions
from jaxdp.discovery.engine.directions import Rule, oriented

RECORD = Path(__file__).with_suffix(".jsonl")
MODELS, N = ("lines", "parabolas", "hub", "sink"), 10_000
SEEDS = {10: range(300, 305), 20: range(310, 311)}
BUDGETS = ((1.0, 0.0), (3.0, 0.0), (1.0, 1e-6))
RULES = {
    "every orientation, reversed counts 1 (before)": (EVERY_ORIENTATION, 1.0),
    "every number of parents, 1": (EVERY_NUMBER, 1.0),
    "the same, 2": (EVERY_NUMBER, 2.0),
    "the same, 4 (taken)": (EVERY_NUMBER, 4.0),
    "the same, 6": (EVERY_NUMBER, 6.0),
}


def measured(model: str, columns: int, seed: int) -> list[dict]:
    """One model: a row for every budget and rule, where a contrast was released."""
    dag, table, schema = drawn(model, columns, N, seed)
    true, rows = cpdag_of(dag), []
    for epsilon, delta in BUDGETS:
        with mock.patch("jaxdp.discovery.methods.max_min_pc.oriented", side_effect=oriented) as asked:
            key = jax.random.key(seed)
            jaxdp.discover(table, schema=schema, epsilon=epsilon, delta=delta, key=key, method="neighbour_pc")
        for call in asked.call_args_list:
            for name, (prior, reversal) in RULES.items():
                with mock.patch.object(directions, "_by_parents", PRIORS[prior]):
                    found = oriented(*call.args[:3], Rule(reversal=reversal)).cpdag
                arrows = found & ~found.T & (true | true.T)
                facts = {"model": model, "columns": columns, "seed": seed, "epsilon": epsilon, "delta": delta}
                counts = {"arrows": int(arrows.sum()), "reversed": int((arrows & dag.T).sum())}
                rows.append(facts | {"rule": name, "shd": shd(found, true)} | counts)
    return rows


def table_of(rows: list[dict]) -> str:
    """Markdown: means over the graphs of one size, and which share of the arrows is reversed."""
    heads = [f"{columns} columns: distance | arrows | reversed" for columns in SEEDS]
    lines = [f"| rule | {' | '.join(heads)} |", "|---" * (1 + 3 * len(SEEDS)) + "|"]
    for rule in RULES:
        cells = []
        for columns in SEEDS:
            some = [row for row in rows if (row["rule"], row["columns"]) == (rule, columns)]
            distance, arrows, turned = (np.mean([row[name] for row in some]) for name in ("shd", "arrows", "reversed"))
            cells.append(f"{distance:.2f} | {arrows:.1f} | {turned / arrows:.3f}")
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measures everything, or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        rows: list[dict] = []
        for columns, seeds in SEEDS.items():
            for seed, model in itertools.product(seeds, MODELS):
                rows += measured(model, columns, seed)
                print(columns, seed, model, len(rows), flush=True)
        RECORD.write_text("".join(json.dumps(row | provenance()) + "\n" for row in rows))
    print(table_of([json.loads(line) for line in RECORD.read_text().splitlines()]))


if __name__ == "__main__":
    main()
