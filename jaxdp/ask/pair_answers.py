"""The answers about all pairs of columns: a table of p-values, adjusted for their number, that prints as text."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from jaxdp._base import csv_files, p_values
from jaxdp._base.json_files import plain
from jaxdp.ask import detectable
from jaxdp.ask.table_answer import TableAnswer
from jaxdp.core import Cost

MAX_PRINTED = 20
STRONGEST = 4.0  # decimal places of an adjusted p-value beyond which colours do not differ
COLUMNS = (
    "x",
    "y",
    "method",
    "p_value",
    "adjusted",
    "dependence_found",
    "statistic",
    "effect",
    "low",
    "high",
    "smallest_p",
    "effect_is",
)


@dataclasses.dataclass(frozen=True, repr=False)
class PairAnswers(TableAnswer):
    """The answers about all pairs of columns: p-values adjusted for the number of pairs; noisy and public values only.

    pairs: one dict for each pair (`COLUMNS`), the smallest adjusted p-value first. content: what result.json holds.
    cost: of all pairs together. mode: "release" or "simulation". method: of the tests, by name. simulated: the pair of
    the planner's command that the content names, if any.
    """

    files: ClassVar = ("pairs.csv", "result.json", "pairs.png", "report.html")

    pairs: list[dict[str, Any]]
    content: Mapping[str, Any]
    cost: Cost
    mode: str
    method: str
    simulated: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def found(self) -> list[tuple[str, str]]:
        """The pairs whose adjusted p-value is at most the level."""
        return [(pair["x"], pair["y"]) for pair in self.pairs if pair["dependence_found"]]

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return plain({**self.content, "pairs": self.pairs})

    def missed(self, schema: str = "S.toml") -> dict[str, Any]:
        """The planner's command with the schema's path, where the content names one."""
        return {"power": detectable.in_a_command(self.simulated, schema, detectable.PAIR)} if self.simulated else {}

    def written(self) -> dict[str, Any]:
        """The table of all pairs."""
        return {"pairs.csv": (csv_files.write, COLUMNS, [[pair[name] for name in COLUMNS] for pair in self.pairs])}

    def to_dataframe(self) -> Any:
        """The pairs as a pandas DataFrame with the columns of pairs.csv. Errors: ImportError without pandas."""
        import pandas

        return pandas.DataFrame(self.pairs, columns=list(COLUMNS))

    def draw(self, path: Path) -> None:
        """The heat map of all pairs: -log10 of the adjusted p-value, a dot where a dependence was found."""
        import numpy as np

        from jaxdp.report import figures

        names = list(self.content["columns"])
        depth, dots = np.full((len(names),) * 2, np.nan), []
        for pair in self.pairs:
            i, j = names.index(pair["x"]), names.index(pair["y"])
            depth[i, j] = depth[j, i] = min(-math.log10(max(pair["adjusted"], 10.0**-STRONGEST)), STRONGEST)
            dots += [(i, j), (j, i)] if pair["dependence_found"] else []
        label = f"-log10 of the adjusted p-value, {STRONGEST:g} for all above"
        how: dict[str, Any] = {"label": label, "highest": STRONGEST, "colours": "Blues"}
        figures.heat_map(path, depth, names, **how, dots=dots, simulation=self.mode == "simulation")

    def table(self, most: int = MAX_PRINTED) -> list[str]:
        """The pairs as lines of a text, the smallest adjusted p-value first."""
        asked = [f"{pair['x']} ~ {pair['y']}" for pair in self.pairs[:most]]
        width = max(map(len, asked), default=4)
        lines = [f"{'pair':{width}s}  adjusted p  p-value   dependent  test"]
        for text, pair in zip(asked, self.pairs, strict=False):
            told = "yes" if pair["dependence_found"] else "no"
            numbers = f"{p_values.number(pair['adjusted']):<10s}  {p_values.number(pair['p_value']):<8s}"
            least = "*" if p_values.at_smallest(pair["p_value"], pair["smallest_p"]) else ""
            lines.append(f"{text:{width}s}  {numbers}  {told:9s}  {pair['method']}{least}")
        left = len(self.pairs) - most
        lines += [f"... and {left} pairs more"] if left > 0 else []
        floored = any(p_values.at_smallest(pair["p_value"], pair["smallest_p"]) for pair in self.pairs[:most])
        return [*lines, "* the smallest p-value that this test can give"] if floored else lines
