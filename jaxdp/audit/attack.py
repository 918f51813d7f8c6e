"""The attack on an example of a test: how much of every bound of every stage worst pairs and a search reach."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp import core
from jaxdp._base.places import loaded
from jaxdp.audit import bounds
from jaxdp.data.dataset import Data
from jaxdp.data.person_rows import PersonRows
from jaxdp.examples import Example

ROUNDING = 1e-9  # of a bound: what float64 may add to a move that is as large as declared
ROW_DRAWS, ROW_LANES, ROW_ROUNDS = 4, 16, 6  # of the attack by persons with several rows
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
        for data, starts in _groups(example, sample).values():
            for prefix, query in stages(build, data, key):
                reached = _reached(query, example, starts, held, searched=data is sample)
                paths = {".".join(part for part in (prefix, name) if part): best for name, best in reached.items()}
                found = bounds.larger(found, paths)
    return found


def attack_rows(
    build: Callable[[Any, int], Any], example: Example, sample: Any, found: Mapping[str, bounds.Reached], key: Any
) -> dict[str, bounds.Reached]:
    """What is reached of every bound where a record is a person with several rows, all of which are replaced.

    found: what `attack` reached with the other arguments. Its neighbours are tried with equal rows of each person, and
    with a person whose rows are unlike; a search that starts from them tries mixtures.
    """
    reached: dict[str, bounds.Reached] = {}
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        for data, _ in _groups(example, sample).values():
            pairs = [best.pair for best in found.values() if all(_alike(side, data) for side in best.pair)]
            starts = [pair for before, after in pairs for pair in _rows_of(before, after)]
            if not starts:
                continue
            generate = functools.partial(_mixed, [side for pair in pairs for side in pair])
            for prefix, query in stages(build, PersonRows.of_draws([data] * ROW_DRAWS), key):
                count = core.num_records(data)
                best = bounds.search(query, generate, count, starts=starts, lanes=ROW_LANES, rounds=ROW_ROUNDS)
                paths = {".".join(part for part in (prefix, name) if part): one for name, one in best.items()}
                reached = bounds.larger(reached, paths)
    return reached


def _groups(example: Example, sample: Any) -> dict[str, tuple[Any, list[tuple[Any, Any]]]]:
    """By shape: the data whose stages configure the later ones, and the example's worst pairs."""
    groups: dict[str, tuple[Any, list]] = {} if sample is None else {_shapes(sample): (sample, [])}
    for before, after in example.pairs():
        groups.setdefault(_shapes(before), (before, []))[1].append((before, after))
    return groups


def _rows_of(before: Data, after: Data) -> Iterator[tuple[PersonRows, PersonRows]]:
    """Neighbours whose persons have the records as rows: as often as there are draws, and in half of the draws."""
    same = PersonRows.of_draws([before] * ROW_DRAWS)
    yield same, PersonRows.of_draws([after] * ROW_DRAWS)
    yield same, PersonRows.of_draws([before, after] * (ROW_DRAWS // 2))


def _mixed(records: Sequence[Data], key: Any, num_records: int) -> PersonRows:
    """Each draw is one of these data sets."""
    chosen = np.asarray(jax.random.randint(key, (ROW_DRAWS,), 0, len(records)))
    return PersonRows.of_draws([records[number] for number in chosen])


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


def _alike(first: Any, second: Any) -> bool:
    """Whether two data sets have arrays of the same shapes, whatever their precision."""
    return [np.shape(leaf) for leaf in jax.tree.leaves(first)] == [np.shape(leaf) for leaf in jax.tree.leaves(second)]


def _shapes(data) -> str:
    return str(core.public_shapes(data))
