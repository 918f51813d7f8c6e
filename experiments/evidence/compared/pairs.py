"""All pairs of eight columns with levels, at one budget: jaxdp beside synthetic records and a test of each pair.

    python -m experiments.evidence.compared.pairs [--replicates 200] [--packages] [--out FILE]

One JSON line per (n, law, method); a run goes on where the file ends. Three of the 28 pairs are related ("three"), or
none: the second column of a pair repeats the first in 5, 10 or 20 % of the records. p-values are adjusted
by Holm at 0.05. `families`: data sets with a false discovery, `false`: all of them; `found`: data sets that find each
true pair. Epsilon is 1 for the replacement of one record; a row with "delta" and MST and AIM have a delta of 1e-6 too.
`--packages`: MST, which needs mbi (`requirements.txt`). `peers.py` says what the others do.
"""

import argparse
import itertools
import json
import zlib
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.evidence.compared import peers
from experiments.evidence.compared.answers import DELTA, EPSILON, LEVEL, theirs
from experiments.record import append, rows

RECORD = Path(__file__).parent / "pairs.jsonl"
SHARES = (*[(0.5, 0.3, 0.2)] * 6, (0.7, 0.3), (0.4, 0.3, 0.2, 0.1))  # of the levels of each column
LEVELS = tuple(map(len, SHARES))
PAIRS = [*itertools.combinations(range(len(SHARES)), 2)]
REPEATED = {(0, 1): 0.05, (2, 3): 0.1, (4, 5): 0.2}  # of the true pairs
SIZES, LAWS = (2000, 10_000), ("none", "three")


def drawn(rng, n: int, law: str) -> list[np.ndarray]:
    """Codes of the columns."""
    columns = [rng.choice(len(shares), n, p=shares) for shares in SHARES]
    for (first, second), share in REPEATED.items() if law == "three" else ():
        columns[second] = np.where(rng.uniform(size=n) < share, columns[first], columns[second])
    return columns


def ours(delta: float = 0.0):
    """p-values of all pairs by jaxdp's default."""
    schema = {
        "columns": {f"c{j}": {"kind": "categorical", "levels": [*range(many)]} for j, many in enumerate(LEVELS)},
    }

    def answer(rng, *columns):
        table = {f"c{j}": codes for j, codes in enumerate(columns)}
        key = jax.random.key(int(rng.integers(2**31)))
        found = jaxdp.test_pairs(table, schema=schema, epsilon=EPSILON, delta=delta, key=key)
        p_values = {(pair["x"], pair["y"]): pair["p_value"] for pair in found.pairs}  # sorted by what was found
        return [p_values[f"c{i}", f"c{j}"] for i, j in PAIRS]

    return answer


def each_pair(columns, test=peers.chi2):
    """p-values of a test of each pair's table."""
    tables = (np.zeros((LEVELS[i], LEVELS[j])) for i, j in PAIRS)
    found = []
    for (i, j), table in zip(PAIRS, tables, strict=True):
        np.add.at(table, (columns[i], columns[j]), 1.0)
        found.append(test(table))
    return found


def through(made):
    """Chi-squared tests of synthetic records."""
    return lambda rng, *columns: each_pair(made(int(rng.integers(2**31)), columns, EPSILON, DELTA, LEVELS))


METHODS = {
    "jaxdp: pair-contrasts": ours(),
    "jaxdp: pair-contrasts, delta": ours(DELTA),
    "AIM, chi-squared": through(peers.aim),
    "DPrivStats chi-squared, a share each": lambda rng, *columns: each_pair(
        columns, lambda table: peers.dprivstats_chi2(rng, table, EPSILON / len(PAIRS))
    ),
    "not private: chi-squared": lambda rng, *columns: each_pair(columns),
}
PACKAGES = {"MST, chi-squared": through(peers.mst)}


def holm(p_values) -> np.ndarray:
    """Which of many hypotheses are rejected at `LEVEL`."""
    p_values = np.asarray(p_values)
    order = np.argsort(p_values)
    kept = p_values[order] > LEVEL / np.arange(p_values.size, 0, -1)
    rejected = np.zeros(p_values.size, bool)
    rejected[order] = np.cumsum(kept) == 0
    return rejected


def summary(answers, seconds: float, law: str) -> dict:
    """The numbers of a row."""
    found = np.array([holm(one) for one in answers])
    true = np.array([law == "three" and pair in REPEATED for pair in PAIRS])
    return {
        "replicates": len(found),
        "families": int(found[:, ~true].any(axis=1).sum()),
        "false": int(found[:, ~true].sum()),
        "found": found[:, true].sum(axis=0).tolist(),
        "seconds": float(f"{seconds:.2g}"),
    }


def measured(replicates: int, methods, done):
    """One row for each size, law and method that is not done."""
    for n, law in itertools.product(SIZES, LAWS):
        head = {"part": "all pairs", "n": n, "epsilon": EPSILON, "law": law}
        seed = zlib.crc32(json.dumps(head).encode())
        rng = np.random.default_rng(seed)
        sets = [drawn(rng, n, law) for _ in range(replicates)]
        for name, answer in methods.items():
            if (n, law, name) not in done:
                answers, seconds = theirs({name: answer}, seed, sets)[name]
                yield {**head, "method": name, "seed": seed, **summary(answers, seconds, law)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    done = {(row["n"], row["law"], row["method"]) for row in rows(args.out)}
    append(args.out, measured(args.replicates, PACKAGES if args.packages else METHODS, done))


if __name__ == "__main__":
    main()
