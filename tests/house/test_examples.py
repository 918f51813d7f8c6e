"""Examples by name: found in the files of cases or in the spec, one name each, and everything that they name exists."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import jaxdp
from jaxdp import catalogue, core
from jaxdp._base.places import loaded
from jaxdp.audit import cases

ROOT = Path(jaxdp.__file__).parent
NAMES = sorted(cases.all_examples())


def test_names_are_those_of_tests_and_labels():
    found = cases.find("partition-gcm-axes")
    assert (found.entry.name, found.example.label) == ("partition-gcm", "axes")
    assert cases.find("partition-gcm").example is cases.declared(catalogue.find("partition-gcm"))[0]
    assert cases.find("examples.cell_signs:CellSigns").name == "cell-signs"
    with pytest.raises(ValueError, match="did you mean 'partition-gcm-axes'"):
        cases.find("partition-gcm-axis")
    with pytest.raises(ValueError, match="must be a class with a spec"):
        cases.find("jaxdp.core:PrivateTest")


def test_every_case_is_that_of_a_test_and_every_private_test_has_one():
    strange = {name for name in cases._kept() if name not in catalogue.entries()}
    assert not strange, f"jaxdp/audit/cases has {sorted(strange)}: a tuple of examples has the name of its test"
    bare = [entry.name for entry in catalogue.entries().values() if not cases.declared(entry)]
    assert not bare, f"{bare} have no examples: add a tuple of each name to a file of jaxdp/audit/cases"


def test_a_test_of_another_package_carries_its_own_and_gets_none_of_ours():
    class Theirs:
        spec = jaxdp.TestSpec(name="partition-gcm", summary="of the same name")

    assert cases.declared(catalogue.Entry(Theirs.spec, Theirs)) == ()
    own = jaxdp.Example(lambda key, n: jaxdp.Data(*jax.random.normal(key, (2, n))))
    assert cases.declared(catalogue.Entry(dataclasses.replace(Theirs.spec, examples=(own,)), Theirs)) == (own,)


def test_what_tests_say_of_themselves_imports_no_audit():
    told = "import sys, jaxdp; jaxdp.catalogue.entries(); print('jaxdp.audit' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "False"
    audited = ("Example", "Audit", "PairSearch", "BestKnown")
    assert not [name for name in vars(jaxdp.spec) if name.startswith(audited)]


def test_two_examples_of_one_name_are_refused(monkeypatch):
    entry = catalogue.find("partition-gcm")
    first = cases.declared(entry)[0]
    twice = dataclasses.replace(entry, spec=dataclasses.replace(entry.spec, examples=(first, first)))
    monkeypatch.setattr(catalogue, "entries", lambda: {"partition-gcm": twice})
    with pytest.raises(ValueError, match="two examples are called 'partition-gcm'"):
        cases.all_examples.__wrapped__()


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_an_example_names_exists(name):
    found, key = cases.find(name), jax.random.key(0)
    example, settings = found.example, found.settings
    for place in (example.worst_pairs, example.search.view, example.search.replace, settings.neighbours, settings.view):
        assert place is None or callable(loaded(place))
    for draw in (example.data, example.null, settings.data):
        if draw is not None:
            shapes = jax.eval_shape(lambda key, draw=draw: draw(key, 40), key)
            assert core.num_records(shapes) == 40
    assert isinstance(found.build(1.0, 40), core.PrivateQuery)
    assert isinstance(found.build(1.0, 40, settings.fields), core.PrivateQuery)


def test_pairs_made_by_hand_are_imported_when_an_attack_needs_them():
    """Importing a test costs no more for them: files name their place in a text, and import them nowhere."""
    importing = re.compile(r"^\s*(from|import) .*worst_pairs", re.MULTILINE)
    files = [path for path in ROOT.rglob("*.py") if not path.name.startswith("worst_pairs")]
    assert len(files) > 100
    assert [path.name for path in files if importing.search(path.read_text())] == []
