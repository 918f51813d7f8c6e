"""Examples by name: found in the specs, one name each, and everything that they name exists."""

import dataclasses
import re
from pathlib import Path

import jax
import pytest

import jaxdp
from jaxdp import catalogue, core, examples
from jaxdp._base.places import loaded

ROOT = Path(jaxdp.__file__).parent
NAMES = sorted(examples.all_examples())


def test_names_are_those_of_tests_and_labels():
    found = examples.find("partition-gcm-axes")
    assert (found.entry.name, found.example.label) == ("partition-gcm", "axes")
    assert examples.find("partition-gcm").example is examples.find("partition-gcm").entry.spec.examples[0]
    assert examples.find("examples.cell_signs:CellSigns").name == "cell-signs"
    with pytest.raises(ValueError, match="did you mean 'partition-gcm-axes'"):
        examples.find("partition-gcm-axis")
    with pytest.raises(ValueError, match="must be a class with a spec"):
        examples.find("jaxdp.core:PrivateTest")


def test_two_examples_of_one_name_are_refused(monkeypatch):
    entry = catalogue.find("partition-gcm")
    first = entry.spec.examples[0]
    twice = dataclasses.replace(entry, spec=dataclasses.replace(entry.spec, examples=(first, first)))
    monkeypatch.setattr(catalogue, "entries", lambda: {"partition-gcm": twice})
    with pytest.raises(ValueError, match="two examples are called 'partition-gcm'"):
        examples.all_examples.__wrapped__()


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_an_example_names_exists(name):
    found, key = examples.find(name), jax.random.key(0)
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
