"""Cohorts of a PLINK fileset: who lacks a covariate counts as one without a phenotype, not as one in the middle."""

import numpy as np
import pytest

from jaxdp.data import plink


def test_a_person_without_a_covariate_is_left_out():
    persons, phenotype = (("f", "1"), ("f", "2"), ("f", "3")), ("2", "1", "2")
    genotypes = plink.Genotypes(np.zeros((3, 2), np.int8), persons, ("a", "b"), ("1:1", "1:2"), phenotype)
    data = plink.cohort(genotypes, phenotype, {"age": ["20", "NA", "40"]}, {"age": (0.0, 80.0)}, None)
    np.testing.assert_array_equal(data.y, [1.0, np.nan, 1.0])
    np.testing.assert_array_equal(data.z[:, 0], [-0.5, np.nan, 0.0])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_largest_floats_lie_beyond_the_bounds_as_others_do():
    assert plink.scaled(["1e308", "-1e308", "100", "54"], (18.0, 90.0)).tolist() == [1.0, -1.0, 1.0, 0.0]


@pytest.mark.parametrize("code", ["-9", "-9.0", "-9.00", "NA", "nan", ""])
def test_missing_codes_of_plink_are_no_values(code):
    """Minus nine counted as the low bound: carriers without a phenotype made of their variant a finding."""
    assert np.isnan(plink.scaled([code], (0.0, 10.0))).all()
    genotypes = plink.Genotypes(np.zeros((2, 1), np.int8), (("f", "1"), ("f", "2")), ("a",), ("1:1",), (code, "5"))
    data = plink.cohort(genotypes, [code, "5"], {"age": ["20", "30"]}, {"age": (0.0, 80.0)}, (0.0, 10.0))
    np.testing.assert_array_equal(data.y, [np.nan, 0.0])
    data = plink.cohort(genotypes, ["1", "2"], {"age": [code, "40"]}, {"age": (0.0, 80.0)}, None)
    np.testing.assert_array_equal(data.y, [np.nan, 1.0])


def test_minus_nine_within_the_bounds_is_a_value():
    assert plink.scaled(["-9", "-9.0", "-10"], (-10.0, 10.0)).tolist() == [-0.9, -0.9, -1.0]
    assert plink.scaled(["-9"], (-9.0, 10.0)).tolist() == [-1.0]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1", "2", "2.0", "0", "-9", "NA", "nan"], ""),
        (["1", "2", "3"], "1 of 3 cells of it are neither"),
        (["1", "2", "2.5", "ill"], "2 of 4 cells of it are neither"),
        (["0", "1", "1", "0", "-9"], "plink --1"),
        (["1", "1", "NA"], "it has no case (2)"),
        (["2", "2", "0"], "it has no control (1)"),
        (["-9", "0", "NA"], "all 3 cells of it are missing"),
    ],
)
def test_what_is_no_phenotype_of_cases_and_controls(cells, said):
    found = plink.fault_of_groups("it", cells, "give bounds")
    assert said in found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([*map(str, range(80)), "-9", "NA", "", "x", "y"], ""),
        ([*map(str, range(80)), "-9", "NA", "", "x", "y", "z"], "3 of 86 cells of it are no numbers"),
        (["0,5"] * 9, "9 of 9 cells of it are no numbers"),
        (["-9", "NA", "nan"], "all 3 cells of it are missing"),
        (["0.2", "0.4", "-9", "500"], ""),
        (["0.2", "400", "-9", "500"], "2 of 4 cells of it lie outside its bounds [0, 90]"),
    ],
)
def test_what_is_no_column_of_numbers(cells, said):
    """Missing cells are no fault: who lacks them is left out."""
    found = plink.fault_of_numbers("it", cells, (0.0, 90.0))
    assert said in found
    assert bool(said) == bool(found)


def test_chromosomes_that_are_no_autosomes():
    others = ["X", "y", "XY", "MT", "chrX", "ChrM", "23", "24", "25", "26", "PAR1"]
    assert all(plink.beyond_autosomes(f"{code}:100") for code in others)
    assert not any(plink.beyond_autosomes(f"{code}:100") for code in ("1", "22", "chr2", "0", "27", "chr1_X"))
