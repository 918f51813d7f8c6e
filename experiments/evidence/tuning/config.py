"""What is run: tests with what is tuned, the design tuned on, held-out designs, sizes."""

import dataclasses
import functools
from typing import Any

import jaxdp
from experiments.evidence.tuning import designs
from jaxdp import catalogue
from jaxdp.plan.setting import Setting
from jaxdp.simulate.designs.confounder import SineLaw, heteroscedastic_confounder, sine_confounder
from jaxdp.simulate.designs.discrete import case_control
from jaxdp.statistics.tables.association import squared_correlation

LAW = SineLaw(complexity=2.0)
LEVELS = (0.4, 0.7, 1.0, 1.5, 2.2)  # winsorising levels that decision tests choose from
UNIT_SQUARE = ((0.0, 1.0), (0.0, 1.0))
SINE, KNOWN_LAW, GROUPS, LINE, CURVES = "sine", "known law", "groups", "line", "curves"


@dataclasses.dataclass(frozen=True)
class Case:
    """One test: leaves tuned by gradient, fields chosen on a grid, the effect tuned on, and what is held out.

    name: of the test in the catalogue, and a word where it has several cases. fields: of its class.
    note: what was made smaller so that 10^5 replicates of each null are possible.
    """

    name: str
    n: int
    epsilon: float
    effect: float
    leaves: tuple[str, ...] = ()
    grid: dict[str, tuple] = dataclasses.field(default_factory=dict)
    family: str = SINE
    optimizer: str = "lbfgs"
    patience: int = 1  # times the number of steps: Adam needs more
    note: str = ""
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)

    def make(self, epsilon: float, n: int):
        """The test for n records, in balanced groups."""
        kind = catalogue.find(self.name.split(" ")[0]).cls
        return catalogue.with_balanced_groups(kind(epsilon=epsilon, **self.fields), n)


def tuned_on(case: Case):
    """The design that a case is tuned on."""
    if case.family == GROUPS:
        return Setting.table().design(case.n, case.effect, "groups")
    if case.family == LINE:
        return functools.partial(designs.line, n=case.n, effect=case.effect)
    if case.family == CURVES:
        return designs.curve(case.n, designs.PARABOLA, 0.5, 1.0)
    return functools.partial(sine_confounder, n=case.n, effect=case.effect)


def declared_nulls(case: Case) -> tuple | None:
    """The nulls over which the tuner keeps the level beside the design's own; None for those of `jaxdp.tune`."""
    if case.family == SINE:
        return None
    if case.family == LINE:
        return (functools.partial(designs.line, n=case.n, effect=0.0, freedom=2),)
    return ()


def declared_alternatives(case: Case) -> tuple:
    """Designs with an effect on which the tuner lets no power be lost; what is held out lies between them."""
    n, half = case.n, 0.5 * case.effect
    if case.family == GROUPS:
        return (Setting.table().design(n, half, "groups"),)
    if case.family == LINE:
        line = functools.partial(designs.line, n=n)
        return functools.partial(line, effect=half), functools.partial(line, effect=case.effect, freedom=2)
    if case.family == CURVES:
        return (designs.curve(n, designs.PARABOLA, 0.25, 1.0),)
    weak = functools.partial(sine_confounder, n=n, effect=half)
    if case.family == KNOWN_LAW:
        return (weak,)
    return (
        weak,
        functools.partial(sine_confounder, n=n, effect=case.effect, complexity=6.0, sign=1.0),
        functools.partial(designs.heavy_tailed_sine, n=n, effect=case.effect, freedom=2),
        functools.partial(heteroscedastic_confounder, n=n, effect=case.effect, complexity=2.0),
    )


def held_out(case: Case) -> dict[str, Any]:
    """Designs with an effect that no tuning has seen: other effects, waves, signs and noises."""
    return {**_smaller(case), **_others(case, case.effect)}


def held_out_nulls(case: Case) -> dict[str, Any]:
    """Their nulls; the smaller effect has the null tuned on, held out only by its seeds."""
    return _others(case, 0.0) or {"X law of the test": functools.partial(sine_confounder, n=case.n, effect=0.0)}


def _smaller(case: Case) -> dict[str, Any]:
    effect = 0.75 * case.effect
    if case.family == GROUPS:
        return {"smaller effect": Setting.table().design(case.n, effect, "groups")}
    if case.family == LINE:
        return {"smaller effect": functools.partial(designs.line, n=case.n, effect=effect)}
    if case.family == CURVES:
        return {"noisier parabola": designs.curve(case.n, designs.PARABOLA, 0.35, 1.0)}
    return {"smaller effect": functools.partial(sine_confounder, n=case.n, effect=effect)}


def _others(case: Case, effect: float) -> dict[str, Any]:
    n, there = case.n, float(effect > 0)
    if case.family == GROUPS:
        rise = designs.rise(effect)
        return {"rate 0.2": functools.partial(case_control, n=n, frequency=0.2, effect=rise)}
    if case.family == LINE:
        return {
            "heavy tails": functools.partial(designs.line, n=n, effect=effect, freedom=3),
            "skewed": functools.partial(designs.skewed_line, n=n, effect=effect),
        }
    if case.family == CURVES:
        wave = designs.curve(n, designs.BENT_LINE, 0.5, there)
        return (
            {"bent line": wave}
            if not there
            else {"bent line": wave, "line": designs.curve(n, designs.LINE, 0.3, there)}
        )
    if case.family == KNOWN_LAW:
        return {}  # the law of X given Z is part of the test
    sine = functools.partial(sine_confounder, n=n, effect=effect)
    return {
        "wave 3, sign +": functools.partial(sine, complexity=3.0, sign=1.0),
        "heavy tails": functools.partial(designs.heavy_tailed_sine, n=n, effect=effect),
        "skewed noise": functools.partial(heteroscedastic_confounder, n=n, effect=effect, complexity=1.0),
    }


def _rank(name: str, n: int):
    cells = (n // 25, n // 16, n // 12, n // 8)
    return Case(name, n, 2.0, 0.5, ("split",), {"num_cells": cells}, fields={"accept_coarse_cells": True})


def _ridge(name: str, epsilon: float, effect: float):
    leaves, wide = ("ridge", "bandwidth", "scale_x", "scale_y"), {"scale_x": 2.0, "scale_y": 2.0}
    return Case(name, 100, epsilon, effect, leaves, optimizer="adam", patience=4, fields=wide)


CASES = (
    Case("partition-gcm", 300, 1.0, 0.4, ("winsorize", "split"), {"num_cells": (18, 25, 31, 37, 50)}),
    Case("partition-gcm 1000", 1000, 0.5, 0.25, ("winsorize", "split"), {"num_cells": (60, 80, 100, 125, 160)}),
    _rank("conditional-kendall", 100),
    _rank("conditional-spearman", 100),
    Case("private-crt-normal", 200, 1.0, 0.25, ("winsorize", "split"), family=KNOWN_LAW, fields={"law": LAW}),
    Case(
        "private-crt",
        200,
        1.0,
        0.3,
        (),
        {"winsorize": LEVELS},
        family=KNOWN_LAW,
        fields={"law": LAW, "num_resamples": 99},
    ),
    Case(
        "private-crt-paper",
        100,
        2.0,
        0.6,
        (),
        {"kernel": (None,), "winsorize": (0.7, 1.0, 1.5, 2.2)},
        family=KNOWN_LAW,
        fields={"law": LAW},
    ),
    Case(
        "local-permutation",
        100,
        4.0,
        0.6,
        (),
        {"winsorize": (0.7, 1.0, 1.5), "num_cells": (8, 12)},
        note="39 permutations, n = 100",
        fields={"num_permutations": 39},
    ),
    Case("margin-adaptive", 200, 0.5, 0.4, (), {"lipschitz": (0.015, 0.03, 0.06, 0.12, 0.25)}, family=GROUPS),
    Case("unit-circle", 1000, 1.0, 0.15, (), {"null": ("supremum", "estimated")}, family=GROUPS),
    Case(
        "unit-circle estimated",
        1000,
        1.0,
        0.15,
        ("split",),
        family=GROUPS,
        optimizer="adam",
        patience=4,
        fields={"null": "estimated"},
    ),
    _ridge("private-gcm", 8.0, 1.0),
    _ridge("private-gcm-paper", 16.0, 1.5),
    Case(
        "test-of-tests",
        450,
        1.0,
        0.3,
        (),
        {"num_blocks": (9, 11, 15, 21), "block_level": (0.1, 0.15, 0.2)},
        fields={"test": jaxdp.GCM()},
    ),
    Case(
        "subsample-aggregate",
        1010,
        2.0,
        0.3,
        (),
        {"num_blocks": (31, 51, 101), "upper": (5.0, 10.0)},
        family=LINE,
        note="39 null draws, no Z",
        fields={"statistic_of": squared_correlation, "num_null": 39},
    ),
    Case(
        "micr-laplace",
        40,
        3.0,
        1.0,
        (),
        {"max_cells": (8.0, 12.0, 20.0), "c": (3.0, 10.0)},
        family=CURVES,
        note="n = 40",
        fields={"bounds": UNIT_SQUARE},
    ),
    Case("mice-laplace", 100, 4.0, 1.0, (), {"max_cells": (6.0, 8.0, 12.0, 20.0)}, family=CURVES, note="n = 100"),
    Case(
        "micr-geometric",
        50,
        4.0,
        1.0,
        (),
        {"max_cells": (8.0, 12.0, 20.0), "threshold": (0.0, 1.5)},
        family=CURVES,
        note="n = 50, 99 null draws",
        fields={"bounds": UNIT_SQUARE, "num_null": 99},
    ),
)

# Tests of the list that have no public number to choose, and why.
NOTHING_TO_TUNE = {
    "chi2-laplace": "one statistic with one noise scale; level and group sizes are given",
    "noisy-proportions": "two proportions that share one noise scale",
    "distance-score": "one statistic with one noise scale",
    "noisy-table, projected-chi2": "the whole budget goes into one table; the other settings serve the level",
    "gcm, crt": "not private: no budget to divide, no noise to trade against",
}


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes. names: cases run (all if empty). nulls, alternatives: replicates per held-out design.

    networks: replicates of each search in the discovery figure. check_seconds: of the tuner's own check of a null.
    """

    name: str
    names: tuple[str, ...]
    replicates: int
    steps: int
    nulls: int
    alternatives: int
    problems: int
    searches: int
    check_seconds: float = 10.0
    seed: int = 20_230


QUICK = Config("quick", ("margin-adaptive",), 128, 8, 2000, 1000, 2000, 4)
FULL = Config("full", (), 1024, 10, 100_000, 10_000, 10_000, 160)
