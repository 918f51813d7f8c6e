"""Which search to run, decided from public numbers alone; and the small search of the demo."""

from __future__ import annotations

import math

from jaxdp import _check
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.counts import JOINT_CELLS
from jaxdp.discovery.graph import Graph

METHODS = ("auto", "table", "svt", "priv-pc", "em", "partition")
SVT_BOUND = 2.0  # sensitivity of a typical query, in records
PARTITION_LEVEL = 0.01
PARTITION_TESTS_PER_PAIR = 3


def discover(
    key, data, *, epsilon: float, method: str = "auto", max_order: int | None = None, levels=None, ledger=None
) -> Graph:
    """Causal discovery at a total budget; `method` names the search, "auto" lets public numbers choose.

    "table" (`table_pc`), "svt" (`svt_pc`), "priv-pc" (`priv_pc`), "em" (`em_pc`) for coded columns;
    "partition" (`pc` with `PartitionGCM`) for continuous or mixed ones.
    Privacy: epsilon-DP under replace-one.
    """
    from jaxdp import discovery

    records = as_records(data, levels)
    _check.one_of(METHODS, method=method)
    _check.positive(epsilon=epsilon)
    if method == "auto":
        method = choose_method(records, epsilon)
    if method == "partition":
        return partition_pc(key, records, epsilon=epsilon, max_order=max_order, ledger=ledger)
    if method == "em":
        orders = {} if max_order is None else {"max_order": max_order}
        return discovery.em_pc(key, records, epsilon=epsilon, ledger=ledger, **orders)
    search = {"table": discovery.table_pc, "svt": discovery.svt_pc, "priv-pc": discovery.priv_pc}[method]
    return search(key, records, epsilon=epsilon, max_order=max_order, ledger=ledger)


def choose_method(records: Records, epsilon: float) -> str:
    """Public choice: the noise of a table's U against that of one sparse-vector answer; both fall as 1/epsilon."""
    if 0 in records.levels:
        return "partition"
    cells, pairs = math.prod(records.levels), max(1, len(records.columns) * (len(records.columns) - 1) // 2)
    # sd of the sum of cell noise 8/epsilon^2 over the joint table, entering U with gradients of about 1/4
    table_noise = math.sqrt(8.0 * cells) / (4.0 * epsilon)
    share = (2.0 * pairs) ** (2.0 / 3.0)
    query_noise = SVT_BOUND * 2.0 * pairs * (1.0 + share) / (share * epsilon)
    if cells <= JOINT_CELLS and table_noise <= query_noise:
        return "table"
    return "svt"


def partition_pc(key, data, *, epsilon: float, max_order: int | None = None, levels=None, ledger=None) -> Graph:
    """PC on continuous, coded or mixed columns with `PartitionGCM`, three tests per pair of columns in all.

    epsilon is divided equally over the 3 d(d-1)/2 tests, which are reserved before the data are read; when
    they are used up the search stops with complete=False. Level of each test: 0.01.
    Privacy: epsilon-DP under replace-one, by summation.
    """
    from jaxdp.discovery.search import pc
    from jaxdp.independence.conditional.partition_gcm import PartitionGCM

    records = as_records(data, levels)
    d = len(records.columns)
    tests = max(1, PARTITION_TESTS_PER_PAIR * d * (d - 1) // 2)
    test = PartitionGCM(epsilon=float(epsilon) / tests)
    return pc(
        key,
        records,
        test=test,
        level=PARTITION_LEVEL,
        max_order=max_order,
        max_tests=tests,
        stable=False,
        ledger=ledger,
    )


def demo(key, epsilon: float = 1.0, num_records: int = 100_000, seed: int = 8) -> tuple[Graph, Records]:
    """`table_pc` on made-up records of the Asia network; the records are public, only the noise is fresh."""
    import jax

    from jaxdp.data import networks
    from jaxdp.discovery.tables import table_pc
    from jaxdp.simulate.networks import sample_network

    records = sample_network(jax.random.key(seed), networks.load("asia"), num_records)
    return table_pc(key, records, epsilon=epsilon), records
