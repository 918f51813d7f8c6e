"""jaxdp beside other ways to a private test: same data, same epsilon (replacement of one record), rejections at 0.05.

    python -m experiments.evidence.compared [--replicates 200] [--parts NAME ...] [--out FILE]

One JSON line per (part, n, epsilon, law, method); a run goes on where the file ends. Parts: two columns on public
bounds of 4 sd (laws of `experiments.evidence.power`), two groups (means differ by 0 or 0.5 sd, bounds of 5 sd), a 3 x 3
table (independent, or the diagonal three times as likely). Tests of jaxdp are built as the command line builds them.
"three columns": X = 0.7 Z + a, Y = 0.7 Z + e, or 0.25 a more, on bounds of 5, Z of 4. Parts of "MST" and of "AIM": the
first 100 data sets again, through synthetic records; those of MST need `pip install mbi==2.0.0` and are run by name.
Parts of "votes" are the test of tests on the data sets of the part they name.
`peers.py` says what the others do. dpHSIC and dpMMD have a bandwidth of one sd (the right one, which nobody told them);
dpHSIC has 60 replicates.
"""

import argparse
import json
import time
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.evidence.compared import answers, block_tests, peers
from experiments.evidence.power.__main__ import ALTERNATIVES, without_z
from experiments.record import provenance
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence.meta.test_of_tests import TestOfTests
from jaxdp.spec import Options

LEVEL = 0.05
SLOW = 60  # replicates of permutation tests of kernels
SYNTHETIC_REPLICATES, DELTA = (
    100,
    1e-6,
)  # of MST and AIM, as published: Gaussian noise, neighbours of one record more or fewer
GIVEN_Z = ("none", "linear 0.25")
LAWS = ("none", "linear 0.25", "quadratic 0.8", "product a e", "variance exp(a/2)")
GROUPS = Domain((Column(),), (Column(BINARY, 2),))
TABLE = Domain((Column(CATEGORICAL, 3),), (Column(CATEGORICAL, 3),))
HEAD = ("part", "n", "epsilon", "law")  # of a row, in this order


def default(domain, epsilon, n):
    """The name of the default test for these columns, and the test."""
    entry = catalogue.default(domain)
    return entry.name, entry.build(epsilon, domain, Options(level=LEVEL, num_records=n))


def ours(test, key, data):
    """(p-values, seconds of one) of a private test on many data sets (leading axis)."""
    found, seconds = answers.private(test, key, data)
    return found[:, 0], seconds


def columns(key, rng, n, epsilon, law, replicates):
    """Method -> p-values, with seconds where the method is in question, for two continuous columns."""
    data = columns_drawn(key, rng, n, law, replicates)
    few = jax.tree.map(lambda leaf: leaf[:SLOW], data)
    name, test = default(data.domain, epsilon, n)
    kernel = peers.DpHSIC(epsilon=epsilon, level=LEVEL)
    keys = jax.random.split(key, min(SLOW, replicates))
    plain = jax.jit(lambda k, d: jax.lax.map(lambda one: kernel.non_private(*one), (k, d)))
    x, y = np.asarray(data.x), np.asarray(data.y)
    fakes, seconds = _each(lambda pair: peers.synthetic(rng, *pair, epsilon), [*zip(x, y, strict=True)])
    return {
        f"jaxdp: {name}": ours(test, key, data),
        "dpHSIC": ours(kernel, key, few),
        "synthetic data, Pearson": ([peers.pearson(*pair) for pair in fakes], seconds),
        "synthetic data, chi-squared": ([peers.chi2_of_quartiles(*pair) for pair in fakes], seconds),
        "not private: HSIC": plain(keys, few),
        "not private: Pearson": [peers.pearson(*pair) for pair in zip(x, y, strict=True)],
        "not private: chi-squared": [peers.chi2_of_quartiles(*pair) for pair in zip(x, y, strict=True)],
    }


def two_groups(key, rng, n, epsilon, law, replicates):
    """Method -> p-values, for a response in two groups of n/2."""
    data, response = groups_drawn(key, rng, n, law, replicates)
    groups = [peers.Groups(*np.split(one, 2)) for one in response]
    found = {}
    for name in ("mean-difference", "winsorised-mean-difference"):
        test = catalogue.find(name).build(epsilon, GROUPS, Options(level=LEVEL, num_records=n))
        try:
            core.cost_of(test, jax.tree.map(lambda leaf: leaf[0], data))
            found[f"jaxdp: {name}"] = ours(test, key, data)
        except ValueError:
            pass  # too few records for this budget: refused, which the page says
    return found | {
        "DPrivStats t-test": _each(lambda one: peers.dprivstats_t(rng, one, epsilon), groups),
        "not private: t-test": [peers.welch(one) for one in groups],
    }


def table(key, rng, n, epsilon, law, replicates):
    """Method -> p-values, for two columns of three levels."""
    data = table_drawn(key, rng, n, law, replicates)
    name, test = default(TABLE, epsilon, n)
    counts = [np.bincount(row, minlength=9).reshape(3, 3).astype(float) for row in np.asarray(3 * data.x + data.y)]
    return {
        f"jaxdp: {name}": ours(test, key, data),
        "DPrivStats chi-squared": _each(lambda one: peers.dprivstats_chi2(rng, one, epsilon), counts),
        "not private: chi-squared": [peers.chi2(one) for one in counts],
    }


def through(made, name):
    """A part: the data sets of `columns`, by way of synthetic records."""

    def part(key, rng, n, epsilon, law, replicates):
        data = columns_drawn(key, rng, n, law, replicates)
        sets = [*zip(np.asarray(data.x), np.asarray(data.y), strict=True)][:SYNTHETIC_REPLICATES]
        fakes, seconds = _each(lambda both: made(*both, epsilon, DELTA), [*enumerate(sets)])
        return {
            f"{name}, Pearson": ([peers.pearson(*pair) for pair in fakes], seconds),
            f"{name}, chi-squared": ([peers.chi2_of_quartiles(*pair) for pair in fakes], seconds),
        }

    return part


def _each(answer, sets):
    """The answer of each data set, and the seconds of one."""
    start = time.perf_counter()
    found = [answer(one) for one in sets]
    return found, (time.perf_counter() - start) / len(sets)


def confounded(key, n: int, effect: float) -> Data:
    """X and Y that both follow Z, and Y the residual of X too."""
    z, a, e = jax.random.normal(key, (3, n))
    sides = (0.7 * z + a, 0.7 * z + effect * a + e)
    x, y = (jnp.clip(side / 5, -1, 1) for side in sides)
    return Data(x, y, jnp.clip(z / 4, -1, 1), Domain(*((Column(),),) * 3))


def given_z(key, rng, n, epsilon, law, replicates):
    """Method -> p-values, for X and Y given Z."""
    data = given_z_drawn(key, rng, n, law, replicates)
    name, test = default(data.domain, epsilon, n)
    return {
        f"jaxdp: {name}": ours(test, key, data),
        "not private: partial correlation": [peers.partial_pearson(*one) for one in _triples(data)],
    }


def given_z_through(made, name):
    """A part: the data sets of `given_z`, by way of synthetic records."""

    def part(key, rng, n, epsilon, law, replicates):
        sets = _triples(given_z_drawn(key, rng, n, law, replicates))
        fakes, seconds = _each(lambda both: made(*both, epsilon, DELTA), [*enumerate(sets)])
        return {f"{name}, partial correlation": ([peers.partial_pearson(*one) for one in fakes], seconds)}

    return part


def _triples(data: Data):
    return [*zip(*(np.asarray(side) for side in (data.x, data.y, data.z)), strict=True)]


def votes(tests, draw, **fields):
    """A part of the test of tests: of the data sets of another part, which `draw`s them as jaxdp reads them."""

    def part(key, rng, n, epsilon, law, replicates):
        data = draw(key, rng, n, law, replicates)
        return {
            f"test of tests, {name}": ours(TestOfTests(epsilon=epsilon, test=test, **fields), key, data)
            for name, test in tests.items()
        }

    return part


def columns_drawn(key, rng, n, law, replicates):
    """The data sets of `columns`."""
    draw = jax.jit(jax.vmap(lambda k: without_z(k, n, float(ALTERNATIVES[law]))))
    return draw(jax.random.split(key, replicates))


def groups_drawn(key, rng, n, law, replicates):
    """The data sets of `two_groups`, and its responses beyond the bounds too."""
    shift = {"none": 0.0, "means differ by 0.5": 0.5}[law]
    made = [np.concatenate([rng.normal(size=n // 2), shift + rng.normal(size=n // 2)]) for _ in range(replicates)]
    label = np.tile(np.repeat([-1.0, 1.0], n // 2), (replicates, 1))
    return Data(jnp.clip(jnp.asarray(np.stack(made)) / 5, -1, 1), jnp.asarray(label), None, GROUPS), made


def kernels_of_groups(key, rng, n, epsilon, law, replicates):
    """Method -> p-values and seconds, for the data sets of `two_groups`."""
    data, _ = groups_drawn(key, rng, n, law, replicates)
    test = peers.DpMMD(epsilon=epsilon, level=LEVEL, bandwidth=0.2, group=n // 2)
    return {"dpMMD": ours(test, key, data)}


def table_drawn(key, rng, n, law, replicates):
    """The data sets of `table`."""
    weights = np.ones((3, 3)) + (2.0 * np.eye(3) if law == "diagonal" else 0.0)
    cells = rng.choice(9, (replicates, n), p=(weights / weights.sum()).ravel())
    return Data(jnp.asarray(cells // 3), jnp.asarray(cells % 3), None, TABLE)


def given_z_drawn(key, rng, n, law, replicates):
    """The data sets of `given_z`."""
    keys = jax.random.split(key, min(SYNTHETIC_REPLICATES, replicates))
    return jax.jit(jax.vmap(lambda k: confounded(k, n, {"none": 0.0, "linear 0.25": 0.25}[law])))(keys)


PARTS = {
    "columns": (columns, LAWS, ((500, 1.0),)),
    "groups": (two_groups, ("none", "means differ by 0.5"), ((500, 1.0), (1000, 1.0))),
    "table": (table, ("none", "diagonal"), ((200, 1.0), (500, 1.0))),
    "columns, MST": (through(peers.mst, "MST"), LAWS, ((500, 1.0),)),
    "columns, AIM": (through(peers.aim, "AIM"), LAWS, ((500, 1.0),)),
    "three columns": (given_z, GIVEN_Z, ((1000, 1.0),)),
    "three columns, MST": (given_z_through(peers.mst, "MST"), GIVEN_Z, ((1000, 1.0),)),
    "three columns, AIM": (given_z_through(peers.aim, "AIM"), GIVEN_Z, ((1000, 1.0),)),
    "columns, votes": (
        votes({"Pearson": block_tests.pearson, "chi-squared": block_tests.thirds}, columns_drawn),
        LAWS,
        ((500, 1.0),),
    ),
    "groups, votes": (
        votes({"t-test": block_tests.welch}, lambda *given: groups_drawn(*given)[0]),
        ("none", "means differ by 0.5"),
        ((500, 1.0), (1000, 1.0)),
    ),
    "groups, kernels": (kernels_of_groups, ("none", "means differ by 0.5"), ((500, 1.0), (1000, 1.0))),
    "table, votes": (
        votes({"chi-squared": block_tests.chi2}, table_drawn),
        ("none", "diagonal"),
        ((200, 1.0), (500, 1.0)),
    ),
    "three columns, votes": (
        votes({"partial correlation": block_tests.partial_correlation}, given_z_drawn),
        GIVEN_Z,
        ((1000, 1.0),),
    ),
}
BY_NAME = ("columns, MST", "three columns, MST")  # need a package
DATA_OF = {  # parts that take the data of another
    "columns, MST": "columns",
    "columns, AIM": "columns",
    "three columns": "three columns, MST",
    "three columns, AIM": "three columns, MST",
    "columns, votes": "columns",
    "groups, votes": "groups",
    "groups, kernels": "groups",
    "table, votes": "table",
    "three columns, votes": "three columns, MST",
}


def seed_of(head) -> int:
    """Of the data sets and the noise of rows with this part, n, epsilon and law."""
    head = {name: head[name] for name in HEAD}
    return zlib.crc32(json.dumps(head | {"part": DATA_OF.get(head["part"], head["part"])}).encode())


def rows(replicates: int, done, chosen):
    """One row for each method of the chosen parts that is not done."""
    for part in chosen:
        measure, laws, settings = PARTS[part]
        for n, epsilon in settings:
            for law in laws:
                head = {"part": part, "n": n, "epsilon": epsilon, "law": law}
                if json.dumps(head) in done:
                    continue
                seed = seed_of(head)
                found = measure(jax.random.key(seed), np.random.default_rng(seed), n, epsilon, law, replicates)
                for method, p_values in found.items():
                    p_values, *seconds = p_values if isinstance(p_values, tuple) else (p_values,)
                    p_values = np.asarray(p_values)
                    rejections = int(np.sum(p_values <= LEVEL))
                    yield head | {
                        "method": method,
                        "seed": seed,
                        "rejections": rejections,
                        "replicates": p_values.size,
                        **({"seconds": float(f"{seconds[0]:.2g}")} if seconds else {}),
                        **provenance(),
                    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    usual = [part for part in PARTS if part not in BY_NAME]
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=usual)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "compared.jsonl")
    args = parser.parse_args()
    old = args.out.read_text().splitlines() if args.out.exists() else []
    done = {json.dumps({name: json.loads(line)[name] for name in HEAD}) for line in old}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("a") as file:
        for row in rows(args.replicates, done, args.parts):
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"{row['part']} {row['n']} {row['law']}: {row['method']} {row['rejections']}/{row['replicates']}")


if __name__ == "__main__":
    main()
