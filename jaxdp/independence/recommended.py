"""Tests that are built when a query's columns are known: the recommended one, and one of the catalogue by its name."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax

from jaxdp import catalogue
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest, require_z_is_used
from jaxdp.data.dataset import Column, Domain
from jaxdp.spec import Columns, Options, TestSpec
from jaxdp.statistics import partition


@frozen_pytree
class Recommended(PrivateTest):
    """Private test of X independent of Y given Z by the test whose spec ranks first for these columns.

    One continuous column of Z: `BandGCM`; two to five: `ContrastGCM`; none: `PartitionGCM`. For searches and plug-ins,
    whose queries differ in their columns. Public: the choice looks at shapes and the domain alone.
    Privacy and p-value: those of the chosen test. epsilon or mechanism: handed to it.
    """

    uses_z: ClassVar[bool] = True
    spec: ClassVar[TestSpec] = TestSpec(
        name="recommended",
        summary="the recommended test for the columns of each query; for searches and plug-ins",
        columns=Columns.SCORES,
        alternatives="covariance of X and Y given Z",
        theory="docs/theory/ordered_neighbours.md",
    )

    def specialize(self, shapes):
        """The chosen test, with what it needs for these shapes. Errors: those of the chosen test."""
        entry = catalogue.default(domain_of(shapes), Columns.SCORES)
        epsilon = 1.0 if self.epsilon is None else self.epsilon
        test = entry.build(epsilon, shapes.domain, Options(num_records=shapes.x.shape[0], of_many=True))
        if self.mechanism is not None:
            test = dataclasses.replace(test, epsilon=None, mechanism=self.mechanism)
        return test.specialize(shapes)


def domain_of(shapes) -> Domain:
    """The domain of the data; all columns continuous where they have none."""
    if shapes.domain is not None:
        return shapes.domain
    roles = (shapes.x, shapes.y, shapes.z)
    return Domain(*((Column(),) * (0 if role is None else partition.num_columns(role)) for role in roles))


@frozen_pytree
class ByName(PrivateTest):
    """Private test that its entry of the catalogue builds for the columns of each query, by the one builder of all.

    entry: `jaxdp.catalogue.find(name)`. level: significance level that tests of decisions decide at. fields: further
    fields of the test's class, as pairs of a name and a value.
    Privacy and p-value: those of the built test.
    """

    entry: Any = jax.tree.static(default=None)
    level: float = jax.tree.static(default=0.05)
    fields: tuple[tuple[str, Any], ...] = jax.tree.static(default=())

    uses_z: ClassVar[bool] = True  # the built test is asked in its place

    @property
    def spec(self) -> TestSpec:  # type: ignore[override]
        return self.entry.spec

    @property
    def public_columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the entry's class."""
        return self.entry.cls.public_columns

    def specialize(self, shapes):
        """The built test, with what it needs for these shapes. Errors: those of the builder and of the test."""
        options = Options(level=self.level, num_records=shapes.x.shape[0], fields=dict(self.fields))
        test = self.entry.build(1.0 if self.epsilon is None else self.epsilon, shapes.domain, options)
        if self.mechanism is not None:
            test = dataclasses.replace(test, epsilon=None, mechanism=self.mechanism)
        require_z_is_used(test, shapes)
        return test.specialize(shapes)
