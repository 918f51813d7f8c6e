"""The selector of features: what it keeps, what it pays, and scikit-learn's own checks of an estimator."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import jaxdp
from jaxdp import charge, core
from jaxdp.ask.session import Session
from jaxdp.interop import PrivateSelector

KNOWN = {"bounds": (0.0, 1.0), "target": (0.0, 1.0)}


def numbers(n=1500, count=5, seed=0):
    """The first feature moves the target, the others do not."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(size=(n, count))
    return features, np.clip(0.6 * features[:, 0] + 0.2 * rng.uniform(size=n), 0.0, 1.0)


def test_the_feature_that_moves_the_target_is_kept_and_the_answers_are_those_of_the_test():
    features, target = numbers()
    found = PrivateSelector(epsilon=5.0, random_state=1, **KNOWN).fit(features, target)
    assert found.get_support().tolist() == [True, False, False, False, False]
    assert found.transform(features).shape == (1500, 1)
    assert [answer.content["epsilon"] for answer in found.answers_] == [1.0] * 5
    assert found.adjusted_p_values_ == pytest.approx(np.asarray(jaxdp.null_laws.holm(found.p_values_)), rel=1e-5)
    again = clone(found).fit(features, target)
    assert np.array_equal(found.p_values_, again.p_values_)
    assert not np.array_equal(found.p_values_, found.set_params(random_state=2).fit(features, target).p_values_)


def test_a_fit_charges_its_epsilon_once_for_all_features_and_nothing_where_it_is_not_left(tmp_path):
    features, target = numbers(count=3)
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.5)
    found = PrivateSelector(epsilon=1.0, ledger=ledger, **KNOWN).fit(features, target)
    assert ledger.spent.epsilon == pytest.approx(1.0)
    assert ledger.spent.epsilon <= 1.0
    assert [answer.content["mode"] for answer in found.answers_] == ["release"] * 3
    with pytest.raises(jaxdp.BudgetExhausted, match=r"costs epsilon 1, and the ledger has 0\.5"):
        found.fit(features, target)
    assert [row.columns for row in ledger.rows()] == ["feature 0, feature 1, feature 2 ~ target"]


def test_an_interrupted_fit_names_its_whole_charge_and_keeps_what_was_answered(tmp_path, monkeypatch):
    """It said that a third was charged, of two thirds, and the answer that was paid for was gone."""
    features, target = numbers(count=3)
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=5.0)
    found = PrivateSelector(epsilon=1.0, ledger=ledger, **KNOWN).fit(features, target)
    execute = core._execute

    def interrupted_in_the_second_feature(*arguments, **options):
        if len(ledger.rows()) == 2 and len(found.answers_) == 1:
            raise KeyboardInterrupt
        return execute(*arguments, **options)

    monkeypatch.setattr(core, "_execute", interrupted_in_the_second_feature)
    with pytest.raises(KeyboardInterrupt) as stopped:
        found.fit(features, target)
    (note,) = stopped.value.__notes__
    assert note.startswith("quantile-table was charged (epsilon=0.999999999")
    assert "The charge stands" in note
    assert float(ledger.rows()[-1].epsilon) == pytest.approx(1.0)
    assert len(found.answers_) == 1
    with pytest.raises(NotFittedError):
        found.get_support()


def test_of_two_fits_at_once_that_fit_singly_one_is_charged_and_answered(tmp_path, monkeypatch):
    """Both were refused in their midst: 1.333 was charged for no answer, "nothing was charged" said both."""
    features, target = numbers(count=3)
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.5)
    first, second = (PrivateSelector(epsilon=1.0, ledger=ledger, **KNOWN) for _ in range(2))
    estimate, begun = charge.Estimate, []

    def after_the_other_has_looked():
        begun.append(0)
        if len(begun) == 1:
            second.fit(features, target)  # a fit of another thread, between what the first is told and its charge
        return estimate()

    monkeypatch.setattr(charge, "Estimate", after_the_other_has_looked)
    with pytest.raises(jaxdp.BudgetExhausted, match="nothing was charged"):
        first.fit(features, target)
    assert len(second.p_values_) == 3
    assert not hasattr(first, "answers_")
    assert len(ledger.rows()) == 1


def test_a_frame_a_target_of_levels_and_bounds_by_name_in_a_pipeline():
    table = load_breast_cancer(as_frame=True)
    frame = table.data[["mean radius", "mean texture", "symmetry error"]]
    bounds = {"mean radius": (5, 30), "mean texture": (5, 40), "symmetry error": (0, 0.1)}
    selector = PrivateSelector(epsilon=6.0, bounds=bounds, target=[0, 1], random_state=0)
    pipeline = make_pipeline(selector.set_output(transform="pandas"), LogisticRegression()).fit(frame, table.target)
    assert "mean radius" in list(selector.get_feature_names_out())
    assert pipeline.score(frame, table.target) > 0.8


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"target": (0.0, 1.0)}, r"bounds of feature 0 must be two numbers, as bounds=\(low, high\)"),
        ({"bounds": {0: (0.0, 1.0)}, "target": (0.0, 1.0)}, r"bounds of feature 1 must be two numbers, as .* got None"),
        ({"bounds": (0.0, 0.5, 1.0), "target": (0.0, 1.0)}, r"bounds of feature 0 must be two numbers"),
        ({"bounds": [(0.0, 1.0)] * 3, "target": (0.0, 1.0)}, r"bounds of feature 0 must be two numbers"),
        ({"bounds": ("0", "1"), "target": (0.0, 1.0)}, r"bounds of feature 0 must be two numbers"),
        ({"bounds": (0.0, 1.0)}, "target is not known"),
        (KNOWN | {"adjust": "none"}, "adjust must be"),
        (KNOWN | {"level": 2.0}, "level must be"),
        (KNOWN | {"epsilon": -1.0}, "epsilon must be"),
        (KNOWN | {"random_state": 0.5}, "random_state must be None"),
        (KNOWN | {"method": "log-rank"}, "log-rank"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_charged(how, sentence, tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=5.0)
    charged = {} if "random_state" in how else {"ledger": ledger}
    with pytest.raises(ValueError, match=sentence):
        PrivateSelector(**how, **charged).fit(*numbers(count=3))
    assert ledger.spent.epsilon == 0.0


def test_bounds_may_be_a_list_of_two_as_of_every_test():
    features, target = numbers(count=3)
    ways = ((0.0, 1.0), [0.0, 1.0], {i: [0.0, 1.0] for i in range(3)})
    selectors = [PrivateSelector(bounds=way, target=(0.0, 1.0), random_state=0) for way in ways]
    found = [one.fit(features, target).p_values_.tolist() for one in selectors]
    assert found[0] == found[1] == found[2]


def test_a_feature_that_does_not_fit_its_bounds_is_told_before_others_are_charged(tmp_path):
    features, target = numbers(count=3)
    features[:, 2] += 50.0
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=5.0)
    with pytest.raises(ValueError, match="lie outside its bounds"):
        PrivateSelector(ledger=ledger, **KNOWN).fit(features, target)
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize(("share", "said"), [(0.1, "hold none of its levels"), (0.8, "does not parse")])
def test_unknown_levels_of_the_target_are_told_with_what_a_selector_has(share, said, tmp_path):
    """It named options of the command line."""
    features, target = numbers()
    rng = np.random.default_rng(0)
    levels = np.where(rng.random(len(target)) < share, "maybe", np.where(target > 0.5, "yes", "no"))
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=5.0)
    with pytest.raises(ValueError, match=said) as refused:
        PrivateSelector(epsilon=5.0, bounds=(0.0, 1.0), target=["no", "yes"], ledger=ledger).fit(features, levels)
    assert "nothing was charged: correct bounds= or target=" in str(refused.value)
    assert "--" not in str(refused.value)
    assert "maybe" not in str(refused.value)
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize(("features", "draws"), [(40, 7999), (60, 11_999)])
def test_many_features_get_null_tables_enough_for_their_adjustment(features, draws, monkeypatch):
    """60 features of ranks among 999 tables could select nothing: Holm's smallest p-value was .06."""
    asked = []
    monkeypatch.setattr(Session, "test", lambda self, **how: asked.append(how) or SimpleNamespace(p_value=0.5))
    random = np.random.default_rng(0)
    values, target = random.uniform(0, 10, (100, features)), random.integers(0, 2, 100)
    made = PrivateSelector(epsilon=100.0, bounds=(0.0, 10.0), target=[0, 1], random_state=0)
    made.fit(values, target)
    assert [how["fields"] for how in asked] == [{"num_null": draws}] * features
    asked.clear()
    made.fit(values[:, :2], target)
    assert all("fields" not in how for how in asked)
    with pytest.raises(ValueError, match=r"^Holm's adjustment of 6000 features .* nothing could be found"):
        clone(made).set_params(bounds=(0.0, 1.0), epsilon=9e3).fit(np.zeros((10, 6000)), target[:10])


def test_a_path_is_no_ledger():
    with pytest.raises(TypeError, match=r"jaxdp.Ledger.open\(path\)"):
        PrivateSelector(ledger="study.db", **KNOWN).fit(*numbers())


def test_missing_values_are_refused():
    features, target = numbers()
    features[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        PrivateSelector(**KNOWN).fit(features, target)


@pytest.mark.full
def test_true_nulls_are_kept_no_more_often_than_the_level_says():
    kept = 0
    for seed in range(60):
        features, target = numbers(n=400, count=3, seed=seed)
        shuffled = np.random.default_rng(1000 + seed).permutation(target)
        kept += PrivateSelector(epsilon=3.0, random_state=seed, **KNOWN).fit(features, shuffled).get_support().any()
    assert kept <= 11  # of 60 at .05: more than 11 has a chance below 1e-4


@pytest.mark.full
def test_scikit_learn_takes_it_for_an_estimator():
    selector = PrivateSelector(epsilon=5.0, bounds=(-200.0, 200.0), target=(-200.0, 200.0), random_state=0)
    done = check_estimator(selector, on_fail=None, on_skip=None)
    failed = {one["check_name"]: str(one["exception"]) for one in done if one["status"] == "failed"}
    assert failed == {}
    assert sum(one["status"] == "passed" for one in done) > 30


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_no_cell_is_quoted_where_it_is_no_number(kind):
    """NumPy's own words are `could not convert string to float: 'SECRET77'`."""
    cells = np.array([["0.5", "0.1"]] * 99 + [["SECRET77", "0.1"]], object)
    features = pytest.importorskip("pandas").DataFrame(cells, columns=["a", "b"]) if kind == "frame" else cells
    with pytest.raises(ValueError, match="cells that are no numbers") as caught:
        PrivateSelector(1.0, bounds=(-4, 4), target=[0, 1], random_state=0).fit(features, np.arange(100) % 2)
    assert "SECRET77" not in str(caught.value)
    assert caught.value.__suppress_context__
