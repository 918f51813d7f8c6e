"""mkdocs hooks: the pages' generated parts, and links that leave the site.

A page holds a marker `<!-- made: NAME -->` where a table or a reference stands; `MAKERS` says what it becomes. So the
tables follow the catalogue, the exports and the records, and nobody keeps a list of tests by hand. The pages of the
reference hold a short list of names after their marker, for readers of the repository, which the site leaves out:
`python scripts/site_pages.py` writes them anew, and a test tells when they are old. With the paths of pages it prints
these as the site has them, and writes nothing.
"""

import argparse
import csv
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]
import notebooks  # noqa: E402

AUDITS = ROOT / "experiments" / "evidence" / "audit" / "audit.json"

MARKER = re.compile(r"<!-- made: (\w+) -->(?:\n.*?<!-- end -->)?", flags=re.S)
LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"(^```.*?^```)", flags=re.S | re.M)
RUN_NOTEBOOKS = "JAXDP_NOTEBOOKS"  # "run": executed, as scripts/docs does; else without output
CLAIM = 1.0  # the epsilon whose audits the table shows


def on_config(config):
    """Every page of docs/theory/ is in the menu, so that a new one needs no entry."""
    for section in config.nav:
        for pages in section.values():
            if isinstance(pages, list):
                listed = {page for item in pages for page in (item.values() if isinstance(item, dict) else [item])}
                pages[:] = [page for item in pages for page in _expanded(item, listed)]
    return config


def _expanded(item, listed: set[str]) -> list:
    if not (isinstance(item, str) and item.endswith("/*")):
        return [item]
    folder = ROOT / "docs" / item[:-2]
    found = sorted(path.relative_to(ROOT / "docs").as_posix() for path in folder.glob("*.md"))
    return [page for page in found if page not in listed]


def on_page_markdown(markdown: str, page, config, files) -> str:
    """The page with its markers filled in and links to files outside the site as text."""
    filled = with_tables(markdown)
    if ROOT / "docs" / page.file.src_uri in notebooks.pages():
        name = PurePosixPath(page.file.src_uri).with_suffix(".ipynb").name
        title, _, rest = filled.partition("\n")
        filled = f'{title}\n\n<a href="{name}" download>This page as a notebook</a>\n{rest}'
    inside = {file.src_uri for file in files}
    return "".join(
        part if part.startswith("```") else LINK.sub(lambda found: _kept(found, page.file.src_uri, inside), part)
        for part in FENCE.split(filled)
    )


def with_tables(markdown: str) -> str:
    """The page with its markers filled in."""
    return MARKER.sub(lambda found: MAKERS[found[1]](), markdown)


def on_post_build(config):
    """Every tutorial as a notebook, beside its page."""
    for page in notebooks.pages():
        place = Path(config["site_dir"]) / page.relative_to(ROOT / "docs").with_suffix("")
        command = [sys.executable, str(ROOT / "scripts" / "notebooks.py"), str(page), str(place / f"{page.stem}.ipynb")]
        if os.environ.get(RUN_NOTEBOOKS) != "run":
            notebooks.write(page, Path(command[-1]), run=False)
        elif (done := subprocess.run(command, capture_output=True, text=True)).returncode:
            raise RuntimeError(f"{page.name}: {done.stderr.strip().splitlines()[-1]}\n{done.stderr}")


def _kept(link: re.Match, source: str, inside: set[str]) -> str:
    """The link itself, or its text and the file's place in the repository where the site does not hold the file."""
    text, target = link[1], link[2].partition("#")[0]
    if not target or re.match(r"[a-z]+:", target):
        return link[0]
    place = (ROOT / "docs" / PurePosixPath(source).parent / target).resolve()
    if place.is_relative_to(ROOT / "docs") and place.relative_to(ROOT / "docs").as_posix() in inside:
        return link[0]
    path = place.relative_to(ROOT).as_posix()
    return text if path in text else f"{text} (`{path}`)"


# What the markers become.


def methods() -> str:
    """Every test and every search, one row each."""
    from jaxdp import catalogue
    from jaxdp.discovery.spec import searches

    rows = [
        (
            f"`{name}`",
            f"`{e.cls.__name__}`",
            e.spec.summary,
            ", ".join(e.spec.known_as),
            e.spec.alternatives,
            e.spec.publishes,
            ", ".join(e.spec.needs),
        )
        for name, e in catalogue.entries().items()
        if not e.spec.true_epsilon
    ]
    lines = [
        "### Tests",
        "",
        *table(("name", "class", "what it is", "answers for", "sees", "publishes", "needs"), rows),
    ]
    specs = [search.spec for search in searches().values()]
    found = [(f"`{spec.name}`", spec.summary, ", ".join(spec.needs)) for spec in specs if not spec.true_epsilon]
    lines += ["", "### Searches", "", *table(("name", "what it is", "needs"), found)]
    wing = [spec for spec in (*(e.spec for e in catalogue.entries().values()), *specs) if spec.true_epsilon]
    forms = [(f"`{spec.name}`", spec.summary, spec.true_epsilon) for spec in wing]
    return "\n".join(
        [
            *lines,
            "",
            "### As papers state them, and comparators",
            "",
            *table(("name", "what it is", "true epsilon"), forms),
        ]
    )


QUERIES = (
    ("two continuous columns", "continuous", "continuous", ()),
    ("two ordered columns", "ordinal", "ordinal", ()),
    ("two unordered columns", "categorical", "categorical", ()),
    ("two binary columns", "binary", "binary", ()),
    ("two continuous columns", "continuous", "continuous", ("categorical",)),
    ("two ordered columns", "ordinal", "ordinal", ("categorical",)),
    ("two continuous columns", "continuous", "continuous", ("continuous",)),
    ("a continuous and a binary column", "continuous", "binary", ("continuous", "categorical")),
    ("two ordered columns", "ordinal", "ordinal", ("continuous",)),
    ("two continuous columns", "continuous", "continuous", ("continuous", "continuous")),
)


def defaults() -> str:
    """The test that fits columns of these kinds best."""
    from jaxdp import catalogue
    from jaxdp.data import Schema

    levels = {"binary": [0, 1], "ordinal": [0, 1, 2], "categorical": ["a", "b", "c"]}
    rows = []
    for told, x, y, given in QUERIES:
        kinds = {"x": x, "y": y, **{f"z{place}": kind for place, kind in enumerate(given)}}
        rules = {
            name: {"kind": kind, **({"levels": levels[kind]} if kind in levels else {"bounds": [0, 1]})}
            for name, kind in kinds.items()
        }
        cells = {name: levels.get(kind, [0.5])[:1] * 3 for name, kind in kinds.items()}
        z = [name for name in kinds if name.startswith("z")]
        data = Schema.from_dict({"columns": rules}).read(cells, x="x", y="y", given=z)
        rows.append((told, ", ".join(given) or "nothing", f"`{catalogue.default(data.domain).name}`"))
    return "\n".join(table(("is there a relation between", "given", "test"), rows))


def mechanisms() -> str:
    """One row for each private test: proof, attack on its bound, test that attacks it, audited lower bound."""
    from jaxdp import catalogue
    from jaxdp.audit import cases

    audited = audit_record()
    rows = []
    for name, entry in catalogue.entries().items():
        spec = entry.spec
        if not spec.private:
            continue
        proof, killer = "", ""
        if spec.theory:
            page = ROOT / spec.theory
            if not page.is_file():
                raise SystemExit(f"theory= of {name} names {spec.theory!r}: write that page, with the proof.")
            proof = f"[{page.stem}](../{page.relative_to(ROOT / 'docs').as_posix()})"
            killer = _attack(page)
        found = audited.get(name, {})
        claim = CLAIM if CLAIM in found else max(found, default=None)
        told = "none recorded" if claim is None else f"{found[claim]:.3f} of {claim:g}"
        rows.append((f"`{name}`", proof, _reached(cases.declared(entry)), killer, told))
    head = ("test", "proof", "attack reaches, of each bound", "a test that attacks it", "audited lower bound")
    return "\n".join(table(head, rows))


def audit_record() -> dict[str, dict[float, float]]:
    """The largest audited lower bound over pairs of neighbours: name -> claim -> bound."""
    record = json.loads(AUDITS.read_text(encoding="utf-8"))
    found: dict[str, dict[float, float]] = {}
    for row in record["tests"]:
        bounds = found.setdefault(row["method"], {})
        bounds[row["claimed"]] = max(bounds.get(row["claimed"], 0.0), row["lower"])
    return found


def audited() -> str:
    """The whole record of audits."""
    from experiments.evidence.audit.run import table as audit_table

    return audit_table(json.loads(AUDITS.read_text(encoding="utf-8")))


def power() -> str:
    """Level and power at n = 1000, epsilon 1, from the records of experiments/papers/dp_ci."""
    folder = ROOT / "experiments" / "papers" / "dp_ci" / "results"
    measured: dict[str, dict[float, dict]] = {}
    with (folder / "defaults.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = f"`{row['method']}`" + (f", {row['dim']} columns of Z" if row["dim"] != "1" else "")
            measured.setdefault(name, {})[float(row["effect"])] = row
    for line in (folder / "headline.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if (row["n"], row["epsilon"]) == (1000, 1.0):
            measured.setdefault(row["method"], {})[row["effect"]] = row
    effects = (0.0, 0.125, 0.25)
    head = ("test", "type-I error", *(f"power at {effect:g}" for effect in effects[1:]), "replicates")
    rows = []
    for name, found in measured.items():
        cells = (f"{float(found[effect]['rate']):.3f}" if effect in found else "" for effect in effects)
        rows.append((name, *cells, str(min(int(found[effect]["replicates"]) for effect in effects if effect in found))))
    return "\n".join(table(head, rows))


def one_table() -> str:
    """Exact power of the tests of one 2x2 table, from the record of experiments/papers/unit_circle."""
    path = ROOT / "experiments" / "papers" / "unit_circle" / "results" / "recorded.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["figure"] == "one table" and (row["n"], row["epsilon"]) == (600, 0.1)]
    frequencies = sorted({row["frequency"] for row in rows})
    found = {(row["method"], row["frequency"]): row.get("power") for row in rows}
    lines = [
        (name, *(f"{found[name, f]:.2f}" if found.get((name, f)) is not None else "" for f in frequencies))
        for name in dict.fromkeys(row["method"] for row in rows)
    ]
    return "\n".join(table(("test", *(f"frequency {f:g}" for f in frequencies)), lines))


def tuning() -> str:
    """Tuned against default settings."""
    return (ROOT / "experiments" / "evidence" / "tuning" / "results" / "gains.md").read_text(encoding="utf-8")


def kinds_measured() -> str:
    """The default of each pair of kinds of columns, and where it is measured."""
    from experiments.evidence.defaults import page

    return page.kinds_measured()


def records_needed() -> str:
    """Records for power 0.8 by every test that fits, on the public grid of shapes."""
    from experiments.evidence.defaults import page

    return page.records_needed()


def level_given_z() -> str:
    """Rejections of true nulls given Z by the defaults and by what needs fewer records."""
    from experiments.evidence.defaults import page

    return page.level_given_z()


def level_of_groups() -> str:
    """Rejections of true nulls by `kruskal-wallis`."""
    from experiments.evidence.defaults import groups

    return groups.table()


def coverage_of_directions() -> str:
    """Coverage of the rank correlation of `quantile-table`."""
    from experiments.evidence.defaults import directions

    return directions.table()


def level_of_defaults() -> str:
    """Rejections of true nulls of the same shapes by the defaults."""
    from experiments.evidence.defaults import page

    return page.level_of_defaults()


def type_one() -> str:
    """Type-I error of every configuration."""
    from experiments.evidence.audit.nulls import finished
    from experiments.evidence.audit.nulls import table as null_table

    return null_table(finished(ROOT / "experiments" / "evidence" / "audit" / "nulls.jsonl"))


def level() -> str:
    """The stress suite of true nulls: verdicts by test, columns of Z, n and epsilon, and the worst null of each."""
    path = ROOT / "experiments" / "evidence" / "level" / "suite.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["test"], row["depth"], row["n"], row["epsilon"]), []).append(row)
    lines = []
    for (test, depth, n, epsilon), found in sorted(groups.items()):
        counts = (sum(row["verdict"] == word for row in found) for word in ("inside", "flagged", "refused", "OUTSIDE"))
        run = [row for row in found if "replicates" in row]
        worst = max(run, key=lambda row: row["rejections"] / row["replicates"], default=None)
        told = f"{worst['null']}: {worst['rejections'] / worst['replicates']:.2f}" if worst else ""
        lines.append((f"`{test}`", str(depth), str(n), f"{epsilon:g}", *map(str, counts), told))
    head = ("test", "columns of Z", "n", "epsilon", "inside", "flagged", "refused", "outside", "worst null, rejected")
    return "\n".join(table(head, lines))


def real() -> str:
    """Rejections of true nulls made of real tables, by the default of each query."""
    path = ROOT / "experiments" / "evidence" / "level" / "real.jsonl"
    lines = []
    for row in (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()):
        found = f"{row['rejections'] / row['replicates']:.3f}" if "rejections" in row else "refused"
        query = f"{row['x']}, {row['y']} given {', '.join(row['given'])}"
        asked = (row["table"], query, str(row["n"]), f"{row['epsilon']:g}", f"`{row['test']}`")
        lines.append((*asked, found, row["verdict"]))
    return "\n".join(table(("table", "question", "n", "epsilon", "default", "rejected", "verdict"), lines))


def _attack(page: Path) -> str:
    """The first test that the proof's page names in the words "Attacked by `tests/FILE.py::test_NAME`"."""
    found = re.search(r"[Aa]ttacked by\s+`(tests/[\w/]+\.py)::test_(\w+)`", page.read_text(encoding="utf-8"))
    return f"{found[2].replace('_', ' ')} (`{found[1]}`)" if found else "the contract suite"


def _reached(examples) -> str:
    """The share of each declared bound that an attack reaches, over all examples of the test."""
    shares: dict[str, list[float]] = {}
    for example in examples:
        reaches = (
            example.attack_tightness if isinstance(example.attack_tightness, dict) else {"": example.attack_tightness}
        )
        for path, share in reaches.items():
            if share is not None:
                shares.setdefault(path, []).append(float(getattr(share, "share", share)))
    told = []
    for path, found in shares.items():
        span = f"{min(found):g}" if min(found) == max(found) else f"{min(found):g} to {max(found):g}"
        told.append(f"{path or 'statistic'}: {span}" if len(shares) > 1 else span)
    return "; ".join(told)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """A Markdown table; a bar in a cell would end it."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def commands() -> str:
    """The help of every command, as the terminal prints it."""
    from jaxdp.cli.main import build_parser

    os.environ["COLUMNS"] = "100"
    parser = build_parser()
    (action,) = (item for item in parser._actions if isinstance(item, argparse._SubParsersAction))
    return "\n\n".join(f"## {name}\n\n```text\n{sub.format_help()}```" for name, sub in action.choices.items())


# The reference: who stands on which page follows from where a name is exported.


def _public(module: str) -> Iterator[object]:
    package = importlib.import_module(f"jaxdp.{module}")
    return (getattr(package, name) for name in package.__all__)


def _exports() -> Iterator[object]:
    import jaxdp

    return (getattr(jaxdp, name) for name in jaxdp.exported_names())


def _is_test(value: object) -> bool:
    from jaxdp.spec import TestSpec

    return isinstance(getattr(value, "spec", None), TestSpec)


SECTIONS: dict[str, tuple[str, ...]] = {
    "searches": ("discovery", "interop"),
    "statistics": ("statistics",),
    "planning": ("plan", "tune"),
    "accounting": ("accounting",),
    "audit": ("audit",),
    "data": ("data",),
    "simulate": ("simulate", "simulate.power"),
    "published": ("published",),
    "programs": ("programs",),
}


def section(name: str) -> list[str]:
    """Places in the sources, "package.module.Name", of what a page of the reference shows."""
    if name in SECTIONS:
        found = [value for module in SECTIONS[name] for value in _public(module)]
    elif name == "tests":
        found = [value for value in _exports() if _is_test(value)]
    elif name == "ask":
        found = [value for value in _exports() if _place(value).startswith("jaxdp.ask.")]
    else:
        elsewhere = {place for other in (*SECTIONS, "tests", "ask") for place in section(other)}
        found = [value for value in _exports() if _place(value) not in elsewhere]
    return sorted(
        {place for value in found if (place := _place(value))},
        key=lambda place: (place.split(".")[-1].lower(), place),  # `Audit` and `audit`: one order, always
    )


def _place(value: object) -> str:
    """Where a class or function is defined; the empty text for anything else."""
    if isinstance(value, types.ModuleType) or not (inspect.isclass(value) or inspect.isroutine(value) or _wraps(value)):
        return ""
    module, name = (
        getattr(value, "__module__", ""),
        getattr(value, "__qualname__", "") or getattr(value, "__name__", ""),
    )
    return f"{module}.{name}" if module.startswith("jaxdp") and "<" not in name else ""


def _wraps(value: object) -> bool:
    """A compiled function."""
    return hasattr(value, "__wrapped__") and hasattr(value, "__qualname__")


def reference(name: str) -> Callable[[], str]:
    """The maker of one page of the reference."""
    return lambda: "\n\n".join(f"::: {place}" for place in section(name))


PAGES = (*SECTIONS, "tests", "ask", "core")
MAKERS: dict[str, Callable[[], str]] = {
    "methods": methods,
    "defaults": defaults,
    "mechanisms": mechanisms,
    "audited": audited,
    "commands": commands,
    "power": power,
    "one_table": one_table,
    "tuning": tuning,
    "kinds_measured": kinds_measured,
    "records_needed": records_needed,
    "level_given_z": level_given_z,
    "level_of_defaults": level_of_defaults,
    "level_of_groups": level_of_groups,
    "coverage_of_directions": coverage_of_directions,
    "type_one": type_one,
    "level": level,
    "real": real,
    **{f"reference_{name}": reference(name) for name in PAGES},
}


def listed(name: str) -> str:
    """The names of a page of the reference with their first sentences, for readers of the repository."""
    lines = [f"- [`{place.split('.')[-1]}`](../../{_file(place)}): {_first_line(place)}" for place in section(name)]
    return "\n".join([f"<!-- made: reference_{name} -->", *lines, "", "<!-- end -->"])


def _file(place: str) -> str:
    return Path(inspect.getsourcefile(sys.modules[_module(place)]) or "").relative_to(ROOT).as_posix()


def _module(place: str) -> str:
    while place not in sys.modules:
        place = place.rpartition(".")[0]
    return place


def _first_line(place: str) -> str:
    found: object = sys.modules[_module(place)]
    for name in place.removeprefix(f"{_module(place)}.").split("."):
        found = getattr(found, name)
    return (inspect.getdoc(found) or "").partition("\n")[0]


def with_list(text: str) -> str:
    """A page of the reference with its list as it should be."""
    return re.sub(
        r"<!-- made: reference_(\w+) -->(?:\n.*?<!-- end -->)?", lambda found: listed(found[1]), text, flags=re.S
    )


if __name__ == "__main__":
    for shown in sys.argv[1:]:
        print(with_tables(Path(shown).read_text(encoding="utf-8")))
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")) if not sys.argv[1:] else ():
        page.write_text(with_list(page.read_text()))
