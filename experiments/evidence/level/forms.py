"""Other forms of `contrast-gcm` given two columns, tried: records for power 0.8, and level on the nulls of the suite.

    python -m experiments.evidence.level.forms [--replicates 60] [--minutes 20]

A window of m records, of which 1 and Z are projected out, leaves residuals u of x and v of y in m - 3 dimensions. Their
coordinates are taken along the directions that bends of Z move least, next least, ..., and weighted by `weights`; the
window adds sign(u'v) min(1, |u|/(c sqrt r)) min(1, |v|/(c sqrt r)), r the sum of the squared weights ("sign"), or the
product of u and v, each over c sqrt r and cut to length one ("cosine"). Of one direction that is today's product.
`closest`: the share of windows that count. "fitted" forms compare records of a window with their mean alone, after a
least-squares fit of 1, z, z^2 to all records at no cost of privacy. Sensitivity: 2 (2m - 1) for all of them.

A null variance of `rate` times Q (sum of squared terms, 1.19 times the mean of Var T/Q over smooth nulls, as 1.8 is of
today's), at least `FLOOR` in the units of the squared signal, and Laplace noise of the whole budget make the p-value.
One JSON line for each form and law ("found": share of p <= 0.05, at n = 1000), and one for each form ("records").
"""

import argparse
import dataclasses
import math
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from experiments.evidence.level import squares
from experiments.record import append, rows
from jaxdp.statistics.neighbours import hilbert

RECORD = Path(__file__).parent / "forms.jsonl"
N, EFFECT, LEVEL, DRAWS, WANTED = 1000, 0.15, 0.05, 40, 0.8
EPSILONS = (1.0, 2.0, 8.0, 50.0)
SIZES, POWER_REPLICATES = (700, 1000, 1400), 150
SMOOTH = ("linear", "sine 3", "interaction", "skewed noise", "t2", "correlated Z", "uniform, sine 3", "two clusters")
MARGIN = 1.19  # of the rate that is charged over the mean of the measured ones
FLOOR = 2.64  # n times the squared signal of a record: 0.75 n today
SEED = 20261128


@dataclasses.dataclass(frozen=True)
class Form:
    size: int
    weights: tuple[float, ...] = (1.0,)
    closest: float = 1.0
    curves: int = 8
    width: float = 0.125
    kernel: str = "sign"
    fitted: bool = False


FORMS = {
    "today": Form(4, curves=4),
    "8 curves": Form(4),
    "8 curves, closest 0.9": Form(4, closest=0.9),
    "8 curves, clip 1.5 times as wide": Form(4, width=0.1875),
    "5 records, all": Form(5, (1.0, 1.0)),
    "5 records, all, closest 0.9": Form(5, (1.0, 1.0), 0.9),
    "5 records, all, closest 0.8": Form(5, (1.0, 1.0), 0.8),
    "5 records, all, closest 0.8, cosine": Form(5, (1.0, 1.0), 0.8, kernel="cosine"),
    "5 records, half of the most bent": Form(5, (1.0, 0.5), 0.9),
    "6 records, all, closest 0.8": Form(6, (1.0, 1.0, 1.0), 0.8),
    "6 records, 0.3 of the most bent": Form(6, (1.0, 1.0, 0.3), 0.9),
    "6 records less the most bent": Form(6, (1.0, 1.0, 0.0), 0.9),
    "7 records less the most bent, closest 0.9": Form(7, (1.0, 1.0, 1.0, 0.0), 0.9),
    "7 records less the most bent, closest 0.8": Form(7, (1.0, 1.0, 1.0, 0.0), 0.8),
    "pairs, fitted": Form(2, fitted=True),
    "triples, fitted": Form(3, (1.0, 1.0), fitted=True),
}


def windows(values, size):
    return jnp.stack([values[r : values.shape[0] - size + 1 + r] for r in range(size)])


def off(row, basis, times=2):
    for _ in range(times):
        row = row - row.mean(0)
        for direction in basis:
            row = row - (row * direction).sum(0) * direction
    return row


def unit(row, whole):
    square = (row**2).sum(0)
    kept = square > 1e-12 * whole
    return row * jnp.where(kept, 1.0 / jnp.sqrt(jnp.where(kept, square, 1.0)), 0.0)


def directions(axes, scores, rank, bent: bool):
    """`rank` unit vectors (m, windows) orthogonal to 1 (and to the axes), those that bends move least first."""
    basis: list = []
    for axis in axes if bent else ():
        basis.append(unit(off(axis, basis), ((axis - axis.mean(0)) ** 2).sum(0)))
    found = []
    for row in scores[:rank]:
        found.append(unit(off(row, basis + found), 0.0))
    if not bent or rank == 1:
        return found
    first, second = (axis - axis.mean(0) for axis in axes)
    bends = (first**2, second**2, math.sqrt(2.0) * first * second)
    seen = jnp.stack([jnp.stack([(one * bend).sum(0) for bend in bends]) for one in found])
    _, turned = jnp.linalg.eigh(jnp.einsum("abw,cbw->wac", seen, seen))
    return list(jnp.einsum("kmw,wkj->jmw", jnp.stack(found), turned))


def coordinates(axes, scores, values, form):
    """Weighted coordinates (r, windows) of x and of y."""
    rank = form.size - 1 if form.fitted else form.size - 3
    found = directions(axes, scores, rank, not form.fitted)
    weighted = [(one, weight) for one, weight in zip(found, form.weights, strict=True) if weight]
    return [
        jnp.stack([weight * (one * windows(side, form.size)).sum(0) for one, weight in weighted]) for side in values
    ]


def terms(sides, form):
    width = form.width * math.sqrt(sum(weight**2 for weight in form.weights))
    lengths = [jnp.sqrt((side**2).sum(0)) for side in sides]
    if form.kernel == "sign":
        sizes = [jnp.minimum(1.0, length / width) for length in lengths]
        return jnp.sign((sides[0] * sides[1]).sum(0)) * sizes[0] * sizes[1]
    cut = [side / jnp.maximum(width, length) for side, length in zip(sides, lengths, strict=True)]
    return (cut[0] * cut[1]).sum(0)


def residual(values, z):
    design = jnp.column_stack([jnp.ones(len(z)), z, z**2, z[:, :1] * z[:, 1:]])
    return values - design @ jnp.linalg.lstsq(design, values)[0]


@jax.jit
def sums(x, y, z, key):
    """T and Q of every form, (forms, 2)."""
    count = x.shape[0]
    place, known = 0.5 * (z + 1.0), jnp.all(jnp.abs(z) < 1.0, axis=1)
    key_scores, key_ties = jax.random.split(key)
    scores, ties = jax.random.normal(key_scores, (4, count)), jax.random.uniform(key_ties, (count,))
    table = (x, y, residual(x, z), residual(y, z), z[:, 0], z[:, 1], known, *scores)

    def along_curve(turn, shift):
        high, low = hilbert.hilbert_key(hilbert.moved(place, turn, shift), 20)
        order = jnp.lexsort((ties, low, high))
        x, y, x_fitted, y_fitted, first, second, known, *scores = (column[order] for column in table)
        sides = {False: (x, y), True: (x_fitted, y_fitted)}
        return jnp.stack([one(sides[form.fitted], first, second, known, scores, form) for form in FORMS.values()])

    def one(values, first, second, known, scores, form):
        axes = [windows(axis, form.size) for axis in (first, second)]
        wide = 0.5 * jnp.maximum(*(jnp.ptp(axis, axis=0) for axis in axes))
        kept = (wide <= 3.0 * math.sqrt(form.size / 4 / count)) & jnp.all(windows(known, form.size), axis=0)
        wide = jnp.where(kept, wide, jnp.inf)
        kept = kept & (wide <= jnp.sort(wide)[min(int(form.closest * count), len(wide)) - 1])
        sides = coordinates(axes, [windows(row, form.size) for row in scores], values, form)
        found = jnp.where(kept, terms(sides, form), 0.0)
        return jnp.stack([found.sum(), (found**2).sum()])

    return jax.lax.map(lambda motion: along_curve(*motion), MOTIONS)


_motions = [hilbert.public_motion(2, curve) for curve in range(8)]
MOTIONS = tuple(np.stack(part) for part in zip(*_motions, strict=True))


def drawn(law: str, n: int, replicates: int):
    """Sums (replicates, forms, 2)."""
    x, y, z = dependent(n, replicates) if law == "dependent" else squares.drawn(law, 2, n, replicates)
    found = np.stack([np.asarray(sums(x[i], y[i], z[i], jax.random.key(i))) for i in range(len(x))])
    return np.stack([found[:, : form.curves, j].mean(1) for j, form in enumerate(FORMS.values())], axis=1)


def dependent(n: int, replicates: int):
    """As in `experiments.evidence.defaults`: uniform Z, which moves x up and y down, bounds of four residual sds."""
    rng = np.random.default_rng(SEED)
    z = rng.uniform(-1, 1, (replicates, n, 2))
    own, other = rng.standard_normal((2, replicates, n))
    y = EFFECT * own + math.sqrt(1 - EFFECT**2) * other
    return *(np.clip(side / 4, -1, 1) for side in (own + 0.5 * z.mean(2), y - 0.5 * z.mean(2))), z


def p_value(total, sd, scale):
    """Two-sided, of a normal plus a Laplace law."""
    t, s = np.abs(total) / sd, scale / sd
    low, high = (0.5 / s**2 + sign * t / s + norm.logcdf(-sign * t - 1 / s) for sign in (-1, 1))
    return 2 * (norm.sf(t) + 0.5 * np.exp(low) - 0.5 * np.exp(high))


def found(values, form, rate, floor, epsilon, n):
    """Share of p-values at most `LEVEL`; values (replicates, 2)."""
    scale = 2 * (2 * form.size - 1) / epsilon
    noise = scale * np.random.default_rng(SEED).laplace(size=(len(values), DRAWS))
    sd = np.sqrt(np.maximum(rate * values[:, 1:], floor * n))
    return float(np.mean(p_value(values[:, :1] + noise, sd, scale) <= LEVEL))


def records(powers, form, rate, floor, epsilon):
    """Records at which a normal law of T, with moments between those measured, is found with `WANTED`."""
    sizes = np.arange(min(powers), max(powers) + 1, 5)

    def between(of):
        return np.interp(np.log(sizes), np.log(list(powers)), [of(values) / n for n, values in powers.items()]) * sizes

    mean, squared = between(lambda v: v[:, 0].mean()), between(lambda v: v[:, 1].mean())
    spread = np.sqrt(between(lambda v: v[:, 0].var(ddof=1)).mean() / sizes.mean() * sizes)
    scale, rng = 2 * (2 * form.size - 1) / epsilon, np.random.default_rng(SEED)
    total = mean + spread * rng.standard_normal((4000, 1)) + scale * rng.laplace(size=(4000, 1))
    power = (p_value(total, np.sqrt(np.maximum(rate * squared, floor * sizes)), scale) <= LEVEL).mean(0)
    return int(sizes[np.argmax(power >= WANTED)]) if power.max() >= WANTED else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=20.0)
    args = parser.parse_args()
    ends = time.monotonic() + 60 * args.minutes
    with jax.enable_x64(True):
        smooth = {law: drawn(law, N, args.replicates) for law in SMOOTH}
        powers = {n: drawn("dependent", n, POWER_REPLICATES) for n in SIZES}
        rates, floors = {}, {}
        for j, (name, form) in enumerate(FORMS.items()):
            measured = [values[:, j, 0].var(ddof=1) / values[:, j, 1].mean() for values in smooth.values()]
            signal = powers[N][:, j, 0].mean() / N / EFFECT
            rates[name], floors[name] = MARGIN * float(np.mean(measured)), FLOOR * signal**2
            of_form = {n: values[:, j] for n, values in powers.items()}
            needed = {e: records(of_form, form, rates[name], floors[name], e) for e in EPSILONS}
            row = {"form": name, "rate": round(rates[name], 2), "signal": round(signal, 3), "records": needed}
            append(RECORD, [row])
        done = {row["law"] for row in rows(RECORD) if "law" in row}
        for law in squares.laws()[len(squares.DEPENDENT) :]:
            if law in done:
                continue
            if time.monotonic() > ends:
                return
            values = smooth[law] if law in smooth else drawn(law, N, args.replicates)
            shares = {
                name: [round(found(values[:, j], form, rates[name], floors[name], e, N), 3) for e in EPSILONS]
                for j, (name, form) in enumerate(FORMS.items())
            }
            append(RECORD, [{"law": law, "n": N, "epsilons": EPSILONS, "replicates": args.replicates, "found": shares}])


if __name__ == "__main__":
    main()
