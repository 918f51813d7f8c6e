"""Every exported query has an example that is attacked, audited and measured, on record, and every search an audit.

No list is kept here.
"""

import dataclasses
import functools
import inspect
import json

import jax
import pytest
from cases import BY_NAME

import jaxdp
from experiments.evidence.audit import nulls
from jaxdp import catalogue
from jaxdp.audit import cases, searches
from jaxdp.core import PrivateQuery
from jaxdp.examples import BestKnown

EXPORTED = sorted(
    (
        thing
        for thing in (getattr(jaxdp, name) for name in jaxdp.exported_names())
        if inspect.isclass(thing) and issubclass(thing, PrivateQuery) and not inspect.isabstract(thing)
    ),
    key=lambda kind: kind.__name__,
)
RECORDS = nulls.HERE
NOT_RECORDED = 10_000  # runs and nulls of a test that has no record yet, and of a search
ONE_BY_ONE = 400  # of a search whose runs cannot be drawn together
ENTRIES = [*catalogue.entries().values()]


def every_entry(test):
    return pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)(test)


def test_every_exported_query_is_in_the_catalogue():
    described = {entry.cls for entry in ENTRIES}
    assert len(described) >= 30
    base = {jaxdp.PrivateQuery, jaxdp.PrivateTest}
    assert set(EXPORTED) - base <= described, "a query without a spec: give its class spec = jaxdp.TestSpec(...)"


@every_entry
def test_every_test_has_a_case_and_says_what_is_reached(entry):
    found = cases.of(entry)
    assert found, f"{entry.name} has no example: add a tuple of its name to a file of jaxdp/audit/cases"
    assert {one.name for one in found} <= set(BY_NAME)
    assert not found[0].example.bounds_only, f"the first example of {entry.name} must run the whole contract"
    for one in found:
        shares = (
            one.example.attack_tightness
            if isinstance(one.example.attack_tightness, dict)
            else {"": one.example.attack_tightness}
        )
        for share in shares.values():
            said = share is not None or not entry.spec.private
            assert said, f"{one.name} does not say what share of its bound an attack reaches"
            assert not isinstance(share, BestKnown) or share.because


@every_entry
def test_every_private_test_has_a_recorded_audit(entry):
    """Where none is recorded yet, one is made now, of fewer runs."""
    for name in {one.name for one in cases.of(entry) if one.recorded} - audited():
        found = jaxdp.audit.audit(name, 1.0, runs=NOT_RECORDED, key=jax.random.key(0))
        command = "python -m experiments.evidence.audit.run --extend tests"
        assert found.holds, f"{name} breaks its claim: {found}; {command} records an audit of more runs"


@pytest.mark.parametrize("name", sorted(searches.SEARCHES))
def test_every_search_has_a_recorded_audit(name):
    """Where none is recorded yet, one is made now, of fewer runs: of 400 where they are made one by one."""
    if name not in audited("searches"):
        require_that_the_search_holds(name)


def require_that_the_search_holds(name):
    subject = searches.SEARCHES[name]
    runs = NOT_RECORDED if subject.walked or subject.one_release else ONE_BY_ONE
    found = jaxdp.audit.audit(name, 1.0, runs=runs, key=jax.random.key(0))
    command = "python -m experiments.evidence.audit.run --extend searches"
    assert found.holds, f"{name} breaks its claim: {found}; {command} records an audit of more runs"


def test_a_search_that_spends_ten_times_its_budget_is_found(monkeypatch):
    name = "table_pc-numbers"
    build = searches.SEARCHES[name].build
    ten = dataclasses.replace(searches.SEARCHES[name], build=lambda epsilon: build(10.0 * epsilon))
    monkeypatch.setitem(searches.SEARCHES, name, ten)
    with pytest.raises(AssertionError, match=f"{name} breaks its claim"):
        require_that_the_search_holds(name)


@every_entry
def test_every_test_has_a_recorded_level(entry):
    """Where none is recorded yet, fewer nulls are drawn now."""
    for one in cases.of(entry):
        if one.example.without_null or one.example.bounds_only:
            assert one.example.null is None, f"{one.name} has a null and a reason for having none"
            continue
        assert one.example.null is not None, f"{one.name} has no level: give its example null=, or without_null="
        if one.name not in recorded_levels():
            row = nulls.measure(one.name, NOT_RECORDED, jax.random.key(0))
            command = "python -m experiments.evidence.audit.nulls"
            assert row["holds"], f"{one.name} rejects too often: {row}; {command} records more nulls"


@functools.cache
def audited(part="tests"):
    """Examples, or searches, with a recorded audit of at least 1e4 runs; all of them hold."""
    rows = json.loads((RECORDS / "audit.json").read_text())[part]
    assert all(row["holds"] for row in rows)
    return {row["method"] for row in rows if row["runs"] >= 10_000}


@functools.cache
def recorded_levels():
    return nulls.finished(RECORDS / "nulls.jsonl")


def test_records_speak_of_examples():
    assert audited() <= set(cases.all_examples())
    assert audited("searches") <= set(searches.SEARCHES)
    assert {nulls.rows()[name].example or name for name in recorded_levels()} <= set(cases.all_examples())
