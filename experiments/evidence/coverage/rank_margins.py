"""Level of equivalence at its margin of `kruskal-wallis` of two groups and `log-rank` (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.rank_margins [--replicates 2500]
    python -m experiments.evidence.coverage.rank_margins --table      # the table of the page, from the record

One JSON line per test, design, n and epsilon: the share of data sets in which the test says that the effect is within a
margin. `level`: the margin is the true distance from no effect, so that 0.05 is allowed; `power`: where there is no
effect, at the same margin. Designs are those of `mann_whitney` and of `survival`, which nothing here was chosen on.
"""

import functools
import itertools
import time
import zlib

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.evidence.coverage import mann_whitney
from experiments.evidence.survival import __main__ as survival
from experiments.record import append, command_line, fill, keys_of, markdown, rows, settings
from jaxdp import catalogue, core
from jaxdp.data.dataset import Data
from jaxdp.independence.survival import log_rank as private
from jaxdp.plan.survival import released
from jaxdp.spec import Options

RECORD = mann_whitney.RECORD.parent / "rank_margins.jsonl"
EPSILONS, RECORDS = (0.5, 1.0, 4.0), (500, 2000)
SEED, LEVEL = 41, 0.05
RANKS = {  # design -> that without an effect
    "normal, 0.5 sd": "normal, no shift",
    "normal, 0.5 sd, 10/90": "normal, no shift, 10/90",
    "normal, sds 1:3, 0.5 sd": "normal, no shift",
    "lognormal, times 2": "lognormal, no shift",
    "lognormal, times 2, 90/10": "lognormal, no shift, 90/10",
    "four fifths equal, two thirds of the second": "four fifths equal, no shift",
}
RATIOS = {
    "ratio 1.5": "chosen: equal",
    "ratio 1.5, 20 %": "chosen: equal",
    "ratio 1.5, squared time": "squared time",
    "ratio 0.5": "unequal censoring, 40 %",
    "ratio 3, 30 %": "8 % events",
}


@functools.cache
def _ranks(n: int, epsilon: float):
    test = catalogue.find("kruskal-wallis").build(epsilon, mann_whitney.DOMAIN, Options(num_records=n))

    @jax.jit
    def found(keys, numbers, margin):
        def one(key):
            key_data, key_run = jax.random.split(key)
            data = mann_whitney.draw(key_data, n, numbers)
            release = core.run(test, key_run, data).release
            shapes = core.public_shapes(data)
            above, below = (test.one_sided(shapes, release, 0.5 + side * margin) for side in (-1.0, 1.0))
            return jnp.maximum(above[0], below[1])

        return jax.lax.map(one, keys, batch_size=50)

    return found


def ranks(name: str, margin: float, n: int, epsilon: float, keys) -> np.ndarray:
    """P-values of equivalence."""
    return np.asarray(_ranks(n, epsilon)(keys, jnp.asarray(mann_whitney.DESIGNS[name].numbers, float), margin))


@functools.partial(jax.jit, static_argnames="n")
def _ratios(test, keys, tables, margin, n: int):
    def one(both):
        second, last = released(test, *both, n)
        law = second._law(last)
        return jnp.maximum(law.one_sided(-margin)[0], law.one_sided(margin)[1])

    return jax.lax.map(one, (keys, tables), batch_size=250)


def ratios(name: str, margin: float, n: int, epsilon: float, keys) -> np.ndarray:
    """P-values of equivalence, on tables as `survival` draws them."""
    drawn = np.random.default_rng(zlib.crc32(f"{name} {n} {epsilon}".encode()))
    cells = survival.DESIGNS[name].cells().ravel()
    tables = jnp.asarray(
        drawn.multinomial(n, cells, size=len(keys)).reshape(-1, 1, private.PAIR, *private.OF_TIME), float
    )
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((n,), (n, 2))]
    test = jaxdp.LogRank(epsilon=epsilon).specialize(Data(*shapes, None, survival.DOMAIN))
    return np.asarray(_ratios(test, keys, tables, margin, n))


def measure(test: str, name: str, null: str, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start = time.process_time()
    if test == "log-rank":
        made, margin = ratios, abs(float(np.log(survival.DESIGNS[name].ratio)))
    else:
        made, margin = ranks, abs(mann_whitney.truth(mann_whitney.DESIGNS[name]) - 0.5)
    row = {"test": test, "design": name, "n": n, "epsilon": epsilon, "margin": round(margin, 4)}
    for told, design in (("level", name), ("power", null)):
        keys = keys_of(SEED, f"{test} {told} {name} {n} {epsilon:g}", replicates)
        row[told] = round(float(np.mean(made(design, margin, n, epsilon, keys) <= LEVEL)), 4)
    return row | {"replicates": replicates, "seconds": round(time.process_time() - start, 1)}


def table() -> str:
    """The table of the page: level; power."""
    found = {(r["test"], r["design"], r["n"], r["epsilon"]): r for r in rows(RECORD)}
    columns = list(itertools.product(RECORDS, EPSILONS))
    lines = []
    for test, designs in (("kruskal-wallis", RANKS), ("log-rank", RATIOS)):
        for name in designs:
            cells = [found.get((test, name, *column)) for column in columns]
            margin = next((f"{row['margin']:.3f}" for row in cells if row), "")
            told = ["" if row is None else f"{row['level']:.3f}; {row['power']:.2f}" for row in cells]
            lines.append([f"`{test}`", name, margin, *told])
    return markdown(["test", "design", "margin", *settings(columns)], lines) + "\n"


def main() -> None:
    args = command_line(__doc__, 2500).parse_args()
    if args.table:
        return fill(mann_whitney.PAGE, "rank_margins", table())
    with jax.enable_x64(True):
        for test, designs in (("log-rank", RATIOS), ("kruskal-wallis", RANKS)):
            cells = itertools.product(RECORDS, EPSILONS, designs.items())
            append(RECORD, (measure(test, *names, n, e, args.replicates) for n, e, names in cells))


if __name__ == "__main__":
    main()
