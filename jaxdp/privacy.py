"""What a guarantee is about: neighbouring relation, norm, sensitivity, cost."""

from __future__ import annotations

import dataclasses
import enum

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.display import Compact, unrounded

Number = jax.Array | np.ndarray | np.floating | float  # one number, or one for each of many


class Relation(enum.Enum):
    """Which pairs of data sets are neighbours.

    REPLACE_ATTRIBUTE: one person's x is replaced; who is in which group (y) is public and stays.
    """

    REPLACE_ONE = "replace_one"
    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ATTRIBUTE = "replace_attribute"


class Norm(enum.Enum):
    """How the change of a statistic is measured."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Sensitivity(Compact):
    """How far a statistic can move between neighbours, computed without data.

    bound: the change of the exact statistic, measured in `norm`, for every pair of neighbours.
    error: bound, in the same norm, on computed - exact in float64, for every data set.
    lower, upper: public range of each coordinate; release mode clips the statistic into it.
    """

    bound: ArrayLike
    norm: Norm = jax.tree.static()
    relation: Relation = jax.tree.static()
    error: ArrayLike = 0.0
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Cost:
    """A privacy cost: pure epsilon (with delta), and rho of zero-concentrated DP where it is known.

    epsilon is infinite for a mechanism that is only rho-zCDP, and for one that is not private.
    """

    epsilon: Number
    delta: Number = 0.0
    rho: Number = jnp.inf
    relation: Relation = jax.tree.static(default=Relation.REPLACE_ONE)

    def __add__(self, other: Cost) -> Cost:
        """Sequential composition: budgets add up, under one relation only."""
        if self.relation is not other.relation:
            raise ValueError(
                f"costs under {self.relation.value} and {other.relation.value} do not add up; "
                "state both mechanisms under one relation."
            )
        return Cost(
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            rho=self.rho + other.rho,
            relation=self.relation,
        )

    @classmethod
    def none(cls, relation: Relation) -> Cost:
        """The cost of releasing nothing."""
        return cls(epsilon=0.0, delta=0.0, rho=0.0, relation=relation)

    def __str__(self) -> str:
        # NumPy: inside a traced function jax.numpy would trace even what is concrete
        parts = [f"epsilon={unrounded(self.epsilon)}", f"relation={self.relation.value}"]
        if check.is_concrete(self.delta) and np.any(np.asarray(self.delta) > 0):
            parts.insert(1, f"delta={unrounded(self.delta)}")
        if not check.is_concrete(self.epsilon) or not np.any(np.isinf(np.asarray(self.epsilon))):
            return ", ".join(parts)
        if check.is_concrete(self.rho) and bool(np.all(np.isfinite(np.asarray(self.rho)))):
            return ", ".join([f"rho={unrounded(self.rho)} (zCDP)", *parts[1:]])
        return "NOT PRIVATE (epsilon=inf)"

    def __repr__(self) -> str:
        return f"Cost({self})"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Claim(Cost):
    """A cost stated as (epsilon, delta) whose rho holds by itself, without the delta, as that of normal noise does.

    Of a plain `Cost` with a delta rho is taken to need it.
    """

    def concentrated(self) -> Cost:
        """The same guarantee in rho alone."""
        return Cost(epsilon=jnp.inf, rho=self.rho, relation=self.relation)


def is_bound(node) -> bool:
    """Whether a node of a pytree of sensitivities is one."""
    return isinstance(node, Sensitivity)


def relation_of(sensitivity) -> Relation:
    """The one neighbouring relation of a pytree of sensitivities; TypeError of anything else, ValueError where they
    differ.
    """
    for part in jax.tree.leaves(sensitivity, is_leaf=is_bound):
        if not is_bound(part):
            raise TypeError(
                "sensitivity() must return jaxdp.Sensitivity(bound, norm, relation), or a pytree of them like the "
                f"statistic, got {type(part).__name__}."
            )
    relations = {part.relation for part in jax.tree.leaves(sensitivity, is_leaf=is_bound)}
    if len(relations) != 1:
        raise ValueError(f"one release needs one neighbouring relation, got {sorted(map(str, relations))}.")
    return relations.pop()
