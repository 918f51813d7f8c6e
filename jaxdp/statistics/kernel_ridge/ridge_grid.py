"""Cross-validated ridge and bandwidth without refitting: what does not depend on ridge and fold is computed once.

Krylov: (K + alpha I) has the same Krylov spaces for every alpha; leaving a fold out is a 0/1 mask on the start column;
every target is a column. So per bandwidth, `steps` products of K with 2 (folds + 1) columns give all fits of the grid.
Low rank (d = 1, wide kernels): with K = L L' + E from pivoted Cholesky, ridge regression on the features L, whose
second moments without a fold are a difference of two small matrices; the Gram matrix is never formed.

NOT PRIVATE: the choice reads the data. The sensitivity constants hold for a ridge fixed in advance. For simulations
and the non-private references. Float32 or float64, as the data.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp.statistics.kernel_ridge import kernels, low_rank, ridge

METHODS = ("auto", "krylov", "low_rank", "cholesky")
FREEZE = {"float32": 1e-6, "float64": 1e-13}  # of the matrix norm: past this, a Krylov direction is rounding
MAX_STEPS = {"float32": 40, "float64": 80}
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
TRACE_TOLERANCE = {"float32": 1e-4, "float64": 1e-10}  # of alpha; the norm it bounds is many times smaller
RANKS = (32, 64, 128)
GIVE_UP = {16: 0.3, 32: 5e-3, 64: 1e-5}  # of the trace of K: more than this left at a rank, and no rank here will do
STOP_EARLY = 0.2  # of the tolerance: what a recurrence must reach, so that the measured residual passes too


class GridFit(NamedTuple):
    """errors: mean squared cross-validation error (bandwidths, ridges, targets), as scikit-learn averages it.

    kernel_index, ridge_index: the best pair of each target, (q,). residuals: in-sample residuals of that pair (n, q).
    certificate: bound c on the error of all fits, up to rounding; 0 for exact solves. In root mean square, for targets
    scaled to root mean square 1, residuals are off by at most c and the held-out predictions of a fold of m records by
    at most c sqrt(n/m) sqrt(1 + m/(4 alpha)).
    """

    errors: Any
    kernel_index: Any
    ridge_index: Any
    residuals: Any
    certificate: Any


def cross_validate(kernel, ridges, z, targets, *, num_folds=5, method="auto", steps=None, tolerance=None) -> GridFit:
    """Scores every (bandwidth, ridge) by k-fold cross-validation and fits the best pair of each target.

    kernel: a kernel whose leaves have a leading axis, one entry per bandwidth: RBF(lengthscale=jnp.array([0.5, 1.0])).
    ridges: (r,), in the objective's units; alpha is n ridge/2 in the folds too, as in scikit-learn's
    GridSearchCV(KernelRidge). z: (n,) or (n, d). targets: (n,) or (n, q). Folds are contiguous.
    method: 'auto' (low rank for the bandwidths where it is certified, Krylov for the others), 'low_rank', 'krylov', or
    'cholesky' to solve exactly from the start. Where the certificate exceeds the tolerance all the same, everything is
    solved again by Cholesky. tolerance: public; default 1e-5 for Krylov, 1e-4 for low rank, both 1e-10 in float64.
    steps: most Krylov steps per bandwidth (default 40, in float64 80); it stops below the tolerance.

    Certificates. Krylov: the largest relative residual s of a linear system; the in-sample residual alpha w is off by
    s. Low rank: trace(E)/alpha for the smallest alpha, because with A = K + alpha I, B = L L' + alpha I and r = alpha
    B^-1 y, alpha A^-1 y - r = -A^-1 E r has norm at most |E| |y|/alpha, and |E| <= trace(E) as E is positive
    semidefinite. Held-out predictions, f the fold and t the rest: with H = K_ft (K_tt + alpha I)^-1 and w = r_t/alpha
    the error is (E_ft - H E_tt) w, at most |(I, -H)| |E| |y_t|/alpha, and |H|^2 <= |K_ff|/(4 alpha) <= m/(4 alpha),
    as K_ft = K_ff^(1/2) C K_tt^(1/2) with |C| <= 1 and sqrt(k)/(k + alpha) <= 1/(2 sqrt(alpha)).

    Memory: about 3 n^2 floats whatever the grid, without the Gram matrix where low rank serves; map over many data
    sets with `jax.lax.map`, without batch_size (a batch waits for its slowest member, runs every method, and is
    slower on the CPU).
    """
    z = kernels.as_points(z)
    targets = ridge.as_columns(targets, z.dtype)
    problem = _Problem(kernel, jnp.asarray(ridges, targets.dtype), z.astype(targets.dtype), targets)
    plan = _plan(z.shape[0], num_folds)
    check.one_of(METHODS, method=method)
    if method == "cholesky":
        return _exact(problem, plan)
    name = targets.dtype.name
    limits = _Limits(
        steps=MAX_STEPS[name] if steps is None else steps,
        residual=TOLERANCE[name] if tolerance is None else tolerance,
        trace=TRACE_TOLERANCE[name] if tolerance is None else tolerance,
    )
    fit, certified = {"auto": _auto, "krylov": _krylov, "low_rank": _low_rank}[method](problem, plan, limits)

    # a loop, not cond: under vmap cond would solve everything twice for every data set
    def exactly(_):
        return (_exact(problem, plan), jnp.array(True))

    return jax.lax.while_loop(lambda pair: ~pair[1], exactly, (fit, certified))[0]


class _Limits(NamedTuple):
    """Most Krylov steps; largest certificate of a Krylov run and of a low-rank factor."""

    steps: int
    residual: Any
    trace: Any


class _Problem(NamedTuple):
    kernel: Any
    ridges: Any
    z: Any
    targets: Any

    def alphas(self):
        return ridge.alpha_of(self.ridges, self.z.shape[0]).astype(self.targets.dtype)

    def grams(self):
        """Function from one kernel of the grid to its Gram matrix; distances are shared."""
        if not hasattr(self.kernel, "of_squared_distances"):
            return lambda kernel: kernel.gram(self.z)
        squared = kernels.squared_distances(self.z)
        return lambda kernel: kernel.of_squared_distances(squared)


class _Plan(NamedTuple):
    """Contiguous folds: rows of each, padded to one length, and what is padding."""

    rows: np.ndarray
    real: np.ndarray
    train: np.ndarray


def _plan(num_records: int, num_folds: int) -> _Plan:
    bounds = ridge.fold_bounds(num_records, num_folds)
    longest = max(high - low for low, high in bounds)
    rows = np.array([np.minimum(np.arange(low, low + longest), high - 1) for low, high in bounds])
    real = np.array([np.arange(low, low + longest) < high for low, high in bounds])
    train = np.ones((num_records, num_folds + 1), bool)
    for fold, (low, high) in enumerate(bounds):
        train[low:high, fold] = False
    return _Plan(rows, real, train)


class _Scores(NamedTuple):
    """One bandwidth: errors (r, q), best ridge of each target, its in-sample residuals (n, q), certificate."""

    errors: Any
    residuals: Any
    certificate: Any
    ridge_index: Any


def _krylov(problem: _Problem, plan: _Plan, limits: _Limits):
    gram_of, alphas = problem.grams(), problem.alphas()
    fit = _best(
        jax.lax.map(lambda kernel: _lanczos(gram_of(kernel), alphas, problem.targets, plan, limits), problem.kernel)
    )
    return fit, fit.certificate <= limits.residual


def _low_rank(problem: _Problem, plan: _Plan, limits: _Limits):
    most = min(RANKS[-1], problem.z.shape[0])
    ranks = (*(rank for rank in RANKS if rank < most), most)
    scores = jax.lax.map(lambda kernel: _of_features(problem, kernel, plan, limits, ranks), problem.kernel)
    fit = _best(scores)
    return fit, fit.certificate <= limits.trace


def _auto(problem: _Problem, plan: _Plan, limits: _Limits):
    ranks = tuple(rank for rank in RANKS if 4 * rank <= problem.z.shape[0])  # below, Krylov is as fast
    if not ranks:
        return _krylov(problem, plan, limits)
    scores = jax.lax.map(lambda kernel: _of_features(problem, kernel, plan, limits, ranks), problem.kernel)
    served = scores.certificate <= limits.trace

    def complete(scores: _Scores) -> _Scores:
        gram_of, alphas = problem.grams(), problem.alphas()

        def one(item):
            kernel, own, served = item

            def by_krylov():
                return _lanczos(gram_of(kernel), alphas, problem.targets, plan, limits)

            return jax.lax.cond(served, lambda: own, by_krylov)

        return jax.lax.map(one, (problem.kernel, scores, served))

    scores = jax.lax.cond(jnp.all(served), lambda scores: scores, complete, scores)
    return _best(scores), jnp.all(scores.certificate <= jnp.where(served, limits.trace, limits.residual))


def _best(scores: _Scores) -> GridFit:
    """The best pair of each target among the scores of all bandwidths (leading axis)."""
    target = jnp.arange(scores.errors.shape[2])
    chosen = jnp.argmin(jnp.min(scores.errors, axis=1), axis=0).astype(jnp.int32)
    return GridFit(
        errors=scores.errors,
        kernel_index=chosen,
        ridge_index=scores.ridge_index[chosen, target],
        residuals=scores.residuals[chosen, :, target].T,
        certificate=jnp.max(scores.certificate),
    )


def _of_features(problem: _Problem, kernel, plan: _Plan, limits: _Limits, ranks) -> _Scores:
    """Scores from a pivoted Cholesky factor, at the first of the ranks that is certified; else certificate inf."""
    alphas, targets = problem.alphas(), problem.targets
    smallest, factor = jnp.min(alphas), low_rank.start(kernel, problem.z)
    allowed = {rank: share * factor.trace for rank, share in GIVE_UP.items()}
    certified = limits.trace * smallest

    def attempt(factor, ranks) -> _Scores:
        rank, *later = ranks
        factor = low_rank.extend(factor, kernel, problem.z, rank, STOP_EARLY * certified, allowed)

        def further(factor):
            return attempt(factor, later)

        hopeful = factor.trace <= allowed.get(rank, 0.0)
        otherwise = (lambda factor: jax.lax.cond(hopeful, further, refuse, factor)) if later else refuse
        return jax.lax.cond(factor.trace <= certified, solve, otherwise, factor)

    def solve(factor) -> _Scores:
        return _ridge_on_features(factor.rows, factor.trace / smallest, alphas, targets, plan)

    def refuse(factor) -> _Scores:
        (n, q), dtype = targets.shape, targets.dtype
        infinite = jnp.full((len(alphas), q), jnp.inf, dtype)
        return _Scores(infinite, jnp.zeros((n, q), dtype), jnp.array(jnp.inf, dtype), jnp.zeros(q, jnp.int32))

    return attempt(factor, ranks)


def _ridge_on_features(rows, certificate, alphas, targets, plan: _Plan) -> _Scores:
    """Scores of ridge regression on features L, given as L' (rank, n)."""
    rank, product = rows.shape[0], lambda a, b: jnp.matmul(a, b, precision=kernels.HIGHEST)
    slices = [slice(at[0], at[0] + int(real.sum())) for at, real in zip(plan.rows, plan.real, strict=True)]
    second = jnp.stack([product(rows[:, at], rows[:, at].T) for at in slices])
    first = jnp.stack([product(rows[:, at], targets[at]) for at in slices])
    # without each fold, and all records
    second, first = (
        jnp.sum(part, axis=0, keepdims=True) - jnp.concatenate([part, jnp.zeros_like(part[:1])])
        for part in (second, first)
    )
    systems = second[:, None] + alphas[None, :, None, None] * jnp.eye(rank, dtype=rows.dtype)[None, None]
    factors = jnp.linalg.cholesky(systems, symmetrize_input=False)
    right = jnp.broadcast_to(first[:, None], (*systems.shape[:3], first.shape[-1]))
    weights = jax.scipy.linalg.cho_solve((factors, True), right)

    left = [targets[at][None] - product(rows[:, at].T[None], weights[fold]) for fold, at in enumerate(slices)]
    errors = jnp.mean(jnp.stack([jnp.mean(part**2, axis=1) for part in left]), axis=0)
    chosen = jnp.argmin(errors, axis=0).astype(jnp.int32)
    residuals = targets - product(rows.T, weights[-1, chosen, :, jnp.arange(targets.shape[1])].T)
    return _Scores(errors, residuals, jnp.where(jnp.all(jnp.isfinite(errors)), certificate, jnp.inf), chosen)


class _Krylov(NamedTuple):
    """State of the Lanczos runs of all columns; arrays with a leading axis of steps fill up row by row.

    pivot, right: last row of the eliminated tridiagonal systems, (ridges, columns). unfinished: largest relative
    residual of all systems so far.
    """

    step: Any
    previous: Any
    current: Any
    norm: Any
    pivot: Any
    right: Any
    unfinished: Any
    diagonal: Any
    off_diagonal: Any
    basis: Any
    images: Any
    held_out: Any


def _lanczos(gram, alphas, targets, plan: _Plan, limits: _Limits) -> _Scores:
    """Scores of one bandwidth from Krylov runs."""
    steps, tolerance = limits.steps, limits.residual
    q, folds = targets.shape[1], plan.train.shape[1]
    mask = jnp.repeat(jnp.asarray(plan.train, gram.dtype), q, axis=1)
    start = mask * jnp.tile(targets, (1, folds))
    length = jnp.sqrt(jnp.sum(start**2, axis=0, keepdims=True))
    run = _run_lanczos(gram, mask, start, length, alphas, plan, steps, STOP_EARLY * tolerance)
    # rows that were never reached must not couple to the last one
    off_diagonal = jnp.where(jnp.arange(steps)[:, None] < run.step - 1, run.off_diagonal, 0.0)
    weights = _tridiagonal(run.diagonal, off_diagonal, alphas, length).reshape(steps, -1, folds, q)

    predicted = jnp.einsum("jrfq,jfsq->rfsq", weights[:, :, :-1], run.held_out, precision=kernels.HIGHEST)
    errors = _mean_squares(targets[plan.rows][None] - predicted, plan)
    chosen = jnp.argmin(errors, axis=0)
    of_best = weights[:, chosen, -1, jnp.arange(q)]
    residuals = alphas[chosen][None, :] * jnp.einsum("jq,jnq->nq", of_best, run.basis, precision=kernels.HIGHEST)
    fitted = jnp.einsum("jq,jnq->nq", of_best, run.images, precision=kernels.HIGHEST)
    left = jnp.sqrt(jnp.sum((targets - fitted - residuals) ** 2, axis=0)) / _one_if_zero(length[0, -q:])
    return _Scores(errors, residuals, jnp.maximum(run.unfinished, jnp.max(left)), chosen.astype(jnp.int32))


def _run_lanczos(gram, mask, start, length, alphas, plan: _Plan, steps: int, stop) -> _Krylov:
    (n, columns), folds = start.shape, plan.train.shape[1]
    q, dtype = columns // folds, gram.dtype

    def empty(*shape):
        return jnp.zeros((steps, *shape), dtype)

    floor = FREEZE[dtype.name] * n

    def advance(run: _Krylov) -> _Krylov:
        image = jnp.matmul(gram, run.current, precision=kernels.HIGHEST)
        direction = mask * image - run.norm * run.previous
        diagonal = jnp.sum(direction * run.current, axis=0, keepdims=True)
        direction = direction - diagonal * run.current
        norm = jnp.sqrt(jnp.sum(direction**2, axis=0, keepdims=True))
        alive = norm > floor
        norm = jnp.where(alive, norm, 0.0)
        factor = run.norm / run.pivot
        pivot = diagonal + alphas[:, None] - factor * run.norm
        right = jnp.where(run.step == 0, length, -factor * run.right)
        images = image.reshape(n, folds, q)

        def put(rows, row):
            return jax.lax.dynamic_update_index_in_dim(rows, row, run.step, 0)

        return _Krylov(
            step=run.step + 1,
            previous=run.current,
            current=jnp.where(alive, direction / jnp.where(alive, norm, 1.0), 0.0),
            norm=norm,
            pivot=pivot,
            right=right,
            unfinished=jnp.max(jnp.abs(right / pivot) * norm / _one_if_zero(length)),
            diagonal=put(run.diagonal, diagonal[0]),
            off_diagonal=put(run.off_diagonal, norm[0]),
            basis=put(run.basis, run.current[:, -q:]),
            images=put(run.images, images[:, -1]),
            held_out=put(run.held_out, _held_out(images, plan)),
        )

    first = _Krylov(
        step=jnp.int32(0),
        previous=jnp.zeros_like(start),
        current=start / _one_if_zero(length),
        norm=jnp.zeros_like(length),
        pivot=jnp.ones((alphas.shape[0], columns), dtype),
        right=jnp.zeros((alphas.shape[0], columns), dtype),
        unfinished=jnp.array(jnp.inf, dtype),
        diagonal=empty(columns),
        off_diagonal=empty(columns),
        basis=empty(n, q),
        images=empty(n, q),
        held_out=empty(*plan.rows.shape, q),
    )
    return jax.lax.while_loop(lambda run: (run.step < steps) & ~(run.unfinished <= stop), advance, first)


def _one_if_zero(value):
    return jnp.where(value > 0, value, 1.0)


def _held_out(images, plan: _Plan):
    """Rows of each fold from the column that left it out: (folds, longest, q) of images (n, folds + 1, q)."""
    return jnp.stack(
        [
            images[rows[0] : rows[0] + len(rows), fold] if real.all() else images[rows, fold]
            for fold, (rows, real) in enumerate(zip(plan.rows, plan.real, strict=True))
        ]
    )


def _mean_squares(left, plan: _Plan):
    """Mean over folds of the mean square of left (r, folds, longest, q) over the real rows: (r, q)."""
    weights = plan.real / plan.real.sum(axis=1, keepdims=True) / len(plan.real)
    return jnp.einsum("rfsq,fs->rq", left**2, jnp.asarray(weights, left.dtype), precision=kernels.HIGHEST)


def _tridiagonal(diagonal, off_diagonal, alphas, length):
    """(T + alpha I)^-1 e_1 length for every column and ridge, by elimination; (steps, r, columns).

    A frozen direction has a zero row in T, so its weight comes out 0.
    """
    shifted = diagonal[:, None, :] + alphas[None, :, None]
    coupling = off_diagonal[:, None, :]

    def eliminate(carry, row):
        pivot, right, above = carry
        entry, below = row
        factor = above / pivot
        pivot, right = entry - factor * above, -factor * right
        return (pivot, right, below), (pivot, right)

    right = jnp.broadcast_to(length, shifted.shape[1:])
    _, (pivots, rights) = jax.lax.scan(eliminate, (shifted[0], right, coupling[0]), (shifted[1:], coupling[1:]))
    pivots = jnp.concatenate([shifted[:1], pivots])
    rights = jnp.concatenate([right[None], rights])

    def substitute(later, row):
        pivot, right, above = row
        weight = (right - above * later) / pivot
        return weight, weight

    return jax.lax.scan(substitute, jnp.zeros_like(right), (pivots, rights, coupling), reverse=True)[1]


def _exact(problem: _Problem, plan: _Plan) -> GridFit:
    """The same grid by one Cholesky factor and inverse per bandwidth and ridge."""
    gram_of, alphas, targets = problem.grams(), problem.alphas(), problem.targets
    q = targets.shape[1]

    def one_ridge(gram, alpha):
        factor = ridge.cholesky(gram, alpha)
        weights = ridge.solve_refined(gram, alpha, factor, targets)
        identity = jnp.eye(gram.shape[0], dtype=gram.dtype)
        half = jax.scipy.linalg.solve_triangular(factor, identity, lower=True)
        left = []
        for rows, real in zip(plan.rows, plan.real, strict=True):
            inside = half[:, rows[real]]
            block = jnp.matmul(inside.T, inside, precision=kernels.HIGHEST)
            held_out = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(block), True), weights[rows[real]])
            left.append(jnp.mean(held_out**2, axis=0))
        return jnp.mean(jnp.stack(left), axis=0), alpha * weights

    def one_bandwidth(kernel) -> _Scores:
        gram = gram_of(kernel)
        errors, residuals = jax.lax.map(lambda alpha: one_ridge(gram, alpha), alphas)
        chosen = jnp.argmin(errors, axis=0).astype(jnp.int32)
        return _Scores(errors, residuals[chosen, :, jnp.arange(q)].T, jnp.zeros((), targets.dtype), chosen)

    return _best(jax.lax.map(one_bandwidth, problem.kernel))
