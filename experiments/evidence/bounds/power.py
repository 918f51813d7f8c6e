"""What drafted bounds cost a test beside perfect ones, at the same total epsilon (docs/theory/private_bounds.md).

    python -m experiments.evidence.bounds.power [--replicates 100]
    python -m experiments.evidence.bounds.power --table       # the table of the page, from the record

One JSON line per kind of column and number of records: how often `jaxdp.test` finds X ~ Y given Z at level 0.05, at a
total of epsilon 2. perfect: bounds of X and Y are the ends of the central 98 % of their law. drafted: 0.4 for both of
them by `jaxdp.draft_schema`, 1.6 for the test; `without`: data sets whose draft gave no bounds, which count as no
finding. Bounds of Z are public. Simulated noise. X and Y are increasing functions of normal variables with a partial
correlation of `effect` given Z. Of the first data set the command line has to give the same p-value.
"""

import contextlib
import io
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np
from scipy import stats

import jaxdp
from experiments.evidence.bounds.__main__ import PAGE
from experiments.record import Recorder, command_line, fill, markdown, rows
from jaxdp.cli.main import main as command

HERE = Path(__file__).parent
RECORD = HERE / "power.jsonl"
KINDS = {  # of a standard normal variable
    "normal": lambda u: 50.0 + 12.0 * u,
    "income": lambda u: np.exp(10.0 + 0.8 * u),
    "waiting time": lambda u: -30.0 * np.log(stats.norm.sf(u)),
}
EFFECTS = {500: 0.18, 2000: 0.09, 10_000: 0.04}
SEED, TOTAL, DRAFT, CENTRAL = 35, 2.0, 0.4, 0.98
Z = {"kind": "continuous", "bounds": [-3, 3]}


def drawn(kind: str, records: int, replicate: int) -> dict[str, np.ndarray]:
    """A table."""
    rng = np.random.default_rng((SEED, replicate))
    z = rng.normal(size=records)
    u, v = rng.multivariate_normal([0.0, 0.0], [[1.0, EFFECTS[records]], [EFFECTS[records], 1.0]], records).T
    x, y = (KINDS[kind](0.5 * z + np.sqrt(0.75) * one) for one in (u, v))
    return {"x": x, "y": y, "z": z}


def perfect(kind: str) -> dict:
    """The schema of public bounds."""
    low, high = KINDS[kind](stats.norm.ppf([0.5 - 0.5 * CENTRAL, 0.5 + 0.5 * CENTRAL]))
    one = {"kind": "continuous", "bounds": [float(low), float(high)]}
    return {"columns": {"x": one, "y": one, "z": Z}}


def drafted(table: Mapping, seed: int) -> dict | None:
    """The schema of drafted bounds; None where there are none."""
    found = jaxdp.draft_schema(table, columns=["x", "y"], epsilon=DRAFT, key=jax.random.key(seed)).columns
    return {"columns": {**found, "z": Z}} if all("bounds" in one for one in found.values()) else None


def asked(table: Mapping, schema: dict, epsilon: float, seed: int) -> float:
    """The p-value of the call in Python."""
    how = {"schema": schema, "epsilon": epsilon, "key": jax.random.key(seed), "force": True}
    return float(jaxdp.test(table, x="x", y="y", given="z", **how).p_value)


def commanded(table: Mapping, seed: int) -> float:
    """The p-value of the command line, draft and test."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as quiet:
        quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
        quiet.enter_context(contextlib.redirect_stderr(io.StringIO()))
        data, schema, out = (Path(name) / part for part in ("d.csv", "s.toml", "out"))
        lines = ["x,y,z", *(",".join(map(repr, map(float, row))) for row in zip(*table.values(), strict=True))]
        data.write_text("\n".join(lines) + "\n")
        draft = ["schema", "draft", str(data), "--private", "--columns", "x,y", "--epsilon", str(DRAFT)]
        if command([*draft, "--seed", str(seed), "--out", str(schema)]):
            raise RuntimeError("the draft failed")
        schema.write_text(schema.read_text() + '\n[columns.z]\nkind = "continuous"\nbounds = [-3, 3]\n')
        asking = ["test", str(data), "--schema", str(schema), "--x", "x", "--y", "y", "--given", "z", "--force"]
        if command([*asking, "--epsilon", str(TOTAL - DRAFT), "--seed", str(seed), "--out", str(out)]):
            raise RuntimeError("the test failed")
        return json.loads((out / "result.json").read_text())["p_value"]


def measured(kind: str, records: int, replicates: int) -> dict:
    """One row."""
    found, without = {"perfect": 0, "drafted": 0}, 0
    for replicate in range(replicates):
        table = drawn(kind, records, replicate)
        found["perfect"] += asked(table, perfect(kind), TOTAL, replicate) <= 0.05
        schema = drafted(table, replicate)
        without += schema is None
        p = 1.0 if schema is None else asked(table, schema, TOTAL - DRAFT, replicate)
        found["drafted"] += p <= 0.05
        if not replicate and schema is not None and abs(commanded(table, replicate) - p) > 1e-9:
            raise RuntimeError(f"the command and the call differ for {kind}, {records}.")
    rates = {way: count / replicates for way, count in found.items()}
    return {"kind": kind, "records": records, "effect": EFFECTS[records], **rates, "without": without}


def table() -> str:
    """The record as a table: perfect, drafted."""
    found = {(row["kind"], row["records"]): row for row in rows(RECORD)}
    cell = "{perfect:.2f}, {drafted:.2f}".format_map
    lines = [[kind, *(cell(found[kind, records]) for records in EFFECTS)] for kind in KINDS]
    return markdown(["column", *(f"n = {records}, {effect:g}" for records, effect in EFFECTS.items())], lines)


def main() -> None:
    args = command_line(__doc__, 100).parse_args()
    if not args.table:
        recorder = Recorder(HERE, RECORD.stem)
        for records in EFFECTS:
            for kind in KINDS:
                print(recorder.add(**measured(kind, records, args.replicates), replicates=args.replicates, seed=SEED))
    fill(PAGE, "power", table())


if __name__ == "__main__":
    main()
