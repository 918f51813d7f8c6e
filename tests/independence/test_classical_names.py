"""Names of classical tests that people type lead to the private test that answers for them, and the answer says so."""

import dataclasses
import json

import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp.ask.independence import Query
from jaxdp.cli import options
from jaxdp.cli.main import main
from jaxdp.spec import TestSpec

TYPED = {
    "t-test": "mean-difference",
    "Welch": "mean-difference",
    "ttest_ind": "mean-difference",
    "anova": "kruskal-wallis",
    "mann-whitney": "kruskal-wallis",
    "chi-square": "projected-chi2",
    "Chi2": "projected-chi2",
    "pearson": "partial-correlation",
    "spearmanr": "conditional-spearman",
    "Kendall Tau": "conditional-kendall",
    "logistic": "logistic-regression",
    "Poisson": "poisson-regression",
    "rate ratio": "poisson-regression",
    "mic": "micr-laplace",
}


def table(size=400):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, size)
    dose = np.clip(0.5 * group + rng.normal(size=size), -4, 4)
    return {"group": group, "dose": dose, "other": np.clip(rng.normal(size=size), -4, 4)}


KNOWN = {"bounds": {"dose": (-4, 4), "other": (-4, 4)}, "levels": {"group": [0, 1]}}


@pytest.mark.parametrize("typed", TYPED)
def test_a_classical_name_leads_to_the_test_that_answers_for_it(typed):
    entry = catalogue.find(typed)
    assert entry.name == TYPED[typed]
    assert catalogue.own_name(typed) == entry.name
    assert entry.instead_of(typed) == f"{typed} is answered by {entry.name}: {entry.spec.summary}."
    assert entry.instead_of(entry.name) == ""


def test_no_two_tests_claim_one_name(monkeypatch):
    claimed = [name for entry in catalogue.entries().values() for name in entry.spec.known_as]
    plain = ["".join(filter(str.isalnum, name.lower())) for name in (*claimed, *catalogue.entries())]
    assert len(claimed) > 25
    assert len(set(plain)) == len(plain)

    for name in ("T test", "partition_gcm"):  # of another test: a classical name, and an own one
        spec = TestSpec(name="greedy", summary="claims what is taken", known_as=(name,))
        greedy = jaxdp.private_test(type("Greedy", (jaxdp.PartitionGCM,), {"spec": spec}))
        monkeypatch.setattr(catalogue, "_declared", lambda greedy=greedy: [greedy])
        catalogue.look_again()
        try:
            with pytest.raises(ValueError, match=f"both answer to '{name}'"):
                catalogue.entries()
        finally:
            monkeypatch.undo()
            catalogue.look_again()


def test_a_published_form_claims_no_name():
    spec = dataclasses.replace(catalogue.find("t-test").spec)
    assert spec.known_as
    assert spec.as_published("other", "as published", true_epsilon="as claimed").known_as == ()


def test_the_answer_says_which_test_was_taken():
    named = jaxdp.test(table(), x="group", y="dose", epsilon=2.0, method="t-test", **KNOWN)
    own = jaxdp.test(table(), x="group", y="dose", epsilon=2.0, method="mean-difference", **KNOWN)
    told = catalogue.find("mean-difference").instead_of("t-test")
    assert named.content["method"] == own.content["method"] == "mean-difference"
    assert named.content["taken"] == told
    assert told in named.sentences()
    assert told in named._repr_html_()
    assert "taken" not in own.content


@pytest.mark.full
def test_all_pairs_say_it_too():
    found = jaxdp.test_pairs(table(), columns=["dose", "other"], epsilon=4.0, method="pearson", **KNOWN)
    assert found.content["taken"] == catalogue.find("partial-correlation").instead_of("pearson")


def test_the_wrong_kind_of_column_is_refused_before_anything_is_charged(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.json", epsilon=5.0)
    for typed, x, y in (("t-test", "dose", "other"), ("chi-square", "dose", "other"), ("anova", "dose", "other")):
        with pytest.raises(ValueError, match=f"{TYPED[typed]} cannot test whether"):
            jaxdp.test(table(), x=x, y=y, epsilon=1.0, method=typed, ledger=ledger, **KNOWN)
    assert ledger.spent.epsilon == 0.0


def test_a_name_without_a_counterpart_is_refused_with_the_closest_ones():
    with pytest.raises(ValueError, match=r"no test called 'ttests'; did you mean 't-test' \(mean-difference\)"):
        catalogue.find("ttests")
    with pytest.raises(ValueError, match="no test called 'weibull'; jaxdp methods"):
        catalogue.find("weibull")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("ttest_rel", "column of the differences"),
        ("paired-t-test", "column of the differences"),
        ("wilcoxon", "groups of different records"),
        ("mcnemar", "column of three levels"),
        ("kolmogorov-smirnov", "quantile-table"),
        ("ks_2samp", "kruskal-wallis"),
    ],
)
def test_a_name_that_is_not_offered_says_so_and_what_to_do(typed, said):
    """Paired tests were answered with the names of unpaired ones."""
    with pytest.raises(ValueError, match=f"{typed} is not offered: .*{said}"):
        catalogue.find(typed)


def test_what_is_not_offered_is_no_name_of_a_test_and_points_to_tests_that_are():
    for name, reason in catalogue.NOT_OFFERED.items():
        assert not catalogue.is_known(name)
        for told in ("mean-difference", "kruskal-wallis", "quantile-table"):
            assert told not in reason or told in catalogue.entries()
    schema = jaxdp.Schema.from_dict(
        {"columns": {"group": {"kind": "binary", "levels": [0, 1]}, "dose": {"kind": "continuous", "bounds": [-4, 4]}}}
    )
    assert Query.of(schema, x="group", y="dose", epsilon=1.0, method="quantile-table").entry.name == "quantile-table"


def test_commands_say_it(tmp_path, capsys):
    columns = table()
    rows = zip(*(columns[name] for name in columns), strict=True)
    (tmp_path / "d.csv").write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    schema = '[columns.group]\nkind = "binary"\nlevels = ["0", "1"]\n'
    schema += '[columns.dose]\nkind = "continuous"\nbounds = [-4, 4]\n'
    (tmp_path / "s.toml").write_text(schema)
    files = [str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    asked = ["--x", "group", "--y", "dose", "--epsilon", "2", "--method", "t-test", "--seed", "1"]
    assert main(["test", *files, *asked]) == 0
    assert "asked for  t-test is answered by mean-difference" in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "t-test is answered by mean-difference" in page


def test_a_plan_is_under_the_own_name_of_the_test(capsys):
    row = jaxdp.plan("t-test", n=500, epsilon=1.0, effect=0.5)
    assert row == jaxdp.plan("mean-difference", n=500, epsilon=1.0, effect=0.5)
    assert options.own_name("chi-square") == "projected-chi2"
    assert "chi-square is answered by projected-chi2" in capsys.readouterr().err
    assert options.own_name("projected-chi2") == "projected-chi2"
    assert not capsys.readouterr().err


def test_methods_lists_the_names_that_a_test_answers_for(capsys):
    assert main(["methods"]) == 0
    assert "answers for t-test, ttest_ind" in capsys.readouterr().out
    assert main(["methods", "--json"]) == 0
    listed = {row["name"]: row["known_as"] for row in json.loads(capsys.readouterr().out)["tests"]}
    assert "spearman" in listed["conditional-spearman"]
