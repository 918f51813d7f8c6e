"""Sizes of the runs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    """sizes: n of the synthetic runs; laws: every how many-th of the 189 laws; data_sets: per law.

    cells: candidates for B; draws: noise draws per data set; pairs: real pairs per collection (None: all).
    geometric_draws: noisy tables per data set, for the mechanisms whose noise meets the counts.
    few_at_large: one data set and one noisy table per law from n = 5000 on.
    """

    name: str
    sizes: tuple[int, ...]
    every: int
    data_sets: int
    cells: tuple[int, ...]
    draws: int
    pairs: int | None
    geometric_draws: int
    few_at_large: bool = False
    seed: int = 20220717

    def at(self, n: int) -> "Config":
        """These sizes at n records."""
        few = self.few_at_large and n >= 5000
        return dataclasses.replace(self, data_sets=1, geometric_draws=1) if few else self


QUICK = Config("quick", (250, 1000), 10, 2, (20, 40, 80), 50, 60, 4)
RECORDED = Config("recorded", (25, 250, 500, 1000, 5000, 10000), 5, 2, (20, 40, 80), 50, 150, 4, few_at_large=True)
CELLS = (8, 40, 60, 80, 100, 120, 150, 200, 250, 350)
FULL = Config("full", (25, 250, 500, 1000, 5000, 10000), 1, 3, CELLS, 100, None, 20)
EPSILONS = (0.1, 1.0)
# Table 2 of the paper: (c, B) of MICr-Geom and MICr-Lap.
PAPER_TABLE_2 = {
    25: {"geometric": {1.0: (2, 12), 0.1: (2, 6)}, "laplace": {1.0: (5, 8), 0.1: (5, 6)}},
    250: {"geometric": {1.0: (1, 40), 0.1: (2, 10)}, "laplace": {1.0: (5, 40), 0.1: (5, 40)}},
    500: {"geometric": {1.0: (1, 40), 0.1: (2, 20)}, "laplace": {1.0: (5, 60), 0.1: (5, 80)}},
    1000: {"geometric": {1.0: (1, 60), 0.1: (2, 40)}, "laplace": {1.0: (5, 80), 0.1: (5, 100)}},
    5000: {"geometric": {1.0: (1, 150), 0.1: (1, 40)}, "laplace": {1.0: (5, 150), 0.1: (5, 125)}},
    10000: {"geometric": {1.0: (1, 150), 0.1: (1, 80)}, "laplace": {1.0: (5, 150), 0.1: (5, 150)}},
}
