"""Sizes of the Priv-PC experiments."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Config:
    """One size: networks, rows, seeds, and total budgets (the paper has 21 between 1 and 100)."""

    name: str
    networks: tuple[str, ...]
    num_records: int
    seeds: int
    budgets: tuple[float, ...]
    continuous_records: int


QUICK = Config("quick", ("cancer", "asia"), 100_000, 2, (0.3, 3.0), 20_000)
FULL = Config(
    "full",
    ("cancer", "earthquake", "asia", "survey"),
    100_000,
    16,
    (0.3, *(float(budget) for budget in np.geomspace(1.0, 100.0, 21))),
    100_000,
)
