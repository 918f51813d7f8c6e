"""Non-private statistics: pure functions of arrays. No epsilon, no noise.

residuals = jaxdp.statistics.krr_residuals(jaxdp.kernels.RBF(), 0.1, z, targets)
"""

import importlib
from typing import Any

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "chi_squared": "stratified",
    "cochran_mantel_haenszel": "stratified",
    "g_test": "stratified",
    "conditional_kendall": "concordance",
    "spearman": "concordance",
    "conditional_spearman": "concordance",
    "kendall_s": "concordance",
    "kendall_tau": "concordance",
    "k_fold_residuals": "ridge",
    "krr_residuals": "ridge",
    "leave_one_out_residuals": "ridge",
    "characteristic_matrix_e": "mic",
    "characteristic_matrix_r": "mic",
    "maximum_asymmetry": "mic_companions",
    "maximum_edge_value": "mic_companions",
    "mic_e": "mic",
    "mic_e_pairs": "mic_pairs",
    "mic_r": "mic",
    "mic_r_pairs": "mic_pairs",
    "mic_star": "mic",
    "minimum_cell_number": "mic_companions",
    "mutual_information": "information",
    "total_information": "mic_companions",
}
_MODULES = [
    "association",
    "bitmaps",
    "contingency",
    "concordance",
    "kernels",
    "low_rank",
    "partition",
    "random_features",
    "ridge",
    "ridge_bounds",
    "ridge_error",
    "ridge_grid",
    "stratified",
    "winsorize",
]

__all__ = sorted([*_EXPORTS, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"jaxdp.statistics.{_EXPORTS[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"jaxdp.statistics.{name}")
    raise AttributeError(f"module 'jaxdp.statistics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
