"""Rejections of `kruskal-wallis` at level 0.05 where the groups' values have one median, into groups.jsonl.

    python -m experiments.evidence.defaults.groups [--replicates 2000]

Laws of the values: normal; `ties`, four fifths of the records at the lower bound; `spread`, normal with three times
the sd in the last group, a null of medians and not of laws.
"""

import functools
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments import record
from experiments.evidence.defaults.shapes import EVEN, LEVEL, TENTH, shares
from jaxdp.data.dataset import CATEGORICAL, Column, Data, Domain

RECORD = Path(__file__).parent / "groups.jsonl"
LAWS = ("normal", "ties", "spread")
SMALL = "2/98"
NUMBERS, EPSILONS = (200, 1000), (0.5, 1.0, 2.0)
TIED, SPREAD = 0.8, 3.0


def design(key, *, n: int, num_groups: int, cuts, law) -> Data:
    """Groups with these shares, values of one median."""
    key_groups, key_values, key_ties = jax.random.split(key, 3)
    groups = jnp.searchsorted(cuts, jax.random.uniform(key_groups, (n,)))
    values = jax.random.normal(key_values, (n,)) / 12.0
    tied = jnp.where(jax.random.uniform(key_ties, (n,)) < TIED, -1.0, values)
    wide = jnp.where(groups == num_groups - 1, SPREAD, 1.0) * values
    values = jnp.stack([values, tied, wide])[law]
    return Data(groups, jnp.clip(values, -1.0, 1.0), None, Domain((Column(CATEGORICAL, num_groups),), (Column(),)))


def rows(replicates: int):
    """One row for each law, number of groups, balance and n."""
    keys = iter(jax.random.split(jax.random.key(53), 100))
    for num_groups in (2, 4):
        for balance in (EVEN, TENTH, SMALL):
            p = np.array([0.98 / (num_groups - 1)] * (num_groups - 1) + [0.02])
            p = p if balance == SMALL else shares(num_groups, balance)
            cuts = np.float32(np.cumsum(p)[:-1])
            for n in NUMBERS:
                for law, name in enumerate(LAWS):
                    head = {"groups": num_groups, "balance": balance, "law": name, "n": n}
                    made = functools.partial(design, n=n, num_groups=num_groups, cuts=cuts, law=law)
                    key = next(keys)
                    rates = {
                        str(epsilon): jaxdp.power.rejection_rate(
                            jaxdp.KruskalWallis(epsilon=epsilon), made, key, replicates, level=LEVEL
                        ).rate
                        for epsilon in EPSILONS
                    }
                    yield head | {"rates": rates, "replicates": replicates}


def table() -> str:
    """One line for each number of groups, balance and law; a column for each n and epsilon."""
    found: dict[tuple, dict] = {}
    replicates = 0
    for row in record.rows(RECORD):
        head = (row["groups"], row["balance"], row["law"])
        found.setdefault(head, {})[row["n"]] = row["rates"]
        replicates = row["replicates"]
    places = list(itertools.product(NUMBERS, EPSILONS))
    heads = ("groups", "balance", f"law ({replicates} nulls a cell)", *(f"n {n}, epsilon {e:g}" for n, e in places))
    lines = ([*head, *(f"{cells[n][str(e)]:.3f}" for n, e in places)] for head, cells in found.items())
    return record.markdown(heads, lines)


def main() -> None:
    args = record.command_line(__doc__, 2000).parse_args()
    if not args.table:
        record.write(RECORD, rows(args.replicates))
    print(table())


if __name__ == "__main__":
    main()
