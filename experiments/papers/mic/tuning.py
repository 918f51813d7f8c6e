"""Table 2: the B that minimises the weighted error of each mechanism, per n and epsilon.

python -m experiments.papers.mic.tuning [--quick] [--sizes 250,1000] [--factor 10] [--join FILES] [--out DIR]

Tuned at noise levels and seeds of its own (`synthetic.TRAINING_LEVELS`); `python -m experiments.papers.mic` judges the
defaults at the nine levels of the paper.
"""

import argparse
import dataclasses
import json
import pathlib

from experiments.papers.mic import config, synthetic, tables
from experiments.record import Recorder
from jaxdp.independence.mic import mic_common, mic_parameters, mic_sensitivity

TUNED_EPSILONS = (0.1, 0.3, 1.0, 3.0)
NULL_DRAWS = 128
TRAINING_SEED = 1


def tune_laplace(recorder, chosen, sizes, c: float) -> None:
    """One row per n, epsilon and B: weighted and plain mean absolute error of MICrLaplace."""
    _, star = synthetic.laws(chosen.every, training=True)
    weight = synthetic.weights(star)
    for n in sizes:
        x, y = synthetic.samples(chosen.every, n, chosen.data_sets, TRAINING_SEED, training=True)
        for cells in [b for b in chosen.cells if b <= n]:
            values = synthetic.coefficients(x, y, cells, c)
            bound = mic_sensitivity.range_bound(n, cells)
            chance = null_mean(n, cells, c)
            for epsilon in TUNED_EPSILONS:
                found, raw = (
                    synthetic.laplace_errors(values, star, bound / epsilon, chosen.draws, m)["absolute"]
                    for m in (chance, 0.0)
                )
                recorder.add(
                    part="tuning",
                    mechanism="MICrLaplace",
                    n=n,
                    cells=cells,
                    c=c,
                    epsilon=epsilon,
                    weighted=float(found @ weight),
                    mean=float(found.mean()),
                    raw_weighted=float(raw @ weight),
                    raw_mean=float(raw.mean()),
                    chance=chance,
                    laws=len(star),
                    data_sets=chosen.data_sets,
                )


def null_mean(n: int, cells: float, c: float = mic_parameters.MASTER_FACTOR) -> float:
    """Mean MICr of independent uniform columns."""
    draws = mic_common.null_table(n, float(cells), c, "capped", "range", NULL_DRAWS)
    return float(draws.mean())


def table(rows) -> dict:
    """{epsilon: {n: (best B, its weighted error, its mean error)}}."""
    best: dict = {}
    for row in rows:
        slot = best.setdefault(row["epsilon"], {})
        if row["n"] not in slot or row["weighted"] < slot[row["n"]][1]:
            slot[row["n"]] = (row["cells"], row["weighted"], row["mean"])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.papers.mic.tuning", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sizes", default="", help="comma list of n, default all (none with --join)")
    parser.add_argument("--factor", type=float, default=mic_parameters.MASTER_FACTOR, help="c")
    parser.add_argument("--every", type=int, help="take every E-th of the 210 laws (3 or 7: all levels)")
    parser.add_argument("--data-sets", type=int, help="per law, default 2 (--quick) or 3")
    parser.add_argument("--join", type=pathlib.Path, nargs="*", default=[], help="JSONL files of earlier runs to add")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/mic"))
    arguments = parser.parse_args()
    chosen = config.QUICK if arguments.quick else config.FULL
    chosen = dataclasses.replace(
        chosen, every=arguments.every or chosen.every, data_sets=arguments.data_sets or chosen.data_sets
    )
    sizes = [int(part) for part in arguments.sizes.split(",") if part]
    if not arguments.join:
        sizes = sizes or list(chosen.sizes)
    recorder = Recorder(arguments.out, "_".join(["tuning", f"c{arguments.factor:g}", *map(str, sizes)]))
    tune_laplace(recorder, chosen, sizes, arguments.factor)
    rows = [json.loads(line) for path in arguments.join for line in path.read_text().splitlines()] + recorder.rows
    for epsilon, row in table(rows).items():
        for n, (cells, weighted, mean) in sorted(row.items()):
            print(f"epsilon={epsilon:g} n={n}: B={cells} weighted={weighted:.4f} mean={mean:.4f}", _beside(n, epsilon))
    print(*tables.write(rows, arguments.out))


def _beside(n: int, epsilon: float) -> str:
    """The default, and the paper's choice."""
    paper = config.PAPER_TABLE_2.get(n, {"laplace": {}})["laplace"].get(epsilon)
    told = f", paper: B={paper[1]} c={paper[0]}" if paper else ""
    return f"default: B={mic_parameters.cells_allowed(n, epsilon):g}{told}"


if __name__ == "__main__":
    main()
