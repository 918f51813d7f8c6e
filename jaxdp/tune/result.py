"""A tuned test and what it was tuned on: every number comes with its design, seed, objective and level check."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxdp._base.display import Compact, Readable, one_line, shown
from jaxdp.core import method_of
from jaxdp.simulate.engine.replicates import Design, RejectionRate

LEVEL_DOUBT = 0.05  # a tuned test of the default's level fails the check of one null with at most this probability
GAIN_DOUBT = 1e-3  # and one of the default's power passes for a gain with at most this one
LOSS_DOUBT = 0.01  # or fails for a loss on another declared alternative with at most this one


@dataclasses.dataclass(frozen=True, repr=False)
class LevelCheck(Compact):
    """False alarms of the tuned and of the default test on one null, same fresh replicates.

    only_tuned, only_default: replicates in which one of the two rejects and the other does not.
    """

    null: str
    tuned: RejectionRate
    default: RejectionRate
    only_tuned: int
    only_default: int

    @classmethod
    def of(cls, null: str, tuned, default, level: float) -> LevelCheck:
        """From the p-values of both tests on the same replicates."""
        rejects = [np.asarray(values) <= level * (1.0 + 1e-6) for values in (tuned, default)]
        rates = [RejectionRate(int(reject.sum()), reject.size, level) for reject in rejects]
        only = [int(np.sum(rejects[0] & ~rejects[1])), int(np.sum(rejects[1] & ~rejects[0]))]
        return cls(null, rates[0], rates[1], only[0], only[1])

    @classmethod
    def together(cls, checks) -> LevelCheck:
        """All nulls as one: a small rise that all of them share shows here first."""
        rates = [
            RejectionRate(sum(r.rejections for r in rates), sum(r.replicates for r in rates), rates[0].level)
            for rates in ([check.tuned for check in checks], [check.default for check in checks])
        ]
        only = [sum(check.only_tuned for check in checks), sum(check.only_default for check in checks)]
        return cls("all nulls together", rates[0], rates[1], only[0], only[1])

    def rejects_more(self, doubt: float) -> bool:
        """Whether the tuned test rejects more often than the default, beyond chance: sign test of this size."""
        return _beyond(self.only_tuned, self.only_tuned + self.only_default, 0.5, doubt)

    def rejects_less(self, doubt: float) -> bool:
        """Whether the default rejects more often than the tuned test, beyond chance: sign test of this size."""
        return _beyond(self.only_default, self.only_tuned + self.only_default, 0.5, doubt)

    @property
    def holds(self) -> bool:
        """Whether the tuned test keeps the level here.

        It does where it rejects no more often than the level, and where it does not reject more often than the default
        beyond chance. Where it rejects more often than the level beyond chance, the default's own excess is no licence:
        then it may not reject more often than the default at all, in the count.
        """
        if self.tuned.rate <= self.tuned.level:
            return True
        if _beyond(self.tuned.rejections, self.tuned.replicates, self.tuned.level, LEVEL_DOUBT):
            return self.only_tuned <= self.only_default
        return not self.rejects_more(LEVEL_DOUBT)


def _beyond(count: int, trials: int, rate: float, doubt: float) -> bool:
    """Whether so large a count out of Binomial(trials, rate) has at most this probability."""
    from scipy.stats import binom

    return bool(count > binom.ppf(1.0 - doubt, trials, rate))


@dataclasses.dataclass(frozen=True, repr=False)
class Tuned(Readable):
    """A tuned test. `test` is the tuned one if its level held on every null and it gained power, else the default.

    values, options: the numbers and choices in force, those of `test`. tried, tried_options: those that the tuning
    found, in force or refused. default_values: those of the default. tuned_on: design and nulls in words, seed,
    objective, optimizer, and what was refused before. power, default_power: on fresh replicates of the design tuned on
    (not held out). checks: the level on fresh seeds, up to the first null that breaks it, () where no power was gained.
    Public: nothing here has seen private data.
    """

    test: Any
    tried: dict[str, Any]
    default_values: dict[str, Any]
    tried_options: dict[str, Any]
    objective: float
    default_objective: float
    power: RejectionRate
    default_power: RejectionRate
    checks: tuple[LevelCheck, ...]
    tuned_on: dict[str, Any]
    refused: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the tuned values are in force."""
        return not self.refused

    @property
    def values(self) -> dict[str, Any]:
        """The numbers in force: of the default where the tuned ones were refused."""
        return self.tried if self.accepted else self.default_values

    @property
    def options(self) -> dict[str, Any]:
        """The choices in force; {} where they were refused."""
        return self.tried_options if self.accepted else {}

    @property
    def gain(self) -> float:
        """Power of the test in force minus that of the default, on fresh replicates."""
        return self.power.rate - self.default_power.rate if self.accepted else 0.0

    def __str__(self) -> str:
        state = self._power() if self.accepted else self.refused
        return f"{self._changed()}; {state}; tuned on {self.tuned_on['design']}, seed {self.tuned_on['seed']}"

    def _changed(self) -> str:
        """What was tried in words, arrays by shape."""
        moves = [f"{k} {shown(self.default_values[k], 4)} -> {shown(v, 4)}" for k, v in self.tried.items()]
        return ", ".join([*moves, *(f"{k} = {shown(v)}" for k, v in self.tried_options.items())])

    def _power(self) -> str:
        return f"power {self.default_power.rate:.3f} -> {self.power.rate:.3f}"

    def _display(self) -> tuple[str, dict[str, Any]]:
        held = sum(check.holds for check in self.checks)
        values = {
            "tuned": self._changed(),
            "result": f"{self._power()} on fresh replicates",
            "level": f"holds on {held} of {len(self.checks)} nulls checked" if self.checks else None,
            "refused": self.refused,
            "test": one_line(self.test),
            "tuned on": f"{self.tuned_on.get('design')}, seed {self.tuned_on.get('seed')}",
        }
        title = f"{method_of(self.test)}, {'tuned' if self.accepted else 'not changed'} (simulated data only)"
        return title, {name: values[name] for name in values if values[name]}


def in_words(design: Design) -> str:
    """A design as text: its name and numbers."""
    name = getattr(design.function, "__name__", type(design.function).__name__)
    numbers = {key: np.asarray(value).tolist() for key, value in design.numbers.items()}
    settings = {**dict(design.settings), **numbers}
    return f"{name}({', '.join(f'{k}={v}' for k, v in settings.items())})"
