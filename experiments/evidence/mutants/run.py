"""Runs mutants in a temporary copy of the checkout and writes one row for each as it ends.

A mutant is killed by a test that fails with it and passes without it. Rows of an earlier run are kept, so that a run
goes on where it stopped; a row is measured anew once its line reads differently.
"""

import csv
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from experiments.evidence.mutants.choose import Round, rounds
from experiments.evidence.mutants.find import Mutant, find

KILLED, SURVIVED, TIMEOUT, UNTESTED = "killed", "survived", "timeout", "no test names it"
COPIED = ("jaxdp", "tests", "experiments", "examples", "docs", "scripts", "pyproject.toml", "README.md", "CHANGELOG.md")
FIELDS = (
    "path",
    "line",
    "place",
    "kind",
    "owner",
    "name",
    "old",
    "new",
    "text",
    "status",
    "test",
    "tests_run",
    "seconds",
    "commit",
)
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclasses.dataclass
class Bench:
    """A copy of a checkout to mutate. seconds: limit of one round of tests. commit: what was copied."""

    copy: Path
    seconds: float
    commit: str = ""
    passing: dict[str, bool] = dataclasses.field(default_factory=dict)

    def judge(self, mutant: Mutant) -> dict:
        """The row of a mutant."""
        started, source = time.monotonic(), (self.copy / mutant.path).read_text()
        status, killer, count = UNTESTED, "", 0
        for tests in rounds(self.copy, mutant):
            failed, ran_out = self.mutated(mutant, tests)
            while failed and not self.passes(failed[0]):  # it fails without the mutant too, and is left out
                failed, ran_out = self.mutated(mutant, tests)
            count += len(tests.nodes)
            killer = failed[0] if failed else ""
            status = KILLED if killer else TIMEOUT if ran_out or status == TIMEOUT else SURVIVED
            if killer:
                break
        return {
            **described(mutant, source),
            "status": status,
            "test": killer,
            "tests_run": count,
            "seconds": round(time.monotonic() - started, 1),
            "commit": self.commit,
        }

    def mutated(self, mutant: Mutant, tests: Round) -> tuple[list[str], bool]:
        """`tests` with this change in the copy, which is taken back."""
        target = self.copy / mutant.path
        source = target.read_text()
        target.write_text(mutant.apply(source))
        try:
            return self.tests(tests)
        finally:
            target.write_text(source)

    def passes(self, node: str) -> bool:
        """Whether this test passes in the copy as it is."""
        if node not in self.passing:
            failed, ran_out = self.tests(Round((node,)))
            self.passing[node] = not failed and not ran_out
        return self.passing[node]

    def tests(self, tests: Round) -> tuple[list[str], bool]:
        """Node ids that fail (the run stops at the first), and whether time ran out."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--full",
            "-rfE",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ]
        command += [*tests.nodes, *(["-k", tests.narrow] if tests.narrow else [])]
        command += [f"--deselect={node}" for node, good in self.passing.items() if not good]
        # programs are kept by what they compute, so that a mutant's own are compiled anew and all others are not
        cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(self.copy.parent / "programs"))
        settings = {
            "PYTHONPATH": str(self.copy),
            "PYTHONDONTWRITEBYTECODE": "1",
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
        }
        try:
            done = subprocess.run(
                command, cwd=self.copy, env=os.environ | settings, capture_output=True, text=True, timeout=self.seconds
            )
        except subprocess.TimeoutExpired:
            return [], True
        failed = FAILED.findall(done.stdout)
        if done.returncode not in (0, 1, 5) and not failed:
            failed = [tests.nodes[0].split("::")[0]]  # the file could not even be collected
        return failed, False


def run(root: Path, choose: Callable[[list[Mutant]], Iterable[Mutant]], record: Path, seconds: float) -> None:
    """Appends a row for every chosen mutant that the record lacks; the checkout may change meanwhile."""
    known = {identity(row) for row in read(record)}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bench = Bench(Path(folder) / "checkout", seconds, commit(root))
        copy_checkout(root, bench.copy)
        for mutant in choose(find(bench.copy)):
            if identity(described(mutant, (bench.copy / mutant.path).read_text())) not in known:
                row = bench.judge(mutant)
                append(record, row)
                print(f"{row['status']:9s} {row['seconds']:6.1f} s  {mutant.label}  {row['test']}", flush=True)


def copy_checkout(root: Path, copy: Path) -> None:
    """What the tests need, without results of experiments in the way."""
    copy.mkdir(parents=True)
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (root / name).exists():
            shutil.copy(root / name, copy / name)


def described(mutant: Mutant, source: str) -> dict:
    """The columns of a row that say which mutant it is. place: the column in its line, without the indentation."""
    line = source.splitlines()[mutant.line - 1]
    names = ("path", "line", "kind", "owner", "name", "old", "new")
    told = {name: getattr(mutant, name) for name in names}
    return told | {"place": mutant.column - (len(line) - len(line.lstrip())), "text": line.strip()}


def identity(row: dict) -> tuple[str, ...]:
    """What makes two rows the same mutant: not the line, which moves when lines are added above it."""
    return tuple(str(row[name]) for name in ("path", "owner", "name", "place", "old", "new", "text"))


def read(record: Path) -> list[dict]:
    """Rows of a record; [] if there is none."""
    if not record.exists():
        return []
    with record.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append(record: Path, row: dict) -> None:
    """Writes one row, and the header before the first."""
    record.parent.mkdir(parents=True, exist_ok=True)
    new = not record.exists()
    with record.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow(row)


def commit(root: Path) -> str:
    """Short name of the checkout's commit, or ""."""
    command = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
