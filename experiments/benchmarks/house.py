"""The size of the code at two commits, in a table.

    python -m experiments.benchmarks.house BEFORE AFTER --table experiments/benchmarks/house.md

Counted from the syntax trees of what git holds, so that neither commit has to be installed: lines (also without blank
lines, comments and docstrings), files, public names, functions with more than six parameters, calls of `getattr` and
`hasattr` with a name that is written out, private helpers of one statement that are used once, headings of the page on
the abstraction.
"""

import argparse
import ast
import collections
import io
import pathlib
import re
import subprocess
import tarfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANY = 6
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OPENS = (ast.Module, ast.ClassDef, *FUNCTIONS)
BEGUN = "<!-- table -->"


def sources(commit: str) -> dict[str, str]:
    """Path -> text of the Python files and pages of a commit."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        kept = [entry for entry in files if entry.isfile() and entry.name.endswith((".py", ".md"))]
        return {entry.name: files.extractfile(entry).read().decode() for entry in kept}  # type: ignore[union-attr]


def _is_text(statement) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    told: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, OPENS) and node.body and _is_text(node.body[0]):
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for place, line in lines if line.strip() and line.strip()[0] != "#" and place not in told)


def parameters(function) -> int:
    """Without self and cls."""
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len(given) - (given[:1] in (["self"], ["cls"]))


def looked_up(trees) -> int:
    """Calls of getattr and hasattr whose name is written out: what might be a field, a method or a default."""
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    by_name = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr"))
    return sum(len(call.args) > 1 and isinstance(call.args[1], ast.Constant) for call in by_name)


def used_once(trees) -> int:
    """Private functions of one statement, without decorators, that one place names."""
    named: collections.Counter[str] = collections.Counter()
    short = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Name | ast.Attribute):
            named[node.id if isinstance(node, ast.Name) else node.attr] += 1
        if isinstance(node, FUNCTIONS) and re.match("_[^_]", node.name) and not node.decorator_list:
            short |= {node.name} if sum(not _is_text(one) for one in node.body) == 1 else set()
    return sum(named[name] == 1 for name in short)


def public_names(tree: ast.Module) -> int:
    """Of the package: its `__all__`, or the table from which it is made."""
    for node in tree.body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if any(isinstance(one, ast.Name) and one.id in ("__all__", "_EXPORTS") for one in targets):
            if isinstance(node.value, ast.Dict):
                return len(node.value.keys)
            if isinstance(node.value, ast.List | ast.Tuple):
                return len(node.value.elts)
    return 0


def counted(commit: str) -> Iterator[tuple[str, int]]:
    """What the table says of a commit, a row each."""
    files = sources(commit)
    for package, told in (("jaxdp/", "library"), ("tests/", "tests")):
        texts = {name: text for name, text in files.items() if name.startswith(package) and name.endswith(".py")}
        trees = {name: ast.parse(text) for name, text in texts.items()}
        lines = [len(text.splitlines()) for text in texts.values()]
        yield f"lines of the {told}", sum(lines)
        yield f"lines of the {told}, code alone", sum(code_lines(text, trees[name]) for name, text in texts.items())
        yield f"files of the {told}", len(lines)
        yield f"lines of its mean file, {told}", round(sum(lines) / len(lines))
        yield f"lines of its longest file, {told}", max(lines)
        if package == "jaxdp/":
            functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
            yield "names of `jaxdp`", public_names(trees["jaxdp/__init__.py"])
            yield "functions of more than six parameters", sum(parameters(one) > MANY for one in functions)
            yield "calls of `getattr` and `hasattr` with a name", looked_up(trees.values())
            yield "private helpers of one statement, used once", used_once(list(trees.values()))
    page = files.get("docs/abstraction.md", "")
    yield "rows of tables on the page of the abstraction", len(re.findall(r"^\| `", page, re.MULTILINE))


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--table", type=pathlib.Path, help="the page whose table is written anew")
    options = parser.parse_args(arguments)
    before, after = dict(counted(options.before)), dict(counted(options.after))
    rows = [f"| {name} | {before.get(name, 0):,} | {value:,} |" for name, value in after.items()]
    table = "\n".join(["| | before | after |", "| --- | --- | --- |", *rows])
    if options.table is None:
        print(table)
        return
    above, _, below = options.table.read_text().partition(BEGUN)
    rest = below.partition(BEGUN)[2]
    options.table.write_text(f"{above}{BEGUN}\n{table}\n{BEGUN}{rest}")


if __name__ == "__main__":
    main()
