"""Kernel ridge regression: kernels, residuals, how far one record and one rounding can move them."""
