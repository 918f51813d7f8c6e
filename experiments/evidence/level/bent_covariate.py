"""Least squares where a column of Z acts otherwise than linearly: level and power, without and with its square in Z.

    python -m experiments.evidence.level.bent_covariate [--replicates 200]
    python -m experiments.evidence.level.bent_covariate --table      # the table of docs/theory/residual_scores.md

X and Y are f(age) + 0.3 sex and normal residuals of sd 1, on bounds of 5; age is uniform, sex has two levels. f: age
("line"), and shapes centred and scaled to its range. One JSON line for each test, n and epsilon: the shares of p < 0.05
given (age, sex), and given (age, age squared, sex), of true nulls for every f, and where Y follows X by `slope`.
"""

import functools
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import append, command_line, fill, markdown, rows
from jaxdp.data.dataset import BINARY, Column, Data, Domain

RECORD = Path(__file__).parent / "bent_covariate.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "residual_scores.md"
SHAPES = {
    "line": lambda age: age,
    "square": lambda age: 1.5 * (age**2 - 1.0 / 3.0),
    "bent line": lambda age: 1.5 * (jnp.abs(age - 0.3) - 0.545),
    "step": lambda age: jnp.where(age > 0.3, 1.0, -1.0) + 0.3,
}
TESTS = {"linear-regression": jaxdp.LinearRegression, "partial-correlation": jaxdp.PartialCorrelation}
SETTINGS = {(3000, 1.0): 0.2, (10_000, 1.0): 0.07, (10_000, 4.0): 0.04}  # n, epsilon -> slope
BOUND, LEVEL, SEED = 5.0, 0.05, 5


def drawn(key, n: int, squared: bool, shape, slope) -> Data:
    """Columns as the schema scales them. shape: place in `SHAPES`."""
    keys = jax.random.split(key, 4)
    age, sex = jax.random.uniform(keys[0], (n,), minval=-1.0), jax.random.bernoulli(keys[1], 0.5, (n,)) * 1.0
    mean = jax.lax.switch(shape, list(SHAPES.values()), age) + 0.3 * (sex - 0.5)
    own = jax.random.normal(keys[2], (n,))
    y = mean + slope * own + jax.random.normal(keys[3], (n,))
    z = [age, *([2.0 * age**2 - 1.0] if squared else []), sex]
    domain = Domain((Column(),), (Column(),), (Column(),) * (len(z) - 1) + (Column(BINARY, 2),))
    x, y = (jnp.clip(value / BOUND, -1.0, 1.0) for value in (mean + own, y))
    return Data(x, y, jnp.stack(z, axis=1), domain)


@functools.cache
def program(test: str, n: int, epsilon: float, squared: bool):
    def one(key, shape, slope):
        first, second = jax.random.split(key)
        return jaxdp.run(TESTS[test](epsilon=epsilon), second, drawn(first, n, squared, shape, slope)).p_value

    return jax.jit(lambda keys, shape, slope: jax.lax.map(lambda key: one(key, shape, slope), keys, batch_size=20))


def measure(test: str, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    keys, slope = jax.random.split(jax.random.key(SEED), replicates), SETTINGS[n, epsilon]

    def found(shape: int, slope: float) -> list[float]:
        made = [program(test, n, epsilon, squared)(keys, shape, slope) for squared in (False, True)]
        return [round(float(np.mean(np.asarray(p) < LEVEL)), 4) for p in made]

    nulls = {name: found(place, 0.0) for place, name in enumerate(SHAPES)}
    power = found(0, slope)
    return {"test": test, "n": n, "epsilon": epsilon, **nulls, "slope": slope, "power": power, "replicates": replicates}


def table() -> str:
    """A row for each test, n and epsilon; "given age -> given age and its square"."""
    lines = []
    for row in rows(RECORD):
        shares = [" → ".join(f"{share:.3f}" for share in row[name]) for name in (*SHAPES, "power")]
        lines.append([row["test"], row["n"], f"{row['epsilon']:g}", *shares[:-1], row["slope"], shares[-1]])
    return markdown(["test", "n", "epsilon", *SHAPES, "slope", "power"], lines) + "\n"


def main() -> None:
    args = command_line(__doc__, 200).parse_args()
    if args.table:
        return fill(PAGE, "bent_covariate", table())
    cells = itertools.product(TESTS, SETTINGS)
    append(RECORD, (measure(test, *setting, args.replicates) for test, setting in cells))


if __name__ == "__main__":
    main()
