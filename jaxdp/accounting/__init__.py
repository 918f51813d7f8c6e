"""The joint cost of releases: composition, subsampling, filters, the ledger. Host only, float64 and fractions."""

from jaxdp._base import lazy

# Imported on first use: the ledger itself needs neither JAX nor NumPy, and must start fast in worker processes.
_EXPORTS = {
    "ApproximateFilter": "filters",
    "BudgetExhausted": "ledger",
    "ConcentratedFilter": "filters",
    "Ledger": "ledger",
    "LedgerError": "ledger",
    "Odometer": "filters",
    "PureFilter": "filters",
    "RenyiFilter": "filters",
    "compose": "composition",
    "fixed_size_base_epsilon": "amplification",
    "fixed_size_epsilon": "amplification",
    "largest_count": "optimal",
    "optimal_delta": "optimal",
    "optimal_epsilon": "optimal",
    "poisson_base_epsilon": "amplification",
    "poisson_epsilon": "amplification",
    "privacy_filter": "filters",
    "subsample_fixed_size": "amplification",
    "subsample_poisson": "amplification",
    "zcdp_epsilon": "renyi",
    "zcdp_rho": "renyi",
}

__all__, __getattr__, __dir__ = lazy.names(__name__, _EXPORTS)
