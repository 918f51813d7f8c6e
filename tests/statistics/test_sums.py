"""Sums of chunks: equal whatever the cut and the order, with the sensitivity of the statistic; runs on chunks."""

import dataclasses
import functools
import re

import chunked
import jax
import numpy as np
import pytest
from cases import CASES, NUM_RECORDS

import jaxdp
from jaxdp import catalogue, core
from jaxdp._base.pytree import frozen_pytree
from jaxdp.audit import cases, contract
from jaxdp.core import PrivateQuery
from jaxdp.data import chunks
from jaxdp.data.dataset import BINARY, CONTINUOUS, ORDINAL, Column, Data, Domain
from jaxdp.independence.continuous import moment_stages
from jaxdp.statistics import sums

SUMMED = [case for case in CASES if case.private and type(case.test(1.0)).finish is not PrivateQuery.finish]


def mixed(n=1500, seed=3):
    """x, y continuous on [-1, 1]; z a column of three levels and one continuous."""
    rng = np.random.default_rng(seed)
    level, z = rng.integers(0, 3, n), rng.uniform(-1, 1, n)
    x, y = (np.clip(0.3 * z + 0.1 * level + 0.2 * rng.normal(size=n), -1, 1) for _ in range(2))
    domain = Domain((Column(name="x"),), (Column(name="y"),), (Column(ORDINAL, 3, "g"), Column(CONTINUOUS, 0, "z")))
    return Data(x, y, np.stack([level, z], axis=1).astype(float), domain=domain)


def coded(n=1500, seed=4):
    rng = np.random.default_rng(seed)
    z, x = rng.integers(0, 4, n), rng.integers(0, 3, n)
    y = (x + rng.integers(0, 2, n) + z) % 2
    domain = Domain((Column(ORDINAL, 3),), (Column(BINARY, 2),), (Column(ORDINAL, 4),))
    return Data(x.astype(float), y.astype(float), z[:, None].astype(float), domain=domain)


def continuous(n=4000, seed=5):
    rng = np.random.default_rng(seed)
    z = np.clip(rng.normal(size=(n, 2)) / 3, -1, 1)
    x = np.clip(0.5 * z[:, 0] + 0.2 * rng.normal(size=n), -1, 1)
    y = np.clip(0.4 * z[:, 1] + 0.3 * x + 0.2 * rng.normal(size=n), -1, 1)
    return Data(x, y, z, domain=Domain((Column(),), (Column(),), (Column(), Column())))


def no_z(data):
    return dataclasses.replace(data, z=None, domain=Domain(data.domain.x, data.domain.y))


def test_partial_sums_are_equal_whatever_the_cut_and_the_order():
    query = core.specialize(jaxdp.PartitionGCM(epsilon=1.0), mixed())
    data, count = jax.tree.map(np.asarray, mixed().without_names()), 1500
    whole = query.partial(data)
    assert all(part.dtype == np.int64 for part in jax.tree.leaves(whole))
    for cuts, seed in ((1, 0), (7, 1), (100, 2)):
        rows = np.array_split(np.random.default_rng(seed).permutation(count), cuts)
        parts = [query.partial(jax.tree.map(lambda leaf, r=r: leaf[r], data), count) for r in rows]
        found = functools.reduce(query.merge, parts)
        jax.tree.map(np.testing.assert_array_equal, found, whole)


def test_a_chunk_that_is_counted_twice_is_seen():
    query = core.specialize(jaxdp.PartitionGCM(epsilon=1.0), mixed())
    whole = query.partial(mixed().without_names())
    twice = query.merge(whole, whole)
    assert not np.array_equal(twice["count"], whole["count"])


FIRST = {type(case.test(1.0)): case.name for case in reversed(SUMMED)}


def every(cases):
    """Each case; variants of a class are of the full tier."""
    marks = {case.name: () if case.name in FIRST.values() else pytest.mark.full for case in cases}
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=case.name, marks=marks[case.name]) for case in cases], scope="module"
    )


@every(SUMMED)
def test_sums_of_chunks_are_those_of_the_whole_and_give_the_statistic(case):
    """1, 7 and 100 chunks in random order, of data with missing, infinite and huge values."""
    data = contract._spoiled(case.data(jax.random.key(2), NUM_RECORDS), case.fixed)
    assert set(contract.compared(case.test(1.0), data, jax.random.key(3)).values()) <= {""}


def test_sums_are_compared_for_many_tests():
    assert len({case.name.partition("-")[0] for case in SUMMED}) >= 6


def test_wrong_sums_are_found():
    @frozen_pytree
    class Forgetful(jaxdp.NoisyTableChi2):
        def partial(self, chunk, num_records=None):
            return super().partial(jax.tree.map(lambda leaf: leaf[1:], chunk), num_records)

    @frozen_pytree
    class Larger(jaxdp.NoisyTableChi2):
        def statistic(self, key, data):
            return 1.01 * self.finish(self.partial(data))

        def finish(self, totals):
            return super().finish(totals)

    data = no_z(coded())
    for test, wrong in ((Forgetful, "not those of the whole"), (Larger, "not `statistic`")):
        assert wrong in contract.compared(test(epsilon=1.0), data, jax.random.key(3))["noisy-table"]


@every([case for case in SUMMED if case.example.worst_pairs])
def test_the_bound_of_the_statistic_holds_for_its_sums(case):
    """The worst pairs of the statistic move what the sums give as far, and no further."""
    with jax.enable_x64(True):
        for pair in case.example.pairs():
            one, other = (jax.tree.map(np.asarray, data) for data in pair)
            query = core.specialize(case.test(1.0, core.num_records(one)), one)
            if isinstance(query, core.Sequential) or query.needs_all(core.public_shapes(one)):
                continue  # stages, or no sums for these columns
            bound = query.sensitivity(core.num_records(one))
            by_sums, direct = (
                jax.tree.map(lambda a, b: np.asarray(a - b, float), *values)
                for values in (
                    [query.finish(query.partial(data)) for data in (one, other)],
                    [query.statistic(jax.random.key(0), data) for data in (one, other)],
                )
            )

            def moves(part, change):
                order = {core.Norm.L1: 1, core.Norm.L2: 2, core.Norm.LINF: np.inf}[part.norm]
                return float(np.linalg.norm(change.ravel(), order)) / float(part.bound)

            is_leaf = lambda node: isinstance(node, core.Sensitivity)  # noqa: E731
            found = jax.tree.map(moves, bound, by_sums, is_leaf=is_leaf)
            wanted = jax.tree.map(moves, bound, direct, is_leaf=is_leaf)
            for share, known in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
                assert share <= 1.0 + 1e-9
                assert share >= known - 1e-3


def test_values_of_a_sum_beyond_float64_are_added_exactly():
    cell = np.zeros(1 << 20, int)
    values = np.full(1 << 20, sums.GRID**2 - 1.0)
    assert sums.cell_sums(cell, values, 1, sums.GRID**2)[0] == (1 << 20) * (2**34 - 1)


ON_CHUNKS = {
    "cells": (lambda: jaxdp.PartitionGCM(epsilon=1.0), mixed, 2.0**-15),
    "centres first": (lambda: jaxdp.PartitionGCM(epsilon=1.0, standardize=True), mixed, None),
    "one cell": (lambda: jaxdp.PartitionGCM(epsilon=1.0), lambda: no_z(mixed()), 2.0**-15),
    "moments": (lambda: jaxdp.WinsorisedPartialCorrelation(epsilon=2.0), continuous, 0.0),
    "kendall": (lambda: jaxdp.ConditionalKendall(epsilon=1.0), coded, 0.0),
    "spearman": (lambda: jaxdp.ConditionalSpearman(epsilon=1.0), coded, 0.0),
    "table": (lambda: jaxdp.NoisyTableChi2(epsilon=1.0), lambda: no_z(coded()), 0.0),
}


@pytest.mark.parametrize("name", ON_CHUNKS)
def test_a_run_on_chunks_is_the_run_in_memory(name):
    """With one key both have the same noise: what is released differs by what the lattice moves, else not at all."""
    make, draw, lattice = ON_CHUNKS[name]
    data = draw()
    with jax.enable_x64(True):
        found = [jaxdp.release(make(), jax.random.key(7), form) for form in (data, chunked.of_arrays(data, 333))]
    room = 1e-6 if lattice is None else 1e-9
    room += (2.0**-15 if lattice is None else lattice) * len(data.x)
    for one, other in zip(*(jax.tree.leaves(released.value) for released in found), strict=True):
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=1e-9, atol=room)
    assert found[0].num_records == found[1].num_records


def test_a_release_on_chunks_is_certified_and_charged_once(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.db", epsilon=3.0)
    stream = chunked.of_arrays(mixed(), 400)
    result = jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0, standardize=True), jaxdp.fresh_key(), stream, ledger=ledger)
    assert result.mode == "release"
    assert result.release.certificates
    assert float(ledger.spent.epsilon) == pytest.approx(1.0)


def test_tests_without_sums_say_so_before_anything_is_read():
    def read():
        raise AssertionError("the records were read")

    data = continuous(1000)
    stream = chunks.Chunks(chunks.shapes_of(data), read)
    for test, why in ((jaxdp.ContrastGCM(epsilon=1.0), "a sort"), (jaxdp.PrivateGCM(epsilon=1.0), "every other")):
        with pytest.raises(ValueError, match=f"must have all records in memory: .*{why}"):
            jaxdp.run(test, jaxdp.fresh_key(), stream)
    sorting = dataclasses.replace(stream, shapes=chunks.shapes_of(no_z(data)))
    with pytest.raises(ValueError, match="sorts continuous columns"):
        jaxdp.run(jaxdp.ConditionalKendall(epsilon=1.0), jaxdp.fresh_key(), sorting)


@pytest.mark.parametrize("name", catalogue.entries())
def test_every_test_has_sums_or_says_why_not_before_it_reads(name):
    """On the first example of each test of the catalogue whose data are records."""
    configured = cases.of(catalogue.entries()[name])[0]
    data = configured.example.data(jax.random.key(0), max(60, configured.example.min_records))
    if not isinstance(data, Data):
        return  # sums already: tables of counts
    test = configured.build(1.0, len(data.x))
    stream = dataclasses.replace(
        chunked.of_arrays(data, 25), read=lambda: (_ for _ in ()).throw(AssertionError("read"))
    )
    told = core.needs_all(test, stream.shapes)
    if told:
        assert told != core.NO_SUM, (
            f"{name} cannot read a table in chunks and does not say why: define partial and finish if its statistic "
            "follows from sums over records, else say why not in TestSpec(needs_all=...), in half a sentence"
        )
        with pytest.raises(ValueError, match=re.escape(f"must have all records in memory: {told}.")):
            core.require_sums(test, stream.shapes)
    else:
        with pytest.raises(AssertionError, match="read"):
            jaxdp.run(test, jax.random.key(1), stream)


def test_another_statistic_has_no_sums_of_its_parent():
    @frozen_pytree
    class Doubled(jaxdp.NoisyTableChi2):
        def statistic(self, key, data):
            return 2.0 * super().statistic(key, data)

    data = no_z(coded())
    assert core.needs_all(jaxdp.NoisyTableChi2(epsilon=1.0), core.public_shapes(data)) == ""
    assert core.needs_all(Doubled(epsilon=1.0), core.public_shapes(data)) == core.NO_SUM


def test_too_many_cells_and_records_are_refused_by_their_number():
    shapes = chunks.shapes_of(mixed())
    assert "cells" in core.needs_all(jaxdp.PartitionGCM(epsilon=1.0, num_cells=1 << 22), shapes)
    many = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2**28, *leaf.shape[1:]), leaf.dtype), shapes)
    assert "too many" in core.needs_all(jaxdp.PartitionGCM(epsilon=1.0), many)


def test_chunks_that_hold_other_records_than_stated_are_refused():
    stream = chunked.of_arrays(mixed(), 400)
    short = dataclasses.replace(stream, read=lambda: iter(list(stream.read())[:-1]))
    with pytest.raises(ValueError, match="another number of records"):
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0), short)


def test_chunks_show_shapes_and_no_value():
    text = repr(chunked.of_arrays(mixed(), 400))
    assert "1500" in text
    assert "array" not in text


@pytest.mark.parametrize("grid", [moment_stages.centre_grid(), moment_stages.scale_grid(), np.array([0.0, 1.0])])
def test_places_are_those_of_a_search(grid):
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [grid, np.nextafter(grid, -9), np.nextafter(grid, 9), rng.uniform(-3, 3, 9999), [-1e9, 1e9]]
    )
    np.testing.assert_array_equal(sums.places(grid, values), np.searchsorted(grid, values, side="left"))
