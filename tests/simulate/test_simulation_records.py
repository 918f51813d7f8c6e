"""Record files: nothing is lost, repeated or misread after a kill at any byte."""

import dataclasses
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from jaxdp.simulate.engine import grid, record_file, results
from jaxdp.simulate.engine.record_file import Record, RecordFile, read

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import simulation_worker

WORKER = pathlib.Path(simulation_worker.__file__)

# Loads the module alone: no JAX, so a life takes a tenth of a second.
APPENDER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("record_file", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["record_file"] = module
spec.loader.exec_module(module)
with module.RecordFile(sys.argv[2]) as file:
    done = {record.start for record in file.records}
    print("begun", flush=True)
    todo = [start for start in range(0, 40_000, 10) if start not in done]
    for place in range(0, len(todo), 3):
        file.append([module.Record("c", start, start + 10, start % 7, 0, (0,) * 100, bytes(40))
                     for start in todo[place : place + 3]])
"""


def record(start, cell="c", size=10):
    values = (np.arange(size, dtype="<f4") + start).tobytes()
    return Record(cell, start, start + size, start % 3, 0, (size,) + (0,) * 99, values)


def test_a_file_cut_at_any_byte_keeps_every_whole_record(tmp_path):
    path = tmp_path / "r"
    records = [record(start) for start in range(0, 50, 10)]
    ends = []
    with RecordFile(path) as file:
        file.begin(device="x")
        for one in records:
            file.append([one])
            ends.append(path.stat().st_size)
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = sum(end <= cut for end in ends)
        assert list(read(path).records) == records[:kept]
        if cut % 97 == 0:
            with RecordFile(path) as file:
                assert file.records == records[:kept]
                file.append(records[kept:])
            assert list(read(path).records) == records


def test_garbage_behind_the_last_record_is_cut_off(tmp_path):
    path = tmp_path / "r"
    with RecordFile(path) as file:
        file.append([record(0)])
    whole = path.read_bytes()
    for garbage in (b"\0" * 500, b"JDPR" + bytes(60), os.urandom(300)):
        path.write_bytes(whole + garbage)
        with RecordFile(path) as file:
            assert file.torn == len(garbage)
        assert path.read_bytes() == whole


def test_damage_before_the_tail_is_refused_not_dropped(tmp_path):
    path = tmp_path / "r"
    with RecordFile(path) as file:
        file.append([record(start) for start in (0, 10, 20)])
    damaged = bytearray(path.read_bytes())
    damaged[20] ^= 1
    path.write_bytes(damaged)
    for opening in (read, RecordFile):
        with pytest.raises(ValueError, match="damaged at byte 0"):
            opening(path)
    assert path.read_bytes() == damaged


def test_a_key_enters_once_and_one_process_writes(tmp_path):
    path = tmp_path / "r"
    with RecordFile(path) as file:
        file.append([record(0)])
        for again in ([record(0)], [record(10), record(10)]):
            with pytest.raises(ValueError, match="already"):
                file.append(again)
        with pytest.raises(ValueError, match="another process"):
            RecordFile(path)
    with RecordFile(path) as file:
        assert file.records == [record(0)]
    assert np.array_equal(record_file.unpack(record(30).p_values), np.arange(30, 40, dtype=np.float32))


def lives(command, path, kills, longest, generator):
    """Runs a command again and again, each killed at a random time after it begins; half of the tails are torn."""
    killed = 0
    whole_programs = {**os.environ, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "inf"}  # none half written
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=whole_programs)
        assert process.stdout.readline() == b"begun\n", process.stderr.read()[-2000:]
        time.sleep(generator.uniform(0.0, longest))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        process.stdout.close()
        process.stderr.close()
        if generator.random() < 0.5:
            size = path.stat().st_size
            os.truncate(path, max(0, size - generator.randrange(1, 600)))
    return killed


def test_records_survive_kills(tmp_path):
    path, generator = tmp_path / "r", random.Random(1)
    command = [sys.executable, "-c", APPENDER, record_file.__file__, str(path)]
    assert lives(command, path, 12, 0.03, generator) >= 6
    assert subprocess.run(command, capture_output=True, timeout=1500, check=True).stdout == b"begun\n"
    found = read(path).records
    assert sorted(one.start for one in found) == list(range(0, 40_000, 10))


@pytest.mark.parametrize(
    "kills", [pytest.param(3, marks=pytest.mark.full), pytest.param(100, marks=pytest.mark.nightly)]
)
def test_a_simulation_survives_kills(tmp_path, kills):
    """Killed at random times, tails torn: the same sorted records as a run that nobody disturbed."""
    replicates, chunk = 40 * (kills + 20), 5
    grid.run(simulation_worker.settings(), tmp_path / "calm", grid.Plan(replicates, chunk=chunk, keep_p_values=True))
    command = [sys.executable, str(WORKER), str(tmp_path / "out"), str(replicates), str(chunk)]
    path = tmp_path / "out" / results.RECORDS / "task_0_of_1"
    killed = lives(command, path, kills, 0.1, random.Random(2))
    subprocess.run(command, capture_output=True, timeout=1500, check=True)
    assert killed >= kills // 2
    calm, found = (results.read_records([tmp_path / name]) for name in ("calm", "out"))
    assert found == calm
    assert len(read(path).records) == len(calm) == 2 * replicates // chunk


def test_an_interrupt_while_records_are_synced_leaves_a_folder_that_goes_on(tmp_path, monkeypatch, interruptible):
    """Leaving wrote the same records again, and nothing could read the file any more."""
    path, sync, left = tmp_path / "task_0_of_1", os.fsync, [signal.SIGINT]

    def interrupted(descriptor):
        sync(descriptor)
        if left:
            signal.raise_signal(left.pop())

    writer = grid._Writer(RecordFile(path), {})
    writer._waiting = [record(0), record(10)]
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt), writer:
        writer.flush()
    assert list(read(path).records) == [record(0), record(10)]


def test_a_record_that_is_written_twice_counts_once_and_two_that_differ_are_refused(tmp_path):
    path = tmp_path / "r"
    with RecordFile(path) as file:
        file.append([record(0), record(10)])
    once = path.read_bytes()
    path.write_bytes(once + once)
    assert list(read(path).records) == [record(0), record(10)]
    with RecordFile(path) as file:
        file.append([record(20)])
    with RecordFile(tmp_path / "other") as file:
        file.append([dataclasses.replace(record(0), rejections=9)])
    path.write_bytes(once + (tmp_path / "other").read_bytes())
    with pytest.raises(ValueError, match="two different records of the same replicates"):
        read(path)
