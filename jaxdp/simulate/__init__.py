"""Simulated designs, (key, n, ...) -> Data, rejection rates over replicates, and grids of them that can be resumed."""

import importlib
from typing import Any

# name -> module that holds it; imported on first use, so that a test's example data cost no more than themselves.
_EXPORTS = {
    "SineLaw": "confounder",
    "case_control": "discrete",
    "discrete_confounder": "discrete",
    "from_schema": "shaped",
    "functional_relation": "functions21",
    "heavy_tailed_confounder": "confounder",
    "heteroscedastic_confounder": "confounder",
    "mixed_confounder": "discrete",
    "network_question": "discrete",
    "post_nonlinear": "confounder",
    "relation": "functions21",
    "sample_network": "networks",
    "shah_peters": "confounder",
    "sine_confounder": "confounder",
}
_MODULES = ["confounder", "discrete", "examples", "functions21", "networks", "shaped"]

__all__ = sorted([*_EXPORTS, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.simulate.{_EXPORTS[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"jaxdp.simulate.{name}")
    raise AttributeError(f"module 'jaxdp.simulate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
