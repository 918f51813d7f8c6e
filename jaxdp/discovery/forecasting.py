"""What the searches would find in columns of a schema, before anything is read or spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxdp._base import check
from jaxdp.data.known import schema_of
from jaxdp.discovery.choose import setting_of
from jaxdp.discovery.spec import Forecast, Setting, forecasts


def forecast(
    schema: Any, *, n: int, epsilon: float, delta: float = 0.0, columns: Sequence[str] | None = None
) -> list[Forecast]:
    """The searches that `jaxdp.discover` may choose, best first, and the weakest edges each should find.

        jaxdp.discovery.forecast("survey.toml", n=20_000, epsilon=1.0)[0].misses

    schema: as in `jaxdp.discover`. n: number of records. columns: names, default all. No data are read.
    Errors: ValueError for names, numbers and budgets that cannot be.
    """
    return forecasts(planned(schema, n=n, epsilon=epsilon, delta=delta, columns=columns))


def planned(
    schema: Any, *, n: int, epsilon: float, delta: float = 0.0, columns: Sequence[str] | None = None
) -> Setting:
    """The public numbers of a search that has not run."""
    known = schema_of(schema)
    check.at_least(1, n=n)
    names = list(known.names) if columns is None else list(columns)
    described = [column for name in names for column in known.rule(name).code_column()]
    if len(described) < 2:
        raise ValueError(f"a graph needs at least two columns, got {len(described)}.")
    return setting_of(described, n, epsilon, delta)
