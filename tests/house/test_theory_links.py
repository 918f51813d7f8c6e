"""References to the theory pages: every page, heading, test and name that is named is there."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
CODE_FOLDERS = ("jaxdp", "tests", "experiments", "examples", "scripts")
REFERENCE = re.compile(r"docs/((?:theory/)?[\w-]+\.md)((?:#[\w-]+(?:, #[\w-]+)*)?)")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def pages() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.md"))


def without_code(text: str) -> str:
    """The text without fenced blocks: a comment there is no heading, an index no link."""
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


@cache
def anchors(page: Path) -> set[str]:
    """Anchors of a page: explicit ones, and those that GitHub makes of its headings."""
    text = without_code(page.read_text(encoding="utf-8"))
    found, seen = set(re.findall(r'<a id="([\w-]+)"></a>', text)), {}
    for heading in re.findall(r"^#+ +(.*?) *$", text, flags=re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(slug if slug not in seen else f"{slug}-{seen[slug]}")
        seen[slug] = seen.get(slug, 0) + 1
    return found


def broken(page: Path, anchor: str) -> bool:
    return not page.exists() or (bool(anchor) and page.suffix == ".md" and anchor not in anchors(page))


def sources() -> list[Path]:
    files = [path for folder in CODE_FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return [*files, *ROOT.glob("*.md"), *(ROOT / "experiments").rglob("*.md"), *pages()]


def test_references_in_the_source_point_to_headings():
    count, wrong = 0, []
    for path in sources():
        for name, tail in REFERENCE.findall(path.read_text(encoding="utf-8")):
            wanted = re.findall(r"#([\w-]+)", tail) or [""]
            count += name.startswith("theory/") and path.suffix == ".py"
            wrong += [(str(path.relative_to(ROOT)), name, a) for a in wanted if broken(ROOT / "docs" / name, a)]
    assert not wrong, f"{wrong}: (file, page, heading) that is not there; write the heading or mend the reference"
    assert count > 100


def test_relative_links_of_the_documents_resolve():
    wrong = []
    for page in [*pages(), *ROOT.glob("*.md"), *(ROOT / "experiments").rglob("*.md")]:
        for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            if broken((page.parent / target).resolve() if target else page, anchor):
                wrong.append((page.name, link))
    assert not wrong


def test_every_theory_page_is_in_the_index():
    index = LINK.findall((THEORY / "README.md").read_text(encoding="utf-8"))
    missing = sorted({page.name for page in THEORY.glob("*.md")} - {"README.md", *index})
    assert not missing, f"{missing}: give each a row in the table of docs/theory/README.md"


def test_every_test_that_a_page_names_is_there():
    named = {
        (str(p.relative_to(ROOT)), *found) for p in pages() for found in TEST.findall(p.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    assert not [
        (page, test, name)
        for page, test, name in named
        if not (ROOT / test).exists() or f"def {name}(" not in (ROOT / test).read_text(encoding="utf-8")
    ]


def test_every_name_of_the_glossary_is_in_its_file():
    rows = re.findall(
        r"\| `(\w+)` \| `([\w/.]+)` \|$", (THEORY / "glossary.md").read_text(encoding="utf-8"), flags=re.M
    )
    assert len(rows) > 50
    assert not [
        (name, file)
        for name, file in rows
        if not (ROOT / file).exists() or not re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8"))
    ]


def test_no_source_points_outside_the_repository():
    outside = re.compile(r"(?i)\bshee[t]s?\b|docs/proof[s]|\bpaper 00\d")
    assert not [str(path.relative_to(ROOT)) for path in sources() if outside.search(path.read_text(encoding="utf-8"))]


def test_the_checks_see_a_broken_reference(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('# One\n\n## Kendall\'s S\n\n## One\n\n<a id="two"></a>\n\n```\n# three\n```\n', encoding="utf-8")
    assert anchors(page) == {"one", "kendalls-s", "one-1", "two"}
    assert broken(page, "three")
    assert broken(tmp_path / "none.md", "")
    assert not broken(page, "two")
