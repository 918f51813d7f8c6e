"""What can be tuned by gradient: numbers of a test, each with a map from the whole line onto its range."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.mechanisms import Gaussian, Laplace, Split

MIN_SHARE = 1e-6


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One tunable number (or array) of a test.

    get(test, num_records) -> its value; put(test, value) -> test. onto: unconstrained -> value; back: its inverse.
    """

    name: str
    get: Callable[[Any, int], Any]
    put: Callable[[Any, Any], Any]
    onto: Callable[[Any], Any] = jnp.exp
    back: Callable[[Any], Any] = jnp.log


def _field(name: str) -> Leaf:
    """A positive number that is a field of the test."""
    return Leaf(
        name,
        lambda test, num_records: getattr(test, name),
        lambda test, value: dataclasses.replace(test, **{name: value}),
    )


def _level(test, num_records: int):
    """The winsorising level in force: given, or the closed form of the test's family."""
    if test.winsorize is not None:
        return test.winsorize
    for name in ("level", "default_winsorize", "_level_of"):
        if callable(getattr(test, name, None)):
            return getattr(test, name)(num_records)
    raise TypeError(f"{type(test).__name__} has no winsorising level.")


def _ridge(test, num_records: int):
    """The ridge in force: given, or the test's own for so many records."""
    return test.ridge_of(num_records) if hasattr(test, "ridge_of") else test.ridge


def _lengthscale(test, num_records: int):
    return test.kernel.lengthscale


def _with_lengthscale(test, value):
    return dataclasses.replace(test, kernel=dataclasses.replace(test.kernel, lengthscale=value))


def _first_share(test, num_records: int):
    """Share of the budget that the first part (the one that is tested) gets."""
    parts = test.mechanism_in_force().parts
    return _amount(parts[_tested(parts)]) / sum(map(_amount, parts.values()))


def _with_share(test, share):
    """The same total epsilon (rho for Gaussian noise), divided anew over the two parts."""
    parts = test.mechanism_in_force().parts
    tested = _tested(parts)
    total = sum(check.budget(_amount(part)) for part in parts.values())
    each = {name: share if name == tested else 1.0 - share for name in parts}
    kind = Gaussian if isinstance(parts[tested], Gaussian) else Laplace
    split = Split(parts={name: kind(total * fraction) for name, fraction in each.items()})
    return dataclasses.replace(test, epsilon=None, mechanism=split)


def _amount(part):
    return part.rho if isinstance(part, Gaussian) else part.epsilon


def _inner_share(logit):
    """Between 0 and 1, never so near that a part would get nothing."""
    return jnp.clip(jax.nn.sigmoid(logit), MIN_SHARE, 1.0 - MIN_SHARE)


def _tested(parts) -> str:
    if len(parts) != 2:
        raise TypeError(f"only a budget of two parts has one share to tune, got {sorted(parts)}.")
    return min(parts, key=lambda name: name in ("variance", "v"))


def _weights(test, num_records: int):
    if test.num_cells is None:
        raise ValueError("weights belong to cells: give the test num_cells=.")
    return 0.9 * jnp.ones(test.num_cells) if test.weights is None else jnp.asarray(test.weights)


LEAVES = {
    leaf.name: leaf
    for leaf in (
        Leaf("ridge", _ridge, lambda test, value: dataclasses.replace(test, ridge=value)),
        Leaf("bandwidth", _lengthscale, _with_lengthscale),
        Leaf("winsorize", _level, lambda test, value: dataclasses.replace(test, winsorize=value)),
        _field("scale_x"),
        _field("scale_y"),
        Leaf("split", _first_share, _with_share, _inner_share, lambda v: jnp.log(v) - jnp.log1p(-jnp.asarray(v))),
        Leaf("weights", _weights, lambda test, value: dataclasses.replace(test, weights=value), jnp.tanh, jnp.arctanh),
    )
}


def leaf_of(name: str) -> Leaf:
    """The leaf of this name; a name that is none of `LEAVES` is a positive number among the fields of the test."""
    return LEAVES.get(name) or _field(name)


def offered(test: Any, num_records: int) -> tuple[str, ...]:
    """Names of the leaves that can be tuned in this test, among them positive numbers that are fields of its own.

    What is no leaf but a static field (a number of cells, say) is tuned by `grid=`, and so are the numbers of a test
    whose p-value has no gradient in them (`PrivateTest.no_gradient`): a rank among simulated draws, a decision.
    """
    names = [*LEAVES, *(field for field in _own_fields(test) if field not in LEAVES)]
    return tuple(name for name in names if not test.no_gradient(name) and _value(test, name, num_records) is not None)


def _own_fields(test) -> list[str]:
    """Fields of the test's class that are leaves of its pytree, less its budget."""
    fields = (field for field in dataclasses.fields(test) if not field.metadata.get("static"))
    return [field.name for field in fields if field.name not in ("epsilon", "mechanism")]


def _value(test, name: str, num_records: int):
    """The leaf's value as an array, None where the test has no such number."""
    if name not in LEAVES and name not in _own_fields(test):
        return None
    try:
        value = leaf_of(name).get(test, num_records)
    except (AttributeError, TypeError, ValueError, KeyError):
        return None
    numeric = isinstance(value, float | int | np.ndarray | np.generic | jax.Array) and not isinstance(value, bool)
    if not numeric or not np.all(np.isfinite(leaf_of(name).back(jnp.asarray(value, float)))):
        return None
    return jnp.asarray(value, float)


def start_of(test, names: tuple[str, ...], num_records: int) -> dict[str, Any]:
    """Unconstrained values of the named leaves as the test has them. Errors: ValueError, TypeError."""
    for name in names:
        if (why := test.no_gradient(name)) and _value(test, name, num_records) is not None:
            raise ValueError(
                f"{type(test).__name__} has no gradient in {name}: {why}; compare values of its fields by grid=."
            )
    found = offered(test, num_records)
    unknown = [name for name in names if name not in found]
    if unknown or not names:
        told = f"must be some of {', '.join(found)}" if found else "can't be tuned; give static fields by grid="
        raise ValueError(f"leaves of {type(test).__name__} {told}, got {', '.join(unknown) or 'none'}.")
    values = {name: _value(test, name, num_records) for name in names}
    return {name: jnp.asarray(leaf_of(name).back(value), float) for name, value in values.items()}


def values_of(point: dict[str, Any]) -> dict[str, Any]:
    """The values that an unconstrained point stands for."""
    return {name: leaf_of(name).onto(value) for name, value in point.items()}


def at(test, point: dict[str, Any]):
    """The test with the leaves of an unconstrained point; epsilon in all is as before."""
    for name, value in values_of(point).items():
        test = leaf_of(name).put(test, value)
    return test
