"""A law of noise: its float draw, its exact draw with a certificate, and what tapes and audits read of it."""

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np

from jaxdp._base import check
from jaxdp.core import Cost, Norm, Relation
from jaxdp.noise.floats import reach
from jaxdp.noise.source import Source, require_source

_ORDERS = {Norm.L1: 1, Norm.L2: 2, Norm.LINF: np.inf}


class Law(abc.ABC):
    """One law of noise with its budget. `Source.draw` decides by its key which of the two draws is made.

    name: in certificates, on tapes and in kept answers. norm: in which the sensitivity bounds the value; instead: what
    takes another norm, for the message. outputs_released: whether every output is released, so that a search may keep
    it on disk and go on from there.
    """

    name: ClassVar[str]
    norm: ClassVar[Norm]
    instead: ClassVar[str] = ""
    outputs_released: ClassVar[bool] = False

    @abc.abstractmethod
    def float_draw(self, key, value, sensitivity):
        """The output in floating point, for simulations. key: a built-in JAX key."""

    @abc.abstractmethod
    def lattice_draw(self, key, value, sensitivity):
        """The exact output and the certificates of the draw, for releases: (output, certificate, ...)."""

    @abc.abstractmethod
    def parameters(self, sensitivity) -> tuple:
        """Public numbers behind a draw; the first is how far the value may move between neighbours."""

    @classmethod
    def distance(cls, first, second) -> float:
        """How far two values are apart, as the sensitivity counts it."""
        gap = np.ravel(np.asarray(first, float) - np.asarray(second, float))
        return float(np.linalg.norm(gap, _ORDERS[cls.norm]))

    def require(self, sensitivity) -> None:
        """Raises ValueError for a sensitivity that does not calibrate this law."""
        if sensitivity.norm is not self.norm:
            raise ValueError(
                f"{type(self).__name__} needs an {self.norm.value.capitalize()} bound, "
                f"got {sensitivity.norm.value}{self.instead}."
            )

    def perturb(self, source: Source, value, sensitivity):
        """One draw: what is released of `value`."""
        require_source(source)
        self.require(sensitivity)
        return source.draw(self, value, sensitivity)


class PureBudget:
    """What mechanisms whose whole budget is their `epsilon` have in common."""

    epsilon: Any

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)

    def share(self, fraction):
        """The mechanism that a fraction of this budget buys, rounded down: shares never add up to more."""
        mechanism: Any = self
        return dataclasses.replace(mechanism, epsilon=check.share(self.epsilon, fraction))

    def cost(self, relation: Relation) -> Cost:
        """epsilon-DP, which is epsilon^2/2-zCDP."""
        epsilon = check.budget(self.epsilon)
        return Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=relation)


class ApproximateBudget:
    """What mechanisms whose budget is their `epsilon` and `delta` have in common."""

    epsilon: Any
    delta: Any

    def share(self, fraction):
        """The mechanism that a fraction of this budget buys, of epsilon and of delta, both rounded down."""
        mechanism: Any = self
        shares = {name: check.share(getattr(self, name), fraction) for name in ("epsilon", "delta")}
        return dataclasses.replace(mechanism, **shares)

    def cost(self, relation: Relation) -> Cost:
        """(epsilon, delta)-DP."""
        return Cost(epsilon=check.budget(self.epsilon), delta=self.delta, rho=np.inf, relation=relation)


class PureLaw(PureBudget, Law):
    """A law that moves by `reach` between neighbours and costs its epsilon."""

    def parameters(self, sensitivity) -> tuple:
        return reach(sensitivity), check.budget(self.epsilon)
