"""Writes the tables of docs/evidence/compared.md from the records.

python -m experiments.evidence.compared.page
"""

from collections import defaultdict
from pathlib import Path

from scipy.stats import binom

from experiments.evidence.compared import columns, pairs
from experiments.evidence.compared.answers import RECORD
from experiments.record import fill, markdown, rows

TABLES = Path(__file__).parent / "compared.jsonl"
GRAPHS = Path(__file__).parents[1] / "discovery" / "rows.jsonl"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "compared.md"
SEVERAL = {  # table of the page: parts of compared.jsonl
    "columns": ("columns", "columns, votes", "columns, MST", "columns, AIM"),
    "given": ("three columns", "three columns, MST", "three columns, AIM", "three columns, votes"),
    "groups": ("groups", "groups, votes", "groups, kernels"),
    "table": ("table", "table, votes"),
}
VARIANTS = Path(__file__).parents[1] / "variants" / "variants.jsonl"
NETWORK = "12 of 2-3"
USUAL = 200  # data sets of a rate


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
    """Rates by n and law; seconds of one answer."""
    cells, laws, seconds = defaultdict(dict), {}, {}
    for row in rows(TABLES):
        if row["part"] in parts:
            seconds |= {row["method"]: row["seconds"]} if "seconds" in row else {}
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


def all_pairs() -> str:
    """Families with a false discovery, false discoveries in each, and what is found of every true pair."""
    cells = {(row["n"], row["law"], row["method"]): row for row in rows(pairs.RECORD)}
    heads = ["null: a false discovery", "false in a family"]
    heads += [f"repeats {part:.0%}: found".replace("%", " %") for part in pairs.REPEATED.values()]
    heads += ["beside them: a false discovery", "false in a family", "seconds"]
    blocks = []
    for n in pairs.SIZES:
        lines = []
        for method in ordered(dict.fromkeys(method for _, _, method in cells)):
            null, three = (cells.get((n, law, method)) for law in pairs.LAWS)
            if null is None or three is None:
                continue
            found = [share(count, three["replicates"]) for count in three["found"]]
            line = [told(method), *_families(null), *found, *_families(three), _seconds(method, three["seconds"])]
            lines.append(line)
        blocks.append(markdown([f"n = {_spaced(n)}", *heads], lines))
    return "\n\n".join(blocks)


def _families(row) -> list[str]:
    """Share of data sets with a false discovery, and the mean number of them."""
    rate = share(row["families"], row["replicates"])
    wrong = too_many(row["families"], row["replicates"])
    return [f"**{rate}**" if wrong else rate, f"{row['false'] / row['replicates']:.2g}"]


def _spaced(n: int) -> str:
    return f"{n:_}".replace("_", " ") if n >= 10_000 else str(n)


def _of_columns(part: str):
    """Method -> (n, law) -> row."""
    cells: dict[str, dict] = defaultdict(dict)
    for row in rows(columns.RECORD):
        if row["part"] == part:
            cells[row["method"]][row["n"], row["law"]] = row
    return cells


def counts() -> str:
    """Errors of counts, and intervals where there are some."""
    lines = []
    cells = _of_columns("counts")
    for method in ordered(cells):
        (row,) = cells[method].values()
        lines.append([told(method), f"{row['error']:.1f}", *_interval(row), _seconds(method, row["seconds"])])
    return markdown(["", "error", "held", "width", "seconds"], lines)


def quartiles() -> str:
    """The same of quartiles, in sd."""
    part, cells, blocks = columns.PARTS["quartiles"], _of_columns("quartiles"), []
    heads = [f"{law}: {what}" for law in part.laws for what in ("error", "held", "width")]
    for n in part.sizes:
        lines = []
        for method in ordered(cells):
            found = [cells[method].get((n, law)) for law in part.laws]
            if None not in found:
                parts = [text for row in found for text in (f"{row['error']:.2g}", *_interval(row))]
                lines.append([told(method), *parts, _seconds(method, found[-1]["seconds"])])
        blocks.append(markdown([f"n = {_spaced(n)}", *heads, "seconds"], lines))
    return "\n\n".join(blocks)


def _interval(row) -> list[str]:
    """The share of intervals that hold the truth, and their width; nothing where none is stated."""
    if not row["answered"]:
        return ["none", ""]
    rate = share(row["covered"], row["answered"])
    return [
        f"**{rate}**" if too_many(row["answered"] - row["covered"], row["answered"]) else rate,
        f"{row['width']:.2g}",
    ]


def bounds() -> str:
    """The share of usable bounds of every kind of column, with the median width; and the mean share of all kinds."""
    part, cells, blocks = columns.PARTS["bounds"], _of_columns("bounds"), []
    for n in part.sizes:
        lines = []
        for method in ordered(cells):
            found = [cells[method].get((n, law)) for law in part.laws]
            if None in found:
                continue
            texts = [f"{share(row['usable'], row['replicates'])} ({_ratio(row['width'])})" for row in found]
            whole = share(sum(row["usable"] for row in found), sum(row["replicates"] for row in found))
            lines.append([told(method), *texts, whole, _seconds(method, found[-1]["seconds"])])
        blocks.append(markdown([f"n = {_spaced(n)}", *part.laws, "all", "seconds"], lines))
    return "\n\n".join(blocks)


def _ratio(width) -> str:
    return "none" if width is None else "> 100" if width > 100 else f"{width:.2g}"


def data_sets() -> str:
    """Which rows have fewer data sets than is usual, by table."""
    found: dict[int, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    everything = defaultdict(set)
    for table, row in _of_tables():
        everything[table].add(row["replicates"])
        if row["replicates"] != USUAL:
            found[row["replicates"]][_family(row["method"])][table] = None
    lines = []
    for many, methods in sorted(found.items()):
        whole = [table for table, counts in everything.items() if counts == {many}]
        said = [f"all rows of {_listed(whole)}"] if whole else []
        by_tables = defaultdict(list)
        for method, tables in methods.items():
            left = tuple(table for table in tables if table not in whole)
            if left:
                by_tables[left].append(method)
        said += [f"{_listed(names, quote='')} in {_listed(tables)}" for tables, names in by_tables.items()]
        lines.append(f"- {many}: {'; '.join(said)}.")
    return "\n".join([f"- {USUAL}: all others.", *reversed(lines)])


def _of_tables():
    """(table of the page, row) of every recorded rate."""
    table_of = {part: name for name, parts in SEVERAL.items() for part in parts}
    yield from ((table_of[row["part"]], row) for row in rows(TABLES))
    yield from ((row["part"], row) for path in (RECORD, columns.RECORD, pairs.RECORD) for row in rows(path))


def _family(method: str) -> str:
    """Rows of one table and one of these have the same data sets."""
    return method if method.startswith("not private") else method.split(", ")[0]


def _listed(words, quote: str = "*") -> str:
    *first, last = [f"{quote}{word}{quote}" for word in words]
    return f"{', '.join(first)} and {last}" if first else last


def variants() -> str:
    """What three tests report of many variants: data sets with a false report, and what was found."""
    names = {
        "adjusted": "`best-variants` given both covariates",
        "unadjusted": "`best-variants` without covariates",
        "counts": "`best-tables` (counts)",
    }
    found = {(row["law"], row["method"]): row for row in rows(VARIANTS)}
    one = found["planted", "counts"]
    tested = one["replicates"] * one["chosen"]
    bold = lambda count, text: f"**{text}**" if count else text  # noqa: E731
    lines = [
        f"| | no effect: data sets with a false report | five variants matter (log odds 0.5): found of {tested} tested "
        f"| false of {tested} |",
        "|---|---|---|---|",
    ]
    for method, name in names.items():
        null, planted = found["null", method], found["planted", method]
        wrong = bold(null["any_false"], f"{null['any_false']} of {null['replicates']}")
        lines.append(f"| {name} | {wrong} | {planted['found']} | {bold(planted['false'], planted['false'])} |")
    return "\n".join(lines)


SINGLE = {
    "all pairs": all_pairs,
    "counts": counts,
    "quartiles": quartiles,
    "bounds": bounds,
    "graphs": graphs,
    "variants": variants,
    "data sets": data_sets,
}


def main() -> None:
    for name, parts in SEVERAL.items():
        fill(PAGE, name, rejections(parts))
    for part in dict.fromkeys(row["part"] for row in rows(RECORD)):
        fill(PAGE, part, estimates(part))
    for name, table in SINGLE.items():
        fill(PAGE, name, table())


if __name__ == "__main__":
    main()
