"""Small data sets that tests run on: for the contract suite, attacks on sensitivities, audits and level checks.

Every function takes a key and a number of records n; tests name them in the examples of their specs. First those with
something to find, then those in which independence holds.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.data.records import as_records
from jaxdp.simulate.designs.confounder import SineLaw, sine_confounder, wave

FAR = 1e3  # a value beyond every clipping limit in use
GROUP = 20  # people in each group of `case_control_counts`
LAW = SineLaw(noise_sd=1.0, complexity=2.0)  # of x given z in `continuous` and `sine_confounder`


def continuous(key, n: int, dim: int = 1) -> Data:
    """A confounder z (dim columns), x, and y that depends on x."""
    return sine_confounder(key, n, effect=0.5, dim=dim)


def bounded(key, n: int) -> Data:
    """`continuous` with x and y in [-1, 1]."""
    data = continuous(key, n)
    return Data(jnp.clip(data.x / 4, -1, 1), jnp.clip(data.y / 4, -1, 1), data.z)


def in_a_schema(key, n: int) -> Data:
    return _scaled(continuous(key, n))


def gradual_in_a_schema(key, n: int) -> Data:
    return _scaled(gradual(key, n))


def _scaled(data: Data) -> Data:
    x, y, z = (jnp.clip(values / 4, -1, 1) for values in (data.x, data.y, data.z))
    return Data(x, y, z, Domain((Column(),), (Column(),), (Column(),)))


def several_columns(key, n: int) -> Data:
    """Two columns of x, three of y, among them both of the first data set, and one z."""
    first, second = (continuous(k, n) for k in jax.random.split(key))
    return Data(jnp.stack([first.x, second.x], 1), jnp.stack([first.y, second.y, first.x], 1), first.z)


def without_z(key, n: int) -> Data:
    return dataclasses.replace(continuous(key, n), z=None)


def three_features(key, n: int) -> Data:
    """Three columns that are tested in pairs, as x and as y, and one z."""
    data = several_columns(key, n)
    return dataclasses.replace(data, x=data.y)


def two_features(key, n: int) -> Data:
    """Two columns that are tested as a pair, as x and as y, and one z."""
    data = continuous(key, n)
    pair = jnp.stack([data.x, data.y], axis=1)
    return Data(pair, pair, data.z)


def four_columns(key, n: int) -> Data:
    """Columns of every kind that are tested in pairs, as x and as y: continuous, two, three and five levels; no z."""
    data = continuous(key, n)
    value = jnp.clip(data.x / 4, -1, 1)
    other = jnp.clip(data.y / 4, -1, 1)
    return _in_pairs(value, other > 0, jnp.floor(1.5 * (1.0 + other)), jnp.floor(2.5 * (1.0 + value)))


def _in_pairs(value, pair, three, five) -> Data:
    columns = (Column(), Column(BINARY, 2), Column(ORDINAL, 3), Column(CATEGORICAL, 5))
    both = jnp.stack([value, pair * 1.0, jnp.clip(three, 0, 2) * 1.0, jnp.clip(five, 0, 4) * 1.0], axis=1)
    return Data(both, both, None, Domain(columns, columns))


def pair(key, n: int) -> Data:
    """Two dependent columns in [-1, 1], no z."""
    data = continuous(key, n)
    return Data(jnp.tanh(data.x), jnp.tanh(data.y))


def strong(key, n: int) -> Data:
    """A confounder z in [-1, 1] and its two children, strongly dependent."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n,), minval=-1.0)
    x = jnp.sin(2.0 * z) + 0.5 * jax.random.normal(key_x, (n,))
    return Data(x, x + 0.5 * jax.random.normal(key_y, (n,)), z)


def codes(key, n: int, levels: tuple[int, int, int] = (3, 3, 2)) -> Data:
    """Codes of dependent columns x, y, z with so many levels (0 for no z), and their public description."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.randint(key_z, (n,), 0, max(levels[2], 1))
    x = jax.random.randint(key_x, (n,), 0, levels[0])
    y = jnp.minimum((x + jax.random.randint(key_y, (n,), 0, levels[1])) // 2, levels[1] - 1)
    return Data(x, y, z if levels[2] else None, described(levels))


def equal_strata(key, n: int, levels: tuple[int, int, int] = (3, 3, 2)) -> Data:
    """Codes of independent x and y, every level as likely, in strata of one size (0 levels for no z)."""
    x, y = jax.random.randint(key, (2, n), 0, levels[0])
    return Data(x, y, jnp.arange(n) % levels[2] if levels[2] else None, described(levels))


def twins(key, n: int) -> Data:
    """`equal_strata` with y equal to x."""
    data = equal_strata(key, n)
    return dataclasses.replace(data, y=data.x)


def described(levels: tuple[int, ...]) -> Domain:
    """The domain of ordered columns x, y, z with so many levels; 0 for no column."""
    return Domain(*((Column(ORDINAL, count),) if count else () for count in levels))


def groups(key, n: int, cases: float = 0.6, controls: float = 0.3) -> Data:
    """Exposure x at these rates of cases (the first half, y = 1, public) and controls."""
    y = (jnp.arange(n) < n // 2).astype(jnp.int32)
    x = (jax.random.uniform(key, (n,)) < controls + (cases - controls) * y).astype(jnp.int32)
    return Data(x, y, None, Domain((Column(BINARY, 2),), (Column(BINARY, 2),)))


def attacked_groups(key, n: int) -> Data:
    """`groups` with exposure 0.4 in both, for audits."""
    return groups(key, n, 0.4, 0.4)


def features(key, n: int, count: int = 3):
    """A table (n, count) in [-1, 1] whose columns share a factor."""
    key_shared, key_own = jax.random.split(key)
    shared = jax.random.normal(key_shared, (n, 1))
    return jnp.tanh(0.5 * shared + 0.5 * jax.random.normal(key_own, (n, count)))


def case_control_counts(key, n: int):
    """Exposed among `GROUP` cases and `GROUP` controls for n tables, a tenth of them with an effect: two (n,)."""
    key_cases, key_controls = jax.random.split(key)
    rates = (key_cases, jnp.where(jnp.arange(n) % 10 == 0, 0.7, 0.3)[:, None]), (key_controls, 0.3)
    return tuple(jnp.sum(jax.random.bernoulli(k, rate, (n, GROUP)), axis=1) for k, rate in rates)


def records(key, n: int, levels: tuple[int, ...] = (2, 3)):
    """Codes of independent columns with so many levels, as records."""
    drawn = [jax.random.randint(k, (n,), 0, c) for k, c in zip(jax.random.split(key, len(levels)), levels, strict=True)]
    return as_records(jnp.stack(drawn, axis=1), levels)


# Null hypotheses.


def separate_columns(key, n: int, count: tuple[int, int] = (2, 3)) -> Data:
    """Several columns of x and of y that share the wave of z and nothing else."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = 2.0 * jax.random.normal(key_z, (n,))
    shared = wave(z, 2.0)[:, None]
    noise_x, noise_y = (jax.random.normal(k, (n, p)) for k, p in zip((key_x, key_y), count, strict=True))
    return Data(shared + noise_x, noise_y - shared, z)


def four_separate_columns(key, n: int) -> Data:
    """`four_columns`, independent; one level in ten of the last column's records is rare."""
    keys = jax.random.split(key, 4)
    value, chance = jnp.tanh(jax.random.normal(keys[0], (n,))), jax.random.uniform(keys[3], (n,))
    pair, three = jax.random.bernoulli(keys[1], 0.3, (n,)), jax.random.randint(keys[2], (n,), 0, 3)
    return _in_pairs(value, pair, three, jnp.searchsorted(jnp.array([0.1, 0.3, 0.5, 0.7]), chance))


def separate_features(key, n: int, count: int = 3) -> Data:
    """Columns that share the wave of z and nothing else, tested in pairs."""
    data = separate_columns(key, n, (count, 1))
    return Data(data.x, data.x, data.z)


def scaled(key, n: int) -> Data:
    """Strong means, small noise, everything in [-1, 1] by its schema; x and y independent given z."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n,), minval=-1.0)
    x = 0.6 * jnp.sin(3 * z) + 0.2 * jax.random.normal(key_x, (n,))
    return Data(x, 0.5 * z + 0.2 * jax.random.normal(key_y, (n,)), z, Domain(z=(Column(),)))


def uniform(key, n: int) -> Data:
    """Two independent uniform columns, no z."""
    return Data(*jax.random.uniform(key, (2, n), minval=-1.0))


def normal(key, n: int) -> Data:
    """Two independent normal columns, no z."""
    return Data(*jax.random.normal(key, (2, n)))


def leaning_codes(key, n: int, levels: tuple[int, int, int]) -> Data:
    """Codes whose laws depend on z (last of levels; 0 for no z), independent given it."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.randint(key_z, (n,), 0, max(levels[2], 1))
    lean = 0.5 * z[:, None] - 0.25
    x, y = (
        jax.random.categorical(k, lean * jnp.arange(1.0 * count)[None, :])
        for k, count in ((key_x, levels[0]), (key_y, levels[1]))
    )
    return Data(x, y, z if levels[2] else None, described(levels))


def quarter_half_quarter(key, n: int) -> Data:
    """Codes of x with the law 1/4, 1/2, 1/4; y is constant."""
    x = jax.random.categorical(key, jnp.log(jnp.array([0.25, 0.5, 0.25])), shape=(n,))
    return Data(x, jnp.zeros_like(x), None, described((3, 3, 0)))


def equal_groups(key, n: int) -> Data:
    """`groups` with exposure 0.3 in both."""
    return groups(key, n, 0.3, 0.3)


def equal_counts(key, n: int, size: int = 100):
    """Exposed among `size` cases and controls for n tables, rate 0.3 in all: two (n,)."""
    return tuple(jnp.sum(jax.random.bernoulli(key, 0.3, (2, n, size)), axis=2))


def uniform_features(key, n: int):
    """A table (n, 3) of independent columns, uniform on [-1, 1]."""
    return jax.random.uniform(key, (n, 3), minval=-1.0)


def gradual(key, n: int, dim: int = 1, count: tuple[int, int] = (1, 1)) -> Data:
    """Laws that change slowly with z: linear means, noise of sd 1; x and y independent given z."""
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n, dim), minval=-1.0)
    trend = 0.5 * jnp.sum(z, axis=1, keepdims=True)
    x, y = (trend + jax.random.normal(k, (n, p)) for k, p in zip((key_x, key_y), count, strict=True))
    x, y, z = (values[:, 0] if values.shape[1] == 1 else values for values in (x, y, z))
    return Data(x, y, z)


def two_data_sets(before, after, shape=None):
    """Neighbours made by hand, from rows (x, y, z) of numbers; `shape` turns the three columns into data."""
    make = shape or Data
    return tuple(make(*np.array(rows, float).T) for rows in (before, after))
