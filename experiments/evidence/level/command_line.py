"""True nulls through `jaxdp test` itself: a CSV file, a schema, a simulation seed, and what the program answers.

    python -m experiments.evidence.level command [--seeds 5] [--out FILE]

The means of X and Y follow several columns of Z with slopes of 1.5, or a wave of the logarithm of a lognormal column on
linear bounds; both have residuals of sd 1. One JSON line per case and kind of dependence: p-values, or the refusal.
"""

import argparse
import contextlib
import io
import json
import tempfile
from pathlib import Path

import numpy as np

from experiments.record import append, rows
from jaxdp.cli.main import main as jaxdp

RECORD = Path(__file__).parent / "command_line.jsonl"
CASES = (  # (law, columns of Z, n, --sees or the default)
    ("lognormal", 1, 1000, None),
    ("lognormal", 1, 1000, "any"),
    ("slopes", 2, 20_000, None),
    ("slopes", 3, 20_000, None),
    ("slopes", 5, 20_000, None),
    ("slopes", 2, 20_000, "any"),
    ("slopes", 3, 20_000, "any"),
    ("slopes", 5, 20_000, "any"),
    ("slopes", 2, 100_000, None),
    ("slopes", 2, 100_000, "any"),
)


def columns(law: str, depth: int, n: int, seed: int):
    """x, y, z (n, d) in natural units, and bounds of x and y and of z."""
    generator = np.random.default_rng((1, seed, n, depth))
    normal = generator.standard_normal((n, depth))
    z = normal if law == "slopes" else np.exp(normal)
    mean = 1.5 * normal.sum(axis=1) if law == "slopes" else 1.5 * np.sin(3 * normal[:, 0])
    x, y = (mean + generator.standard_normal(n) for _ in range(2))
    return x, y, z, (6.0 * depth**0.5, 4.0) if law == "slopes" else (5.0, None)


def ask(law: str, depth: int, n: int, sees: str | None, seed: int, folder: Path) -> tuple[int, dict | str]:
    """Exit status, and what result.json holds or the message of the refusal."""
    x, y, z, (side, bound) = columns(law, depth, n, seed)
    given = [f"z{j}" for j in range(depth)]
    names = ["x", "y", *given]
    np.savetxt(
        folder / "d.csv", np.column_stack([x, y, z]), delimiter=",", header=",".join(names), comments="", fmt="%.6f"
    )
    bounds = {name: (-side, side) if name in "xy" else ((-bound, bound) if bound else (0.0, 50.0)) for name in names}
    told = [
        f'[columns.{name}]\nkind = "continuous"\nbounds = [{low}, {high}]\n' for name, (low, high) in bounds.items()
    ]
    (folder / "s.toml").write_text("".join(told))
    call = ["test", str(folder / "d.csv"), "--schema", str(folder / "s.toml"), "--x", "x", "--y", "y", "--overwrite"]
    call += ["--given", ",".join(given), "--epsilon", "1", "--seed", str(seed), "--force", "--out", str(folder / "out")]
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            status = jaxdp([*call, *(["--sees", sees] if sees else [])])
        except SystemExit as end:
            status = int(end.code or 0)
    return status, errors.getvalue() if status else json.loads((folder / "out" / "result.json").read_text())


def measure(law: str, depth: int, n: int, sees: str | None, seeds: int, folder: Path) -> dict:
    """One row."""
    row = {"law": law, "depth": depth, "n": n, "epsilon": 1.0, "sees": sees}
    found: list[float] = []
    for seed in range(seeds):
        status, content = ask(law, depth, n, sees, seed, folder)
        if status:
            return {**row, "exit": status, "because": content.strip()}
        found.append(round(float(content["p_value"]), 4))
    rejections = sum(p <= 0.05 for p in found)
    flags = (content["level_rule"] or {"flags": []})["flags"]
    return {**row, "test": content["method"], "flags": flags, "p_values": found, "rejections": rejections}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args(arguments)
    done = [tuple(row[key] for key in ("law", "depth", "n", "sees")) for row in rows(args.out)]
    with tempfile.TemporaryDirectory() as folder:
        append(args.out, (measure(*case, args.seeds, Path(folder)) for case in CASES if case not in done))
