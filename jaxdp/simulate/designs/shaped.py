"""A synthetic null and alternative shaped like a user's schema: its columns, levels and domain; no data are read."""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp.data import conditioning
from jaxdp.data.coding import ColumnRule
from jaxdp.data.columns import with_repeats
from jaxdp.data.dataset import CONTINUOUS, Column, Data, Domain, equally_spaced
from jaxdp.data.schema import Schema, as_names
from jaxdp.randomness import normals
from jaxdp.simulate.designs.discrete import ordered_codes


def from_schema(
    schema: Schema,
    n: int,
    *,
    x: str | Sequence[str],
    y: str | Sequence[str],
    given: str | Sequence[str] = (),
    effect: float = 0.0,
    strength: float = 0.5,
    residual_sd: float = 0.3,
    complexity: float = 3.0,
    codes: bool = False,
) -> Callable[..., Data]:
    """A design with the arrays that `schema.read` would return for n records: a callable key -> Data.

    Given columns are drawn independently: continuous ones uniformly on their bounds, levels uniformly. Each column of x
    and y has the latent value strength m(z) + residual_sd N with m(z) the mean over the given columns of
    sin(complexity z) for x and of cos(complexity z) for y (z scaled to [-1, 1]); the noise of every column of y is
    (N_y + effect N_x)/sqrt(1 + effect^2) with N_x that of the first column of x, so effect 0 is the null hypothesis
    and the margins do not move with the effect. Continuous columns are cut to their bounds, discrete ones threshold
    latent/residual_sd.
    codes: as in `schema.read`. Errors: ValueError for columns that the schema does not describe.
    """
    check.at_least(1, n=n)
    check.positive(residual_sd=residual_sd)
    roles = [as_names(role, names) for role, names in (("x", x), ("y", y), ("given", given))]
    if not roles[0] or not roles[1]:
        raise ValueError("x and y must name at least one column each.")
    rules = tuple(tuple(schema.rule(name) for name in names) for names in roles)
    numbers = {"effect": effect, "strength": strength, "residual_sd": residual_sd, "complexity": complexity}
    return functools.partial(shaped, n=n, rules=rules, codes=codes, **{k: float(v) for k, v in numbers.items()})


def shaped(
    key,
    n: int,
    *,
    rules: tuple[tuple[ColumnRule, ...], ...],
    codes: bool,
    effect: ArrayLike,
    strength: ArrayLike,
    residual_sd: ArrayLike,
    complexity: ArrayLike,
) -> Data:
    """The records of `from_schema`; rules: those of x, of y and of the given columns."""
    rules_x, rules_y, rules_z = rules
    key_z, key_x, key_y = jax.random.split(key, 3)
    columns_z = tuple(column for rule in rules_z for column in conditioning.columns(rule))
    place = jax.random.uniform(key_z, (n, len(columns_z)), minval=-1.0, maxval=1.0)
    z = with_repeats([_given(column, place[:, j]) for j, column in enumerate(columns_z)], columns_z)
    position = [_position(column, values) for column, values in zip(columns_z, z, strict=True)]
    noise_x = normals.normal(key_x, (len(rules_x), n))
    noise_y = normals.normal(key_y, (len(rules_y), n))
    noise_y = (noise_y + effect * noise_x[:1]) / jnp.sqrt(1.0 + effect**2)

    def columns(rules, function, noise):
        middle = sum(function(complexity * p) for p in position) / max(1, len(position)) + jnp.zeros(n)
        latent = [strength * middle + residual_sd * row for row in noise]
        values = [_coded(rule, row, residual_sd, codes) for rule, row in zip(rules, latent, strict=True)]
        matrix = jnp.concatenate([v.reshape(n, -1) for v in values], axis=1)
        return matrix[:, 0] if matrix.shape[1] == 1 else matrix

    def describe(rules, scaled):
        return tuple(column for rule in rules for column in (rule.scaled_columns() if scaled else rule.code_column()))

    return Data(
        columns(rules_x, jnp.sin, noise_x),
        columns(rules_y, jnp.cos, noise_y),
        jnp.stack(z, axis=1) if z else None,
        domain=Domain(describe(rules_x, not codes), describe(rules_y, not codes), columns_z),
    )


def _given(column: Column, place):
    """A given column as `schema.read` codes it, from a uniform place in [-1, 1]."""
    count = column.days if column.kind == CONTINUOUS else column.levels
    if not count:
        return place
    codes = jnp.clip(jnp.floor(0.5 * (place + 1.0) * count), 0.0, count - 1.0)
    return equally_spaced(codes, count) if column.days else codes


def _position(column: Column, values):
    """Where a given value stands on [-1, 1]: what x and y depend on, so that conditioning on it suffices."""
    return values if column.kind == CONTINUOUS else equally_spaced(values, column.levels)


def _coded(rule: ColumnRule, latent, residual_sd, codes: bool):
    if rule.is_continuous:
        return jnp.clip(latent, -1.0, 1.0)
    levels = len(rule.levels)
    code = ordered_codes(latent / residual_sd, levels).astype(latent.dtype)
    if codes:
        return code
    if rule.needs_indicators:
        return jnp.where(code[:, None] == jnp.arange(1.0 * levels)[None, :], 1.0, -1.0)
    return equally_spaced(code, levels)
