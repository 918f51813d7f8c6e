"""Coverage, level and width of slopes and partial correlations (docs/evidence/coverage.md).

    python -m experiments.evidence.coverage.slopes [--replicates 400] [--only NAME ...] [--records 500 3000 50000]
    python -m experiments.evidence.coverage.slopes --table       # the table of the page, from the record

One JSON line per method, design, n and epsilon. Tests are made by the builder of `jaxdp.test` from columns of a schema;
the true number is that of the columns clipped at the schema's bounds, by least squares on 4e6 records. A data set
without an interval is counted apart (`answered`); `covered` is the share of the intervals that hold the truth,
`rejected` that of p < 0.05 among all data sets. `plain_width`: of the sandwich interval without privacy.
"""

import functools
import itertools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.record import append, command_line, fill, keys_of, markdown, rows, settings
from jaxdp import catalogue, core
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "slopes.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "coverage.md"
METHODS = ("linear-regression", "partial-correlation")
RECORDS, EPSILONS = (500, 3000, 50_000), (0.5, 1.0, 4.0)
SEED, MANY = 2911, 1_000_000


def _normal(key, n):
    return jax.random.normal(key, (n,))


def normal(keys, n):
    x = _normal(keys[0], n)
    return x, 0.5 * x + _normal(keys[1], n), ()


def null(keys, n):
    return _normal(keys[0], n), _normal(keys[1], n), ()


def lognormal(keys, n):
    x = jnp.exp(_normal(keys[0], n))
    return x, 0.3 * x + jnp.exp(_normal(keys[1], n)), ()


def zeros(keys, n):
    x = jnp.where(jax.random.uniform(keys[2], (n,)) < 0.3, jax.random.exponential(keys[0], (n,)), 0.0)
    return x, 0.3 * x + jax.random.exponential(keys[1], (n,)), ()


def student(keys, n):
    x = jax.random.t(keys[0], 3.0, (n,))
    return x, 0.3 * x + jax.random.t(keys[1], 3.0, (n,)), ()


def growing(keys, n):
    x = _normal(keys[0], n)
    return x, 0.5 * x + jnp.abs(x) * _normal(keys[1], n), ()


def growing_null(keys, n):
    x = _normal(keys[0], n)
    return x, jnp.abs(x) * _normal(keys[1], n), ()


def given_one(keys, n):
    z = _normal(keys[2], n)
    x = 0.7 * z + _normal(keys[0], n)
    return x, 0.7 * z + 0.4 * x + _normal(keys[1], n), (z,)


def given_one_null(keys, n):
    z = _normal(keys[2], n)
    return 0.7 * z + _normal(keys[0], n), 0.7 * z + _normal(keys[1], n), (z,)


def explained(keys, n):
    """Z explains 0.95 of X."""
    z = _normal(keys[2], n)
    return z + 0.05**0.5 / 0.95**0.5 * _normal(keys[0], n), z + _normal(keys[1], n), (z,)


def explained_strong(keys, n):
    """Z explains 0.95 of X, and X explains nearly all else of Y."""
    x, _, (z,) = explained(keys, n)
    return x, z + 2.0 * (x - z) + 0.2 * _normal(keys[1], n), (z,)


def nearly_all_explained(keys, n):
    """Z explains 0.99 of X, and X explains much of what is left of Y."""
    z = _normal(keys[2], n)
    x = z + 0.1 * _normal(keys[0], n)
    return x, z + 2.0 * (x - z) + 0.2 * _normal(keys[1], n), (z,)


def nearly_all_explained_null(keys, n):
    """Z explains 0.99 of X."""
    z = _normal(keys[2], n)
    return z + 0.1 * _normal(keys[0], n), z + _normal(keys[1], n), (z,)


def explained_both_null(keys, n):
    """Z explains 0.96 of X and about as much of Y, whose spread grows with Z."""
    z = _normal(keys[2], n)
    return z + 0.2 * _normal(keys[0], n), z + 0.2 * (1.0 + jnp.abs(z)) * _normal(keys[1], n), (z,)


def explained_both(keys, n):
    """The same with a slope of a half."""
    x, y, (z,) = explained_both_null(keys, n)
    return x, y + 0.5 * (x - z), (z,)


def given_growing_null(keys, n):
    z = _normal(keys[2], n)
    x = 0.7 * z + _normal(keys[0], n)
    return x, 0.7 * z + jnp.abs(x) * _normal(keys[1], n), (z,)


def skewed_null(keys, n):
    z = jax.random.exponential(keys[2], (n,))
    return z + jax.random.exponential(keys[0], (n,)), z + jax.random.exponential(keys[1], (n,)), (z,)


def two_null(keys, n):
    first, second = jax.random.normal(keys[2], (2, n))
    mean = 0.5 * (first + second)
    return mean + _normal(keys[0], n), mean + _normal(keys[1], n), (first, second)


def collinear_null(keys, n):
    """Two columns of Z with a correlation of 0.99."""
    first, own = jax.random.normal(keys[2], (2, n))
    second = 0.99 * first + (1.0 - 0.99**2) ** 0.5 * own
    return 0.7 * first + _normal(keys[0], n), 0.7 * second + _normal(keys[1], n), (first, second)


FOUR, SKEWED, TEN = (-4.0, 4.0), (0.0, 20.0), (-12.0, 12.0)
DESIGNS = {  # name: (columns, bounds of x, y and each z)
    "normal": (normal, FOUR, FOUR, ()),
    "normal, null": (null, FOUR, FOUR, ()),
    "normal, bounds at 1 sd": (normal, (-1.0, 1.0), (-1.12, 1.12), ()),
    "normal, bounds at 10 sd": (normal, (-10.0, 10.0), (-11.0, 11.0), ()),
    "lognormal": (lognormal, SKEWED, SKEWED, ()),
    "zeros in 7 of 10": (zeros, (0.0, 8.0), (0.0, 8.0), ()),
    "t3": (student, TEN, TEN, ()),
    "spread grows with x": (growing, FOUR, (-8.0, 8.0), ()),
    "spread grows with x, null": (growing_null, FOUR, (-8.0, 8.0), ()),
    "given z": (given_one, FOUR, (-6.0, 6.0), (FOUR,)),
    "given z, null": (given_one_null, FOUR, FOUR, (FOUR,)),
    "given z, spread grows, null": (given_growing_null, FOUR, (-8.0, 8.0), (FOUR,)),
    "given skewed z, null": (skewed_null, (0.0, 10.0), (0.0, 10.0), ((0.0, 8.0),)),
    "z explains 0.95 of x, null": (explained, FOUR, (-5.0, 5.0), (FOUR,)),
    "z explains 0.95 of x, x nearly all else of y": (explained_strong, FOUR, FOUR, (FOUR,)),
    "z explains 0.99 of x, null": (nearly_all_explained_null, FOUR, (-5.0, 5.0), (FOUR,)),
    "z explains 0.99 of x, x much else of y": (nearly_all_explained, FOUR, FOUR, (FOUR,)),
    "z explains 0.96 of x and much of y, null": (explained_both_null, FOUR, FOUR, (FOUR,)),
    "z explains 0.96 of x and much of y": (explained_both, FOUR, FOUR, (FOUR,)),
    "given two z, null": (two_null, FOUR, FOUR, (FOUR, FOUR)),
    "two z correlated 0.99, null": (collinear_null, FOUR, FOUR, (FOUR, FOUR)),
}


def draw(key, n: int, name: str) -> Data:
    """Data as the schema scales them."""
    columns, *bounds, bounds_of_z = DESIGNS[name]
    x, y, z = columns(jax.random.split(key, 3), n)
    x, y, *z = (
        (jnp.clip(values, low, high) - 0.5 * (low + high)) / (0.5 * (high - low))
        for values, (low, high) in zip((x, y, *z), (*bounds, *bounds_of_z), strict=True)
    )
    return Data(x, y, jnp.stack(z, axis=1) if z else None, domain(len(z)))


def domain(depth: int) -> Domain:
    """Continuous columns."""
    return Domain((Column(),), (Column(),), (Column(),) * depth)


def plain(data):
    """Slope, correlation, and the half widths of the slope's sandwich interval and of Fisher's, without privacy."""
    n = len(data.x)
    design = jnp.ones((n, 1)) if data.z is None else jnp.concatenate([jnp.ones((n, 1)), data.z], axis=1)
    u, v = (part - design @ jnp.linalg.lstsq(design, part)[0] for part in (data.x, data.y))
    slope, correlation = u @ v / (u @ u), u @ v / jnp.sqrt((u @ u) * (v @ v))
    residual = v - slope * u
    score = u * v / jnp.sqrt(jnp.mean(u**2) * jnp.mean(v**2))
    score = score - 0.5 * correlation * (u**2 / jnp.mean(u**2) + v**2 / jnp.mean(v**2))
    return (slope, 1.96 * jnp.sqrt(jnp.sum((u * residual) ** 2)) / (u @ u)), (
        correlation,
        1.96 * jnp.std(score) / n**0.5,
    )


@functools.cache
def truth(name: str) -> tuple[float, float]:
    """Slope and correlation in half ranges."""
    found = [plain(draw(jax.random.fold_in(jax.random.key(1), k), MANY, name)) for k in range(4)]
    return tuple(float(np.mean([float(one[j][0]) for one in found])) for j in range(2))


@functools.cache
def program(method: str, name: str, n: int):
    """(keys, epsilon) -> p-value, effect, low, high, half width without privacy."""
    depth = len(DESIGNS[name][3])
    entry = catalogue.find(method)

    @jax.jit
    def found(keys, epsilon):
        def one(key):
            key_data, key_run = jax.random.split(key)
            data = draw(key_data, n, name)
            test = entry.build(epsilon, domain(depth), Options(num_records=n))
            result = core.run(test, key_run, data)
            return result.p_value, result.effect, *result.interval, plain(data)[METHODS.index(method)][1]

        return jax.lax.map(one, keys, batch_size=50 if n < 10_000 else 10)

    return found


def refused(method: str, name: str, n: int, epsilon: float) -> bool:
    """Whether `jaxdp test` refuses before the charge."""
    test = catalogue.find(method).build(epsilon, domain(len(DESIGNS[name][3])), Options(num_records=n))
    return test.validity(jax.eval_shape(lambda key: draw(key, n, name), jax.random.key(0))).verdict == "refuse"


def measure(method: str, name: str, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    start = time.process_time()
    row = {"method": method, "design": name, "n": n, "epsilon": epsilon}
    if refused(method, name, n, epsilon):
        return row | {"refused": True, "replicates": 0}
    keys = keys_of(SEED, f"{method} {name} {n} {epsilon:g}", replicates)
    p, effect, low, high, half = map(np.asarray, program(method, name, n)(keys, epsilon))
    true, answered = truth(name)[METHODS.index(method)], np.isfinite(low)
    inside = ((low <= true) & (true <= high))[answered]
    agree = ((p < 0.05) == ((low > 0.0) | (high < 0.0)))[answered]
    some = bool(answered.any())
    return row | {
        "refused": False,
        "truth": round(true, 5),
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside.mean()), 4) if some else None,
        "rejected": round(float((p < 0.05).mean()), 4),
        "p_and_interval_agree": round(float(agree.mean()), 4) if some else None,
        "median_effect": round(float(np.median(effect[answered])), 5) if some else None,
        "width": round(float(np.median((high - low)[answered])), 5) if some else None,
        "plain_width": round(float(np.median(2.0 * half)), 5),
        "replicates": replicates,
        "seconds": round(time.process_time() - start, 1),
    }


def _cell(row: dict | None, value: str) -> str:
    if row is None:
        return ""
    if row["refused"]:
        return "refused"
    if value == "rejected":
        return f"{row[value]:.3f}"
    if value == "width":
        return "–" if row["width"] is None else f"{row['width'] / row['plain_width']:.1f}"
    share = row["answered"]
    if share < 0.1:
        return f"({share:.2f})" if share else "none"
    return f"{row['covered']:.3f}" + (f" ({share:.2f})" if share < 0.995 else "")


def tables() -> str:
    """Coverage, rejections and widths of each method."""
    found = {(r["method"], r["design"], r["n"], r["epsilon"]): r for r in rows(RECORD)}
    heads = [(n, epsilon) for n in RECORDS for epsilon in EPSILONS]
    made = []
    for value, title in (
        ("covered", "coverage"),
        ("rejected", "share of p < 0.05"),
        ("width", "width over that of the sandwich interval without privacy"),
    ):
        for method in METHODS:
            lines = []
            for name in DESIGNS:
                cells = [found.get((method, name, n, e)) for n, e in heads]
                true = next((f"{r['truth']:.3f}" for r in cells if r and not r["refused"]), "")
                lines.append([name, true, *(_cell(row, value) for row in cells)])
            made.append(f"\n### {method}: {title}\n\n{markdown(['design', 'truth', *settings(heads)], lines)}")
    return "\n".join(made)


def main() -> None:
    parser = command_line(__doc__, 400)
    parser.add_argument("--only", nargs="+", choices=sorted(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--records", type=int, nargs="+", default=list(RECORDS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    asked = parser.parse_args()
    if asked.table:
        return fill(PAGE, "slopes", tables())
    done = {(r["method"], r["design"], r["n"], r["epsilon"]) for r in rows(RECORD)}
    cells = (
        (method, name, n, epsilon)
        for name, method, n, epsilon in itertools.product(asked.only, asked.methods, asked.records, EPSILONS)
    )
    with jax.enable_x64(True):
        append(RECORD, (measure(*cell, asked.replicates) for cell in cells if cell not in done))


if __name__ == "__main__":
    main()
