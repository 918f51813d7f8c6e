"""Maximal information coefficients: grids, scores, companions."""
