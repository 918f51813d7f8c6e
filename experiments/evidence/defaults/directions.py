"""Coverage of the rank correlation of `quantile-table`, into directions.jsonl.

    python -m experiments.evidence.defaults.directions [--replicates 400]

The truth is that of the released cuts: the rank correlation of the groups in two million records of the law. r is the
correlation of the two normal variables behind the columns. `one pivot`: intervals that leave out 0 where p > 0.05.
"""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments import record
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.independence.tables.quantile_table import default_bins
from jaxdp.statistics import partition
from jaxdp.statistics.tables import quantile_bins

RECORD = Path(__file__).parent / "directions.jsonl"
LAWS = ("normal", "lognormal", "zero-inflated", "t3", "heteroscedastic", "parabola")
R, NUMBERS, EPSILONS = 0.4, (500, 3000), (0.5, 1.0, 4.0)
NULLS, LARGE, BATCH = 199, 2_000_000, 50
NUMBER = Domain((Column(),), (Column(),))


def design(key, law, *, n: int) -> Data:
    """Columns on [-1, 1] of the law of this number."""
    keys = jax.random.split(key, 4)
    a, e = jax.random.normal(keys[0], (n,)), jax.random.normal(keys[1], (n,))
    b = R * a + jnp.sqrt(1.0 - R**2) * e
    empty = jax.random.uniform(keys[2], (n,)) < 0.5
    scale = jnp.sqrt(jax.random.chisquare(keys[3], 3.0, (n,)) / 3.0)
    skew = [jnp.exp(part) / 10.0 - 1.0 for part in (a, b)]
    xs = [a / 4.0, skew[0], jnp.where(empty, -1.0, skew[0]), a / scale / 8.0, a / 4.0, a / 4.0]
    ys = [b / 4.0, skew[1], jnp.maximum((b - 0.4) / 2.0, 0.0) - 1.0, b / scale / 8.0]
    ys += [(R * a + jnp.exp(0.7 * a) * e) / 8.0, (0.6 * a**2 + R * a + e) / 6.0]
    x, y = (jnp.clip(jnp.stack(columns)[law], -1.0, 1.0) for columns in (xs, ys))
    return Data(x, y, None, NUMBER)


def steps_below(law: int) -> np.ndarray:
    """Share of the law at or below each pair of places of the grid."""
    data = jax.jit(functools.partial(design, n=LARGE))(jax.random.key(71), law)
    steps = [np.asarray(quantile_bins.steps(side, partition.Uniform())) for side in (data.x, data.y)]
    counts = np.zeros((quantile_bins.GRID + 1,) * 2)
    np.add.at(counts, tuple(steps), 1.0)
    return counts.cumsum(0).cumsum(1) / LARGE


def truth(below: np.ndarray, cuts) -> float:
    """The rank correlation of the groups that these cuts make."""
    edges = [np.append(side, quantile_bins.GRID) for side in cuts]
    at = np.pad(below[np.ix_(*edges)], ((1, 0), (1, 0)))
    chances = np.maximum(np.diff(np.diff(at, axis=0), axis=1), 0.0)
    shares = chances.sum(1), chances.sum(0)
    s, t = (np.cumsum(one) - one / 2 - 0.5 for one in shares)
    return float(s @ chances @ t / np.sqrt((shares[0] @ s**2) * (shares[1] @ t**2)))


@functools.cache
def runs(n: int, bins: int):
    """keys, law, epsilon -> p-values, estimates, intervals, cuts."""

    def one(key, law, epsilon):
        key_data, key_run = jax.random.split(key)
        test = jaxdp.QuantileTable(epsilon=epsilon, num_bins=bins, num_null=NULLS)
        result = jaxdp.run(test, key_run, design(key_data, law, n=n))
        places = result.release.earlier[0].value
        cuts = [jnp.sort(jnp.stack([places[f"{name}{j}"] + 1 for j in range(1, bins)])) for name in "xy"]
        return result.p_value, result.effect, *result.interval, *cuts

    return jax.jit(lambda keys, law, epsilon: jax.lax.map(lambda key: one(key, law, epsilon), keys, batch_size=BATCH))


def rows(replicates: int):
    """One row for each law, n and epsilon."""
    keys = iter(jax.random.split(jax.random.key(73), 100))
    for law, name in enumerate(LAWS):
        below = steps_below(law)
        for n in NUMBERS:
            for epsilon in EPSILONS:
                bins = default_bins(n, epsilon)
                drawn = runs(n, bins)(jax.random.split(next(keys), replicates), law, epsilon)
                p_values, estimates, low, high, *cuts = map(np.asarray, drawn)
                true = np.array([truth(below, pair) for pair in zip(*cuts, strict=True)])
                clear = (low > 0) | (high < 0)
                yield {
                    **{"law": name, "n": n, "epsilon": epsilon, "bins": bins, "truth": float(np.median(true))},
                    "coverage": float(np.mean((low <= true) & (true <= high))),
                    "width": float(np.median(high - low)),
                    "bias": float(np.mean(estimates - true)),
                    "clear": float(np.mean(clear)),
                    "found": float(np.mean(p_values <= 0.05 * (1 + 1e-6))),
                    "contradictions": int(np.sum(clear & (p_values > 0.05 * (1 + 1e-6)))),
                    "replicates": replicates,
                }


def table() -> str:
    """One line for each law and n; coverage (median width) for each epsilon."""
    found: dict[tuple, dict] = {}
    for row in record.rows(RECORD):
        found.setdefault((row["law"], row["n"]), {})[row["epsilon"]] = row
    lines = []
    for (law, n), cells in found.items():
        told = [f"{cells[e]['coverage']:.3f} ({cells[e]['width']:.2f})" for e in EPSILONS]
        of = [" / ".join(f"{cells[e]['truth']:.2f} ({cells[e]['bins']})" for e in EPSILONS)]
        rates = [" / ".join(f"{cells[e][name]:.2f}" for e in EPSILONS) for name in ("clear", "found")]
        lines.append([law, n, *of, *told, *rates])
    heads = ("law", "n", "R (bins)", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), "leaves out 0", "p <= .05")
    return record.markdown(heads, lines)


def main() -> None:
    args = record.command_line(__doc__, 400).parse_args()
    if not args.table:
        record.write(RECORD, rows(args.replicates))
    print(table())


if __name__ == "__main__":
    main()
