"""Tests and releases of maximal information coefficients, one per file."""
