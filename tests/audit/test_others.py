"""Audits of other libraries: the record, the page's tables, the neighbours, and the estimator of several parts."""

import json
import re
from collections import Counter

import numpy as np
import pytest

from experiments.evidence.others import __main__ as tool
from experiments.evidence.others.claims import CLAIMS, REENACTED, REPLACE, environment
from experiments.evidence.others.estimate import bound

ROWS = tool.read(tool.RECORD)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: " ".join(claim.key))
def test_pairs_are_neighbours_within_the_bounds(claim):
    for first, second in claim.pairs.values():
        gone, new = (Counter(side) - Counter(other) for side, other in ((first, second), (second, first)))
        assert (gone.total(), new.total()) == ((1, 1) if claim.relation == REPLACE else (0, 1))
        assert all(claim.bounds[0] <= value <= claim.bounds[1] for value in first + second)


def test_every_row_is_of_a_claim_and_no_unreported_fault_is_among_them():
    of = {claim.key: claim for claim in CLAIMS}
    assert ROWS
    for row in ROWS:
        claim = of[row["library"], row["function"], row["relation"]]
        assert (row["pair"] in claim.pairs, row["runs"], row["known"]) == (True, claim.runs, claim.known)
        assert not tool.surprising(row), f"{claim.key}: the maintainers are told first"
    assert {(row["library"], row["function"], row["relation"]) for row in ROWS if row["known"]} == {
        claim.key for claim in CLAIMS if claim.known
    }


def test_audits_have_power_where_noise_is_scaled_to_the_pair():
    """Sums and counts that spend all of epsilon on one noisy number."""
    best = {}
    for row in ROWS:
        if row["function"].lower().removeprefix("bounded") in ("sum", "count"):
            key = row["library"], row["function"], row["relation"]
            best[key] = max(best.get(key, 0.0), row["at_least"] / row["claimed"])
    assert len(best) >= 6
    assert min(best.values()) > 0.7, best


def test_versions_are_those_of_the_pinned_environments():
    pinned = {name: (tool.HERE / f"requirements-{name}.txt").read_text() for name in ("main", "smartnoise", "tumult")}
    for row in ROWS + tool.read(tool.LEVELS):
        if row["library"] in REENACTED:
            assert row["version"] == REENACTED[row["library"]]
            continue
        name = re.sub(r"[-_.]+", "[-_.]", re.escape(row["library"]).replace(r"\-", "-"))
        assert re.search(rf"^{name}=={re.escape(row['version'])} ", pinned[environment(row["library"])], re.M), row


def test_the_page_shows_the_record():
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.table(ROWS) in page
    assert tool.table_of_levels(tool.read(tool.LEVELS)) in page
    assert tool.table_of_papers(json.loads(tool.AUDITS.read_text(encoding="utf-8"))) in page


def test_lower_bounds_are_rounded_down():
    assert [tool.lower(value) for value in (1.3987, 0.999, 0.0, 4 - 1e-15)] == ["1.39", "0.99", "0.00", "4.00"]
    for row in ROWS:
        assert float(tool.lower(row["at_least"])) <= row["at_least"]


def test_levels_say_with_what_they_were_measured():
    for row in tool.read(tool.LEVELS):
        assert all(row[name] for name in ("seed", "version", "python", "numpy", "commit"))


def test_the_reenacted_tests_are_audited_under_each_relation_that_their_claim_depends_on():
    best = {}
    for row in ROWS:
        if row["library"] == "DPrivStats":
            key = row["function"], row["relation"]
            best[key] = max(best.get(key, (0, 0)), (row["at_least"], row["claimed"]))
    assert {key: claimed for key, (_, claimed) in best.items()} == {
        ("dp_t_test", "replace one"): 1.0,
        ("dp_chisq_test", "add one"): 1.0,
        ("dp_chisq_test", "replace one"): 2.0,
    }
    assert all(0.7 < found / claimed < 1 for (name, _), (found, claimed) in best.items() if name == "dp_chisq_test")


def noisy(epsilon, parts, runs=40_000, seed=0):
    """Neighbours of `parts` sums, each moved by one, epsilon divided among them; on a lattice with step 1/1024."""
    noise = np.random.default_rng(seed).laplace(scale=parts / epsilon, size=(2, runs, parts))
    noise = np.round(noise * 1024) / 1024
    return noise[0], noise[1] + 1.0


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_estimator_stays_below_a_true_claim_and_passes_a_false_one(parts):
    assert 0.5 < bound(*noisy(1.0, parts)).epsilon <= 1.0
    assert bound(*noisy(2.0, parts)).epsilon > 1.0


def test_an_output_without_a_value_is_an_outcome():
    first, second = np.zeros((4000, 1)), np.zeros((4000, 1))
    first[np.random.default_rng(0).random(4000) < 0.5] = np.nan
    assert bound(first, second).epsilon > 3


def test_a_bound_above_an_unreported_claim_is_kept_back(tmp_path):
    row = {"at_least": 1.1, "claimed": 1.0, "known": ""}
    assert tool.surprising(row)
    assert not tool.surprising(row | {"known": "https://example.org/1"})
    assert not tool.surprising(row | {"at_least": 1.0})
    claim, other = CLAIMS[:2]
    names = ("library", "function", "relation")
    rows = [dict(zip(names, one.key, strict=True)) | {"at_least": value} for one, value in ((claim, 1), (other, 2))]
    path = tmp_path / "record.jsonl"
    for one, row in zip((claim, other, claim), (*rows, rows[0] | {"at_least": 3}), strict=True):
        tool.merged(path, one, [row])
    assert [row["at_least"] for row in tool.read(path)] == [2, 3]
