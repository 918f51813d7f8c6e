"""Mechanisms as papers state them, for reproduction and comparison: each with the epsilon it really has.

Recommended tests and searches are in `jaxdp` and `jaxdp.discovery`; `variant="paper"` of one builds its form here.
"""

import importlib
from typing import Any

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "MICrGeometricSplit": "mic",
    "PaperCRT": "dp_ci",
    "PaperFirstTables": "unit_circle",
    "PaperGCM": "dp_ci",
    "PaperKendall": "priv_pc",
    "PaperMICeLaplace": "mic",
    "PaperMICrGeometric": "mic",
    "PaperMICrLaplace": "mic",
    "PaperUnitCircle": "unit_circle",
    "adaptive_pc": "curate",
    "gaussian_pc": "subsampled_gaussian",
    "priv_pc_paper": "priv_pc",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.published.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'jaxdp.published' has no attribute {name!r}")


def exported_names() -> tuple[str, ...]:
    """Names of the exported classes and functions."""
    return tuple(_EXPORTS)


def __dir__() -> list[str]:
    return __all__
