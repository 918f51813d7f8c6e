"""What `import jaxdp` adds to `import jax`: at most 0.1 s of processor time."""

import os
import resource
import subprocess
import sys

from experiments.benchmarks.harness import Case

CASES = {"import": {"runs": 7}}
QUICK = ()
GOAL_SECONDS = 0.1


def build(runs: int) -> Case:
    """Fresh interpreters, alternating; the least processor time of each kind counts."""

    def agree() -> dict[str, float]:
        times = {"jax": [], "jaxdp": []}
        for _ in range(runs):
            for module in times:
                times[module].append(processor_seconds(module))
        added = min(times["jaxdp"]) - min(times["jax"])
        return {"error": added, "tolerance": GOAL_SECONDS, "jax_seconds": min(times["jax"])}

    return Case(ours=lambda: processor_seconds("jaxdp"), units=1, unit="import", agree=agree, compiled=False)


def processor_seconds(module: str) -> float:
    """User and system time of a fresh interpreter that imports the module."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
