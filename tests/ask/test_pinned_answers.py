"""What the commands that answer write and print, pinned: a change of the code that answers shows here.

`python tests/ask/test_pinned_answers.py NAME` records that answer of `COMMANDS`, without a name all of them, where a
change is meant. Numbers of result.json
are pinned to 1e-6, whole numbers and names exactly, the screen by its lines. Sentences that other rooms write, such as
cautions and what a test says of itself, are pinned by their presence alone.
"""

import contextlib
import io
import json
import math
import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from jaxdp.cli.main import main
from jaxdp.data import plink

PLACE = Path(__file__).relative_to(Path(__file__).parents[2])
PINNED = Path(__file__).with_name("pinned_answers.json")
SENTENCES = ("cautions", "sees", "assumption", "level_rule", "effect_is", "versions", "power")  # of result.json
PARAGRAPHS = ("caution", "sees", "assumes", "level", "flagged", "power", "effect", "files", "pictures")  # of the screen
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
COMMANDS = {
    "test": ["test", "d.csv", "--schema", "s.toml", "--x", "a", "--y", "b", "--given", "c", "--epsilon", "2"],
    "test of two columns": ["test", "d.csv", "--schema", "s.toml", "--x", "a", "--y", "g", "--epsilon", "2"],
    "all pairs": ["test", "d.csv", "--schema", "s.toml", "--all-pairs", "--columns", "a,b,g"],
    "all pairs given": ["test", "d.csv", "--schema", "s.toml", "--all-pairs", "--given", "c", "--epsilon", "9"],
    "describe": ["describe", "d.csv", "--schema", "s.toml", "--columns", "a,g", "--epsilon", "2"],
    "mic": ["mic", "d.csv", "--schema", "s.toml", "--x", "a", "--y", "b", "--epsilon", "8", "--cells", "9"],
    "mic of all pairs": ["mic", "d.csv", "--schema", "s.toml", "--all-pairs", "--columns", "a,b,c", "--epsilon", "30"],
    "gwas": ["gwas", "study", "--covariates", "study.cov", "--given", "age", "--bounds", "age=18:90"],
    "graph of codes": ["discover", "d.csv", "--schema", "s.toml", "--columns", "g,h,k", "--epsilon", "9"],
    "graph": ["discover", "d.csv", "--schema", "s.toml", "--columns", "a,b,g", "--epsilon", "9"],
}
COMMANDS["all pairs"] += ["--epsilon", "9", "--adjust", "bh"]
COMMANDS["mic of all pairs"] += ["--delta", "1e-6", "--cells", "9"]
COMMANDS["gwas"] += ["--epsilon", "9", "--count", "2"]
COMMANDS["graph of codes"] += ["--max-order", "1", "--forbid", "g,k"]
QUICK = ("describe", "mic", "graph", "graph of codes")


def write_files(folder, size=400):
    rng = np.random.default_rng(0)
    c = rng.uniform(-1, 1, size)
    a = np.clip(c + 0.3 * rng.normal(size=size), -2, 2)
    b = np.clip(a + 0.3 * rng.normal(size=size), -2, 2)
    codes = (a > 0).astype(int), (a + 0.3 * rng.normal(size=size) > 0).astype(int), rng.integers(0, 2, size)
    rows = zip(*(column.round(4) for column in (a, b, c)), *codes, strict=True)
    (folder / "d.csv").write_text("\n".join(["a,b,c,g,h,k", *(",".join(map(str, row)) for row in rows)]) + "\n")
    continuous = "".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [-2, 2]\n' for name in "abc")
    binary = "".join(f'[columns.{name}]\nkind = "binary"\nlevels = ["0", "1"]\n' for name in "ghk")
    (folder / "s.toml").write_text(continuous + binary)
    genotypes = rng.integers(-1, 2, (90, 3)).astype(np.int8)
    plink.write_genotypes(folder / "study", genotypes, phenotype=np.where(genotypes[:, 1] > 0, "2", "1"))
    persons = [f"p{i} p{i} {rng.uniform(20, 80):.1f}" for i in range(90)]
    (folder / "study.cov").write_text("\n".join(["FID IID age", *persons]) + "\n")


def answered(name, folder):
    """What a command wrote and printed, with a seed, in a folder of its own."""
    write_files(folder)
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        assert main([*COMMANDS[name], "--seed", "1", "--out", "out"]) == 0
    content = json.loads((folder / "out" / "result.json").read_text())
    return {"result": presence(content), "screen": lines(printed.getvalue())}


def presence(content):
    """The content, with no more than whether there is something where other rooms write."""
    return {key: bool(value) if key in SENTENCES else value for key, value in content.items()}


def lines(text):
    """The paragraphs of a screen, each as its name and what it says; only the name where other rooms write."""
    found, hidden = [], False
    for line in text.splitlines():
        name = line[2:13].strip() if line.startswith("  ") else line
        if line.startswith("  ") and not line.startswith("   "):
            hidden = name in PARAGRAPHS
            found.append(f"  {name}" if hidden else line)
        elif not hidden:
            found.append(line)
    return [line for line in found if not line.startswith("Flagged") and "ledger" not in line]


def same(found, pinned, place=""):
    """Where two answers differ."""
    if isinstance(pinned, dict) and isinstance(found, dict):
        keys = [f"{place}: {key} on one side" for key in sorted(found.keys() ^ pinned.keys())]
        return keys + [
            told for key in found.keys() & pinned for told in same(found[key], pinned[key], f"{place}/{key}")
        ]
    if isinstance(pinned, list) and isinstance(found, list) and len(found) == len(pinned):
        pairs = enumerate(zip(found, pinned, strict=True))
        return [told for k, (one, other) in pairs for told in same(one, other, f"{place}[{k}]")]
    if isinstance(pinned, float) and isinstance(found, float):
        return [] if math.isclose(found, pinned, rel_tol=1e-6, abs_tol=1e-9) else [f"{place}: {found} for {pinned}"]
    if isinstance(pinned, str) and isinstance(found, str):
        numbers = zip(NUMBER.findall(found), NUMBER.findall(pinned), strict=False)
        alike = NUMBER.split(found) == NUMBER.split(pinned)  # the last digit of a number on the screen may be rounded
        alike = alike and all(math.isclose(float(a), float(b), rel_tol=2e-2, abs_tol=1e-9) for a, b in numbers)
        return [] if alike else [f"{place}: {found!r} for {pinned!r}"]
    return [] if found == pinned and type(found) is type(pinned) else [f"{place}: {found!r} for {pinned!r}"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * (name not in QUICK)) for name in COMMANDS]
)
def test_an_answer_is_the_one_that_was_pinned(name, tmp_path):
    pinned = json.loads(PINNED.read_text()).get(name, "nothing")
    differences = same(answered(name, tmp_path), pinned)
    assert not differences, f"if this is meant, run python {PLACE} {shlex.quote(name)} and commit what it writes"


def test_a_difference_would_be_seen():
    pinned = {"result": {"n": 400, "p_value": 0.25, "pairs": [{"x": "a"}]}, "screen": ["  p-value    0.25"]}
    assert not same(pinned, pinned)
    for wrong in (
        {"result": {**pinned["result"], "p_value": 0.2500005}},
        {"result": {**pinned["result"], "n": 400.0}},
        {"result": {**pinned["result"], "pairs": []}},
        {"screen": ["  p-value    0.26"]},
        {"screen": ["  p value    0.25"]},
        {"screen": []},
    ):
        assert same({**pinned, **wrong}, pinned)


if __name__ == "__main__":
    found = json.loads(PINNED.read_text()) if sys.argv[1:] else {}
    for command in sys.argv[1:] or COMMANDS:
        with tempfile.TemporaryDirectory() as place:
            found[command] = answered(command, Path(place))
    PINNED.write_text(json.dumps({command: found[command] for command in COMMANDS}, indent=1) + "\n")
    sys.exit(0)
