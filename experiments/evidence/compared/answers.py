"""jaxdp beside private peers that estimate: level, power, coverage, width and time of an answer.

    python -m experiments.evidence.compared.answers [--replicates 200] [--parts NAME ...] [--packages] [--out FILE]

One JSON line per (part, n, epsilon, law, method); a run goes on where the file ends. `rejected`: p-values at most
0.05; `answered`: data sets with an interval, `covered`: those whose interval holds the truth, `width`: their median
width; `seconds`: of one answer, compiled, on one thread of a shared machine. Laws are normal; epsilon is 1 for the
replacement of one record, pure. Peers with Gaussian noise get rho = epsilon^2/2, which pure epsilon implies and not
the other way round: in their favour; jaxdp's regressions are shown with it too ("rho"). `--packages` runs what needs
packages beside jaxdp's own (`requirements.txt`).
`estimators.py` and `peers.py` say what the others do.
"""

import argparse
import dataclasses
import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from experiments.evidence.compared import block_tests, estimators, peers
from experiments.record import append, rows
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence.meta.test_of_tests import TestOfTests
from jaxdp.mechanisms import Gaussian
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "answers.jsonl"
LEVEL, EPSILON, DELTA = 0.05, 1.0, 1e-6
RHO = EPSILON**2 / 2
BOUND = 4.0
ENDS = (-BOUND, BOUND)
TIMES = Domain((Column(BINARY, 2),), (Column(), Column(BINARY, 2)))
TWO = Domain((Column(),), (Column(),))
GROUPS = Domain((Column(CATEGORICAL, 3),), (Column(),))
YES = Domain((Column(),), (Column(BINARY, 2),))


def slope(rng, n: int, effect: float):
    """X normal, Y = effect X + e."""
    x = rng.normal(size=n)
    return x, effect * x + rng.normal(size=n)


def odds(rng, n: int, effect: float):
    """X normal, log odds of Y: effect X - 0.4."""
    x = rng.normal(size=n)
    return x, (rng.uniform(size=n) < 1 / (1 + np.exp(0.4 - effect * x))).astype(float)


def ranks(rng, n: int, effect: float):
    """Three groups, the last one `effect` sds higher."""
    group = rng.integers(3, size=n)
    return group, rng.normal(size=n) + effect * (group == 2)


def uneven(rng, n: int, effect: float):
    """The same, 10, 20 and 70 % of the records; the first one higher."""
    group = np.searchsorted((0.1, 0.3), rng.uniform(size=n))
    return group, rng.normal(size=n) + effect * (group == 0)


def times(rng, n: int, effect: float, share: float = 0.5, leave: float = 0.3):
    """Two groups, hazards 1.2 and 1.2 exp(effect) a unit of time; censored at time 1 and at rates 0.3 and `leave`."""
    group = (rng.uniform(size=n) < share).astype(int)
    event = rng.exponential(size=n) / (1.2 * np.exp(effect * group))
    end = np.minimum(rng.exponential(size=n) / np.where(group == 1, leave, 0.3), 1.0)
    return group, np.minimum(event, end), event <= end


def few_at_risk(rng, n: int, effect: float):
    """The same; the second group is a tenth of the records and leaves early."""
    return times(rng, n, effect, 0.1, 2.0)


def scaled(*columns):
    """Columns as the schema scales them."""
    return tuple(np.clip(side / BOUND, -1, 1) for side in columns)


def as_times(group, time_, event):
    return group.astype(float), np.stack([2 * time_ - 1, event], axis=1)


def as_groups(group, values):
    return group, np.clip(values / BOUND, -1, 1)


def as_votes(group, time_, event):
    return group.astype(float), np.stack([time_, event], axis=1)


@dataclasses.dataclass(frozen=True)
class Part:
    """draw: (rng, n, effect) -> columns; method: of jaxdp, on `scale`d columns of `domain`; block: what votes.

    others: name -> (rng, *columns) -> an answer, or a mapping of answers by name.
    """

    draw: Callable
    laws: dict[str, float]
    sizes: tuple[int, ...]
    method: str
    domain: Domain
    scale: Callable
    block: Callable
    unit: float  # of jaxdp's effect, in that of the truth
    others: dict[str, Callable]
    packages: dict[str, Callable] = dataclasses.field(default_factory=dict)
    vote_scale: Callable | None = None
    gaussian: bool = False  # also by Gaussian noise, as some of the others have it


def plain_kruskal(group, values):
    parts = [values[group == g] for g in range(3)]
    return (stats.kruskal(*parts)[1] if min(map(len, parts)) else 1.0), *estimators.NONE


def plain_log_rank(group, time_, event):
    """Of all times, each a bin of its own."""
    p = block_tests.log_rank(Data(jnp.asarray(group, float), jnp.stack([time_, event], axis=1), None, TIMES))
    return float(p), *estimators.NONE


def through(made, analysis, *kinds):
    """An ordinary analysis of synthetic records; a kind is a number of levels, or the bounds of a column."""

    def answer(rng, *columns):
        pairs = [*zip(columns, kinds, strict=True)]
        levels = tuple(kind if isinstance(kind, int) else None for kind in kinds)
        inside = [
            side if isinstance(kind, int) else 2 * (side - kind[0]) / (kind[1] - kind[0]) - 1 for side, kind in pairs
        ]
        drawn = made(int(rng.integers(2**31)), inside, EPSILON, DELTA, levels)
        pairs = [*zip(drawn, kinds, strict=True)]
        return analysis(
            *(
                side if isinstance(kind, int) else kind[0] + 0.5 * (side + 1) * (kind[1] - kind[0])
                for side, kind in pairs
            )
        )

    return answer


def dp_ols(rng, x, y):
    """The package dp-statsmodels: noisy X'X, X'y and y'y, delta 1e-6; one record more or fewer, in its favour."""
    from dp_statsmodels.models.ols import DPOLS

    model = DPOLS(EPSILON, DELTA, (-BOUND, BOUND), (-BOUND, BOUND), random_state=int(rng.integers(2**31)))
    found = model.fit(y, x[:, None])
    low, high = found.conf_int()[1]
    return float(found.pvalues[1]), float(low), float(high)


RANK_PEERS = {
    "KW_abs": lambda rng, group, values: estimators.kw_abs(rng, group, values, EPSILON),
    "AIM, Kruskal-Wallis": through(peers.aim, plain_kruskal, 3, ENDS),
    "not private: Kruskal-Wallis": lambda rng, *columns: plain_kruskal(*columns),
}
SYNTHETIC_RANKS = {"MST, Kruskal-Wallis": through(peers.mst, plain_kruskal, 3, ENDS)}


def of_groups(draw, higher: str) -> Part:
    """Three groups, of which one is higher under the alternative."""
    asked = "kruskal-wallis", GROUPS, as_groups, block_tests.kruskal, 1.0
    return Part(draw, {"none": 0.0, f"{higher} 0.5 sd higher": 0.5}, (300, 1000), *asked, RANK_PEERS, SYNTHETIC_RANKS)


PARTS = {
    "slope": Part(
        slope,
        {"none": 0.0, "slope 0.1": 0.1, "slope 0.5": 0.5},
        (3000,),
        "linear-regression",
        TWO,
        scaled,
        block_tests.pearson,
        1.0,
        {
            "DP F-test": lambda rng, x, y: estimators.f_test(rng, x, y, RHO, BOUND),
            "noisy Gram matrix": lambda rng, x, y: estimators.noisy_gram(rng, x, y, EPSILON, BOUND),
            "AIM, least squares": through(peers.aim, estimators.least_squares, ENDS, ENDS),
            "not private: least squares": lambda rng, x, y: estimators.least_squares(x, y),
        },
        {"dp-statsmodels": dp_ols, "MST, least squares": through(peers.mst, estimators.least_squares, ENDS, ENDS)},
        gaussian=True,
    ),
    "odds ratio": Part(
        odds,
        {"none": 0.0, "log odds 0.2": 0.2, "log odds 0.6": 0.6},
        (3000, 10_000),
        "logistic-regression",
        YES,
        lambda x, y: (*scaled(x), y),
        block_tests.pearson,
        1.0 / BOUND,
        {
            "PASS-GLM": lambda rng, x, y: estimators.pass_glm(rng, x, y, RHO, BOUND),
            "PASS-GLM, radius 2": lambda rng, x, y: estimators.pass_glm(rng, x, y, RHO, BOUND, 2.0),
            "AIM, maximum likelihood": through(peers.aim, estimators.logistic, ENDS, 2),
            "not private: maximum likelihood": lambda rng, x, y: estimators.logistic(x, y),
        },
        {"MST, maximum likelihood": through(peers.mst, estimators.logistic, ENDS, 2)},
        gaussian=True,
    ),
    "three groups": of_groups(ranks, "one"),
    "three uneven groups": of_groups(uneven, "smallest"),
    "hazard ratio": Part(
        times,
        {"none": 0.0, "ratio 1.5": float(np.log(1.5))},
        (500, 2000),
        "log-rank",
        TIMES,
        as_times,
        block_tests.log_rank,
        1.0,
        {
            "noisy counts, log-rank": lambda rng, *columns: estimators.noisy_log_rank(rng, *columns, EPSILON),
            "AIM, log-rank": through(peers.aim, plain_log_rank, 2, (0.0, 1.0), 2),
            "not private: log-rank": lambda rng, *columns: plain_log_rank(*columns),
        },
        {"MST, log-rank": through(peers.mst, plain_log_rank, 2, (0.0, 1.0), 2)},
        as_votes,
    ),
}
PARTS["hazard ratio, uneven groups"] = dataclasses.replace(PARTS["hazard ratio"], draw=few_at_risk)
WITH_TRUTH = (
    "slope",
    "odds ratio",
    "hazard ratio",
    "hazard ratio, uneven groups",
)  # jaxdp's effect is the law's number


def stacked(sets, domain) -> Data:
    """Many data sets along a leading axis."""
    return Data(*(jnp.stack(sides) for sides in zip(*sets, strict=True)), None, domain)


def answered_by(test):
    """(keys, many data sets) -> (p, low, high) of each."""

    def one(both):
        found = core.run(test, *both)
        ends = found.interval if found.interval is not None else (jnp.nan, jnp.nan)
        return jnp.stack([jnp.ravel(jnp.asarray(value, float))[0] for value in (found.p_value, *ends)])

    return lambda keys, data: jax.lax.map(one, (keys, data))


def private(test, key, data: Data):
    """(p, low, high) of every data set, and the seconds of one, compiled."""
    keys = jax.random.split(key, data.x.shape[0])
    program = jax.jit(answered_by(test)).lower(keys, data).compile()
    start = time.perf_counter()
    found = np.asarray(program(keys, data))
    return found, (time.perf_counter() - start) / len(keys)


def ours(part: Part, seed: int, sets, n: int):
    """Method -> (answers, seconds) of jaxdp's test and of the test of tests."""
    test = catalogue.find(part.method).build(EPSILON, part.domain, Options(num_records=n))
    shape = Data(*map(jnp.asarray, part.scale(*sets[0])), None, part.domain)
    found = {}
    rule = test.validity(shape)
    if rule is None or rule.verdict != "refuse":
        data = stacked([part.scale(*columns) for columns in sets], part.domain)
        found[f"jaxdp: {part.method}"] = private(test, jax.random.key(seed), data)
        if part.gaussian:
            test = dataclasses.replace(test, epsilon=None, mechanism=Gaussian(RHO))
            found[f"jaxdp: {part.method}, rho"] = private(test, jax.random.key(seed), data)
    votes = [(part.vote_scale or part.scale)(*columns) for columns in sets]
    vote = TestOfTests(epsilon=EPSILON, test=part.block)
    found["test of tests"] = private(vote, jax.random.key(seed), stacked(votes, part.domain))
    return found


def theirs(methods, seed: int, sets):
    """Method -> (answers, seconds) of the others."""
    found = {}
    for name, answer in methods.items():
        answer(np.random.default_rng(seed), *sets[0])  # compiles, fills caches
        rng, start = np.random.default_rng(seed + 1), time.perf_counter()
        answers = [answer(rng, *columns) for columns in sets]
        seconds = (time.perf_counter() - start) / len(sets)
        if isinstance(answers[0], dict):
            found |= {f"{name}, {part}": ([one[part] for one in answers], seconds) for part in answers[0]}
        else:
            found[name] = answers, seconds
    return found


def summary(answers, seconds: float, truth: float | None, unit: float) -> dict:
    """The numbers of a row."""
    p, low, high = np.asarray(answers, float).T
    answered = np.isfinite(low) if truth is not None else np.zeros(len(p), bool)
    width = unit * (high - low)[answered]
    return {
        "replicates": len(p),
        "rejected": int(np.sum(p <= LEVEL)),
        "answered": int(answered.sum()),
        "covered": int(np.sum((unit * low <= truth) & (truth <= unit * high))) if answered.any() else 0,
        "width": round(float(np.median(width)), 4) if answered.any() else None,
        "seconds": float(f"{seconds:.2g}"),
    }


HEAD = ("part", "n", "epsilon", "law", "packages")  # of a row, in this order


def seed_of(head) -> int:
    """Of the data sets and the noise of rows with this part, n, epsilon and law."""
    return zlib.crc32(json.dumps({name: head[name] for name in HEAD} | {"packages": False}).encode())


def measured(names, replicates: int, packages: bool, done):
    """One row for each law and method that is not done."""
    for name in names:
        part = PARTS[name]
        for n, (law, effect) in ((n, item) for n in part.sizes for item in part.laws.items()):
            head = {"part": name, "n": n, "epsilon": EPSILON, "law": law, "packages": packages}
            if json.dumps(head) in done:
                continue
            seed = seed_of(head)
            rng = np.random.default_rng(seed)
            sets = [part.draw(rng, n, effect) for _ in range(replicates)]
            found = theirs(part.packages if packages else part.others, seed, sets)
            found = found if packages else ours(part, seed, sets, n) | found
            for method, (answers, seconds) in found.items():
                unit = part.unit if method.startswith("jaxdp") else 1.0
                truth = effect if name in WITH_TRUTH else None
                yield {**head, "method": method, "seed": seed, **summary(answers, seconds, truth, unit)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    done = {json.dumps({name: row[name] for name in HEAD}) for row in rows(args.out)}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    append(args.out, measured(args.parts, args.replicates, args.packages, done))


if __name__ == "__main__":
    main()
