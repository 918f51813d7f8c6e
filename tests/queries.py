"""Every query of a table, asked once by its command and once in Python: what the guards of privacy are tried on.

A new subclass of `TableQuery` gets its example here, and `tests/ask/test_every_table_query.py` fails until it has
one. The files that read this list try it without a word of theirs.
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np
from test_gwas_cli import files as fileset

import jaxdp
from jaxdp.ask.coefficients import MICQuery
from jaxdp.ask.describe import DescribeQuery
from jaxdp.ask.draft_schema import DraftQuery
from jaxdp.ask.graph import GraphQuery
from jaxdp.ask.independence import Query
from jaxdp.ask.pairs import PairsQuery
from jaxdp.ask.table_query import TableQuery
from jaxdp.ask.variants import GwasQuery

ROWS = 60
COLUMNS = {
    "a": {"kind": "binary", "levels": ["no", "yes"]},
    "b": {"kind": "ordinal", "levels": [0, 1, 2]},
    "c": {"kind": "continuous", "bounds": [0, 1], "missing": 0.25},
}
SCHEMA = {"columns": COLUMNS}
SCHEMA_FILE = """
[columns.a]
kind = "binary"
levels = ["no", "yes"]

[columns.b]
kind = "ordinal"
levels = [0, 1, 2]

[columns.c]
kind = "continuous"
bounds = [0, 1]
missing = 0.25
"""


@dataclasses.dataclass(frozen=True)
class Asked:
    """A query of the table of this file, which both ways of asking must make.

    words: of the command, where DATA and SCHEMA stand for the files. call: the public one, given: its keywords besides
    the schema, epsilon, account and key. epsilon: enough for `ROWS` records.
    """

    query: type[TableQuery]
    words: str
    call: Callable[..., Any]
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    epsilon: float = 1.0

    @property
    def answer(self) -> type:
        """The class of its answer."""
        return next(get_args(base)[0] for base in self.query.__orig_bases__ if get_args(base))

    @property
    def in_a_folder(self) -> bool:
        """Whether its command writes the answer into a folder."""
        return hasattr(self.query, "form")

    @property
    def of_a_table(self) -> bool:
        """Whether it reads the table of this file, and not files of another form."""
        return "DATA" in self.words

    @property
    def keywords(self) -> dict[str, Any]:
        """All keywords of the call, the schema where it has one."""
        known = {"schema": SCHEMA} if "schema" in inspect.signature(self.call).parameters else {}
        return {**self.given, **known, "epsilon": self.epsilon}

    def command(self, folder, *more: str) -> list[str]:
        """The command line about files that are written into the folder."""
        if not self.of_a_table:
            return [*fileset(folder, ROWS), *self.words.split(), "--epsilon", str(self.epsilon), *more]
        paths = {"DATA": str(folder / "d.csv"), "SCHEMA": str(folder / "s.toml")}
        write(folder, records())
        return [*(paths.get(word, word) for word in self.words.split()), "--epsilon", str(self.epsilon), *more]

    def ask(self, folder, redrawn: int = 0, **how: Any) -> Any:
        """The answer of the call. folder: for files of another form than a table. redrawn: as of `columns`."""
        if self.of_a_table:
            return self.call(table(redrawn=redrawn), **{**self.keywords, **how})
        _, prefix, _, persons, *_ = fileset(folder, ROWS, seed=redrawn)
        return self.call(prefix, covariates=persons, **{**self.keywords, **how})


EVERY = {
    "test": Asked(
        Query,
        "test DATA --schema SCHEMA --x a --y b --given c --method partition-gcm",
        jaxdp.test,
        {"x": "a", "y": "b", "given": "c", "method": "partition-gcm"},
    ),
    "pairs": Asked(PairsQuery, "test DATA --schema SCHEMA --all-pairs", jaxdp.test_pairs),
    "discover": Asked(
        GraphQuery, "discover DATA --schema SCHEMA --columns a,b", jaxdp.discover, {"columns": ["a", "b"]}
    ),
    "describe": Asked(DescribeQuery, "describe DATA --schema SCHEMA", jaxdp.describe),
    "mic": Asked(
        MICQuery, "mic DATA --schema SCHEMA --x b --y c --cells 6", jaxdp.mic, {"x": "b", "y": "c", "max_cells": 6}
    ),
    "mic of all pairs": Asked(
        MICQuery,
        "mic DATA --schema SCHEMA --all-pairs --columns b,c --cells 6",
        jaxdp.mic,
        {"columns": ["b", "c"], "max_cells": 6},
    ),
    "gwas": Asked(GwasQuery, "--count 1", jaxdp.gwas, {"names": ["age"], "bounds": {"age": (18, 90)}, "count": 1}),
    "draft": Asked(
        DraftQuery, "schema draft DATA --private --columns c", jaxdp.draft_schema, {"columns": ["c"]}, epsilon=2.0
    ),
    "draft of levels": Asked(
        DraftQuery,
        "schema draft DATA --private --levels-of a --delta 0.001",
        jaxdp.draft_schema,
        {"levels_of": ["a"], "delta": 0.001},
        epsilon=2.0,
    ),
}
# The answers that a command writes into a folder, of the table of this file.
WRITTEN = {name: asked for name, asked in EVERY.items() if asked.of_a_table and asked.in_a_folder}


def columns(rows: int = ROWS, redrawn: int = 0):
    """Values of the columns: codes of a and b, c in [0, 1]. redrawn: another number, another second half."""
    first, second = (
        (random.integers(0, 2, rows), random.integers(0, 3, rows), random.random(rows))
        for random in map(np.random.default_rng, (0, redrawn))
    )
    half = rows // 2
    return tuple(np.concatenate([one[:half], other[half:]]) for one, other in zip(first, second, strict=True))


def table(rows: int = ROWS, redrawn: int = 0) -> dict[str, list]:
    """The table in memory. redrawn: as of `columns`."""
    a, b, c = columns(rows, redrawn)
    return {"a": ["no" if one else "yes" for one in a], "b": b.tolist(), "c": c.tolist()}


def records(rows: int = ROWS) -> list[bytes]:
    """The table as lines of a file."""
    return [f"{a},{b},{c:.4f}".encode() for a, b, c in zip(*table(rows).values(), strict=True)]


def write(folder, rows, header: bytes = b"a,b,c"):
    """The files of the table and of its schema; returns the first."""
    (folder / "s.toml").write_text(SCHEMA_FILE)
    (folder / "d.csv").write_bytes(b"".join(line + b"\n" for line in [header, *rows]))
    return folder / "d.csv"


def plain(thing):
    """What an answer holds, down to texts that can be compared; NaN equals NaN."""
    if dataclasses.is_dataclass(thing):
        return {field.name: plain(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
    if isinstance(thing, Mapping):
        return {name: plain(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(value) for value in thing]
    return plain(np.asarray(thing).tolist()) if np.ndim(thing) else repr(thing)


def defined(base: type) -> set[type]:
    """Every class of the package below this one, exported or not, without abstract ones."""
    for found in pkgutil.walk_packages(jaxdp.__path__, "jaxdp."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    below, todo = set(), [base]
    while todo:
        more = todo.pop().__subclasses__()
        below.update(more)
        todo += more
    return {kind for kind in below if kind.__module__.startswith("jaxdp.") and not inspect.isabstract(kind)}
