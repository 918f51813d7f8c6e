"""Reports in headless Chromium: no script errors, phone width, print, contrast, pictures that can be read."""

import re

import browser as browsers
import numpy as np
import pytest
from test_graph_pictures import random_graph

from jaxdp._base import json_files
from jaxdp.report import graphs, written
from jaxdp.report.html import write_report

DESKTOP, PHONE = 1280, 390
LETTERS = 16.25  # pixels of a graph's nine points at its own size (130 dots per inch)
RESULT = {
    "title": "Is dose independent of response given age and clinic?",
    "answer": "Dependence found at level 0.05 (p = 0.00123).",
    "method": "band-gcm",
    "sees": "covariance of X and Y given Z",
    "p_value": 0.00123,
    "epsilon": 1.0,
    "delta": 0.0,
    "relation": "replace_one",
    "mode": "simulation",
    "n": 1500,
    "budget": {"left": "epsilon=1", "granted": "epsilon=3", "ledger": "l.db", "epsilon_left": 1, "epsilon_granted": 3},
    "command": f"jaxdp test examples/{'a_long_name_' * 6}.csv --schema examples/trial.toml --x dose",
    "a_long_value_without_a_space": "x" * 300,
}


@pytest.fixture(scope="module")
def browser():
    with browsers.opened() as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with a graph of 37 columns, numbers and a table."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("report")
    written.put(folder, "result.json", json_files.write, RESULT)
    names, arcs = random_graph(37, 4)
    written.put_picture(folder, "graph.png", graphs.draw_graph, names, arcs, title="t")
    written.put_text(folder, "edges.csv", "a,b,given,released_value\n" + "age,blood pressure,smoker x,0.25\n" * 3)
    return write_report(folder, "Private causal discovery", ["result.json", "graph.png", "edges.csv"])


@pytest.mark.full
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_report_can_be_read(browser, report, width):
    browser.open(report, width)
    browser.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert browser.errors == []
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(browsers.WIDE) == []
    assert browser.evaluate(browsers.FAINT) == []
    assert browser.evaluate("[...document.querySelectorAll('.bar i')].map(part => part.offsetWidth > 9)") == [True] * 3
    shown, own = browser.evaluate("[document.images[0].width, document.images[0].naturalWidth]")
    assert LETTERS * shown / own >= 11


@pytest.mark.full
def test_arrows_are_not_broken_on_a_phone(browser, tmp_path):
    """Whatever the width: one of these lines ended within the arrow."""
    answer = ", ".join(f"{'x' * length} -> medication" for length in range(20, 45))
    written.put(tmp_path, "result.json", json_files.write, RESULT | {"answer": answer})
    browser.open(write_report(tmp_path, "t", ["result.json"]), PHONE)
    lines = browser.evaluate("[...document.querySelectorAll('.answer .unbroken')].map(m => m.getClientRects().length)")
    assert lines == [1] * 25


@pytest.mark.full
def test_a_report_is_printed_on_pages_without_loss(browser, report):
    browser.open(report)
    content = browser.pdf()
    assert len(re.findall(rb"/Type\s*/Page\b", content)) in (2, 3)
    browser.evaluate("1")
    assert browser.errors == []


@pytest.mark.full
def test_the_checks_see_what_is_wrong(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<!DOCTYPE html><meta name=viewport content='width=device-width'><p style='color:#999'>faint</p>"
        "<p>black</p><p style='width:900px'>wide</p>"
        "<div style='overflow-x:auto'><p style='width:900px'>scrolls</p></div>"
        "<script>throw new Error('broken')</script><img src='nowhere.png'>"
    )
    browser.open(page, PHONE)
    assert browser.evaluate(browsers.FAINT) == ["faint"]
    assert browser.evaluate(browsers.WIDE) == ["P wide"]
    assert len(browser.errors) == 2


def test_no_words_of_a_graph_overlap():
    """By bounding boxes: names, title and legend."""
    pytest.importorskip("matplotlib")
    for d, seed in ((20, 3), (37, 4)):
        names, arcs = random_graph(d, seed)
        figure, axes = graphs.picture(names, arcs, title="A graph", q_values=np.zeros((d, d)))
        renderer = figure.canvas.get_renderer()
        figure.draw_without_rendering()
        words = [*axes.texts, axes.title, *axes.get_legend().get_texts()]
        boxes = [text.get_window_extent(renderer) for text in words]
        assert [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)] == []
        assert len({text.get_text() for text in axes.texts}) == d
