"""`jaxdp simulate --submit ENGINE --tasks N`: the tasks of an array through submitit, on SLURM or on this machine."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxdp.cli import options

FOLDER = "jobs"  # of --out: what submitit keeps, logs among it
DEFAULTS = {"name": "jaxdp", "timeout_min": 240}
SECONDS_BETWEEN_LOOKS = 0.5


@dataclasses.dataclass(frozen=True)
class Task:
    """One task of the array, as a job runs it: a command's arguments with the task's number.

    function: what runs the command. arguments: as parsed where it was given. folder: where it was given, so that
    relative paths and modules of the user's own are found. A job that the engine stops (time is up, preempted) is
    queued again as it is: records on the disk say what is left.
    """

    function: Callable[[argparse.Namespace], int]
    arguments: argparse.Namespace
    folder: str

    def __call__(self, task: int) -> int:
        os.chdir(self.folder)
        return self.function(argparse.Namespace(**{**vars(self.arguments), "task": task}))

    def checkpoint(self, task: int) -> Any:
        """What submitit queues again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, task)


def check(args: argparse.Namespace) -> None:
    """Raises on options that do not go together, before anything is built."""
    if not args.submit:
        given = [name for name in ("tasks", "wait", "submit_option") if getattr(args, name)]
        if given:
            raise options.UserError(f"--{given[0].replace('_', '-')} goes with --submit slurm or --submit local.")
        return
    if args.tasks is None:
        raise options.UserError(f"--submit {args.submit} needs --tasks N: how many jobs share the replicates.")
    if args.of != 1 or args.distributed or args.coordinator:
        raise options.UserError("--submit numbers the tasks itself: leave --task, --of and the options of a mesh out.")
    cores = os.cpu_count() or 1
    if args.submit == "local" and args.tasks > max(2, cores):
        raise options.UserError(
            f"--submit local starts all its tasks at once: --tasks at most {max(2, cores)} on {cores} cores."
        )


def submit(args: argparse.Namespace, run_task: Callable[[argparse.Namespace], int]) -> list[Any]:
    """Hands the tasks to the engine; returns its jobs. The folder must hold its configuration already."""
    try:
        import submitit
    except ImportError:
        raise options.UserError("--submit needs submitit: pip install 'jaxdp-dependence[cluster]'.") from None
    parameters = DEFAULTS | dict(args.submit_option)
    alone: dict[str, Any] = {
        "submit": None,
        "tasks": None,
        "wait": False,
        "submit_option": [],
    }  # a task submits nothing itself
    arguments = argparse.Namespace(**{**vars(args), **alone, "of": args.tasks, "resume": True})
    task = Task(run_task, arguments, os.getcwd())
    try:
        executor = submitit.AutoExecutor(folder=Path(args.out).absolute() / FOLDER, cluster=args.submit)
        executor.update_parameters(**parameters)
    except RuntimeError:  # no srun here
        raise options.UserError("--submit slurm: there is no srun on this machine.") from None
    except (NameError, AssertionError, ValueError, TypeError) as problem:
        said = str(problem).partition("\n")[0] or json.dumps(parameters)
        raise options.UserError(f"--submit-option: submitit refused it: {said}") from None
    return executor.map_array(task, range(args.tasks))


def wait(jobs: Sequence[Any], look: float = SECONDS_BETWEEN_LOOKS) -> None:
    """Returns when all jobs have ended; on a terminal it says how many have. Errors: UserError if one failed."""
    shown = sys.stderr.isatty()
    while True:
        done = sum(job.done() for job in jobs)
        if shown:
            print(f"\r{done} of {len(jobs)} tasks have ended", end="", file=sys.stderr, flush=True)
        if done == len(jobs):
            break
        time.sleep(look)
    if shown:
        print(file=sys.stderr)
    failed = [(number, job) for number, job in enumerate(jobs) if job.exception() is not None]
    if failed:
        number, job = failed[0]
        raise options.UserError(
            f"{len(failed)} of {len(jobs)} tasks failed; task {number} says why in {job.paths.stderr}. The same line "
            "with --resume goes on with what is missing."
        )


def describe(args: argparse.Namespace, jobs: Sequence[Any]) -> str:
    """What is printed where nobody waits."""
    first = str(jobs[0].job_id).partition("_")[0]
    return "\n".join(
        [
            f"{len(jobs)} tasks submitted ({args.submit} job {first}), logs in {Path(args.out) / FOLDER}",
            f"when they have ended, or at any time: jaxdp report {args.out}",
            "tasks that were killed: the same line with --resume",
        ]
    )
