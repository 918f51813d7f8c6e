"""Mechanisms as papers state them, for reproduction and comparison: each with the epsilon it really has.

Recommended tests and searches are in `jaxdp` and `jaxdp.discovery`; each form here is a class or function of its own.
"""

from jaxdp._base import lazy

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

__all__, __getattr__, __dir__ = lazy.names(__name__, _EXPORTS)


def exported_names() -> tuple[str, ...]:
    """Names of the exported classes and functions."""
    return tuple(_EXPORTS)
