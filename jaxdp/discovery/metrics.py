"""How close a discovered graph is to the true one."""

from types import ModuleType
from typing import Any

import numpy as np

from jaxdp.data.networks import Network
from jaxdp.discovery.engine.orientation import cpdag_of, extension, is_acyclic, meek
from jaxdp.discovery.graph import Graph


def skeleton_f1(graph: Any, truth: Any) -> float:
    """F1 of the undirected edges, in [0, 1]; 1 if both graphs are empty.

    graph, truth: a Graph, a Network, a bool array (d, d) or a networkx graph, over the same columns.
    """
    found, true = (_arcs(item) for item in _aligned(graph, truth))
    return _f1(np.triu(found | found.T), np.triu(true | true.T))


def cpdag_f1(graph: Any, truth: Any) -> float:
    """F1 of the directed arcs of two CPDAGs (an undirected edge counts as both arcs); a DAG becomes its CPDAG first.

    Where the graph is a `Graph` whose knowledge has tiers, an edge between two tiers is compared by the direction that
    each graph gives it: right if it agrees with a truth that is a DAG, wrong if reversed, although data alone could
    leave it open. What follows from tiers that the truth agrees with (Meek's rules) is asked of the graph too.
    """
    return _f1(*_classes(graph, truth))


def shd(graph: Any, truth: Any) -> int:
    """Structural Hamming distance of two CPDAGs: pairs of columns whose edge is missing, extra or marked otherwise.

    DAGs, and edges between two tiers that were known beforehand: as in `cpdag_f1`.
    """
    found, true = _classes(graph, truth)
    differs = (found != true) | (found != true).T
    return int(np.sum(np.triu(differs, 1)))


def sid(graph: Any, truth: Any) -> int:
    """Structural intervention distance: ordered pairs (x, y) for which the graph implies a wrong effect of x on y.

    Of the d (d - 1) pairs those for which adjustment by the parents of x in the graph is false in the truth, a DAG, or
    for which the graph, an equivalence class, leaves the effect open: the parent adjustment distance of Henckel and
    others (2024), which is the distance of Peters and Buehlmann (2015) where the graph is a DAG too.
    Errors: ValueError if the truth is no DAG, or the graph no equivalence class; ImportError without gadjid.
    """
    found, true = (_arcs(item) for item in _aligned(graph, truth))
    if not is_acyclic(true):
        raise ValueError("the structural intervention distance needs a known graph that is a DAG: all edges directed.")
    if not is_acyclic(found):
        dag = extension(found)
        if dag is None or not np.array_equal(cpdag_of(dag), found):
            raise ValueError(
                "the structural intervention distance needs an equivalence class of DAGs, and the graph found is none: "
                "its arrows contradict each other, or background knowledge set some of them."
            )
    into, undirected = found & ~found.T, found & found.T
    marks = into.astype(np.int8) + 2 * np.triu(undirected).astype(np.int8)
    return int(_gadjid().parent_aid(true.astype(np.int8), marks, edge_direction="from row to column")[1])


def _gadjid() -> ModuleType:
    """The package that counts wrong adjustments."""
    try:
        import gadjid
    except ImportError:
        raise ImportError(
            "the structural intervention distance needs gadjid: pip install 'jaxdp-dependence[sid]'."
        ) from None
    return gadjid


def _f1(found: np.ndarray, true: np.ndarray) -> float:
    total = int(found.sum() + true.sum())
    return 1.0 if total == 0 else 2.0 * float(np.sum(found & true)) / total


def _aligned(graph, truth) -> tuple[Any, Any]:
    """Both graphs with the truth's columns in the graph's order, where both have names."""
    names, others = _names(graph), _names(truth)
    if names is None or others is None or names == others:
        return graph, truth
    if sorted(names) != sorted(others):
        raise ValueError(f"the graphs have different columns: {sorted(set(names) ^ set(others))[:3]} are in one only.")
    order = [others.index(name) for name in names]
    return graph, _arcs(truth)[np.ix_(order, order)]


def _names(graph) -> list[str] | None:
    if isinstance(graph, Graph | Network):
        return list(graph.names)
    return [str(name) for name in graph.nodes] if hasattr(graph, "nodes") else None


def _arcs(graph) -> np.ndarray:
    if isinstance(graph, Graph):
        return graph.cpdag
    if isinstance(graph, Network):
        return graph.dag
    if hasattr(graph, "nodes"):
        import networkx

        matrix = networkx.to_numpy_array(graph, weight=None)
    else:
        matrix = np.asarray(graph)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a graph must be a square array, got shape {matrix.shape}.")
    return matrix != 0


def _classes(graph, truth) -> tuple[np.ndarray, np.ndarray]:
    """Both graphs as equivalence classes, given what was known of the first one."""
    found, true = map(_arcs, _aligned(graph, truth))
    against = graph.known.against_time() if isinstance(graph, Graph) else np.zeros(found.shape, bool)
    return _given_tiers(found, against), _given_tiers(true, against)


def _given_tiers(arcs: np.ndarray, against: np.ndarray) -> np.ndarray:
    """The class of a graph in which edges between tiers keep their direction, and open ones point forward.

    against: bool (d, d), arcs that the tiers rule out. Rules propagate only what agrees with the tiers.
    """
    found = cpdag_of(arcs) if is_acyclic(arcs) else arcs  # a CPDAG that happens to be fully directed stays as it is
    if not against.any():
        return found
    backward = against & arcs & ~arcs.T
    return meek(found & ~(against & ~backward)) & ~backward.T
