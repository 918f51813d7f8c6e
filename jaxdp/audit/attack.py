"""The attack on an example of a test: how much of every bound of every stage worst pairs and a search reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxdp import core
from jaxdp._base.places import loaded
from jaxdp.audit import bounds
from jaxdp.examples import Example

ROUNDING = 1e-9  # of a bound: what float64 may add to a move that is as large as declared
SLACK = 1e-3  # of a declared share: rounding errors are part of the bound that is reached


def attack(
    build: Callable[[Any, int], Any], example: Example, sample: Any, key: Any, *, held: tuple[str, ...] = ()
) -> dict[str, bounds.Reached]:
    """What was reached of every bound: by the example's worst pairs, and by a search that starts from them.

    build: epsilon, number of records -> test. sample: data to search near; None for no search. key: what stages
    release to the ones after them. held: columns that neighbours share. The path of a bound names its stage and part;
    that of the only bound of one stage is empty.
    """
    found: dict[str, bounds.Reached] = {}
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        groups: dict[str, tuple[Any, list]] = {} if sample is None else {_shapes(sample): (sample, [])}
        for before, after in example.pairs():
            groups.setdefault(_shapes(before), (before, []))[1].append((before, after))
        for data, starts in groups.values():
            for prefix, query in stages(build, data, key):
                reached = _reached(query, example, starts, held, searched=data is sample)
                paths = {".".join(part for part in (prefix, name) if part): best for name, best in reached.items()}
                found = bounds.larger(found, paths)
    return found


def stages(build: Callable[[Any, int], Any], data: Any, key: Any) -> list[tuple[str, Any]]:
    """(name, query) of every stage for data of this shape; the only stage has no name."""
    every = [*bounds.stages(build(1.0, core.num_records(data)), data, key)]
    return [("" if len(every) == 1 else name, query) for name, query in every]


def _reached(query, example: Example, starts, held, searched: bool) -> dict[str, bounds.Reached]:
    how = example.search
    if not searched or how.rounds is None:
        spoiled = bounds.without_values(starts[0], (*held, *how.held)) if starts and how.replace is None else []
        return bounds.reached_by(query, [*starts, *spoiled], view=loaded(how.view))
    return bounds.search(
        query,
        example.data,
        max(how.records, example.min_records),
        fixed=(*held, *how.held),
        starts=starts,
        replace=loaded(how.replace),
        view=loaded(how.view),
        rounds=how.rounds,
    )


def _shapes(data) -> str:
    return str(core.public_shapes(data))
