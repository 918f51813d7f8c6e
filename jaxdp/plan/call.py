"""`jaxdp.plan(...)`: one call to the planner, for columns of a schema or for a test by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdp._base.display import Rows
from jaxdp.data.known import schema_of
from jaxdp.data.schema import Schema
from jaxdp.plan.compare import Row, answer, compare
from jaxdp.plan.methods import default_method, plan_of
from jaxdp.plan.solve import LEVEL
from jaxdp.plan.survival import SurvivalSetting


def plan(
    method: str | None = None,
    *,
    n: int | None = None,
    epsilon: float | None = None,
    effect: float | None = None,
    power: float | None = None,
    x: str | None = None,
    y: str | None = None,
    given: str | Sequence[str] = (),
    schema: Schema | str | os.PathLike | Mapping | None = None,
    bounds: Mapping[str, Sequence[float]] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    level: float = LEVEL,
    delta: float = 0.0,
    **fields: Any,
) -> Row | Rows[Row]:
    """How many records, how much budget, how small an effect, how much power? Before anything is spent.

        jaxdp.plan("partition-gcm", epsilon=1.0, effect=0.25, power=0.8)              # how many records?
        jaxdp.plan(schema="trial.toml", x="dose", y="response", given="age", epsilon=1.0, effect=0.2, power=0.8)

    Three of n, epsilon, effect and power are given, the fourth is the answer. No table is read.
    method: name of a test; without one and without a schema, the default of `jaxdp.test` for one continuous Z.
    schema, or bounds and levels: public knowledge about the columns x, y and given, as in `jaxdp.test`. Without a
    method all tests that fit them are compared, best first, where Z bends the means of X and Y; a named test that
    removes only what is linear in Z is planned for means that are. fields: of `Setting`, such as residual_sd.
    Returns a `Row` (its `sentence` says it in words), or a table of rows where tests are compared.
    Errors: ValueError unless exactly three quantities are given, and for columns and tests that do not fit.
    """
    numbers: dict[str, Any] = {"n": n, "epsilon": epsilon, "effect": effect, "power": power}
    if schema is None and not bounds and not levels:
        if x is not None or y is not None or given or fields:
            raise ValueError(
                "x, y, given and fields of a setting belong to a schema: give schema= (or bounds=, levels=)."
            )
        return answer(method or default_method(), **numbers, level=level, delta=delta)
    if x is None or y is None:
        raise ValueError("a schema needs x= and y=: name the two columns that are to be tested.")
    setting = SurvivalSetting.of_schema(schema_of(schema, bounds, levels), x, y, given, **fields)
    if method is not None:
        return answer(method, **numbers, setting=plan_of(method).granted(setting), level=level, delta=delta)
    return compare(setting, **numbers, level=level, delta=delta)
