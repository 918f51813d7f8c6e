"""Tuned against default settings at equal epsilon on held-out designs, and the sub-sampling rate of a sieve."""
