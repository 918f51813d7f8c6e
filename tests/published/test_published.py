"""The published wing: every form is a class of its own, and says what it really costs."""

import ast
import inspect
from pathlib import Path

import jax
import pytest

import jaxdp
from jaxdp import catalogue, published
from jaxdp.cli.main import main
from jaxdp.discovery.spec import searches

FOLDER = Path(jaxdp.__file__).parent
FORMS = [entry for entry in catalogue.entries().values() if entry.cls.__module__.startswith("jaxdp.published")]


def chooses(path: Path) -> list[int]:
    """Lines of a file that declare, pass, read or compare something called `variant`."""
    names = {
        ast.arg: lambda node: node.arg,
        ast.keyword: lambda node: node.arg,
        ast.Name: lambda node: node.id,
        ast.Attribute: lambda node: node.attr,
    }
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if type(node) in names]
    return [node.lineno for node in nodes if names[type(node)](node) == "variant"]


def test_no_argument_chooses_among_forms():
    for path in FOLDER.rglob("*.py"):
        assert not chooses(path), f"{path}:{chooses(path)}: write another form as a class of its own, with its own name"


def test_a_planted_choice_is_found(tmp_path):
    for planted in ("def f(variant): pass", "f(variant=3)", "variant: int = 3", "if self.variant: pass"):
        (tmp_path / "planted.py").write_text(planted)
        assert chooses(tmp_path / "planted.py") == [1]


@pytest.mark.parametrize("entry", FORMS, ids=lambda entry: entry.name)
def test_a_form_has_a_name_and_a_true_epsilon_of_its_own(entry):
    recommended = catalogue.find(entry.name.rpartition("-")[0])
    assert entry.spec.true_epsilon
    assert not recommended.spec.true_epsilon
    assert entry.cls is not recommended.cls
    assert not entry.spec.effect


def test_forms_are_final_and_say_what_is_wrong():
    for name in published.exported_names():
        form = getattr(published, name)
        assert form.spec.true_epsilon, name
        if name.startswith("Paper"):
            assert form.__final__
            assert "What is wrong:" in inspect.getdoc(form)
    assert [name for name, found in searches().items() if found.spec.true_epsilon] == [
        name for name in sorted(published.exported_names()) if name in searches()
    ]


def test_a_result_of_a_form_carries_its_name_and_its_true_epsilon():
    data = jaxdp.Data(*jax.random.uniform(jax.random.key(0), (2, 60)))
    test = published.PaperMICrGeometric(epsilon=1.0, max_cells=8, num_null=19)
    result = jaxdp.run(test, jax.random.key(1), data)
    assert result.method == "micr-geometric-paper"
    assert float(result.cost.epsilon) == pytest.approx(5.0)


def test_methods_shows_the_wing_apart_with_true_epsilons(capsys):
    assert main(["methods"]) == 0
    recommended, wing = capsys.readouterr().out.split("as papers state them")
    for name in published.exported_names():
        spec = getattr(published, name).spec
        assert f"  {spec.name} " in wing
        assert f"true epsilon: {spec.true_epsilon}" in wing
        assert f"  {spec.name} " not in recommended
