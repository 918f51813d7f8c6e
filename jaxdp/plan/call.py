"""`jaxdp.plan(...)`: one call to the planner, for columns of a schema or for a test by name."""

from __future__ import annotations

from typing import Any, Unpack

from jaxdp._base.display import Rows
from jaxdp._base.keywords import complete, declared, flat
from jaxdp._base.quantities import QUANTITIES, PlanOptions, SettingOptions
from jaxdp.data.known import schema_of
from jaxdp.plan.compare import Row, answer, compare
from jaxdp.plan.methods import default_method, setting_of


@flat(PlanOptions)
def plan(method: str | None = None, **how: Unpack[PlanOptions]) -> Row | Rows[Row]:
    """How many records, how much budget, how small an effect, how much power? Before anything is spent.

        jaxdp.plan("partition-gcm", epsilon=1.0, effect=0.25, power=0.8)              # how many records?
        jaxdp.plan(schema="trial.toml", x="dose", y="response", given="age", epsilon=1.0, effect=0.2, power=0.8)

    Give three of n, epsilon, effect and power; the fourth is the answer. No table is read.
    method: name of a test; without one and without a schema, the default of `jaxdp.test` for one continuous Z.
    schema, or bounds and levels: public knowledge about the columns x, y and given, as in `jaxdp.test`. Without a
    method, all tests that fit the columns are compared, best first, on means of X and Y that are curved functions of
    Z; a named test that removes only what is linear in Z is planned for linear means. Further keywords, such as
    residual_sd, are fields of `Setting`; those of a test's own setting need no schema:

        jaxdp.plan("logistic-regression", epsilon=1.0, effect=0.3, power=0.8, rate=0.1, covariates=3)

    Returns a `Row` (its `sentence` is the answer in words), or a table of rows if tests are compared.
    Errors: ValueError unless exactly three quantities are given, and for columns and tests that do not fit; TypeError
    for an unknown keyword.
    """
    asked: dict[str, Any] = dict(complete(PlanOptions, how))
    numbers = {name: asked[name] for name in (*QUANTITIES, "level", "delta")}
    fields = {name: value for name, value in how.items() if name in declared(SettingOptions)}
    x, y, given = asked["x"], asked["y"], asked["given"]
    if asked["schema"] is None and not asked["bounds"] and not asked["levels"]:
        if x is not None or y is not None or given:
            raise ValueError("x, y and given belong to a schema: give schema= (or bounds=, levels=).")
        method = method or default_method()
        return answer(method, **numbers, setting=setting_of(method, None, None, None, (), fields))
    if x is None or y is None:
        raise ValueError("a schema needs x= and y=: name the two columns that are to be tested.")
    schema = schema_of(asked["schema"], asked["bounds"], asked["levels"])
    setting = setting_of(method, schema, x, y, given, fields)
    assert setting is not None
    return compare(setting, **numbers) if method is None else answer(method, **numbers, setting=setting)
