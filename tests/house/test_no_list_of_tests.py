"""Nothing but the exports lists tests or searches, and nothing decides by the class of one: their specs say it all."""

import ast
import sys
from pathlib import Path

import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp.discovery import spec

ROOT = Path(jaxdp.__file__).parent
TESTS = [entry for entry in catalogue.entries().values() if entry.cls.__module__.startswith("jaxdp.")]
HOME = {entry.cls.__name__: sys.modules[entry.cls.__module__].__file__ for entry in TESTS}
NAMES = {entry.name: entry.name for entry in TESTS}
NAMES |= {entry.cls.__name__: entry.name for entry in TESTS}
NAMES |= {entry.name.replace("-", "_"): entry.name for entry in TESTS}
NAMES |= {name: name for name in spec.searches()}
EXPORTS = "_EXPORTS"  # of an `__init__.py`: public name -> file


def said(node: ast.AST) -> set[str]:
    """Tests and searches that an expression names: a class, a call of one, a text that is a name or a place."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        ends = (node.value, *(node.value.rpartition(mark)[2] for mark in ":."))
        return {NAMES[end] for end in ends if end in NAMES}
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return {NAMES[name]} if name in HOME or name in spec.searches() else set()
    if isinstance(node, ast.Call):
        return said(node.func).union(*map(said, node.args))
    if isinstance(node, ast.Starred):
        return said(node.value)
    if isinstance(node, ast.Tuple | ast.List):
        return set().union(*map(said, node.elts))
    return set()


def members(node: ast.AST) -> list[ast.AST]:
    """What a literal collection, a union of types, a match or a chain of comparisons holds."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    if isinstance(node, ast.Dict):
        return [*filter(None, node.keys), *node.values]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [node.left, node.right]
    if isinstance(node, ast.Match):
        return [part for case in node.cases for part in ast.walk(case.pattern)]
    if isinstance(node, ast.BoolOp):
        return [part for value in node.values if isinstance(value, ast.Compare) for part in ast.walk(value)]
    if isinstance(node, ast.If):
        return chain(node)
    return []


def chain(node: ast.If) -> list[ast.AST]:
    """The comparisons of an if and its elifs."""
    found = list(ast.walk(node.test)) if isinstance(node.test, ast.Compare) else []
    rest = node.orelse
    return found + (chain(rest[0]) if len(rest) == 1 and isinstance(rest[0], ast.If) else [])


def exempt(tree: ast.AST, exports: bool) -> set[ast.AST]:
    """Collections that may name several: the exports of a package."""
    found = set()
    for node in ast.walk(tree):
        if exports and isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == EXPORTS:
            found.add(node.value)
    return found


def lists(source: str, exports: bool = False) -> list[tuple[int, list[str]]]:
    """Lines at which two tests or more stand in one collection."""
    tree = ast.parse(source)
    left_out = exempt(tree, exports)
    found = []
    for node in ast.walk(tree):
        named = set().union(*map(said, members(node))) if node not in left_out else set()
        if len(named) > 1:
            found.append((node.lineno, sorted(named)))
    return found


def decided_by_class(source: str, path: str = "") -> list[tuple[int, str]]:
    """Lines that ask, by `isinstance`, `type(..) is`, a pattern or a name, for the class of a test of another file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            asked = [part for value in node.args[1:] for part in ast.walk(value)]
        elif isinstance(node, ast.Compare):
            asked = list(ast.walk(node))
        elif isinstance(node, ast.match_case):
            asked = list(ast.walk(node.pattern))
        for part in asked:
            name = getattr(part, "id", None) or getattr(part, "attr", None) or getattr(part, "value", None)
            if isinstance(name, str) and HOME.get(name, path) != path:
                found.append((part.lineno, name))
    return found


def test_no_list_of_tests_stands_outside_the_exports():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(names)}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, names in lists(path.read_text(), exports=path.name == "__init__.py")
    ]
    assert not found, "\n".join(["a list of tests; ask the catalogue or the spec of each:", *found])


def test_nothing_decides_by_the_class_of_a_test():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, name in decided_by_class(path.read_text(), str(path))
    ]
    assert not found, "\n".join(["the class decides; give the base class a hook with a default:", *found])


@pytest.mark.parametrize(
    "planted",
    [
        'NAMES = ("partition-gcm", "private-gcm")',
        'NAMES = ["partition-gcm", ("private-gcm", 3)]',
        "SLOW = {PrivateGCM, jaxdp.TestOfTests}",
        'PLACES = {"a": "jaxdp.x:PartitionGCM", "b": "jaxdp.y:PrivateGCM"}',
        'PLANS = {"band-gcm": 1, "contrast-gcm": 2}',
        "CASES = [PartitionGCM(epsilon=1.0), BandGCM(epsilon=1.0)]",
        'Known = Literal["band-gcm", "contrast-gcm"]',
        'SEARCHES = ["table_pc", "svt_pc"]',
        'match name:\n    case "band-gcm":\n        x = 1\n    case "contrast-gcm":\n        x = 2',
        'slow = name == "band-gcm" or name == "contrast-gcm"',
        'if name == "band-gcm":\n    x = 1\nelif name == "contrast-gcm":\n    x = 2',
        "Either = PartitionGCM | PrivateGCM",
    ],
)
def test_a_planted_list_is_found(planted):
    assert lists(planted)
    assert lists(planted, exports=True)
    assert lists(f"def f(name):\n    y = 0\n    {planted.replace(chr(10), chr(10) + '    ')}")


@pytest.mark.parametrize(
    "planted",
    [
        "isinstance(test, PartitionGCM)",
        "isinstance(test, int | independence.PrivateGCM)",
        "issubclass(cls, (int, BandGCM))",
        "type(test) is PartitionGCM",
        'type(test).__name__ == "PartitionGCM"',
        'cls.__name__ in ("PartitionGCM", "x")',
        "match test:\n    case PartitionGCM():\n        x = 1",
    ],
)
def test_a_planted_look_at_a_class_is_found(planted):
    assert decided_by_class(planted)
    if "PartitionGCM" in planted:
        assert not decided_by_class(planted, HOME["PartitionGCM"])  # a test may know itself


def test_what_is_no_list_is_left_alone():
    assert not lists('_EXPORTS = {"PartitionGCM": "a", "PrivateGCM": "b"}', exports=True)
    assert not lists('spec = TestSpec("partition-gcm", cls=PartitionGCM, seen=("PartitionGCM", "linear"))')
    assert not decided_by_class("isinstance(test, Sequential)")
