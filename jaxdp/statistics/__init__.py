"""Non-private statistics: pure functions of arrays. No epsilon, no noise.

residuals = jaxdp.statistics.krr_residuals(jaxdp.kernels.RBF(), 0.1, z, targets)
"""

import importlib
from typing import Any

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "k_fold_residuals": "ridge",
    "krr_residuals": "ridge",
    "leave_one_out_residuals": "ridge",
}
_MODULES = ["kernels", "partition", "ridge", "ridge_bounds", "ridge_error", "winsorize"]

__all__ = sorted([*_EXPORTS, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.statistics.{_EXPORTS[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"jaxdp.statistics.{name}")
    raise AttributeError(f"module 'jaxdp.statistics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
