"""The guide "write your own test": its code is the example, and everything that it shows runs, in small."""

import importlib
import re
import shlex
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp.audit import bounds, cases
from jaxdp.cli.main import main
from jaxdp.simulate.designs import by_name as designs

ROOT = Path(jaxdp.__file__).parent.parent
GUIDE = (ROOT / "docs/guides/write_your_own_test.md").read_text(encoding="utf-8")
CODE = (ROOT / "examples/cell_signs.py").read_text(encoding="utf-8")
SMALL = {"--replicates": "32", "--runs": "2000", "--n": "100"}
FASTER = {"replicates=256": "replicates=16", "check_replicates=2000": "check_replicates=20", "n=300": "n=60"}


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)\n```", GUIDE, flags=re.S)


SNIPPETS = [block for block in blocks("python") if block.startswith("import j")]
COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the example and its data, where the guide's reader works."""
    for name in ("cell_signs.py", "trial.csv", "trial.toml"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("cell_signs", None)
    yield tmp_path
    sys.modules.pop("cell_signs", None)


def test_the_guide_shows_the_whole_example():
    shown = [block for block in blocks("python") if block not in SNIPPETS]

    def squeezed(text):
        return [line for line in text.splitlines() if line.strip()]

    assert squeezed("\n".join(shown)) == squeezed(CODE)


def test_the_guide_shows_every_command_that_takes_a_test():
    assert {line.split()[1] for line in COMMANDS} == {"test", "simulate", "plan", "audit", "bench", "discover"}


@pytest.mark.full
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: "_".join(line.split()[1:3]))
def test_every_command_of_the_guide_runs(line, folder, capsys):
    words = shlex.split(line)[1:]
    for place, word in enumerate(words):
        if word in SMALL:
            words[place + 1] = SMALL[word]
    assert main([*words, "--out", str(folder / "out" / words[0])]) == 0, capsys.readouterr().err
    assert "cell" in capsys.readouterr().out


@pytest.mark.parametrize("snippet", SNIPPETS, ids=["mechanism", "all_pairs", "tune", "causal_learn", "pgmpy"])
def test_every_snippet_of_the_guide_runs(snippet, folder, capsys):
    if "causallearn" in snippet:
        pytest.importorskip("causallearn")
    for large, small in FASTER.items():
        snippet = snippet.replace(large, small)
    exec(compile(snippet, "guide", "exec"), {})
    assert capsys.readouterr().out


def small_class(**changes):
    """The example as a class of its own, with methods replaced."""
    module = importlib.import_module("cell_signs")
    return jaxdp.private_test(type("Small", (module.CellSigns,), changes))


def test_the_contract_finds_other_broken_promises(folder):
    def statistic(self, key, data):
        unstable = data.x + (data.x**2 - data.x**2)  # NaN for a huge number
        return jax.numpy.clip(jax.numpy.sum(unstable), -20.0, 20.0) / 5.0

    def mechanism_in_force(self):
        return jaxdp.Laplace(2.0 * self.epsilon)

    def p_value(self, key, release):
        return jax.numpy.abs(release.value) * 1e-3

    found = jaxdp.audit.check_contract(
        small_class(statistic=statistic, mechanism_in_force=mechanism_in_force, p_value=p_value)
    )
    broken = {finding.check for finding in found.findings if finding.wrong}
    assert {"bad values", "cost", "level"} <= broken
    assert "epsilon=0.75 costs 1.5" in str(found)
    assert "BREAKS THE CONTRACT" in str(found)


def test_nine_tenths_of_the_sensitivity_break_the_contract(folder, capsys):
    text = CODE.replace("            4.0, jaxdp.Norm.L1", "            3.6, jaxdp.Norm.L1")
    assert text != CODE
    (folder / "cell_signs.py").write_text(text, encoding="utf-8")
    assert main(["audit", "cell_signs:CellSigns", "--contract", "--out", str(folder / "out")]) == 1
    printed = capsys.readouterr().out
    assert "BROKEN bounds: the bound: neighbours move the statistic by 1.1111 of what is declared" in printed
    assert printed.count("BROKEN") == 1


def test_a_test_without_examples_says_what_it_lacks(folder):
    with pytest.raises(ValueError, match="has no example data: give its spec examples="):
        jaxdp.audit.check_contract(bare())
    with pytest.raises(ValueError, match="got 'partition'"):
        jaxdp.audit.audit("partition", 1.0)


def bare():
    """A class with a spec that has no examples."""
    return small_class(spec=jaxdp.TestSpec(name="bare", summary="a test without examples"))


def test_an_installed_distribution_joins_by_its_entry_point(folder):
    info = folder / "somebody_tests-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody-tests\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jaxdp.tests]\ncell-signs = cell_signs:CellSigns\n")
    catalogue.look_again()
    try:
        assert catalogue.find("cell-signs").cls.__name__ == "CellSigns"
        assert main(["bench", "--method", "cell-signs", "--n", "60", "--replicates", "32", "--out", "out/b"]) == 0
    finally:
        catalogue.look_again()
    shutil.rmtree(info)
    importlib.invalidate_caches()
    with pytest.raises(ValueError, match="no test called 'cell-signs'"):
        catalogue.find("cell-signs")


def test_designs_of_other_modules(folder):
    entry = designs.design("cell_signs:design")
    data = entry.build(30, 0.5)(jax.random.key(0))
    assert data.x.shape == (30,)
    with pytest.raises(ValueError, match=r"must be a function \(key, n, effect\)"):
        designs.design("cell_signs:null")
    with pytest.raises(ValueError, match="cannot be loaded"):
        designs.design("cell_signs:missing")


def test_the_names_of_the_extension_surface_are_exported():
    names = "PrivateTest PrivateQuery private_test TestSpec Planning Example Columns Sensitivity Norm Result Release"
    for name in (*names.split(), "Relation", "Mechanism"):
        assert hasattr(jaxdp, name), name
        assert name in jaxdp.exported_names()


def test_a_subject_of_an_example_audits_as_the_contract_says(folder):
    configured = cases.find("cell_signs:CellSigns")
    with jax.enable_x64(True):
        found = bounds.search(configured.build(1.0), configured.example.data, 12)
    assert found[""].share == pytest.approx(1.0)
    assert np.all(np.isfinite(found[""].share))
