"""Power beside risk over epsilons: the numbers of the planner, the exact risk, the knee, the command and its files."""

import csv
import json
import math
import sys

import jax
import pytest

from jaxdp import plan
from jaxdp._base import risk
from jaxdp.accounting.renyi import zcdp_rho
from jaxdp.cli.main import main
from jaxdp.plan.epsilon_curve import GRID, EpsilonPoint, _first, share_of

FEW = (0.1, 0.3, 0.5, 1.0, 3.0)


def curve(**how):
    return plan.epsilon_curve("partition-gcm", **{"n": 1000, "effect": 0.25, "epsilons": FEW} | how)


def test_the_best_guess_is_that_of_randomised_response():
    """Someone sees one of the two answers of randomised response: with delta the version is shown outright so often."""
    for epsilon, delta in ((0.1, 0.0), (1.0, 0.0), (1.0, 0.01), (3.0, 0.2)):
        told = (1.0 - delta) / (1.0 + math.exp(-epsilon))  # the answer that is right, where nothing is shown
        assert risk.best_guess(epsilon, delta) == pytest.approx(delta + told, rel=1e-12)
    assert risk.best_guess(1.0) == pytest.approx(0.7310586, abs=1e-7)
    assert risk.best_guess(1e4) == 1.0
    assert risk.odds(1e4) == math.inf


def test_records_that_change_together_cost_a_multiple():
    assert risk.of_household(0.5) == risk.best_guess(2.0)
    one_by_one = 0.0
    for _ in range(4):  # each further record multiplies what was lost by exp(epsilon) and adds delta
        one_by_one = math.exp(0.5) * one_by_one + 1e-3
    assert risk.of_household(0.5, 1e-3) == pytest.approx(risk.best_guess(2.0, one_by_one))


def test_a_probability_is_never_told_smaller_or_as_certainty():
    assert [risk.shown(p) for p in (0.5, 0.7310586, 0.9991, 0.99999)] == ["0.500", "0.732", ">0.999", ">0.999"]
    assert [risk.of_100(p) for p in (0.5, 0.7310586, 0.99999)] == ["up to 50.0", "up to 73.2", "more than 99.9"]


def test_every_point_has_the_power_of_the_planner_and_the_exact_risk():
    found = curve()
    for point in found.points:
        assert point.power == plan.power("partition-gcm", n=1000, epsilon=point.epsilon, effect=0.25)
        assert point.best_guess == risk.best_guess(point.epsilon)
        assert point.low is point.high is None
    assert [point.epsilon for point in found.points] == list(FEW)
    wanted = plan.minimum_epsilon("partition-gcm", n=1000, effect=0.25)
    assert found.knee == min(epsilon for epsilon in FEW if epsilon >= wanted) == 0.5
    assert "up to 62.3 of 100 cases" in found.sentence
    assert repr(found).count("<- knee") == 1
    assert found.table() in repr(found)


def test_studies_share_epsilon_and_the_risk_stays_that_of_the_total():
    alone, shared = curve(), curve(studies=4)
    for one, each in zip(alone.points, shared.points, strict=True):
        assert each.share == each.epsilon / 4
        assert each.power == plan.power("partition-gcm", n=1000, epsilon=each.share, effect=0.25) < one.power + 1e-12
        assert (each.odds, each.best_guess, each.household) == (one.odds, one.best_guess, one.household)
    assert shared.knee > alone.knee
    assert "each of 4 studies" in shared.sentence


def test_with_a_delta_studies_share_rho():
    share = share_of(2.0, 9, 1e-6)
    assert zcdp_rho(share, 1e-6) * 9 == pytest.approx(zcdp_rho(2.0, 1e-6), rel=1e-6)
    assert share > 2.0 / 9
    point = curve(studies=9, delta=1e-6).at(1.0)
    assert point.best_guess == risk.best_guess(1.0, 1e-6)


def test_a_goal_out_of_reach_is_said():
    found = curve(n=100, effect=0.05)
    assert found.knee is None
    assert found.sentence.startswith("No epsilon up to 3 gives partition-gcm a power of 0.8")
    assert "knee" not in found.table()


def test_a_lucky_simulated_point_is_no_knee():
    def point(epsilon, power):
        return EpsilonPoint(epsilon, 1.0, 0.5, 0.5, epsilon, power)

    points = [point(0.1, 0.82), point(0.2, 0.7), point(0.3, 0.81), point(0.5, 0.9)]
    assert _first(points, 0.8) == 0.3
    assert _first(points, 0.95) is None


def test_simulated_points_have_intervals():
    how = {"epsilons": (0.01, 4.0), "replicates": 60, "key": jax.random.key(1)}
    found = plan.epsilon_curve("band-gcm", n=300, effect=0.6, **how)
    assert found.engine == "simulation"
    for point in found.points:
        assert point.low <= point.power <= point.high
    assert found.points[-1].power > 0.9


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"epsilons": (1.0, 0.5)}, "numbers that rise"),
        ({"epsilons": ()}, "numbers that rise"),
        ({"studies": 0}, "studies must be"),
        ({"effect": -1.0}, "effect must be"),
        ({"power": 1.0}, "power must be"),
        ({"n": 5}, "n must be"),
    ],
)
def test_mistakes_are_named(how, message):
    with pytest.raises(ValueError, match=message):
        curve(**how)


def test_the_command_writes_a_picture_a_table_and_a_page(tmp_path, capsys):
    asked = ["plan", "--method", "partition-gcm", "--n", "1000", "--effect", "0.25", "--out", str(tmp_path)]
    assert main([*asked, "--power", "0.8", "--replicates", "0"]) == 0
    assert (tmp_path / "power.png").exists()
    capsys.readouterr()
    assert main([*asked, "--epsilon-curve", "--studies", "2", "--replicates", "100"]) == 0
    (shown, told), content = capsys.readouterr(), json.loads((tmp_path / "plan.json").read_text())
    assert content["epsilon"] == content["knee"] == 1.0
    assert content["simulated"]["power"] > 0.7
    assert "has no formula" not in told
    assert " ".join(content["answer"].split()) in " ".join(shown.split())
    with (tmp_path / "epsilon_curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["epsilon"]) for row in rows] == list(GRID)
    assert [float(row["share"]) * 2 for row in rows] == pytest.approx(list(GRID))
    assert (tmp_path / "epsilon_curve.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "power.png").exists()  # of another plan
    page = (tmp_path / "report.html").read_text()
    assert "No record was read, and nothing was spent." in page
    assert "against the total epsilon" in page


def test_the_command_says_how_much_it_simulates(tmp_path, capsys, monkeypatch):
    def stopped(*arguments, **options):
        raise ValueError("stopped here")

    monkeypatch.setattr(sys.modules["jaxdp.plan.epsilon_curve"], "epsilon_curve", stopped)
    asked = ["plan", "--method", "band-gcm", "--n", "500", "--effect", "0.3", "--epsilon-curve"]
    assert main([*asked, "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "band-gcm has no formula here: 1000 made-up data sets at each of 15 epsilons, fewer with --quick." in said
