"""`jaxdp demo`: made-up data, real commands, one report. Needs no arguments and no network.

A new part is one function in `PARTS` that writes its made-up data and returns the command to run on them;
each command writes into a subfolder of its own and report.html shows their results, not the data.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxdp._base import arguments, csv_files
from jaxdp.cli import options

DATA_SEED = 20_240_229  # the data are made up and public; only the noise is fresh
CONTINUOUS_ROWS, CATEGORICAL_ROWS, DISCOVERY_ROWS = 5_000, 20_000, 100_000

CONTINUOUS_SCHEMA = """\
# Public limits of the made-up measurements.
[columns.dose]
kind = "continuous"
bounds = [-5, 5]

[columns.response]
kind = "continuous"
bounds = [-5, 5]

[columns.age_score]
kind = "continuous"
bounds = [-6, 6]
"""

CATEGORICAL_SCHEMA = """\
# Public levels of the made-up survey.
[columns.smoker]
kind = "binary"
levels = ["no", "yes"]

[columns.tar]
kind = "ordinal"
levels = ["none", "some", "much"]

[columns.cough]
kind = "binary"
levels = ["no", "yes"]
"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="run the main jobs on made-up data and write a report",
        description="Makes up data, runs private tests on them at the stated epsilon each, writes DIR/report.html.",
        epilog="example: jaxdp demo --out out/demo",
    )
    options.add_epsilon(parser)
    options.add_out(parser, "out/demo")
    parser.add_argument("--seed", type=arguments.seed, metavar="N", help="repeatable simulation, NOT PRIVATE")


def run(args: argparse.Namespace) -> int:
    from jaxdp.cli import main as door
    from jaxdp.report.html import REPORT_NAME, write_report

    folder = options.output_folder(args.out, [REPORT_NAME])
    data_folder = options.output_folder(str(folder / "data"))
    commands = [part(data_folder) for part in PARTS.values()]
    shared = ["--epsilon", repr(args.epsilon), *_key_arguments(args.seed, folder, args.epsilon * len(commands))]
    for name, command in zip(PARTS, commands, strict=True):
        command = [*command, *shared, "--out", str(folder / name), "--overwrite"]  # its data are made up
        print(f"$ jaxdp {shlex.join(command)}")
        code = door.main(command)
        if code != door.SUCCESS:
            return code
        print()
    sections = [folder / name for name in PARTS]
    print(f"report: {write_report(folder, 'jaxdp demo', [], sections)}")
    return door.SUCCESS


def _key_arguments(seed: int | None, folder: Path, total: float) -> list[str]:
    """--seed for a simulation; for releases a new ledger that holds the budget of all parts."""
    if seed is not None:
        return ["--seed", str(seed)]
    from jaxdp.accounting.ledger import Ledger

    # a ledger is never deleted: an earlier demo's stays, and a new one gets the next number
    names = itertools.chain(["demo-ledger.db"], (f"demo-ledger-{number}.db" for number in itertools.count(2)))
    path = next(folder / name for name in names if not (folder / name).exists())
    Ledger.create(str(path), epsilon=total)
    return ["--ledger", str(path)]


def continuous(folder: Path) -> list[str]:
    """Dose and response share a wave of a third variable, and dose has an effect of its own on top."""
    import jax
    import numpy as np

    from jaxdp import simulate

    data = simulate.sine_confounder(jax.random.key(DATA_SEED), CONTINUOUS_ROWS, effect=0.25)
    columns = np.stack([np.asarray(values) for values in (data.x, data.y, data.z)], axis=1)
    rows = columns.round(5).tolist()
    return [
        *("test", *_write(folder, "continuous", ["dose", "response", "age_score"], rows, CONTINUOUS_SCHEMA)),
        *("--x", "dose", "--y", "response", "--given", "age_score"),
    ]


def categorical(folder: Path) -> list[str]:
    """Smoking acts on cough through tar alone: dependent, but independent given tar."""
    import numpy as np

    random = np.random.default_rng(DATA_SEED)
    smoker = random.random(CATEGORICAL_ROWS) < 0.3
    tar = (random.random(CATEGORICAL_ROWS)[:, None] > np.where(smoker[:, None], [0.1, 0.5], [0.7, 0.95])).sum(axis=1)
    cough = random.random(CATEGORICAL_ROWS) < np.array([0.1, 0.3, 0.6])[tar]
    levels, yes = np.array(["none", "some", "much"]), np.array(["no", "yes"])
    rows = zip(yes[smoker.astype(int)], levels[tar], yes[cough.astype(int)], strict=True)
    return [
        *("test", *_write(folder, "categorical", ["smoker", "tar", "cough"], rows, CATEGORICAL_SCHEMA)),
        *("--x", "smoker", "--y", "cough", "--given", "tar"),
    ]


def discovery(folder: Path) -> list[str]:
    """Records of the Asia network: which of eight binary variables are directly related?"""
    import json

    import jax
    import numpy as np

    from jaxdp.data import networks
    from jaxdp.report import written
    from jaxdp.simulate.designs.networks import sample_network

    network = networks.load("asia")
    records = sample_network(jax.random.key(DATA_SEED), network, DISCOVERY_ROWS)
    states = [variable.states for variable in network.variables.values()]
    columns = [np.array(names)[codes] for names, codes in zip(states, np.asarray(records.values).T, strict=True)]
    schema = "".join(
        f'[columns.{name}]\nkind = "binary"\nlevels = {json.dumps(list(levels))}\n\n'
        for name, levels in zip(network.names, states, strict=True)
    )
    rows = zip(*columns, strict=True)
    arguments = ["discover", *_write(folder, "asia", list(network.names), rows, schema)]
    arcs = [[network.names[i], network.names[j]] for i, j in zip(*np.nonzero(network.dag), strict=True)]
    graph = {"names": list(network.names), "directed": arcs, "undirected": []}
    truth = written.put_text(folder, "asia.json", json.dumps(graph))
    return [*arguments, "--compare", str(truth)]


def _write(folder: Path, name: str, header: list[str], rows: Iterable[Sequence[Any]], schema: str) -> list[str]:
    """Writes name.csv and name.toml; returns them as arguments of a command."""
    from jaxdp.report import written

    table = written.put(folder, f"{name}.csv", csv_files.write, header, rows)
    schema_path = written.put_text(folder, f"{name}.toml", schema)
    return [str(table), "--schema", str(schema_path)]


PARTS = {"continuous": continuous, "categorical": categorical, "discovery": discovery}
