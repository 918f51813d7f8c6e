"""What a grid will take, before it is run: programs, launches, bytes and time, from one launch of each program."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

from jaxdp.simulate.engine import results
from jaxdp.simulate.engine.chunks import AHEAD, Chunks
from jaxdp.simulate.engine.grid import Plan, missing, of_cell, size_of
from jaxdp.simulate.engine.settings import Setting, require_distinct

RECORD_BYTES = 400  # of a chunk, without its p-values


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What is left of a grid. seconds: of launches on this machine, as busy as it is now, without compiling.

    bytes_per_device: of the largest program, by the compiler's account, for each of the two chunks in flight.
    bytes_on_disk: what the records will take. batch_sizes: smallest and largest number of replicates in flight.
    """

    settings: int
    replicates: int
    programs: int
    launches: int
    batch_sizes: tuple[int, int]
    bytes_per_device: int
    bytes_on_disk: int
    compile_seconds: float
    seconds: float

    def __str__(self) -> str:
        low, high = self.batch_sizes
        return "\n".join(
            [
                f"{self.settings} settings, {self.replicates} replicates to do",
                f"programs   {self.programs}, compiled in {self.compile_seconds:.1f} s",
                f"batches    {low if low == high else f'{low} to {high}'} replicates in flight a device",
                f"launches   {self.launches}, one for each chunk",
                f"memory     {self.bytes_per_device / 1e6:.3g} MB a device and chunk, {AHEAD} chunks in flight",
                f"disk       {self.bytes_on_disk / 1e6:.3g} MB of records",
                f"time       about {_duration(self.seconds)}, on a machine as busy as it is now",
            ]
        )


def estimated(settings: Sequence[Setting], folder: str | os.PathLike, plan: Plan, **how: Any) -> Estimate:
    """Compiles every program of a grid and times one batch of each on every device; nothing is written.

    how: batch_size, memory and devices, as in `grid.run`. A stopping rule is left out of account: it ends sooner.
    """
    require_distinct(settings)
    chunks = Chunks(size_of(plan), **how)
    held = results.read_records([folder]) if results.is_simulation(folder) else []
    done = {setting.hash: of_cell(held, setting) for setting in settings}
    began = time.perf_counter()
    programs = {setting.hash: chunks.program(setting) for setting in settings}
    compiled = time.perf_counter() - began
    rates: dict[int, float] = {}
    seconds, launches, replicates = 0.0, 0, 0
    for place, setting in enumerate(settings):
        program = programs[setting.hash]
        together = program.batch_size * len(chunks.devices)
        if id(program) not in rates:
            rates[id(program)] = _seconds_a_round(chunks, setting, min(together, chunks.size))
        for start, stop in missing(done[setting.hash], place, plan):
            launches += 1
            replicates += stop - start
            seconds += -(-(stop - start) // together) * rates[id(program)]
    found = {id(program): program for program in programs.values()}.values()
    sizes = [program.batch_size for program in found]
    return Estimate(
        settings=len(settings),
        replicates=replicates,
        programs=len(found),
        launches=launches,
        batch_sizes=(min(sizes), max(sizes)),
        bytes_per_device=max(program.bytes_per_device for program in found),
        bytes_on_disk=launches * RECORD_BYTES + 4 * replicates * plan.keep_p_values,
        compile_seconds=compiled,
        seconds=seconds,
    )


def _seconds_a_round(chunks: Chunks, setting: Setting, count: int) -> float:
    """Of one batch on every device: the second launch, since the first one also loads the program."""
    taken = []
    for _ in range(2):
        record = chunks.finish(setting, 0, count, chunks.start(setting, 0, count), False)
        taken.append(record.seconds)
    return taken[-1]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
