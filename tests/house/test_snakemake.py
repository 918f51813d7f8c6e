"""The Snakemake example: its rules' own lines, and where Snakemake is installed its plan."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from jaxdp.cli.main import main
from jaxdp.simulate.engine import results

FILE = Path(__file__).parents[2] / "examples" / "power.smk"
TASKS = 2
STUDY = "--method gcm --design sine --n 40 --effect 0.5 --replicates 100 --chunk 25"


def commands() -> dict[str, str]:
    """The shell line of every rule that has one."""
    return dict(re.findall(r'^rule (\w+):\n(?:(?!rule ).*\n)*?    shell:\n        "(.*)"$', FILE.read_text(), re.M))


@pytest.mark.full
def test_the_lines_of_the_rules_run_and_add_up(tmp_path):
    names = {"JAXDP": "jaxdp", "STUDY": STUDY, "TASKS": TASKS, "OUT": tmp_path}
    lines = commands()
    assert set(lines) == {"task", "merge"}
    for task in range(TASKS):
        words = shlex.split(lines["task"].format(wildcards=SimpleNamespace(task=task), **names))
        assert words[0] == "jaxdp"
        assert main(words[1:]) == 0
        assert (tmp_path / f"task{task}" / "results.csv").exists()  # the output that the rule names
    words = shlex.split(lines["merge"].format(output=tmp_path / "merged", **names))
    place = next(number for number, word in enumerate(words) if "*" in word)
    words[place : place + 1] = sorted(str(folder) for folder in tmp_path.glob("task*"))
    assert main(words[1:]) == 0
    (row,) = results.read_rows(tmp_path / "merged")
    assert (row.replicates, row.complete) == (100, True)
    assert (tmp_path / "merged" / "report.html").exists()


@pytest.mark.skipif(shutil.which("snakemake") is None, reason="Snakemake is not installed")
def test_snakemake_plans_one_job_for_each_task(tmp_path):
    line = ["snakemake", "--snakefile", str(FILE), "--dry-run", "--cores", "1", "--config", "tasks=3"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True)
    assert re.search(r"^task +3$", done.stdout, re.M)
    assert re.search(r"^merge +1$", done.stdout, re.M)
