"""True nulls given Z on which a test must keep its level before it may be a default.

    python -m experiments.evidence.defaults.nulls [--replicates 400] [--kinds NAME ...] [--tests NAME ...]

For each kind of columns with Z of the record: rejections by the default, by every test that needs a fifth fewer
records, and by those that are named. Writes one JSON line per (kind, null, epsilon, test) into nulls.jsonl and goes on
where it ends.
"""

import argparse
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.evidence.defaults.rule import NULLS, beaten, default_of, first_shape, records
from experiments.evidence.defaults.shapes import CODED, LEVEL, MIXED, NUMBER, TWO, Shape, cut, cuts_of, observed
from experiments.record import append, rows
from jaxdp import catalogue
from jaxdp.data import Column, Data, Domain
from jaxdp.data.dataset import CATEGORICAL, ORDINAL
from jaxdp.spec import Options

N, EPSILONS = 4000, (1.0, 4.0)


@dataclasses.dataclass(frozen=True)
class Null:
    """What Z does to both columns, which are independent given it. shares: of its strata, none of a continuous Z.

    moves: of what the columns are cut from, or equal to, by stratum; spreads: sds about it, by stratum.
    bend: given a continuous Z = 2 u^crowded - 1, u uniform, they move by a parabola of u between bend and -bend.
    What two columns of Z do is added.
    """

    name: str
    z: tuple[Column, ...]
    shares: tuple[float, ...] = ()
    moves: tuple[float, ...] = ()
    spreads: tuple[float, ...] = (1.0,)
    bend: float = 0.8
    crowded: float = 1.0

    def domain(self, shape: Shape, coded: bool) -> Domain:
        """The columns of the shape, given this Z."""
        return dataclasses.replace(shape.domain(coded), z=self.z)

    def design(self, shape: Shape, n: int, coded: bool):
        """key -> Data."""
        cuts = {name: cuts_of(count, shape.balance) for name, count in zip(("x", "y"), shape.levels, strict=True)}
        law = {name: np.float32(getattr(self, name)) for name in ("shares", "moves", "spreads", "bend", "crowded")}
        return functools.partial(sample, n=n, coded=coded, domain=self.domain(shape, coded), shape=shape, **law, **cuts)


RARE_STRATA = {"shares": (0.05, 0.05, 0.45, 0.45), "moves": (0.0, 0.0, -0.8, -0.8), "spreads": (1.0, 1.0, 0.2, 0.2)}
TURN = {"shares": (0.25,) * 4, "moves": (-0.8, 0.8, 0.8, -0.8), "spreads": (1.0,) * 4}
NULL_LAWS = {
    CODED: (
        Null("spread in rare strata", (Column(CATEGORICAL, 4),), **RARE_STRATA),
        Null("turns with an ordered Z", (Column(ORDINAL, 4),), **TURN),
    ),
    NUMBER: (Null("bends with Z", (Column(),)), Null("bends with a crowded Z", (Column(),), crowded=4.0)),
    TWO: (
        Null("bends with both", (Column(), Column())),
        Null("bends with both, crowded", (Column(), Column()), crowded=4.0),
    ),
    MIXED: (
        Null("spread in rare strata, bends", (Column(CATEGORICAL, 4), Column()), **RARE_STRATA),
        Null("turns with an ordered Z, bends with a crowded Z", (Column(ORDINAL, 4), Column()), crowded=4.0, **TURN),
    ),
}


def sample(key, *, n: int, coded: bool, domain: Domain, shape: Shape, shares, moves, spreads, bend, crowded, x, y):
    """Data of columns that Z moves alike, and no more. x, y: places at which they are cut."""
    key_z, *keys = jax.random.split(key, 3)
    own = jax.random.split(key_z, len(domain.z)) if len(domain.z) > 1 else [key_z]
    columns, move, spread = [], 0.0, spreads[0]
    for column, one in zip(domain.z, own, strict=True):
        if column.levels:
            columns.append(jax.random.categorical(one, jnp.log(shares), shape=(n,)))
            move, spread = move + jnp.asarray(moves)[columns[-1]], jnp.asarray(spreads)[columns[-1]]
        else:
            u = jax.random.uniform(one, (n,))
            columns.append(2.0 * u**crowded - 1.0)
            move = move + bend * (2.0 * (2.0 * u - 1.0) ** 2 - 1.0)
    z = jnp.stack(columns, axis=1) if len(columns) > 1 else columns[0]
    sides = [
        observed(cut(move + spread * jax.random.normal(own, (n,)), column, at), column, coded)
        for own, column, at in zip(keys, shape.columns, (x, y), strict=True)
    ]
    return Data(*sides, z, domain)


def rate(entry: catalogue.Entry, null: Null, shape: Shape, epsilon: float, replicates: int, n: int = N) -> float:
    """Rejections of the null by the test as a query builds it."""
    coded = entry.spec.columns.coded
    how = {"coded": null.domain(shape, True)}
    test = entry.build(epsilon, null.domain(shape, coded), Options(num_records=n), **how)
    design = null.design(shape, n, coded)
    return float(jaxdp.power.rejection_rate(test, design, jax.random.key(47), replicates, level=LEVEL).rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--kinds", nargs="+", help="these kinds of columns alone")
    parser.add_argument("--tests", nargs="+", default=(), help="these tests too")
    args = parser.parse_args()
    keys = ("kind", "null", "epsilon", "test")
    done = {tuple(row[key] for key in keys) for row in rows(NULLS)}
    for kind, cells in records().items():
        if args.kinds and kind not in args.kinds:
            continue
        shape, default = first_shape(cells), default_of(cells)
        better = beaten(cells, default.name, default.spec.suitability(shape.domain(True)))
        for null in NULL_LAWS.get(shape.z, ()):
            for name in dict.fromkeys((default.name, *better, *args.tests)):
                for epsilon in EPSILONS:
                    if (kind, null.name, epsilon, name) in done:
                        continue
                    found = rate(catalogue.find(name), null, shape, epsilon, args.replicates)
                    row = dict(zip(keys, (kind, null.name, epsilon, name), strict=True))
                    append(NULLS, [row | {"n": N, "rate": round(found, 4), "replicates": args.replicates}])


if __name__ == "__main__":
    main()
