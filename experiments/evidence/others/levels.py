"""P-values that other libraries give, under a true null, drawn in their environment: how many are at most 0.05.

    python -m experiments.evidence.others.levels SEED

prints one JSON line per function and null. Of the audited libraries binomialdpy alone gives p-values.
"""

import importlib.metadata
import json
import platform
import sys

import numpy as np

LEVEL, REPLICATES = 0.05, 4000
NULLS = ((30, 0.5), (30, 0.1))  # trials, probability of success
EPSILON = 1.0


def main() -> None:
    from binomialdpy import pvalue, tulap

    seed = int(sys.argv[1])
    np.random.seed(seed)  # noqa: NPY002, the noise of binomialdpy is NumPy's global generator
    rng = np.random.default_rng(seed)
    version = importlib.metadata.version("binomialdpy")
    facts = {"python": platform.python_version(), "numpy": np.__version__, "seed": seed}
    b = np.exp(-EPSILON)
    for n, p in NULLS:
        released = rng.binomial(n, p, REPLICATES) + tulap.random(REPLICATES, m=0, b=b, q=0)
        for name in ("right", "left", "two_side"):
            p_values = np.asarray(getattr(pvalue, name)(released, n, p, b, 0))
            row = {"library": "binomialdpy", "version": version, "function": f"pvalue.{name}", "trials": n, "p": p}
            row |= {"epsilon": EPSILON, "level": LEVEL, "rejections": int(np.sum(p_values <= LEVEL))}
            print(json.dumps(row | {"replicates": REPLICATES} | facts))


if __name__ == "__main__":
    main()
