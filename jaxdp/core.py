"""The one abstraction: a private test, its release, its result.

A private test is a frozen pytree with three methods, and each signature is a privacy rule:
`statistic(key, data)` is private, `sensitivity(num_records)` never reads a value, and
`p_value(key, release)` never reads the data. `release` below is the only place where a
private statistic meets noise, and nothing un-noised leaves it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import charge
from jaxdp._base import check
from jaxdp._base.bounded import bounded_jit
from jaxdp._base.layout import automatic_layout
from jaxdp.charge import Account as Account
from jaxdp.data.admit import admitted
from jaxdp.data.chunks import Chunks, RowsOfDraws
from jaxdp.data.dataset import Data
from jaxdp.data.person_rows import PersonRows, draws_of, rounding
from jaxdp.data.records import warn_of_missing
from jaxdp.noise.source import Source, source_from_key
from jaxdp.privacy import Cost as Cost
from jaxdp.privacy import Norm as Norm
from jaxdp.privacy import Relation as Relation
from jaxdp.privacy import Sensitivity as Sensitivity
from jaxdp.privacy import is_bound as is_bound
from jaxdp.privacy import relation_of as relation_of
from jaxdp.query import NO_SUM as NO_SUM
from jaxdp.query import AdditiveMechanism as AdditiveMechanism
from jaxdp.query import Mechanism as Mechanism
from jaxdp.query import NullMechanism as NullMechanism
from jaxdp.query import PrivateQuery as PrivateQuery
from jaxdp.query import PrivateTest as PrivateTest
from jaxdp.query import Sequential as Sequential
from jaxdp.query import method_of as method_of
from jaxdp.query import num_records as num_records
from jaxdp.query import public_shapes as public_shapes
from jaxdp.query import specialize as specialize
from jaxdp.randomness import keys
from jaxdp.results import Interpretation as Interpretation
from jaxdp.results import Release as Release
from jaxdp.results import Result as Result
from jaxdp.results import bare


def require_query(test) -> None:
    """Raises TypeError, with the rule, for what is no query and for a class of one that is no pytree."""
    name = type(test).__name__
    if not isinstance(test, PrivateQuery | Sequential):
        raise TypeError(f"{name} is no test: a test derives from jaxdp.PrivateTest (docs/abstraction.md).")
    if jax.tree_util.all_leaves([test]):
        raise TypeError(f"{name} is no pytree: write @jaxdp.private_test above its class.")


@contextlib.contextmanager
def naming_the_rule(test) -> Iterator[None]:
    """Turns the AttributeError of a mechanism that lacks what a test reads of it into a TypeError with the rule."""
    try:
        yield
    except AttributeError as error:
        if not (hasattr(error.obj, "perturb") and hasattr(error.obj, "cost")):
            raise
        raise TypeError(
            f"{type(error.obj).__name__} has no {error.name}, which {method_of(test)} reads of its mechanism: define "
            "it as jaxdp.core.AdditiveMechanism and NullMechanism describe it, or use jaxdp.Laplace or jaxdp.Gaussian."
        ) from None


@contextlib.contextmanager
def naming_columns(test, data) -> Iterator[None]:
    """Turns the AttributeError of data without columns, such as an array, into a TypeError that says what to give."""
    try:
        yield
    except AttributeError as error:
        if isinstance(data, Data | Chunks | PersonRows) or error.name not in ("x", "y", "z", "domain"):
            raise
        read = f"{method_of(test)} reads {error.name} of its data"
        raise TypeError(f"{read}: give jaxdp.Data(x, y, z), got {type(data).__name__}.") from None


def admit(test, data):
    """The data as arrays, before anything is paid; refused by type, dtype and shape alone.

    Errors: ValueError for data in chunks where the test has no sums. TypeError for what is no test, or no pytree.
    """
    require_query(test)
    if isinstance(data, Chunks):
        admitted(data.shapes, many_columns=test.many_columns)
        require_z_is_used(test, data.shapes)
        require_sums(test, data.shapes, bool(draws_of(data)))
        return data
    if isinstance(data, PersonRows):
        data = data.admitted(many_columns=test.many_columns)
        require_z_is_used(test, data.shapes)
        _require_averages(test)
        return data
    require_z_is_used(test, data)
    return admitted(data, many_columns=test.many_columns)


def require_z_is_used(test, data) -> None:
    """Raises ValueError if the data have a z and the test does not say that it conditions on it (`uses_z`).

    Its p-value would answer another question: whether X and Y are independent, not whether they are given Z.
    """
    if getattr(data, "z", None) is None or not isinstance(test, PrivateTest) or test.uses_z:
        return
    raise ValueError(
        f"{method_of(test)} does not use z, so it cannot test whether x and y are independent given z: leave z out, or "
        "use a test that conditions on it, such as partition-gcm. A test of your own whose statistic conditions on z "
        "says so by uses_z = True in its class."
    )


def _require_averages(test) -> None:
    """Raises ValueError if the test may not be asked about several rows of each person."""
    if isinstance(test, Sequential):
        _require_averages(test.first)
        _require_averages(test.second)
    elif isinstance(test, PrivateTest) and not test.averages_rows:
        raise ValueError(
            f"{method_of(test)} takes one row of each person: its p-value holds for records, not for a mean over draws "
            "of rows. Give it one row per person, or use a test with averages_rows = True, such as partition-gcm."
        )


def needs_all(test, shapes, of_persons: bool = False) -> str:
    """Why a test, or a stage of it, must have all records at once, in half a sentence; "" where sums will do.

    of_persons: records are persons, over draws of whose rows the statistic is averaged.
    """
    if test.public_columns:
        # what such a column settles is not known yet
        return test.needs_all(shapes, of_persons) if test.settled_by else "a column of it is public and read by itself"
    query = specialize(test.of_persons(shapes) if of_persons else test, shapes)
    last = query.second if isinstance(query, Sequential) else query
    told = last.needs_all(shapes, of_persons)
    return told or (needs_all(query.first, shapes, of_persons) if isinstance(query, Sequential) else "")


def require_sums(test, shapes, of_persons: bool = False) -> None:
    """Raises ValueError if the test cannot be asked about records in chunks; nothing of them is read."""
    if of_persons:
        _require_averages(test)
    told = needs_all(test, shapes, of_persons)
    if told:
        raise ValueError(
            f"{method_of(test)} must have all records in memory: {told}. Give them as arrays, or use a test with sums, "
            "such as partition-gcm, partial-correlation or noisy-table."
        )


def cost_of(test, data) -> Cost:
    """What a run on data of these shapes will cost, without reading a value."""
    data = admit(test, data)
    test = specialize(test, data)
    if isinstance(test, Sequential):
        return cost_of(test.first, data) + cost_of(test.second, data)
    with naming_the_rule(test):
        return test.mechanism_in_force().cost(relation_of(test.sensitivity(num_records(data))))


def _of_means(sensitivity, draws: int):
    """The sensitivity of the mean over draws: the same bound, and the rounding of the mean in its error."""

    def one(part: Sensitivity) -> Sensitivity:
        if part.lower is None or part.upper is None:  # of a simulation alone, whose noise is idealised
            return part
        array = np if check.is_concrete(part.lower) and check.is_concrete(part.upper) else jnp
        largest = array.max(array.maximum(array.abs(part.lower), array.abs(part.upper)))
        return dataclasses.replace(part, error=part.error + rounding(draws, largest))

    return jax.tree.map(one, sensitivity, is_leaf=is_bound)


@automatic_layout
def release(test: Any, key: Any, data: Any) -> Release:
    """Returns the noisy statistic, the only thing about `data` that may leave."""
    mode = keys.admit(key, test, data)
    data = admit(test, data)
    with keys.precision(mode), naming_columns(test, data):
        return release_opened(test, source_from_key(key), data)


def release_opened(test, source: Source, data) -> Release:
    """`release` for a source that an entry point has opened."""
    return keys.settle(source.mode, _execute(test, source, _widened(source.mode, data))[1])


def exact_statistic(query, key, data):
    """The statistic of a resolved query before noise, as a release computes it: private.

    Its private columns are finite: NaN counts as 0, the middle of scaled bounds and the first code, and an infinity as
    the largest number of its sign. A query with `reads_missing` gets its data as they are. Of persons with several
    rows, it is the mean over the draws unless the query says otherwise.
    """
    if isinstance(data, PersonRows):
        return query.statistic_of_persons(key, PersonRows(finite(query, data.draws)))
    return query.statistic(key, finite(query, data))


def finite(query, data):
    """The data as the statistic of a query gets them (`exact_statistic`)."""
    if query.reads_missing:
        return data
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: (
            leaf if path and getattr(path[0], "name", "") in query.public_columns else _finite_array(leaf)
        ),
        data,
    )


def _finite_array(values):
    if not jnp.issubdtype(values.dtype, jnp.inexact):
        return values
    if isinstance(values, np.ndarray):  # what is finite is not copied
        return values if np.all(np.isfinite(values)) else np.nan_to_num(values, nan=0.0)
    return jnp.nan_to_num(values, nan=0.0)


@functools.partial(bounded_jit, quickly=True)
def _statistic(test, key, data):
    # compiled as one program: dozens of small ones cost an eager caller seconds
    return exact_statistic(test, key, data)


@functools.partial(bounded_jit, quickly=True)
def _answer(test, key, release: Release) -> Interpretation:
    found = test.interpret(key, release)
    # A budget that was not > 0 under tracing is NaN in the cost; a decision would hide it.
    spoiled = jnp.isnan(release.cost.epsilon) | jnp.isnan(release.cost.rho)
    spoil = functools.partial(jax.tree.map, lambda number: jnp.where(spoiled, jnp.nan, number))
    return found._replace(p_value=spoil(found.p_value), effect=spoil(found.effect), interval=spoil(found.interval))


def answered(test, release: Release) -> Interpretation:
    """What `run` told of this release, once more, by the program that told it: of a final stage that draws nothing.

    test: the stage as `settled` gives it, within `keys.precision(release.mode)`.
    """
    source = source_from_key(keys.fresh_key() if release.mode == keys.RELEASE else jax.random.key(0))
    return _answer(test, source.key, bare(release))


def _execute(test, source: Source, data) -> tuple[Any, Release]:
    """The release, and the test with every stage resolved: both public."""
    test = specialize(test, data)
    if isinstance(test, Sequential):
        return _execute_sequential(test, source, data)
    data = data.without_names() if hasattr(data, "without_names") else data  # column names would trigger recompilation
    streamed = isinstance(data, Chunks)
    for_statistic, noise = source.split()
    count = num_records(data)
    with naming_the_rule(test):
        sensitivity = test.sensitivity(count)
    sensitivity = _of_means(sensitivity, draws_of(data)) if draws_of(data) else sensitivity
    relation = relation_of(sensitivity)
    mechanism = test.mechanism_in_force()
    source.require_noise(mechanism)
    compute = _statistic if test.one_program else exact_statistic
    value = summed(test, data) if streamed else compute(test, for_statistic.key, data)
    noise = noise.collecting()
    noisy = mechanism.perturb(noise, value, sensitivity)
    noise.require_certificates(mechanism)
    return test, Release(
        value=noisy,
        sensitivity=sensitivity,
        cost=mechanism.cost(relation),
        num_records=None if relation is Relation.ADD_OR_REMOVE_ONE else count,
        mode=source.mode,
        certificates=noise.certificates,
    )


def summed(query: PrivateQuery, data: Chunks):
    """The statistic of records in chunks, or of rows of persons, by one pass over them: private."""
    # as NumPy: a process that gets the query would read float64 arrays of JAX as float32
    query = jax.tree.map(np.asarray, query)
    sums = data.total(functools.partial(_partial, query, data.num_records), query.merge)
    with jax.enable_x64(True):
        return jax.tree.map(jnp.asarray, query.finish_of_persons(sums) if draws_of(data) else query.finish(sums))


def _partial(query: PrivateQuery, count: int, chunk):
    if isinstance(chunk, RowsOfDraws):
        rows = dataclasses.replace(chunk, rows=finite(query, chunk.rows))
        return query.partial_of_persons(rows, count)
    return query.partial(finite(query, chunk), count)


def _widened(mode: str, data):
    return data if isinstance(data, Chunks) else keys.widen(mode, data)


def _execute_sequential(test: Sequential, source: Source, data) -> tuple[Any, Release]:
    for_first, for_second = source.split()
    query, first = _execute(test.first, for_first, data)
    resolved, second = _execute(test.then(test.second, query, first), for_second, data)
    return resolved, dataclasses.replace(second, cost=first.cost + second.cost, earlier=(first, *second.earlier))


@automatic_layout
def run(test: Any, key: Any, data: Any, *, ledger: Account | None = None) -> Result:
    """Runs a test once: release, then p-value from the release alone.

    test: any test of the package. data: `jaxdp.Data` (or what the test's statistic takes); `jaxdp.data.chunks.Chunks`
    of records that do not lie in memory, for tests that have sums.
    key: `jaxdp.fresh_key()` for a release, `jax.random.key(seed)` for a simulation (not private).
    ledger: charged before the data are read; only releases can be charged.
    An `OwnerWarning`, private as the data, says where so many cells of `jaxdp.Data` are NaN (more than sqrt(n)/4 of a
    column) that dependence may be invented; no traced array is looked at.
    Errors: ValueError or TypeError on public mistakes (shapes, keys, budgets), RuntimeError for a release inside
    `jax.jit` or another JAX transformation or under fast-math flags, all before data are read or anything is paid.
    """
    mode = keys.admit(key, test, data)
    _require_p_value(test)
    data = admit(test, data)
    if isinstance(data, Data) and not test.leaves_out_missing:
        warn_of_missing(x=data.x, y=data.y, **({} if data.z is None else {"z": data.z}))
    with keys.precision(mode), naming_columns(test, data):
        cost = None if ledger is None else cost_of(test, data)
        with charge.paid(ledger, method_of(test), cost, key, mode=mode, rehearse=lambda: rehearse(test, data)):
            return run_opened(test, source_from_key(key), data)


def _require_p_value(test) -> None:
    if isinstance(test, PrivateQuery) and not isinstance(test, PrivateTest):
        raise TypeError(
            f"{method_of(test)} has no p-value to run for: jaxdp.release(test, key, data) gives what it releases."
        )


def run_opened(test, source: Source, data) -> Result:
    """`run` for a source that an entry point has opened, and paid for."""
    mode = source.mode
    for_release, for_null = source.split()
    resolved, released = _execute(test, for_release, _widened(mode, data))
    with naming_the_rule(test):
        found = _answer(resolved, for_null.key, bare(released))
    result = Result(
        p_value=found.p_value,
        statistic=found.estimate,
        effect=found.effect,
        interval=found.interval,
        release=released,
        cost=released.cost,
        mode=mode,
        method=method_of(test),
    )
    return keys.settle(mode, result)


def rehearse(test, data) -> None:
    """A whole run on zeros of the same shapes, thrown away: what would fail must fail before it is paid.

    Of a query without a p-value, its release.
    """
    zeros, source = blank(test, data), source_from_key(keys.fresh_key())
    with keys.precision(keys.RELEASE):
        if isinstance(test, PrivateTest):
            run_opened(test, source, zeros)
        else:
            _execute(test, source, _widened(keys.RELEASE, zeros))


def blank(test, data):
    """Zeros in place of every value that is not public."""
    if isinstance(data, Chunks):
        return data.blank()
    public = {name: getattr(data, name) for name in test.public_columns}
    zeros = jax.tree.map(lambda leaf: np.zeros(jnp.shape(leaf), jnp.result_type(leaf)), data)
    return dataclasses.replace(zeros, **public) if public else zeros
