"""Coverage and width of the intervals of effect sizes (docs/theory/effect_sizes.md).

    python -m experiments.evidence.coverage [--replicates 1000] [--n 1000] [--epsilon 1] [--only NAME] [--effects 0 0.3]

One JSON line per test and true effect. X and Y are normal with correlation r given Z, after a sine of Z unless the test
says otherwise; codes cut normal columns into levels. The truth is r, or (tau, log odds, phi, windows left out) the mean
of the estimate without noise over many data sets of n records.
"""

import argparse
import dataclasses
import functools
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import provenance
from jaxdp import core
from jaxdp.data.dataset import BINARY, ORDINAL, Column, Data, Domain
from jaxdp.mechanisms import Exact

RECORD = Path(__file__).parent / "coverage.jsonl"
EFFECTS = (0.0, 0.3, 0.6)
LIMIT = 400  # data sets without noise that a limit is the mean of
BOUND = 4.0


def continuous(key, n: int, r: float, depth: int = 1):
    """Normal X and Y on bounds of four sds, correlated given Z; trends in the first column of Z."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.normal(key_z, (n, depth))
    common = jax.random.normal(key_x, (n,))
    other = r * common + math.sqrt(1.0 - r * r) * jax.random.normal(key_y, (n,))
    trend = 0.5 * jnp.sin(2.0 * z[:, 0]) if depth else 0.0
    x, y = (jnp.clip((part + trend) / BOUND, -1.0, 1.0) for part in (common, other))
    z = jnp.clip(z / BOUND, -1.0, 1.0)
    domain = Domain((Column(),), (Column(),), (Column(),) * depth)
    return Data(x, y, z if depth else None, domain)


def straight(key, n: int, r: float):
    """Normal X and Y on bounds of four sds, correlated given two columns of Z that move both along planes."""
    data = continuous(key, n, r, depth=0)
    z = jnp.clip(jax.random.normal(jax.random.fold_in(key, 1), (n, 2)) / BOUND, -1.0, 1.0)
    trend = 0.3 * jnp.sum(z, axis=1)
    x, y = (jnp.clip(part + trend, -1.0, 1.0) for part in (data.x, data.y))
    return Data(x, y, z, Domain((Column(),), (Column(),), (Column(),) * 2))


def coded(key, n: int, r: float, levels: int, strata: int = 0):
    """Normal columns cut into equally likely levels; the strata shift both."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.randint(key_z, (n,), 0, max(strata, 1))
    common = jax.random.normal(key_x, (n,))
    other = r * common + math.sqrt(1.0 - r * r) * jax.random.normal(key_y, (n,))
    shift = 0.3 * (z - 0.5 * (strata - 1)) if strata else 0.0
    cuts = jax.scipy.stats.norm.ppf(jnp.arange(1, levels) / levels)
    x, y = (jnp.sum(part[:, None] + jnp.reshape(shift, (-1, 1)) > cuts, axis=1) for part in (common, other))
    side = (Column(BINARY if levels == 2 else ORDINAL, levels),)
    return Data(x, y, z[:, None] if strata else None, Domain(side, side, (Column(ORDINAL, strata),) if strata else ()))


def natural(key, n: int, r: float):
    """X normal about a known function of Z, Y correlated with its residual; in their own units."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.normal(key_z, (n,))
    own = jax.random.normal(key_x, (n,))
    return Data(jnp.sin(z) + own, r * own + math.sqrt(1.0 - r * r) * jax.random.normal(key_y, (n,)), z)


LAW = jaxdp.GaussianLaw(function=jnp.sin)
CASES = {  # name: (epsilon -> test, (key, n, r) -> data, whether the truth is r itself)
    "band-gcm": (lambda e: jaxdp.BandGCM(epsilon=e), continuous, True),
    "band-gcm, released": (lambda e: jaxdp.BandGCM(epsilon=e, variance="released"), continuous, False),
    "contrast-gcm": (lambda e: jaxdp.ContrastGCM(epsilon=e), functools.partial(continuous, depth=2), False),
    "partition-gcm": (
        lambda e: jaxdp.PartitionGCM(epsilon=e, scale_x=0.25, scale_y=0.25, standardize=True),
        continuous,
        True,
    ),
    "partition-gcm, no z": (
        lambda e: jaxdp.PartitionGCM(epsilon=e, scale_x=0.25, scale_y=0.25),
        functools.partial(continuous, depth=0),
        True,
    ),
    "conditional-kendall": (
        lambda e: jaxdp.ConditionalKendall(epsilon=e),
        functools.partial(coded, levels=5, strata=4),
        False,
    ),
    "conditional-kendall, 2 x 2": (
        lambda e: jaxdp.ConditionalKendall(epsilon=e),
        functools.partial(coded, levels=2, strata=4),
        False,
    ),
    "conditional-spearman": (
        lambda e: jaxdp.ConditionalSpearman(epsilon=e),
        functools.partial(coded, levels=5, strata=4),
        False,
    ),
    "noisy-table": (
        lambda e: jaxdp.NoisyTableChi2(epsilon=e, num_null=19),
        functools.partial(coded, levels=2),
        False,
    ),
    "partial-correlation": (lambda e: jaxdp.PartialCorrelation(epsilon=e), straight, True),
    "private-crt-normal": (lambda e: jaxdp.PrivateCRT(epsilon=e, law=LAW, variant="normal"), natural, False),
}


def measure(name: str, n: int, epsilon: float, r: float, replicates: int) -> dict:
    """One row."""
    build, draw, is_r = CASES[name]
    test = build(epsilon)

    @jax.jit
    def found(keys):
        def one(key):
            key_data, key_run = jax.random.split(key)
            result = core.run(test, key_run, draw(key_data, n, r))
            return result.effect, *result.interval

        return jax.lax.map(one, keys, batch_size=50)

    effect, low, high = (np.asarray(part) for part in found(jax.random.split(jax.random.key(5), replicates)))
    truth = r if is_r else limit(test, draw, n, r)
    covered = float(np.mean((low <= truth) & (truth <= high)))
    return {
        "test": name,
        "n": n,
        "epsilon": epsilon,
        "r": r,
        "truth": round(float(truth), 4),
        "covered": round(covered, 4),
        "standard_error": round(math.sqrt(max(covered * (1 - covered), 1e-9) / replicates), 4),
        "median_width": round(float(np.median(high - low)), 3),
        "median_effect": round(float(np.median(effect)), 4),
        "replicates": replicates,
    }


def limit(test, draw, n: int, r: float) -> float:
    """Mean of the estimate without noise, from data clipped as the noisy test clips them."""
    if hasattr(test, "default_winsorize") and test.winsorize is None:
        test = dataclasses.replace(test, winsorize=float(test.default_winsorize(n)))
    exact = dataclasses.replace(test, epsilon=None, mechanism=Exact())

    @jax.jit
    def estimates(keys):
        return jax.lax.map(lambda key: core.run(exact, key, draw(key, n, r)).effect, keys, batch_size=50)

    return float(jnp.mean(estimates(jax.random.split(jax.random.key(6), LIMIT))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--effects", type=float, nargs="+", default=EFFECTS, help="true correlations")
    parser.add_argument("--only", choices=tuple(CASES))
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args()
    commit = provenance()["commit"]
    with args.out.open("a") as file, jax.enable_x64(True):
        for name in [args.only] if args.only else CASES:
            for r in args.effects:
                row = {**measure(name, args.n, args.epsilon, r, args.replicates), "commit": commit}
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(row, flush=True)


if __name__ == "__main__":
    main()
