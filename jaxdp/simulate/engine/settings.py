"""A setting of a simulation grid: one test on one design, and the configuration that names its results."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp._base import check
from jaxdp.simulate.engine.replicates import Design, decided


@dataclasses.dataclass(frozen=True)
class Setting:
    """One test on one design.

    config: what identifies the setting, JSON values only (method, design, n, epsilon, effect, every option); equal
    configurations are equal settings. test: any test. design: callable key -> Data.
    level: significance level. precision: "float32" or "float64". seed: of the root key. The last three are
    part of the identity. key: replaces the key that root and setting give; then the configuration must name it.
    program: a hash of the caller's functions, which the configuration only names; a folder holds counts of one.
    """

    config: Mapping[str, Any]
    test: Any = dataclasses.field(compare=False)
    design: Any = dataclasses.field(compare=False)
    level: float = 0.05
    precision: str = "float32"
    seed: int = 0
    key: Any = dataclasses.field(default=None, compare=False)
    program: str = dataclasses.field(default="", compare=False)

    def __post_init__(self):
        check.in_range(0.0, 1.0, level=self.level)
        check.one_of(("float32", "float64"), precision=self.precision)
        check.at_least(0, seed=self.seed)
        object.__setattr__(self, "design", Design.of(self.design))
        object.__setattr__(self, "test", decided(self.test, self.design))

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that the p-values depend on, apart from versions and the machine."""
        return {**self.config, "level": self.level, "precision": self.precision, "seed": self.seed}

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the identity, 16 hex digits."""
        text = json.dumps(self.identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def number(self) -> int:
        """The 32-bit number folded into the root key, so that settings have independent replicates."""
        return int(self.hash[:8], 16)

    def key_data(self) -> np.ndarray:
        """Words of the key that the replicate's number is folded into."""
        key = jax.random.fold_in(jax.random.key(self.seed), self.number) if self.key is None else self.key
        return np.asarray(jax.random.key_data(key))


def require_distinct(settings: Sequence[Setting]) -> None:
    """Raises if two settings are equal, or would draw the same replicates."""
    if not settings:
        raise ValueError("the grid has no setting: give at least one value of each of its axes.")
    numbers = [setting.number for setting in settings]
    for place, number in enumerate(numbers):
        if number in numbers[:place]:
            twin = settings[numbers.index(number)]
            raise ValueError(
                f"two settings would share their replicates: {twin.identity} and {settings[place].identity}."
            )
