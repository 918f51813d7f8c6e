"""Simulated designs, (key, n, ...) -> Data."""
