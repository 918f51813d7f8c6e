"""Worst neighbours of `ContrastFeatures`, found by hill climbing (docs/theory/contrast_features.md#sensitivity)."""

import numpy as np

from jaxdp.data.dataset import Data

# Rows x, y, z1, z2: the first is replaced by the last.
OF_ALL_ENTRIES = (
    (-0.825, 0.97, 0.22, 0.02),
    (0.48, -0.895, -0.07, 0.35),
    (0.515, 0.825, 0.74, -0.845),
    (0.565, 0.64, 0.955, 0.225),
    (0.14, -0.89, -0.665, -0.79),
    (0.57, -0.725, -0.825, 0.76),
    (0.57, 0.56, 0.82, 0.11),
    (0.605, 0.835, 0.74, -0.195),
    (0.76, 0.795, 0.89, -0.495),
    (0.175, -0.605, -0.1, 0.04),
    (-0.28, -0.695, 0.815, 0.96),
    (0.895, -0.515, 0.425, -0.645),
    (-0.32, -0.445, 0.495, 0.17),
    (0.165, 0.185, 0.76, -0.1),
    (-0.315, -0.62, 0.15, -1),
    (-0.335, 0.235, 0.655, 0.14),
    (-0.84, 0.3, 0.87, -0.54),
)
OF_THE_LINEAR_ENTRY = (
    (0.995, -0.89, -1, -0.1),
    (-0.12, -0.835, -0.1, 0.775),
    (0.735, 0.82, -0.685, 0.57),
    (-0.695, -0.87, 0.08, -0.93),
    (-0.45, 0.785, -0.83, -0.855),
    (-0.635, 0.795, 0.13, 0.065),
    (0.8, 0.565, -0.085, -0.64),
    (0.36, -0.665, 0.71, -1),
    (-0.665, 0.62, 0.575, 0.91),
    (-0.375, -0.85, 0.5, 0.35),
    (-0.525, -0.865, 0.045, -0.39),
    (0.965, 0.255, 0.875, -0.61),
    (-0.78, 0.38, -0.535, -0.035),
    (0.86, -0.155, 0.645, 0.635),
    (0.785, -0.275, 0.34, 0.075),
    (-0.52, 0.48, 0.285, -0.235),
    (0.895, 0.995, -0.095, 0.91),
)


def found():
    """Two pairs: one moves all entries together (x and y far beyond the scales), one the linear entry alone (near)."""
    return [_pair(OF_ALL_ENTRIES, 100.0), _pair(OF_THE_LINEAR_ENTRY, 0.2)]


def _pair(rows, size: float):
    table = np.array(rows) * np.array([size, size, 1.0, 1.0])
    ends = table[:-1], np.concatenate([table[-1:], table[1:-1]])
    return tuple(Data(part[:, 0], part[:, 1], part[:, 2:]) for part in ends)
