"""Power, and the number of records, budget or effect that reaches a wanted power.

A formula is used where there is one, replicates of the real test on made-up data elsewhere. Simulated answers come
from common random numbers: replicate r uses the same key, and its first n draws, at every n, epsilon and effect. A
search spends replicates only where the power is near the wanted one: a step is over once an interval says its side.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypedDict, Unpack

import jax
import numpy as np

from jaxdp._base import check
from jaxdp._base.amounts import spent
from jaxdp._base.display import duration
from jaxdp.accounting import renyi
from jaxdp.independence.continuous.validity import LevelLost
from jaxdp.mechanisms import Gaussian
from jaxdp.plan import laws
from jaxdp.plan.methods import MIN_N, Plan, plan_of
from jaxdp.plan.setting import Setting
from jaxdp.simulate import power as replicates_of
from jaxdp.statistics import sums

FORMULA, SIMULATION, AUTO = "formula", "simulation", "auto"
LEVEL, WANTED_POWER, REPLICATES, SEED = 0.05, 0.8, 1000, 8
MAX_N = sums.MAX_RECORDS  # tests with exact sums refuse more
MAX_SIMULATED_N = 50_000
EPSILONS, EFFECTS = (1e-3, 1e3), (1e-4, 30.0)
ROUNDS, CLOSE = 8, 1.02  # of a simulated search: at most so many steps after doubling, then within 2 %
FIRST_TRY = 0.1
STAGE = 100  # replicates between two looks at whether the side is clear
CLEAR = 3.5  # sds of the interval that says so: wrong once in 2000 looks, and then close by

_listener: contextvars.ContextVar[Callable[[str], None]] = contextvars.ContextVar("listener", default=lambda text: None)


@contextlib.contextmanager
def listening(tell: Callable[[str], None]) -> Iterator[None]:
    """Inside, `tell` hears of every step of a search by simulation, in words."""
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(text: str) -> None:
    """Tells whoever is listening."""
    _listener.get()(text)


class Planned(TypedDict, total=False):
    """Keywords that the functions of this file share, each with its default: see `power`."""

    level: float
    engine: str
    replicates: int
    key: jax.Array | None
    delta: float


@dataclasses.dataclass(frozen=True)
class PlannedTest:
    """A test in a setting at a level; `power` is a function of n, epsilon and effect.

    wanted: the power that a search compares with, so that a simulated one is only as precise as that needs; None: it
    takes all replicates.
    """

    plan: Plan
    setting: Setting
    level: float
    engine: str
    replicates: int = REPLICATES
    key: Any = None
    delta: float = 0.0
    wanted: float | None = None

    @classmethod
    def of(cls, method: str, setting: Setting | None = None, **how: Unpack[Planned]) -> PlannedTest:
        """Checked. Errors: ValueError for names, numbers and columns that do not fit."""
        plan, engine, delta = plan_of(method), how.get("engine", AUTO), how.get("delta", 0.0)
        level, replicates = how.get("level", LEVEL), how.get("replicates", REPLICATES)
        said, setting = setting is not None, plan.setting if setting is None else setting
        check.in_range(0.0, 0.5, level=level)
        check.one_of((AUTO, FORMULA, SIMULATION), engine=engine)
        check.at_least(1, replicates=replicates)
        if not plan.applies(setting):
            if not said:
                raise ValueError(
                    f"{method} is planned for the columns of a schema: give one, with x and y (on the command line "
                    "--schema, --x, --y)."
                )
            raise ValueError(f"{method} does not fit these columns; jaxdp.plan.compare lists the tests that do.")
        plan.refuse(plan.fitted(setting))
        if delta:
            check.in_range(0.0, 1.0, delta=delta)
            if not plan.planning.gaussian:
                raise ValueError(f"{method} has no Gaussian form; plan it without delta.")
        has_formula = plan.has_formula(setting, delta)
        if engine == FORMULA and not has_formula:
            raise ValueError(f"{method} has no power formula for these columns; use engine='simulation'.")
        engine = (FORMULA if has_formula else SIMULATION) if engine == AUTO else engine
        key = how.get("key")
        return cls(plan, setting, level, engine, replicates, jax.random.key(SEED) if key is None else key, delta)

    def required_n(self, *, epsilon: float, effect: float, power: float) -> int:
        """`jaxdp.plan.required_n` of this test."""
        largest = MAX_N if self.engine == FORMULA else MAX_SIMULATED_N

        def reached(n: float, planned: PlannedTest) -> float:
            return planned.power_or_zero(round(n), epsilon, effect)

        found = self._smallest(reached, power, self.plan.planning.min_records, largest, 0.5)
        if found is None:
            raise ValueError(
                f"{self.plan.name} needs more than {largest:g} records for effect {effect:g} at epsilon "
                f"{spent(epsilon)}; raise epsilon, or plan for a larger effect."
            )
        return math.ceil(found - 1e-9)

    def minimum_epsilon(self, *, n: int, effect: float, power: float) -> float:
        """`jaxdp.plan.minimum_epsilon` of this test."""
        found = self._smallest(
            lambda epsilon, planned: planned.power_or_zero(n, epsilon, effect), power, *EPSILONS, 1e-4
        )
        if found is None:
            most = f"at any epsilon up to {EPSILONS[1]:g}"
            raise ValueError(f"{self.plan.name} cannot find effect {effect:g} in {n} records {most}.")
        return found

    def detectable_effect(self, *, n: int, epsilon: float, power: float) -> float:
        """`jaxdp.plan.detectable_effect` of this test."""
        low, high = EFFECTS[0], min(EFFECTS[1], self.setting.max_effect)
        found = self._smallest(lambda effect, planned: planned.power(n, epsilon, effect), power, low, high, 1e-4)
        if found == low and (false := self.power(n, epsilon, 0.0)) >= power:
            raise ValueError(
                f"{self.plan.name} loses its level here: without the effect it rejects {false:.0%} of such data."
            )
        if found is None:
            most = f"no effect up to {high:g}"
            raise ValueError(f"{self.plan.name} finds {most} in {n} records at epsilon {spent(epsilon)}.")
        return found

    def public_n(self, effect: float, power: float) -> int:
        """Records that the usual non-private test needs."""
        found = _bisected(lambda n: self.reference(round(n), effect), power, 4, MAX_N, 0.5)
        if found is None:
            raise ValueError(f"effect {effect:g} is too small to plan for.")
        return math.ceil(found - 1e-9)

    def solved(self, wanted: str, given: Mapping[str, Any]) -> Any:
        """The quantity of this name, "n", "epsilon", "effect" or "power", from the other three.

        Errors: ValueError for numbers that no plan has, and where nothing reaches the wanted power.
        """
        require_numbers(**given)
        solvers: dict[str, Callable[..., Any]] = {
            "n": self.required_n,
            "epsilon": self.minimum_epsilon,
            "effect": self.detectable_effect,
            "power": self.power,
        }
        return solvers[wanted](**given)

    def _smallest(self, function: Callable, wanted: float, low: float, high: float, tolerance: float) -> float | None:
        """Smallest argument with function(argument, this test) >= wanted; None if there is none up to `high`."""
        planned = dataclasses.replace(self, wanted=wanted)
        if self.engine == SIMULATION:
            close = math.sqrt(wanted * (1.0 - wanted) / self.replicates)
            return _smallest_simulated(_reported(lambda value: function(value, planned)), wanted, low, high, close)
        return _bisected(lambda value: function(value, planned), wanted, low, high, tolerance)

    def power(self, n: int, epsilon: float, effect: float) -> float:
        """Probability of rejecting."""
        if n < self.plan.planning.min_records:
            raise ValueError(f"{self.plan.name} needs at least {self.plan.planning.min_records} records, got {n}.")
        self._require_level(int(n), float(epsilon))
        if self.engine == FORMULA:
            assert self.plan.formula is not None
            budget = laws.Concentrated(renyi.zcdp_rho(float(epsilon), self.delta)) if self.delta else float(epsilon)
            return self.plan.formula(self._setting(n), int(n), budget, float(effect), self.level)
        return self.simulated(n, epsilon, effect).rate if self.wanted is None else self._raced(n, epsilon, effect)

    def _raced(self, n: int, epsilon: float, effect: float) -> float:
        """`simulated`, stage by stage until it is clear on which side of the wanted power it lies."""
        assert self.wanted is not None
        test, design = self._simulation(n, epsilon, effect)
        rejections = done = 0
        while done < self.replicates:
            count = min(STAGE, self.replicates - done)
            values = np.asarray(replicates_of.p_values(test, design, self.key, count, start=done))
            rejections, done = rejections + replicates_of.rejections(values, self.level), done + count
            low, high = replicates_of.RejectionRate(rejections, done, self.level).interval(CLEAR)
            if not low <= self.wanted <= high:
                break
        return rejections / done

    def power_or_zero(self, n: int, epsilon: float, effect: float) -> float:
        """`power`; 0 where the test refuses so few records at this epsilon, since it finds nothing there."""
        try:
            return self.power(n, epsilon, effect)
        except LevelLost:
            return 0.0

    def refuses(self, n: int, epsilon: float) -> bool:
        """Whether the test, or its plan, takes no such number of records at this epsilon."""
        try:
            self._require_level(int(n), float(epsilon))
        except LevelLost:
            return True
        return n < self.plan.planning.min_records

    def simulated(self, n: int, epsilon: float, effect: float) -> replicates_of.RejectionRate:
        """Counts over replicates of the real test."""
        test, design = self._simulation(n, epsilon, effect)
        return replicates_of.rejection_rate(test, design, self.key, self.replicates, level=self.level)

    def _setting(self, n: int) -> Setting:
        """The setting as the test takes n records."""
        return self.plan.fitted(self.setting, int(n))

    def _simulation(self, n: int, epsilon: float, effect: float) -> tuple:
        """The test and the design of its made-up data."""
        return self._test(int(n), float(epsilon)), self._setting(n).design(int(n), effect, self.plan.form)

    def _test(self, n: int, epsilon: float):
        """The real test, as `jaxdp.test` would build it."""
        test = self.plan.make(self.setting, epsilon, self.level, n)
        if not self.delta:
            return test
        rho = renyi.zcdp_rho(epsilon, self.delta)
        return dataclasses.replace(test, epsilon=None, mechanism=Gaussian(rho))

    def _require_level(self, n: int, epsilon: float) -> None:
        """Raises `LevelLost` where the test itself would refuse n records at epsilon.

        A replicate is compiled and knows no budget, so the rule is asked here.
        """
        if self.plan.entry.cls.enforce_rule:
            test = self._test(n, epsilon)
            shapes = jax.eval_shape(self._setting(n).design(n, 0.0, self.plan.form), jax.random.key(0))
            test.validity(shapes).require()

    def reference(self, n: int, effect: float) -> float:
        """Power of the usual non-private test."""
        setting = self._setting(n)
        return self.plan.reference(setting)(setting, int(n), math.inf, effect, self.level)


def power(
    method: str, *, n: int, epsilon: float, effect: float, setting: Setting | None = None, **how: Unpack[Planned]
) -> float:
    """Probability that the test finds an effect, at n records and a budget of epsilon.

    method: a name of `jaxdp.plan.METHODS`. effect: how far Y's own part moves with X's own part, in sds
    (`jaxdp.plan.setting`). setting: the columns, default the continuous model of the GCM paper or a 2 x 2 table.
    level: significance level, default 0.05. engine: "formula", "simulation" (replicates of the real test on made-up
    data; key: a simulation key), or "auto", the default.
    delta: 0 for the test's own pure noise; else Gaussian noise of the largest rho that is (epsilon, delta)-DP.
    Public numbers only; nothing is read and nothing is spent. Errors: ValueError on numbers out of range.
    """
    return PlannedTest.of(method, setting, **how).solved("power", {"n": n, "epsilon": epsilon, "effect": effect})


def required_n(
    method: str,
    *,
    epsilon: float,
    effect: float,
    power: float = WANTED_POWER,
    setting: Setting | None = None,
    **how: Unpack[Planned],
) -> int:
    """Smallest number of records at which the test finds the effect with the wanted power; arguments as in `power`.

    Errors: ValueError where more than 2^27 records (50 000 by simulation) would be needed.
    """
    return PlannedTest.of(method, setting, **how).solved("n", {"epsilon": epsilon, "effect": effect, "power": power})


def minimum_epsilon(
    method: str,
    *,
    n: int,
    effect: float,
    power: float = WANTED_POWER,
    setting: Setting | None = None,
    **how: Unpack[Planned],
) -> float:
    """Smallest epsilon at which n records suffice for the wanted power; arguments as in `power`."""
    return PlannedTest.of(method, setting, **how).solved("epsilon", {"n": n, "effect": effect, "power": power})


def detectable_effect(
    method: str,
    *,
    n: int,
    epsilon: float,
    power: float = WANTED_POWER,
    setting: Setting | None = None,
    **how: Unpack[Planned],
) -> float:
    """Smallest effect that n records and epsilon find with the wanted power; arguments as in `power`."""
    return PlannedTest.of(method, setting, **how).solved("effect", {"n": n, "epsilon": epsilon, "power": power})


def cost_of_privacy(
    method: str,
    *,
    epsilon: float,
    effect: float,
    power: float = WANTED_POWER,
    setting: Setting | None = None,
    **how: Unpack[Planned],
) -> float:
    """Records that the private test needs over those the usual non-private one needs; arguments as in `power`.

    The usual test: the GCM with an exact fit, or Pearson's chi-squared for the tests of tables.
    """
    planned = PlannedTest.of(method, setting, **how)
    n = planned.solved("n", {"epsilon": epsilon, "effect": effect, "power": power})
    return n / planned.public_n(effect, power)


def _bisected(
    function: Callable[[float], float], wanted: float, low: float, high: float, tolerance: float
) -> float | None:
    """Smallest argument with function >= wanted, by bisection on the logarithm; None if there is none up to `high`."""
    if function(high) < wanted:
        return None
    if function(low) >= wanted:
        return low
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if function(middle) >= wanted else (middle, high)
        if high - low < tolerance * (1.0 if tolerance >= 0.5 else high):
            break
    return high


def _reported(function: Callable[[float], float]) -> Callable[..., float]:
    """The function, each of whose values the listener hears of; `left`: the steps that may follow, if that is known."""

    def reported(argument: float, left: int | None = None) -> float:
        start = time.perf_counter()
        found = function(argument)
        took = time.perf_counter() - start
        rest = "" if left is None else f"; {left} steps more at most, about {duration(left * took)}"
        tell(f"power {found:.2f} at {argument:.4g}{rest}")
        return found

    return reported


def _smallest_simulated(function, wanted: float, lowest: float, highest: float, close: float = 0.0) -> float | None:
    """By doubling, then by interpolation: probit of power is close to linear in the root of the argument.

    close: a power above the wanted one by no more ends the search: its standard error, within which steps say nothing.
    """
    from scipy.special import ndtri

    def probit(power):
        return float(ndtri(min(max(power, 1e-4), 1.0 - 1e-4)))

    low, at_low, high = lowest, None, max(lowest, FIRST_TRY)
    while (at_high := function(high)) < wanted:
        if high >= highest:
            return None
        low, at_low, high = high, at_high, min(2.0 * high, highest)
    at_low = function(low) if at_low is None else at_low
    if at_low >= wanted:
        return low
    for turn in range(ROUNDS):
        if high <= CLOSE * low:
            break
        share = (probit(wanted) - probit(at_low)) / (probit(at_high) - probit(at_low))
        share = min(max(share, 0.1), 0.9)
        middle = (math.sqrt(low) + share * (math.sqrt(high) - math.sqrt(low))) ** 2
        found = function(middle, ROUNDS - 1 - turn)
        if wanted <= found <= wanted + close:
            return middle
        low, at_low, high, at_high = (low, at_low, middle, found) if found >= wanted else (middle, found, high, at_high)
    return high


def require_numbers(**given) -> None:
    """Errors: ValueError for an n, epsilon, effect or power that no plan has."""
    if "n" in given:
        check.at_least(MIN_N, n=given["n"])
    if "power" in given:
        check.in_range(0.0, 1.0, power=given["power"])
    check.positive(**{name: given[name] for name in ("epsilon", "effect") if name in given})
