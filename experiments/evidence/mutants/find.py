"""Which numbers and key splits of the package privacy rests on, found from its source."""

import ast
import dataclasses
import math
import re
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("independence", "mechanisms", "accounting", "noise", "randomness", "discovery", "published", "interop")
FILES = (
    "privacy.py",
    "query.py",
    "core.py",
    "null_laws.py",
    "statistics/mic/mic_scores.py",
    "statistics/moments.py",
    "statistics/tables/excess.py",
    "statistics/kernel_ridge/ridge_bounds.py",
    "statistics/kernel_ridge/ridge_error.py",
)
# Functions whose numbers are part of a guarantee.
# In some a smaller number means less noise, a smaller charge or a smaller bound: the side that breaks privacy.
SMALLER = frozenset(
    {"sensitivity", "cost", "noise", "scale", "reach", "perturb", "bound", "bounds", "variance", "spend"}
)
FUNCTIONS = SMALLER | {
    "budget",
    "share",
    "selector",
    "widened",
    "guarantee",
    "epsilon",
    "rho",
    "charge",
    "delta",
    "l1",
    "l2",
}
CONSTANTS_SMALLER = ("_L1", "_L2", "SENSITIVITY", "BOUND", "COVARIANCE", "VARIANCE", "MARGIN", "ERROR", "ROUNDING")
# A number that is multiplied or added to one of these, in any other function, is part of a noise scale or of a charge.
WORDS = re.compile(
    r"sensitiv|epsilon|bound|scale|rate\b|rho|budget|share|noise|margin|delta|reach|l1\b|l2\b", re.IGNORECASE
)
TABLE = 8  # of a constant with more numbers only the first is changed: it is a table of defaults or of a cipher
TENTH = 0.1


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one place: `old` at (line, column) becomes `new`.

    kind: constant, literal or key. name: the constant, or the function. owner: the class around it, or "".
    """

    path: str
    line: int
    column: int
    kind: str
    name: str
    owner: str
    old: str
    new: str

    @property
    def label(self) -> str:
        """What a record calls it: stable while the line keeps its text."""
        scope = f"{self.owner}." if self.owner else ""
        return f"{self.path}:{self.line}:{self.column} {scope}{self.name} {self.old} -> {self.new}"

    def apply(self, source: str) -> str:
        """The source with this change. Errors: ValueError if the place reads differently."""
        lines = source.splitlines(keepends=True)
        row, data = self.line - 1, self.old.encode()
        text = "".join(lines[row:]).encode()
        if text[self.column : self.column + len(data)] != data:
            raise ValueError(f"{self.path}:{self.line} does not read {self.old!r}; find the mutants anew.")
        changed = text[: self.column] + self.new.encode() + text[self.column + len(data) :]
        return "".join(lines[:row]) + changed.decode()


def find(root: Path) -> list[Mutant]:
    """All mutants of a checkout, in the order of its files and lines."""
    package = root / "jaxdp"
    paths = [path for folder in FOLDERS for path in sorted((package / folder).rglob("*.py"))]
    paths += [package / name for name in FILES if (package / name).exists()]
    found = [mutant for path in paths for mutant in of_source(path.read_text(), path.relative_to(root).as_posix())]
    return sorted(found, key=lambda m: (m.path, m.line, m.column, m.new))


def of_source(source: str, path: str) -> list[Mutant]:
    """All mutants of one file."""
    return [*_constants(source, path), *_literals(source, path), *_keys(source, path)]


def _constants(source: str, path: str) -> Iterator[Mutant]:
    """Numbers of module-level UPPER_CASE names, those inside of dicts, tuples and products too."""
    for node in ast.parse(source).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [target.id for target in targets if isinstance(target, ast.Name) and target.id.strip("_").isupper()]
        if not names or node.value is None:
            continue
        smaller = any(part in names[0] for part in CONSTANTS_SMALLER)
        numbers = list(_numbers(node.value))
        for number in numbers[: 1 if len(numbers) > TABLE else TABLE]:
            yield from _changes(source, path, number, "constant", names[0], "", smaller)


def _literals(source: str, path: str) -> Iterator[Mutant]:
    """Numbers inside of functions whose name says that they make noise, a bound or a cost."""
    for function, owner in _functions(ast.parse(source)):
        kind = function.name.strip("_").rpartition("_")[2]  # l1_bound is a bound
        if kind in FUNCTIONS:
            smaller = kind in SMALLER
            for statement in function.body:
                for number in _numbers(statement):
                    yield from _changes(source, path, number, "literal", function.name, owner, smaller)
        else:
            for term in _terms(function):
                if WORDS.search(_text(source, term)):
                    for number in _numbers(term):
                        yield from _changes(source, path, number, "literal", function.name, owner, False)


def _keys(source: str, path: str) -> Iterator[Mutant]:
    """Splits whose parts become one key, and folds that forget what they fold in."""
    for function, owner in _functions(ast.parse(source)):
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _is_call(node.value, "split"):
                target, old = node.targets[0], _text(source, node.value)
                if (
                    isinstance(target, ast.Tuple)
                    and re.search(r"random|source|\.fold_in\(", old)  # of a key, or of an opened source of noise
                    and not any(isinstance(part, ast.Starred) for part in target.elts)
                ):
                    new = f"[({old})[0]] * {len(target.elts)}"
                    yield _mutant(source, path, node.value, "key", function.name, owner, new)
            elif _is_call(node, "fold_in") and not isinstance(node.args[-1], ast.Constant):
                yield _mutant(source, path, node.args[-1], "key", function.name, owner, "0")


def _functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Functions and methods, each with the class around it; functions inside of others belong to these."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, ""
        elif isinstance(node, ast.ClassDef):
            yield from ((item, node.name) for item in node.body if isinstance(item, ast.FunctionDef))


def _terms(node: ast.AST) -> Iterator[ast.BinOp]:
    """The outermost sums and products below a node."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _terms(child)


def _numbers(node: ast.AST) -> Iterator[ast.Constant]:
    """Number literals below a node that scale something: no zeros, indices, exponents, axes, shapes or docstrings."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value != 0:
            yield node
        return
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.Subscript) and name == "slice":
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and name == "right":
            continue
        if isinstance(node, ast.keyword) and node.arg in ("axis", "dtype", "shape", "ndmin", "k", "precision"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _numbers(child)


def _changes(source: str, path: str, node: ast.Constant, kind: str, name: str, owner: str, smaller: bool):
    """The number cut by a tenth, and raised unless only the cut can break privacy."""
    for factor in (1.0 - TENTH,) if smaller else (1.0 - TENTH, 1.0 + TENTH):
        yield _mutant(source, path, node, kind, name, owner, scaled(node.value, factor))


def scaled(value: int | float, factor: float) -> str:
    """The literal of value * factor; a whole number moves by one at least and stays whole."""
    if isinstance(value, float):
        return repr(value * factor)
    moved = value * factor
    return str(math.floor(moved + 1e-9) if factor < 1.0 else math.ceil(moved - 1e-9))


def _mutant(source: str, path: str, node, kind: str, name: str, owner: str, new: str) -> Mutant:
    return Mutant(path, node.lineno, node.col_offset, kind, name, owner, _text(source, node), new)


def _text(source: str, node) -> str:
    text = ast.get_source_segment(source, node)
    assert text is not None
    return text


def _is_call(node, name: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == name
