"""Noise mechanisms: built from a budget, calibrated by a sensitivity."""

from jaxdp.mechanisms.exact import Exact
from jaxdp.mechanisms.gaussian import Gaussian
from jaxdp.mechanisms.geometric import Geometric
from jaxdp.mechanisms.laplace import Laplace
from jaxdp.mechanisms.max_norm import MaxNorm
from jaxdp.mechanisms.noisy_max import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from jaxdp.mechanisms.rank_threshold import RankThreshold
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
