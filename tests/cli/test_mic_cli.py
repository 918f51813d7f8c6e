"""`jaxdp mic`: one pair and all pairs of a CSV file, and its mistakes."""

import csv
import json

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.accounting.renyi import zcdp_epsilon, zcdp_rho
from jaxdp.cli.main import main
from jaxdp.independence.mic.mic_pairs import MICrPairs, noise_scale

SCHEMA = """
[columns.x]
kind = "continuous"
bounds = [0, 10]
[columns.y]
kind = "continuous"
bounds = [-2, 2]
[columns.g]
kind = "ordinal"
levels = ["a", "b", "c"]
"""


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 120)
    y = np.clip(np.sin(x / 3) + 0.05 * rng.normal(size=120), -2, 2)
    rows = zip(x, y, rng.choice(list("abc"), 120), strict=True)
    (tmp_path / "d.csv").write_text("x,y,g\n" + "".join(f"{a:.4f},{b:.4f},{g}\n" for a, b, g in rows))
    (tmp_path / "s.toml").write_text(SCHEMA)
    return ["mic", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "o")]


def test_one_pair_is_released_with_its_cost(files, tmp_path, capsys):
    assert main([*files, "--x", "x", "--y", "y", "--epsilon", "8", "--cells", "12"]) == 0
    content = json.loads((tmp_path / "o" / "result.json").read_text())
    assert content["mode"] == "release"
    assert content["epsilon"] == 8.0
    assert content["pairs"][0].keys() == {"x", "y", "mic"}
    assert content["pairs"][0]["mic"] > 0.3
    assert "NOT PRIVATE" not in capsys.readouterr().out
    assert (tmp_path / "o" / "picture.png").stat().st_size > 1000


@pytest.mark.full
def test_all_pairs_write_matrix_table_and_heat_map(files, tmp_path, capsys):
    assert main([*files, "--all-pairs", "--epsilon", "30", "--delta", "1e-6", "--cells", "9", "--seed", "1"]) == 0
    folder = tmp_path / "o"
    content = json.loads((folder / "result.json").read_text())
    assert (content["epsilon"], content["delta"], content["mode"]) == (30.0, 1e-6, "simulation")
    assert (content["pairs"][0]["x"], content["pairs"][0]["y"]) == ("x", "y")
    matrix = list(csv.reader((folder / "matrix.csv").open()))
    values = np.array([row[1:] for row in matrix[1:]], float)
    assert matrix[0][1:] == ["x", "y", "g"]
    np.testing.assert_allclose(values, values.T)
    assert len((folder / "top_pairs.csv").read_text().splitlines()) == 4
    assert (folder / "heatmap.png").stat().st_size > 1000
    assert "NOT PRIVATE" in capsys.readouterr().out


def test_a_delta_is_converted_as_everywhere_else():
    """The noise of all pairs has the largest rho within (epsilon, delta), and no looser one."""
    values = np.random.default_rng(0).uniform(0, 1, (60, 3))
    table, bounds = dict(zip("abc", values.T, strict=True)), dict.fromkeys("abc", (0, 1))
    for epsilon, delta in ((0.5, 1e-6), (2.0, 1e-9)):
        asked = {"epsilon": epsilon, "delta": delta, "bounds": bounds, "max_cells": 4}
        found = jaxdp.mic(table, **asked, key=jax.random.key(0))
        rho = zcdp_rho(epsilon, delta)
        assert zcdp_epsilon(rho, delta) <= epsilon
        assert zcdp_epsilon(rho * (1 + 1e-6), delta) > epsilon
        assert found.content["noise_sd"] == pytest.approx(_pairs_sd(rho), rel=1e-6)
        assert (float(found.cost.epsilon), float(found.cost.delta)) == (epsilon, delta)


def _pairs_sd(rho):
    test = MICrPairs(mechanism=jaxdp.Gaussian(rho=rho), bounds=[(-1.0, 1.0)] * 3, max_cells=4)
    return noise_scale(test.specialize(jax.ShapeDtypeStruct((60, 3), float)), 60)


@pytest.mark.parametrize(
    "mistake",
    [
        ["--x", "x", "--epsilon", "1"],
        ["--x", "x", "--y", "x", "--epsilon", "1"],
        ["--x", "x", "--y", "nope", "--epsilon", "1"],
        ["--x", "x", "--y", "y", "--epsilon", "0"],
        ["--x", "x", "--y", "y", "--epsilon", "1", "--cells", "3"],
        ["--x", "x", "--y", "y", "--epsilon", "1", "--delta", "1e-6"],
        ["--all-pairs", "--x", "x", "--epsilon", "1"],
        ["--all-pairs", "--columns", "x", "--epsilon", "1"],
        ["--all-pairs", "--range-share", "0.3", "--epsilon", "1"],
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(files, mistake, capsys):
    assert main([*files, *mistake]) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith("jaxdp: error:")
    assert "\n" not in shown


@pytest.mark.full
def test_constant_tied_missing_and_outlying_values_have_declared_answers(tmp_path, capsys):
    """A column with gaps and outliers scores as the same column clipped by hand; without variation all is 0."""
    rng = np.random.default_rng(0)
    clean = rng.uniform(0, 10, 80)
    clean[:4] = [5, 5, 10, 5]  # what is missing counts as the middle
    other = np.clip(clean + rng.normal(size=80), 0, 10)
    odd = ["", "nan", "1e9", "-inf", *map(repr, clean[4:].tolist())]
    rows = zip(odd, clean.tolist(), other.tolist(), ["5"] * 80, ["2"] * 80, strict=True)
    names = ["odd", "clean", "other", "five", "two"]
    (tmp_path / "d.csv").write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n")
    (tmp_path / "s.toml").write_text("".join(f'[columns.{n}]\nkind="continuous"\nbounds=[0, 10]\n' for n in names))
    files = [str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "o"), "--overwrite"]
    chosen = ["--all-pairs", "--epsilon", "1000", "--cells", "9", "--seed", "1"]
    assert main(["mic", *files, *chosen]) == 2  # three empty cells of 80 are not filled without being asked
    assert main(["mic", *files, *chosen, "--force"]) == 0
    found = {
        frozenset((p["x"], p["y"])): p["mic"] for p in json.loads((tmp_path / "o/result.json").read_text())["pairs"]
    }
    noise = json.loads((tmp_path / "o/result.json").read_text())["noise_sd"]

    def of(*pair):
        return found[frozenset(pair)]

    assert of("odd", "other") == pytest.approx(of("clean", "other"), abs=25 * noise)
    assert of("odd", "clean") > 0.9 > of("clean", "other") > 0.4
    assert max(of("five", "two"), of("five", "odd"), of("two", "clean")) == 0.0, "below chance, clipped"
    (tmp_path / "d.csv").write_text("odd,clean,other,five,two\n1,1,1,1,1\n2,2,2,2,2\n")
    capsys.readouterr()
    assert main(["mic", *files, "--x", "odd", "--y", "clean", "--epsilon", "1"]) == 2
    assert "2 rows" in capsys.readouterr().err


@pytest.mark.parametrize(("columns", "helps"), [(2, False), (14, True)])
def test_a_delta_is_advised_where_it_helps_only(columns, helps):
    """Normal noise is the larger one for few coefficients."""
    names = "abcdefghijklmn"[:columns]
    table = dict(zip(names, np.random.default_rng(0).uniform(0, 1, (columns, 60)), strict=True))
    asked = {"epsilon": 0.5, "bounds": dict.fromkeys(names, (0, 1)), "max_cells": 4}
    found = jaxdp.mic(table, **asked, key=jax.random.key(0))
    assert "it exceeds most coefficients" in " ".join(str(found).split())
    assert ("--delta" in str(found)) == helps
    with_delta = jaxdp.mic(table, **asked, delta=1e-6, key=jax.random.key(1))
    less = with_delta.content["noise_sd"] < found.content["noise_sd"]
    assert less == helps
    assert found.content.get("noise_sd_with_delta") == (with_delta.content["noise_sd"] if helps else None)
    assert "--delta" not in str(with_delta)
