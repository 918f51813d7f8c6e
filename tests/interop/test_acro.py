"""The outputs of ACRO: a stand-in with the methods that are called, since acro 1.0 needs an older pandas than the lock
file of plug-ins has. (Tried by hand with acro 1.0.2: the files and comments stand in its results.json.)"""

import json

import pytest

from jaxdp.cli.main import main
from jaxdp.interop import acro_output

SCHEMA = {"columns": {name: {"kind": "binary", "levels": [0, 1]} for name in "ab"}}


class StandIn:
    """What `acro.ACRO.custom_output` does: takes a file and a comment, says whether the kind of file is allowed."""

    def __init__(self, blocked=()):
        self.outputs, self._blocked = {}, blocked

    def custom_output(self, filename, comment=""):
        if filename.endswith(tuple(self._blocked)):
            return False
        self.outputs[filename] = comment
        return True


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """Runs `jaxdp test` with these arguments; returns its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "d.csv").write_text("a,b\n" + "0,1\n1,0\n" * 100)

    def run(*more, command="test"):
        asked = ["--x", "a", "--y", "b"] if command == "test" else []
        assert main([command, "d.csv", "--schema", "s.json", *asked, "--epsilon", "1", "--out", "out", *more]) == 0
        return tmp_path / "out"

    return run


@pytest.mark.full
@pytest.mark.parametrize("command", ["test", "discover", "describe"])
def test_each_file_of_an_answer_is_an_output_with_what_the_page_says(answered, command):
    folder, session = answered(command=command), StandIn()
    added = acro_output(session, folder)
    assert list(session.outputs) == added
    assert str(folder / "result.json") in added
    (comment,) = set(session.outputs.values())
    assert json.loads((folder / "result.json").read_text())["answer"] in comment
    assert "What it cost: epsilon = 1." in comment
    assert "What is protected: Each record." in comment


@pytest.mark.full
def test_what_is_not_private_or_was_changed_is_no_output(answered, tmp_path):
    session = StandIn()
    with pytest.raises(ValueError, match="holds no answer"):
        acro_output(session, tmp_path)
    with pytest.raises(ValueError, match="simulation"):
        acro_output(session, answered("--seed", "1", "--out", "simulated") and tmp_path / "simulated")
    folder = answered()
    with pytest.raises(ValueError, match="blocks this kind of file"):
        acro_output(StandIn(blocked=[".json"]), folder)
    (folder / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"result.json in .* changed"):
        acro_output(session, folder)
    assert not session.outputs
