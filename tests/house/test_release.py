"""What a release says of itself: its version, the versions it supports, a bill of materials of what is pinned."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SBOM = runpy.run_path(str(ROOT / "scripts" / "sbom.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SMALL = {
    "name": "a_project",
    "version": "1.0",
    "description": "",
    "license": "MIT",
    "dependencies": ["Jinja2>=3", "jax>=1,<2"],
}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_everywhere():
    assert re.search(r"^version: (.*)$", read("CITATION.cff"), re.M)[1] == PROJECT["version"]
    assert re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1] == PROJECT["version"]


def test_classifiers_begin_where_the_bound_on_python_does():
    versions = [found[1] for name in PROJECT["classifiers"] if (found := re.fullmatch(r".* :: (3\.\d+)", name))]
    assert versions == sorted(versions, key=lambda version: int(version[2:]))
    assert PROJECT["requires-python"] == f">={versions[0]}"
    assert not [name for name in PROJECT["classifiers"] if name.startswith("License")]  # the SPDX expression says it


def test_the_page_of_governance_names_the_bounds_in_force():
    table = dict(re.findall(r"^\| (\w+) \| `([^`]+)`", read("GOVERNANCE.md"), re.M))
    bounds = dict(re.fullmatch(r"([\w-]+)(.*)", line).groups() for line in PROJECT["dependencies"])
    assert table["Python"] == PROJECT["requires-python"]
    for shown, name in (("JAX", "jax"), ("NumPy", "numpy"), ("SciPy", "scipy")):
        assert table[shown] == bounds[name]


def test_the_bill_holds_every_pin_once_and_nothing_else():
    document = json.loads(subprocess.check_output([sys.executable, ROOT / "scripts" / "sbom.py"]))
    pinned = re.findall(r"^[^ ]+==[^ ]+", read("requirements.lock"), re.M)
    assert len(document["components"]) == len(pinned) > 50
    references = {component["bom-ref"] for component in document["components"]}
    assert len(references) == len(pinned)
    assert {f"{part['name']}=={part['version']}" for part in document["components"]} == {
        re.sub("_", "-", line).lower() for line in pinned
    }
    (own,) = document["dependencies"]
    assert own["ref"] == f"pkg:pypi/jaxdp-dependence@{PROJECT['version']}"
    assert set(own["dependsOn"]) <= references
    assert len(own["dependsOn"]) == len(PROJECT["dependencies"])


LOCKS = ["requirements.lock", "requirements-interop.lock"]
OF_OTHERS = [f"experiments/evidence/others/requirements-{name}.txt" for name in ("main", "smartnoise", "tumult")]


@pytest.mark.parametrize("lock", LOCKS + OF_OTHERS)
def test_every_pin_has_the_hashes_of_its_files(lock):
    pins = re.split(r"^(?=[A-Za-z0-9])", read(lock), flags=re.M)[1:]
    without = [pin.split()[0] for pin in pins if not re.search(r"--hash=sha256:[0-9a-f]{64}$", pin, re.M)]
    assert len(pins) > (50 if lock in LOCKS else 10)
    assert not without, f"run the command of CONTRIBUTING.md that writes {lock} with hashes: {without} have none"


def test_the_bill_is_a_function_of_the_two_files():
    lock = "# tools\njax==1.5\n\nJinja2==3.1.6\nmypy_extensions==1.0\n"
    document = SBOM["bill"](lock, SMALL)
    assert document == SBOM["bill"](lock, SMALL)
    assert document["serialNumber"] != SBOM["bill"](lock.replace("1.5", "1.6"), SMALL)["serialNumber"]
    assert [part["purl"] for part in document["components"]] == [
        "pkg:pypi/jax@1.5",
        "pkg:pypi/jinja2@3.1.6",
        "pkg:pypi/mypy-extensions@1.0",
    ]
    assert document["dependencies"] == [
        {"ref": "pkg:pypi/a-project@1.0", "dependsOn": ["pkg:pypi/jax@1.5", "pkg:pypi/jinja2@3.1.6"]}
    ]


@pytest.mark.parametrize("line", ["jax>=1.5", "jax", "jax==1.5; python_version < '4'", "-e ."])
def test_what_is_not_pinned_is_refused(line):
    with pytest.raises(ValueError, match="line 2 of the lock file is"):
        SBOM["bill"](f"jinja2==3.1\n{line}\n", SMALL)


def test_a_pin_that_is_missing_is_refused():
    with pytest.raises(ValueError, match="the lock file lacks jinja2"):
        SBOM["bill"]("jax==1.5\n", SMALL)
