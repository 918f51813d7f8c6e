"""The published wing: `variant=` is looked at in one place, and every form there says what it really costs."""

import ast
import dataclasses
import inspect
from pathlib import Path

import jax
import pytest

import jaxdp
from jaxdp import catalogue, published
from jaxdp.cli.main import main
from jaxdp.discovery.spec import searches
from jaxdp.simulate.examples import LAW

FOLDER = Path(jaxdp.__file__).parent
ONE_PLACE = FOLDER / "_base" / "variants.py"
RECOMMENDED = [entry for entry in catalogue.entries().values() if entry.spec.variants]
NEEDED = {"law": LAW, "num_cases": 20, "num_controls": 20}


def built(entry, **fields):
    """A test of this class, with what its class cannot do without."""
    names = {field.name for field in dataclasses.fields(entry.cls)}
    groups = {} if "rate" in names else {"num_cases", "num_controls"}
    needed = {name: value for name, value in NEEDED.items() if name in names and (name == "law" or name in groups)}
    return entry.cls(epsilon=1.0, **needed, **fields)


def decisions_on_variant(path: Path) -> list[int]:
    """Lines of a file that read, compare or declare something called `variant`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        read = isinstance(node, ast.Attribute) and node.attr == "variant"
        declared = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "variant"
        branches = isinstance(node, ast.If | ast.IfExp | ast.Compare | ast.Subscript) and any(
            isinstance(part, ast.Name) and part.id == "variant" for part in ast.walk(node)
        )
        if read or declared or branches:
            found.append(node.lineno)
    return found


def test_no_file_but_one_looks_at_a_variant():
    assert decisions_on_variant(ONE_PLACE)
    for path in FOLDER.rglob("*.py"):
        if path != ONE_PLACE:
            assert not decisions_on_variant(path), f"{path}: a form is a class of its own, in jaxdp/published"


def test_no_test_has_a_field_called_variant():
    for entry in catalogue.entries().values():
        assert "variant" not in {field.name for field in dataclasses.fields(entry.cls)}, entry.name


@pytest.mark.parametrize("entry", RECOMMENDED, ids=lambda entry: entry.name)
def test_variants_build_the_forms_that_the_spec_names(entry):
    names = {}
    for variant in entry.spec.variants:
        form = built(entry, variant=variant)
        names[variant] = form.spec.name
        assert catalogue.find(form.spec.name).cls is type(form)
        assert type(form).__module__.startswith("jaxdp.published") == bool(form.spec.true_epsilon)
        if isinstance(form, entry.cls):
            assert type(dataclasses.replace(built(entry), variant=variant)) is type(form)
    assert len(set(names.values())) == len(names)
    assert names["paper"] == f"{entry.name}-paper"
    assert type(built(entry)) is entry.cls
    with pytest.raises(ValueError, match="variant must be one of"):
        built(entry, variant="best")


def test_other_tests_take_no_variant():
    with pytest.raises(TypeError, match="variant"):
        jaxdp.PartitionGCM(epsilon=1.0, variant="paper")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="PaperGCM has no variants, got variant='tight'"):
        published.PaperGCM(epsilon=1.0, variant="tight")


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


def test_a_name_of_a_schema_and_a_variant_are_one_test():
    """`--method private-gcm` with the constant variant=paper is `--method private-gcm-paper`."""
    options = catalogue.Options(fields={"variant": "paper"})
    assert catalogue.find("private-gcm").build(2.0, None, options) == catalogue.find("private-gcm-paper").build(2.0)


def test_a_result_of_a_form_carries_its_name_and_its_true_epsilon():
    data = jaxdp.Data(*jax.random.uniform(jax.random.key(0), (2, 60)))
    test = jaxdp.MICrGeometric(epsilon=1.0, variant="paper", max_cells=8, num_null=19)
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
