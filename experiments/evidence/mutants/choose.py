"""Which tests should see a mutant: those that name it, then those that name what it belongs to, then whole files."""

import ast
import dataclasses
import functools
import re
from pathlib import Path

from experiments.evidence.mutants.find import Mutant
from jaxdp.audit import cases

MOST = 24  # tests of one round
GUARD = re.compile("bound|sensitiv|attack|budget|cost|share|charge|noise|reach|law|key|constant|level|epsilon|exact")
CONTRACT = "tests/audit/test_contract.py"


@dataclasses.dataclass(frozen=True)
class Test:
    """One test function: its node id, its text with that of the helpers it calls, and whether it runs by default."""

    node: str
    text: str
    slow: bool


@dataclasses.dataclass(frozen=True)
class Round:
    """Tests to run together, and a pytest -k expression that narrows them ("" for none)."""

    nodes: tuple[str, ...]
    narrow: str = ""


def rounds(root: Path, mutant: Mutant) -> list[Round]:
    """The rounds for a mutant, most telling first; no test is in two."""
    own = mutant.name.strip("_") if mutant.kind == "constant" else mutant.owner or mutant.name.strip("_")
    module, names = Path(mutant.path).stem, public_names(root, mutant.path)
    place = _any([*names, module])
    found, seen = [], set()
    for words in ([own], [*names, module], users(root, mutant.path)):
        pattern = _any(words)
        chosen = [test for test in all_tests(root) if pattern and pattern.search(test.text) and test.node not in seen]
        chosen = sorted(chosen, key=lambda test: -closeness(test, pattern, place, module))[:MOST]
        seen |= {test.node for test in chosen}
        if chosen:
            found.append(Round(tuple(test.node for test in chosen)))
    cases = contract_cases(root, names)
    if cases:
        found.insert(min(2, len(found)), Round((CONTRACT,), " or ".join(cases)))
    return found


def closeness(test: Test, pattern: re.Pattern, place: re.Pattern | None, module: str) -> float:
    """How likely a test is to see a change: it is about the module, guards numbers, and is short and quick."""
    about = set(module.split("_")) & set(re.split(r"[_.]", test.node.split("/")[-1].split("::")[0]))
    score = 3.0 * len(about) + 2.0 * bool(place and place.search(test.text))
    score += 2.0 * bool(GUARD.search(test.node)) + min(3, len(pattern.findall(test.text)))
    return score - 2.0 * test.slow - min(3.0, len(test.text) / 4000.0)


@functools.lru_cache(maxsize=4)
def all_tests(root: Path) -> tuple[Test, ...]:
    """Every test function of the suite that is not nightly."""
    found: list[Test] = []
    # the tests of this tool name constants without guarding them
    for path in sorted((root / "tests").rglob("test_*.py")):
        if path.name == "test_mutate.py":
            continue
        tree, source = ast.parse(path.read_text()), path.read_text()
        parts = {name: ast.get_source_segment(source, node) or "" for node in tree.body for name in _names(node)}
        slow_file = bool(re.search(r"mark\.(optimised|full)\b", parts.get("pytestmark", "")))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
                if "nightly" not in marks:
                    text = marks + _closure(node.name, parts)
                    slow = slow_file or bool(re.search(r"mark\.(optimised|full)\b", marks))
                    found.append(Test(f"{path.relative_to(root).as_posix()}::{node.name}", text, slow))
    return tuple(found)


def _names(node) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _closure(name: str, parts: dict[str, str]) -> str:
    """The text of a function and of the module-level names that it uses, at any depth."""
    seen, waiting = {name}, [name]
    while waiting:
        for word in set(re.findall(r"\w+", parts[waiting.pop()])) & (parts.keys() - seen):
            seen.add(word)
            waiting.append(word)
    return "\n".join(parts[word] for word in sorted(seen))


@functools.lru_cache(maxsize=1024)
def public_names(root: Path, path: str) -> tuple[str, ...]:
    """Classes and public functions that a file defines."""
    tree = ast.parse((root / path).read_text())
    kinds = ast.FunctionDef | ast.ClassDef
    return tuple(node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_"))


@functools.lru_cache(maxsize=1024)
def users(root: Path, path: str) -> tuple[str, ...]:
    """Public names of the files that import this one."""
    module = path.removesuffix(".py").replace("/", ".")
    package, _, stem = module.rpartition(".")
    wanted = re.compile(rf"from {re.escape(module)} import|from {re.escape(package)} import [^\n]*\b{stem}\b")
    files = [file.relative_to(root).as_posix() for file in sorted((root / "jaxdp").rglob("*.py"))]
    found = [name for file in files if wanted.search((root / file).read_text()) for name in public_names(root, file)]
    return tuple(dict.fromkeys(found))


@functools.lru_cache(maxsize=1024)
def contract_cases(root: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the contract suite's cases whose test is one of these classes, or is built on one."""
    kinds = {name for name in names if name[0].isupper()}
    found = [name for name, one in cases.all_examples().items() if kinds & classes(one.build(1.0))]
    pattern, source = _any(kinds), (root / "tests" / "cases.py").read_text()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    ours = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "internal"]
    named = [case.args[0].value for case in ours if pattern and pattern.search(ast.get_source_segment(source, case))]
    return (*found, *(name for name in named if isinstance(name, str)))


def classes(thing) -> set[str]:
    """Names of the classes of a test, of their bases, and of the tests and kernels inside it."""
    inside = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
    found = {kind.__name__ for kind in type(thing).__mro__}
    return found.union(
        *(classes(part) for part in inside if dataclasses.is_dataclass(part) and not isinstance(part, type))
    )


def _any(words) -> re.Pattern | None:
    """Matches any of the words as a whole, with underscores before it or not."""
    known = sorted({word for word in words if len(word) > 2}, key=len, reverse=True)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, known))})(?![A-Za-z0-9])") if known else None
