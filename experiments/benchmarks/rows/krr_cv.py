"""Kernel ridge regression of X and Y with 5-fold cross-validation over 5 ridges x 6 bandwidths, and the GCM statistic.

Design: Z normal (n, d), f(z) = exp(-z1^2/2) sin(2 z1), X, Y = f + 0.3 N, scaled by
1/4; contiguous folds; X and Y choose their own pair; 302 fits per data set. Peers: scikit-learn's grid search, and the
best NumPy we could write (closed-form folds from one Cholesky inverse, or one solve per fold, whichever is faster).
`small` cases have ridges 0.01..1 in the objective's units, where the fits are good; the others alpha = 10..200.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from experiments.benchmarks.harness import Case, Peer
from jaxdp.statistics.kernel_ridge import kernels, ridge_grid

GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ALPHAS = (10.0, 20.0, 50.0, 100.0, 200.0)
SMALL_RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0)
FOLDS = 5

CASES = {
    "n100_d1": {"n": 100, "d": 1, "replicates": 200, "goal": 500},
    "n300_d1": {"n": 300, "d": 1, "replicates": 40, "goal": 200},
    "n1000_d1": {"n": 1000, "d": 1, "replicates": 8, "goal": 500, "goal_numpy": 50},
    "n100_d5": {"n": 100, "d": 5, "replicates": 200, "goal": 500},
    "n300_d5": {"n": 300, "d": 5, "replicates": 40, "goal": 200},
    "n1000_d5": {"n": 1000, "d": 5, "replicates": 8, "goal": 150},
    "n1000_d1_small": {"n": 1000, "d": 1, "replicates": 8, "goal": 50, "goal_numpy": None, "small": True},
    "n1000_d5_small": {"n": 1000, "d": 5, "replicates": 8, "goal": 50, "goal_numpy": None, "small": True},
    "n1000_d1_float64": {"n": 1000, "d": 1, "replicates": 8, "goal": None, "goal_numpy": 8, "double": True},
    "n60_d1": {"n": 60, "d": 1, "replicates": 20, "goal": None, "goal_numpy": None},
}
QUICK = ("n60_d1",)


def build(n, d, replicates, goal, goal_numpy=8, small=False, double=False) -> Case:
    """Replicates of one design; one unit is a data set."""
    alphas = tuple(n * ridge / 2.0 for ridge in SMALL_RIDGES) if small else ALPHAS
    data = [draw(seed, n, d) for seed in range(replicates)]
    z, targets = (np.stack(part) for part in zip(*data, strict=True))
    checked = 1 if n >= 1000 else 3  # grid searches in scikit-learn
    with jax.enable_x64(double):
        dtype = jnp.float64 if double else jnp.float32
        arguments = (jnp.asarray(z, dtype), jnp.asarray(targets, dtype))
    run = jax.jit(functools.partial(replicate_all, alphas=alphas))

    def ours(*arrays):
        with jax.enable_x64(double):
            return run(*arrays)

    @functools.cache
    def answers():
        return jax.tree.map(np.asarray, ours(*arguments))

    def agree() -> dict[str, float]:
        statistic, choice, certificate = answers()
        wanted = [sklearn_search(*data[i], alphas) for i in range(checked)]
        same = all((choice[i] == pair).all() for i, (_, pair) in enumerate(wanted))
        error = max(abs(statistic[i] - value) for i, (value, _) in enumerate(wanted))
        return {
            "error": error if same else float("inf"),
            "tolerance": 1e-9 if double else 2e-5,
            "same_choice": same,
            "largest_certificate": float(certificate.max()),
        }

    return Case(
        ours=_Lowered(run, double),
        arguments=arguments,
        units=replicates,
        unit="data set",
        agree=agree,
        peers={
            "sklearn": Peer(sklearn_search, (*data[0], alphas), goal=goal, both_cores=False),  # uses BLAS threads
            "numpy_inverse": Peer(numpy_search, (*data[0], alphas, "inverse"), goal=goal_numpy, goal_both=goal_numpy),
            "numpy_folds": Peer(numpy_search, (*data[0], alphas, "folds"), goal=goal_numpy, goal_both=goal_numpy),
        },
    )


class _Lowered:
    """A jitted function that is traced, lowered and called in the precision of its case."""

    def __init__(self, function, double: bool):
        self.function, self.double = function, double

    def lower(self, *arguments):
        with jax.enable_x64(self.double):
            return self.function.lower(*arguments)


def draw(seed: int, n: int, d: int):
    """One data set in float64: z (n, d), targets (n, 2)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    mean = np.exp(-(z[:, 0] ** 2) / 2.0) * np.sin(2.0 * z[:, 0])
    return z, (mean[:, None] + 0.3 * rng.normal(size=(n, 2))) / 4.0


def replicate_all(z, targets, alphas):
    """GCM statistic, chosen (bandwidth, ridge) of both targets and certificate of every data set."""
    n = z.shape[1]
    dtype = z.dtype
    kernel = kernels.RBF(lengthscale=(2.0 * jnp.asarray(GAMMAS, dtype)) ** -0.5)
    ridges = 2.0 * jnp.asarray(alphas, dtype) / n

    def one(data):
        fit = ridge_grid.cross_validate(kernel, ridges, *data, num_folds=FOLDS)
        product = fit.residuals[:, 0] * fit.residuals[:, 1]
        statistic = jnp.sqrt(1.0 * n) * jnp.mean(product) / jnp.std(product)
        return statistic, jnp.stack([fit.kernel_index, fit.ridge_index], axis=1), fit.certificate

    return jax.lax.map(one, (z, targets))


def _statistic(first, second):
    product = first * second
    return np.sqrt(len(product)) * product.mean() / product.std()


def sklearn_search(z, targets, alphas):
    """Authors' style: one grid search per target."""
    residuals, pairs = [], []
    for target in targets.T:
        search = GridSearchCV(
            KernelRidge(kernel="rbf"),
            {"alpha": list(alphas), "gamma": list(GAMMAS)},
            scoring="neg_mean_squared_error",
            cv=KFold(FOLDS),
        ).fit(z, target)
        residuals.append(target - search.predict(z))
        best = search.best_params_
        pairs.append((GAMMAS.index(best["gamma"]), alphas.index(best["alpha"])))
    return _statistic(*residuals), np.array(pairs)


def numpy_search(z, targets, alphas, style):
    """One kernel per bandwidth; folds from the blocks of one inverse, or one positive-definite solve per fold."""
    squared = np.sum(z**2, 1)
    distances = np.maximum(squared[:, None] + squared[None] - 2.0 * z @ z.T, 0.0)
    n = len(z)
    folds = np.array_split(np.arange(n), FOLDS)
    best = [(np.inf, None, None)] * targets.shape[1]
    for g, gamma in enumerate(GAMMAS):
        gram = np.exp(-gamma * distances)
        for a, alpha in enumerate(alphas):
            errors, residuals = (_by_inverse if style == "inverse" else _by_folds)(gram, alpha, targets, folds)
            for t, error in enumerate(errors):
                if error < best[t][0]:
                    best[t] = (error, (g, a), residuals[:, t])
    return _statistic(*(residual for _, _, residual in best)), np.array([pair for _, pair, _ in best])


def _by_inverse(gram, alpha, targets, folds):
    shifted = gram + alpha * np.eye(len(gram))
    factor, _ = scipy.linalg.lapack.dpotrf(shifted, lower=True, overwrite_a=True)
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    weights = inverse @ targets
    left = [np.linalg.solve(inverse[np.ix_(f, f)], weights[f]) for f in folds]
    return np.mean([np.mean(part**2, axis=0) for part in left], axis=0), alpha * weights


def _by_folds(gram, alpha, targets, folds):
    errors = []
    for fold in folds:
        train = np.setdiff1d(np.arange(len(gram)), fold, assume_unique=True)
        inside = gram[np.ix_(train, train)]
        inside[np.diag_indices_from(inside)] += alpha
        _, weights, _ = scipy.linalg.lapack.dposv(inside, targets[train], lower=True, overwrite_a=True)
        errors.append(np.mean((targets[fold] - gram[np.ix_(fold, train)] @ weights) ** 2, axis=0))
    shifted = gram + alpha * np.eye(len(gram))
    _, weights, _ = scipy.linalg.lapack.dposv(shifted, targets, lower=True, overwrite_a=True)
    return np.mean(errors, axis=0), alpha * weights
