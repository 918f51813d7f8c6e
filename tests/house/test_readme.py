"""What the README tells people to type is what there is."""

import re
import shlex
from pathlib import Path

import pytest

import jaxdp
from jaxdp.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
WITHOUT_ROW = {"bench", "demo", "report"}  # commands that answer none about data, a plan or a claim


def flat(names):
    """Names in lists of lists of names."""
    return [names] if isinstance(names, str) else [name for part in names for name in flat(part)]


def test_every_command_is_one_of_ours():
    commands = [line for line in re.findall(r"`(jaxdp [a-z][^`|]*)`", TEXT) if " --" in line]
    assert len(commands) >= 8
    for command in commands:
        arguments = build_parser().parse_args(shlex.split(command)[1:])
        if getattr(arguments, "schema", None):
            columns = flat([getattr(arguments, name, None) or [] for name in ("x", "y", "given")])
            assert set(columns) <= set(jaxdp.Schema.load(ROOT / arguments.schema).names), command


def test_every_file_it_names_is_there():
    named = re.findall(r"`((?:docs|examples|experiments|scripts)/[\w./-]*\w/?)(?: [^`]*)?`", TEXT)
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        named += re.findall(r"`((?:examples|experiments|scripts)/[\w./-]*\w/?)(?: [^`]*)?`", text)
    assert len(named) >= 50
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_test_it_names_is_exported():
    names = set(re.findall(r"`([A-Z]\w+)(?:\([^`]*)?`", TEXT)) | set(re.findall(r"`jaxdp\.(\w+)`", TEXT))
    assert {"BandGCM", "PartitionGCM", "MarginAdaptive", "MICrLaplace", "plan", "Session"} <= names
    assert not [name for name in names if not hasattr(jaxdp, name)]


def test_the_pages_name_only_what_is_exported():
    """Tests and modules that a page of the documentation names in backquotes: `jaxdp.BandGCM`, `jaxdp.plan`."""
    wrong = []
    for page in (ROOT / "docs").rglob("*.md"):
        names = re.findall(r"`jaxdp\.(\w+)[^`]*`", page.read_text(encoding="utf-8"))
        wrong += [(page.name, name) for name in names if not hasattr(jaxdp, name) and name != "tests"]
    assert not wrong


def test_it_is_short_and_complete():
    """One screen of what it is, then links: long tables stand in docs/evidence."""
    assert len(TEXT.splitlines()) <= 120
    assert TEXT.count("![") == 2  # power and level
    assert re.findall(r"^scripts/\w+", TEXT, re.M) == ["scripts/demo", "scripts/test"]
    (links,) = re.findall(r"## Five links\n\n\|.*?\n\|---\|---\|\n((?:\|.*\n)+)", TEXT)
    assert len(links.splitlines()) == 5
    table = TEXT.split("## What do you want to know?")[1].split("![")[0]
    named = {line.split("`jaxdp ")[1].split()[0] for line in table.splitlines() if "`jaxdp " in line}
    missing = set(COMMANDS) - named - WITHOUT_ROW
    assert not missing, f"README.md, 'What do you want to know?': a row for each of {sorted(missing)}"
    assert named <= set(COMMANDS)


@pytest.mark.full
@pytest.mark.optimised
def test_the_example_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(example.splitlines()) <= 10
    found = {}
    exec(example, found)
    assert found["answer"].mode == "release"
    assert 0.0 <= found["answer"].p_value <= 1.0
    assert "privacy    epsilon = 1, delta = 0, replace_one, release" in capsys.readouterr().out
