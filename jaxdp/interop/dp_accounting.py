"""dp-accounting: what results cost, as one of its events.

RdpAccountant().compose(jaxdp.interop.dp_event(first, second)).get_epsilon(1e-6)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxdp.accounting import convert
from jaxdp.core import Cost, Relation


def dp_event(*paid: Any) -> Any:
    """A dp-accounting `ComposedDpEvent` of results, releases or costs; `Ledger.to_dp_event` does it for a ledger.

    A pure cost becomes the randomised response that dominates it, one that is only rho-zCDP (normal noise) a
    `ZCDpEvent`, which `RdpAccountant` takes and `PLDAccountant` does not. The event carries its relation: an accountant
    of another one refuses it. What dp-accounting makes of events holds if they had been fixed in advance.
    Errors: ValueError for costs of different relations, TypeError for anything else.
    """
    costs = [item if isinstance(item, Cost) else getattr(item, "cost", None) for item in paid]
    wrong = [item for item, cost in zip(paid, costs, strict=True) if not isinstance(cost, Cost)]
    if wrong or not costs:
        given = type(wrong[0]).__name__ if wrong else "nothing"
        raise TypeError(f"give results, releases or costs, such as jaxdp.run(...), got {given}.")
    relations = {cost.relation for cost in costs if isinstance(cost, Cost)}
    if len(relations) > 1:
        raise ValueError(f"costs under {' and '.join(sorted(r.value for r in relations))} do not add up.")
    rows = [row for cost in costs if isinstance(cost, Cost) for row in _rows(cost)]
    return convert.event_of(rows, fixed_size=relations != {Relation.ADD_OR_REMOVE_ONE})


def _rows(cost: Cost) -> list[tuple[float, float, float]]:
    """(epsilon, delta, rho) of every release; rho only where there is no epsilon, since both bound one release."""
    amounts = np.broadcast_arrays(*(np.asarray(value, float) for value in (cost.epsilon, cost.delta, cost.rho)))
    rows = []
    for epsilon, delta, rho in zip(*(amount.ravel().tolist() for amount in amounts), strict=True):
        if np.isinf(epsilon) and np.isinf(rho):
            raise ValueError("a result that is not private (epsilon=inf) has no event.")
        rows.append((0.0, delta, rho) if np.isinf(epsilon) else (epsilon, delta, 0.0))
    return rows
