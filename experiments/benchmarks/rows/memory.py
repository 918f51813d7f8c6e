"""Temporary memory of krr_cv over replicates: flat in their number, at most 50 MB at n = 1000."""

import functools

import jax
import jax.numpy as jnp

from experiments.benchmarks.harness import Case
from experiments.benchmarks.rows import krr_cv

CASES = {"n1000": {"n": 1000, "few": 2, "many": 500}, "n60": {"n": 60, "few": 2, "many": 50}}
QUICK = ("n60",)
LIMIT_MEGABYTES = 50.0


def build(n: int, few: int, many: int) -> Case:
    """Runs `few` data sets; compiles for `many` and compares what both programs allocate."""
    run = jax.jit(functools.partial(krr_cv.replicate_all, alphas=krr_cv.ALPHAS))
    z, targets = (jnp.stack(parts) for parts in zip(*(krr_cv.draw(s, n, 1) for s in range(few)), strict=True))

    def temporary(replicates: int) -> float:
        shapes = [jax.ShapeDtypeStruct((replicates, *a.shape[1:]), a.dtype) for a in (z, targets)]
        return run.lower(*shapes).compile().memory_analysis().temp_size_in_bytes / 1e6

    def agree() -> dict[str, float]:
        small, large = temporary(few), temporary(many)
        # a float and four integers per replicate come out in any case
        grown = (large - small) * 1e6 / (many - few)
        return {
            "error": grown,
            "tolerance": 64.0,
            f"megabytes_{few}": small,
            f"megabytes_{many}": large,
            "goal_megabytes": LIMIT_MEGABYTES,
            "within_goal": large <= LIMIT_MEGABYTES,
        }

    return Case(ours=run, arguments=(z, targets), units=few, unit="data set", agree=agree)
