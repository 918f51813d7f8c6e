"""The class decorator of the package: frozen keyword-only dataclasses that are pytrees."""

import dataclasses
from typing import dataclass_transform

import jax


@dataclass_transform(kw_only_default=True, frozen_default=True)
def frozen_pytree[T](cls: type[T]) -> type[T]:
    """A frozen keyword-only dataclass that is a pytree; `jax.tree.static()` marks static fields."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, kw_only=True)(cls))
