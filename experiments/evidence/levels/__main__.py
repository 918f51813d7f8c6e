"""Which levels a private draft names, and what drafted and hashed levels cost a test (docs/theory/private_levels.md).

    python -m experiments.evidence.levels [--replicates 40]
    python -m experiments.evidence.levels --table       # the tables of the page, from the records

`named.jsonl`: one line per number of records and epsilon of the column, at delta 1e-6: of each kind of column the mean
share of records whose level is named, the mean number of levels named, and of "rare" how often its level of 10 records
was. Simulated noise.
`power.jsonl`: one line per column and effect: how often `jaxdp.test` finds Y, whose probability differs by level of X
by +-effect, at a total of epsilon 1. known: all levels are public; hashed: 16 cells; drafted: 0.2 for the levels and
0.8 for the test. Of the first data set the command line has to give the same p-values.
"""

import contextlib
import io
import json
import tempfile
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.record import Recorder, command_line, fill
from jaxdp.cli.main import main as command

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "private_levels.md"
SEED, DELTA = 34, 1e-6
SIZES, EPSILONS = (500, 2000, 10_000), (0.2, 1.0)
ZIPF = 1.0 / np.arange(1, 51)
RARE = "of ten"
KINDS = {
    "5 equally frequent": lambda g, n: g.choice([f"level {k}" for k in range(5)], n),
    "50, frequency 1/rank": lambda g, n: g.choice([f"level {k}" for k in range(50)], n, p=ZIPF / ZIPF.sum()),
    "names, nearly all different": lambda g, n: np.array([f"name {k}" for k in g.integers(0, 10 * n, n)]),
    "2 and one of 10 records": lambda g, n: g.permutation(
        np.where(np.arange(n) < 10, RARE, g.choice(["no", "yes"], n, p=[0.7, 0.3]))
    ),
}
LEVELS = {"5 equally frequent": 5, "50, frequency 1/rank": 50}
EFFECTS = {"5 equally frequent": (0.0, 0.06)}
DRAFT = 0.2
EPSILON = {"known": 1.0, "hashed": 1.0, "drafted": 0.8}  # of the test
RECORDS = 2000


def named(records: int, epsilon: float, replicates: int) -> dict:
    """One row: shares of records, numbers of levels, how often the rare one was named."""
    share, count, rare = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0.0), 0
    for replicate in range(replicates):
        rng = np.random.default_rng((SEED, replicate))
        table = {name: kind(rng, records).astype(object) for name, kind in KINDS.items()}
        budget = {"epsilon": epsilon * len(KINDS), "delta": DELTA * len(KINDS)}
        key = jax.random.fold_in(jax.random.key(SEED), replicate)
        found = jaxdp.draft_schema(table, levels_of=list(KINDS), key=key, **budget)
        for name, values in table.items():
            levels = found.columns[name].get("levels", [])[:-1]
            share[name] += float(np.mean(np.isin(values, levels))) / replicates
            count[name] += len(levels) / replicates
            rare += RARE in levels
    least = found.columns[name]["released"]["least"]
    return {"records": records, "epsilon": epsilon, "least": least, "share": share, "levels": count, "rare": rare}


def commanded(folder: Path, kind: str, way: str, seed: int) -> float:
    """The p-value of the command line about the table in the folder."""
    data, schema, run = str(folder / "d.csv"), folder / "s.toml", ["--seed", str(seed)]
    y = '[columns.y]\nkind = "binary"\nlevels = ["no", "yes"]\n'
    if way == "drafted":
        schema.unlink(missing_ok=True)
        draft = ["schema", "draft", data, "--private", "--levels-of", "x", "--delta", str(DELTA)]
        if command([*draft, *run, "--epsilon", str(DRAFT), "--out", str(schema)]):
            raise RuntimeError("the draft failed")
        schema.write_text(schema.read_text() + "\n" + y)
    else:
        levels = '"hashed:16"' if way == "hashed" else json.dumps(of(kind))
        schema.write_text(f'[columns.x]\nkind = "categorical"\nlevels = {levels}\n\n{y}')
    asking = ["test", data, "--schema", str(schema), "--x", "x", "--y", "y", "--epsilon", str(EPSILON[way])]
    if command([*asking, *run, "--out", str(folder / "out")]):
        raise RuntimeError("the test failed")
    return json.loads((folder / "out" / "result.json").read_text())["p_value"]


def asked(table: dict, kind: str, way: str, seed: int) -> float:
    """The p-value of the call in Python; 1 where no level was named."""
    y = {"kind": "binary", "levels": ["no", "yes"]}
    x: dict = {"kind": "categorical", "levels": "hashed:16" if way == "hashed" else of(kind)}
    if way == "drafted":
        how = {"epsilon": DRAFT, "delta": DELTA, "key": jax.random.key(seed)}
        x = dict(jaxdp.draft_schema(table, levels_of=["x"], **how).columns["x"])
        if "levels" not in x:
            return 1.0
    schema = {"columns": {"x": x, "y": y}}
    answer = jaxdp.test(table, x="x", y="y", schema=schema, epsilon=EPSILON[way], key=jax.random.key(seed))
    return float(answer.p_value)


def of(kind: str) -> list[str]:
    """All levels of a column."""
    return [f"level {k}" for k in range(LEVELS[kind])]


def require_the_command_agrees(table: dict, kind: str, seed: int) -> None:
    """Raises RuntimeError where the command line gives another p-value than the call."""
    for way in EPSILON:
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as quiet:
            quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
            quiet.enter_context(contextlib.redirect_stderr(io.StringIO()))
            lines = ["x,y", *(f"{a},{b}" for a, b in zip(table["x"], table["y"], strict=True))]
            (Path(name) / "d.csv").write_text("\n".join(lines) + "\n")
            found = commanded(Path(name), kind, way, seed)
        if abs(found - asked(table, kind, way, seed)) > 1e-9:
            raise RuntimeError(f"the command and the call differ for {kind}, {way}.")


def power(kind: str, effect: float, replicates: int) -> dict[str, int]:
    """How many of the data sets each way finds at level 0.05."""
    found = dict.fromkeys(EPSILON, 0)
    for replicate in range(replicates):
        rng = np.random.default_rng((SEED, replicate, 1))
        x = KINDS[kind](rng, RECORDS).astype(object)
        sign = dict(zip(of(kind), rng.permutation(np.resize([1.0, -1.0], LEVELS[kind])), strict=True))
        likely = 0.5 + effect * np.array([sign[level] for level in x])
        table = {"x": x, "y": np.where(rng.uniform(size=RECORDS) < likely, "yes", "no").astype(object)}
        if not replicate:
            require_the_command_agrees(table, kind, replicate)
        for way in EPSILON:
            found[way] += asked(table, kind, way, replicate) <= 0.05
    return found


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()]


def tables() -> dict[str, str]:
    """The records as tables."""
    lines = [f"| n | epsilon | T | {' | '.join(KINDS)} |", "|" + "---|" * (len(KINDS) + 3)]
    for row in rows("named"):
        cells = [f"{row['share'][kind]:.2f} ({row['levels'][kind]:.1f})" for kind in KINDS]
        lines.append(f"| {row['records']} | {row['epsilon']:g} | {row['least']} | {' | '.join(cells)} |")
    found = ["| column | effect | known | hashed | drafted |", "|---|---|---|---|---|"]
    for row in rows("power"):
        cells = [f"{row['found'][way] / row['replicates']:.2f}" for way in EPSILON]
        found.append(f"| {row['column']} | {row['effect']:g} | {' | '.join(cells)} |")
    return {"named": "\n".join(lines), "power": "\n".join(found)}


def main() -> None:
    args = command_line(__doc__, 40, "of drafts; five times as many of tests").parse_args()
    if not args.table:
        told = {"replicates": args.replicates, "seed": SEED}
        recorder = Recorder(HERE, "named")
        for records in SIZES:
            for epsilon in EPSILONS:
                print(recorder.add(**named(records, epsilon, args.replicates), **told))
        recorder = Recorder(HERE, "power")
        for kind, effects in EFFECTS.items():
            for effect in effects:
                found = power(kind, effect, 5 * args.replicates)
                more = told | {"replicates": 5 * args.replicates}
                print(recorder.add(column=kind, effect=effect, records=RECORDS, found=found, **more))
    for name, table in tables().items():
        fill(PAGE, name, table)


if __name__ == "__main__":
    main()
