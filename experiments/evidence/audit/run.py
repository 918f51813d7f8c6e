"""Audits of every mechanism and of published flawed variants, written to one JSON file and one picture.

python -m experiments.evidence.audit.run --runs 1e6          # minutes on two cores
python -m experiments.evidence.audit.run --runs 1e8 --nightly
python -m experiments.evidence.audit.run --methods cauchy student   # these alone, into the JSON file that is there
python -m experiments.evidence.audit.run --extend tests --runs 1e6  # its missing rows; also searches, largest
python -m experiments.evidence.audit.run --extend tests --runs 1e7 --again --methods score-test  # with more runs
"""

import dataclasses
import datetime
import functools
import itertools
import json
import platform
import subprocess
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import command_line, provenance
from jaxdp import audit
from jaxdp.audit import cases, catalogue
from jaxdp.audit.searches import sampled_bound
from jaxdp.cli.audit import draw
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.noise import lattice
from jaxdp.randomness import keys

EPSILONS = (0.5, 1.0, 2.0)
PAIRS = 5
SEARCH_RUNS = 1_000_000
SINGLE = ("svt_pc", "priv_pc")  # runs of one search take 2 ms
EXACT_RUNS = 20_000  # exact selections: each run has its own release key
HERE = Path(__file__).parent


def mechanisms(runs: int, seed: int, chosen=tuple(catalogue.MECHANISMS)) -> list[dict]:
    """One audit per mechanism, epsilon and pair of neighbours; a tenth of the runs for slow draws."""
    rows = []
    for number, method in enumerate(sorted(chosen)):
        size = runs if method in ("laplace", "geometric", "gaussian", "noisy-max", "exponential") else runs // 10
        for epsilon in EPSILONS:
            for pair in range(5):
                key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), number), pair)
                rows.append(timed(functools.partial(audit.audit, method, epsilon, runs=size, key=key, pair=pair)))
    return rows


def exact_mechanisms(runs: int, chosen=tuple(catalogue.MECHANISMS)) -> list[dict]:
    """The exact noise of the other mechanisms, each run with its own release key."""
    others = sorted(set(chosen) - {"laplace", "geometric"})
    return [timed(functools.partial(audit.audit, method, 1.0, runs=runs, release=True)) for method in others]


def flawed() -> list[dict]:
    return [timed(functools.partial(audit.audit, method, e)) for method in sorted(catalogue.FLAWED) for e in EPSILONS]


def on_record() -> list[str]:
    """Examples whose audits are on record."""
    return [name for name, found in cases.all_examples().items() if found.recorded]


def of_tests(runs: int, seed: int, chosen=(), done=()):
    """Every test at three epsilons and on five pairs, each the worst that an attack of its own found.

    Tests that resample or have stages run as a whole, a tenth of the runs; the rest by their mechanism on the two
    statistics.
    """
    for pair, method in itertools.product(range(PAIRS), chosen or on_record()):
        subject = cases.find(method)
        if pair and subject.settings.neighbours is not None:
            continue  # one pair, made by hand
        size = runs // 10 if subject.whole else runs
        left = [epsilon for epsilon in EPSILONS if (method, epsilon, pair) not in done]
        if left:
            key = jax.random.fold_in(jax.random.key(seed), pair)
            attack = catalogue.attacked(method, key)
            yield from (audited(method, epsilon, size, key, pair, attack) for epsilon in left)


def searches(runs: int, seed: int, chosen=tuple(catalogue.SEARCHES), done=()):
    """Whole causal searches, the worst pair of each first; those made run by run on that alone, with fewer runs."""
    key, attacks = jax.random.key(seed), {}
    for pair, method, epsilon in itertools.product(range(PAIRS), sorted(chosen, key=_by_speed), EPSILONS):
        walked, one_release = catalogue.SEARCHES[method].walked, catalogue.SEARCHES[method].one_release
        if (method, epsilon, pair) in done or not (walked or one_release or (pair == 0 and epsilon == 1.0)):
            continue
        if method not in attacks:
            attacks[method] = catalogue.attacked(method, key)
        if pair < len(attacks[method]):
            yield audited(
                method, epsilon, runs if walked or one_release else max(runs // 50, 20_000), key, pair, attacks[method]
            )


def _by_speed(method: str) -> tuple:
    search = catalogue.SEARCHES[method]
    return not search.walked, search.pilot is not None


def single_searches(runs: int, seed: int, done=()):
    """The searches again, on their worst pair at epsilon 1, each run by itself as a user would run it."""
    for method in SINGLE:
        if (method, 1.0, 0) not in done:
            key = jax.random.key(seed)
            attack = catalogue.attacked(method, key)
            alone = dataclasses.replace(catalogue.SEARCHES[method], walked=False)
            yield timed(functools.partial(_alone, method, alone, attack[0], key, runs))


def _alone(method: str, search, pair, key, runs: int) -> audit.Audit:
    found = sampled_bound(search, search.build(1.0), pair, key, runs, alpha=1e-6)
    return audit.Audit(method, 1.0, found.epsilon, 1e-6, runs, found.event, "simulation", delta=search.delta)


def flawed_searches(runs: int, seed: int, done=()):
    """The published search at the epsilon of its authors."""
    for method in catalogue.FLAWED_SEARCHES:
        left = [epsilon for epsilon in EPSILONS if (method, epsilon, 0) not in done]
        yield from (audited(method, epsilon, runs // 50, jax.random.key(seed), 0, None) for epsilon in left)


def largest(runs: int, seed: int, chosen=tuple(catalogue.MECHANISMS), done=()):
    """Every mechanism with the most runs, on the pair that told the neighbours apart best in the rows before."""
    for method in chosen:
        rows = [row for row in json.loads((HERE / "audit.json").read_text())["mechanisms"] if row["method"] == method]
        pair = max((row for row in rows if row["claimed"] == 1.0), key=lambda row: row["lower"])["pair"]
        if not any(row[:2] == (method, 1.0) for row in done):
            size = runs // 10 if method == "random-stopping" else runs  # 3 s a million
            yield audited(method, 1.0, size, jax.random.key(seed), pair, None)


def audited(method: str, epsilon: float, runs: int, key, pair: int, attack) -> dict:
    return timed(functools.partial(audit.audit, method, epsilon, runs=runs, key=key, pair=pair, attack=attack))


def timed(act) -> dict:
    started = time.monotonic()
    found = act()
    row = {**dataclasses.asdict(found), "holds": found.holds, "seconds": round(time.monotonic() - started, 2)}
    print(row, flush=True)
    return row


def off_lattice(draws: int) -> dict:
    """How many of so many release draws leave the lattice or the window."""
    outside, done = 0, 0
    bound = Sensitivity(2.0, Norm.L1, Relation.REPLACE_ONE, lower=-50.0, upper=50.0)
    with keys.precision(keys.RELEASE):
        plan = lattice.plan_laplace(1, bound, 1.0)
        while done < draws:
            size = min(1 << 18, draws - done)
            key = keys.open_key(jaxdp.fresh_key())
            steps = np.asarray(lattice.add(key, np.zeros(size), plan)) / float(plan.facts.step)
            outside += int(np.sum((steps != np.round(steps)) | (steps < plan.facts.low) | (steps > plan.facts.high)))
            done += size
    return {"draws": done, "off_lattice_or_window": outside}


def timing(draws: int) -> dict:
    """Does the time of one exact draw tell large noise from small? Area under the ROC curve; 0.5 says no."""
    bound = Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, lower=-1000.0, upper=1000.0)
    with keys.precision(keys.RELEASE):
        plan = lattice.plan_laplace(1, bound, 1.0)
        draw = jax.jit(lambda key: lattice.add(key, jnp.zeros(1), plan))
        each = jax.random.split(keys.open_key(jaxdp.fresh_key()), draws)
        each = [each[i] for i in range(draws)]
        draw(each[0]).block_until_ready()
        seconds, size = np.empty(draws), np.empty(draws)
        for i, key in enumerate(each):
            started = time.perf_counter_ns()
            found = draw(key).block_until_ready()
            seconds[i] = time.perf_counter_ns() - started
            size[i] = abs(float(found[0]))
    return {"draws": draws, "auc": area(seconds, size > np.median(size))}


def area(scores, positive) -> float:
    """Area under the ROC curve of `scores` for the boolean labels (Mann-Whitney)."""
    from scipy.stats import rankdata

    ranks, hits = rankdata(scores), int(np.sum(positive))
    return float((np.sum(ranks[positive]) - hits * (hits + 1) / 2) / (hits * (len(scores) - hits)))


def search(nightly: bool) -> list[dict]:
    """Share of the declared sensitivity that an attack on PartitionGCM reaches."""
    rows = []
    sizes = {"starts": 200_000, "moves": 2000} if nightly else {"starts": 4096, "moves": 200}
    for n in (2, 3, 5, 20, 100):
        design = functools.partial(jaxdp.simulate.sine_confounder, n=n, effect=0.5)
        found = audit.falsify(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(n), design, **sizes)
        rows.append({"n": n, "largest_share_of_bound": found.ratio, "pairs": found.pairs})
        print(rows[-1], flush=True)
    return rows


def above_claim(record: dict) -> int:
    return sum(not row["holds"] for part in SOUND for row in record.get(part, ()))


def extend(path: Path, part: str, runs: int, seed: int, chosen, seconds: float, again: bool) -> None:
    """Adds rows to one part of the record as they are made; finished ones are kept, so that it can be resumed.

    again: rows of the chosen subjects with fewer runs are taken out first and made anew.
    """
    started = time.monotonic()
    record = json.loads(path.read_text())
    named = chosen if again and chosen else ()
    rows = record[part] = [
        row
        for row in record.get(part, ())
        if row["method"] not in named or row["runs"] >= runs // (10 if _whole(part, row["method"]) else 1)
    ]
    done = {(row["method"], row["claimed"], row["pair"]) for row in rows if row["runs"]}
    extra = {"chosen": chosen} if chosen else {}
    for row in GROWING[part](runs, seed, done=done, **extra):
        rows.append({**row, **provenance()})
        record["audits_above_claim"] = above_claim(record)
        record["flawed_refuted"] = sum(not row["holds"] for row in record["flawed"])
        path.write_text(json.dumps(record, indent=2) + "\n")
        if time.monotonic() - started > seconds:
            break


def _whole(part: str, method: str) -> bool:
    return part == "tests" and cases.find(method).whole


SOUND = ("mechanisms", "exact", "tests", "searches", "single_searches", "largest")
GROWING = {
    "tests": of_tests,
    "searches": searches,
    "single_searches": single_searches,
    "flawed": flawed_searches,
    "largest": largest,
}


def update(path: Path, methods: list[str], runs: int, seed: int) -> None:
    """Audits these mechanisms anew and puts their rows in the place of the old ones."""
    record = json.loads(path.read_text())
    for part, rows in (
        ("mechanisms", mechanisms(runs, seed, methods)),
        ("exact", exact_mechanisms(EXACT_RUNS, methods)),
    ):
        record[part] = [row for row in record[part] if row["method"] not in methods] + rows
    record.setdefault("updates", []).append({"methods": methods, "runs": runs, "seed": seed, **provenance()})
    record["audits_above_claim"] = above_claim(record)
    path.write_text(json.dumps(record, indent=2) + "\n")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nightly", action="store_true")
    parser.add_argument("--methods", nargs="+", choices=audit.subjects())
    parser.add_argument("--extend", choices=sorted(GROWING), help="add the missing rows of this part")
    parser.add_argument("--again", action="store_true", help="with --extend and --methods: those with few runs anew")
    parser.add_argument("--draw", action="store_true", help="draw the picture of the record again")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="with --extend: start no row after so long")
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.draw:
        picture(args.out)
        return
    if args.table:
        print(table(json.loads((args.out / "audit.json").read_text())))
        return
    if args.extend:
        extend(args.out / "audit.json", args.extend, args.runs, args.seed, args.methods, args.seconds, args.again)
        return
    if args.methods:
        update(args.out / "audit.json", args.methods, args.runs, args.seed)
        return
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    record = {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "jax": jax.__version__,
        "device": jax.devices()[0].platform,
        "machine": platform.machine(),
        "runs": args.runs,
        "seed": args.seed,
        "mechanisms": mechanisms(args.runs, args.seed),
        "exact": exact_mechanisms(EXACT_RUNS),
        "flawed": [*flawed(), *flawed_searches(SEARCH_RUNS, args.seed)],
        "tests": [*of_tests(args.runs // 10, args.seed)],
        "searches": [*searches(SEARCH_RUNS, args.seed)],
        "lattice": off_lattice(100_000_000 if args.nightly else 2_000_000),
        "timing": timing(100_000),
        "sensitivity": search(args.nightly),
    }
    record["audits_above_claim"] = above_claim(record)
    record["flawed_refuted"] = sum(not row["holds"] for row in record["flawed"])
    (args.out / "audit.json").write_text(json.dumps(record, indent=2) + "\n")
    picture(args.out)


def table(record: dict) -> str:
    """Markdown: the largest lower bound over pairs of each subject and claim, and how many pairs and runs."""
    lines = ["| audited | pairs | runs of each | claim 0.5 | claim 1 | claim 2 |", "|---|---|---|---|---|---|"]
    for part in ("mechanisms", "tests", "searches", "single_searches", "largest", "flawed"):
        for method in dict.fromkeys(row["method"] for row in record.get(part, ())):
            rows = [row for row in record[part] if row["method"] == method]
            best = [[row["lower"] for row in rows if row["claimed"] == epsilon] for epsilon in EPSILONS]
            cells = [f"{max(found):.3f}" if found else "" for found in best]
            pairs, runs = len({row["pair"] for row in rows}), sorted({row["runs"] for row in rows})
            name = method + {"single_searches": ", run by run", "largest": ", most runs"}.get(part, "")
            shown = " or ".join(f"{number:.0e}".replace("e+0", "e") if number else "quadrature" for number in runs)
            lines.append(f"| {name} | {pairs} | {shown} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(folder: Path) -> None:
    """The best bound of every subject and claim."""
    record, best = json.loads((folder / "audit.json").read_text()), {}
    names = {field.name for field in dataclasses.fields(audit.Audit)}
    for part in ("mechanisms", "flawed", "tests", "searches"):
        for row in record[part]:
            subject = row["method"], row["claimed"]
            if row["claimed"] == 1.0 and (subject not in best or row["lower"] > best[subject]["lower"]):
                best[subject] = row
    draw(folder / "audit.png", [audit.Audit(**{k: v for k, v in row.items() if k in names}) for row in best.values()])


if __name__ == "__main__":
    main()
