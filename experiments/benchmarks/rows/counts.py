"""Tables of 1000 random triples of 37 columns (105 levels), equal integers, against np.bincount.

`packed` cases count from bits that were packed before, as every later round of a search does; the others pack the
records as well. The peer gets one contiguous array per column.
"""

import jax
import numpy as np

from experiments.benchmarks.harness import Case, Peer
from experiments.benchmarks.rows.pc import random_network
from jaxdp.simulate.networks import sample_network
from jaxdp.statistics.bitmaps import Bitmaps

CASES = {
    f"n1e{power}{'_packed' if packed else ''}": {"n": 10**power, "packed": packed}
    for power in (4, 5, 6)
    for packed in (False, True)
}
QUICK = ("n1e4",)
TRIPLES = 1000


def build(n: int, packed: bool) -> Case:
    """The triples of seed 0."""
    network = random_network("alarm")
    levels = [column.levels for column in network.columns]
    order = np.argsort(levels, kind="stable")
    sorted_levels = tuple(int(levels[k]) for k in order)
    codes = np.asarray(sample_network(jax.random.key(1), network, n).values)[:, order]
    rng = np.random.default_rng(0)
    triples = np.sort(np.stack([rng.choice(len(levels), 3, replace=False) for _ in range(TRIPLES)]), axis=1)
    groups = grouped(triples, sorted_levels)
    columns = [np.ascontiguousarray(column) for column in codes.T.astype(np.int64)]
    kept = Bitmaps(codes, sorted_levels) if packed else None

    def ours():
        engine = kept.emptied() if kept is not None else Bitmaps(codes, sorted_levels)
        engine.prepare(groups)
        return [engine.tables(sets) for sets in groups]

    def agree() -> dict[str, float]:
        theirs = bincounts(columns, sorted_levels, [sets for group in groups for sets in group])
        mine = [table.ravel() for tables in ours() for table in tables]
        differ = sum(not np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
        return {"error": float(differ), "tolerance": 0.0}

    return Case(
        ours=ours,
        arguments=(),
        units=TRIPLES,
        unit="table",
        agree=agree,
        peers={"bincount": Peer(bincounts, (columns, sorted_levels, triples.tolist()), TRIPLES, goal=40, threads=1)},
        compiled=False,
    )


def grouped(sets: np.ndarray, levels: tuple[int, ...]) -> list[np.ndarray]:
    """The sets by their levels."""
    groups: dict[tuple[int, ...], list] = {}
    for row in sets.tolist():
        groups.setdefault(tuple(levels[k] for k in row), []).append(row)
    return [np.array(rows) for rows in groups.values()]


def bincounts(columns, levels, triples) -> list[np.ndarray]:
    """One joint code and one np.bincount per triple."""
    tables = []
    for a, b, c in triples:
        code = (columns[a] * levels[b] + columns[b]) * levels[c] + columns[c]
        tables.append(np.bincount(code, minlength=levels[a] * levels[b] * levels[c]))
    return tables
