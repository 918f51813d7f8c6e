"""Tables of 1000 random triples of 37 columns (105 levels), equal integers, against np.bincount.

Ours come in one array, as searches use them: the last level of a column in the last of four places, empty places
before it.
`packed` cases count from bits that were packed before, as every later round of a search does; the others pack the
records as well. The peer gets one contiguous array per column.
"""

import jax
import numpy as np

from experiments.benchmarks.harness import Case, Peer
from experiments.benchmarks.rows.pc import random_network
from jaxdp.simulate.designs.networks import sample_network
from jaxdp.statistics.tables.bitmaps import Bitmaps

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
    columns = [np.ascontiguousarray(column) for column in codes.T.astype(np.int64)]
    kept = Bitmaps(codes, sorted_levels) if packed else None

    room = (max(sorted_levels),) * 3

    def ours():
        engine = kept.emptied() if kept is not None else Bitmaps(codes, sorted_levels)
        engine.prepare([triples])
        return engine.tables(triples, room)

    def agree() -> dict[str, float]:
        theirs = bincounts(columns, sorted_levels, triples.tolist())
        mine = [
            without_padding(table, [sorted_levels[k] for k in row]) for table, row in zip(ours(), triples, strict=True)
        ]
        differ = sum(not np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
        return {"error": float(differ), "tolerance": 0.0}

    return Case(
        ours=ours,
        units=TRIPLES,
        unit="table",
        agree=agree,
        peers={"bincount": Peer(bincounts, (columns, sorted_levels, triples.tolist()), TRIPLES, goal=40, threads=1)},
        compiled=False,
    )


def without_padding(table: np.ndarray, levels: list[int]) -> np.ndarray:
    """The cells of the levels that there are, flat; the others must be empty."""
    places = [[*range(count - 1), room - 1] for count, room in zip(levels, table.shape, strict=True)]
    cells = table[np.ix_(*places)].ravel()
    return cells if cells.sum() == table.sum() else np.full(cells.size, -1)


def bincounts(columns, levels, triples) -> list[np.ndarray]:
    """One joint code and one np.bincount per triple."""
    tables = []
    for a, b, c in triples:
        code = (columns[a] * levels[b] + columns[b]) * levels[c] + columns[c]
        tables.append(np.bincount(code, minlength=levels[a] * levels[b] * levels[c]))
    return tables
