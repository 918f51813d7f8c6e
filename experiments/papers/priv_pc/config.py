"""Sizes of the Priv-PC experiments."""

import dataclasses

import numpy as np

PAPER_BUDGETS = tuple(float(budget) for budget in np.geomspace(1.0, 100.0, 21))


@dataclasses.dataclass(frozen=True)
class Config:
    """One size: networks, rows, seeds, total budgets (the paper has 21 between 1 and 100), rows of continuous data.

    table_seeds: of the reference table and of the targets. gaussian_budgets: of the sub-sampled Gaussian.
    """

    name: str
    networks: tuple[str, ...]
    num_records: int
    seeds: int
    budgets: tuple[float, ...]
    table_seeds: int
    target_seeds: int
    gaussian_budgets: tuple[float, ...]
    continuous_records: int
    continuous_budgets: tuple[float, ...]


QUICK = Config("quick", ("cancer", "asia"), 100_000, 2, (0.3, 3.0), 1, 2, (3.0,), 20_000, (3.0,))
RECORDED = Config(
    "recorded",
    ("cancer", "earthquake", "asia", "survey"),
    100_000,
    3,
    (0.3, *PAPER_BUDGETS),
    8,
    16,
    (1.0, 10.0, 100.0),
    20_000,
    (0.3, 1.0, 3.0, 10.0),
)
FULL = Config(
    "full",
    ("cancer", "earthquake", "asia", "survey"),
    100_000,
    16,
    (0.3, *PAPER_BUDGETS),
    16,
    16,
    PAPER_BUDGETS,
    100_000,
    (0.3, *PAPER_BUDGETS[:11]),
)
