"""Chunks of replicates on the device: generate, test and count in one program, within a memory limit."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from jaxdp._base import check as _check
from jaxdp._base.layout import device_list, in_mesh
from jaxdp.simulate.engine import replicates
from jaxdp.simulate.engine.record_file import BINS, Record
from jaxdp.simulate.engine.settings import Setting

ROUNDING = 1e-6  # float32 p-values of rank tests may sit a rounding above the level they equal
CACHE = 8_000_000  # bytes; kernel methods at n = 300 and 1000 are slower above, PartitionGCM does not care
AHEAD = 2  # chunks in flight: the device computes one while the host writes another
MAX_DEVICES_FILLED = 16  # host devices that a chunk keeps busy with whole batches


class Counts(NamedTuple):
    """What a chunk's program returns, replicated over all devices and processes."""

    rejections: Any
    failures: Any
    histogram: Any
    p_values: Any


class Program(NamedTuple):
    """A compiled chunk, its batch size, and the bytes that one device needs for it."""

    compiled: Any
    batch_size: int
    bytes_per_device: int


@functools.partial(jax.jit, static_argnames=("size", "batch_size", "devices"))
def _chunk(test, design, key_data, start, stop, level, *, size: int, batch_size: int, devices) -> Counts:
    # the key is made inside: a key on one device could not be an argument of a program on several processes
    key = jax.random.wrap_key_data(key_data)
    p = replicates.spread(test, design, key, start, stop - start, size, batch_size, devices)
    p = jax.lax.with_sharding_constraint(p, NamedSharding(replicates.mesh_of(devices), PartitionSpec()))
    wanted = jnp.arange(size, dtype=jnp.uint32) < stop - start
    failed = wanted & jnp.isnan(p)
    bins = jnp.clip(jnp.ceil(BINS * p), 1, BINS).astype(jnp.int32) - 1
    return Counts(
        rejections=jnp.sum(wanted & (p <= level * (1 + ROUNDING)), dtype=jnp.int32),
        failures=jnp.sum(failed, dtype=jnp.int32),
        histogram=jnp.zeros(BINS, jnp.int32).at[bins].add((wanted & ~failed).astype(jnp.int32)),
        p_values=p.astype(jnp.float32),
    )


MAX_PROGRAMS = 64  # kept; a program of PartitionGCM is some 15 MB
_PROGRAMS: dict[Any, Program] = {}
_BATCHES: dict[Any, int] = {}


class Chunks:
    """Runs chunks of settings; settings that differ in numbers only share one compiled program.

    size: replicates per chunk. batch_size: replicates in flight per device, or "auto": as many as stay in a core's
    cache (on an accelerator: as many as fit), and never more than `memory` bytes hold, by the compiler's own account.
    """

    def __init__(self, size: int, *, batch_size: int | str = "auto", memory: int | None = None, devices=None):
        _check.at_least(1, size=size)
        if batch_size != "auto":
            _check.at_least(1, batch_size=batch_size)
        if memory is not None:
            _check.positive(memory=memory)
        self.size, self.batch_size, self.memory = size, batch_size, memory
        self.devices = device_list(devices) or tuple(jax.devices()[:1])
        self._free = 0.0
        self._most = size  # replicates in flight; halved where the memory of a batch could not be allocated

    def check(self, settings: Sequence[Setting]) -> None:
        """Traces the test of every kind of setting on its design; raises what they raise."""
        seen = set()
        for setting in settings:
            with precision(setting), in_mesh(replicates.mesh_of(self.devices[:1])):
                arguments = _arguments(setting, 0, 1)
                name = _shape_of(arguments)
                if name not in seen:
                    seen.add(name)
                    jax.eval_shape(
                        functools.partial(_chunk, size=1, batch_size=1, devices=self.devices[:1]), *arguments
                    )

    def start(self, setting: Setting, start: int, stop: int):
        """Begins a chunk, at most `size` replicates; `finish` waits for it."""
        return time.perf_counter(), self._within_memory(lambda: self._launch(setting, start, stop))

    def _launch(self, setting: Setting, start: int, stop: int) -> Counts:
        with precision(setting), in_mesh(replicates.mesh_of(self.devices)):
            return self.program(setting).compiled(*_arguments(setting, start, stop))

    def _within_memory[T](self, launch: Callable[[], T]) -> T:
        """launch(), again with half the batch for as long as a device cannot allocate its memory."""

        def at_most(batch: int) -> T:
            self._most = batch
            return launch()

        return replicates.halving(at_most, self._most)[0]

    def finish(self, setting: Setting, start: int, stop: int, running, keep_p_values: bool) -> Record:
        """The record of a chunk that `start` began."""
        began, counts = running
        try:
            counts = _on_host(counts)
        except jax.errors.JaxRuntimeError as error:  # launches return before their memory is allocated
            if not replicates.is_out_of_memory(error):
                raise
            counts = self._within_memory(lambda: _on_host(self._launch(setting, start, stop)))
        now = time.perf_counter()
        # chunks in flight wait for each other: each counts from when the one before it was done
        seconds, self._free = now - max(began, self._free), now
        return Record(
            cell=setting.hash,
            start=start,
            stop=stop,
            rejections=int(counts.rejections),
            failures=int(counts.failures),
            histogram=tuple(int(count) for count in counts.histogram),
            p_values=counts.p_values[: stop - start].astype("<f4").tobytes() if keep_p_values else b"",
            seconds=round(seconds, 6),
        )

    def program(self, setting: Setting) -> Program:
        """The compiled program that serves this setting."""
        with precision(setting), in_mesh(replicates.mesh_of(self.devices)):
            arguments = _arguments(setting, 0, 1)
            return self._fit(setting, arguments)

    def _fit(self, setting: Setting, arguments) -> Program:
        """Compiles with the wanted batch, and again with smaller ones while the program needs too much memory."""
        limit, comfortable = self._limit(), math.inf
        if self.batch_size == "auto" and self.devices[0].platform == "cpu":
            comfortable = CACHE  # what a core's caches hold
        most = min(self._most, -(-self.size // len(self.devices)))
        batch = min(most, self._first_batch(setting, arguments) if self.batch_size == "auto" else int(self.batch_size))
        while True:
            program = self._compile(arguments, batch)
            wanted = min(limit, comfortable)
            if program.bytes_per_device <= wanted or (batch == 1 and program.bytes_per_device <= limit):
                return program
            if batch == 1:
                raise ValueError(
                    f"one replicate needs {program.bytes_per_device / 1e6:.3g} MB a device and the memory limit leaves "
                    f"{limit / 1e6:.3g} MB a device with {AHEAD} chunks in flight: raise the limit, use fewer devices "
                    "or fewer records."
                )
            # bytes grow at most linearly with the batch, so this ends after a step or two
            batch = max(1, min(batch - 1, int(batch * wanted / program.bytes_per_device)))

    def _compile(self, arguments, batch: int) -> Program:
        static = {"size": self.size, "batch_size": batch, "devices": self.devices}
        name = _shape_of(arguments), tuple(static.values())
        if name in _PROGRAMS:
            return _PROGRAMS[name]
        compiled = _chunk.lower(*arguments, **static).compile()
        memory = compiled.memory_analysis()
        parts = ("temp_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes")
        used = 0 if memory is None else sum(getattr(memory, part) for part in parts)
        while len(_PROGRAMS) >= MAX_PROGRAMS:  # the oldest: settings of one program follow one another
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[name] = Program(compiled, batch, used)
        return _PROGRAMS[name]

    def _first_batch(self, setting: Setting, arguments) -> int:
        # Not a function of the number of devices: a program of another batch may round differently in the last bit.
        name = (_shape_of(arguments), self.devices[0])
        if name not in _BATCHES:
            test, design, key_data, *_ = arguments
            _BATCHES[name] = replicates.batch_of(test, design, jax.random.wrap_key_data(key_data), self.devices[0])
        filled = MAX_DEVICES_FILLED if self.devices[0].platform == "cpu" else len(self.devices)
        return max(1, min(_BATCHES[name], self.size // filled))

    def _limit(self) -> float:
        """Bytes that one chunk may use on a device: host devices share one memory, accelerators have their own."""
        if self.devices[0].platform == "cpu":
            here = sum(device.process_index == jax.process_index() for device in self.devices)
            return math.inf if self.memory is None else self.memory // (max(1, here) * AHEAD)
        if self.memory is not None:
            return self.memory // AHEAD
        return replicates.share_of_memory(self.devices[0])


def _on_host(counts: Counts) -> Counts:
    return Counts(*(np.asarray(part.addressable_data(0)) for part in counts))


def _arguments(setting: Setting, start: int, stop: int) -> tuple:
    """Host arrays only: they are valid on every mesh."""
    numbers = jax.tree.map(lambda leaf: np.asarray(leaf, jnp.result_type(leaf)), (setting.test, setting.design))
    level = np.asarray(setting.level, jnp.result_type(float))
    return (*numbers, setting.key_data(), np.uint32(start), np.uint32(stop), level)


def _shape_of(arguments) -> tuple:
    """What decides which program serves these arguments."""
    leaves, structure = jax.tree.flatten(arguments)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def precision(setting: Setting):
    """float64 for the settings that ask for it."""
    return jax.enable_x64(True) if setting.precision == "float64" else contextlib.nullcontext()


def host_devices() -> int:
    """Devices to make of a CPU: its cores, twice as many where there are few.

    With two devices a core one computes while the other waits for its next launch: measured on 2 cores, 40 600
    replicates of PartitionGCM a second with 4 devices, 30 600 with 2.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(cores, min(2 * cores, 16))
