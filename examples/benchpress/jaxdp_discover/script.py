"""A private graph of one of Benchpress's data sets, as a structure learning algorithm of Benchpress.

Benchpress's data are simulated or published, and its seed makes the noise: the graph is a simulation, not a release.
"""

import sys
import time
from pathlib import Path

import jax
import pandas as pd

import jaxdp

sys.path.append("workflow/scripts/utils")  # of Benchpress, which runs this in its own folder
from add_timeout import timeoutf


def table_and_schema(path: str, bounds: str):
    """The records, and what is public about their columns. bounds: "None" for categorical data, whose first row has
    the numbers of levels; else the limit of all columns, which are clipped to [-limit, limit]."""
    table = pd.read_csv(path)
    if bounds == "None":
        levels, records = table.iloc[0].astype(int), table.iloc[1:].astype(int).reset_index(drop=True)
        rules = {name: {"kind": "categorical", "levels": list(range(count))} for name, count in levels.items()}
        return records, {"columns": rules}
    limit = float(bounds)
    return table, {"columns": {name: {"kind": "continuous", "bounds": [-limit, limit]} for name in table.columns}}


def search(data: str, output: dict[str, str], options: dict[str, str]) -> None:
    """Writes the adjacency matrix (1 in row i, column j: i -> j; an open edge both ways) and the time."""
    table, schema = table_and_schema(data, options["bounds"])
    delta = options["delta"]
    graph = jaxdp.discover(
        table,
        schema=schema,
        epsilon=float(options["epsilon"]),
        key=jax.random.key(int(options["seed"])),
        **({} if delta in ("None", "0") else {"delta": float(delta)}),
    )
    Path(output["time"]).write_text(str(time.perf_counter() - START))
    pd.DataFrame(graph.cpdag.astype(int), columns=list(graph.names)).to_csv(output["adjmat"], index=False)
    Path(output["ntests"]).write_text("None")


START = time.perf_counter()
snakemake = globals()["snakemake"]  # which Snakemake puts here
GIVEN = snakemake.input["data"], snakemake.output, snakemake.wildcards
FILES = [snakemake.output[name] for name in ("adjmat", "time", "ntests")]
if snakemake.wildcards["timeout"] == "None":
    search(*GIVEN)
else:
    with timeoutf(int(snakemake.wildcards["timeout"]), *FILES, START):
        search(*GIVEN)
