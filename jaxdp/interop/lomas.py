"""Lomas: private tests among the queries that a server of Lomas answers, charged to the budgets that it keeps.

Querier = lomas_querier()
asked = Querier.Query(dataset_name="TRIAL", x=["dose"], y=["response"], epsilon=1.0)
Querier(data_connector, admin_database).handle_query(asked, "dr_lina")
"""

from __future__ import annotations

from typing import Any

from jaxdp.ask.independence import test
from jaxdp.data.known import schema_of
from jaxdp.data.schema import Schema

LIBRARY = "jaxdp"
NAMES = "^[a-z0-9-]+$"  # of methods of the catalogue: no module of a caller runs


def lomas_querier() -> type:
    """A `DPQuerier` of Lomas that answers a question by one release of `jaxdp.test`; Lomas keeps the budgets.

    Its `Query` has dataset_name, x, y, given (lists of columns), epsilon, method and level, as in `jaxdp.test`; its
    `Result` has content, what result.json holds, and text, the answer in words.
    The metadata of the data set are the schema: bounds of numbers and dates, categories, truth values. Their `rows` is
    the public number of records. Records are read as for callers who are not trusted (`strict`), so errors depend on
    the question and the metadata alone, and all of them come before the release.
    Privacy: epsilon-DP for replacing one row where `row_privacy` is set or `max_ids` is 1. Otherwise for replacing the
    rows of one person, of whom there are at most `max_ids`: the test runs at epsilon / max_ids (group privacy), as its
    answer says. That nobody has more rows is for whoever wrote the metadata to see to.
    A server needs a few lines of its own for such queries (docs/deploy.md). Errors: `InvalidQueryException` of Lomas
    for a mistake in the question, and for a column that the metadata do not bound. Needs lomas-server.
    """
    from lomas_core.error_handler import InvalidQueryException
    from lomas_core.models.requests import QueryModel
    from lomas_server.dp_queries.dp_querier import DPQuerier
    from pydantic import BaseModel, Field

    class Query(QueryModel):
        x: list[str]
        y: list[str]
        given: list[str] = Field(default_factory=list)
        epsilon: float = Field(..., gt=0)
        method: str | None = Field(None, pattern=NAMES)
        level: float = Field(0.05, gt=0, lt=1)

    class Result(BaseModel):
        res_type: str = Field(LIBRARY, pattern=LIBRARY)
        content: dict[str, Any]
        text: str

    class Querier(DPQuerier):
        def cost(self, query_json) -> tuple[float, float]:
            """(epsilon, 0) that a query costs; nothing is read."""
            return query_json.epsilon, 0.0

        def query(self, query_json):
            """The answer, by a fresh release key."""
            asked, metadata = query_json, self.data_connector.get_metadata()
            rows_of_a_person = 1 if metadata.row_privacy else metadata.max_ids
            try:
                answer = test(
                    self.data_connector.get_pandas_df(),
                    x=asked.x,
                    y=asked.y,
                    given=asked.given,
                    schema=_schema(metadata, [*asked.x, *asked.y, *asked.given]),
                    epsilon=asked.epsilon / rows_of_a_person,
                    method=asked.method,
                    level=asked.level,
                    strict=True,
                    records=metadata.rows,
                )
            except (TypeError, ValueError) as mistake:  # of the question: a strict run has no others
                raise InvalidQueryException(str(mistake)) from None
            return Result(content=answer.to_dict(), text=str(answer))

    Querier.Query, Querier.Result = Query, Result
    return Querier


def _schema(metadata: Any, names: list[str]) -> Schema:
    """What the metadata of a data set of Lomas say publicly about these columns."""
    bounds: dict[str, Any] = {}
    levels: dict[str, Any] = {}
    for name in names:
        column = metadata.columns.get(name)
        if column is None:
            raise ValueError(f"the data set has no column {name!r}; it has {', '.join(metadata.columns)}.")
        if hasattr(column, "categories"):
            levels[name] = list(column.categories)
        elif column.type == "boolean":
            levels[name] = ["False", "True"]
        elif hasattr(column, "lower"):
            bounds[name] = (column.lower, column.upper)
        else:
            raise ValueError(f"column {name!r} is text without categories: the metadata must list its categories.")
    return schema_of(None, bounds, levels)
