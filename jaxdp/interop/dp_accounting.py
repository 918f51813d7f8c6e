"""dp-accounting: what results cost, as one of its events.

RdpAccountant().compose(jaxdp.interop.dp_event(first, second)).get_epsilon(1e-6)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxdp._base import check
from jaxdp.accounting import convert
from jaxdp.core import Cost, Relation, Release
from jaxdp.noise.certificate import Certificate
from jaxdp.noise.dominating import Pair, Pure, pair_of

MARGIN = 1e-3  # of a cost: certificates stay below it by a part in 2^5 to 2^40


BOUND, TIGHT = "bound", "tight"


def dp_event(*paid: Any, kind: str = BOUND) -> Any:
    """The `ComposedDpEvent` (dp-accounting) of results, releases or costs; of a ledger: `Ledger.to_dp_event`.

    kind: "bound" follows from costs alone: a pure cost becomes the randomised response that dominates it, one that is
    only rho-zCDP (normal noise) a `ZCDpEvent`, which `RdpAccountant` takes and `PLDAccountant` does not.
    "tight", for `PLDAccountant`, says what the noise of releases does: `GaussianDpEvent` with the multiplier that their
    discrete normal noise is proved to have at least, `DiscreteLaplaceDpEvent` of added or removed records, randomised
    response of anything else that is pure (docs/accounting.md#events).

    The event carries its relation: an accountant of the other one refuses it. `REPLACE_SPECIAL` is none of jaxdp's
    relations; events mean something else to it. Repeat results in the list: `compose(event, count)` of dp-accounting
    0.6's `PLDAccountant` counts randomised response once. What it makes of events holds if they were fixed in advance.
    Errors: ValueError for costs of different relations, for what is not private, and, of "tight", for costs with a
    delta and for zCDP without the release that it is of; TypeError for anything else.
    """
    check.one_of((BOUND, TIGHT), kind=kind)
    costs = [item if isinstance(item, Cost) else getattr(item, "cost", None) for item in paid]
    wrong = [item for item, cost in zip(paid, costs, strict=True) if not isinstance(cost, Cost)]
    if wrong or not costs:
        given = type(wrong[0]).__name__ if wrong else "nothing"
        raise TypeError(f"give results, releases or costs, such as jaxdp.run(...), got {given}.")
    relations = {cost.relation for cost in costs if isinstance(cost, Cost)}
    if len(relations) > 1:
        raise ValueError(f"costs under {' and '.join(sorted(r.value for r in relations))} do not add up.")
    fixed_size = relations != {Relation.ADD_OR_REMOVE_ONE}
    if kind == TIGHT:
        return convert.tight_event([pair for item in paid for pair in _pairs(item)], fixed_size)
    rows = [row for cost in costs if isinstance(cost, Cost) for row in _rows(cost)]
    return convert.event_of(rows, fixed_size)


def _pairs(item: Any) -> list[Pair]:
    """Pairs of laws that dominate what was released: of each draw, or of the cost where draws do not explain it."""
    cost = item if isinstance(item, Cost) else item.cost
    drawn = [certificate for release in _releases(item) for certificate in release.certificates]
    if drawn and _explained(cost, drawn):
        return [pair_of(certificate) for certificate in drawn]
    pairs: list[Pair] = []
    for epsilon, delta, rho in _rows(cost):
        if delta > 0.0:
            raise ValueError('a cost with a delta has no tight event: leave out kind="tight".')
        if rho > 0.0:
            raise ValueError(
                'rho-zCDP alone does not say what the noise does: give kind="tight" the release of a fresh_key() '
                "itself, or leave it out."
            )
        if epsilon > 0.0:
            pairs.append(Pure(epsilon))
    return pairs


def _releases(item: Any) -> list[Release]:
    """The releases behind a result, all stages; none behind a cost."""
    if isinstance(item, Release):
        return [*(found for before in item.earlier for found in _releases(before)), item]
    known = [getattr(item, "release", None), *(getattr(item, "releases", None) or ())]
    return [found for release in known if isinstance(release, Release) for found in _releases(release)]


def _explained(cost: Cost, drawn: list[Certificate]) -> bool:
    """Whether the draws are what the cost is of: they cost as much together, up to the margin of certificates."""
    if np.ndim(cost.epsilon) or np.ndim(cost.rho) or np.any(np.asarray(cost.delta) > 0.0):
        return False
    for paid, each in ((cost.epsilon, [one.epsilon for one in drawn]), (cost.rho, [one.rho for one in drawn])):
        known = [float(amount) for amount in each if amount is not None]
        if np.isfinite(paid) and len(known) == len(drawn):
            return (1.0 - MARGIN) * float(paid) <= sum(known) <= (1.0 + 1e-9) * float(paid)
    return False


def _rows(cost: Cost) -> list[tuple[float, float, float]]:
    """(epsilon, delta, rho) of every release; rho only where there is no epsilon, since both bound one release."""
    amounts = np.broadcast_arrays(*(np.asarray(value, float) for value in (cost.epsilon, cost.delta, cost.rho)))
    rows = []
    for epsilon, delta, rho in zip(*(amount.ravel().tolist() for amount in amounts), strict=True):
        if np.isinf(epsilon) and np.isinf(rho):
            raise ValueError("a result that is not private (epsilon=inf) has no event.")
        rows.append((0.0, delta, rho) if np.isinf(epsilon) else (epsilon, delta, 0.0))
    return rows
