"""`jaxdp gwas`: files written, charge, and mistakes in one line."""

import json

import numpy as np
import pytest

import jaxdp
from jaxdp.ask.variants import GwasQuery
from jaxdp.cli.main import main
from jaxdp.data import plink


def files(folder, n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, (n, 3)).astype(np.int8)
    plink.write_genotypes(folder / "study", x, phenotype=np.where(x[:, 1] > 0, "2", "1"))
    rows = [f"p{i} p{i} {rng.uniform(20, 80):.1f}" for i in range(n)]
    (folder / "study.cov").write_text("\n".join(["FID IID age", *rows]) + "\n")
    table = ["--covariates", str(folder / "study.cov"), "--given", "age", "--bounds", "age=18:90"]
    return ["gwas", str(folder / "study"), *table]


def test_best_variants_are_written_and_paid_once(tmp_path):
    command, ledger = files(tmp_path), str(tmp_path / "l.db")
    assert main(["ledger", "create", ledger, "--epsilon", "9"]) == 0
    out = tmp_path / "o"
    assert main([*command, "--epsilon", "9", "--count", "1", "--ledger", ledger, "--out", str(out)]) == 0
    content = json.loads((out / "result.json").read_text())
    assert {"variants.csv", "result.json", "report.html"} <= {path.name for path in out.iterdir()}
    assert len(content["variants"]) == 1
    assert content["num_variants"] == 3
    assert content["budget"]["epsilon_left"] < 1e-9
    assert main([*command, "--epsilon", "1", "--ledger", ledger, "--out", str(tmp_path / "p")]) == 3


def test_every_variant_is_tested_where_that_is_asked(tmp_path):
    """It was the best four: of three variants a refusal."""
    out = tmp_path / "o"
    assert main([*files(tmp_path), "--epsilon", "9", "--every", "--seed", "1", "--out", str(out)]) == 0
    content = json.loads((out / "result.json").read_text())
    assert len(content["variants"]) == content["num_variants"] == 3


def test_mistakes_are_one_line(tmp_path, capsys):
    command = files(tmp_path)
    for wrong, said in (
        (["--epsilon", "1", "--every", "--count", "2"], "--count or --every"),
        (["--epsilon", "1", "--bounds", "age=90:18"], "LOW < HIGH"),
        (["--epsilon", "1", "--given", "height"], "--given is given twice"),
    ):
        assert main([*command, *wrong]) == 2
        assert said in capsys.readouterr().err
    other = ["height" if word == "age" else word for word in command]
    assert main([*other, "--epsilon", "1"]) == 2
    assert "needs public bounds" in capsys.readouterr().err


def test_an_answer_that_rests_on_straight_lines_says_so(tmp_path, capsys):
    """60 persons do not say how the phenotype bends with age."""
    assert main([*files(tmp_path), "--epsilon", "9", "--count", "1", "--seed", "1", "--out", str(tmp_path / "o")]) == 0
    content = json.loads((tmp_path / "o" / "result.json").read_text())
    assert "straight lines" in content["flags"]
    assert "  flagged    Take care: " in capsys.readouterr().out
    found = any(one["p_value"] <= 0.05 for one in content["variants"])
    assert ("unless" in content["answer"]) == found


def test_a_ragged_row_is_for_the_owner_alone(tmp_path, capsys):
    command, table = files(tmp_path), tmp_path / "study.cov"
    rows = table.read_text().splitlines()
    rows[5] = rows[5].rpartition(" ")[0]
    table.write_text("\n".join(rows) + "\n")
    assert main([*command, "--epsilon", "1", "--seed", "1"]) == 2
    assert "shorter than its header (for the owner of the file, not for release)." in capsys.readouterr().err


def recode(folder, column, code):
    """The fileset with the cells of a column of .fam replaced: code(its cell, its row)."""
    rows = [line.split() for line in (folder / "study.fam").read_text().splitlines()]
    for row, words in enumerate(rows):
        words[column] = code(words[column], row)
    (folder / "study.fam").write_text("".join(" ".join(words) + "\n" for words in rows))


@pytest.mark.parametrize(
    ("column", "code", "said"),
    [
        (5, lambda cell, row: str(int(cell) - 1), "plink --1"),  # controls count as missing, cases as controls
        (5, lambda cell, row: f"{row}.5", "--bounds phenotype=LOW:HIGH"),
        (5, lambda cell, row: "-9", "all 60 cells"),
        (0, lambda cell, row: f"other{row}", "FID and IID"),
    ],
)
def test_a_fileset_that_says_nothing_is_not_charged(column, code, said, tmp_path, capsys):
    """Epsilon was spent on a phenotype of nobody, or on one that is the same for all."""
    command, ledger = files(tmp_path), str(tmp_path / "l.db")
    recode(tmp_path, column, code)
    assert main(["ledger", "create", ledger, "--epsilon", "9"]) == 0
    assert main([*command, "--epsilon", "9", "--count", "1", "--ledger", ledger, "--out", str(tmp_path / "o")]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "nothing was charged (for the owner of the file, not for release)." in told
    assert jaxdp.Ledger.open(ledger).spent.epsilon == 0.0


def test_persons_left_with_one_phenotype_are_refused(tmp_path, capsys):
    """Of both phenotypes there are persons, but all cases lack the covariate."""
    command, table = files(tmp_path), tmp_path / "study.cov"
    cases = [line.split()[5] == "2" for line in (tmp_path / "study.fam").read_text().splitlines()]
    header, *rows = table.read_text().splitlines()
    lost = [" ".join([*row.split()[:2], "-9"]) if case else row for row, case in zip(rows, cases, strict=True)]
    table.write_text("\n".join([header, *lost]) + "\n")
    assert main([*command, "--epsilon", "1", "--seed", "1"]) == 2
    assert "do not differ in the phenotype of .fam" in capsys.readouterr().err


def test_a_quantity_of_fam_has_bounds_by_the_name_of_phenotype(tmp_path):
    command, out = files(tmp_path), tmp_path / "o"
    recode(tmp_path, 5, lambda cell, row: "-9" if row == 7 else f"{200 + row}.5")
    command[-1:] = ["age=18:90", "phenotype=200:300"]
    assert main([*command, "--epsilon", "9", "--count", "1", "--seed", "1", "--out", str(out)]) == 0
    content = json.loads((out / "result.json").read_text())
    assert "the phenotype" in content["title"]
    query = GwasQuery.of(covariates="a", names=["phenotype"], bounds={"phenotype": (0.0, 9.0)}, epsilon=1.0)
    assert query.phenotype_bounds is None, "bounds of a covariate of this name"
    with pytest.raises(ValueError, match="neither a covariate nor the phenotype"):
        GwasQuery.of(phenotype="ldl", bounds={"phenotype": (0.0, 9.0)}, epsilon=1.0)


@pytest.mark.parametrize(("codes", "count"), [("1 22 0", 0), ("1 X chrY", 2), ("23 MT 26", 3)])
def test_variants_beyond_the_autosomes_are_told(codes, count, tmp_path):
    """They were tested as on autosomes without a word."""
    command, bim, out = files(tmp_path), tmp_path / "study.bim", tmp_path / "o"
    rows = [line.split()[1:] for line in bim.read_text().splitlines()]
    bim.write_text("".join(" ".join([code, *row]) + "\n" for code, row in zip(codes.split(), rows, strict=True)))
    assert main([*command, "--epsilon", "9", "--every", "--seed", "1", "--out", str(out)]) == 0
    told = " ".join(json.loads((out / "result.json").read_text())["cautions"])
    assert ("sex must be among the covariates" in told) == bool(count)
    assert (f"hold {count} of the 3 tested variants" in told) == bool(count)


@pytest.mark.parametrize("missing", [False, True])
def test_every_answer_says_what_missing_calls_would_do(missing, tmp_path):
    """How many there are is private: it is said whether or not there are any."""
    command, out = files(tmp_path), tmp_path / "o"
    counts = plink.read_genotypes(tmp_path / "study").counts.copy()
    counts[:: 3 if missing else 60, 0] = plink.MISSING if missing else 1
    plink.write_genotypes(tmp_path / "study", counts, phenotype=["1", "2"] * 30)
    assert main([*command, "--epsilon", "9", "--count", "1", "--seed", "1", "--out", str(out)]) == 0
    assert "genotypes are missing as often" in json.loads((out / "result.json").read_text())["assumption"]
    assert "bias the score" in " ".join((out / "report.html").read_text().split())


def test_an_answer_says_what_its_effects_and_its_records_are(tmp_path, capsys):
    """Which allele, a difference of what, and which intervals: neither the page nor the files said it."""
    command, out = files(tmp_path), tmp_path / "o"
    bim = [line.split() for line in (tmp_path / "study.bim").read_text().splitlines()]
    (tmp_path / "study.bim").write_text("".join("\t".join([*words[:4], "G", "T"]) + "\n" for words in bim))
    assert main([*command, "--epsilon", "9", "--count", "1", "--out", str(out)]) == 0  # a release
    content, screen = json.loads((out / "result.json").read_text()), capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert content["variants"][0]["allele"] == "G"
    assert (out / "variants.csv").read_text().startswith("name,place,allele,p_value,effect,low,high\n")
    assert "for each copy of G" in screen
    for told in (
        "An effect is the difference in the share of cases for each further copy of the named allele, the first of",
        "The intervals hold for all 3 variants together with 95 % confidence",
        "The fileset has 60 persons, whom n counts. Who lacks the phenotype or a covariate is left out of the test",
        "One record for each person of .fam",
    ):
        assert told in page
    assert "unit = ..." not in page
    assert "used 60 records" not in page
    own = GwasQuery.of(covariates=None, names=(), bounds={"phenotype": (0.0, 10.0)}, epsilon=1.0)
    assert own._effect_is(5).startswith("An effect is the difference in the mean of phenotype, in its own units, for")
