"""How max-min selection divides its budget: exact shares, the noise they buy, and what all of it costs.

Theory: docs/theory/max_min_pc.md#budget.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

from jaxdp._base import check
from jaxdp._base.rounding import as_fraction
from jaxdp.accounting import zcdp_rho
from jaxdp.core import Cost, Norm, Relation, Sensitivity
from jaxdp.discovery.engine.number_noise import CubeNoise, LaplaceNoise, NormalNoise, NumberNoise
from jaxdp.mechanisms import ExponentialMechanism, Gaussian, Laplace, MaxNorm, PermuteAndFlip
from jaxdp.privacy import Claim

MAX_RECORDS = 10**9  # of the public range, where the number of records is private
RANGE_SCALES = 64  # the public range leaves this many noise scales on both sides, so that clipping does not bias
ROUND_UP = 1.0 + 2.0**-40  # of square roots in float64


@dataclasses.dataclass(frozen=True)
class Shares:
    """Fractions of the budget: of the spanning tree, of further edges, of pruning, of directions, and of what is
    released about the columns beforehand. They add up to 1."""

    tree: Fraction
    forward: Fraction = Fraction(0)
    prune: Fraction = Fraction(0)
    directions: Fraction = Fraction(0)
    columns: Fraction = Fraction(0)

    def __post_init__(self):
        parts = [Fraction(part) for part in dataclasses.astuple(self)]
        if sum(parts) != 1 or min(parts) < 0:
            raise ValueError(f"shares must be >= 0 and add up to 1, got {', '.join(map(str, parts))}.")

    def with_directions(self, fraction) -> Shares:
        """The same shares of what is left when directions take a fraction."""
        taken = as_fraction(fraction)
        tree, forward, prune, columns = (
            (1 - taken) * part for part in (self.tree, self.forward, self.prune, self.columns)
        )
        return Shares(tree, forward, prune, taken, columns)


@dataclasses.dataclass(frozen=True)
class Budget:
    """A whole budget and the mechanisms that fractions of it buy.

    whole: `Laplace(epsilon)`, whose parts add up; or `Gaussian(rho)`, zCDP. epsilon, delta: of the claim. cube: whether
    numbers released together for a pure epsilon have noise of the cube (`MaxNorm`), not Laplace noise.
    """

    whole: Any
    epsilon: float
    delta: float
    relation: Relation
    cube: bool = False

    @classmethod
    def of(cls, epsilon: float, delta: float, relation: Relation, cube: bool = False) -> Budget:
        """Pure epsilon, or the largest rho whose zCDP is (epsilon, delta)-DP. Errors: ValueError."""
        check.positive(epsilon=epsilon)
        check.in_range(-1.0, 1.0, delta=delta)
        check.non_negative(delta=delta)
        epsilon, delta = float(epsilon), float(delta)
        return cls(Gaussian(zcdp_rho(epsilon, delta)) if delta else Laplace(epsilon), epsilon, delta, relation, cube)

    @property
    def pure(self) -> bool:
        """Whether the claim is a pure epsilon."""
        return self.delta == 0.0

    def cost(self) -> Cost:
        """Of the whole search, however early it stops."""
        if self.pure:
            return Cost(epsilon=self.epsilon, rho=self.epsilon**2 / 2, relation=self.relation)
        return Claim(epsilon=self.epsilon, delta=self.delta, rho=float(self.whole.rho), relation=self.relation)

    def draw(self, fraction: Fraction):
        """The selection that a fraction buys: permute-and-flip, or the exponential mechanism."""
        if self.pure:
            return PermuteAndFlip(epsilon=check.share(self.epsilon, fraction))
        return ExponentialMechanism(epsilon=_root_below(8 * as_fraction(check.share(self.whole.rho, fraction))))

    def draw_scale(self, fraction: Fraction, sensitivity: float) -> float:
        """Scale of the noise of each score in a selection."""
        return 2.0 * sensitivity / float(self.draw(fraction).epsilon)

    def numbers(self, fraction: Fraction, count: int, bound: float, error: float, num_records: int):
        """The mechanism that releases `count` numbers, each of which moves by at most `bound`; their sensitivity; the
        law of the noise of each."""
        if self.pure and self.cube:
            mechanism: Any = MaxNorm(check.share(self.epsilon, fraction))
            plain = Sensitivity(bound, Norm.LINF, self.relation, error)
            noise: NumberNoise = CubeNoise(float(mechanism.scale(plain)), count)
        else:
            mechanism = self.whole.share(fraction)
            norm, together = (Norm.L1, count) if self.pure else (Norm.L2, ROUND_UP * math.sqrt(count))
            plain = Sensitivity(together * bound, norm, self.relation, error)
            noise = (LaplaceNoise if self.pure else NormalNoise)(float(mechanism.scale(plain)))
        end = math.ceil(num_records + RANGE_SCALES * noise.spread)
        return mechanism, dataclasses.replace(plain, lower=-end, upper=end), noise


def _root_below(square: Fraction) -> float:
    """A float whose square, read as `as_fraction` does, is at most the given one."""
    root = math.sqrt(square)
    while as_fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root
