"""Figure 7: power on the Concrete Compressive Strength data (UCI; path given by flag, not committed)."""

import jax
import numpy as np

import jaxdp
from experiments.papers.dp_ci.figures import CLAIMS, LEVEL
from jaxdp.data import Column, Domain
from jaxdp.statistics.kernel_ridge.kernels import RBF

# Public physical ranges of the columns, not those of the file.
BOUNDS = {
    "cement": (100, 600),
    "slag": (0, 400),
    "ash": (0, 250),
    "water": (100, 260),
    "superplastic": (0, 35),
    "coarseagg": (750, 1200),
    "fineagg": (550, 1050),
    "age": (1, 365),
    "strength": (0, 90),
}
EPSILON = 7.0


def load(path) -> dict[str, np.ndarray]:
    """Columns scaled to [-1, 1] by the public bounds."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    scaled = {}
    for name, (low, high) in BOUNDS.items():
        scaled[name] = np.clip(2 * (table[name] - low) / (high - low) - 1, -1, 1).astype(np.float32)
    return scaled


def figure_7(recorder, config, path):
    """Is strength independent of each feature given the rest? Random subsets of growing size."""
    columns = load(path)
    kernel = RBF(lengthscale=1.0)
    features = [name for name in BOUNDS if name != "strength"]
    tests = {
        "PrivGCM (paper)": jaxdp.published.PaperGCM(epsilon=EPSILON, kernel=kernel),
        "PrivGCM (tight)": jaxdp.PrivateGCM(epsilon=EPSILON, kernel=kernel),
        "PartitionGCM": jaxdp.PartitionGCM(
            epsilon=EPSILON, standardize=True, scale_x=0.3, scale_y=0.3, accept_coarse_cells=True
        ),
        "GCM (not private)": jaxdp.GCM(ridge=0.002, kernel=kernel),
    }
    chosen = features if config.name == "full" else ["cement", "age"]
    for n in config.concrete_sizes:
        rng = np.random.default_rng(config.seed)
        rows = np.stack([rng.permutation(columns["strength"].size)[:n] for _ in range(config.concrete_splits)])
        for x in chosen:
            given = [name for name in features if name != x]
            x_all, y_all = columns[x][rows], columns["strength"][rows]
            z_all = np.stack([columns[name][rows] for name in given], axis=-1)
            for name, test in tests.items():
                record(recorder, name, test, x, x_all, y_all, z_all, Domain(z=(Column(),) * len(given)), config)


def record(recorder, name, test, feature, x, y, z, domain, config):
    """Rejection rate of one test over the subsets."""

    @jax.jit
    def p_values(test, keys, x, y, z):
        def one(args):
            return jaxdp.run(test, args[0], jaxdp.Data(*args[1:], domain)).p_value

        return jax.lax.map(one, (keys, x, y, z), batch_size=4)

    p = np.asarray(p_values(test, jax.random.split(jax.random.key(config.seed), len(x)), x, y, z))
    recorder.add(
        figure=7,
        method=name,
        feature=feature,
        n=x.shape[1],
        epsilon=EPSILON,
        rate=float((p <= LEVEL).mean()),
        rejections=int((p <= LEVEL).sum()),
        replicates=len(p),
        claim=CLAIMS[7],
    )
