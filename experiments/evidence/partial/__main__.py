"""Partial correlation given five columns of Z: level, coverage, and power beside the test that is not private.

    python -m experiments.evidence.partial [--replicates 1000] [--out experiments/evidence/partial/partial.jsonl]

One JSON line per (d, n, epsilon, r); a run goes on where the file ends. Z is normal, its columns an autoregression of
0.5; X and Y are 0.7 times the standardised sum of Z plus normal noise whose correlation is r; bounds 8 sd to either
side of a centre that is 0.5 sd off. `winsorised-partial-correlation` is built as the command line builds it (private
centres and scales). Fisher's z is that of the same records, without privacy.
"""

import argparse
import functools
import math
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from experiments.record import append, rows
from jaxdp import catalogue, core
from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.spec import Options

LEVEL, LOADING, BOUND, OFF = 0.05, 0.7, 8.0, 0.5
SETTINGS = ((5, 10_000, 1.0),)
EFFECTS = (0.0, 0.3, 0.1, 0.05)
BATCH = 20


def linear(key, n: int, depth: int, r):
    """x, y and z of the linear model, in units of sd."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    steps = jax.random.normal(key_z, (n, depth))
    columns = [steps[:, 0]]
    for j in range(1, depth):
        columns.append(0.5 * columns[-1] + math.sqrt(0.75) * steps[:, j])
    variance = sum(0.5 ** abs(i - j) for i in range(depth) for j in range(depth))
    shared = LOADING * sum(columns) / math.sqrt(variance)
    own, other = jax.random.normal(key_x, (n,)), jax.random.normal(key_y, (n,))
    rest = math.sqrt(1.0 - LOADING**2)
    x, y = shared + rest * own, shared + rest * (r * own + jnp.sqrt(1.0 - r**2) * other)
    return x, y, jnp.stack(columns, axis=1)


def in_schema(x, y, z) -> Data:
    """The same as a schema with those bounds codes it."""
    x, y, z = (jnp.clip((part + OFF) / BOUND, -1.0, 1.0) for part in (x, y, z))
    return Data(x, y, z, Domain((Column(),), (Column(),), (Column(),) * z.shape[1]))


def fisher(x, y, z):
    """Fisher's z statistic of the partial correlation."""
    design = jnp.concatenate([jnp.ones((x.shape[0], 1)), z], axis=1)
    targets = jnp.stack([x, y], axis=1)
    left = targets - design @ jnp.linalg.lstsq(design, targets)[0]
    r = jnp.sum(left[:, 0] * left[:, 1]) / jnp.sqrt(jnp.sum(left[:, 0] ** 2) * jnp.sum(left[:, 1] ** 2))
    return jnp.sqrt(x.shape[0] - z.shape[1] - 3.0) * jnp.arctanh(r)


@functools.cache
def program(depth: int, n: int, epsilon: float):
    """keys, r -> p-value, interval and Fisher's z of each data set, compiled once for every r."""
    domain = Domain((Column(),), (Column(),), (Column(),) * depth)
    test = catalogue.find("winsorised-partial-correlation").build(epsilon, domain, Options(level=LEVEL, num_records=n))

    @jax.jit
    def found(keys, r):
        def one(key):
            key_data, key_run = jax.random.split(key)
            columns = linear(key_data, n, depth, r)
            result = core.run(test, key_run, in_schema(*columns))
            return result.p_value, *result.interval, fisher(*columns)

        return jax.lax.map(one, keys)

    return found


def measure(depth: int, n: int, epsilon: float, r: float, replicates: int) -> dict:
    """One row."""
    found = program(depth, n, epsilon)
    seed = zlib.crc32(f"{depth}/{n}/{epsilon}/{r}".encode())
    keys = jax.random.split(jax.random.key(seed), (replicates // BATCH, BATCH))
    parts = [[np.asarray(part) for part in found(batch, r)] for batch in keys]
    p_value, low, high, z = (np.concatenate(part) for part in zip(*parts, strict=True))
    return {
        "rejections": int(np.sum(p_value <= LEVEL)),
        "covered": int(np.sum((low <= r) & (r <= high))),
        "median_width": round(float(np.median(high - low)), 4),
        "fisher_rejections": int(np.sum(2 * norm.sf(np.abs(z)) <= LEVEL)),
        "replicates": p_value.size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "partial.jsonl")
    args = parser.parse_args()
    names = ("d", "n", "epsilon", "r")
    done = {tuple(row[name] for name in names) for row in rows(args.out)}
    todo = [(*setting, r) for setting in SETTINGS for r in EFFECTS if (*setting, r) not in done]
    append(args.out, (dict(zip(names, key, strict=True)) | measure(*key, args.replicates) for key in todo))


if __name__ == "__main__":
    main()
