"""`jaxdp.mic`: how strongly are two columns related, or all pairs of columns? Private MIC in one call."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np

from jaxdp._base import csv_files, p_values
from jaxdp._base.keywords import complete
from jaxdp.ask.calls import MICOptions
from jaxdp.ask.table_answer import TableAnswer
from jaxdp.ask.table_call import table_call
from jaxdp.ask.table_query import ColumnsQuery, asked, budget
from jaxdp.core import Cost
from jaxdp.data.schema import Schema

TOP_PAIRS = 20
NULL_DRAWS = 199
LEVEL = 0.05


@dataclasses.dataclass(frozen=True, repr=False)
class Coefficients(TableAnswer):
    """Private maximal information coefficients: of one pair (with a p-value), or of all pairs of columns.

    names: columns. pairs: one dict x, y, mic for each pair, the largest first. matrix: (d, d), 1 on the diagonal.
    p_value: of independence, for one pair. content: what result.json holds. cost, mode, method: of the release.
    Noisy and public values only.
    """

    files: ClassVar = ("picture.png", "heatmap.png", "result.json", "matrix.csv", "top_pairs.csv", "report.html")
    page: ClassVar = "Private maximal information coefficients"

    names: tuple[str, ...]
    pairs: list[dict[str, Any]]
    matrix: np.ndarray
    cost: Cost
    mode: str
    method: str
    content: Mapping[str, Any]
    p_value: float | None = None

    @property
    def picture(self) -> str:
        """One pair has a p-value on its scale, all pairs a heat map."""
        return "heatmap.png" if self.p_value is None else "picture.png"

    def written(self) -> dict[str, Any]:
        """Of all pairs the matrix and the largest coefficients."""
        if self.p_value is not None:
            return {}
        square = [[name, *row] for name, row in zip(self.names, self.matrix.round(6).tolist(), strict=True)]
        top = [[pair["x"], pair["y"], round(pair["mic"], 6)] for pair in self.pairs[:TOP_PAIRS]]
        return {
            "matrix.csv": (csv_files.write, ["", *self.names], square),
            "top_pairs.csv": (csv_files.write, ["x", "y", "mic"], top),
        }

    def draw(self, path: Path) -> None:
        """The p-value of one pair on its scale, or the heat map of all pairs."""
        from jaxdp.report import figures

        title, simulation = self.content["title"], self.mode == "simulation"
        if self.p_value is not None:
            figures.p_value_scale(path, p_value=self.p_value, level=LEVEL, title=title, simulation=simulation)
            return
        how: dict[str, Any] = {"label": "private MIC", "highest": 1.0, "colours": "viridis", "title": title}
        figures.heat_map(path, self.matrix, self.names, **how, simulation=simulation)


@dataclasses.dataclass(frozen=True)
class MICQuery(ColumnsQuery[Coefficients]):
    """Columns of a schema whose coefficients are wanted, at what budget; `MICQuery.of` checks it.

    all_pairs: of every pair, else of the two columns. delta: Gaussian noise under (epsilon, delta)-DP, for all pairs.
    max_cells: grid cells allowed. range_share: share of the budget for private ranges, for one pair.
    """

    form: ClassVar = Coefficients
    name: ClassVar = "mic"
    keywords: ClassVar = MICOptions
    lacks: ClassVar = "MIC takes no sums of records"

    schema: Schema
    names: tuple[str, ...]
    all_pairs: bool
    epsilon: float
    delta: float = 0.0
    max_cells: float | None = None
    range_share: float = 0.0

    @classmethod
    def of(cls, schema: Schema, /, **given: Unpack[MICOptions]) -> MICQuery:
        """x and y for one pair, neither for all pairs of `columns`. Errors: ValueError, before a table is opened."""
        own, schema = complete(MICOptions, given), schema.conditioned_on(())
        x, y, columns = own["x"], own["y"], own["columns"]
        delta, max_cells, range_share = own["delta"], own["max_cells"], own["range_share"]
        if (x is None) != (y is None):
            raise ValueError("give x and y for one pair, or neither for all pairs of the columns.")
        if x is not None and columns is not None:
            raise ValueError("columns go with all pairs: leave x and y out, or columns.")
        if x is not None and y is not None:
            names = [*schema.named("x", [x]), *schema.named("y", [y])]
        else:
            names = list(schema.names) if columns is None else schema.named("columns", columns)
        if len(names) < 2:
            raise ValueError(f"all pairs need at least two columns, got {len(names)}.")
        if len(set(names)) < len(names):
            raise ValueError("every column is named once.")
        if delta and x is not None:
            raise ValueError("delta goes with all pairs: one coefficient is pure epsilon-DP.")
        if range_share and x is None:
            raise ValueError("range_share goes with one pair, x and y.")
        if max_cells is not None and max_cells < 4:
            raise ValueError(f"max_cells must be at least 4, got {max_cells:g}.")
        return cls(schema, tuple(names), x is None, budget(own["epsilon"]), delta, max_cells, range_share)

    @property
    def short(self) -> str:
        """The query in one line, for ledgers."""
        return ("all pairs of " if self.all_pairs else "") + ", ".join(self.names)

    def answer(self, data: Any, key: Any, account: Any, on_stage: Callable[[str], None], **more: Any) -> Coefficients:
        """One coefficient, or all pairs by one release."""
        values, columns = data
        rows, names = values.shape[0], self.names
        self.require_rows(rows)
        measure = _all_pairs if self.all_pairs else _one_pair
        released, found, content = measure(self, values, columns, key, account)
        first, second = np.array(list(itertools.combinations(range(len(names)), 2))).T
        matrix = np.eye(len(names))
        matrix[first, second] = matrix[second, first] = found
        pairs = [{"x": names[i], "y": names[j], "mic": float(v)} for i, j, v in zip(first, second, found, strict=True)]
        pairs.sort(key=lambda pair: -pair["mic"])
        if self.all_pairs:
            top = ", ".join(f"{p['x']} ~ {p['y']} {p['mic']:.2f}" for p in pairs[:3])
            said = {"title": f"All {len(pairs)} pairs of {len(names)} columns", "answer": top}
        else:
            title = f"How strongly are {names[0]} and {names[1]} related?"
            said = {"title": title, "answer": f"MIC = {found[0]:.3f} (0 = unrelated, near 1 = nearly a function)"}
            said["answer"] += f", {content.pop('told')}"
        common = self.common(rows, released, account)
        common |= {"unit": self.schema.protects} if self.schema.unit else {}
        method = content.pop("method")
        return Coefficients(
            names=names,
            pairs=pairs,
            matrix=matrix,
            cost=released.cost,
            mode=released.mode,
            method=method,
            content={**common, **said, "method": method, "pairs": pairs, **content},
            p_value=content.get("p_value"),
        )


@table_call(MICOptions)
def mic(table: Any, **how: Unpack[MICOptions]) -> Coefficients:
    """How strongly are x and y (or all pairs of columns) related? MICr: 0 = unrelated, near 1 = nearly a function.

        jaxdp.mic(frame, x="dose", y="response", epsilon=1.0, bounds={"dose": (0, 10), "response": (-5, 5)})

    table, schema, bounds, levels, ledger, key, strict, records, force, missing, memory: as in `jaxdp.test`; all records
    of the columns must fit into memory. rows: likewise, and "all" takes one row of each person, drawn at random.
    columns: without x and y, those whose pairs are measured (default all described). delta: with all pairs, Gaussian
    noise under (epsilon, delta)-DP. max_cells: grid cells allowed, at least 4. range_share: with x and y, the share of
    the budget for private ranges, for heavy tails (0.3 is good).

    Returns `Coefficients`: pairs, matrix, p_value (one pair), `plot()`, `to_dict()`. It holds no record.
    Privacy: epsilon-DP (or (epsilon, delta)-DP) under replace-one. Errors: as `jaxdp.test`.
    """
    return asked(MICQuery, table, how)


def _one_pair(query: MICQuery, values, columns, key, account) -> tuple:
    """(result, one coefficient, what is said of it) with its p-value."""
    import jax

    from jaxdp.core import run
    from jaxdp.data.dataset import Data
    from jaxdp.independence.mic.mic_common import column_bounds
    from jaxdp.independence.mic.mic_laplace import MICrLaplace

    test = MICrLaplace(
        epsilon=query.epsilon,
        bounds=tuple(column_bounds(column) for column in columns),
        max_cells=query.max_cells,
        range_share=query.range_share,
    )
    with jax.enable_x64(True):
        result = run(test, key, Data(values[:, 0], values[:, 1]), ledger=account)
    p_value, left = float(result.p_value), query.epsilon * (1.0 - query.range_share)
    sd = math.sqrt(2.0) * float(result.release.sensitivity.bound) / left
    told = p_values.describe(p_value, p_values.smallest_of(test, p_value))
    said = {"told": told, "method": result.method, "p_value": p_value, "noise_sd": sd}
    return result, [float(result.statistic)], said


def _all_pairs(query: MICQuery, values, columns, key, account) -> tuple:
    """(release, coefficients of every pair, what is said of them) under one budget."""
    import jax

    from jaxdp import core
    from jaxdp.independence.mic import mic_common, mic_laplace
    from jaxdp.independence.mic.mic_pairs import MICrPairs, noise_scale

    rows = values.shape[0]
    bounds = [mic_common.column_bounds(column) for column in columns]

    def built(**noise):
        test = MICrPairs(**noise, bounds=bounds, max_cells=query.max_cells, progress=sys.stderr.isatty())
        return test.specialize(jax.ShapeDtypeStruct(values.shape, values.dtype))

    with jax.enable_x64(True):
        test = built(**query.noise())
        null = mic_common.null_table(rows, test.cells_allowed(rows), test.c, test.grid, "range", NULL_DRAWS)
        released = query.released(test, values, key, account)
        sd = noise_scale(test, rows)
        normal = query.less_noise_with_delta(sd, lambda **noise: noise_scale(built(**noise), rows))
    found = np.asarray(mic_laplace.corrected(np.asarray(released.value), null), float)
    said = {"method": core.method_of(test), "noise_sd": sd}
    return released, found, said if normal is None else said | {"noise_sd_with_delta": normal}
