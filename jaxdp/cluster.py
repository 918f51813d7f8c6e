"""Joins several processes into one mesh: detected on a cluster, by an address elsewhere; no effect on one machine."""

from __future__ import annotations

import os
import sys


def initialize(
    coordinator: str | None = None, processes: int | None = None, process: int | None = None, *, quiet: bool = False
) -> bool:
    """Joins this process to the others of its job and prints one line; returns whether there are others.

    Without arguments: what the scheduler says (SLURM, Open MPI, Kubernetes, cloud TPU); outside a cluster, and in a job
    of one process, it does nothing. coordinator: "host:port" of process 0, with processes and process (from 0).
    CUDA_VISIBLE_DEVICES is honoured: a process that was given its own devices uses all of them, one that sees all
    devices of its host takes the one of its local rank. Call it before anything asks JAX for devices.
    Errors: ValueError for an address without a number of processes, RuntimeError from JAX once devices are in use.
    """
    import jax

    if jax.distributed.is_initialized():
        return jax.process_count() > 1
    given = (coordinator, processes, process)
    if any(part is not None for part in given) and any(part is None for part in given):
        raise ValueError("coordinator, processes and process go together: give all three, or none inside a cluster.")
    if coordinator is None and not _in_job_of_several():
        return False
    if coordinator is not None and processes is not None and not 0 <= (process or 0) < processes:
        raise ValueError(f"process must be below the number of processes {processes}, got {process}.")
    local = _own_devices()
    jax.distributed.initialize(coordinator, processes, process, local_device_ids=local)
    if not quiet:
        names = ", ".join(str(device) for device in jax.local_devices())
        print(f"process {jax.process_index()}/{jax.process_count()}, devices {names}", file=sys.stderr, flush=True)
    return jax.process_count() > 1


def _in_job_of_several() -> bool:
    """Whether a scheduler started this process together with others."""
    sizes = ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    if "SLURM_JOB_ID" in os.environ and "SLURM_STEP_ID" not in os.environ:
        return False  # the batch script itself, not a task of srun
    if any(os.environ.get(name, "1") != "1" for name in sizes):
        return True
    return "KUBERNETES_SERVICE_HOST" in os.environ and "JOB_COMPLETION_INDEX" in os.environ


def _own_devices() -> list[int] | None:
    """Local device numbers where the scheduler already hid the others' devices from this process."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not visible:
        return None
    count = len([part for part in visible.split(",") if part.strip()])
    tasks = _local_tasks()
    # one process that drives several devices, or a process with exactly its own: all that it sees are its own
    return list(range(count)) if tasks == 1 or count == 1 else None


def _local_tasks() -> int:
    """Processes of this job on this host, as far as the scheduler says."""
    text = os.environ.get("SLURM_STEP_TASKS_PER_NODE") or os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or "1"
    numbers = [part.split("(")[0] for part in text.split(",")]
    return max((int(number) for number in numbers if number.isdecimal()), default=1)
