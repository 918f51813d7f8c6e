"""Audits of every mechanism and of published flawed variants, written to one JSON file and one picture.

python -m experiments.audit.run --runs 1e6          # minutes on two cores
python -m experiments.audit.run --runs 1e8 --nightly
python -m experiments.audit.run --methods cauchy student   # these alone, into the JSON file that is there
"""

import argparse
import dataclasses
import datetime
import functools
import json
import platform
import subprocess
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from experiments.record import provenance
from jaxdp import audit
from jaxdp.audit import catalogue
from jaxdp.cli.audit import draw
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.noise import keys, lattice

EPSILONS = (0.5, 1.0, 2.0)
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


def tests(runs: int, seed: int) -> list[dict]:
    """Every test whose worst pair can be searched."""
    key = jax.random.key(seed)
    names = [name for name, subject in catalogue.SUBJECTS.items() if not subject.coupled]
    return [timed(functools.partial(audit.audit, method, 1.0, runs=runs, key=key)) for method in names]


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
            key = jaxdp.fresh_key().consume("off lattice")
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
        each = jax.random.split(jaxdp.fresh_key().consume("timing"), draws)
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
    return sum(not row["holds"] for row in record["mechanisms"] + record["exact"] + record["tests"])


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nightly", action="store_true")
    parser.add_argument("--methods", nargs="+", choices=sorted(catalogue.MECHANISMS))
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
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
        "flawed": flawed(),
        "tests": tests(args.runs // 10, args.seed),
        "lattice": off_lattice(100_000_000 if args.nightly else 2_000_000),
        "timing": timing(100_000),
        "sensitivity": search(args.nightly),
    }
    record["audits_above_claim"] = above_claim(record)
    record["flawed_refuted"] = sum(not row["holds"] for row in record["flawed"])
    (args.out / "audit.json").write_text(json.dumps(record, indent=2) + "\n")
    names = {field.name for field in dataclasses.fields(audit.Audit)}
    rows = [row for part in ("mechanisms", "flawed", "tests") for row in record[part] if row["pair"] == 0]
    draw(args.out / "audit.png", [audit.Audit(**{k: v for k, v in row.items() if k in names}) for row in rows])


if __name__ == "__main__":
    main()
