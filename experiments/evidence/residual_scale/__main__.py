"""Power and level of PartitionGCM on schema-like data, by the guessed and the true residual sd.

    python -m experiments.evidence.residual_scale --quick | --full [--out DIR]

Columns fill their public bounds unevenly: Z is a scaled Beta(2, 4), the means of X and Y given Z are waves of
amplitude 0.4 on [-1, 1], residuals are normal with sd 0.05 to 0.4 and correlation 0 or 0.3, and values
outside the bounds are clipped. Writes rejections.jsonl: one row per cell, rejections at level 0.05 of `replicates`.
"""

import argparse
import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxdp
from experiments.record import Recorder
from jaxdp.data.dataset import Column, Data, Domain

DOMAIN = Domain((Column(),), (Column(),), (Column(),))
AMPLITUDE, LEVEL = 0.4, 0.05


@dataclasses.dataclass(frozen=True)
class Config:
    """The grid of one run; seed 1 draws the data and the noise."""

    num_records: tuple[int, ...] = (300, 1000)
    epsilons: tuple[float, ...] = (0.5, 1.0, 3.0)
    effects: tuple[float, ...] = (0.0, 0.3)
    residual_sds: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4)
    guesses: tuple[float, ...] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
    replicates: int = 500
    seed: int = 1


QUICK = Config(num_records=(1000,), epsilons=(1.0,), residual_sds=(0.1, 0.4), guesses=(0.05, 0.15, 0.5), replicates=200)


def design(key, n: int, residual_sd, effect) -> Data:
    """Schema-like data: everything on [-1, 1], clipped at the bounds."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = 2.0 * jax.random.beta(key_z, 2.0, 4.0, (n,)) - 1.0
    noise_x = jax.random.normal(key_x, (n,))
    noise_y = effect * noise_x + jnp.sqrt(1.0 - effect**2) * jax.random.normal(key_y, (n,))
    x = jnp.clip(AMPLITUDE * jnp.sin(3.0 * z) + residual_sd * noise_x, -1.0, 1.0)
    y = jnp.clip(AMPLITUDE * jnp.cos(2.0 * z) + residual_sd * noise_y, -1.0, 1.0)
    return Data(x, y, z[:, None], domain=DOMAIN)


def rejections(config: Config, n: int):
    """One compiled program per n: (key, epsilon, effect, residual sd, guess) -> rejections."""

    def one(key, epsilon, effect, residual_sd, guess):
        key_data, key_run = jax.random.split(key)
        test = jaxdp.PartitionGCM(epsilon=epsilon, standardize=True, scale_x=guess, scale_y=guess)
        return jaxdp.run(test, key_run, design(key_data, n, residual_sd, effect)).p_value <= LEVEL

    @jax.jit
    def count(key, *cell):
        keys = jax.random.split(key, config.replicates)
        return jnp.sum(jax.lax.map(lambda k: one(k, *cell), keys, batch_size=20))

    return count


def main(config: Config) -> Iterator[dict]:
    """One row per cell."""
    for n in config.num_records:
        count = rejections(config, n)
        grid = itertools.product(config.epsilons, config.effects, config.residual_sds, config.guesses)
        for epsilon, effect, residual_sd, guess in grid:
            found = int(count(jax.random.key(config.seed), epsilon, effect, residual_sd, guess))
            row = {"n": n, "epsilon": epsilon, "effect": effect, "residual_sd": residual_sd, "guess": guess}
            yield {**row, "rejections": found, "replicates": config.replicates}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true", help="under a minute on two cores")
    size.add_argument("--full", action="store_true", help="the table of docs/schema.md")
    parser.add_argument("--out", type=Path, default=Path("out/residual_scale"))
    args = parser.parse_args()
    recorder = Recorder(args.out, "rejections")
    for row in main(QUICK if args.quick else Config()):
        print(*recorder.add(**row).values())
