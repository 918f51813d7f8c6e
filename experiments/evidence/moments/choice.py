"""Skeleton F1 of `moment_pc` and `neighbour_pc` over sizes and budgets: what the choice between them rests on.

python -m experiments.evidence.moments.choice --kinds linear,tanh --columns 10 --n 10000 --budgets 1,2,1d [--seeds 3]
python -m experiments.evidence.moments.choice --table

Models: each pair an edge with chance 2/(d - 1) in a random order, weights +-(0.4 to 0.9), errors of sd 1 and the shape
that the kind names (else normal), children linear in their parents, or in f of the standardised ones: tanh (1.2 tanh
1.5 x), quadratic (x^2 - 1), sine (1.3 sin 2 x), relu (1.6 max(x, 0)). coded, categorical, cut: half of the columns cut
at quantiles into two or three (categorical: three or four, unordered) levels, and children follow the codes (cut: the
values). Bounds are 1.5 times the range of the data; lognormal (columns exp(0.8 x)) and heavy: most of it; tight: 94 %
of the records; loose: 20 times the range; scales: 1, 5 or 30 times it, off centre. "1d": delta = 1e-6.
"""

import collections
import time
from pathlib import Path

import jax
import numpy as np

from experiments.record import append, command_line, markdown, rows
from jaxdp import discovery
from jaxdp.data.dataset import BINARY, CATEGORICAL, CONTINUOUS, ORDINAL, Column
from jaxdp.data.records import Records

METHODS = ("moment_pc", "neighbour_pc")
DELTA = 1e-6
ROWS = Path(__file__).parent / "choice.jsonl"
SHAPES = {
    "tanh": lambda x: 1.2 * np.tanh(1.5 * x),
    "quadratic": lambda x: x**2 - 1,
    "sine": lambda x: 1.3 * np.sin(2 * x),
    "relu": lambda x: 1.6 * np.maximum(x, 0),
}
ERRORS = {
    "skew": lambda rng, n: rng.exponential(size=n) - 1,
    "gamma": lambda rng, n: (rng.gamma(0.5, size=n) - 0.5) / np.sqrt(0.5),
    "heavy": lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3),
    "uniform": lambda rng, n: rng.uniform(-1, 1, size=n) * np.sqrt(3),
}
LEVELS = ("cut", "coded", "categorical")


def model(kind: str, columns: int, n: int, seed: int) -> tuple[Records, np.ndarray]:
    """Records of one random model, continuous columns on [-1, 1], and its edges, bool (d, d)."""
    rng = np.random.default_rng([seed, columns, 77])
    order, weights = rng.permutation(columns), np.zeros((columns, columns))
    for place, parent in enumerate(order):
        for child in order[place + 1 :]:
            if rng.random() < 2.0 / (columns - 1):
                weights[parent, child] = rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 0.9)
    halved = set(rng.permutation(columns)[: columns // 2].tolist()) if kind in LEVELS else set()
    values, source = np.zeros((n, columns)), np.zeros((n, columns))
    described = [Column(CONTINUOUS, 0, f"v{v}") for v in range(columns)]
    for v in order.tolist():
        source[:, v] = ERRORS[kind](rng, n) if kind in ERRORS else rng.normal(size=n)
        for parent in np.flatnonzero(weights[:, v]):
            cause = source[:, parent]
            if kind in SHAPES:
                cause = SHAPES[kind]((cause - cause.mean()) / cause.std())
            source[:, v] = source[:, v] + weights[parent, v] * cause
        values[:, v] = source[:, v]
        if v in halved:
            codes, described[v] = _coded(rng, kind, source[:, v], v)
            values[:, v] = codes
            source[:, v] = source[:, v] if kind == "cut" else (codes - codes.mean()) / codes.std()
    for v in set(range(columns)) - halved:
        values[:, v] = _bounded(rng, kind, values[:, v])
    return Records(values, tuple(described)), weights != 0


def _coded(rng, kind: str, column: np.ndarray, place: int) -> tuple[np.ndarray, Column]:
    unordered = kind == "categorical"
    levels = int(rng.integers(3, 5) if unordered else rng.integers(2, 4))
    codes = np.searchsorted(np.quantile(column, np.arange(1, levels) / levels), column)
    described = CATEGORICAL if unordered else BINARY if levels == 2 else ORDINAL
    return codes, Column(described, levels, f"v{place}")


def _bounded(rng, kind: str, column: np.ndarray) -> np.ndarray:
    if kind == "lognormal":
        column = np.exp(0.8 * column / column.std())
    beyond = {"heavy": (0.001, 0.999), "tight": (0.03, 0.97), "lognormal": (0.0, 0.999)}.get(kind, (0.0, 1.0))
    low, high = np.quantile(column, beyond)
    centre, half = (low + high) / 2, (high - low) / 2
    if kind == "scales":
        half *= rng.choice([1, 5, 30])
        centre += half * rng.uniform(-0.5, 0.5) * 0.5
    half *= {"loose": 20.0, "tight": 1.0, "lognormal": 1.0, "scales": 1.0}.get(kind, 1.5)
    return np.clip((column - centre) / half, -1, 1)


def table() -> str:
    """Mean F1 over seeds, a line for each model, size and budget."""
    cells = collections.defaultdict(list)
    for row in rows(ROWS):
        where = row["columns"], row["n"], row["epsilon"], row["delta"], row["kind"]
        cells[where, row["method"]].append(row["f1"])
    lines = []
    for where in sorted({where for where, _ in cells}):
        found = (f"{np.mean(cells[where, name]):.2f}" if cells[where, name] else "" for name in METHODS)
        lines.append([*where, *found])
    return markdown(["columns", "n", "epsilon", "delta", "model", *(f"`{name}`" for name in METHODS)], lines)


def main() -> None:
    """Appends what is missing."""
    parser = command_line(__doc__)
    parser.add_argument("--kinds", default="linear,skew,tanh,coded,quadratic")
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--budgets", default="2")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if args.table:
        return print(table())
    names = ("kind", "columns", "n", "seed", "epsilon", "delta", "method")
    done = {tuple(row[name] for name in names) for row in rows(ROWS)}
    for kind in args.kinds.split(","):
        for seed in range(args.seeds):
            records, edges = model(kind, args.columns, args.n, seed)
            for budget in args.budgets.split(","):
                epsilon, delta = float(budget.rstrip("d")), DELTA if budget.endswith("d") else 0.0
                for method in METHODS:
                    identity = (kind, args.columns, args.n, seed, epsilon, delta, method)
                    if identity not in done:
                        _measure(records, edges, dict(zip(names, identity, strict=True)))


def _measure(records: Records, edges: np.ndarray, row: dict) -> None:
    started, key = time.process_time(), jax.random.key(row["seed"] + 50)
    settings = {"epsilon": row["epsilon"], "delta": row["delta"], "method": row["method"]}
    graph = discovery.discover(key, records, **settings)
    found, truth = np.triu(graph.skeleton), np.triu(edges | edges.T)
    row |= {
        "f1": round(2.0 * int((found & truth).sum()) / max(1, int(found.sum() + truth.sum())), 4),
        "extra": int((found & ~truth).sum()),
        "missed": int((truth & ~found).sum()),
        "processor_seconds": round(time.process_time() - started, 2),
    }
    append(ROWS, [row])


if __name__ == "__main__":
    main()
