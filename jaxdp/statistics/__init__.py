"""Non-private statistics: pure functions of arrays. No epsilon, no noise.

residuals = jaxdp.statistics.krr_residuals(jaxdp.kernels.RBF(), 0.1, z, targets)
"""

from jaxdp._base import lazy

# name -> module that holds it; imported on first use.
_EXPORTS = {
    "chi_squared": "tables.stratified",
    "cochran_mantel_haenszel": "tables.stratified",
    "g_test": "tables.stratified",
    "conditional_kendall": "concordance",
    "spearman": "concordance",
    "conditional_spearman": "concordance",
    "kendall_s": "concordance",
    "kendall_tau": "concordance",
    "k_fold_residuals": "kernel_ridge.ridge",
    "krr_residuals": "kernel_ridge.ridge",
    "leave_one_out_residuals": "kernel_ridge.ridge",
    "characteristic_matrix_e": "mic.coefficients",
    "characteristic_matrix_r": "mic.coefficients",
    "maximum_asymmetry": "mic.mic_companions",
    "maximum_edge_value": "mic.mic_companions",
    "mic_e": "mic.coefficients",
    "mic_e_pairs": "mic.mic_pairs",
    "mic_r": "mic.coefficients",
    "mic_r_pairs": "mic.mic_pairs",
    "mic_star": "mic.coefficients",
    "minimum_cell_number": "mic.mic_companions",
    "mutual_information": "tables.information",
    "total_information": "mic.mic_companions",
}
# modules of the rooms below, by their own names
_MODULES = {
    "association": "tables.association",
    "bitmaps": "tables.bitmaps",
    "concordance": "concordance",
    "contingency": "tables.contingency",
    "kernels": "kernel_ridge.kernels",
    "low_rank": "kernel_ridge.low_rank",
    "partition": "partition",
    "random_features": "kernel_ridge.random_features",
    "ridge": "kernel_ridge.ridge",
    "ridge_bounds": "kernel_ridge.ridge_bounds",
    "ridge_error": "kernel_ridge.ridge_error",
    "ridge_grid": "kernel_ridge.ridge_grid",
    "stratified": "tables.stratified",
    "winsorize": "winsorize",
}

__all__, __getattr__, __dir__ = lazy.names(__name__, _EXPORTS, _MODULES)
