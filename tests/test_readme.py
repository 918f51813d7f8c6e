"""What the README tells people to type is what there is."""

import re
import shlex
from pathlib import Path

import jax
import pytest

import jaxdp
from jaxdp.cli.main import build_parser

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def test_every_command_is_one_of_ours():
    commands = [line for line in re.findall(r"`(jaxdp [a-z][^`|]*)`", TEXT) if " --" in line]
    assert len(commands) >= 8
    for command in commands:
        arguments = build_parser().parse_args(shlex.split(command)[1:])
        if getattr(arguments, "schema", None):
            named = [getattr(arguments, name, None) or [] for name in ("x", "y", "given")]
            columns = [column for part in named for column in ([part] if isinstance(part, str) else part)]
            assert set(columns) <= set(jaxdp.Schema.load(ROOT / arguments.schema).names), command


def test_every_file_it_names_is_there():
    named = re.findall(r"`((?:docs|examples|experiments|scripts)/[\w./-]*\w/?)(?: [^`]*)?`", TEXT)
    assert len(named) >= 15
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_test_it_names_is_exported():
    names = set(re.findall(r"`([A-Z]\w+)(?:\([^`]*)?`", TEXT.split("## Papers, reproduced")[0]))
    assert {"BandGCM", "PartitionGCM", "MarginAdaptive", "MICrLaplace"} <= names
    assert not [name for name in names if not hasattr(jaxdp, name)]


@pytest.mark.full
@pytest.mark.optimised
def test_the_example_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    found = {}
    exec(example, found)
    assert 0.0 <= float(found["p_value"]) <= 1.0
    assert jax.numpy.isfinite(found["statistic"])
