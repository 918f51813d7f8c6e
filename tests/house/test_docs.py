"""Every code block of the documentation runs: Python in one namespace per page, `jaxdp` lines as commands.

A page is read as a user would: its folder holds `examples/`, blocks run in order, a `text` block shows parts of what
the block above it prints, with `...` between them. Replicates are made few. A block that can't run here (a scheduler's
command, another library that is not installed) is left out for what it is, never by a list of pages.
Tutorials run as the notebooks that `scripts/docs` makes of them (`scripts/notebooks.py`), by the same code.
"""

import base64
import contextlib
import importlib.util
import io
import re
import shlex
import shutil
import sys
from pathlib import Path

import jax
import pytest

from jaxdp.cli.main import build_parser, main

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import notebooks  # noqa: E402
from notebooks import shown  # noqa: E402

SMALL = {"--replicates": "60", "--runs": "2000"}
SMALLER = (
    ("replicates=100_000", "replicates=60"),
    ("100_000, folder", "60, folder"),
    ("check_replicates=2000", "check_replicates=100"),
    ("replicates=128", 'optimizer="adam", replicates=32'),  # its program is a quarter of the default's
    ("replicates=20_000", "replicates=64"),
    ('engine="simulation", key', 'engine="simulation", replicates=60, key'),
)
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", flags=re.S | re.M)
SCHEDULER = "# needs a scheduler\n"  # the first line of blocks that start jobs
LIBRARIES = (
    "causallearn",
    "pgmpy",
    "dowhy",
    "tigramite",
    "opendp",
)  # of the extras: where one is missing, its blocks are not run
QUICK = ("start",)  # pages of the everyday tier
OPTIMISED = ("mic",)  # pages whose null draws cost more than compiling them well
ELSEWHERE = {"write_your_own_test"}  # tests/house/test_write_your_own.py
PICTURED = {"csv_test", "cluster", "plan_and_tune", "discovery"}  # a day, a study, tuning, a graph: they show a picture
PNG = b"\x89PNG"


def pages() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of the fenced blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(text: str) -> list[list[str]]:
    """Words of every `jaxdp` line of a block; other lines belong to the shell."""
    lines = text.replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines if line.startswith("jaxdp ")]
    return [line[1:] for line in words]


def runnable(page: Path) -> bool:
    return page.stem not in ELSEWHERE and any(
        language == "python" or commands(text) for language, text in blocks(page) if language in ("python", "sh")
    )


def missing_library(text: str) -> bool:
    return any(
        re.search(rf"^(?:import|from) {name}\b", text, re.M) and not importlib.util.find_spec(name)
        for name in LIBRARIES
    )


def named(page: Path):
    marks = [pytest.mark.full] * (page.stem not in QUICK) + [pytest.mark.optimised] * (page.stem in OPTIMISED)
    return pytest.param(page, id=page.relative_to(ROOT / "docs").with_suffix("").as_posix(), marks=marks)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a reader works: a checkout, of which the pages use the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "examples"))
    return tmp_path


@pytest.mark.parametrize("page", [named(page) for page in pages() if runnable(page) and page in notebooks.pages()])
def test_a_tutorial_runs_as_its_notebook(page):
    """What a cell prints is compared with the page as it is made."""
    with jax.debug_key_reuse(False):  # as users run it: pages use one seed for several calls
        made = notebooks.notebook(page, change=smaller, shell=in_process)
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in code)
    stays = [cell for cell in code if cell["execution_count"] is None and SCHEDULER not in "".join(cell["source"])]
    assert not stays or missing_library("".join(stays[0]["source"]))
    outputs = [output for cell in code for output in cell["outputs"]]
    drawn = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert all(base64.b64decode(png).startswith(PNG) for png in drawn)
    assert drawn or page.stem not in PICTURED, f"{page.name} shows no picture"


@pytest.mark.parametrize("page", [named(page) for page in pages() if runnable(page) and page not in notebooks.pages()])
def test_what_a_page_shows_runs(page, folder, capsys):
    namespace, printed, done = {}, "", 0
    for language, text in blocks(page):
        if text.startswith(SCHEDULER):
            continue
        if language == "python":
            if missing_library(text):
                break  # what follows may build on it
            text = smaller(text)
            with jax.debug_key_reuse(False):  # as users run it: pages use one seed for several calls
                exec(compile(text, str(page), "exec"), namespace)
        elif language == "sh":
            for words in commands(text):
                assert run(words) == 0, capsys.readouterr().err
        elif language == "text" and printed:
            assert shown(text, printed), f"{page.name} shows\n{text}\nand the block above it prints\n{printed}"
        printed = capsys.readouterr().out if language in ("python", "sh") else ""
        done += 1
    assert done


def smaller(text: str) -> str:
    """The block with few replicates."""
    for large, small in SMALLER:
        text = text.replace(large, small)
    return text


def in_process(source: str) -> str:
    """What the `jaxdp` lines of a cell print, run in small and in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for words in commands(source):
            assert run(words) == 0, words
    return printed.getvalue()


def run(words: list[str]) -> int:
    """One command, in small."""
    for place, word in enumerate(words):
        if word in SMALL:
            words[place + 1] = SMALL[word]
    if words[0] == "plan" and "--replicates" not in words:
        words = [*words, "--replicates", "0"]  # its check by simulation is tested elsewhere
    return main(words)


def test_every_command_of_the_pages_is_one_of_ours():
    """Also those inside sentences: every option is known."""
    found = 0
    for page in [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        lines = [words for language, block in BLOCK.findall(text) if language == "sh" for words in commands(block)]
        lines += [shlex.split(line)[1:] for line in re.findall(r"`(jaxdp [a-z]+ [^`|…]* --[^`|…]*)`", text)]
        for words in lines:
            if not any(word in ("...", "METHOD", "L.db") for word in words):
                build_parser().parse_args(words)
                found += 1
    assert found > 40


def test_three_blocks_are_left_out_for_want_of_a_scheduler():
    left_out = [page.stem for page in pages() for _, text in blocks(page) if text.startswith(SCHEDULER)]
    assert left_out == ["large_data", "simulation", "cluster"]


def test_every_block_says_its_language():
    """A block without one would run nowhere and be coloured nowhere."""
    bare = [(page.name, text[:60]) for page in pages() for language, text in blocks(page) if not language]
    assert not bare, f"{bare}: write the language after the three backticks (text, where there is none)"


def test_the_checks_see_what_is_wrong(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nls\njaxdp plan --n 5 \\\n  --effect 1  # three\n```\n"
    )
    assert blocks(page) == [("python", "print(1)\n"), ("text", "1\n"), ("sh", blocks(page)[2][1])]
    assert commands(blocks(page)[2][1]) == [["plan", "--n", "5", "--effect", "1"]]
    assert shown("a ... c\n", "a b c\n")
    assert not shown("a ... c\n", "a b d\n")
    assert not shown("a ... b\n", "b a\n")
