"""Writes the tables of docs/evidence/compared.md from the records.

python -m experiments.evidence.compared.page
"""

from collections import defaultdict
from pathlib import Path

from scipy.stats import binom

from experiments.evidence.compared.answers import RECORD
from experiments.record import fill, rows

TABLES = Path(__file__).parent / "compared.jsonl"
GRAPHS = Path(__file__).parents[1] / "discovery" / "rows.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "compared.md"
SEVERAL = {  # table of the page: parts of compared.jsonl
    "columns": ("columns", "columns, votes", "columns, MST", "columns, AIM"),
    "given": ("three columns", "three columns, MST", "three columns, AIM", "three columns, votes"),
    "groups": ("groups", "groups, votes", "groups, kernels"),
    "table": ("table", "table, votes"),
}
NETWORK = "12 of 2-3"


def share(count: int, of: int) -> str:
    return f"{count / of:.2f}"


def too_many(count: int, of: int, level: float = 0.05) -> bool:
    """Whether chance gives so many in fewer than one of a thousand experiments at the level."""
    return bool(binom.sf(count - 1, of, level) < 1e-3)


def ordered(methods):
    """jaxdp first, tests without privacy last."""
    return sorted(methods, key=lambda name: (not name.startswith("jaxdp"), name.startswith("not private")))


def told(name: str) -> str:
    if not name.startswith("jaxdp: "):
        return name
    method, *more = name.removeprefix("jaxdp: ").split(", ")
    return ", ".join([f"jaxdp, `{method}`", *more])


def rejections(parts) -> str:
    """Rates by n and law; seconds of one answer where a row or the part of times has them."""
    cells, laws, seconds = defaultdict(dict), {}, {}
    for row in rows(TABLES):
        seconds |= {row["method"]: row["seconds"]} if "seconds" in row else {}
        if row["part"] in parts:
            laws[row["n"], row["law"]] = None
            rate = share(row["rejections"], row["replicates"])
            wrong = row["law"] == "none" and too_many(row["rejections"], row["replicates"])
            cells[row["method"]][row["n"], row["law"]] = f"**{rate}**" if wrong else rate
    sizes = {n for n, _ in laws}
    heads = [(f"{n}: " if len(sizes) > 1 else "") + law.replace("none", "null") for n, law in laws]
    lines = ["| | " + " | ".join([*heads, "seconds"]) + " |", "|---" * (len(heads) + 2) + "|"]
    for method in ordered(cells):
        found = [cells[method].get(law, "") for law in laws]
        lines.append("| " + " | ".join([told(method), *found, _seconds(method, seconds.get(method))]) + " |")
    return "\n".join(lines)


def _seconds(method: str, value) -> str:
    """A time to one digit; none of tests without privacy, which are not in question."""
    return "" if value is None or method.startswith("not private") else f"{float(f'{value:.1g}'):g}"


def estimates(part: str) -> str:
    """Rejections of every law, the intervals where there are some, and seconds, one block for each n."""
    cells, laws, sizes = defaultdict(dict), {}, {}
    for row in rows(RECORD):
        if row["part"] == part:
            cells[row["method"]][row["n"], row["law"]] = row
            laws[row["law"]] = sizes[row["n"]] = None
    effects = [law for law in laws if law != "none"]
    some = any(row["answered"] for found in cells.values() for row in found.values())
    heads = ["null", *effects] + (["held: " + ", ".join(["null", *effects]), "width"] if some else []) + ["seconds"]
    lines = []
    for n in sizes:
        lines += [
            f"| n = {n:_} | ".replace("_", " " if n >= 10_000 else "") + " | ".join(heads) + " |",
            "|---" * (len(heads) + 1) + "|",
        ]
        for method in ordered(cells):
            found = [cells[method].get((n, law)) for law in laws]
            if any(row is None for row in found):
                continue
            line = [told(method), *(_rate(row) for row in found)]
            if some:
                line += [", ".join(map(_held, found)) if found[-1]["answered"] else "", _width(found[-1])]
            lines.append("| " + " | ".join([*line, _seconds(method, found[-1]["seconds"])]) + " |")
        lines.append("")
    return "\n".join(lines[:-1])


def _rate(row) -> str:
    rate = share(row["rejected"], row["replicates"])
    return f"**{rate}**" if row["law"] == "none" and too_many(row["rejected"], row["replicates"]) else rate


def _held(row) -> str:
    """How often an interval holds the truth, and for which share of data sets there is none."""
    if not row["answered"]:
        return "none"
    rate = share(row["covered"], row["answered"])
    if too_many(row["answered"] - row["covered"], row["answered"]):
        rate = f"**{rate}**"
    missing = row["replicates"] - row["answered"]
    return rate + (f" ({share(row['answered'], row['replicates'])})" if missing else "")


def _width(row) -> str:
    return f"{row['width']:.3f}" if row["answered"] else ""


def graphs() -> str:
    """One network, every search on record, and the seconds of one graph."""
    lines = ["| | epsilon, delta | F1 | precision | recall | seconds |", "|---|---|---|---|---|---|"]
    found = [row for row in rows(GRAPHS) if (row["network"], row["n"], row["seed"]) == (NETWORK, 100_000, 0)]
    for row in sorted(found, key=lambda row: (row["epsilon"] == 0, row["method"] != "auto", -row["f1"])):
        if row["epsilon"] in (0.0, 1.0):
            name = f"jaxdp, default (`{row['ran']}`)" if row["method"] == "auto" else f"`{row['method']}`"
            budget = "not private" if row["epsilon"] == 0 else f"1, {row['delta']:g}"
            numbers = " | ".join(f"{row[part]:.2f}" for part in ("f1", "precision", "recall"))
            lines.append(f"| {name} | {budget} | {numbers} | {row['seconds']:.0f} |")
    return "\n".join(lines)


def main() -> None:
    for name, parts in SEVERAL.items():
        fill(PAGE, name, rejections(parts))
    for part in dict.fromkeys(row["part"] for row in rows(RECORD)):
        fill(PAGE, part, estimates(part))
    fill(PAGE, "graphs", graphs())


if __name__ == "__main__":
    main()
