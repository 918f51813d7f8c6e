"""Which search to run, decided from public numbers alone; and the small search of the demo."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Unpack

import jax

from jaxdp import catalogue
from jaxdp._base import check
from jaxdp._base.amounts import spent
from jaxdp._base.keywords import complete, flat
from jaxdp._base.printed import is_setting, printed
from jaxdp.core import Account
from jaxdp.data.dataset import Column
from jaxdp.data.known import schema_of
from jaxdp.data.records import Records, RecordsInChunks, as_records, levels_of
from jaxdp.discovery.abilities import ABILITIES, Abilities, PCOptions
from jaxdp.discovery.engine.answerable import fitting_order, largest_order, unfit
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.spec import (
    Forecast,
    Search,
    SearchSpec,
    Setting,
    asked_for,
    best,
    coded,
    find,
    forecasts,
    require_outside,
    search,
    takers,
)
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key

AUTO = "auto"
TEST_LEVEL = 0.01
EACH_BY_ITSELF = (
    "Each test is at level 0.01 by itself: of pairs of independent columns about one in a hundred gets an edge."
)
TESTS_PER_PAIR = 3


@flat(Abilities)
def discover(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    method: str | Search = AUTO,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
    **settings: Unpack[Abilities],
) -> Graph:
    """Causal discovery at one total budget, by the search `method`; "auto" chooses it from public numbers.

    method: the name of a search in `jaxdp.discovery.spec.searches()` ("table_pc", "max_min_pc", ... for coded columns,
    "neighbour_pc" and "moment_pc" for continuous or mixed ones), a `Search` of your own or its "package.module:name";
    or the name of a test, or "package.module:Class" of your own, for PC with that test (`pc_with`).
    delta: for searches that then need less noise; the automatic choice may leave it unspent, and says so.
    knowledge: required and forbidden edges and an order in time. accept_coarse_cells: of `partition_pc` and of PC with
    a test. keep: a file for the answers of a search, so that it can continue if it is interrupted; not for searches
    whose noise must remain secret, such as svt_pc. directions: share of the budget for the arrows, for searches that
    pay for arrows; 0 draws none; default: a choice of the search.
    Privacy: (epsilon, delta)-DP under replace-one. Errors: ValueError for a name that does not exist, for columns and
    settings that the search does not take, and for knowledge that it cannot use.
    """
    require_outside("discover", key, data, levels, epsilon, *settings.values())
    keys.admit(key, data)
    records = as_records(data, levels)
    complete(Abilities, settings)
    delta, in_chunks = settings.get("delta", 0.0), isinstance(records, RecordsInChunks)
    setting = setting_of(records.columns, records.num_records, epsilon, delta, in_chunks)
    search = best(setting) if method == AUTO else named(method)
    options, told = asked_for(settings), ""
    check.at_least(0, max_order=options.get("max_order", 0))
    if method == AUTO:
        options, told = _within_reach(search, options)
    _require_abilities(search, options, setting)
    graph = search(key, records, epsilon=epsilon, ledger=ledger, **options)
    if method != AUTO:
        return graph
    return dataclasses.replace(graph, note=" ".join(text for text in (graph.note, why(setting), told) if text))


def _within_reach(search: Search, options: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """What the search that was chosen automatically gets of the options, and what is said of the rest.

    A delta is part of what the choice rests on, and allows a cost without one; answers are kept where they can be.
    """
    reach, most, told = dict(options), search.spec.max_order, ""
    if most is not None and reach.get("max_order", 0) > most:
        told = f"{search.spec.name} conditions on at most {most} columns, not on the {reach['max_order']} allowed."
        reach["max_order"] = most
    if not search.takes("keep"):
        reach.pop("keep", None)
    if not search.takes("delta") and reach.pop("delta", None):
        told = f"Its cost is pure epsilon: {search.spec.name} leaves the delta of {spent(options['delta'])} unspent."
    return reach, told


def require_taken(search: Search, options: Mapping[str, Any], levels: Sequence[int]) -> None:
    """Raises ValueError for one of the options that the search does not take, and names those that do."""
    for name in options:
        if not search.takes(name):
            value = f" = {printed(options[name])}" if isinstance(options[name], Real) else ""
            others = " or ".join(takers(name, tuple(levels)))
            raise ValueError(f"{search.spec.name} {ABILITIES[name]}: leave out {name}{value}, or use {others}.")


def _require_abilities(search: Search, options: Mapping[str, Any], setting: Setting) -> None:
    """Raises ValueError for an option or columns that the search does not take, and for an argument that it needs."""
    spec = search.spec
    require_taken(search, options, setting.levels)
    missing = [name for name in spec.needs if name not in options]
    if missing:
        raise ValueError(f"{spec.name} needs {' and '.join(missing)}: call jaxdp.discovery.{spec.name}(...) itself.")
    if not spec.accepts(setting.levels):
        taken = "only several columns of which some are continuous" if coded(setting.levels) else "coded columns only"
        raise ValueError(f"{spec.name} takes {taken}; use {best(setting).spec.name}.")
    if setting.in_chunks and not spec.sums:
        raise ValueError(f"{spec.name} needs all records in memory, not in chunks; use {best(setting).spec.name}.")


def setting_of(
    columns: Sequence[Column], num_records: int, epsilon: float, delta: float = 0.0, in_chunks: bool = False
) -> Setting:
    """The public numbers of a search. Errors: ValueError for what is no budget."""
    check.positive(epsilon=epsilon)
    check.non_negative(delta=delta)
    check.in_range(-1.0, 1.0, delta=delta)
    return Setting(levels_of(columns), num_records, float(epsilon), float(delta), in_chunks)


def why(setting: Setting) -> str:
    """Which search public numbers choose, why, and what it will miss: one sentence for people, known before a run."""
    first, *rest = forecasts(setting)
    rest = [row for row in rest if row.weakest >= first.weakest]
    budget = f"epsilon {spent(setting.epsilon)}" + (f", delta {spent(setting.delta)}" if setting.delta else "")
    asked = f"{setting.num_columns} columns, {setting.num_records} records and {budget}"
    if not math.isfinite(first.weakest):
        return f"{first.method} was chosen: it takes continuous columns."
    second = f" ({rest[0].method}: {100 * rest[0].weakest:.2g} %)" if rest and math.isfinite(rest[0].weakest) else ""
    because = best(setting).spec.because(setting)
    return f"{first.method} was chosen for {asked}: {because}{'; ' if because else ''}{first.misses}{second}."


def named(method: str | Search) -> Search:
    """The search that this names: its own name, "package.module:search", or a test, for PC with it; a `Search` itself.

    Errors: ValueError that lists the searches.
    """
    if isinstance(method, Search):
        return method
    if not isinstance(method, str) or (":" not in method and not catalogue.is_known(method)):
        return find(method)
    own = catalogue.load(method) if ":" in method and is_setting(method) else None
    return own if isinstance(own, Search) else pc_with(catalogue.find(method))


def keeps(method: str) -> bool:
    """Whether a search of this name can go on from kept answers; "auto": it will where it can."""
    return method == AUTO or named(method).takes("keep")


def forecast(
    schema: Any, *, n: int, epsilon: float, delta: float = 0.0, columns: Sequence[str] | None = None
) -> list[Forecast]:
    """The searches that `jaxdp.discover` may choose, best first, each with the weakest edges that it should find.

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


def choose_method(records: Records, epsilon: float, delta: float = 0.0) -> str:
    """Name of the search that is expected to find the weakest edges, chosen from the public numbers of a `Setting`."""
    return best(setting_of(records.columns, records.num_records, epsilon, delta)).spec.name


_SHARED: dict[str, Any] = {
    "accepts": lambda levels: True,
    "without_audit": "a sum of audited tests, reserved in advance",
}


@search(
    SearchSpec(
        "partition_pc",
        "PC with partition-gcm alone; coarse in Z",
        takes=("max_order", "knowledge", "accept_coarse_cells"),
        **_SHARED,
    )
)
@flat(PCOptions)
def partition_pc(key: Key, data: Any, *, accept_coarse_cells: bool = False, **how: Unpack[PCOptions]) -> Graph:
    """PC on continuous, coded or mixed columns with `PartitionGCM`; the budget is divided as in `recommended_pc`.

    accept_coarse_cells lifts the limit on conditioning sets, and a larger max_order needs it.
    Privacy: epsilon-DP under replace-one, by summation.
    """
    from jaxdp.independence.continuous.partition_gcm import PartitionGCM

    make = functools.partial(PartitionGCM, accept_coarse_cells=accept_coarse_cells)
    return _within(key, data, make, how)


@search(
    SearchSpec(
        "recommended_pc",
        "PC with the recommended test of each query; for continuous and mixed columns",
        error=lambda setting: math.inf,  # searches of coded columns come first wherever they fit
        takes=("max_order", "knowledge"),
        rank=lambda setting: 3,
        **_SHARED,
    )
)
@flat(PCOptions)
def recommended_pc(key: Key, data: Any, **how: Unpack[PCOptions]) -> Graph:
    """PC on continuous, coded or mixed columns with the test that fits each query; at most 3 d(d-1)/2 tests.

    One continuous column in the conditioning set: `BandGCM`; two to five: `ContrastGCM`; none: `PartitionGCM`.
    d: number of columns. epsilon is divided equally over the 3 d(d-1)/2 tests, which are reserved before the data are
    read; when they are used up, the search stops with complete=False. Level of each test: 0.01. Conditioning sets stay
    so small that no test refuses its query; if that limits them, the graph says so in `note`.
    Privacy: epsilon-DP under replace-one, by summation.
    """
    from jaxdp.independence.recommended import Recommended

    return _within(key, data, Recommended, how)


def _within(key: Key, data: Any, make: Callable[..., Any], how: PCOptions, limit: int | None = None) -> Graph:
    """PC with the tests that make(epsilon=share) builds, each at an equal share of a total budget.

    limit: largest conditioning set that the tests are made for.
    """
    from jaxdp.discovery.methods.pc import pc

    own = complete(PCOptions, how)
    records, order = as_records(data, own["levels"]), own["max_order"]
    d = len(records.columns)
    tests = max(1, TESTS_PER_PAIR * d * (d - 1) // 2)
    test = make(epsilon=float(own["epsilon"]) / tests)
    last = largest_order(test, records, d - 2 if limit is None else min(d - 2, limit))
    settings: dict[str, Any] = {"max_order": last if order is None else order, "max_tests": tests}
    settings |= {name: own[name] for name in ("knowledge", "ledger")}  # type: ignore[literal-required]
    graph = pc(key, records, test=test, level=TEST_LEVEL, stable=False, **settings)
    notes = [EACH_BY_ITSELF, "" if order is not None or last >= d - 2 else limited(last)]
    return dataclasses.replace(graph, note=" ".join(filter(None, [*notes, graph.note])))


def pc_with(entry: catalogue.Entry) -> Search:
    """PC with one test of the catalogue as a search, built for the columns of each query as `jaxdp test` builds it.

    Budget, tests and level: as in `recommended_pc`.
    Conditioning sets stay within what the test's spec says it takes, and so small that it refuses none.
    Privacy: epsilon-DP under replace-one, by summation. Errors: ValueError for tests that need more than columns (a
    law), whose y is a public group, or that take no query about some pair of these columns.
    """

    @search(
        SearchSpec(
            f"PC with {entry.name}",
            entry.spec.summary,
            takes=("max_order", "knowledge", "accept_coarse_cells")[: 3 if entry.cls.cuts_z else 2],
            **_SHARED,
        )
    )
    @flat(PCOptions)
    def pc_with_test(key, data, *, accept_coarse_cells=False, **how: Unpack[PCOptions]) -> Graph:
        from jaxdp.independence.recommended import ByName

        own = complete(PCOptions, how)
        fields = (("accept_coarse_cells", True),) if accept_coarse_cells else ()
        make = functools.partial(ByName, entry=entry, level=TEST_LEVEL, fields=fields)
        catalogue.require_any_pair(make(epsilon=1.0))
        catalogue.require_buildable(entry)
        records = as_records(data, own["levels"])
        pair = unfit(entry.spec, records.columns, 0)
        if pair:
            i, j = (records.names[k] for k in pair)
            raise ValueError(f"{entry.name} takes no query about {i!r} and {j!r} alone.")
        limit = fitting_order(entry.spec, records.columns, len(records.columns) - 2)
        return _within(key, records, make, own, limit)

    return pc_with_test


def limited(order: int) -> str:
    """What a graph says whose search stopped at this order."""
    columns = f"{order} column{'s' * (order != 1)}"
    return (
        f"Conditioning sets have at most {columns}, since given more the test does not apply or would find "
        "dependence where there is none; an edge that only a larger set removes is still there."
    )


def demo(key: jax.Array, epsilon: float = 1.0, num_records: int = 100_000, seed: int = 8) -> tuple[Graph, Records]:
    """`table_pc` on simulated records of the Asia network: the records are public and fixed, the noise is fresh."""
    import jax

    from jaxdp.data import networks
    from jaxdp.discovery.methods.table_pc import table_pc
    from jaxdp.simulate.designs.networks import sample_network

    keys.admit(key)
    records = sample_network(jax.random.key(seed), networks.load("asia"), num_records)
    return table_pc(key, records, epsilon=epsilon), records
