"""A test of the catalogue, built when a query's columns are known: what searches ask with."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax

from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest, require_z_is_used
from jaxdp.spec import Options, TestSpec


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
