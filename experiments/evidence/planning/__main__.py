"""Is the planner's answer what `jaxdp.test` finds? Power of the call on tables made at the planned number of records.

    python -m experiments.evidence.planning [--replicates 700] [--only band-gcm]

Each case: `jaxdp.plan.answer` gives n for power 0.8 at epsilon 1; so many records are drawn anew from its law,
put into a table in the units of a schema, and asked by `jaxdp.test` with a simulation key. One JSON line a case.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.evidence.level.suite import exact_interval
from experiments.record import append
from jaxdp import plan
from jaxdp.data.schema import Schema

RECORD = Path(__file__).parent / "confirmed.jsonl"
POWER, EPSILON, SEED = 0.8, 1.0, 1_000_000
NUMBER = {"kind": "continuous", "bounds": [-1, 1]}
CODES = {"kind": "ordinal", "levels": [0, 1, 2, 3]}
CASES = {  # name: (columns, given, method or the default, effect)
    "band-gcm": ({"x": NUMBER, "y": NUMBER, "z": NUMBER}, ["z"], 0.3),
    "contrast-gcm": ({"x": NUMBER, "y": NUMBER, "z": NUMBER, "w": NUMBER}, ["z", "w"], 0.4),
    "conditional-kendall": ({"x": CODES, "y": CODES, "z": CODES}, ["z"], 0.3),
}


def confirm(name: str, replicates: int) -> dict:
    """One row: the plan, and how often the call that people use finds the effect."""
    columns, given, effect = CASES[name]
    schema = Schema.from_dict({"columns": columns})
    setting = plan.Setting.of_schema(schema, "x", "y", given)
    row = plan.answer(name, epsilon=EPSILON, effect=effect, power=POWER, setting=setting)
    draw = jax.jit(setting.design(row.n, effect, plan.solve.plan_of(name).form))
    found = 0
    for r in range(replicates):
        data = draw(jax.random.key(SEED + r))
        table = {"x": np.asarray(data.x), "y": np.asarray(data.y)}
        table |= {column: np.asarray(data.z)[:, j] for j, column in enumerate(given)}
        answer = jaxdp.test(
            table, x="x", y="y", given=given, epsilon=EPSILON, schema=schema, method=name, key=jax.random.key(r)
        )
        found += bool(answer.dependence_found)
    return {
        "test": name,
        "given": len(given),
        "n": row.n,
        "epsilon": EPSILON,
        "effect": effect,
        "planned_power": row.power,
        "found": found,
        "replicates": replicates,
        "power": round(found / replicates, 4),
        "exact_95": [round(float(end), 4) for end in exact_interval(found, replicates)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=700)
    parser.add_argument("--only", choices=tuple(CASES))
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args()
    append(args.out, (confirm(name, args.replicates) for name in ([args.only] if args.only else CASES)))


if __name__ == "__main__":
    main()
