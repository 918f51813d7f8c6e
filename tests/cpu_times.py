"""CPU seconds of every test, its processes' included, whatever else the machine does meanwhile.

`pytest --cpu-times=FILE` writes them, a JSON line each; `python tests/cpu_times.py FILE ...` prints what each file of
tests costs and the dearest tests, over all those runs.
"""

import collections
import json
import os
import sys
from pathlib import Path

import pytest

NAME = "cpu_seconds"
_begun = pytest.StashKey[float]()


def spent() -> float:
    """CPU seconds of this process, all its threads, and the processes it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_addoption(parser):
    parser.addoption("--cpu-times", metavar="FILE", help="write the CPU seconds of every test to FILE")


def pytest_configure(config):
    if config.getoption("--cpu-times") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector(Path(config.getoption("--cpu-times")).absolute()))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    item.stash[_begun] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    now = spent()
    report.user_properties = [*report.user_properties, (NAME, now - item.stash[_begun])]
    item.stash[_begun] = now
    return report


class Collector:
    """Adds the phases of each test up, from every worker, and writes a line for each test as it ends."""

    def __init__(self, path: Path):
        self.seconds = collections.Counter()
        self.file = path.open("w", buffering=1)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += dict(report.user_properties)[NAME]
        if report.when == "teardown":
            self.file.write(json.dumps([report.nodeid, round(self.seconds[report.nodeid], 3)]) + "\n")

    def pytest_sessionfinish(self):
        self.file.close()


def table(seconds, dearest=40) -> str:
    """Costs per file, then of the dearest tests, both from dear to cheap."""
    files = collections.Counter()
    for name, value in seconds.items():
        files[name.partition("::")[0]] += value
    rows = [f"{value:8.1f}  {name}" for name, value in (*files.most_common(), ("all", files.total()))]
    return "\n".join([*rows, "", *(f"{value:8.1f}  {name}" for name, value in seconds.most_common(dearest))])


if __name__ == "__main__":
    total = collections.Counter()
    for file in sys.argv[1:]:
        total.update(dict(map(json.loads, Path(file).read_text().splitlines())))
    print(table(total))
