"""What editors and type checkers see: stubs of the lazy names, typed classes and results; the version."""

import importlib
import inspect
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import jaxdp

ROOT = Path(__file__).resolve().parents[2]
STUBS = runpy.run_path(str(ROOT / "scripts" / "make_stubs.py"))

RIGHT = """
import jax
import jaxdp
from jaxdp import discovery

test = jaxdp.PartitionGCM(epsilon=1.0, winsorize=0.3)
numbers = jax.numpy.linspace(-1.0, 1.0, 50)
result = jaxdp.run(test, jax.random.key(0), jaxdp.Data(numbers, numbers))
statistic, p_value = result
print(float(result.p_value) <= 0.05, result.pvalue, float(result.cost.epsilon), jaxdp.__version__)
rate: float = jaxdp.power.rejection_rate(test, lambda key: jaxdp.Data(numbers, numbers), jax.random.key(1), 8).rate
needed: int = jaxdp.plan.required_n("partition-gcm", epsilon=1.0, effect=0.25)
pairs = jaxdp.all_pairs(test, jax.random.key(2), jax.numpy.stack([numbers, numbers], axis=1))
answer = jaxdp.test({"a": numbers}, x="a", y="b", epsilon=1.0, schema="s.toml", memory="2GB", ridge=0.1)
graph = discovery.table_pc(jax.random.key(3), None, epsilon=1.0, levels=(2, 2))
print(answer.dependence_found, graph.edges, jaxdp.mic("t.csv", epsilon=1.0, strict=True).matrix)
print(pairs.holm(), rate, needed, discovery.Graph.edges, jaxdp.accounting.compose)
"""
WRONG = """
import jax
import jaxdp
from jaxdp import discovery

test = jaxdp.PartitionGCM(epslon=1.0)  # call-arg
numbers = jax.numpy.linspace(-1.0, 1.0, 50)
result = jaxdp.run(test, jax.random.key(0), jaxdp.Data(numbers, numbers))
print(result.pvalu)  # attr-defined
print(result.cost.epsilom)  # attr-defined
jaxdp.PartitionGMC(epsilon=1.0)  # attr-defined
jaxdp.run(test, jax.random.key(0))  # call-arg
test.epsilon = 2.0  # misc
jaxdp.test({}, x="a", y="b", epsilon=1.0, memroy="2GB")  # call-arg
discovery.table_pc(jax.random.key(3), None, epsilom=1.0)  # call-arg
jaxdp.plan.required_n("partition-gcm", epsilon=1.0, effect="large")  # arg-type
"""


def test_stubs_are_up_to_date():
    packages = STUBS["packages"]()
    assert {"jaxdp", "jaxdp.discovery", "jaxdp.accounting", "jaxdp.interop", "jaxdp.statistics"} <= set(packages)
    for package in packages:
        path = ROOT.joinpath(*package.split(".")) / "__init__.pyi"
        assert path.read_text() == STUBS["stub"](package), f"{path.name} of {package}: run scripts/make_stubs.py"


def test_stubs_hold_every_lazy_name_where_it_is():
    for package in STUBS["packages"]():
        module = importlib.import_module(package)
        lines = re.findall(r"^from (\S+) import (\w+) as \2$", STUBS["stub"](package), re.MULTILINE)
        assert {name for _, name in lines} == set(module.__all__) - {"__version__"}
        for place, name in lines:
            assert getattr(importlib.import_module(place), name, None) is not None or importlib.import_module(
                f"{place}.{name}"
            )


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "jaxdp" / "py.typed").is_file()


@pytest.mark.full
def test_type_checker_sees_the_mistakes_of_a_script_and_no_others(tmp_path):
    """One run of mypy over a right and a wrong script, on the cache that scripts/check keeps."""
    for name, text in (("right", RIGHT), ("wrong", WRONG)):
        (tmp_path / f"{name}.py").write_text(text)
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"), "--no-pretty"]
    scripts = [str(tmp_path / "right.py"), str(tmp_path / "wrong.py")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *scripts], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = re.findall(r"(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    planted = [
        ("wrong", str(number), line.split("  # ")[1])
        for number, line in enumerate(WRONG.splitlines(), start=1)
        if "  # " in line
    ]
    assert found == planted, done.stdout + done.stderr


def public_functions():
    """(place, function) of every function that a package exports."""
    rooms = [f"jaxdp.{room.name}" for room in pkgutil.iter_modules(jaxdp.__path__) if room.ispkg]
    for package in {*STUBS["packages"](), *rooms, "jaxdp.simulate.power"}:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            found = inspect.unwrap(getattr(module, name))
            if inspect.isfunction(found):
                yield f"{package}.{name}", found


def bare(function):
    """Parameters without an annotation, and "return"."""
    signature = inspect.signature(function)
    found = [name for name, part in signature.parameters.items() if part.annotation is part.empty]
    return found + ["return"] * (signature.return_annotation is signature.empty)


def test_every_exported_function_is_annotated():
    functions = dict(public_functions())
    assert len(functions) > 100
    assert {place: bare(function) for place, function in functions.items() if bare(function)} == {}


def test_a_missing_annotation_would_be_seen():
    assert bare(lambda x: x) == ["x", "return"]


def test_version_is_that_of_the_installed_package_or_unknown(monkeypatch):
    from importlib import metadata

    monkeypatch.setattr(metadata, "version", lambda name: f"of {name}")
    assert jaxdp.__version__ == "of jaxdp-dependence"

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert jaxdp.__version__ == "0+unknown"
    assert "__version__" in dir(jaxdp)


@pytest.mark.parametrize("name", ["PartitionGMC", "__versions__"])
def test_other_names_are_refused(name):
    with pytest.raises(AttributeError, match=name):
        getattr(jaxdp, name)
