"""Which tests run: everyday ones, all guards (`--full`), nightly sizes; and that CI runs all guards."""

import types
from collections import Counter
from pathlib import Path

import conftest
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("given", "skipped"),
    [
        ((), {"full", "nightly", "both"}),
        (("--full",), {"nightly", "both"}),
        (("--nightly",), set()),
        (("--full", "--nightly"), set()),
    ],
)
def test_each_tier_includes_the_ones_before_it(given, skipped):
    found = set()

    def item(name, *marks, folder=""):
        return types.SimpleNamespace(
            keywords={*marks, folder},
            add_marker=lambda mark: found.add(name),
            get_closest_marker=lambda mark: mark if mark in marks else None,
        )

    items = [item("plain"), item("full", "full"), item("nightly", "nightly"), item("both", "full", "nightly")]
    config = types.SimpleNamespace(getoption=lambda name: name in given)
    items += [item("in its folder", folder="interop"), item("of the plug-ins", "interop")]
    conftest.pytest_collection_modifyitems(config, items)
    assert found == skipped | {"of the plug-ins"}


def test_continuous_integration_runs_every_guard():
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith(" scripts/test --full")


def test_no_two_files_of_tests_have_one_name():
    """Without packages pytest imports a test file by its name alone, and skips the second of one name with an error."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == [], "name a file after what it alone tests"
