"""Other windows for `contrast-gcm`, tried on the nulls of the suite: what they would gain and what they would lose.

    python -m experiments.evidence.level.windows [--replicates 100] [--depths 2 3]

Windows of m records, of which all that is linear in Z is projected out (rank r = m - d - 1), add
sign(u'v) min(1, |u|/(c sqrt(r))) min(1, |v|/(c sqrt(r))); r = 1 is the statistic of `contrast-gcm` without its caliper.
W = (1 + g) T - g T_s takes off what records of the same class (number modulo s), s^(1/d) times as far apart, add.
n = 1000, epsilon 1, one JSON line for each m and g: `rate`: variance of W per record, the third largest of all nulls;
`power_z`: mean over standard deviation (noise included) at a correlation of 0.15 given Z; `lost`: nulls rejected more
than 0.08 of the time, by normal law; `worst`: the five largest of these levels. Left out are steps, sine 12 and
"uniform, noise 0.1", which are lost by all.
"""

import argparse
import functools
import math
from pathlib import Path
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.level import nulls
from experiments.record import Recorder
from jaxdp.statistics.neighbours import hilbert

HERE = Path(__file__).parent
RECORDS, EPSILON, SCALE, CURVES, SEED = 1000, 1.0, 0.125, 4, 7
CLASSES = {2: 16, 3: 64}
GAINS = (0.0, 0.05, 0.1, 0.15, 0.2, 1 / 3)
NAMES = [name for name in nulls.NULLS if not nulls.find(name).binary and "sites" not in name]
LOST_BY_ALL = ("steps", "sine 12", "uniform, noise 0.1")
EFFECT = 0.15
POWER = "power"


def windows(values, size):
    return jnp.stack([values[r : values.shape[0] - size + 1 + r] for r in range(size)])


def projected(values, basis):
    values = values - values.mean(0)
    for direction in basis:
        values = values - (values * direction).sum(0) * direction
    return values


def basis_of(axes):
    found: list = []
    for axis in axes:
        left = projected(axis, found)
        length, whole = (left**2).sum(0), ((axis - axis.mean(0)) ** 2).sum(0)
        found.append(left * jnp.where(length > 1e-10 * whole, 1.0 / jnp.sqrt(jnp.where(length > 0, length, 1.0)), 0.0))
    return found


def total(x, y, z, known, group, size):
    """The sum over windows of one order."""
    basis = basis_of([windows(z[:, j], size) for j in range(z.shape[1])])
    u, v = projected(windows(x, size), basis), projected(windows(y, size), basis)
    rank = size - z.shape[1] - 1
    lengths = [jnp.minimum(1.0, jnp.sqrt((side**2).sum(0) / rank) / SCALE) for side in (u, v)]
    groups = windows(group, size)
    kept = windows(known, size).min(0) * (groups[0] == groups[-1])
    return (jnp.sign((u * v).sum(0)) * lengths[0] * lengths[1] * kept).sum()


@functools.partial(jax.jit, static_argnums=3)
def sums(x, y, z, sizes):
    """T and T_s for each size of windows, the mean over the curves: (2, sizes)."""
    count, depth = z.shape
    place, known = 0.5 * (z + 1.0), jnp.all(jnp.abs(z) < 1.0, axis=1).astype(float)
    found = 0.0
    for curve in range(CURVES):
        turn, shift = hilbert.public_motion(depth, curve)
        high, low = hilbert.hilbert_key(hilbert.moved(place, turn, shift), min(60 // depth, 30))
        rows = []
        for classes in (1, CLASSES[depth]):
            group = jnp.arange(count) % classes
            order = jnp.lexsort((low, high, group))
            one = [total(x[order], y[order], z[order], known[order], group[order], size) for size in sizes]
            rows.append(jnp.stack(one))
        found = found + jnp.stack(rows)
    return found / CURVES


def dependent(depth, seed):
    """x, y, z with a correlation given Z."""
    rng = np.random.default_rng(100 + seed)
    z = rng.standard_normal((RECORDS, depth))
    mean = 1.5 * np.sin(z).sum(1) / math.sqrt(depth)
    own, other = rng.standard_normal((2, RECORDS))
    y = mean + EFFECT * own + math.sqrt(1 - EFFECT**2) * other
    return [nulls.scaled(values, (-nulls.BOUND, nulls.BOUND)) for values in (mean + own, y, z)]


def drawn(depth, replicates, sizes):
    """name -> (replicates, 2, sizes)."""
    found = {}
    for name in NAMES:
        x, y, z = nulls.samples(nulls.find(name), RECORDS, depth, replicates, SEED, False)
        found[name] = np.array([sums(x[i], y[i], z[i], sizes) for i in range(replicates)])
    found[POWER] = np.array([sums(*dependent(depth, i), sizes) for i in range(replicates)])
    return found


def level(shift: float) -> float:
    """Rejections at 0.05 where the mean is this many standard deviations from 0."""
    law = NormalDist()
    return 1 - law.cdf(1.96 - shift) + law.cdf(-1.96 - shift)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3])
    args = parser.parse_args()
    recorder = Recorder(HERE, "windows")
    with jax.enable_x64(True):
        for depth in args.depths:
            sizes = (depth + 2, depth + 3, 2 * (depth + 1))
            found = drawn(depth, args.replicates, sizes)
            for place, size in enumerate(sizes):
                for gain in GAINS:
                    values = {k: (1 + gain) * v[:, 0, place] - gain * v[:, 1, place] for k, v in found.items()}
                    of_nulls = {k: v for k, v in values.items() if k not in (*LOST_BY_ALL, POWER)}
                    rate = sorted(float(v.var()) / RECORDS for v in of_nulls.values())[-3]
                    noise = 2 * (2 * size - 1) * (1 + 2 * gain) * math.sqrt(2) / EPSILON
                    spread = math.sqrt(rate * RECORDS + noise**2)
                    levels = sorted(((level(float(v.mean()) / spread), k) for k, v in of_nulls.items()), reverse=True)
                    row = recorder.add(
                        depth=depth,
                        records=size,
                        gain=round(gain, 3),
                        rate=round(rate, 2),
                        power_z=round(float(values[POWER].mean()) / spread, 2),
                        lost=sum(one > 0.08 for one, _ in levels),
                        worst={k: round(one, 2) for one, k in levels[:5]},
                        replicates=args.replicates,
                    )
                    print(row)


if __name__ == "__main__":
    main()
