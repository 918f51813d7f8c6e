"""The stress suite of nulls: its data are a schema's, its verdicts are right, and it goes on where it stopped."""

import numpy as np
import pytest

from experiments.evidence.level import nulls, real, suite
from jaxdp.data.schema import Schema


def test_its_data_are_what_a_schema_makes_of_them():
    null, n = nulls.NULLS["lognormal Z"], 50
    x, y, z = null.draw(np.random.default_rng((7, 0)), n, 1)
    sides = {name: {"kind": "continuous", "bounds": [-4, 4]} for name in "xy"}
    schema = Schema.from_dict({"columns": {**sides, "z": {"kind": "continuous", "bounds": [0, 50]}}})
    read = schema.read({"x": x, "y": y, "z": z[:, 0]}, x="x", y="y", given="z")
    ours = nulls.samples(null, n, 1, 1, 7, codes=False)
    for theirs, mine in zip((read.x, read.y, read.z), ours, strict=True):
        np.testing.assert_allclose(np.ravel(theirs), np.ravel(mine), atol=1e-15)
    domain = nulls.domain_of(null, 1)
    for role in ("x", "y", "z"):
        assert [c.kind for c in getattr(domain, role)] == [c.kind for c in getattr(read.domain, role)]


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("name", [*nulls.NULLS, *nulls.UNSEEN])
def test_every_null_can_be_drawn_and_lies_in_its_bounds(name, depth):
    x, y, z = nulls.samples(nulls.find(name), 20, depth, 2, 1, codes=False)
    assert x.shape == y.shape == (2, 20)
    assert (z is None) == (depth == 0)
    for values in (x, y) if z is None else (x, y, z):
        assert np.all(np.abs(values) <= 1.0)


def test_verdicts_follow_counts_and_flags():
    assert suite.verdict(30, 300, []) == suite.INSIDE
    assert suite.verdict(40, 300, []) == suite.OUTSIDE
    assert suite.verdict(40, 300, ["cells"]) == suite.FLAGGED
    assert suite.verdict(40, 300, ["low power"]) == suite.OUTSIDE
    assert suite.exact_interval(0, 100) == pytest.approx((0.0, 0.0362), abs=1e-4)


def test_refusals_and_a_run_that_goes_on(tmp_path):
    cells = [suite.Cell("sine 3", 2, 200, 1.0, name) for name in ("partition-gcm", "conditional-kendall")]
    path = tmp_path / "suite.jsonl"
    assert [row["verdict"] for row in suite.run(cells[:1], path, 1.0)] == [suite.REFUSED]
    rows = suite.run(cells, path, 1.0)
    assert [row["test"] for row in rows] == ["partition-gcm", "conditional-kendall"]
    assert "contrast-gcm" in rows[1]["because"]


@pytest.mark.full
@pytest.mark.optimised
def test_the_defaults_keep_their_level_on_a_few_nulls(tmp_path):
    cells = [
        suite.Cell(name, depth, 200, 8.0, test)
        for depth, test in ((1, "band-gcm"), (2, "contrast-gcm"))
        for name in ("sine 3", "X, Y exact", "lognormal Z")
    ]
    rows = suite.run(cells, tmp_path / "suite.jsonl", 5.0, {200: 100})
    assert {row["verdict"] for row in rows} == {suite.INSIDE}
    lost = suite.measure(suite.Cell("lognormal Z", 1, 200, 8.0, "partition-gcm"), 100)
    assert (lost["verdict"], lost["flags"]) == (suite.FLAGGED, ["cells"])


@pytest.mark.full
def test_flags_of_releases_are_counted_in_releases_that_reject():
    """Steps: rejected in nearly every data set, and flagged by the release in nearly every one of these."""
    (row,) = [suite.measure(suite.Cell("steps", 2, 1000, 8.0, "contrast-gcm"), 40)]
    assert row["flags"] == ["curvature"]
    assert row["verdict"] == suite.FLAGGED
    assert row["rejections"] >= 30
    assert row["unflagged"] <= 2


def test_nulls_of_a_real_table_keep_its_means_and_break_the_dependence():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (600, 1))
    common = rng.normal(size=600)  # x and y depend on each other given z, strongly
    x, y = (np.sin(3 * z[:, 0]) + 0.5 * (common + 0.1 * rng.normal(size=600)) for _ in range(2))
    new_x, new_y, explained = real.nulls_of(z, x, y, replicates=200, seed=1)
    assert new_x.shape == (200, 600)
    assert explained == pytest.approx([0.64, 0.64], abs=0.08)
    np.testing.assert_allclose(new_x.mean(axis=0), np.sin(3 * z[:, 0]), atol=0.35)
    noise_x, noise_y = (part - part.mean(axis=0) for part in (new_x, new_y))
    found = [np.corrcoef(a, b)[0, 1] for a, b in zip(noise_x, noise_y, strict=True)]
    assert abs(np.mean(found)) < 4 / np.sqrt(200 * 600)
    assert np.corrcoef(x - np.sin(3 * z[:, 0]), y - np.sin(3 * z[:, 0]))[0, 1] > 0.9
