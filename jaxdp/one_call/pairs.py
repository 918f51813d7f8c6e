"""`jaxdp.test_pairs`: which pairs of columns are dependent (given Z)? All pairs of a table under one budget."""

# ruff: noqa: PT028 (no test of the suite, whatever its name)

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from jaxdp.data.known import schema_of
from jaxdp.data.schema import Schema
from jaxdp.one_call.pair_answers import PairAnswers
from jaxdp.one_call.pairs_query import PairsQuery
from jaxdp.one_call.test import account_of, is_simulation, own_key, size


def test_pairs(
    table: Any,
    *,
    columns: Sequence[str] | None = None,
    given: str | Sequence[str] = (),
    epsilon: float,
    delta: float = 0.0,
    adjust: str = "holm",
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
    memory: int | str | None = None,
    missing: str | None = None,
    **settings: Any,
) -> PairAnswers:
    """Which pairs of columns are dependent (given Z)? Every pair, one total budget, p-values adjusted for their number.

        jaxdp.test_pairs(frame, columns=["dose", "response", "age"], epsilon=2.0, bounds={...}, adjust="bh")

    table, schema, bounds, levels, ledger, key, strict, records, force, missing, memory: as in `jaxdp.test`; in chunks
    a test that releases all pairs together reads the table once for every stage, another one for every stage of each
    pair.
    columns: whose pairs are tested, default all described ones that are not given. given: columns conditioned on.
    epsilon: budget of all pairs together. delta: without given and method, lets the joint release have Gaussian noise
    where that is smaller; the answer says what it changes. adjust: "holm" (family-wise error) or "bh" (false discovery
    rate).
    method, sees, fields, settings: as in `jaxdp.test`. Without them and without given, three columns or more of any
    kinds are answered by one joint release (`PairContrasts`); else each pair gets the test that fits its columns.
    law: one for all columns, or a mapping of column -> law, for tests that need the law of X (the earlier column).
    level: of the adjusted p-values. A test that publishes a decision only makes each one at level / number of pairs.

    Returns `PairAnswers`: pairs, found, `table()`, `to_dict()`. It holds no record.
    Privacy: what the tests promise for all pairs together, by one release where the test knows how, else by sequential
    composition of equal shares. Errors: as `jaxdp.test`, the pair named, before anything is charged.
    """
    query = PairsQuery.of(
        schema_of(schema, bounds, levels, missing),
        columns=columns,
        given=given,
        epsilon=epsilon,
        delta=delta,
        adjust=adjust,
        method=method,
        sees=sees,
        simulated=is_simulation(key),
        level=level,
        fields=fields,
        **settings,
    )
    account = account_of(ledger, table, query.short)
    how: dict[str, Any] = {"strict": strict, "records": records, "force": force, "memory": size(memory)}
    return query.ask(table, own_key(key), account, **how)


test_pairs.__test__ = False  # type: ignore[attr-defined]  # no test of a test file
