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
