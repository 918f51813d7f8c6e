"""Rounding of kernel ridge residuals against its stated bounds: adversarial systems, extended-precision reference.

python -m experiments.evidence.audit.ridge               # 10 000 systems of the release path, n = 2 to 2000; ridge.json
python -m experiments.evidence.audit.ridge --share 0.01  # a hundredth of them

Reference: the exact kernel of the float64 points. Up to 20 records by elimination with 60-digit decimals; beyond, by
refinement in 80-bit floats until the residual of the system stops falling. Ratios are (error found)/(bound stated).
"""

import argparse
import dataclasses
import decimal
import functools
import json
import time
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.record import provenance
from jaxdp.independence.continuous.residual_products import residual_products
from jaxdp.statistics.kernel_ridge import kernels, ridge, ridge_error

HERE = Path(__file__).parent
SIZES = {2: 1500, 3: 1500, 5: 1500, 8: 1500, 12: 1200, 20: 800, 40: 1200, 100: 600, 300: 160, 1000: 30, 2000: 10}
DECIMALS_UP_TO = 20
EXTENDED = np.longdouble
POINTS = ("normal", "duplicates", "one point", "clusters", "far out", "grid")
TARGETS = ("signs", "alternating", "worst direction", "uniform", "constant")
BOUNDS = ("residual", "sum", "vector", "one_sided")


@dataclasses.dataclass(frozen=True)
class System:
    """A regression to attack: kernel class, bandwidth, ridge, points (n, d) and targets (n, 2) in [-1, 1]."""

    kernel: type
    lengthscale: float
    ridge: float
    z: np.ndarray
    targets: np.ndarray


def smallest_ridge(n: int, entry_error: float) -> float:
    """The least ridge that `ridge_error` lets through, a hair above it."""
    contraction = 4.0 * n * (3.0 * n + 1.0) * 2.0**-53
    by_factor = 2.0 / (0.25 / contraction - 1.0)
    return max(by_factor, 8.0 * entry_error * 2.0**-53) * (1 + 1e-9)


def draw(rng, n: int) -> System:
    """One adversarial system."""
    d = int(rng.integers(1, 4))
    z = rng.normal(size=(n, d))
    kind = rng.choice(POINTS)
    if kind == "duplicates":
        z = z[rng.integers(0, max(1, n // 3), n)]
    elif kind == "one point":
        z = np.repeat(z[:1], n, axis=0)
    elif kind == "clusters":
        z = np.round(z) + 1e-8 * z
    elif kind == "far out":
        z = 1e7 + z
    elif kind == "grid":
        z = np.linspace(-1.0, 1.0, n)[:, None] * np.ones((1, d))
    kernel = kernels.RBF if rng.random() < 0.6 else kernels.LaplaceKernel
    lengthscale = 10.0 ** rng.choice([rng.uniform(-2, 2), rng.uniform(-9, 9), 30.0 * rng.choice([-1, 1])])
    least = smallest_ridge(n, kernel().entry_error(d))
    value = least if rng.random() < 0.4 else 10.0 ** rng.uniform(np.log10(least), 2.0)
    targets = np.stack([target(rng, z, kernel(lengthscale=lengthscale), value) for _ in range(2)], axis=1)
    return System(kernel, lengthscale, value, z, targets)


def target(rng, z, kernel, value):
    """Targets (n,) in [-1, 1]."""
    n, kind = len(z), rng.choice(TARGETS)
    if kind == "worst direction" and n <= 300:
        gram = np.exp(-np.sum((z[:, None] - z[None]) ** 2, axis=2) / (2.0 * kernel.lengthscale**2))
        vector = np.linalg.eigh(np.nan_to_num(gram))[1][:, 0]  # the direction that the fit explains least
        return vector / np.max(np.abs(vector))
    if kind == "alternating":
        return np.where(np.argsort(np.argsort(z[:, 0])) % 2 == 0, 1.0, -1.0)
    return {"uniform": rng.uniform(-1, 1, n), "constant": np.ones(n)}.get(kind, rng.choice([-1.0, 1.0], n))


@functools.partial(jax.jit, static_argnums=0)
def released(kernel, lengthscale, value, z, targets):
    """Residuals (n, 2), their products and their sums as a release computes them: jitted float64."""
    made = kernel(lengthscale=lengthscale)
    fitted = ridge.krr_residuals(made, value, z, targets)
    products = residual_products(jaxdp.Data(targets[:, 0], targets[:, 1], z), made, value)[:, 0, 0]
    one_sided = jax.numpy.dot(targets[:, 0], fitted[:, 1], precision="highest")
    return fitted, products, jax.numpy.sum(products), one_sided


@functools.partial(jax.jit, static_argnums=(1, 2))
def bounds(value, n: int, entry_error: float):
    """The four stated bounds; NaN for a ridge that is refused."""
    return jax.numpy.stack(
        [
            bound(value, n, entry_error)
            for bound in (
                ridge_error.residual_error,
                ridge_error.sum_error,
                ridge_error.vector_error,
                ridge_error.one_sided_error,
            )
        ]
    )


def exact_residuals(system: System) -> np.ndarray:
    """Residuals (n, 2) in extended precision, each to about 1e-18 of the bound's own scale or better."""
    return _by_decimals(system) if len(system.z) <= DECIMALS_UP_TO else _by_refinement(system)


def _by_decimals(system: System) -> np.ndarray:
    """Gaussian elimination of K + alpha I with 60 digits; the matrix is positive definite, so no pivoting."""
    n, number = len(system.z), decimal.Decimal
    with decimal.localcontext(decimal.Context(prec=60, Emin=-999999, Emax=999999)):
        scale, alpha = number(system.lengthscale), n * number(system.ridge) / 2
        points = [[number(float(v)) for v in row] for row in system.z]
        below = [[_kernel(system.kernel, a, b, scale) for b in points[: i + 1]] for i, a in enumerate(points)]
        left = [[below[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
        right = [[number(float(v)) for v in row] for row in system.targets]
        for i in range(n):
            left[i][i] += alpha
        for i in range(n):
            for j in range(i + 1, n):
                factor = left[j][i] / left[i][i]
                left[j][i:] = [a - factor * b for a, b in zip(left[j][i:], left[i][i:], strict=True)]
                right[j] = [a - factor * b for a, b in zip(right[j], right[i], strict=True)]
        weights = [[number(0)] * 2 for _ in range(n)]
        for i in reversed(range(n)):
            for c in range(2):
                known = sum((left[i][j] * weights[j][c] for j in range(i + 1, n)), number(0))
                weights[i][c] = (right[i][c] - known) / left[i][i]
        return np.array([[EXTENDED(str(alpha * w)) for w in row] for row in weights])


def _kernel(kind, a, b, scale):
    squared = sum(((p - q) ** 2 for p, q in zip(a, b, strict=True)), decimal.Decimal(0))
    exponent = squared / (2 * scale**2) if kind is kernels.RBF else squared.sqrt() / scale
    return (-exponent).exp() if exponent < 10**5 else decimal.Decimal(0)


def _by_refinement(system: System) -> np.ndarray:
    """Refinement in 80-bit floats with a float64 factor of the same matrix."""
    from scipy.linalg import cho_factor, cho_solve

    z, scale = system.z.astype(EXTENDED), EXTENDED(system.lengthscale)
    squared = sum((column[:, None] - column[None, :]) ** 2 for column in z.T)
    gram = np.exp(-squared / (2 * scale**2) if system.kernel is kernels.RBF else -np.sqrt(squared) / scale)
    alpha, targets = EXTENDED(len(z)) * EXTENDED(system.ridge) / 2, system.targets.astype(EXTENDED)
    factor = cho_factor((gram + alpha * np.eye(len(z), dtype=EXTENDED)).astype(float))
    weights, last = np.zeros_like(targets), np.inf
    for _ in range(60):
        rest = targets - gram @ weights - alpha * weights
        size = float(np.linalg.norm(rest.astype(float)))
        if size >= 0.5 * last:
            break
        weights, last = weights + cho_solve(factor, rest.astype(float)).astype(EXTENDED), size
    return alpha * weights


def ratios(system: System) -> dict[str, float]:
    """Error over bound, for each of the four bounds."""
    n, d = system.z.shape
    with jax.enable_x64(True):
        found = released(system.kernel, system.lengthscale, system.ridge, system.z, system.targets)
        fitted, products, total, one_sided = (np.asarray(part).astype(EXTENDED) for part in found)
        stated = np.asarray(bounds(system.ridge, n, system.kernel().entry_error(d)))
    exact = exact_residuals(system)
    wanted, targets = exact[:, 0] * exact[:, 1], system.targets.astype(EXTENDED)
    errors = (
        np.max(np.sqrt(np.sum((fitted - exact) ** 2, axis=0) / n)),
        # the vector of products in L1 has this bound too
        max(abs(total - np.sum(wanted)), np.sum(np.abs(products - wanted))),
        np.max(np.abs(products - wanted)),
        abs(one_sided - np.sum(targets[:, 0] * exact[:, 1])),
    )
    return {name: float(error) / float(bound) for name, error, bound in zip(BOUNDS, errors, stated, strict=True)}


def attack(sizes: dict[int, int], seed: int, progress=lambda done: None) -> dict:
    """Largest ratios over `sizes` (records -> systems), and how many lie above 1 (or are NaN)."""
    rng, largest, above, worst = np.random.default_rng(seed), dict.fromkeys(BOUNDS, 0.0), 0, {}
    by_size: dict[int, float] = {}
    for n, count in sizes.items():
        for _ in range(count):
            system = draw(rng, n)
            found = ratios(system)
            above += not all(value <= 1.0 for value in found.values())
            for name in BOUNDS:
                if found[name] > largest[name]:
                    largest[name] = found[name]
                    worst[name] = {
                        "n": n,
                        "kernel": system.kernel.__name__,
                        "lengthscale": system.lengthscale,
                        "ridge": system.ridge,
                    }
            by_size[n] = max(by_size.get(n, 0.0), found["residual"])
        progress(n)
    return {
        "systems": sum(sizes.values()),
        "above": above,
        "largest": largest,
        "worst": worst,
        "residual_by_records": by_size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    sizes = {n: max(1, round(count * args.share)) for n, count in SIZES.items()}
    started = time.perf_counter()

    def done(n):
        return print(f"n = {n}: {time.perf_counter() - started:.0f} s", flush=True)

    record = {"records": sizes, "seed": args.seed, **attack(sizes, args.seed, done), **provenance()}
    record["seconds"] = round(time.perf_counter() - started, 1)
    (args.out / "ridge.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps({key: record[key] for key in ("systems", "above", "largest", "residual_by_records")}, indent=1))


if __name__ == "__main__":
    main()
