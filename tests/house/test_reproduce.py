"""The reproduction table: rows of every experiment become lines with the paper's figure beside ours."""

import csv
import json

import pytest

from experiments import reproduce

FACTS = {"seconds": 1.5, "device": "cpu", "jax": "0", "commit": "abc", "python": "3", "platform": "cpu"}
RATE = {
    "rate": 0.06,
    "low": 0.03,
    "high": 0.1,
    "rejections": 6,
    "replicates": 100,
    "claim": "stays near 0.05",
    "note": "",
}
ROWS = {
    "dp_ci": [
        {"figure": 1, "method": "PrivGCM (paper)", "n": 200, "effect": 0.0, **RATE},
        {"figure": 3, "method": "PrivGCM (paper)", "n": 200, "effect": 0.5, **RATE},
        {
            "figure": 8,
            "method": "ridge 10",
            "n": 200,
            "rate": 0.02,
            "quantity": "explained share of f",
            "claim": "fits",
        },
    ],
    "priv_pc": [
        {
            "figure": "figure 1",
            "network": "asia",
            "method": "em_pc",
            "budget": 3.0,
            "true_epsilon": 3.0,
            "f1": 0.5,
            "f1_sd": 0.1,
            "seeds": 16,
            "search_seconds": 0.25,
        },
        {
            "figure": "continuous",
            "network": "five",
            "method": "partition_pc",
            "budget": 3.0,
            "true_epsilon": 3.0,
            "f1": 1.0,
            "seeds": 2,
        },
    ],
    "unit_circle": [
        {"figure": "one table", "n": 600, "epsilon": 1.0, "frequency": 0.5, "method": "m", "size": 0.05, "power": 0.5},
        {
            "figure": "families",
            "n": 600,
            "epsilon": 4.0,
            "tables": 10,
            "method": "m",
            "replicates": 20,
            "family_wise_error": 0.05,
            "found": 0.8,
        },
        {"figure": "gamma", "n": 600, "epsilon": 1.0, "gamma": 5.0, "largest_share_of_paper_bound": 0.9},
        {"figure": "r x c", "n": 500, "method": "m", "size": 0.04, "window": [0.03, 0.07], "replicates": 500},
    ],
    "mic": [
        {
            "part": "real",
            "collection": "baseball",
            "mechanism": "MICr-Lap",
            "epsilon": 1.0,
            "true_epsilon": 1.0,
            "pairs": 60,
            "bias": 0.03,
            "variance": 0.02,
            "absolute": 0.1,
            "paper_bias": 0.02,
            "paper_variance": 0.02,
            "paper_absolute": None,
        },
        {
            "part": "accuracy",
            "mechanism": "MICr-Lap",
            "n": 250,
            "epsilon": 0.1,
            "true_epsilon": 0.1,
            "laws": 19,
            "mean": 0.3,
            "bias": [0, 0.1, 0.2, 0.3, 0.4],
        },
        {"part": "heavy_tails", "ranges": "r", "n": 250, "epsilon": 1.0, "mean": 0.1, "laws": 19},
        {"part": "scale", "pairs": 100128, "n": 23, "first_wall": 0.9, "second_wall": 0.7},
    ],
    "residual_scale": [
        {"n": 1000, "epsilon": 1.0, "effect": 0.0, "residual_sd": 0.1, "guess": 0.2, "rejections": 9, "replicates": 200}
    ],
}


@pytest.fixture
def table(tmp_path):
    for name, rows in ROWS.items():
        folder = tmp_path / "quick" / name
        folder.mkdir(parents=True)
        (folder / "rows.jsonl").write_text("".join(json.dumps({**row, **FACTS}) + "\n" for row in rows))
    (folder / "run.json").write_text('{"seconds": 12.0, "load": 0.5}')
    count = reproduce.write_table(tmp_path, "quick")
    with (tmp_path / "reproduce.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == count
    return lines, (tmp_path / "reproduce.md").read_text()


def test_every_kind_of_row_becomes_lines(table):
    lines, text = table
    assert {line["source"] for line in lines} == set(ROWS)
    for line in lines:
        assert (line["seconds"], line["device"], line["commit"]) == ("1.5", "cpu", "abc")
        assert float(line["ours"]) >= 0
    for experiment in reproduce.EXPERIMENTS.values():
        assert (experiment.title in text) == (experiment.title != reproduce.EXPERIMENTS["tuning"].title)
    assert "12 s in all" in text


def test_the_papers_figures_stand_beside_ours(table):
    lines, text = table

    def find(**wanted):
        return [line for line in lines if all(line[k] == v for k, v in wanted.items())]

    (null,) = find(figure="figure 1", source="dp_ci")
    assert (null["paper"], null["ours"], null["low"], null["replicates"]) == ("0.05", "0.06", "0.03", "100")
    assert find(figure="figure 3")[0]["paper"] == "stays near 0.05"
    assert find(figure="table 2")[0]["paper"] == "531.8"
    assert find(figure="table 2")[0]["ours"] == "0.25"
    bias, variance, absolute = find(source="mic", figure="table 1")
    assert (bias["paper"], variance["paper"], absolute["paper"]) == ("0.02", "0.02", "")
    f1 = find(figure="figure 1", source="priv_pc")[0]
    assert float(f1["high"]) - float(f1["low"]) == pytest.approx(2 * 1.96 * 0.1 / 4)
    (family,) = find(quantity="family-wise error")
    assert float(family["low"]) < 0.05 < float(family["high"])
    assert '"stays near 0.05"' in text
    assert "| 0.05 | 0.06 | [0.03, 0.1] |" in text


def test_the_short_table_goes_between_the_markers_of_a_file(table, tmp_path):
    file = tmp_path / "page.md"
    file.write_text("before\n{}\nold\n{}\nafter\n".format(*reproduce.MARKERS))
    short = (tmp_path / "reproduce_short.md").read_text()
    assert "took 0.2 minutes" in short
    reproduce.insert(file, short)
    assert file.read_text() == f"before\n{reproduce.MARKERS[0]}\n{short}{reproduce.MARKERS[1]}\nafter\n"
    file.write_text("no markers\n")
    with pytest.raises(ValueError, match="lacks the markers"):
        reproduce.insert(file, short)


def test_the_page_of_the_documentation_takes_the_table(table, tmp_path):
    page = (reproduce.ROOT / reproduce.PAGE).read_text(encoding="utf-8")
    assert [page.count(marker) for marker in reproduce.MARKERS] == [1, 1]
    (tmp_path / "page.md").write_text(page)
    reproduce.insert(tmp_path / "page.md", "new\n")
    assert "new" in (tmp_path / "page.md").read_text()
    assert "spellman23" not in (tmp_path / "page.md").read_text()


def test_every_experiment_is_in_its_room():
    """A folder that moved would drop out of the table unseen."""
    assert reproduce.available() == list(reproduce.EXPERIMENTS)
