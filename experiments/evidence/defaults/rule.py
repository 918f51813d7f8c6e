"""What the record says of a default: where an alternative needs a fifth fewer records, and which tests are none.

An alternative reaches the power for every law of dependence that the default is built to see, of the same kind of
columns, keeps its level on the true nulls given Z of that kind (`nulls`), and nowhere needs more records than the
default by the factor that it saves at most: of two tests that are each better somewhere, neither need be the default.
"""

import collections
import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
from scipy.stats import binom

from experiments.evidence.defaults.shapes import SEEN_BY, Shape
from experiments.record import rows
from jaxdp import catalogue
from jaxdp.spec import ANY

HERE = Path(__file__).parent
RECORD, NULLS = HERE / "defaults.jsonl", HERE / "nulls.jsonl"
FEWER = 0.8  # of the default's records
TOLERATED, RARE = 0.06, 1e-4  # a level that is kept, and how rarely its measurement says otherwise

Cells = dict[tuple[str, float], dict[str, float]]


def shape_of(found: dict) -> Shape:
    """The shape of a row."""
    return Shape(**{**found, "levels": tuple(found["levels"])})


def records(path: Path = RECORD) -> dict[str, Cells]:
    """kind of columns -> {(shape, epsilon): {test: records, infinite where it lacks the power}}."""
    kinds: dict[str, Cells] = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows(path):
        if "refused" not in row:
            place = json.dumps(row["shape"]), row["epsilon"]
            kinds[row["kind"]][place][row["test"]] = np.inf if row["records"] is None else row["records"]
    return kinds


def shape_at(place) -> Shape:
    """The shape of a key of `Cells`."""
    return shape_of(json.loads(place[0]))


def first_shape(cells: Cells) -> Shape:
    """A shape of these kinds of columns."""
    return shape_at(next(iter(cells)))


def default_of(cells: Cells) -> catalogue.Entry:
    """The default of these kinds of columns."""
    return catalogue.default(first_shape(cells).domain(True))


def beaten(cells: Cells, default: str, seen: Collection[str], lost: Collection[str] = ()) -> dict[str, list[str]]:
    """Alternatives that need a fifth fewer records than this default -> where. lost: tests that lose their level."""
    cells = {place: found for place, found in cells.items() if SEEN_BY[shape_at(place).law] in seen or ANY in seen}
    blind = {name for found in cells.values() for name, needed in found.items() if np.isinf(needed)}
    better: dict[str, list[str]] = collections.defaultdict(list)
    for place, found in cells.items():
        own = found.get(default, np.inf)
        for name, needed in found.items():
            if name not in (blind | set(lost)) - {default} and needed < FEWER * own:
                better[name].append(f"{needed:.0f} < {own:.0f}: {shape_at(place)}, epsilon {place[1]}")
    return {
        name: places for name, places in better.items() if saved(cells, name, default) > saved(cells, default, name)
    }


def saved(cells: Cells, name: str, other: str) -> float:
    """The largest factor by which another test needs more records than this one, of the cells with both."""
    return max(found[other] / found[name] for found in cells.values() if name in found and other in found)


def lost(path: Path = NULLS) -> dict[str, set[str]]:
    """kind of columns -> tests that reject too many of its true nulls given Z."""
    kinds: dict[str, set[str]] = collections.defaultdict(set)
    for row in rows(path):
        if row["rate"] * row["replicates"] > binom.ppf(1 - RARE, row["replicates"], TOLERATED):
            kinds[row["kind"]].add(row["test"])
    return kinds
