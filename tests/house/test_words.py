"""One word, one meaning: names in code that have gone, with what is said instead."""

import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GONE = {  # pattern of a name: what to say
    r"(?i)question(?!naire)": "query: what is asked of the data under a budget",
    r"^_?(MOST|LEAST|LARGEST|SMALLEST)_": "MAX_ or MIN_",
}


def sources():
    for room in ("jaxdp", "tests", "experiments", "scripts", "examples"):
        for path in sorted((ROOT / room).rglob("*.py*")):
            if path.suffix in (".py", ".pyi"):
                yield path


def gone(names):
    """(name, what to say) of names that hold a word that has gone."""
    for name in names:
        for pattern, instead in GONE.items():
            if re.search(pattern, name):
                yield name, instead


def names_of(path):
    with tokenize.open(path) as file:
        found = {token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.NAME}
    return found | {path.stem}


def test_no_name_of_the_code_says_a_word_that_has_gone():
    found = [f"{path.relative_to(ROOT)}: {name}: say {say}" for path in sources() for name, say in gone(names_of(path))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["PrivateQuestions", "_pairs_question", "QUESTIONS", "MOST_ROWS", "_LEAST_N"])
def test_the_guard_sees_a_word(name, tmp_path):
    path = tmp_path / "planted.py"
    path.write_text(f"def f({name}):\n    return {name}\n")
    assert [found for found, _ in gone(names_of(path))] == [name]


def test_the_guard_leaves_other_names():
    assert not list(gone(["smallest_n", "largest_order", "questionnaire", "query", "MAX_N", "ALMOST_ONE"]))
