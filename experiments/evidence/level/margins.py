"""Level and power of MICr's p-value on margins of many forms, with and without its share for even margins.

    python -m experiments.evidence.level margins [--n 1000] [--replicates 2000] [--minutes 10] [--out FILE]

One JSON line per (law, n, share): rejections at level 0.05, epsilon 1. X and Y are independent with the margin named,
or lie on a design of `experiments.evidence.power` (normal margins of sd a quarter of the half range; "off centre":
scaled by 0.4 and moved by 0.4 of it), 400 replicates. share 0.2 is what `jaxdp test --method micr-laplace` builds.
"""

import argparse
import functools
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.evidence.power.__main__ import ALTERNATIVES, without_z
from experiments.record import provenance
from jaxdp import catalogue, core
from jaxdp.data import Column, Data, Domain
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "margins.jsonl"
LEVEL, EPSILON, POWER_REPLICATES = 0.05, 1.0, 400
DOMAIN = Domain((Column(),), (Column(),))


def t2(key, n):
    """Student's law of two degrees of freedom."""
    above, below = jax.random.normal(key, (n,)), jax.random.exponential(jax.random.fold_in(key, 1), (n,))
    return above / jnp.sqrt(below)


def two_peaks(key, n):
    """Half of the records about -0.5, half about 0.4."""
    return jnp.where(jnp.arange(n) % 2, -0.5, 0.4) + 0.05 * jax.random.normal(key, (n,))


def half_at_zero(key, n):
    """Half of the records at one value."""
    return jnp.where(jnp.arange(n) % 2, 0.0, jax.random.uniform(key, (n,), minval=-1.0))


MARGINS = {
    "uniform": lambda key, n: jax.random.uniform(key, (n,), minval=-1.0),
    "normal": lambda key, n: 0.25 * jax.random.normal(key, (n,)),
    "normal off centre": lambda key, n: 0.4 + 0.1 * jax.random.normal(key, (n,)),
    "lognormal": lambda key, n: 0.1 * jnp.exp(jax.random.normal(key, (n,))) - 1.0,
    "Student's t, 2": lambda key, n: 0.05 * t2(key, n),
    "two peaks": two_peaks,
    "half at one value": half_at_zero,
    "five values": lambda key, n: (jax.random.binomial(key, 4, 0.3, (n,)) - 2.0) / 2.0,
}
DESIGNS = ("linear 0.1", "linear 0.25", "quadratic 0.8", "circle", "sine 4a", "variance exp(a/2)")
OFF = ", off centre"


def of_margin(key, n: int, margin: str) -> Data:
    """Independent columns; the records of one are in another order."""
    key_x, key_y, key_order = jax.random.split(key, 3)
    x, y = (jnp.clip(MARGINS[margin](part, n), -1.0, 1.0) for part in (key_x, key_y))
    return Data(x, jax.random.permutation(key_order, y), None, DOMAIN)


def of_design(key, n: int, design: str) -> Data:
    """Dependent columns."""
    found = without_z(key, n, float(ALTERNATIVES[design.removesuffix(OFF)]))
    if not design.endswith(OFF):
        return found
    return Data(0.4 + 0.4 * found.x, 0.4 + 0.4 * found.y, None, found.domain)


def laws(n: int, replicates: int):
    """(law, kind, draw, replicates), the nulls first."""
    for margin in MARGINS:
        yield f"null: {margin}", functools.partial(of_margin, n=n, margin=margin), replicates
    for design in (*DESIGNS, *(name + OFF for name in DESIGNS[1:3])):
        yield design, functools.partial(of_design, n=n, design=design), POWER_REPLICATES


def rejections(test, draw, replicates: int, seed: int) -> int:
    """At level 0.05."""

    def one(key):
        key_data, key_run = jax.random.split(key)
        return core.run(test, key_run, draw(key_data)).p_value

    keys = jax.random.split(jax.random.key(seed), replicates)
    return int(np.sum(np.asarray(jax.jit(lambda k: jax.lax.map(one, k, batch_size=16))(keys)) <= LEVEL))


def rows(sizes, replicates: int, done):
    """One row for each law, size and share that is not done."""
    for n in sizes:
        asked = catalogue.find("micr-laplace").build(EPSILON, DOMAIN, Options(num_records=n))
        for number, (law, draw, count) in enumerate(laws(n, replicates)):
            for test in (jaxdp.MICrLaplace(epsilon=EPSILON), asked):
                head = {"law": law, "n": n, "share": test.range_share}
                if json.dumps(head) not in done:
                    yield head | {
                        "rejections": rejections(test, draw, count, number),
                        "replicates": count,
                        **provenance(),
                    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[250, 1000, 5000])
    parser.add_argument("--replicates", type=int, default=2000, help="of nulls")
    parser.add_argument("--minutes", type=float, default=10.0, help="start no row after these")
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args(arguments)
    old = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {json.dumps({name: row[name] for name in ("law", "n", "share")}) for row in old}
    ends = time.monotonic() + 60 * args.minutes
    with args.out.open("a") as file:
        for row in rows(args.n, args.replicates, done):
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"{row['law']} {row['n']} {row['share']}: {row['rejections']}/{row['replicates']}", flush=True)
            if time.monotonic() > ends:
                break
