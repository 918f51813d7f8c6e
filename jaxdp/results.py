"""What a query gives: its release, what the release says, and the result of a test."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from jaxdp._base.display import NOT_PRIVATE, Readable, listed, shown, titled
from jaxdp.privacy import Cost, Number
from jaxdp.randomness import keys

if TYPE_CHECKING:
    from jaxdp.noise.certificate import Certificate


class Interpretation(NamedTuple):
    """What a release says: public, at no further cost. The estimate is `Result.statistic`."""

    p_value: Any
    estimate: Any
    effect: Any = None
    interval: Any = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Release(Readable):
    """The noisy statistic and what is public about it.

    value: pytree of noisy arrays, the only thing about the data that may leave.
    sensitivity: what the noise was calibrated to. cost: what the release cost.
    num_records: public under the replacing relations, None under ADD_OR_REMOVE_ONE.
    earlier: what the stages before this one released; their cost is included.
    certificates: exact facts about the noise of a release (lattice step, rate, epsilon), one per draw.
    """

    value: Any
    sensitivity: Any
    cost: Cost
    num_records: int | None = jax.tree.static(default=None)
    mode: str = jax.tree.static(default=keys.SIMULATION)
    earlier: tuple[Release, ...] = ()
    certificates: tuple[Certificate, ...] = jax.tree.static(default=())

    def _display(self) -> tuple[str, dict[str, Any]]:
        values = {"value": self.value, "privacy": str(self.cost), "records": self.num_records}
        laws = [certificate.law for certificate in self.certificates]
        more = {"stages": len(self.earlier) + 1, "noise": listed(dict.fromkeys(laws))}
        return titled("release", self.mode), values | {name: more[name] for name in more if more[name] not in (1, "")}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Result(Readable):
    """What a test publishes; unpacks to (statistic, p_value). Everything in it is noisy or public.

    effect: how strong the dependence is, on the scale that the test's `spec.effect` names; interval: its 95 % interval
    (low, high). Both are post-processing of the release (no further cost), and None where a test offers none.
    """

    p_value: Number
    statistic: Any
    release: Release
    cost: Cost
    effect: Any = None
    interval: Any = None
    mode: str = jax.tree.static(default=keys.SIMULATION)
    method: str = jax.tree.static(default="")

    @property
    def pvalue(self) -> Number:
        """SciPy's spelling of `p_value`."""
        return self.p_value

    def __iter__(self) -> Iterator[Any]:
        return iter((self.statistic, self.p_value))

    def __str__(self) -> str:
        note = f" {NOT_PRIVATE}" if self.mode == keys.SIMULATION else ""
        numbers = f"p_value={shown(self.p_value)} statistic={shown(self.statistic)}"
        return f"{self.method}: {numbers} [{self.cost}]{note}"

    def _display(self) -> tuple[str, dict[str, Any]]:
        numbers = {"p-value": self.p_value, "statistic": self.statistic}
        if self.effect is not None:
            numbers |= {"effect": self.effect, "interval": self.interval}
        records = getattr(self.release, "num_records", None)
        return titled(self.method or "result", self.mode), {**numbers, "privacy": str(self.cost), "records": records}


def bare(release: Release) -> Release:
    """Without certificates and earlier stages: no input of an answer, and static, so that they would recompile it."""
    return dataclasses.replace(release, certificates=(), earlier=())
