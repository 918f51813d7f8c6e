"""How far `discover`'s graphs of continuous and mixed columns are from the truth, by the kind of structural model.

python -m experiments.evidence.discovery.structural_models [--columns 10 20] [--records 2000 10000 100000]
python -m experiments.evidence.discovery.structural_models --table  # of docs/discovery.md, from the record

Random graphs with 1.2 edges a column (`dense`: 2.5; `hub`: the first column is a parent of most others; `sink`: the
last is a child of most others), weights 0.5 to 1 of either sign, noise of sd 1. What acts on a child is the parent; its
hyperbolic tangent (`tanh`); or the square of the standardised parent over root 2, which is uncorrelated with a
symmetric parent (`parabolas`). `heavy tails`: noise of Student's t with 3 degrees of freedom. `mixed`: two of five
columns are cut at a quantile between 0.3 and 0.7 and have two levels. Bounds at four sds; `jaxdp.discover` of a table
with a schema, at its defaults. Seeds that nothing was tuned on: the rule of arrows was chosen on lines, parabolas, hub
and sink of the seeds 300 to 311. Epsilon 1000 stands for the same search without noise. `PC`: without privacy, Fisher's
z at level 0.01 on the same records, conditioning sets of at most three columns.
"""

import itertools
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from scipy.stats import norm

import jaxdp
from experiments.record import append, command_line, fill, markdown, rows
from jaxdp.discovery import cpdag_of, pc, shd

RECORD = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).parents[3] / "docs" / "discovery.md"
LINKS = {"tanh": np.tanh, "parabolas": lambda a: ((a - a.mean()) / a.std()) ** 2 / np.sqrt(2.0)}
EDGES = {"dense": 2.5}
MODELS = ("lines", "tanh", "parabolas", "hub", "sink", "dense", "heavy tails", "mixed")
RECORDS, FIRST_SEED = (2000, 10_000, 100_000), 7000
PUBLIC = (0.0, 0.0)  # stands for PC without privacy
BUDGETS = {
    (1.0, 0.0): "epsilon 1",
    (3.0, 0.0): "epsilon 3",
    (1.0, 1e-6): "(1, 1e-6)",
    (1000.0, 0.0): "without noise",
    PUBLIC: "PC, not private",
}
LEVEL, MAX_ORDER = 0.01, 3  # of PC without privacy


def graph(model: str, columns: int, rng) -> np.ndarray:
    """The adjacency matrix of a random graph."""
    if model == "sink":
        return graph("hub", columns, rng)[::-1, ::-1].T.copy()
    dag = np.zeros((columns, columns), bool)
    if model == "hub":
        for j in range(1, columns):
            dag[0 if rng.random() < 0.6 else rng.integers(0, j), j] = True
        return dag
    pairs = list(itertools.combinations(range(columns), 2))
    for place in rng.choice(len(pairs), round(EDGES.get(model, 1.2) * columns), replace=False):
        dag[pairs[place]] = True
    return dag


def drawn(model: str, columns: int, n: int, seed: int):
    """A random graph, records of it as a table, and its schema."""
    rng = np.random.default_rng(seed)
    dag, values = graph(model, columns, rng), np.zeros((n, columns))
    table, described = pd.DataFrame(), {}
    for j in range(columns):
        values[:, j] = rng.standard_t(3, size=n) / np.sqrt(3.0) if model == "heavy tails" else rng.normal(size=n)
        for i in np.flatnonzero(dag[:, j]):
            link = LINKS.get(model, lambda a: a)
            values[:, j] += rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.0) * link(values[:, i])
        name = f"c{j}"
        if model == "mixed" and rng.random() < 0.4:
            values[:, j] = 2.0 * (values[:, j] > np.quantile(values[:, j], rng.uniform(0.3, 0.7))) - 1.0
            table[name] = np.where(values[:, j] > 0, "yes", "no")
            described[name] = {"kind": "binary", "levels": ["no", "yes"]}
        else:
            limit = float(np.ceil(4.0 * values[:, j].std()))
            table[name] = values[:, j]
            described[name] = {"kind": "continuous", "bounds": [-limit, limit]}
    return dag, table, {"columns": described}


def fishers_z(values: np.ndarray):
    """A test of no partial correlation: (i, j, given) -> p-value."""
    correlations = np.corrcoef(values, rowvar=False)

    def p_value(i, j, given):
        inverse = np.linalg.inv(correlations[np.ix_([i, j, *given], [i, j, *given])])
        r = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
        return float(2.0 * norm.sf(np.sqrt(len(values) - len(given) - 3.0) * abs(np.arctanh(r))))

    return p_value


def found_in(table: pd.DataFrame, schema: dict, epsilon: float, delta: float, seed: int):
    """The graph of one budget, or of PC without privacy."""
    if (epsilon, delta) != PUBLIC:
        return jaxdp.discover(table, schema=schema, epsilon=epsilon, delta=delta, key=jax.random.key(seed))
    columns = [table[name] if table[name].dtype.kind == "f" else table[name] == "yes" for name in table]
    values = np.column_stack(columns).astype(float)
    test, levels = fishers_z(values), (0,) * values.shape[1]
    return pc(jax.random.key(seed), values, test=test, level=LEVEL, max_order=MAX_ORDER, levels=levels)


def measured(model: str, columns: int, n: int, budget: tuple[float, float], runs: int) -> dict:
    """The line of the record: means over the runs; arrows are those of edges that exist."""
    rows, methods = [], set()
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        dag, table, schema = drawn(model, columns, n, seed)
        found_graph = found_in(table, schema, *budget, seed)
        methods.add(found_graph.method)
        found, true = np.asarray(found_graph.cpdag), cpdag_of(dag)
        edges, truth = (np.triu(one | one.T) for one in (found, true))
        right = int((edges & truth).sum())
        every = found & ~found.T
        arrows, pointed = every & (true | true.T), true & ~true.T
        rows.append(
            {
                "shd": shd(found, true),
                "empty": int(truth.sum()),
                "edges": int(edges.sum()),
                "false": int(edges.sum()) - right,
                "f1": 2.0 * right / (edges.sum() + truth.sum()),
                "true_arrows": int(pointed.sum()),
                "arrows": int(arrows.sum()),
                "right": int((arrows & pointed).sum()),
                "reversed": int((arrows & dag.T).sum()),
            }
        )
    head = {"model": model, "columns": columns, "n": n, "epsilon": budget[0], "delta": budget[1], "runs": runs}
    means = {name: round(float(np.mean([row[name] for row in rows])), 3) for name in rows[0]}
    return head | {"methods": sorted(methods)} | means


def cell_of(line: dict) -> tuple:
    """Where a line stands in the tables."""
    return line["model"], line["columns"], line["n"], (line["epsilon"], line["delta"])


def table(lines: list[dict]) -> str:
    """One row per model, columns and records: at each budget distance, F1, false edges, arrows and reversed ones."""
    found = []
    cells = {cell_of(line): line for line in lines}
    for columns, n, model in itertools.product(sorted({line["columns"] for line in lines}), RECORDS, MODELS):
        row = {budget: cells.get((model, columns, n, budget)) for budget in BUDGETS}
        some = next(filter(None, row.values()), None)
        if some:
            told = [
                f"{one['shd']:.1f}; {one['f1']:.2f}; {one['false']:.1f}; {one['arrows']:.1f} ({one['reversed']:.1f})"
                if one
                else ""
                for one in row.values()
            ]
            found.append([model, columns, n, f"{some['empty']:.1f}", f"{some['true_arrows']:.1f}", *told])
    return markdown(["model", "columns", "n", "no edges", "arrows", *BUDGETS.values()], found)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--records", type=int, nargs="+", default=list(RECORDS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    args = parser.parse_args()
    lines = rows(RECORD)
    if args.table:
        return fill(PAGE, "structural-models", table(lines))
    done = {cell_of(line) for line in lines}
    cells = itertools.product(args.columns, args.records, args.models, BUDGETS)
    todo = [(model, columns, n, budget) for columns, n, model, budget in cells]
    append(RECORD, (measured(*cell, args.runs) for cell in todo if cell not in done))


if __name__ == "__main__":
    main()
