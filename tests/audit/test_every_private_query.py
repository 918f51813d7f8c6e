"""Every private query that the package defines, exported or not, is attacked: as a case, as a stage, or by a file.

The classes are found by walking the package. A class is left out where a subclass of it is attacked.
"""

import dataclasses
import re
from pathlib import Path

import jax
import pytest
from attacks import stages
from cases import ATTACKED
from queries import defined

from jaxdp import catalogue, core
from jaxdp.ask.describe import ColumnCounts
from jaxdp.ask.draft_schema import ColumnLevels, ColumnQuantiles
from jaxdp.core import PrivateQuery, Sequential
from jaxdp.independence.continuous.moment_stages import PrivateSpreads
from jaxdp.independence.recommended import ByName, Recommended
from jaxdp.independence.tables.noisy_table import SpreadOfPersons

TESTS = Path(__file__).parents[1]
# Of a query that no case attacks: the file that does, or why there is nothing to attack.
ELSEWHERE = {
    ColumnCounts: "ask/test_describe.py",
    ColumnLevels: "ask/test_drafted_levels.py",
    ColumnQuantiles: "ask/test_draft_schema.py",
    PrivateSpreads: "independence/continuous/test_private_spreads.py",
    SpreadOfPersons: "data/test_person_rows.py",
}
NEVER_RELEASED = {
    ByName: "becomes the test that it names once the shapes are known, and that one is released",
    Recommended: "becomes the test of the catalogue that fits the shapes, and that one is released",
}


def parts(query):
    """The classes of a query and of those that it holds."""
    yield type(query)
    for field in dataclasses.fields(query):
        if isinstance(held := getattr(query, field.name), PrivateQuery | Sequential):
            yield from parts(held)


def tried():
    """The classes whose bounds an attack of a case looks at, and those that they are made of."""
    found, staged = set(), set()
    for case in ATTACKED:
        rows = max(60, case.example.min_records)
        shapes = jax.eval_shape(lambda key, case=case, rows=rows: case.data(key, rows), jax.random.key(0))
        test = case.test(1.0, rows)
        kinds = tuple(parts(core.specialize(test, shapes)))
        found.update((type(test), *kinds))
        if Sequential in kinds and kinds not in staged:  # the later stages follow from what the first ones release
            staged.add(kinds)
            found.update(stages(case))
    return {base for kind in found for base in kind.__mro__}


@pytest.mark.full
def test_every_private_query_is_attacked():
    found = defined(PrivateQuery)
    assert len(found) >= 60
    attacked = tried()
    simulated = {entry.cls for entry in catalogue.entries().values() if not entry.spec.private}
    missing = found - attacked - simulated - set(ELSEWHERE) - set(NEVER_RELEASED)
    names = sorted(kind.__name__ for kind in missing)
    assert not missing, (
        f"no attack looks at {names}: add an internal(...) case to INTERNAL in tests/cases.py (of a test an example in "
        "jaxdp/audit/cases), or to ELSEWHERE in this file the test that attacks its sensitivity"
    )
    idle = attacked & (set(ELSEWHERE) | set(NEVER_RELEASED))
    assert not idle, f"{idle} is attacked as a case: take it out of the lists of this file"


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_the_file_that_attacks_a_query_names_it_and_its_bound(kind):
    text = (TESTS / ELSEWHERE[kind]).read_text()
    assert re.search(rf"\b{kind.__name__}\b", text)
    assert "sensitivity(" in text


@pytest.mark.parametrize("kind", NEVER_RELEASED)
def test_what_is_never_released_has_no_statistic_of_its_own(kind):
    assert "specialize" in vars(kind)
    assert not {"statistic", "sensitivity", "mechanism_in_force"} & set(vars(kind))
