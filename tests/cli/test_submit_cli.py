"""`jaxdp simulate --submit`: tasks of an array through submitit add up to what one process counts."""

import pickle

import pytest

from jaxdp.cli import submit
from jaxdp.cli.main import main
from jaxdp.simulate.engine import grid, record_file, results

submitit = pytest.importorskip("submitit")

STUDY = ["simulate", "--method", "private-crt-normal", "--design", "sine", "--n", "40", "--effect", "0,0.5"]
SMALL = [*STUDY, "--replicates", "200", "--chunk", "50"]


def table(folder):
    return [(record.key, record.stop, record.rejections, record.failures) for record in results.read_records([folder])]


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """A SLURM that takes every job and runs none: what it was given lies in the folder of the jobs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, line in (("sbatch", 'echo "Submitted batch job 77"'), ("srun", "exit 1")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_two_local_tasks_count_what_one_process_does(tmp_path, capsys):
    study = ["simulate", "--method", "gcm", "--design", "sine", "--n", "40", "--effect", "0.5", "--chunk", "50"]
    study, out = [*study, "--replicates", "200"], tmp_path / "out"
    assert main([*study, "--submit", "local", "--tasks", "2", "--wait", "--out", str(out)]) == 0
    assert "200 replicates in the folder" in capsys.readouterr().out
    assert (out / "report.html").exists()
    files = results.record_files(out)
    assert [path.name for path in files] == ["task_0_of_2", "task_1_of_2"]
    assert [len(record_file.read(path).records) for path in files] == [2, 2]
    assert main([*study, "--out", str(tmp_path / "one")]) == 0
    assert table(out) == table(tmp_path / "one")


@pytest.mark.full
def test_an_array_of_slurm_is_what_the_options_say_and_its_tasks_add_up(tmp_path, scheduler, capsys):
    wanted = ["--submit", "slurm", "--tasks", "3", "--submit-option", "slurm_partition=long"]
    assert main([*SMALL, *wanted, "--submit-option", "cpus_per_task=4", "--out", "out"]) == 0
    assert "3 tasks submitted (slurm job 77)" in capsys.readouterr().out
    script = tmp_path / "out" / submit.FOLDER / "77_submission.sh"
    lines = script.read_text().splitlines()
    assert {"#SBATCH --array=0-2%3", "#SBATCH --partition=long", "#SBATCH --cpus-per-task=4"} <= set(lines)
    assert table("out") == []  # nothing ran: the folder holds the grid alone

    jobs = [pickle.loads(path.read_bytes()) for path in sorted(script.parent.glob("*submitted.pkl"))]
    assert sorted(job.args for job in jobs) == [(0,), (1,), (2,)]
    for job in (jobs[2], jobs[0], jobs[2]):  # in any order, and one of them queued again
        assert job.function(*job.args) == 0
    assert not (tmp_path / "out" / "report.html").exists()
    assert "jaxdp report out" in capsys.readouterr().out
    again = jobs[1].function.checkpoint(*jobs[1].args)
    assert again.function(*again.args) == 0
    assert (tmp_path / "out" / "report.html").exists()  # the last one draws
    assert main([*SMALL, "--out", "one"]) == 0
    assert table("out") == table("one")
    assert main([*SMALL, *wanted, "--out", "out"]) == 2
    assert "holds records already" in capsys.readouterr().err


class Job:
    """One that has ended, or ends when it is looked at again."""

    def __init__(self, looks, problem=None):
        self.looks, self.problem = looks, problem
        self.paths = submitit.core.utils.JobPaths("logs", "5")

    def done(self):
        self.looks -= 1
        return self.looks <= 0

    def exception(self):
        return self.problem


def test_waiting_ends_with_the_last_job_and_names_the_first_that_failed():
    jobs = [Job(1), Job(3)]
    submit.wait(jobs, look=0.0)
    assert jobs[1].looks <= 0
    with pytest.raises(submit.options.UserError, match=r"1 of 3 tasks failed; task 1 .*5_0_log\.err.* --resume"):
        submit.wait([Job(1), Job(2, RuntimeError("killed")), Job(1)], look=0.0)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--tasks", "2"], "--tasks goes with --submit"),
        (["--wait"], "--wait goes with --submit"),
        (["--submit", "local"], "needs --tasks"),
        (["--submit", "local", "--tasks", "2", "--of", "2"], "numbers the tasks itself"),
        (["--submit", "local", "--tasks", "5000"], "starts all its tasks at once"),
        (["--submit", "slurm", "--tasks", "5000"], "there is no srun"),
        (["--submit", "local", "--tasks", "2", "--submit-option", "speed=1"], "submitit refused it: Parameter 'speed'"),
    ],
)
def test_mistakes_are_one_line(asked, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert main([*SMALL, *asked, "--out", str(tmp_path / "o")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not results.record_files(tmp_path / "o")


def test_a_grid_is_prepared_once_and_checked(tmp_path):
    from simulation_worker import settings

    grid.prepare(settings(), tmp_path, grid.Plan(100, chunk=50))
    assert results.read_config(tmp_path)["replicates"] == 100
    assert results.record_files(tmp_path) == []
    with pytest.raises(ValueError, match="chunk 50, not 20"):
        grid.prepare(settings(), tmp_path, grid.Plan(100, chunk=20))
    grid.run(settings(), tmp_path, grid.Plan(100, chunk=50, task=1, of=2), resume=True)
    with pytest.raises(ValueError, match="holds records already"):
        grid.prepare(settings(), tmp_path, grid.Plan(100, chunk=50))
    grid.prepare(settings(), tmp_path, grid.Plan(200, chunk=50), resume=True)
    assert results.read_config(tmp_path)["replicates"] == 200
