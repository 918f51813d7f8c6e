"""Methods by name: how the test of a name is built from a budget and public column knowledge.

A new method is one row of `METHODS`. A test that this installation lacks is simply not offered.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxdp import _check
from jaxdp.core import cost_of
from jaxdp.data.coding import ColumnRule
from jaxdp.data.dataset import CONTINUOUS, Column, Domain

# Public guesses of the residual sd, in units of the [-1, 1] scaling, that PartitionGCM winsorises by.
# Continuous: the smallest guess whose measured level stayed at or below 0.06 in every cell of
# experiments/residual_scale (0.1 reached 0.078); for residual sds of 0.1 and more it loses at most 0.10 of power.
CONTINUOUS_RESIDUAL_SCALE = 0.2
# Two-valued columns sit on -1 and 1 and ordered ones between: their sd is that of the coding itself.
DISCRETE_RESIDUAL_SCALE = 0.5
WITHIN_CELLS = (
    "Given Z, the means of X and Y hardly change within one public cell of Z; for a Z whose values crowd "
    'together write scale = "log" or narrower bounds.'
)
ACCURATE_FIT = "Kernel ridge regression on Z removes what Z explains of X and of Y; a poor fit raises false alarms."
ROUNDING = 2.0**-48  # relative; bounds the rounding of a sum of a few float64 shares
KERNEL_COPIES = 4  # n x n float64 arrays alive at once in kernel ridge regression


@dataclasses.dataclass(frozen=True)
class Options:
    """Public settings of a method; None leaves the method's default.

    level: significance level of methods that release a decision. residual_scale: (x, y) guesses of the
    residual sd in units of the [-1, 1] scaling. num_cells: cells of Z. ridge, lengthscale: of kernel methods.
    """

    level: float = 0.05
    residual_scale: tuple[float, float] | None = None
    num_cells: int | None = None
    ridge: float | None = None
    lengthscale: float | None = None


@dataclasses.dataclass(frozen=True)
class Method:
    """One row of the table.

    test: public name of the test's class. build(cls, epsilon, domain, options) -> test.
    codes: wants every discrete column as codes. uses: the `Options` that it reads.
    assumption: what the level rests on beyond the hypothesis, where Z is continuous.
    private: False for a reference that only simulations may run. kernel: needs n x n memory.
    """

    name: str
    summary: str
    test: str
    build: Callable[[Any, float, Domain, Options], Any]
    codes: bool = False
    uses: tuple[str, ...] = ()
    assumption: str = WITHIN_CELLS
    private: bool = True
    kernel: bool = False

    def available(self) -> bool:
        """Whether this installation has the test."""
        try:
            return hasattr(importlib.import_module("jaxdp"), self.test)
        except ImportError:
            return False

    def make(self, epsilon: float, domain: Domain, options: Options | None = None):
        """The test for this budget. Errors: ValueError for options that the method does not use."""
        options = options or Options()
        for field in dataclasses.fields(Options):
            given = getattr(options, field.name) is not None and field.name != "level"
            if given and field.name not in self.uses:
                fitting = ", ".join(row.name for row in METHODS.values() if field.name in row.uses)
                raise ValueError(f"{self.name} does not use {field.name}; it belongs to {fitting}.")
        _check.in_range(0.0, 1.0, level=options.level)
        return self.build(getattr(importlib.import_module("jaxdp"), self.test), epsilon, domain, options)

    def within(self, epsilon: float, data, options: Options | None = None):
        """`make` for these data, such that the cost is at most epsilon to the last bit.

        A budget's shares add up to it only up to rounding, and a ledger counts what is above it.
        """
        test = self.make(epsilon, data.domain, options)
        if epsilon < np.asarray(cost_of(test, data).epsilon).item() <= epsilon * (1.0 + ROUNDING):
            test = self.make(epsilon * (1.0 - ROUNDING), data.domain, options)
        return test

    def memory(self, num_records: int) -> int:
        """Bytes that the method needs beyond a few copies of the data."""
        return KERNEL_COPIES * 8 * num_records**2 if self.kernel else 0


def _partition_gcm(cls, epsilon, domain, options):
    scale_x, scale_y = options.residual_scale or (residual_scale(domain.x), residual_scale(domain.y))
    return cls(epsilon=epsilon, standardize=True, scale_x=scale_x, scale_y=scale_y, num_cells=options.num_cells)


def residual_scale(columns: tuple[Column, ...]) -> float:
    """The default guess for these columns of x or y; the smallest where they differ."""
    guess = lambda column: DISCRETE_RESIDUAL_SCALE if column.levels else CONTINUOUS_RESIDUAL_SCALE  # noqa: E731
    return min(map(guess, columns), default=CONTINUOUS_RESIDUAL_SCALE)


def _local_permutation(cls, epsilon, domain, options):
    # Values are not centred, so winsorising below the bounds would flatten an off-centre column.
    return cls(epsilon=epsilon, winsorize=1.0, level=options.level, num_cells=options.num_cells)


def _private_gcm(variant: str):
    return lambda cls, epsilon, domain, options: cls(epsilon=epsilon, variant=variant, **_kernel_fields(options))


def _gcm(cls, epsilon, domain, options):
    del epsilon, domain
    return cls(**_kernel_fields(options))


def _test_of_tests(cls, epsilon, domain, options):
    return cls(epsilon=epsilon, test=METHODS["gcm"].make(epsilon, domain, options))


def _kernel_fields(options: Options) -> dict[str, Any]:
    fields: dict[str, Any] = {} if options.ridge is None else {"ridge": options.ridge}
    if options.lengthscale is not None:
        fields["kernel"] = importlib.import_module("jaxdp").RBF(lengthscale=options.lengthscale)
    return fields


def _case_control(cls, epsilon, domain, options):
    del domain
    return cls(epsilon=epsilon, level=options.level)


def _budget_only(cls, epsilon, domain, options):
    del domain, options
    return cls(epsilon=epsilon)


_KERNEL = ("ridge", "lengthscale")
METHODS = {
    row.name: row
    for row in (
        Method(
            "partition-gcm",
            "within-cell covariance, p-value exact for the noise; recommended for continuous columns",
            "PartitionGCM",
            _partition_gcm,
            uses=("residual_scale", "num_cells"),
        ),
        Method(
            "conditional-kendall",
            "Kendall's tau within strata; for ordered discrete columns",
            "ConditionalKendall",
            _budget_only,
            codes=True,
        ),
        Method(
            "conditional-spearman",
            "Spearman's rank correlation within strata; for ordered columns, not winsorised",
            "ConditionalSpearman",
            _budget_only,
            codes=True,
        ),
        Method(
            "local-permutation",
            "decision at --level only, exact level at any n",
            "LocalPermutation",
            _local_permutation,
            uses=("level", "num_cells"),
        ),
        Method(
            "private-gcm",
            "published private GCM with the tight noise constant; weak, loses its level as n grows",
            "PrivateGCM",
            _private_gcm("tight"),
            uses=_KERNEL,
            assumption=ACCURATE_FIT,
            kernel=True,
        ),
        Method(
            "private-gcm-paper",
            "published private GCM as published; weaker still",
            "PrivateGCM",
            _private_gcm("paper"),
            uses=_KERNEL,
            assumption=ACCURATE_FIT,
            kernel=True,
        ),
        Method(
            "test-of-tests",
            "private vote of GCM over blocks",
            "TestOfTests",
            _test_of_tests,
            uses=_KERNEL,
            assumption=ACCURATE_FIT,
        ),
        *(
            Method(name, summary, test, _case_control, codes=True, uses=("level",), assumption="")
            for name, summary, test in (
                (
                    "margin-adaptive",
                    "two binary columns, y a public group label; recommended for 2x2",
                    "MarginAdaptive",
                ),
                ("unit-circle", "chi-squared of two binary columns, y a public group label", "UnitCircle"),
                ("noisy-proportions", "difference of noisy proportions, y a public group label", "NoisyProportions"),
                ("chi2-laplace", "noise on chi-squared itself, y a public group label; weak", "ChiSquaredLaplace"),
            )
        ),
        *(
            Method(name, summary, test, _budget_only, codes=True, assumption="")
            for name, summary, test in (
                ("noisy-table", "chi-squared of a noisy table, simulated null; two discrete columns", "NoisyTableChi2"),
                ("projected-chi2", "projected chi-squared of a noisy table; two discrete columns", "ProjectedChi2"),
            )
        ),
        Method(
            "gcm",
            "non-private reference, NOT PRIVATE; needs --seed",
            "GCM",
            _gcm,
            uses=_KERNEL,
            assumption=ACCURATE_FIT,
            private=False,
            kernel=True,
        ),
    )
}


def method(name: str) -> Method:
    """The method of this name. Errors: ValueError that lists what is available."""
    found = METHODS.get(name)
    if found is None or not found.available():
        offered = ", ".join(row.name for row in METHODS.values() if row.available())
        raise ValueError(f"method must be one of {offered}, got {name!r}.")
    return found


def default_method(x: list[ColumnRule], y: list[ColumnRule], given: list[ColumnRule]) -> Method:
    """What fits these columns: Kendall's tau if all are discrete and x, y ordered single columns; else PartitionGCM."""
    discrete = all(rule.kind != CONTINUOUS for rule in (*x, *y, *given))
    ordered = len(x) == len(y) == 1 and not any(rule.needs_indicators for rule in (*x, *y))
    kendall = METHODS["conditional-kendall"]
    return kendall if discrete and ordered and given and kendall.available() else METHODS["partition-gcm"]


def wants_scores(test) -> bool:
    """Whether a test takes coded x and y as numbers on [-1, 1] instead of codes."""
    rows = [row for row in METHODS.values() if row.test == type(test).__name__]
    return bool(rows) and not any(row.codes for row in rows)
