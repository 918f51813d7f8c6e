"""Arrays on a mesh with Explicit axes, the default of `jax.make_mesh`: computed with as on a mesh with Auto axes.

On Explicit axes JAX refuses every sort, gather or outer product whose layout it would have to choose.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec


def automatic_layout[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The function, its inner layout left to the compiler; arrays that come out of a mesh's Explicit axes are whole.

    Nothing changes where neither the arguments nor the context are on Explicit axes.
    """

    @functools.wraps(function)
    def laid_out(*arguments: P.args, **options: P.kwargs) -> R:
        leaves, structure = jax.tree.flatten((arguments, options))
        mesh = _explicit_mesh(leaves)
        if mesh is None:
            return function(*arguments, **options)
        results: list[Any] = []

        def inside(arrays):
            filled = iter(arrays)
            whole = [next(filled) if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
            again, named = jax.tree.unflatten(structure, whole)
            results[:] = jax.tree.flatten(function(*again, **named))
            return [leaf for leaf in results[0] if isinstance(leaf, jax.Array)]

        axes = tuple(name for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True) if kind in _EXPLICIT)
        sharding = NamedSharding(mesh, PartitionSpec())
        arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
        # arrays that are made on the way must find the mesh; a traced function has found it
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in arrays)
        with contextlib.nullcontext() if traced or not isinstance(mesh, Mesh) else jax.set_mesh(mesh):
            made = iter(jax.sharding.auto_axes(inside, axes=axes, out_sharding=sharding)(arrays))
        found, shape = results
        return jax.tree.unflatten(shape, [next(made) if isinstance(leaf, jax.Array) else leaf for leaf in found])

    return laid_out


_EXPLICIT = (AxisType.Explicit,)


def _explicit_mesh(leaves: Sequence[Any]) -> Any:
    """The mesh with Explicit axes that the context or an argument is on; None if there is none."""
    if AxisType.Explicit in jax.sharding.get_abstract_mesh().axis_types:
        return jax.sharding.get_abstract_mesh()
    for leaf in leaves:
        if isinstance(leaf, jax.Array):
            whose = jax.typeof(leaf) if isinstance(leaf, jax.core.Tracer) else leaf
            mesh = getattr(whose.sharding, "mesh", None)
            if mesh is not None and AxisType.Explicit in mesh.axis_types:
                return mesh
    return None


def on_host(tree: Any) -> Any:
    """The tree with its arrays on Explicit axes as host arrays, which are valid on every mesh; keys are made anew."""

    def leaf(value):
        if not isinstance(value, jax.Array) or isinstance(value, jax.core.Tracer) or _explicit_mesh([value]) is None:
            return value
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(
                jnp.asarray(np.asarray(jax.random.key_data(value))), impl=jax.random.key_impl(value)
            )
        return np.asarray(value)

    return jax.tree.map(leaf, tree)


def device_list(devices: Mesh | Sequence[Any] | None) -> tuple[Any, ...]:
    """The devices of a mesh, or of a sequence; none if none are named."""
    return tuple(devices.devices.flat) if isinstance(devices, Mesh) else tuple(devices or ())


@contextlib.contextmanager
def in_mesh(mesh: Mesh) -> Iterator[bool]:
    """Puts this mesh in the place of one that the caller has set; yields whether there was one."""
    replaced = not jax.sharding.get_abstract_mesh().empty
    with jax.set_mesh(mesh) if replaced else contextlib.nullcontext():
        yield replaced
