"""Pictures and the HTML page: self-contained, escaped, marked when simulated, a function of the files."""

import base64
import html.parser
import shlex

import jax
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp._base import json_files
from jaxdp.cli.main import main
from jaxdp.report import curves, figures, sections, written
from jaxdp.report.html import BANNER, CSV_ROWS_SHOWN, rebuild_report, write_report


class Page(html.parser.HTMLParser):
    """Collects tags, attribute values and text, and checks that tags close in order."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.images, self.text = [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("href", "src"):
                (self.images if value.startswith("data:image/png;base64,") else self.links).append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def result(**changes):
    content = {"title": "Is a independent of b?", "answer": "No.", "p_value": 0.25, "mode": "release", "x": ["a"]}
    return {**content, **changes}


def write_result(folder, content):
    written.put(folder, "result.json", json_files.write, content)
    written.show(folder, ["result.json"])


def picture(path, **changes):
    settings = {"level": 0.05, "p_value": 0.03, "title": "t"}
    return figures.null_law(path, 2.17, lambda t: 2 * stats.norm.sf(t), **{**settings, **changes})


def test_the_page_holds_everything_itself(tmp_path):
    write_result(tmp_path, result())
    written.put(tmp_path, "law.png", picture)
    page = Page(write_report(tmp_path, "A title", ["law.png", "result.json"]).read_text())
    assert page.links == []
    assert base64.b64decode(page.images[0].split(",")[1]) == (tmp_path / "law.png").read_bytes()
    for text in ("A title", "Is a independent of b?", "No.", "p_value", "0.25"):
        assert text in page.text
    assert BANNER not in page.text


def test_names_are_escaped(tmp_path):
    write_result(tmp_path, result(title="<script>alert(1)</script> & co", x=['"><img src="http://e.org/">']))
    written.put_text(tmp_path, "edges.csv", 'from,to\n<b>a</b>,"b & c"\n<script>alert(2)</script>,"\'=1+1"\n')
    page = Page(write_report(tmp_path, "<title>", ["result.json", "edges.csv"]).read_text())
    assert page.links == []
    assert "<script>alert(1)</script> & co" in page.text
    assert "<b>a</b>" in page.text
    assert "<script>alert(2)</script>" in page.text
    assert "=1+1" in page.text
    assert "'=1+1" not in page.text


def test_subfolders_are_sections_and_data_are_not_shown(tmp_path):
    write_result(tmp_path / "one", result(title="first question"))
    write_result(tmp_path / "two", result(title="second question", mode="simulation"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret.csv").write_text("a,b\n12345.678,1\n")
    page = Page(rebuild_report(tmp_path, "t").read_text())
    assert page.text.index("first question") < page.text.index("second question")
    assert "12345.678" not in page.text
    assert BANNER in page.text


def test_several_folders_of_answers_are_told_how_to_share_a_page(tmp_path, capsys):
    """It said "it has no config.json", and left an empty folder."""
    for name in ("one", "two"):
        write_result(tmp_path / name, result())
    out = tmp_path / "new"
    assert main(["report", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert "only simulations are merged: of answers, put their folders into one folder DIR, and jaxdp report" in told
    assert not out.exists()


def test_the_report_command_rebuilds_the_same_page(tmp_path, capsys):
    write_result(tmp_path, result())
    first = write_report(tmp_path, "again", ["result.json"]).read_text()
    assert main(["report", str(tmp_path), "--title", "again"]) == 0
    assert (tmp_path / "report.html").read_text() == first
    assert str(tmp_path / "report.html") in capsys.readouterr().out
    (tmp_path / "result.json").write_text('{"title": "canary"}')
    assert main(["report", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "canary" not in page
    assert "result.json was changed since it was written and is not shown." in page
    written.drop(tmp_path, "report.html")
    (tmp_path / "result.json").unlink()
    written.put_text(tmp_path, "result.json", "{")
    assert main(["report", str(tmp_path)]) == 2
    assert "is not valid JSON" in capsys.readouterr().err


def test_long_values_are_shortened(tmp_path):
    content = result(values=list(range(1000)), rows=[{"pair": i} for i in range(40)], nothing=None)
    write_result(tmp_path, content)
    page = Page(write_report(tmp_path, "t", ["result.json"]).read_text())
    assert "(1000 in all)" in page.text
    assert "28 more" in page.text
    assert len(page.text) < 10_000


def test_long_numbers_of_tables_are_shortened_and_pairs_are_shown(tmp_path):
    written.put_text(tmp_path, "pairs.csv", "x,p_value,date\na,0.01283527432651797,1.2.2024\n")
    page = write_report(tmp_path, "t", ["pairs.csv"]).read_text()
    assert "<td>0.01284</td><td>1.2.2024</td>" in page
    assert "<details open>" in page


def test_a_table_of_many_rows_stands_by_the_answer_and_says_how_many_are_not_shown(tmp_path):
    rows = "".join(f"a,b,{place},True\n" for place in range(CSV_ROWS_SHOWN + 5))
    written.put_text(tmp_path, "pairs.csv", f"x,y,p_value,dependence_found\n{rows}")
    asked = {"mode": "release", "epsilon": 1.0, "answer": "two of three", "command": "jaxdp test d.csv --all-pairs"}
    write_result(tmp_path, result(**asked))
    page = write_report(tmp_path, "t", ["result.json", "pairs.csv"]).read_text()
    assert "5 rows more are in the file." in page
    assert "<th>dependence found</th>" in page
    assert "<td>yes</td>" in page
    assert page.index("pairs.csv") < page.index("How to run it again")
    assert '<span class="unbroken">--all-pairs</span>' in page


def test_no_line_ends_within_an_arrow(tmp_path):
    asked = {"mode": "release", "epsilon": 1.0, "answer": "blood_pressure -> a, a -- b", "note": "x -> y may be z->"}
    write_result(tmp_path, result(**asked))
    page = write_report(tmp_path, "t", ["result.json"]).read_text()
    arrow = '<span class="unbroken">-&gt;</span>'
    assert f'blood_pressure {arrow} a, a <span class="unbroken">--</span> b</p>' in page
    assert page.count(f"x {arrow} y may be z-&gt;") == 2  # told, and in the table of values


def test_an_empty_folder_says_so(tmp_path):
    assert "holds no results" in Page(rebuild_report(tmp_path, "t").read_text()).text


@pytest.mark.parametrize("level", [0.001, 0.05, 0.5])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_critical_value_is_the_quantile(level, scale):
    found = figures.quantile(lambda t: 2 * stats.norm.sf(t / scale), level)
    assert found == pytest.approx(scale * stats.norm.isf(level / 2), rel=1e-6)


def test_a_simulation_is_marked_in_the_picture(tmp_path):
    plain, marked = (picture(tmp_path / f"{mark}.png", simulation=mark).read_bytes() for mark in (False, True))
    assert plain.startswith(b"\x89PNG")
    assert plain != marked


@pytest.mark.parametrize("p_value", [0.0, 1e-300, 1e-40, 0.04, 1.0])
def test_the_p_value_scale_takes_every_p_value(tmp_path, monkeypatch, p_value):
    drawn, save = [], figures.save
    monkeypatch.setattr(figures, "save", lambda figure, *more: drawn.append(figure) or save(figure, *more))
    path = figures.p_value_scale(tmp_path / "p.png", p_value=p_value, level=0.05, title="t")
    assert path.stat().st_size > 5_000
    axes = drawn[0].axes[0]
    (line,) = axes.lines
    assert axes.get_xlim()[0] < line.get_xdata()[0] == max(p_value, 1e-300), "a line on the edge is half hidden"


def test_names_with_dollar_signs_are_no_formulas(tmp_path):
    title = r"Is $price_{ independent of \\frac$ given " + ", ".join(f"column_{i}" for i in range(30)) + "?"
    assert picture(tmp_path / "law.png", title=title).stat().st_size > 5_000


def test_the_drawn_density_integrates_to_one(tmp_path, monkeypatch):
    drawn = {}

    def keep(figure, path, simulation=False):
        drawn["curve"] = figure.axes[0].lines[0].get_xydata()
        return path

    monkeypatch.setattr(figures, "save", keep)
    picture(tmp_path / "law.png", level=0.001)
    t, height = drawn["curve"].T
    assert np.trapezoid(height, t) == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(height, stats.norm.pdf(t), atol=1e-3)


def test_the_picture_of_an_answer_shows_its_interval_and_margin(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, path, simulation=False: drawn.append(figure) or path)
    name = "difference of the means of age clipped to [30, 90], 2 - 1"
    effect = figures.Effect(-2.1, -5.1, 0.9, name, margin=5.0)
    figures.p_value_scale(tmp_path / "p.png", p_value=0.2, level=0.05, title="t", effect=effect)
    strip = drawn[0].axes[1]
    assert [-5.1, 0.9] in [list(line.get_xdata()) for line in strip.lines]
    assert [-2.1] in [list(line.get_xdata()) for line in strip.lines]
    label = " ".join(strip.get_xlabel().split())
    assert label == (
        "difference of the means of age clipped to [30, 90], 2 - 1; 95 % interval; shaded: within the margin of 5"
    )


def drawn_answer(monkeypatch, **asked):
    """Labels and lines of the lower part of an answer's picture."""
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, path, simulation=False: drawn.append(figure) or path)
    monkeypatch.setattr(curves, "save", figures.save)
    random = np.random.default_rng(0)
    arm, n = random.integers(0, 3, 4000), 4000
    table = {"two": np.where(arm > 0, "new", "old"), "arm": np.array(["old", "new", "newest"])[arm]}
    table |= {"y": 4.0 * arm + random.normal(scale=9.0, size=n), "z": random.uniform(size=n)}
    table |= {"time": random.exponential(8.0 / (1 + arm)), "died": np.where(random.uniform(size=n) < 0.7, "yes", "no")}
    known = {"bounds": {"y": (-40, 40), "z": (0, 1), "time": (0, 10)}, "epsilon": 4.0, "key": jax.random.key(1)}
    levels = {"two": ["old", "new"], "arm": ["old", "new", "newest"], "died": ["no", "yes"]}
    answer = jaxdp.test(table, levels=levels, **known, **asked)
    answer.draw(None)
    strip = drawn[0].axes[1]
    return answer, " ".join(strip.get_xlabel().split()), strip


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"y": "y", "method": "mean-difference"}, "difference of the means of y clipped to [-40, 40], new - old"),
        ({"y": ["time", "died"], "method": "log-rank"}, "log hazard ratio of died = yes, two = new against old"),
    ],
)
def test_a_picture_says_which_group_is_compared_with_which(monkeypatch, asked, told):
    _, label, _ = drawn_answer(monkeypatch, x="two", **asked)
    assert label.startswith(told)


def test_a_picture_shows_the_interval_of_every_contrast(monkeypatch):
    """It showed the p-value alone."""
    answer, label, strip = drawn_answer(monkeypatch, x="arm", y="y", given="z", method="linear-regression")
    low, high = (np.ravel(ends).tolist() for ends in answer.content["interval"])
    assert label == "slope of Y on X given Z, in the columns' own units; simultaneous 95 % intervals"
    assert [text.get_text() for text in strip.texts] == ["arm = new against old, y", "arm = newest against old, y"]
    lines = [list(line.get_xdata()) for line in strip.lines]
    assert all([*ends] in lines for ends in zip(low, high, strict=True))


def test_the_mark_of_a_simulation_leaves_other_words_below_a_picture(tmp_path):
    figure, _ = figures.canvas()
    figure.supxlabel("a note")
    figures.save(figure, tmp_path / "p.png", simulation=True)
    assert figure.get_supxlabel() == "a note"
    assert [text.get_text() for text in figure.texts].count(figures.NOTE_OF_SIMULATION) == 1


def test_a_command_in_an_answer_is_one_line_that_a_shell_takes():
    """It was wrapped with the sentence, and names within it too."""
    command = "jaxdp plan --method band-gcm --x 'a long name of a column' --y 'another long name' --schema 'my s.toml'"
    text = sections.paragraph("power", f"How small an effect it would have found, simulated in minutes: {command}")
    assert text.splitlines()[-1] == command
    assert shlex.split(text.splitlines()[-1])[-1] == "my s.toml"
    assert text.splitlines()[0].startswith("  power      How small")
    assert sections.paragraph("power", "A sentence.") == "  power      A sentence."
