"""Every exported query has a contract case, an audit and a level, each with a record; no list is kept here."""

import functools
import inspect
import json

import pytest
from cases import CASES, QUERIES

import jaxdp
from experiments.audit import nulls
from jaxdp.audit.domains import SUBJECTS
from jaxdp.core import PrivateQuery

EXPORTED = sorted(
    (
        thing
        for thing in (getattr(jaxdp, name) for name in jaxdp.__all__)
        if inspect.isclass(thing) and issubclass(thing, PrivateQuery)
    ),
    key=lambda kind: kind.__name__,
)
RECORDS = nulls.HERE


@functools.cache
def of_contract():
    """Case -> classes of the queries that it runs."""
    return {case.name: classes(case.test(1.0)) for case in [*CASES, *QUERIES]}


@functools.cache
def of_audits():
    """Subject -> classes of the queries that it audits."""
    return {name: classes(subject.build(1.0)) for name, subject in SUBJECTS.items()}


@functools.cache
def of_levels():
    """Null -> classes of the tests that it rejects or not."""
    return {name: classes(null.make(0.05)) for name, null in nulls.NULLS.items()}


def classes(query):
    """A query's class and its bases, and those of the one that it wraps."""
    found = set(type(query).__mro__)
    inner = getattr(query, "test", None)
    return found | (classes(inner) if isinstance(inner, PrivateQuery) else set())


def names(table, kind):
    return {name for name, kinds in table.items() if kind in kinds}


def test_the_exports_are_found():
    assert len(EXPORTED) >= 20
    assert {jaxdp.EveryTable, jaxdp.MICrTopPair, jaxdp.AllPairs} <= set(EXPORTED)


@pytest.mark.parametrize("kind", EXPORTED, ids=lambda kind: kind.__name__)
def test_every_exported_query_is_checked(kind):
    assert names(of_contract(), kind), f"{kind.__name__} has no contract case: add a row to tests/cases.py"
    private = any(case.private for case in [*CASES, *QUERIES] if kind in of_contract()[case.name])
    audits, levels = names(of_audits(), kind), names(of_levels(), kind)
    assert audits or not private, f"{kind.__name__} has no audit: add a subject to jaxdp/audit/domains.py"
    assert not private or audits & audited(), f"no audit of {kind.__name__} is recorded in {RECORDS / 'audit.json'}"
    if kind.__name__ in nulls.WITHOUT_LEVEL:
        assert not levels, f"{kind.__name__} has a null and a reason for having none"
        return
    assert levels, f"{kind.__name__} has no level: add a null, or a reason, to experiments/audit/nulls.py"
    assert levels & set(recorded_levels()), f"no level of {kind.__name__} is recorded in {RECORDS / 'nulls.jsonl'}"


@functools.cache
def audited():
    """Subjects with a recorded audit of at least 1e4 runs; all of them hold."""
    rows = json.loads((RECORDS / "audit.json").read_text())["tests"]
    assert all(row["holds"] for row in rows)
    return {row["method"] for row in rows if row["runs"] >= 10_000}


@functools.cache
def recorded_levels():
    return nulls.finished(RECORDS / "nulls.jsonl")


def test_reasons_belong_to_exports():
    assert set(nulls.WITHOUT_LEVEL) <= {kind.__name__ for kind in EXPORTED}
