"""One conditional Kendall test on Asia from raw columns, against the published code's way: one SciPy call per stratum.

Section 3a of the performance sheet. Ours counts one table of (strata, 2, 2) cells and sums it; the peer selects the
rows of every stratum and calls scipy.stats.kendalltau on them. `all` case: the 1792 tests of every order from one
joint table; the peer's time is extrapolated from a few of them.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import kendalltau

from experiments.benchmarks.harness import Case, Peer
from jaxdp.data import networks
from jaxdp.discovery.counts import Counts
from jaxdp.discovery.table_scores import scores
from jaxdp.simulate.networks import sample_network
from jaxdp.statistics import concordance, contingency

CASES = {
    "n1e5_order0": {"n": 10**5, "order": 0, "goal": None},
    "n1e5_order1": {"n": 10**5, "order": 1, "goal": 200},
    "n1e5_order4": {"n": 10**5, "order": 4, "goal": 200},
    "n1e6_order1": {"n": 10**6, "order": 1, "goal": 200},
    "n1e6_order4": {"n": 10**6, "order": 4, "goal": 200},
    "n1e5_all": {"n": 10**5, "order": None, "goal": 1e4},
}
QUICK = ("n1e5_order1",)
PAIR, GIVEN, PEER_TESTS = (0, 6), (2, 3, 4, 1), 4


def build(n: int, order: int | None, goal: float | None) -> Case:
    """asia against xray given the first `order` of smoke, lung, bronc, tub; or every question (order None)."""
    codes = sample_network(jax.random.key(0), networks.load("asia"), n).values
    if order is None:
        return _all_questions(codes, goal)
    columns = tuple(codes[:, k] for k in (*PAIR, *GIVEN[:order]))
    host = tuple(np.asarray(column) for column in columns)

    def agree() -> dict[str, float]:
        return {"error": abs(float(one_test(*columns)) - scipy_test(*host)), "tolerance": 1e-6 * n}

    return Case(
        ours=jax.jit(one_test),
        arguments=columns,
        units=1,
        unit="test",
        agree=agree,
        peers={"scipy_per_stratum": Peer(scipy_test, host, 1, goal=goal)},
    )


def one_test(a, b, *given):
    """U of binary columns within the joint levels of the others."""
    block = contingency.joint_code(given, (2,) * len(given)) if given else jnp.zeros(a.shape, jnp.int32)
    table = contingency.stratified_table(a, b, block, (2 ** len(given), 2, 2))
    with jax.enable_x64(True):
        return concordance.kendall_u(concordance.strata_of_table(table))


def scipy_test(a, b, *given):
    """The same with one mask and one kendalltau per stratum."""
    total = 0.0
    for levels in itertools.product((0, 1), repeat=len(given)):
        rows = np.ones(len(a), bool)
        for column, level in zip(given, levels, strict=True):
            rows &= column == level
        x, y = a[rows], b[rows]
        if len(x) > 1:
            total += concordant_minus_discordant(x, y) / (len(x) + 2.5)
    return total


def concordant_minus_discordant(x, y) -> float:
    """S from SciPy's tau-b and the numbers of untied pairs."""
    untied = [(len(v) * (len(v) - 1) - np.sum(c * (c - 1.0))) / 2 for v in (x, y) for c in [np.unique_counts(v).counts]]
    tau = kendalltau(x, y).statistic
    return 0.0 if np.isnan(tau) else float(tau) * float(np.sqrt(untied[0] * untied[1]))


def scipy_tests(codes, questions):
    """`scipy_test` for each question, the masks made anew each time."""
    return [scipy_test(codes[:, i], codes[:, j], *(codes[:, k] for k in given)) for i, j, given in questions]


def _all_questions(codes, goal) -> Case:
    questions = [
        (i, j, given)
        for i, j in itertools.combinations(range(8), 2)
        for size in range(7)
        for given in itertools.combinations([k for k in range(8) if k not in (i, j)], size)
    ]
    from jaxdp.data.records import Records

    records = Records(codes, networks.load("asia").columns)
    host = np.asarray(codes)
    some = questions[:: len(questions) // PEER_TESTS][:PEER_TESTS]

    def agree() -> dict[str, float]:
        """Each strided question's U against SciPy's."""
        counts, worst = Counts(records), 0.0
        for i, j, given in some:
            ours = concordance.kendall_u(concordance.strata_of_table(counts.pair_given(i, j, given)))
            worst = max(worst, abs(float(ours) - scipy_tests(host, [(i, j, given)])[0]))
        return {"error": worst, "tolerance": 1e-6 * len(host)}

    return Case(
        ours=lambda: scores(Counts(records), questions),
        arguments=(),
        units=len(questions),
        unit="test",
        agree=agree,
        peers={"scipy_per_stratum": Peer(scipy_tests, (host, some), len(some), goal=goal)},
        compiled=False,
    )
