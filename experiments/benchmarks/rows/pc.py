"""PC-stable skeleton with the chi-squared test at level 0.01, identical skeletons, against causal-learn.

Asia is the built-in network; `alarm` and `insurance` are random networks of the sizes of those two (columns, levels
per column, arcs, largest number of parents), with fixed seeds. Ours finds the whole CPDAG from the records as
`discovery.pc` gets them; the peer runs its skeleton search on the same codes.
"""

import jax
import numpy as np

from experiments.benchmarks.harness import Case, Peer
from jaxdp import discovery
from jaxdp.data import networks
from jaxdp.data.networks import Network, Variable
from jaxdp.data.records import Records
from jaxdp.simulate.designs.networks import sample_network

CASES = {
    "asia_1e5": {"name": "asia", "n": 10**5, "goal": None},
    "asia_1e6": {"name": "asia", "n": 10**6, "goal": 100},
    "alarm_1e4": {"name": "alarm", "n": 10**4, "goal": None},
    "alarm_1e5": {"name": "alarm", "n": 10**5, "goal": 40},
    "alarm_1e6": {"name": "alarm", "n": 10**6, "goal": 100},
    "insurance_1e5": {"name": "insurance", "n": 10**5, "goal": 20},
}
QUICK = ("asia_1e5",)
LEVEL = 0.01
# number of columns with 2, 3, 4, 5 levels; arcs; seed
SIZES = {"alarm": ((13, 17, 7, 0), 46, 1), "insurance": ((7, 8, 9, 3), 52, 2)}
MAX_PARENTS = 3
CONCENTRATION = 0.6  # of the Dirichlet law of each row of probabilities: strong but not deterministic dependence


def build(name: str, n: int, goal: float | None) -> Case:
    """One network, n records."""
    network = networks.load(name) if name in networks.names() else random_network(name)
    drawn = sample_network(jax.random.key(1), network, n)
    records = Records(np.asarray(drawn.values), drawn.columns)
    host = np.asarray(drawn.values)
    return Case(
        ours=lambda: ours(records),
        units=1,
        unit="graph",
        agree=lambda: {"error": float(np.sum(ours(records).skeleton != causal_learn(host))), "tolerance": 0.0},
        peers={"causal_learn": Peer(causal_learn, (host,), 1, goal=goal, both_cores=False, threads=1)},
        extra=lambda: {"tests": ours(records).num_tests, "edges": len(ours(records).edges), "n": n},
        compiled=False,
    )


def ours(records):
    """The whole search, orientation included."""
    return discovery.pc(jax.random.key(0), records, test="chi2", level=LEVEL)


def causal_learn(codes) -> np.ndarray:
    """causal-learn's PC-stable skeleton, bool (d, d)."""
    from causallearn.utils.cit import CIT
    from causallearn.utils.PCUtils.SkeletonDiscovery import skeleton_discovery

    found = skeleton_discovery(codes, LEVEL, CIT(codes, "chisq"), stable=True, verbose=False, show_progress=False)
    return np.asarray(found.G.graph) != 0


def random_network(name: str) -> Network:
    """A random network of the size of a published one."""
    counts, arcs, seed = SIZES[name]
    rng = np.random.default_rng(seed)
    levels = rng.permutation(np.repeat([2, 3, 4, 5], counts))
    dag = np.zeros((levels.size, levels.size), bool)
    while dag.sum() < arcs:
        i, j = sorted(rng.choice(levels.size, 2, replace=False))
        dag[i, j] |= dag[:, j].sum() < MAX_PARENTS
    variables = {}
    for j, count in enumerate(levels):
        parents = np.flatnonzero(dag[:, j])
        table = rng.dirichlet(np.full(count, CONCENTRATION), size=tuple(levels[parents]))
        names = tuple(f"v{k}" for k in parents)
        variables[f"v{j}"] = Variable(tuple(map(str, range(count))), names, table)
    return Network(variables)
