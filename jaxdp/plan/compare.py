"""The table of all tests that fit the columns, which shows which one to use before anything is spent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Unpack

from jaxdp import catalogue
from jaxdp._base.amounts import spent
from jaxdp._base.display import Compact, Rows, as_html
from jaxdp._base.quantities import unknown
from jaxdp.accounting.renyi import zcdp_rho
from jaxdp.independence.continuous.validity import LevelLost
from jaxdp.plan.methods import plan_of, plans
from jaxdp.plan.setting import Setting
from jaxdp.plan.solve import FORMULA, LEVEL, Planned, PlannedTest

BY_NAME = "ask for it by name"
SIMULATED_ROW = 400  # replicates of a row that has no formula
NO_FEWER, NO_LESS = "It takes no fewer records at this epsilon.", "It takes no smaller epsilon with these records."
LESS = 1e-3  # share of an epsilon, beyond what the search leaves open
NEAR_ONE = 0.99  # a simulated power above it does not say how many records fewer would do without privacy


WITH_RHO = "`jaxdp test` of two columns takes no delta: use jaxdp.run, with mechanism=jaxdp.Gaussian(rho) for the test."


@dataclasses.dataclass(frozen=True, repr=False)
class Row(Compact):
    """One test: the four quantities, one of which was found, and what privacy costs in records.

    power: that of the answer, above the wanted one where the test refuses less (`note` says so).
    delta, rho: of Gaussian noise where it was planned; 0 and None for the test's own pure noise.
    found: name of the quantity that was looked for. reason: why there is no answer, or "".
    cost_of_privacy: n over what the usual non-private test needs for this effect and the wanted power; None without
    answer, and for a simulated power near 1.
    """

    method: str
    found: str
    n: int | None
    epsilon: float | None
    effect: float | None
    power: float | None
    cost_of_privacy: float | None
    engine: str
    reason: str = ""
    delta: float = 0.0
    rho: float | None = None
    note: str = ""

    @property
    def sentence(self) -> str:
        """The row in words."""
        if self.reason:
            return self.reason
        text = f"{self.method} finds an effect of {self.effect:.3g} in {self.n} records "
        text += f"at epsilon {spent(self.epsilon, 3)} "
        text += f"(delta {spent(self.delta, 3)}, rho {spent(self.rho, 4)} of zCDP) " if self.rho else ""
        text += f"with power {self.power:.3g}." + (f" {self.note}" if self.note else "")
        if self.cost_of_privacy is not None:
            text += f" Privacy costs {self.cost_of_privacy:.3g} times the records of the usual non-private test."
        return f"{text} {WITH_RHO}" if self.rho else text

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        named = ("method", "n", "epsilon", "effect", "power", "cost_of_privacy")
        values = {name.replace("_", " "): getattr(self, name) for name in named}
        return as_html(self.sentence, {name: value for name, value in values.items() if value is not None})


def answer(
    method: str,
    *,
    n: int | None = None,
    epsilon: float | None = None,
    effect: float | None = None,
    power: float | None = None,
    setting: Any = None,
    **how: Unpack[Planned],
) -> Row:
    """The fourth quantity of a test from the other three; arguments as in `jaxdp.plan.power`."""
    given: dict[str, Any] = {"n": n, "epsilon": epsilon, "effect": effect, "power": power}
    wanted, method = unknown(**given), catalogue.own_name(method)
    planned = PlannedTest.of(method, setting, **how)
    given[wanted] = planned.solved(wanted, {name: value for name, value in given.items() if name != wanted})
    goal = given["power"]
    measurable = planned.level < goal and (planned.engine == FORMULA or goal <= NEAR_ONE)
    public = planned.public_n(given["effect"], goal) if measurable else None
    note = _refused(planned, wanted, given["n"], given["epsilon"])
    if wanted != "power" and (planned.engine == FORMULA or note):
        given["power"] = planned.power(**{name: given[name] for name in ("n", "epsilon", "effect")})
    ratio = given["n"] / public if public else None
    rho = zcdp_rho(given["epsilon"], planned.delta) if planned.delta else None
    return Row(
        method, wanted, **given, cost_of_privacy=ratio, engine=planned.engine, delta=planned.delta, rho=rho, note=note
    )


def _refused(planned: PlannedTest, wanted: str, n: int, epsilon: float) -> str:
    """That the test takes no less than what was found; "" where it does, so that power alone decided."""
    if wanted == "n" and planned.refuses(n - 1, epsilon):
        return NO_FEWER
    return NO_LESS if wanted == "epsilon" and planned.refuses(n, epsilon * (1.0 - LESS)) else ""


def compare(
    setting: Setting,
    *,
    n: int | None = None,
    epsilon: float | None = None,
    effect: float | None = None,
    power: float | None = None,
    level: float = LEVEL,
    methods: Iterable[str] | None = None,
    delta: float = 0.0,
    replicates: int | None = None,
) -> Rows[Row]:
    """One row for every test that fits the setting, best first; three of n, epsilon, effect, power are given.

    Rows without a formula for these columns are simulated, with `replicates`, by default `SIMULATED_ROW`. A test that
    cannot reach the goal stays in the table with its reason, and so do those whose simulation takes minutes and those
    that measure an effect otherwise (log odds, log rates), unless named.
    delta > 0: Gaussian noise for the tests that have it; the others are (epsilon, delta)-DP without.
    Errors: ValueError unless exactly three quantities are given.
    """
    given: dict[str, Any] = {"n": n, "epsilon": epsilon, "effect": effect, "power": power}
    wanted = unknown(**given)
    replicates = SIMULATED_ROW if replicates is None else replicates
    rows = []
    for name in plans() if methods is None else methods:
        plan = plan_of(name)
        if not plan.applies(setting):
            continue
        if methods is None and (plan.planning.slow or not plan.measures_as(setting)):
            if plan.planning.slow:
                why = "is planned by simulation alone, which takes minutes"
            else:
                why = f"measures an effect as a {plan.entry.spec.effect}, not in sds"
            reason = f"{name} {why}: {BY_NAME}."
            rows.append(Row(name, wanted, **given, cost_of_privacy=None, engine="", reason=reason))
            continue
        own = delta if plan.planning.gaussian else 0.0
        try:
            rows.append(answer(name, **given, level=level, setting=setting, delta=own, replicates=replicates))
        except ValueError as error:
            if not isinstance(error, LevelLost) and not str(error).startswith(
                name
            ):  # not about this test: a mistake in the numbers
                raise
            rows.append(Row(name, wanted, **given, cost_of_privacy=None, engine="", reason=str(error), delta=own))
    sign = -1.0 if wanted == "power" else 1.0
    worst = float("inf")
    return Rows(sorted(rows, key=lambda row: worst if row.reason else sign * getattr(row, wanted)))
