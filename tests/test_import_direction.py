"""Imports go one way: no file of the package needs, through others, a file that needs it."""

import ast
import graphlib
from pathlib import Path

import jaxdp

ROOT = Path(jaxdp.__file__).parent.parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "jaxdp").rglob("*.py"))
}
# what is imported by name on demand, of everything, by design
LAZY = {"jaxdp"}


def imported(path: Path) -> set[str]:
    """Files of the package that a file names in an import, at any depth, for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else node.module for name in names}
    return (found & set(FILES)) - LAZY


def test_no_circle_of_imports():
    graph = {name: imported(path) for name, path in FILES.items()}
    assert sum(map(len, graph.values())) > 300
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError with the circle
    assert order.index("jaxdp.core") < order.index("jaxdp.independence.conditional.partition_gcm")
    assert order.index("jaxdp.noise.keys") < order.index("jaxdp.core")


def test_a_circle_would_be_seen(tmp_path):
    (tmp_path / "one.py").write_text("def late():\n    from jaxdp.core import run\n")
    assert imported(tmp_path / "one.py") == {"jaxdp.core"}
