"""What not every search can do: the arguments, declared once, and what is said of a search without them. No JAX."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Required, TypedDict

from jaxdp._base import arguments
from jaxdp._base.keywords import Keyword
from jaxdp._base.quantities import COARSE_CELLS

Count = Annotated[int | None, Keyword("N", arguments.count)]
Share = Annotated[float, Keyword("D", arguments.probability, 0.0)]


class Abilities(TypedDict, total=False):
    """The arguments that not every search has, as calls take them."""

    max_order: Annotated[
        int | None,
        Keyword("N", arguments.count_or_zero),
        "largest number of columns to condition on (default: no limit; 0: none)",
    ]
    delta: Annotated[Share, "search under (epsilon, D)-DP (default: pure epsilon)"]
    directions: Annotated[
        float | None,
        Keyword("S", arguments.share),
        "share of the budget for the arrows, from 0 to below 1 (default: chosen by the search; 0: nothing is spent on "
        "arrows)",
    ]
    knowledge: Any
    keep: Any
    accept_coarse_cells: Annotated[bool, Keyword(default=False), COARSE_CELLS]


class PCOptions(TypedDict, total=False):
    """The arguments of PC with tests at equal shares of a total budget."""

    epsilon: Required[float]
    max_order: int | None
    knowledge: Any
    levels: Sequence[int] | None
    ledger: Any


# Each of the abilities -> what is said of a search without it, where somebody asks it for one.
ABILITIES: Mapping[str, str] = {
    "keep": "keeps no answers",
    "directions": "pays nothing for directions, which follow from its other answers",
    "knowledge": "takes no background knowledge",
    "delta": "takes no delta",
    "max_order": "takes no largest conditioning set",
    "accept_coarse_cells": "has no coarse cells to accept",
}
