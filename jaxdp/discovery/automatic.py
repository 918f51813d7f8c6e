"""Which search to run, decided from public numbers alone; and the small search of the demo."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
from typing import Any

from jaxdp import _check, catalogue
from jaxdp.data.dataset import Domain
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.answerable import largest_order
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.spec import Levels, SearchSpec, best, find, search
from jaxdp.noise import keys

AUTO = "auto"
TEST_LEVEL = 0.01
TESTS_PER_PAIR = 3


def discover(
    key,
    data,
    *,
    epsilon: float,
    method: str = AUTO,
    max_order: int | None = None,
    levels=None,
    ledger=None,
    accept_coarse_cells: bool = False,
) -> Graph:
    """Causal discovery at a total budget; `method` names the search, "auto" lets public numbers choose.

    method: a test of the catalogue, or "package.module:Class" of your own: PC with that test (`pc_by_name`); or a name
    of `jaxdp.discovery.spec.searches()`: "table_pc", "svt_pc", ... for coded columns, "recommended_pc"
    for continuous or mixed ones. accept_coarse_cells: of `partition_pc`, which alone has it. Privacy: epsilon-DP under
    replace-one. Errors: ValueError for a name that does not exist, and for columns that the search does not take.
    """
    keys.admit(key, data)
    records = as_records(data, levels)
    _check.positive(epsilon=epsilon)
    search = named(choose_method(records, epsilon) if method == AUTO else method)
    if isinstance(search, catalogue.Entry):
        rest = {"accept_coarse_cells": accept_coarse_cells, "max_order": max_order, "ledger": ledger}
        return pc_by_name(key, records, test=search, epsilon=epsilon, **rest)
    spec = search.spec
    if spec.needs:
        raise ValueError(f"{spec.name} needs {' and '.join(spec.needs)}: call jaxdp.discovery.{spec.name}(...) itself.")
    if not spec.fits(records.levels):
        raise ValueError(f"{spec.name} takes coded columns only; use {choose_method(records, epsilon)}.")
    options: dict[str, Any] = {} if max_order is None else {"max_order": max_order}
    if accept_coarse_cells and "accept_coarse_cells" in inspect.signature(search).parameters:
        options["accept_coarse_cells"] = True
    return search(key, records, epsilon=epsilon, ledger=ledger, **options)


def named(method: str) -> Any:
    """The search of this name, or else the entry of the test. Errors: ValueError that lists the searches."""
    if ":" in method or method in catalogue.entries():
        return catalogue.find(method)
    return find(method)


def choose_method(records: Records, epsilon: float) -> str:
    """Name of the search with the least predicted noise: a public choice, from levels and epsilon alone."""
    return best(records.levels, epsilon).spec.name  # type: ignore[attr-defined]


def _any_columns(levels: Levels) -> bool:
    return True


def _last_resort(levels: Levels, epsilon: float) -> float:
    """Searches of coded columns come first wherever they fit."""
    return math.inf


@search(SearchSpec("partition_pc", "PC with partition-gcm alone; coarse in Z", fits=_any_columns))
def partition_pc(
    key,
    data,
    *,
    epsilon: float,
    max_order: int | None = None,
    levels=None,
    ledger=None,
    accept_coarse_cells: bool = False,
) -> Graph:
    """PC on continuous, coded or mixed columns with `PartitionGCM`; see `recommended_pc` for what is shared.

    accept_coarse_cells lifts the limit on conditioning sets, and a larger max_order needs it.
    Privacy: epsilon-DP under replace-one, by summation.
    """
    from jaxdp.independence.conditional.partition_gcm import PartitionGCM

    def make(share):
        return PartitionGCM(epsilon=share, accept_coarse_cells=accept_coarse_cells)

    return pc_within(key, as_records(data, levels), make, epsilon=epsilon, max_order=max_order, ledger=ledger)


@search(
    SearchSpec(
        "recommended_pc",
        "PC with the recommended test of each question; for continuous and mixed columns",
        fits=_any_columns,
        error=_last_resort,
    )
)
def recommended_pc(key, data, *, epsilon: float, max_order: int | None = None, levels=None, ledger=None) -> Graph:
    """PC on continuous, coded or mixed columns with the test that fits each question, three per pair of columns in all.

    One continuous column in the conditioning set: `BandGCM`; two to five: `ContrastGCM`; none: `PartitionGCM`.
    epsilon is divided equally over the 3 d(d-1)/2 tests, which are reserved before the data are read; when they are
    used up the search stops with complete=False. Level of each test: 0.01. Conditioning sets stay so small that no
    test refuses its question; the graph then says so in `note`.
    Privacy: epsilon-DP under replace-one, by summation.
    """
    from jaxdp.independence.recommended import Recommended

    def make(share):
        return Recommended(epsilon=share)

    return pc_within(key, as_records(data, levels), make, epsilon=epsilon, max_order=max_order, ledger=ledger)


def pc_within(
    key,
    records: Records,
    make,
    *,
    epsilon: float,
    max_order: int | None = None,
    ledger=None,
    limit: int | None = None,
) -> Graph:
    """PC with the tests that `make(share of epsilon)` builds, each at an equal share of a total budget.

    limit: largest conditioning set that the tests are made for.
    """
    from jaxdp.discovery.search import pc

    d = len(records.columns)
    tests = max(1, TESTS_PER_PAIR * d * (d - 1) // 2)
    test = make(float(epsilon) / tests)
    last = largest_order(test, records, d - 2 if limit is None else min(d - 2, limit))
    graph = pc(
        key,
        records,
        test=test,
        level=TEST_LEVEL,
        max_order=last if max_order is None else max_order,
        max_tests=tests,
        stable=False,
        ledger=ledger,
    )
    return graph if max_order is not None or last >= d - 2 else dataclasses.replace(graph, note=limited(last))


def pc_by_name(
    key,
    data,
    *,
    test,
    epsilon: float,
    max_order: int | None = None,
    levels=None,
    ledger=None,
    accept_coarse_cells: bool = False,
) -> Graph:
    """PC with one test of the catalogue, built for the columns of each question as `jaxdp test` builds it.

    test: its name, "package.module:Class", or its entry. Budget, tests and level: as in `recommended_pc`.
    Conditioning sets stay within what the test's spec says it takes, and so small that it refuses none.
    Privacy: epsilon-DP under replace-one, by summation. Errors: ValueError for tests that need more than columns (a
    law), whose y is a public group, or that take no question about some pair of these columns.
    """
    from jaxdp.independence.by_name import ByName

    entry = catalogue.find(test) if isinstance(test, str) else test
    records = as_records(data, levels)
    coarse = accept_coarse_cells and hasattr(entry.cls, "accept_coarse_cells")
    fields = (("accept_coarse_cells", True),) if coarse else ()

    def make(share):
        return ByName(entry=entry, epsilon=share, level=TEST_LEVEL, fields=fields)

    catalogue.require_any_pair(make(1.0))
    catalogue.require_buildable(entry)
    limit = fitting_order(entry.spec, records)
    settings: dict[str, Any] = {"epsilon": epsilon, "max_order": max_order, "ledger": ledger, "limit": limit}
    return pc_within(key, records, make, **settings)


def fitting_order(spec, records: Records) -> int:
    """The largest size of conditioning sets that a test's spec says it takes, for every pair of these columns.

    Sets of a size are represented by those of most continuous columns and of fewest. Errors: ValueError where a pair
    without conditioning set does not fit.
    """
    columns, names = records.columns, records.names
    continuous_first = sorted(range(len(columns)), key=lambda k: columns[k].levels)
    for order in range(len(columns) - 1):
        for i, j in itertools.combinations(range(len(columns)), 2):
            rest = [k for k in continuous_first if k not in (i, j)]
            for given in (rest[:order], rest[len(rest) - order :]):
                domain = Domain((columns[i],), (columns[j],), tuple(columns[k] for k in given))
                if spec.fits(domain):
                    continue
                if order:
                    return order - 1
                raise ValueError(f"{spec.name} takes no question about {names[i]!r} and {names[j]!r} alone.")
    return len(columns) - 2


def limited(order: int) -> str:
    """What a graph says whose search stopped at this order."""
    columns = f"{order} column{'s' * (order != 1)}"
    return (
        f"Conditioning sets have at most {columns}, since given more the test does not apply or would find "
        "dependence where there is none; an edge that only a larger set removes is still there."
    )


def demo(key, epsilon: float = 1.0, num_records: int = 100_000, seed: int = 8) -> tuple[Graph, Records]:
    """`table_pc` on made-up records of the Asia network; the records are public, only the noise is fresh."""
    import jax

    from jaxdp.data import networks
    from jaxdp.discovery.tables import table_pc
    from jaxdp.simulate.networks import sample_network

    keys.admit(key)
    records = sample_network(jax.random.key(seed), networks.load("asia"), num_records)
    return table_pc(key, records, epsilon=epsilon), records
