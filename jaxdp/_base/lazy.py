"""Names of a package that are imported when they are first asked for: importing the package costs nothing."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def names(
    package: str, exports: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package.

    exports: name -> file of the package that holds it. modules: name -> file that it is.
    Errors: AttributeError for any other name.
    """
    modules = modules or {}
    offered = sorted([*exports, *modules])

    def get(name: str) -> Any:
        if name in exports:
            return getattr(importlib.import_module(f"{package}.{exports[name]}"), name)
        if name in modules:
            return importlib.import_module(f"{package}.{modules[name]}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return offered, get, lambda: offered
