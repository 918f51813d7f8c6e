"""Every example of every test by its name, as run by the contract suite, audits and level checks; no list is kept here.

The examples of the package's own tests are in the files of this folder, each under the name of its test
(`partition_gcm = (Example(...), ...)`); a test of another package carries its own, `TestSpec(examples=...)`.

The first example of a test has the test's name, a further one the test's name, a hyphen and its label.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

import jax

from jaxdp import catalogue
from jaxdp.catalogue import Entry
from jaxdp.core import cost_of
from jaxdp.examples import AuditSettings, Example, with_gaussian_noise

RECORDS = 60  # of the data that a test is tried on
PRICED = 6  # steps to the budget whose cost is given


@dataclasses.dataclass(frozen=True, eq=False)
class Configured:
    """A test of the catalogue in the configuration of one of its examples."""

    entry: Entry
    example: Example

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.entry.name, self.example.label) if part)

    @property
    def private(self) -> bool:
        """Whether it may be released."""
        return self.entry.spec.private

    @property
    def recorded(self) -> bool:
        """Whether its audit is on record: the first example of a private test, and those that say how."""
        return self.private and (self.example is declared(self.entry)[0] or self.example.audit is not None)

    @property
    def claims_epsilon(self) -> bool:
        """Whether its cost is an epsilon, which an audit can refute."""
        return self.private and self.example.make is not with_gaussian_noise

    @property
    def whole(self) -> bool:
        """Whether audits look at whole runs, not at the mechanism on two statistics."""
        return self.example.coupled and (self.settings.neighbours is None or self.settings.view is not None)

    @property
    def settings(self) -> AuditSettings:
        """What audits do otherwise."""
        return self.example.audit or AuditSettings()

    def build(self, epsilon, num_records: int | None = None, fields: Mapping[str, Any] | None = None):
        """The test, with balanced groups for so many records. fields: in place of those of the example."""
        test = self.example.build(self.entry.cls, epsilon, fields)
        return test if num_records is None else catalogue.with_balanced_groups(test, num_records)

    def audited(self, epsilon: float, num_records: int | None = None):
        """The test that an audit runs: its cost is epsilon."""
        count = self.settings.records if num_records is None else num_records
        asked = epsilon
        if self.example.cost_ratio != (1.0, 1.0):
            shapes = jax.eval_shape(functools.partial(self.searched, n=count), jax.random.key(0))
            for _ in range(PRICED):  # the price may depend on the budget
                asked *= epsilon / float(cost_of(self.build(asked, count, self.settings.fields), shapes).epsilon)
        return self.build(asked, count, self.settings.fields)

    def searched(self, key, n: int | None = None):
        """Data among which an audit searches for neighbours."""
        draw = self.settings.data or self.example.data
        return draw(key, self.settings.records if n is None else n)


@functools.cache
def _kept() -> Mapping[str, tuple[Example, ...]]:
    """The examples of this folder by the names of their tests."""
    files = [importlib.import_module(found.name) for found in pkgutil.iter_modules(__path__, f"{__name__}.")]
    return {name.replace("_", "-"): value for file in files for name, value in vars(file).items() if _is_case(value)}


def _is_case(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(part, Example) for part in value)


def declared(entry: Entry) -> tuple[Example, ...]:
    """The examples of a test, the plainest first: those that it carries, or those of this folder under its name."""
    ours = entry.cls.__module__.partition(".")[0] == __name__.partition(".")[0]
    return entry.spec.examples or (_kept().get(entry.name, ()) if ours else ())


def of(entry: Entry) -> list[Configured]:
    """The examples of a test with the test, the plainest first."""
    return [Configured(entry, example) for example in declared(entry)]


@functools.cache
def all_examples() -> Mapping[str, Configured]:
    """All examples of the catalogue by name. Errors: ValueError where two have one name."""
    found: dict[str, Configured] = {}
    for entry in catalogue.entries().values():
        for one in of(entry):
            if one.name in found:
                raise ValueError(f"two examples are called {one.name!r}; give one another label.")
            found[one.name] = one
    return found


def find(name: str) -> Configured:
    """The example of this name, or the first one of "package.module:Class". Errors: ValueError if there is none."""
    if ":" in name:
        found = of(catalogue.find(name))
        if not found:
            raise ValueError(f"{name} has no example: give its spec examples=(jaxdp.Example(data),).")
        return found[0]
    if name not in all_examples():
        close = difflib.get_close_matches(name, all_examples(), 1)
        raise ValueError(f"there is no example called {name!r}" + (f"; did you mean {close[0]!r}?" if close else "."))
    return all_examples()[name]
