"""`jaxdp.test`: one private answer about columns of a table, in one call."""

# ruff: noqa: PT028 (no test of the suite, whatever its name)

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdp.data import batches
from jaxdp.data.known import schema_of
from jaxdp.data.schema import Schema
from jaxdp.one_call import reading
from jaxdp.one_call.answer import Answer
from jaxdp.one_call.query import Query


def test(
    table: Any,
    *,
    x: str | Sequence[str],
    y: str | Sequence[str],
    given: str | Sequence[str] = (),
    epsilon: float,
    schema: Schema | str | os.PathLike | Mapping | None = None,
    bounds: Mapping[str, Sequence[float]] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    method: str | None = None,
    sees: str | None = None,
    level: float = 0.05,
    fields: Mapping[str, Any] | None = None,
    ledger: Any = None,
    key: Any = None,
    strict: bool = False,
    records: int | None = None,
    force: bool = False,
    missing: str | None = None,
    memory: int | str | None = None,
    keep_sums: str | os.PathLike | None = None,
    **settings: Any,
) -> Answer:
    """Is X independent of Y (given Z)? One call, the same builder and checks as `jaxdp test` on the command line.

        jaxdp.test(frame, x="dose", y="response", given="age", epsilon=1.0,
                   bounds={"dose": (0, 10), "response": (-5, 5), "age": (18, 90)})

    table: a pandas, polars or pyarrow table, a mapping of name -> (n,) values, or the path of a data file, a folder or
    a glob ("trial/*.parquet"); "duckdb:select ..."; a pyarrow data set, a DuckDB relation, a Dask data frame, an
    object of the Arrow stream protocol, a function that gives Arrow batches.
    x, y, given: column names, one or several. epsilon: budget of this answer.
    schema: public knowledge about the columns (`Schema`, its path, or its mapping); or bounds (low, high) of continuous
    columns and levels of the others, by name. Never computed from the table.
    method: name of the test (`jaxdp methods`), default what fits the columns. sees: "linear", "monotone" or "any", the
    kind of dependence that the default must be built to see; the answer says what it could see.
    level: significance level.
    fields, settings: further fields of the test, and options such as residual_scale, num_cells, ridge, lengthscale.
    ledger: a `jaxdp.Ledger` (or any account), charged before a value is used.
    key: None draws a fresh release key; jax.random.key(seed) makes a simulation, NOT PRIVATE.
    strict, records, force, missing: as --strict, --records, --force and --missing of the command line;
    docs/schema.md, "Who sees what".
    memory: "2GB" or bytes; a table that would take more is read in chunks where the test has sums (docs/large_data.md).
    keep_sums: folder of the caller's own for the sums of files that were read, with which an interrupted pass goes on.
        They have no noise, so they are as private as the table; they are deleted once the answer is there.

    Returns an `Answer`: p_value, statistic, cost; prints as sentences, `plot()`, `to_dict()`. It holds no record.
    Privacy: what the test promises, epsilon-DP under the relation that the answer states.
    Errors: ValueError or TypeError in one sentence, before anything is charged; `BudgetExhausted` from the ledger.
    """
    query = Query.of(
        schema_of(schema, bounds, levels, missing),
        x=x,
        y=y,
        given=given,
        epsilon=epsilon,
        method=method,
        sees=sees,
        simulated=is_simulation(key),
        level=level,
        fields=fields,
        **settings,
    )
    account = account_of(ledger, table, query.short)
    how: dict[str, Any] = {"strict": strict, "records": records, "force": force}
    return query.ask(table, own_key(key), account, **how, memory=size(memory), keep_sums=keep_sums)


test.__test__ = False  # type: ignore[attr-defined]  # `from jaxdp import test` in a test file is no test


def is_simulation(key: Any) -> bool:
    """Whether this key makes a simulation. Errors: TypeError for what is no key."""
    from jaxdp.randomness import keys

    return key is not None and keys.admit(key) != keys.RELEASE


def own_key(key: Any) -> Any:
    """The key, or a fresh release key."""
    from jaxdp.randomness.keys import fresh_key

    return fresh_key() if key is None else key


def size(memory: int | str | None) -> int | None:
    """Bytes of "2GB" or of a number. Errors: ValueError for anything else."""
    return memory if memory is None else reading.bytes_of(memory)


def account_of(ledger: Any, table: Any, asked: str) -> Any:
    """The ledger as an account that writes down what was asked, where it is a `Ledger`; any other account as it is."""
    if not hasattr(ledger, "asked"):
        return ledger
    return ledger.asked(columns=short(asked), source=short(batches.called(table)))


def short(text: str) -> str:
    """A text that fits into a ledger."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= 200 else f"{text[:98]} ... {text[-97:]}"
