"""Worst neighbours of tests of many case/control tables (docs/theory/gwas.md): one person's whole genotype changes."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.independence.tables.gwas import Tables
from jaxdp.simulate.examples import GROUP

TABLES = 4


def genotype(generator, tables):
    """The tables after one person's whole genotype is replaced: one group's count moves by 1 in some of them."""
    counts = [np.asarray(part).copy() for part in (tables.exposed_cases, tables.exposed_controls)]
    steps = generator.integers(-1, 2, size=counts[0].shape) if generator.uniform() < 0.5 else generator.choice([-1, 1])
    group = int(generator.integers(2))
    counts[group] = np.clip(counts[group] + steps, 0, None)
    return dataclasses.replace(tables, exposed_cases=jnp.asarray(counts[0]), exposed_controls=jnp.asarray(counts[1]))


def one_genotype():
    """One person's genotype changes and moves every table by the whole bound of `UnitCircle`: 19 cases become 20."""
    controls = jnp.full(TABLES, 2)
    return tuple(Tables(jnp.full(TABLES, cases), controls) for cases in (GROUP - 1, GROUP))


def one_rare_genotype():
    """One person's genotype leaves all tables but the first alone."""
    controls = jnp.full(TABLES, 2)
    return tuple(Tables(jnp.full(TABLES, 8).at[0].set(cases), controls) for cases in (GROUP - 1, GROUP))


def answers(result):
    """Places of the reported tables, as one number."""
    fired = result.release.value == 1
    return jnp.sum(jnp.where(fired, 2.0 ** jnp.arange(TABLES), 0.0))


def chosen(result):
    """Released scores of the table that moves, less the half way; 0 if it was not chosen."""
    place = result.release.earlier[0].value
    return jnp.sum(jnp.where(place == 0, result.release.value, 0.0))
