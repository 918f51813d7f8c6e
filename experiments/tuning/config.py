"""What is run: tests with what is tuned, the design tuned on, held-out designs, sizes."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jaxdp
from jaxdp.plan.setting import Setting
from jaxdp.simulate.confounder import SineLaw, heavy_tailed_confounder, heteroscedastic_confounder, sine_confounder

LAW = SineLaw(complexity=2.0)
LEVELS = (0.4, 0.7, 1.0, 1.5, 2.2)  # winsorising levels that decision tests choose from


@dataclasses.dataclass(frozen=True)
class Case:
    """One test: leaves tuned by gradient, fields chosen on a grid, the effect tuned on, and what is held out."""

    name: str
    make: Callable[[float, int], Any]
    n: int
    epsilon: float
    effect: float
    leaves: tuple[str, ...] = ()
    grid: dict[str, tuple] = dataclasses.field(default_factory=dict)
    family: str = "sine"


def tuned_on(case: Case):
    """The design that a case is tuned on."""
    if case.family == "groups":
        return Setting.table().design(case.n, case.effect, "groups")
    return functools.partial(sine_confounder, n=case.n, effect=case.effect)


def held_out(case: Case, effect: float) -> dict[str, Any]:
    """Designs that no tuning has seen: other effects, waves, signs and noises; effect 0 gives their nulls."""
    if case.family == "groups":
        return {"2x2, other effect": Setting.table().design(case.n, 0.75 * effect, "groups")}
    sine = functools.partial(sine_confounder, n=case.n)
    found = {"smaller effect": functools.partial(sine, effect=0.75 * effect)}
    if case.family == "known law":
        return found  # the law of X given Z is part of the test
    return {
        **found,
        "wave 4, sign +": functools.partial(sine, effect=effect, complexity=4.0, sign=1.0),
        "heavy tails": functools.partial(heavy_tailed_confounder, n=case.n, effect=effect, complexity=1.0),
        "skewed noise": functools.partial(heteroscedastic_confounder, n=case.n, effect=effect, complexity=1.0),
    }


def _groups(n: int) -> dict[str, int]:
    return {"num_cases": n // 2, "num_controls": n - n // 2}


CASES = (
    Case("partition-gcm", lambda e, n: jaxdp.PartitionGCM(epsilon=e), 300, 1.0, 0.4, ("winsorize", "split")),
    Case("partition-gcm", lambda e, n: jaxdp.PartitionGCM(epsilon=e), 1000, 0.5, 0.25, ("winsorize", "split")),
    Case("partition-gcm level", lambda e, n: jaxdp.PartitionGCM(epsilon=e), 300, 1.0, 0.4, ("winsorize",)),
    Case(
        "partition-gcm cells",
        lambda e, n: jaxdp.PartitionGCM(epsilon=e),
        300,
        1.0,
        0.4,
        (),
        {"num_cells": (18, 25, 37, 50, 75)},
    ),
    Case("conditional-kendall", lambda e, n: jaxdp.ConditionalKendall(epsilon=e), 300, 1.0, 0.3, ("split",)),
    Case("conditional-spearman", lambda e, n: jaxdp.ConditionalSpearman(epsilon=e), 300, 1.0, 0.3, ("split",)),
    Case(
        "crt-normal",
        lambda e, n: jaxdp.PrivateCRT(epsilon=e, law=LAW, variant="normal"),
        200,
        1.0,
        0.25,
        ("winsorize", "split"),
        family="known law",
    ),
    Case(
        "crt-threshold",
        lambda e, n: jaxdp.PrivateCRT(epsilon=e, law=LAW, num_resamples=99),
        200,
        1.0,
        0.3,
        (),
        {"winsorize": LEVELS},
        family="known law",
    ),
    Case(
        "local-permutation",
        lambda e, n: jaxdp.LocalPermutation(epsilon=e, num_permutations=79),
        300,
        2.0,
        0.4,
        (),
        {"winsorize": LEVELS},
    ),
    Case(
        "margin-adaptive",
        lambda e, n: jaxdp.MarginAdaptive(epsilon=e, **_groups(n)),
        200,
        0.5,
        0.5,
        (),
        {"lipschitz": (0.03, 0.06, 0.12, 0.25)},
        family="groups",
    ),
    Case(
        "private-gcm",
        lambda e, n: jaxdp.PrivateGCM(epsilon=e, scale_x=2.0, scale_y=2.0),
        100,
        8.0,
        1.0,
        ("ridge", "bandwidth", "scale_x", "scale_y"),
    ),
    Case(
        "test-of-tests",
        lambda e, n: jaxdp.TestOfTests(epsilon=e, test=jaxdp.GCM()),
        600,
        1.0,
        0.25,
        (),
        {"num_blocks": (11, 15, 21), "block_level": (0.1, 0.15, 0.2)},
    ),
)


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes. names: cases run (all if empty). nulls, alternatives: replicates per held-out design."""

    name: str
    names: tuple[str, ...]
    replicates: int
    steps: int
    nulls: int
    alternatives: int
    problems: int
    seed: int = 20_230


QUICK = Config("quick", ("margin-adaptive",), 128, 8, 2000, 1000, 2000)
FULL = Config("full", (), 1024, 10, 100_000, 10_000, 10_000)
