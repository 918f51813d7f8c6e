"""The documentation site: it builds without a warning, and everything that the package exports is in it."""

import fcntl
import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import browser as browsers
import pytest

import jaxdp
from jaxdp import catalogue

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import notebooks  # noqa: E402
import site_pages  # noqa: E402


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and prints nothing."""

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built pages, from a strict build: a broken link, anchor or reference ends it. One build for all workers."""
    pytest.importorskip("mkdocs")
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "site"
    with (folder.parent / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "finished").exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
            done = subprocess.run(
                command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            (folder / "finished").touch()
    return folder


def test_the_lists_of_the_reference_on_the_repository_are_current():
    """Red: run `python scripts/site_pages.py`."""
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert site_pages.with_list(text) == text, f"docs/reference/{page.name}: run scripts/site_pages.py"
        assert site_pages.MARKER.sub("", text).count("](../../jaxdp/") == 0  # the site shows the docstrings instead


@pytest.mark.full
def test_the_site_builds_without_a_warning_and_holds_every_export(site):
    text = "\n".join(path.read_text(encoding="utf-8") for path in (site / "reference").rglob("index.html"))
    shown = set(re.findall(r'<h2 id="([\w.]+)"', text))
    exported = {site_pages._place(getattr(jaxdp, name)) for name in jaxdp.exported_names()} - {""}
    assert exported <= shown, f"no page of docs/reference shows {sorted(exported - shown)}: run scripts/site_pages.py"
    assert "<!-- made" not in text
    for page in notebooks.pages():
        place = site / page.relative_to(ROOT / "docs").with_suffix("")
        assert (place / f"{page.stem}.ipynb").is_file()
        assert f'href="{page.stem}.ipynb"' in (place / "index.html").read_text(encoding="utf-8")


@pytest.mark.full
def test_the_start_page_can_be_read_in_a_browser(site):
    """No script errors, phone width, contrast."""
    handler = functools.partial(QuietHandler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, browsers.opened() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for width, page in ((1280, "start/"), (390, "start/"), (390, "which_test/"), (390, "tutorials/csv_test/")):
            browser.open(f"http://127.0.0.1:{server.server_port}/{page}", width)
            assert browser.errors == []
            assert browser.evaluate("innerWidth") == width
            assert browser.evaluate(browsers.WIDE) == []
            assert browser.evaluate(browsers.FAINT) == []
        server.shutdown()


@pytest.mark.full
def test_every_private_test_has_a_row_of_evidence(site):
    text = (site / "evidence" / "mechanisms" / "index.html").read_text(encoding="utf-8")
    for name, entry in catalogue.entries().items():
        assert (f"<td><code>{name}</code></td>" in text) == entry.spec.private, f"{name}: run scripts/site_pages.py"


def test_every_marker_has_a_maker():
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    used = {name for page in pages for name in site_pages.MARKER.findall(page)}
    assert used == set(site_pages.MAKERS)


@pytest.mark.parametrize("name", ["power", "one_table", "tuning", "type_one", "level", "mechanisms", "methods"])
def test_the_tables_come_from_the_records(name):
    lines = [line for line in site_pages.MAKERS[name]().splitlines() if line.startswith("|")]
    assert len(lines) > 5
    assert len({line.count("|") - line.count("\\|") for line in lines}) <= 2  # tests and searches: two tables


def test_a_page_is_printed_with_its_tables_and_none_is_written():
    before = {page: page.stat().st_mtime_ns for page in (ROOT / "docs").rglob("*.md")}
    command = [sys.executable, "scripts/site_pages.py", "docs/evidence/level.md"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "<!-- made" not in printed
    assert printed.count("\n| `band-gcm` | ") > 10
    assert "| configuration | n | nulls |" in printed
    assert before == {page: page.stat().st_mtime_ns for page in before}


def test_the_table_of_power_says_what_the_record_says():
    row = next(line for line in site_pages.power().splitlines() if line.startswith("| PartitionGCM"))
    assert row == "| PartitionGCM | 0.051 | 0.664 | 0.996 | 10000 |"


def test_links_out_of_the_site_become_text():
    link = site_pages.LINK.search
    inside = {"theory/README.md", "claims.md"}
    kept = site_pages._kept
    assert kept(link("[x](../claims.md#a)"), "theory/README.md", inside) == "[x](../claims.md#a)"
    assert (
        kept(link("[the code](../../examples/gwas.py)"), "theory/README.md", inside) == "the code (`examples/gwas.py`)"
    )
    assert kept(link("[`README.md`](../README.md)"), "claims.md", inside) == "`README.md`"
    assert kept(link("[x](https://example.org)"), "claims.md", inside) == "[x](https://example.org)"


def test_the_reference_shows_the_keywords_of_a_call():
    griffe = pytest.importorskip("griffe")
    import site_docstrings

    module = griffe.load("jaxdp.ask.coefficients", search_paths=[str(ROOT)])
    assert "`range_share=0.0`, `epsilon`, `missing=None`" in site_docstrings.keywords(module["mic"])
    assert site_docstrings.keywords(module["MICQuery.answer"]) == ""


def test_docstrings_keep_their_lines_and_their_signs():
    pytest.importorskip("griffe")
    import site_docstrings

    text = site_docstrings.as_markdown("One.\nPrivacy: a*b < `c*d`.\n    code * 2")
    assert text == "One.\n\nPrivacy: a\\*b &lt; `c*d`.\n    code * 2"
