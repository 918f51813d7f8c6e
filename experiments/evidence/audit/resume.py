"""Simulations killed at random times and resumed: is anything lost, repeated or changed?

python -m experiments.evidence.audit.resume --kills 100 --out experiments/evidence/audit/resume.json  # about 5 minutes

Each life begins where the file ends, is killed with SIGKILL within a tenth of a second of its first result, and half of
the times the end of the file is cut off on top. The last life runs to its end; its sorted records are compared with
those of a run that nobody disturbed.
"""

import argparse
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jaxdp
from experiments.record import provenance
from jaxdp.simulate.engine import grid, results
from jaxdp.simulate.engine.record_file import read
from jaxdp.simulate.engine.settings import Setting

CHUNK = 5
LONGEST = 0.1  # seconds between the first result of a life and its end
CUT = 600  # bytes


def settings() -> list[Setting]:
    """Two settings of the recommended test on a small design."""
    test = jaxdp.PartitionGCM(epsilon=1.0)
    return [
        Setting({"test": "PartitionGCM", "n": 60, "effect": effect}, test, functools.partial(design, effect=effect))
        for effect in (0.0, 0.5)
    ]


def design(key, effect):
    """Confounded columns, n = 60."""
    return jaxdp.simulate.sine_confounder(key, 60, effect=effect)


def work(folder: str, replicates: int) -> None:
    """One life: says so at its first result."""
    grid.SECONDS_BETWEEN_WRITES = 0.0
    said: list[bool] = []

    def advance(setting, count):
        if not said:
            said.append(True)
            print("begun", flush=True)

    plan = grid.Plan(replicates, chunk=CHUNK, keep_p_values=True)
    grid.run(settings(), folder, plan, resume=True, advance=advance)


def attack(folder: Path, kills: int, seed: int) -> dict:
    """The counts of one attack."""
    generator, replicates = random.Random(seed), 40 * (kills + 20)
    grid.run(settings(), folder / "calm", grid.Plan(replicates, chunk=CHUNK, keep_p_values=True))
    module = "experiments.evidence.audit.resume"
    command = [sys.executable, "-m", module, "--work", str(folder / "out"), str(replicates)]
    path = folder / "out" / results.RECORDS / "task_0_of_1"
    killed = torn = ended = 0
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        time.sleep(generator.uniform(0.0, LONGEST))
        process.send_signal(signal.SIGKILL)
        was_killed = process.wait() == -signal.SIGKILL
        killed, ended = killed + was_killed, ended + (not was_killed)
        if generator.random() < 0.5 and path.exists():
            size = path.stat().st_size
            os.truncate(path, max(0, size - generator.randrange(1, CUT)))
            torn += 1
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    calm, found = (results.read_records([folder / name]) for name in ("calm", "out"))
    return {
        "kills": killed,
        "lives_that_ended_before": ended,
        "torn_tails": torn,
        "records": len(calm),
        "replicates": 2 * replicates,
        "lost": len(set(calm) - set(found)),
        "duplicated": len(read(path).records) - len(set(read(path).records)),
        "same_sorted_records": found == calm,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "resume.json")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.work[0], int(args.work[1]))
        return
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = attack(Path(folder), args.kills, args.seed)
    found |= {"seconds": round(time.monotonic() - started, 1), "seed": args.seed, **provenance()}
    args.out.write_text(json.dumps(found, indent=2) + "\n")
    print(found)


if __name__ == "__main__":
    main()
