"""The answers about all pairs of columns: a table of p-values, adjusted for their number, that prints as text."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxdp._base import amounts, p_values
from jaxdp._base.display import NOT_PRIVATE, as_html
from jaxdp.core import Cost
from jaxdp.report.picture import Picture

ADJUSTMENTS = {"holm": "Holm (family-wise error)", "bh": "Benjamini-Hochberg (false discovery rate)"}
MAX_PRINTED = 20
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
)


@dataclasses.dataclass(frozen=True, repr=False)
class PairAnswers:
    """The answers about all pairs of columns: p-values, adjusted for their number; noisy and public values only.

    pairs: one dict for each pair (`COLUMNS`), the smallest adjusted p-value first. content: what result.json holds.
    cost: of all pairs together. mode: "release" or "simulation". method: of the tests, by name.
    """

    pairs: list[dict[str, Any]]
    content: Mapping[str, Any]
    cost: Cost
    mode: str
    method: str

    @property
    def found(self) -> list[tuple[str, str]]:
        """The pairs whose adjusted p-value is at most the level."""
        return [(pair["x"], pair["y"]) for pair in self.pairs if pair["dependence_found"]]

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return {**self.content, "pairs": [dict(pair) for pair in self.pairs]}

    def to_dataframe(self) -> Any:
        """The pairs as a pandas DataFrame with the columns of pairs.csv. Errors: ImportError without pandas."""
        import pandas

        return pandas.DataFrame(self.pairs, columns=list(COLUMNS))

    def plot(self) -> Picture:
        """The heat map of all pairs by their adjusted p-values. Needs the `plot` extra."""
        return Picture.drawn(draw, self)

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

    def __repr__(self) -> str:
        content = self.content
        told = [f"{content['title']} {content['answer']}", *self.table(), f"Adjusted by {content['adjusted_by']}."]
        told += [f"Sees {content['sees']}."] if content["sees"] else []
        told += [content["power"]] if content.get("power") else []
        told += [content[name] for name in ("conditioned_on", "unit") if content[name]]
        told += content["cautions"]
        paid = f"All pairs together cost {amounts.cost(content)} ({content['relation']})."
        return "\n".join([*told, f"{NOT_PRIVATE}." if self.mode == "simulation" else paid])

    def _repr_html_(self) -> str:
        shown = {
            f"{pair['x']} ~ {pair['y']}": p_values.told(pair["p_value"], pair["smallest_p"])
            + f"; adjusted {p_values.number(pair['adjusted'])}"
            for pair in self.pairs[:MAX_PRINTED]
        }
        paid = NOT_PRIVATE if self.mode == "simulation" else str(self.cost)
        return as_html(self.content["title"], {**shown, "privacy": paid})


STRONGEST = 4.0  # decimal places of an adjusted p-value beyond which colours do not differ


def draw(path: Path, found: PairAnswers) -> None:
    """The heat map of all pairs: -log10 of the adjusted p-value, a dot where a dependence was found."""
    import numpy as np

    from jaxdp.report import figures

    names = list(found.content["columns"])
    depth, dots = np.full((len(names),) * 2, np.nan), []
    for pair in found.pairs:
        i, j = names.index(pair["x"]), names.index(pair["y"])
        depth[i, j] = depth[j, i] = min(-math.log10(max(pair["adjusted"], 10.0**-STRONGEST)), STRONGEST)
        dots += [(i, j), (j, i)] if pair["dependence_found"] else []
    how: dict[str, Any] = {"label": "-log10 of the adjusted p-value", "highest": STRONGEST, "colours": "Blues"}
    figures.heat_map(path, depth, names, **how, dots=dots, simulation=found.mode == "simulation")
