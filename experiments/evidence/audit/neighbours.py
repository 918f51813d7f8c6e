"""Neighbours of every test: attacks on its sensitivity, and record/replay of whole runs.

python -m experiments.evidence.audit.neighbours                     # both, resumable: finished rows are kept
python -m experiments.evidence.audit.neighbours --pairs 1e7 --out /some/folder

`sensitivity` rows: largest change found as a share of the declared bound, per test and number of records, in float64.
`replay` rows: differences between runs on neighbours with the same key and played-back outputs (order of calls,
shapes, noise parameters, keys, distance), per configuration of nulls.py.
"""

import argparse
import dataclasses
import functools
import json
import time
from pathlib import Path

import jax

from experiments.evidence.audit import nulls
from experiments.record import provenance
from jaxdp import audit, core
from jaxdp.audit import cases
from jaxdp.audit.sensitivity import neighbour
from jaxdp.core import Relation

RECORDS = (2, 3, 5, 20, 100)
NUM_PAIRS = 200
HERE = Path(__file__).parent
LARGEST = 1 << 17  # pairs of one batch


def attack(name: str, n: int, pairs: int, seed: int = 0) -> dict:
    """One row of `sensitivity`: half of the pairs are random, the rest are coordinate moves from the best of them."""
    subject, started = cases.find(name), time.perf_counter()
    ratio, tried, rounds = 0.0, 0, max(1, pairs // LARGEST)
    share = pairs // rounds
    with jax.enable_x64(True):
        for number in range(rounds):
            found = audit.falsify(
                subject.audited(1.0, n),
                jax.random.fold_in(jax.random.key(seed), number),
                functools.partial(subject.searched, n=n),
                starts=share // 2,
                moves=share // 32,
                climbs=0,
            )
            ratio, tried = max(ratio, found.ratio), tried + found.pairs
    row = {"what": "sensitivity", "name": name, "n": n, "pairs": tried, "largest_share_of_bound": ratio}
    return row | {"holds": ratio <= 1.0, "seconds": round(time.perf_counter() - started, 2)}


def replayed(name: str, count: int = NUM_PAIRS, seed: int = 0) -> dict:
    """One row of `replay`."""
    null, started = nulls.rows()[name], time.perf_counter()
    test, draw = nulls.make(name, 0.05), jax.jit(nulls.draw(name))
    found = audit.replay(test, jax.random.key(seed), pairs_of(name, test, draw, count, seed))
    row = {"what": "replay", "name": name, "n": null.n, "pairs": count}
    row["differences"] = [dataclasses.asdict(difference) for difference in found]
    return row | {"holds": not found, "seconds": round(time.perf_counter() - started, 2)}


def pairs_of(name, test, draw, count: int, seed: int):
    """Neighbours of random data; in every third the new record is far out."""
    for i in range(count):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), i))
        data, other = (draw(key) for key in keys)
        if held(name):  # copies of neighbours are coupled, not equal-keyed: replayed on equal data
            yield data, data
            continue
        row = jax.tree.map(lambda leaf: leaf[:1], other)
        if i % 3 == 0:
            row = jax.tree.map(lambda leaf: 1e3 * leaf if jax.numpy.issubdtype(leaf.dtype, float) else leaf, row)
        if getattr(test, "law", None) is not None:  # resamples are part of a record
            row = dataclasses.replace(row, z=data.z[:1])
        yield data, neighbour(data, row, relation_of(test, data))


def held(name: str) -> bool:
    """Whether equal keys couple only neighbours that share some private column."""
    return bool(nulls.configured(name).example.search.held)


def attackable() -> dict[str, cases.Configured]:
    """Examples whose audit is on record, by name, of which a search over one fixed randomness reaches the bound."""
    return {name: found for name, found in cases.all_examples().items() if found.recorded and not found.example.coupled}


def replayable() -> list[str]:
    """Nulls of private tests whose rows are people; families of pairs and tables are attacked elsewhere."""
    return [name for name, null in nulls.rows().items() if null.replayed and nulls.configured(name).private]


def relation_of(test, data) -> Relation:
    """What the test calls neighbours."""
    test = core.specialize(test, data)
    while isinstance(test, core.Sequential):
        test = core.specialize(test.first, data)
    return core.relation_of(test.sensitivity(core.num_records(data)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=lambda text: int(float(text)), default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no row after so long")
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    path, began = args.out / "neighbours.jsonl", time.monotonic()
    done = {(row["what"], row["name"], row["n"]) for row in rows(path)}
    todo = [(replayed, name, ()) for name in replayable() if ("replay", name, nulls.rows()[name].n) not in done]
    for name, subject in attackable().items():
        sizes = [n for n in RECORDS if n >= subject.example.min_records]
        todo += [(attack, name, (n, args.pairs)) for n in sizes if ("sensitivity", name, n) not in done]
    for number, (act, name, rest) in enumerate(todo):
        if time.monotonic() - began > args.seconds:
            break
        row = act(name, *rest)
        with path.open("a") as file:
            file.write(json.dumps({**row, **provenance()}) + "\n")
        print(f"{number + 1}/{len(todo)} {row}", flush=True)


def rows(path: Path) -> list[dict]:
    """Finished rows; a torn last line is left out and cut off."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            path.write_text("".join(json.dumps(row) + "\n" for row in found))
    return found


if __name__ == "__main__":
    main()
