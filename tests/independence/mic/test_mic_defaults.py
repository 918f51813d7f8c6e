"""The public defaults of B against the recorded tuning (experiments/papers/mic/results/tuning.csv)."""

import collections
import csv
import pathlib

import pytest

from jaxdp.independence.mic import mic_parameters

RECORDED = pathlib.Path(__file__).parents[3] / "experiments" / "papers" / "mic" / "results" / "tuning.csv"
WORSE = 1.05  # times the least error among the B tried: it is flat there, and a smaller B is quicker


@pytest.mark.parametrize(("column", "corrected"), [("weighted", True), ("raw_weighted", False)])
def test_defaults_are_close_to_the_best_that_was_tried(column, corrected):
    tried = collections.defaultdict(dict)
    with RECORDED.open() as file:
        for row in csv.DictReader(file):
            if float(row["c"]) == mic_parameters.MASTER_FACTOR:
                tried[int(row["n"]), float(row["epsilon"])][float(row["cells"])] = float(row[column])
    assert len(tried) >= 16
    for (n, epsilon), errors in tried.items():
        default = mic_parameters.cells_allowed(n, epsilon, corrected)
        if n >= 250 and (corrected or epsilon in (0.1, 1.0)):
            nearest = min(errors, key=lambda cells: abs(cells - default))
            assert abs(nearest - default) <= 0.1 * default, (n, epsilon, default)
            assert errors[nearest] <= WORSE * min(errors.values()), (n, epsilon, default)
