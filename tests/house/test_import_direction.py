"""Imports go one way: no file of the package needs, through others, a file that needs it; rooms lie in order."""

import ast
import graphlib
from pathlib import Path

import jaxdp

ROOT = Path(jaxdp.__file__).parent.parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "jaxdp").rglob("*.py"))
}
# folders and files of the package; every import goes to a room further to the left, or stays in its own
ROOMS = (
    *("_base", "data", "randomness", "report", "spec", "noise", "null_laws"),
    *("charge", "privacy", "results", "query", "core"),
    *("programs", "statistics", "accounting", "catalogue", "mechanisms", "examples", "simulate"),
    *("independence", "tune", "plan", "discovery", "published"),
    *("audit", "ask", "interop", "cluster", "cli", "__main__"),
)


def imported(path: Path) -> set[str]:
    """Files of the package that a file names in an import, at any depth, for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else node.module for name in names}
    return found & set(FILES)


def room(name: str) -> str:
    """The folder or file of the package that a file lies in; "" for the package itself."""
    return name.partition(".")[2].partition(".")[0]


def wrong_ways(graph) -> list[tuple[str, str]]:
    """Imports that do not go to an earlier room or stay in their own; the package itself is no room."""
    floor = {name: number for number, name in enumerate(ROOMS)}
    return [
        (name, used)
        for name, others in graph.items()
        for used in others
        if not room(used) or (room(used) != room(name) and floor[room(used)] >= floor[room(name)])
    ]


def test_every_import_goes_to_an_earlier_room():
    graph = {name: imported(path) for name, path in FILES.items()}
    found = {room(name) for name in FILES} - {""}
    assert found == set(ROOMS), f"put {sorted(found ^ set(ROOMS))} in its place in ROOMS, or out of it"
    wrong = wrong_ways(graph)
    assert wrong == [], f"{wrong}: the first imports the second from a room that is not below; move what both need down"


def test_a_wrong_way_would_be_seen(tmp_path):
    upward = {"jaxdp.core": {"jaxdp.audit.bounds"}, "jaxdp.audit.bounds": {"jaxdp.core"}}
    assert wrong_ways(upward) == [("jaxdp.core", "jaxdp.audit.bounds")]
    (tmp_path / "late.py").write_text("def late():\n    from jaxdp import PartitionGCM\n")
    assert wrong_ways({"jaxdp.cli.test": imported(tmp_path / "late.py")}) == [("jaxdp.cli.test", "jaxdp")]


def test_no_circle_of_imports():
    graph = {name: imported(path) for name, path in FILES.items()}
    assert sum(map(len, graph.values())) > 300
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError with the circle
    assert order.index("jaxdp.core") < order.index("jaxdp.independence.continuous.partition_gcm")
    assert order.index("jaxdp.randomness.keys") < order.index("jaxdp.core")


def test_a_circle_would_be_seen(tmp_path):
    (tmp_path / "one.py").write_text("def late():\n    from jaxdp.core import run\n")
    assert imported(tmp_path / "one.py") == {"jaxdp.core"}
