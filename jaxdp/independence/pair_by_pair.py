"""All pairs of many features by a test of one pair: the budget is divided, reserved and charged before data are read.

A release runs pair after pair; a simulation maps over the pairs of one kind in one compiled program, one at a time.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import time
from collections.abc import Callable
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import charge, core
from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.rounding import as_fraction
from jaxdp.accounting.composition import compose
from jaxdp.catalogue import ROUNDING, described
from jaxdp.core import Cost
from jaxdp.data.chunks import Chunks
from jaxdp.independence.features import Features
from jaxdp.noise.source import Source, source_from_key
from jaxdp.randomness import keys

SHORT = 0.2  # seconds of a rehearsal that say enough, although it compiled
WORTH_TIMING = 3  # pairs of each kind, on average, from which on an estimate costs little beside the run itself


def run(test, key, mode: str, features: Features, *, ledger=None) -> tuple:
    """(p-values (pairs,), cost of all pairs, releases in the order of the pairs).

    Privacy: sequential composition of equal shares of the test's budget.
    """
    with keys.precision(mode):
        each, cost = _divided(test, features)
        one_by_one = mode == keys.RELEASE or bool(test.public_columns)

        def rehearse():
            kinds = [core.admit(each, features.first(places, domain)) for domain, places in _places(features).items()]
            for data in kinds:
                core.rehearse(each, data)

        with charge.paid(ledger, f"all-pairs[{core.method_of(test)}]", cost, key, mode=mode, rehearse=rehearse):
            found = (_in_turn if one_by_one else _mapped)(each, source_from_key(key), features)
        stack = np.stack if mode == keys.RELEASE else jnp.stack
        return stack([result.p_value for result in found]), cost, tuple(result.release for result in found)


def run_each(
    tests: list,
    key,
    queries: list,
    *,
    name: str,
    ledger=None,
    on_stage: Callable[[int], None] = lambda place: None,
    prepare: Callable[[str], None] = lambda stage: None,
    on_estimate: Callable[[float], None] | None = None,
) -> tuple[list[core.Result], Cost]:
    """(one result for each query by its own test, the cost of all): charged once, before a value is used.

    Privacy: sequential composition; the tests hold their shares of the budget. begin: told the place of each query.
    prepare: told, in words, each stage before a release is charged, once the account was found to afford it.
    on_estimate: told, before the charge, about how many seconds a release will take.
    """
    mode = keys.admit(key, *tests, *queries)
    queries = [core.admit(test, data) for test, data in zip(tests, queries, strict=True)]
    with keys.precision(mode):
        cost = compose([core.cost_of(test, data) for test, data in zip(tests, queries, strict=True)])

        def rehearse():
            prepare("preparing")
            _rehearse(tests, queries, charged=ledger is not None, prepare=prepare, on_estimate=on_estimate)

        if ledger is None and mode == keys.RELEASE:
            rehearse()
        with charge.paid(ledger, name, cost, key, mode=mode, rehearse=rehearse):
            sources = source_from_key(key).split(len(tests))
            found = []
            for place, (test, source, data) in enumerate(zip(tests, sources, queries, strict=True)):
                on_stage(place)
                found.append(core.run_opened(test, source, data))
        return found, cost


def _rehearse(
    tests: list,
    queries: list,
    *,
    charged: bool,
    prepare: Callable[[str], None],
    on_estimate: Callable[[float], None] | None,
) -> None:
    """One release of each kind on zeros where that is to be charged, or where `on_estimate` is told their time."""
    kinds = _kinds_of_pairs(tests, queries)
    # records in chunks are rehearsed on none, which says nothing about time; a run without a charge may be stopped
    timed = on_estimate is not None and not any(isinstance(data, Chunks) for data in queries)
    timed = timed and (charged or len(tests) >= WORTH_TIMING * len(kinds))
    if not timed and not charged:
        return
    seconds = 0.0
    for place, (test, data, number) in enumerate(kinds, start=1):
        prepare(f"rehearsing kind {place} of {len(kinds)} of pairs on zeros; each is compiled once")
        seconds += number * rehearsed(test, data, again=timed)
    if timed and on_estimate is not None:
        on_estimate(seconds)


def rehearsed(test, data, *, again: bool) -> float:
    """Seconds that a release takes on zeros of the same shapes, thrown away; public, as zeros are.

    again: a release that took long is timed once more, since the first one compiles.
    """
    start = time.perf_counter()
    core.rehearse(test, data)
    taken = time.perf_counter() - start
    if not again or taken < SHORT:
        return taken
    start = time.perf_counter()
    core.rehearse(test, data)
    return time.perf_counter() - start


def _kinds_of_pairs(tests: list, queries: list) -> list[tuple]:
    """(test, query, how many) of each class, settings and columns: what fails for one fails for all of them."""
    found: dict[tuple, list[tuple]] = {}
    for test, data in zip(tests, queries, strict=True):
        shapes = core.public_shapes(data)
        domain = None if shapes.domain is None else shapes.without_names().domain
        found.setdefault((type(test).__name__, str(described(test)), domain), []).append((test, data))
    return [(*alike[-1], len(alike)) for alike in found.values()]


def _in_turn(test, source: Source, features: Features) -> list[core.Result]:
    asked = (features.query(i, j, features.domain(i, j)) for i, j in features.pairs)
    sources = source.split(len(features.pairs))
    return [core.run_opened(test, own, core.admit(test, data)) for own, data in zip(sources, asked, strict=True)]


def _mapped(test, source: Source, features: Features) -> list[core.Result]:
    """The same results; one program for each kind of columns."""
    results: dict[int, core.Result] = {}
    root = jax.random.split(source.key, len(features.pairs))
    for domain, places in _places(features).items():
        pairs = jnp.array([features.pairs[place] for place in places])
        found = _map(test, root[np.array(places)], features.values, features.z, pairs, domain)
        for number, place in enumerate(places):
            results[place] = jax.tree.map(operator.itemgetter(number), _on_host(found))
    return [results[place] for place in range(len(features.pairs))]


@functools.partial(bounded_jit, static_argnums=5)
def _map(test, root, values, z, pairs, domain):
    def one(asked):
        key, (i, j) = asked
        data = Features(values, z, None, None).query(i, j, domain)
        return core.run(test, key, data)

    return jax.lax.map(one, (root, pairs))


def _on_host(found):
    """Results as NumPy arrays, of which thousands of slices cost nothing; traced ones stay."""
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(found))
    return found if traced else jax.tree.map(np.asarray, found)


def _places(features: Features) -> dict:
    """Domain of a pair -> places of the pairs that have it."""
    places: dict = {}
    for place, (i, j) in enumerate(features.pairs):
        places.setdefault(features.domain(i, j), []).append(place)
    return places


def _divided(test, features: Features) -> tuple:
    """The test with its share of the budget, and the cost of all pairs: that of the test or a rounding less."""
    number = len(features.pairs)
    each = _share(test, Fraction(1, number))
    whole, costs = _costs(test, features), _costs(each, features)
    if not all(check.is_concrete(leaf) for leaf in jax.tree.leaves([whole, costs])):
        return each, functools.reduce(operator.add, costs)
    if any(_rounded_up(whole, costs, name) for name in ("epsilon", "rho")):
        each = _share(test, (1 - Fraction(ROUNDING)) / number)
        costs = _costs(each, features)
    return each, compose(costs)


def _costs(test, features: Features) -> list[Cost]:
    """Cost of every pair; pairs of one kind cost the same."""
    return [
        cost
        for domain, places in _places(features).items()
        for cost in [core.cost_of(test, features.first(places, domain))] * len(places)
    ]


def _rounded_up(whole: list[Cost], costs: list[Cost], name: str) -> bool:
    """Whether the shares add up to more than what they are shares of, by rounding alone."""
    asked, spent = ([np.asarray(getattr(cost, name)).item() for cost in part] for part in (whole, costs))
    if not np.all(np.isfinite([*asked, *spent])):
        return False
    limit = sum(map(as_fraction, asked)) / len(asked)
    return limit < sum(map(as_fraction, spent)) <= limit * (1 + Fraction(ROUNDING))


def _share(test, fraction: Fraction):
    """The test with this fraction of its budget."""
    if test.mechanism is None:
        return dataclasses.replace(test, epsilon=check.share(test.epsilon, fraction))
    if not hasattr(test.mechanism, "share"):
        raise ValueError(
            f"{type(test.mechanism).__name__} cannot be divided over the pairs: give {core.method_of(test)} epsilon=."
        )
    return dataclasses.replace(test, mechanism=test.mechanism.share(fraction))
