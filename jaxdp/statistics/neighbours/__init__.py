"""Sums over records that are close in the order of Z, without cells."""
