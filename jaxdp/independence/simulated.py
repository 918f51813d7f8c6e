"""The test of a name for a simulated design: what `registry` does for schemas, with designs in natural units too."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from jaxdp.data.dataset import Data
from jaxdp.independence import registry

OTHER_METHODS = ("private-crt", "private-crt-normal", "private-crt-paper", "crt")


def names() -> tuple[str, ...]:
    """Names that `build` knows, besides the class names of tests."""
    return (*(row.name for row in registry.METHODS.values() if row.available()), *OTHER_METHODS)


def build(name: str, shapes: Data, epsilon: float, constants: Mapping[str, Any], level: float, law=None):
    """The test of a method for data of these public shapes.

    name: a method of `jaxdp test`, one of `OTHER_METHODS`, or the class name of any test of the package.
    shapes: `jax.eval_shape` of the design. constants: fields of the test's class to set. law: of X given Z, for model-X
    tests. Errors: ValueError for names and fields that do not exist.
    """
    if name in registry.METHODS and shapes.domain is not None:
        test = registry.method(name).make(epsilon, shapes.domain, registry.Options(level=level))
        return dataclasses.replace(_with_groups(test, shapes), **_checked(type(test), constants))
    if name in registry.METHODS or name in OTHER_METHODS:
        fields_of, cls = _natural(name, shapes, law)
        fields = fields_of(epsilon, level)
    else:
        cls = _class(name)
        fields = {"epsilon": epsilon} if is_private(name) else {}
    if inspect.isclass(cls):
        return _with_groups(cls(**{**fields, **_checked(cls, constants)}), shapes)
    test = cls(**fields)  # a function that picks the class by variant
    return dataclasses.replace(test, **_checked(type(test), constants))


def is_private(name: str) -> bool:
    """Whether a method adds noise."""
    if name in registry.METHODS:
        return registry.METHODS[name].private
    return name not in ("crt", "GCM", "CRT")


def codes_of(name: str) -> bool:
    """Whether a method wants discrete columns as codes."""
    return name in registry.METHODS and registry.METHODS[name].codes


def _class(name: str) -> type:
    package = importlib.import_module("jaxdp")
    found = getattr(package, name, None) if name.isidentifier() and name in package.__all__ else None
    if not inspect.isclass(found) or not hasattr(found, "p_value"):
        raise ValueError(f"method must be one of {', '.join(names())} or the class name of a test, got {name!r}.")
    return found


def _checked(cls: type, constants: Mapping[str, Any]) -> dict[str, Any]:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name, value in constants.items():
        if name not in fields or name in ("epsilon", "mechanism"):
            known = ", ".join(key for key in fields if key not in ("epsilon", "mechanism"))
            raise ValueError(f"{cls.__name__} has no constant {name!r}; it has {known}.")
        if not isinstance(value, bool | int | float | str | list | tuple):
            raise ValueError(f"{cls.__name__}: {name} must be a number, a text or a list, got {value!r}.")
    # numbers become leaves as floats where the class sweeps over them
    static = {name for name, field in fields.items() if field.metadata.get("static")}
    return {
        name: float(value) if isinstance(value, int) and not isinstance(value, bool) and name not in static else value
        for name, value in constants.items()
    }


def _natural(name: str, shapes: Data, law) -> tuple[Callable[[float, float], dict[str, Any]], Any]:
    """(fields from epsilon and level, class) of a method on data that no schema scaled."""
    package = importlib.import_module("jaxdp")
    n = shapes.x.shape[0]
    kernel = package.RBF(lengthscale=1.0)
    largest = 1.0 + math.sqrt(2.0 * math.log(max(n, 2)))  # bounds n standard normal values: the paper's C sqrt(log n)
    published = {"kernel": kernel, "scale_x": largest, "scale_y": largest}
    blocks = min(10, max(2, n // 20))

    def model_x(**fields):
        if law is None:
            raise ValueError(f"{name} needs a design with a known law of X given Z: sine or shah-peters.")
        return {"law": law, **fields}

    table: dict[str, tuple[Callable[[float, float], dict[str, Any]], str]] = {
        "private-gcm": (lambda e, a: {"epsilon": e, **published}, "PrivateGCM"),
        "private-gcm-paper": (lambda e, a: {"epsilon": e, "variant": "paper", **published}, "PrivateGCM"),
        "gcm": (lambda e, a: {"kernel": kernel}, "GCM"),
        "test-of-tests": (
            lambda e, a: {
                "epsilon": e,
                "num_blocks": blocks,
                "block_level": 0.15,
                "test": package.GCM(kernel=kernel),
            },
            "TestOfTests",
        ),
        "local-permutation": (lambda e, a: {"epsilon": e, "level": a}, "LocalPermutation"),
        "private-crt": (lambda e, a: {"epsilon": e, "level": a, **model_x()}, "PrivateCRT"),
        "private-crt-normal": (lambda e, a: {"epsilon": e, **model_x(variant="normal")}, "PrivateCRT"),
        "private-crt-paper": (lambda e, a: {"epsilon": e, **model_x(variant="paper")}, "PrivateCRT"),
        "crt": (lambda e, a: model_x(), "CRT"),
    }
    fields_of, cls = table[name] if name in table else (lambda e, a: {"epsilon": e}, registry.METHODS[name].test)
    found = getattr(package, cls)
    return fields_of, found


def _with_groups(test, shapes: Data):
    """Case/control tests: the public group sizes of a balanced design, which a traced y cannot tell."""
    if getattr(test, "num_cases", 0) is None:
        n = shapes.x.shape[0]
        return dataclasses.replace(test, num_cases=n // 2, num_controls=n - n // 2)
    return test
