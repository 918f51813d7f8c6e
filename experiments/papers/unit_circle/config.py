"""What is run: sizes of the quick and of the full version."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    """sizes: N (balanced groups). families: number of tables K -> replicates. nulls: noisy r x c tables per cell."""

    name: str
    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    frequencies: tuple[float, ...]
    families: tuple[tuple[int, int], ...]
    family_size: int
    family_epsilons: tuple[float, ...]
    nulls: int
    num_null: int
    seed: int = 20170


QUICK = Config(
    name="quick",
    sizes=(600,),
    epsilons=(0.1, 1.0),
    frequencies=(0.05, 0.5),
    families=((100, 200), (1000, 100)),
    family_size=600,
    family_epsilons=(4.0,),
    nulls=5000,
    num_null=99,
)
FULL = Config(
    name="full",
    sizes=(200, 600, 1000, 2000),
    epsilons=(0.1, 0.3, 1.0, 3.0),
    frequencies=(0.05, 0.2, 0.5),
    families=((100, 500), (1000, 500), (10_000, 200), (100_000, 30), (1_000_000, 5)),
    family_size=2000,
    family_epsilons=(1.0, 4.0),
    nulls=100_000,
    num_null=99,
)
# What experiments/papers/unit_circle/results holds: every figure, sized for minutes on 2 shared cores.
RECORDED = Config(
    name="recorded",
    sizes=(600,),
    epsilons=(0.1, 0.3, 1.0),
    frequencies=(0.05, 0.2, 0.5),
    families=((100, 200), (1000, 120), (10_000, 80), (100_000, 100), (1_000_000, 100)),
    family_size=2000,
    family_epsilons=(4.0,),
    nulls=100_000,
    num_null=39,
)
