"""Noise mechanisms: built from a budget, calibrated by a sensitivity."""

from jaxdp.mechanisms.additive import Gaussian, Geometric, Laplace, MaxNorm
from jaxdp.mechanisms.exact import Exact
from jaxdp.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, RankThreshold, ReportNoisyMax
from jaxdp.mechanisms.split import Split, divide

__all__ = [
    "Exact",
    "ExponentialMechanism",
    "Gaussian",
    "Geometric",
    "Laplace",
    "MaxNorm",
    "PermuteAndFlip",
    "RankThreshold",
    "ReportNoisyMax",
    "Split",
    "divide",
]
