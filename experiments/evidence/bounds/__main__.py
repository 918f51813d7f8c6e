"""How often private bounds are usable, for eight kinds of columns (docs/theory/private_bounds.md).

    python -m experiments.evidence.bounds [--replicates 40]
    python -m experiments.evidence.bounds --table       # the table of the page, from the record

One JSON line per number of records, number of columns and delta, at a total of epsilon 0.2. `usable`: share of data
sets, by kind of column, whose bounds leave out at most a tenth of the values and are 0.3 to 4 times as wide as their
central 98 %. Simulated noise. All eight kinds are in one release, at the epsilon that each of the columns would have.
Of the first data sets (`COMMANDED`) the command line has to draft the same bounds from a file.
"""

import contextlib
import io
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.record import Recorder, command_line, fill, markdown, rows
from jaxdp.ask.draft_schema import DraftQuery
from jaxdp.cli.main import main as command

HERE = Path(__file__).parent
RECORD = HERE / "usable.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "private_bounds.md"
SETTINGS = (
    (1000, 2, 0.0),
    (2000, 2, 0.0),
    (10_000, 10, 0.0),
    (10_000, 10, 1e-6),
    (10_000, 2, 0.0),
    (100_000, 50, 0.0),
    (100_000, 50, 1e-6),
    (100_000, 10, 0.0),
)
KINDS = {
    "normal": lambda g, n: g.normal(50.0, 12.0, n),
    "income": lambda g, n: g.lognormal(10.0, 0.8, n),
    "whole years of age": lambda g, n: np.clip(np.round(g.normal(45.0, 20.0, n)), 18, 95),
    "waiting time": lambda g, n: g.exponential(30.0, n),
    "sd 0.001": lambda g, n: g.normal(0.0, 1e-3, n),
    "calendar year": lambda g, n: np.round(g.normal(1995.0, 8.0, n)),
    "t2, far from 0": lambda g, n: 3000.0 + 40.0 * g.standard_t(2, n),
    "two fifths zeros": lambda g, n: np.where(g.uniform(size=n) < 0.4, 0.0, g.exponential(5.0, n)),
}
SEED, EPSILON = 34, 0.2
COMMANDED = 2


def usable(values: np.ndarray, bounds) -> bool:
    """Whether bounds are of use for a column."""
    if bounds is None:
        return False
    low, high = bounds
    inside = np.mean((values >= low) & (values <= high))
    width = (high - low) / np.subtract(*np.quantile(values, (0.99, 0.01)))
    return bool(inside >= 0.9 and 0.3 <= width <= 4.0)


def commanded(table: Mapping[str, np.ndarray], epsilon: float, seed: int) -> dict:
    """Bounds by column, as `jaxdp schema draft --private` writes them for a file of the table."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as quiet:
        quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
        quiet.enter_context(contextlib.redirect_stderr(io.StringIO()))
        data, schema = Path(name) / "d.csv", Path(name) / "s.toml"
        lines = [",".join(f'"{one}"' for one in table), *(",".join(map(repr, row)) for row in _rows(table))]
        data.write_text("\n".join(lines) + "\n")
        asked = ["schema", "draft", str(data), "--private", "--columns", ",".join(f'"{one}"' for one in table)]
        if command([*asked, "--epsilon", repr(epsilon), "--seed", str(seed), "--out", str(schema)]):
            raise RuntimeError("the draft failed")
        return {one: said.get("bounds") for one, said in tomllib.loads(schema.read_text())["columns"].items()}


def _rows(table: Mapping[str, np.ndarray]) -> list[list[float]]:
    return np.stack(list(table.values()), axis=1).tolist()


def measured(records: int, columns: int, delta: float, replicates: int) -> dict:
    """One row: method and shares of usable bounds."""
    query = DraftQuery.of(columns=[f"c{place}" for place in range(columns)], epsilon=EPSILON, delta=delta)
    method = query.method(records)
    each = query.column_epsilon(method)
    found = dict.fromkeys(KINDS, 0)
    for replicate in range(replicates):
        rng = np.random.default_rng((SEED, replicate))
        table = {name: kind(rng, records) for name, kind in KINDS.items()}
        seed, epsilon = 1000 * SEED + replicate, each * len(KINDS)
        drafted = jaxdp.draft_schema(table, columns=list(KINDS), epsilon=epsilon, key=jax.random.key(seed))
        if replicate < COMMANDED:
            bounds = {one: said.get("bounds") for one, said in drafted.columns.items()}
            if bounds != (found_there := commanded(table, epsilon, seed)):
                raise RuntimeError(f"the command line drafts {found_there}, Python {bounds}")
        for name in KINDS:
            found[name] += usable(table[name], drafted.columns[name].get("bounds"))
    shares = {name: count / replicates for name, count in found.items()}
    return {"records": records, "columns": columns, "delta": delta, "method": method, "usable": shares}


def table() -> str:
    """The record as a table."""
    lines = []
    for row in rows(RECORD):
        query = DraftQuery.of(columns=[f"c{k}" for k in range(row["columns"])], epsilon=EPSILON, delta=row["delta"])
        shares = list(row["usable"].values())
        cells = [f"{share:.2f}" for share in (*shares, sum(shares) / len(shares))]
        size = row["records"] * query.column_epsilon(row["method"])
        lines.append([row["records"], row["columns"], f"{row['delta']:g}", f"{size:.0f}", row["method"], *cells])
    return markdown(["n", "columns", "delta", "n e", "method", *KINDS, "all"], lines)


def main() -> None:
    args = command_line(__doc__, 40).parse_args()
    if not args.table:
        recorder = Recorder(HERE, RECORD.stem)
        for setting in SETTINGS:
            row = recorder.add(**measured(*setting, args.replicates), replicates=args.replicates, seed=SEED)
            print(row)
    fill(PAGE, "usable", table())


if __name__ == "__main__":
    main()
