"""The class decorator of the package: frozen keyword-only dataclasses that are pytrees."""

import dataclasses
from typing import dataclass_transform

import jax

from jaxdp._base.display import one_line


@dataclass_transform(kw_only_default=True, frozen_default=True)
def frozen_pytree[T](cls: type[T]) -> type[T]:
    """A frozen keyword-only dataclass that is a pytree; `jax.tree.static()` marks static fields.

    It prints in one line: its class and the fields that differ from their defaults, arrays by shape.
    """
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = one_line  # type: ignore[assignment, method-assign]
    return as_pytree(dataclasses.dataclass(frozen=True, kw_only=True, repr=False)(cls))


private_test = frozen_pytree  # the name under which tests of other packages are written


def as_pytree[T](cls: type[T]) -> type[T]:
    """Registers a dataclass as a pytree that is rebuilt without `__init__`.

    Gradients, updates and tracers travel in the same class as the values they belong to; they need not pass
    the checks that the values passed (the gradient of a positive epsilon may be negative).
    """
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    data = [field.name for field in fields if not field.metadata.get("static")]
    static = [field.name for field in fields if field.metadata.get("static")]

    def flatten(node):
        return [getattr(node, name) for name in data], tuple(getattr(node, name) for name in static)

    def flatten_with_keys(node):
        children, aux = flatten(node)
        return [(jax.tree_util.GetAttrKey(name), child) for name, child in zip(data, children, strict=True)], aux

    def unflatten(aux, children):
        node = object.__new__(cls)
        for name, value in (*zip(data, children, strict=True), *zip(static, aux, strict=True)):
            object.__setattr__(node, name, value)
        return node

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls
