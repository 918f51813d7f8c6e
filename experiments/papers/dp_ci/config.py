"""What is run: sizes of the quick and of the full version."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Config:
    """replicates: per cell (the paper's is 500). Sizes n: where kernel ridge regression is affordable on 2 cores."""

    name: str
    replicates: int
    krr_replicates: int
    n_complexity: int
    complexities: tuple[float, ...]
    effects: tuple[float, ...]
    sizes: tuple[int, ...]
    n_effects: int
    n_crt: int
    crt_sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    resamples: tuple[int, ...]
    concrete_sizes: tuple[int, ...]
    concrete_splits: int
    seed: int = 20260
    crt_dims: tuple[int, ...] = (1, 5)  # where figure 1 runs the CRT family and the comparators
    headline: tuple[int, int] = (500, 100)  # replicates of docs/evidence/power.md, and with a kernel system


QUICK = Config(
    name="quick",
    replicates=500,
    krr_replicates=100,
    n_complexity=200,
    complexities=(1.0, 16.0),
    effects=(0.0, 0.5, 1.5),
    sizes=(50, 200),
    n_effects=200,
    n_crt=200,
    crt_sizes=(),
    epsilons=(0.5, 8.0),
    resamples=(19, 99),
    concrete_sizes=(1000,),
    concrete_splits=10,
    crt_dims=(1,),
)
FULL = Config(
    name="full",
    replicates=500,
    krr_replicates=100,
    n_complexity=1000,
    complexities=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    effects=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5),
    sizes=(100, 300, 1000, 2000),
    n_effects=1000,
    n_crt=1000,
    crt_sizes=(100, 300, 1000, 3000, 10_000),
    epsilons=(0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    resamples=(19, 49, 99, 199),
    concrete_sizes=(100, 250, 500, 1000),
    concrete_splits=100,
    headline=(10_000, 1000),
)
