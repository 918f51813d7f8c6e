"""Power beside risk over a public grid of epsilons: what a test finds, and what anybody can guess of one record."""

from __future__ import annotations

import dataclasses
import html
import itertools
import math
from collections.abc import Sequence
from typing import Any

from jaxdp._base import check, risk
from jaxdp._base.amounts import spent
from jaxdp._base.display import Rows
from jaxdp.accounting.renyi import zcdp_epsilon, zcdp_rho
from jaxdp.plan import solve
from jaxdp.plan.methods import default_method
from jaxdp.plan.setting import Setting
from jaxdp.plan.solve import LEVEL, SIMULATION, PlannedTest
from jaxdp.simulate.power import RejectionRate

GRID = (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
REPLICATES = 400  # of a point that has no formula
FLAT = 0.9  # share of the non-private power from which on a larger epsilon gains little
FLAT_TOLD = f"{100.0 * FLAT:.0f} %"


@dataclasses.dataclass(frozen=True)
class EpsilonPoint:
    """One total epsilon: what it risks, and the power of each of the studies that share it.

    odds: the factor by which the odds between two versions of a record grow at most. best_guess: the largest
    probability of picking the right one of two; household: the same where four records change together.
    share: what each study spends. low, high: 95 % interval of a simulated power; None for a formula.
    """

    epsilon: float
    odds: float
    best_guess: float
    household: float
    share: float
    power: float
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True, repr=False)
class EpsilonCurve:
    """Points of rising epsilon. knee: the smallest epsilon of the grid from which on the wanted power is reached.

    flat: the same for 90 % of the non-private power, beyond which little is gained. None: not on this grid.
    """

    method: str
    n: int
    effect: float
    level: float
    delta: float
    studies: int
    wanted: float
    not_private: float
    engine: str
    knee: float | None
    flat: float | None
    points: Rows[EpsilonPoint]

    def at(self, epsilon: float) -> EpsilonPoint:
        """The point of this epsilon."""
        return next(point for point in self.points if point.epsilon == epsilon)

    @property
    def sentence(self) -> str:
        """What the curve says, in words."""
        each = f"each of {self.studies} studies" if self.studies > 1 else self.method
        found = f"an effect of {self.effect:.3g} in {self.n} records"
        if self.knee is None:
            last = self.points[-1]
            text = (
                f"No epsilon up to {spent(last.epsilon, 3)} gives {each} a power of {self.wanted:g} to find {found}: "
                f"{last.power:.2f} at most. It takes more records or a larger effect."
            )
        else:
            knee = self.at(self.knee)
            text = (
                f"A total epsilon of {spent(knee.epsilon, 3)} is the smallest on this grid at which {each} finds "
                f"{found} with power {self.wanted:g} or more ({knee.power:.2f}); someone who knows every other record "
                f"then guesses right in {risk.of_100(knee.best_guess)} of 100 cases instead of 50."
            )
        if self.flat is not None:
            reached = f"is reached from {spent(self.flat, 3)} on"
            text += f" {FLAT_TOLD} of the non-private power ({self.not_private:.2f}) {reached}."
        return text

    def plot(self) -> Any:
        """The picture. Needs the `plot` extra."""
        from jaxdp.report.epsilon_curve import epsilon_curve as draw
        from jaxdp.report.picture import Picture

        return Picture.drawn(draw, self)

    def __repr__(self) -> str:
        return f"{self.sentence}\n{self.table()}"

    def table(self) -> str:
        """The points as lines of a screen, the knee marked."""
        return "\n".join([self._header(), *map(self._line, self.points)])

    def _header(self) -> str:
        share = f"{'each':>9}" if self.studies > 1 else ""
        return f"{'epsilon':>9}{share}{'power':>8}{'odds':>9}{'best guess':>12}{'household of four':>19}"

    def _line(self, point: EpsilonPoint) -> str:
        share = f"{spent(point.share, 3):>9}" if self.studies > 1 else ""
        marks = [("knee", self.knee), (f"{FLAT_TOLD} of the non-private power", self.flat)]
        told = ", ".join(name for name, epsilon in marks if epsilon == point.epsilon)
        odds = spent(point.odds, 3) if point.odds < 100.0 else f"{math.ceil(point.odds)}"
        guesses = f"{risk.shown(point.best_guess):>12}{risk.shown(point.household):>19}"
        end = f"  <- {told}" if told else ""
        return f"{spent(point.epsilon, 3):>9}{share}{point.power:>8.2f}{odds:>9}{guesses}{end}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.sentence)}</p><pre>{html.escape(self.table())}</pre>"


def epsilon_curve(
    method: str | None = None,
    *,
    n: int,
    effect: float,
    studies: int = 1,
    power: float = solve.WANTED_POWER,
    level: float = LEVEL,
    setting: Setting | None = None,
    delta: float = 0.0,
    epsilons: Sequence[float] = GRID,
    replicates: int = REPLICATES,
    key: Any = None,
) -> EpsilonCurve:
    """Power beside risk over total epsilons, for n records and an effect; nothing is read and nothing is spent.

    method: default, that of `jaxdp.test` for the columns of the setting. studies: so many tests share each total: each
    spends an equal part of epsilon, or of rho where delta > 0. power: the wanted one, which the knee reaches.
    epsilons: rising. Where there is no formula, replicates of the test on made-up data are drawn with one key, and
    each point has its interval. Errors: ValueError on numbers out of range.
    """
    grid = [float(epsilon) for epsilon in epsilons]
    check.at_least(1, studies=studies)
    if not grid or min(grid) <= 0.0 or any(a >= b for a, b in itertools.pairwise(grid)):
        raise ValueError("epsilons must be positive numbers that rise, such as (0.1, 0.3, 1.0).")
    solve.require_numbers(n=n, effect=effect, power=power)
    planned = PlannedTest.of(
        method or default_method(setting, n), setting, level=level, replicates=replicates, key=key, delta=delta
    )
    name = planned.plan.name
    if n < planned.plan.planning.min_records:
        raise ValueError(f"{name} needs at least {planned.plan.planning.min_records} records, got {n}.")
    points = Rows(_point(planned, n, effect, epsilon, studies) for epsilon in grid)
    reference = planned.reference(n, effect)
    return EpsilonCurve(
        name,
        n,
        effect,
        level,
        delta,
        studies,
        power,
        reference,
        planned.engine,
        _first(points, power),
        _first(points, FLAT * reference),
        points,
    )


def _first(points: Sequence[EpsilonPoint], wanted: float) -> float | None:
    """The smallest epsilon from which on every point has the wanted power; a lucky simulated point is no knee."""
    found = None
    for point in reversed(points):
        if point.power < wanted:
            break
        found = point.epsilon
    return found


def share_of(epsilon: float, studies: int, delta: float) -> float:
    """What each of so many studies may spend of a total; with delta they share rho, which adds up too."""
    if studies == 1:
        return epsilon
    return zcdp_epsilon(zcdp_rho(epsilon, delta) / studies, delta) if delta else epsilon / studies


def _point(planned: PlannedTest, n: int, effect: float, epsilon: float, studies: int) -> EpsilonPoint:
    share = share_of(epsilon, studies, planned.delta)
    solve.tell(f"power at epsilon {spent(epsilon, 3)}")
    rate = planned.power_or_zero(n, share, effect)
    interval: tuple[float | None, float | None] = (None, None)
    if planned.engine == SIMULATION:
        counted = RejectionRate(round(rate * planned.replicates), planned.replicates, planned.level)
        low, high = counted.interval()
        interval = float(low), float(high)
    risks = risk.odds(epsilon), risk.best_guess(epsilon, planned.delta), risk.of_household(epsilon, planned.delta)
    return EpsilonPoint(epsilon, *risks, share, float(rate), *interval)
