"""Conditional Kendall tests (Definition 6) of binary columns of the Asia network: one test, and all of every order.

One test counts one table of (strata, 2, 2) cells from the columns; ten run one after the other, as a search asks them,
and the peers are asked the first. `all` cases: the scores of the 1792 queries of every order, counting included; the
time of the peers is extrapolated from a few of them.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks import priv_pc_style
from experiments.benchmarks.harness import Case, Peer
from jaxdp.data import networks
from jaxdp.data.records import Records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.table_scores import scores
from jaxdp.simulate.designs.networks import sample_network
from jaxdp.statistics import concordance
from jaxdp.statistics.tables import contingency

ORDERS = (0, 1, 2, 4)
SIZES = {"n1e5": 10**5, "n1e6": 10**6, "n1e7": 10**7}
CASES = {
    f"{name}_order{order}": {"n": n, "order": order, "goal": 200 if order else None}
    for name, n in SIZES.items()
    for order in ORDERS
} | {f"{name}_all": {"n": SIZES[name], "order": None, "goal": 1e4} for name in ("n1e5", "n1e6")}
QUICK = ("n1e5_order1",)
PAIR, GIVEN, TESTS, PEER_TESTS = (0, 6), (2, 3, 4, 1), 10, 6
AGREEMENT_TESTS = 40


def build(n: int, order: int | None, goal: float | None) -> Case:
    """Ten queries with `order` columns given, the first two of them for the peers; or every query."""
    drawn = sample_network(jax.random.key(0), networks.load("asia"), n)
    if order is None:
        return _all_queries(drawn, goal)
    queries = queries_of(order)
    matrix = np.asarray(drawn.values).astype(np.int64)
    columns = [drawn.values[:, k] for k in range(matrix.shape[1])]
    compiled = jax.jit(one_test)
    few = queries[: 2 if n < 10**7 else 1]

    def ours():
        # each answer is waited for: a search needs it before it asks on
        return [float(compiled(columns[i], columns[j], *(columns[k] for k in given))) for i, j, given in queries]

    def agree() -> dict[str, float]:
        theirs = priv_pc_style.answers(matrix, few)
        gaps = [abs(mine - other) / max(1.0, abs(other)) for mine, other in zip(ours(), theirs, strict=False)]
        return {"error": max(gaps), "tolerance": 1e-9}

    return Case(
        ours=ours, units=len(queries), unit="test", agree=agree, peers=_peers(matrix, few, goal), compiled=False
    )


def queries_of(order: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """asia against xray given the first `order` of smoke, lung, bronc, tub; then other pairs, the next given."""
    found = [(*PAIR, GIVEN[:order])]
    for i, step in itertools.product(range(8), (1, 3)):
        j = (i + step) % 8
        after = [(j + k) % 8 for k in range(1, 8) if (j + k) % 8 != i]
        found.append((i, j, tuple(after[:order])))
    return found[:TESTS]


def one_test(a, b, *given):
    """Definition 6 of binary columns within the joint levels of the others."""
    block = contingency.joint_code(given, (2,) * len(given)) if given else jnp.zeros(a.shape, jnp.int32)
    table = contingency.stratified_table(a, b, block, (2 ** len(given), 2, 2))
    with jax.enable_x64(True):
        return concordance.paper_statistic(concordance.strata_of_table(table))


def _peers(matrix, queries, goal) -> dict[str, Peer]:
    peers = {
        "same_style": Peer(
            priv_pc_style.answers, (matrix, queries), len(queries), goal=goal, both_cores=False, threads=1
        )
    }
    if priv_pc_style.has_published():
        arguments = (matrix, queries, priv_pc_style.published_tau)
        peers["published_code"] = Peer(
            priv_pc_style.answers, arguments, len(queries), goal=goal, both_cores=False, threads=1
        )
    return peers


def _all_queries(drawn: Records, goal) -> Case:
    queries = every_query(8)
    records = Records(np.asarray(drawn.values), drawn.columns)
    matrix = np.asarray(drawn.values).astype(np.int64)
    some = queries[:: len(queries) // PEER_TESTS][:PEER_TESTS]
    checked = queries[:: len(queries) // AGREEMENT_TESTS]
    checked = checked if len(matrix) <= 10**5 else checked[:PEER_TESTS]

    def agree() -> dict[str, float]:
        counts, worst = Counts(records), 0.0
        for query in checked:
            ours = concordance.paper_statistic(concordance.strata_of_table(counts.pair_given(*query)))
            worst = max(worst, abs(float(ours) - priv_pc_style.conditional_tau(matrix, *query)))
        return {"error": worst, "tolerance": 1e-9 * len(matrix) ** 0.5}

    return Case(
        ours=lambda: scores(Counts(records), queries),
        units=len(queries),
        unit="test",
        agree=agree,
        peers=_peers(matrix, some, goal),
        compiled=False,
    )


def every_query(d: int):
    """All pairs given all sets of the others."""
    return [
        (i, j, given)
        for i, j in itertools.combinations(range(d), 2)
        for size in range(d - 1)
        for given in itertools.combinations([k for k in range(d) if k not in (i, j)], size)
    ]
