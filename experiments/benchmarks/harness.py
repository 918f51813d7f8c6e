"""Interleaved measurement of one case: ours against its peers."""

import concurrent.futures
import dataclasses
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax


@dataclasses.dataclass(frozen=True)
class Peer:
    """A competitor: `function(*arguments)` does `units` units of work.

    goal: wanted ratio peer/ours per unit, one process. goal_both: the same with the peer in two processes.
    both_cores: also measure the peer in two processes at once (for peers that use one core).
    threads: BLAS threads of a peer that makes no use of BLAS; otherwise the better of one and two is found first.
    """

    function: Callable[..., Any]
    arguments: tuple = ()
    units: float = 1.0
    goal: float | None = None
    goal_both: float | None = None
    both_cores: bool = True
    threads: int | None = None


@dataclasses.dataclass(frozen=True)
class Case:
    """One workload.

    ours: jitted function; arguments: what it is called with; units: how much work one call does (replicates, pairs).
    agree: called once; returns {"error": e, "tolerance": t, ...}; the case fails unless e <= t.
    peers: name -> Peer. extra: called once; more figures for the report (growth exponents, certificates).
    compiled: False for host functions that have no compiled program.
    """

    ours: Callable[..., Any]
    units: float
    agree: Callable[[], dict[str, float]]
    arguments: tuple = ()
    peers: dict[str, Peer] = dataclasses.field(default_factory=dict)
    extra: Callable[[], dict[str, Any]] = dict
    compiled: bool = True
    unit: str = "replicate"
    goal_per_second: float | None = None


class Spent(NamedTuple):
    """Wall time, and processor time over all cores: the second hardly moves when others use the machine."""

    wall: float
    processor: float


class Disagreement(Exception):
    """Our answer is not the reference's: no speed is reported."""


def measure(case: Case, repetitions: int, log=print) -> dict[str, Any]:
    """Figures of one case: medians of interleaved repetitions, ratios, compile time, memory, agreement.

    ratio: of wall times, with all cores free to both. processor_ratio: of processor times summed over cores (least of
    the repetitions), the figure to read on a shared machine.
    """
    figures, call = _compile(case)
    jax.block_until_ready(call(*case.arguments))
    figures["agreement"] = _check(case)
    threads = {name: _best_threads(peer) for name, peer in case.peers.items()}
    ours: list[Spent] = []
    theirs: dict[str, list[Spent]] = {name: [] for name in case.peers}
    for _ in range(repetitions):
        with _blas_threads(1):
            ours.append(_spent(lambda: jax.block_until_ready(call(*case.arguments))))
        for name, peer in case.peers.items():
            with _blas_threads(threads[name]):
                theirs[name].append(_spent(lambda peer=peer: peer.function(*peer.arguments)))
    walls = [spent.wall for spent in ours]
    per_unit = statistics.median(walls) / case.units
    processor = min(spent.processor for spent in ours) / case.units
    figures |= {
        "unit": case.unit,
        "seconds_per_unit": per_unit,
        "units_per_second": 1.0 / per_unit,
        "processor_seconds_per_unit": processor,
        "spread": (max(walls) - min(walls)) / statistics.median(walls),
        "goal_per_second": case.goal_per_second,
        "units": case.units,
        "repetitions": repetitions,
        "peers": {
            name: _peer_figures(peer, theirs[name], threads[name], per_unit, processor, case)
            for name, peer in case.peers.items()
        },
    }
    figures |= case.extra()
    return figures


def _compile(case: Case) -> tuple[dict[str, Any], Callable[..., Any]]:
    if not case.compiled:
        return {}, case.ours
    function = case.ours if hasattr(case.ours, "lower") else jax.jit(case.ours)
    start = time.perf_counter()
    compiled = function.lower(*case.arguments).compile()
    memory = compiled.memory_analysis()
    return {
        "compile_seconds": time.perf_counter() - start,
        "temporary_megabytes": None if memory is None else memory.temp_size_in_bytes / 1e6,
    }, compiled


def _check(case: Case) -> dict[str, float]:
    agreement = case.agree()
    if not agreement["error"] <= agreement["tolerance"]:
        raise Disagreement(f"error {agreement['error']} exceeds {agreement['tolerance']}: {agreement}")
    return agreement


def _peer_figures(peer: Peer, spent: list[Spent], threads: int, ours: float, processor: float, case: Case):
    per_unit = statistics.median(one.wall for one in spent) / peer.units
    figures = {
        "seconds_per_unit": per_unit,
        "ratio": per_unit / ours,
        "processor_ratio": min(one.processor for one in spent) / peer.units / processor,
        "goal": peer.goal,
        "blas_threads": threads,
        "extrapolated": peer.units < case.units,
    }
    if peer.both_cores:
        together = _two_processes(peer) / (2.0 * peer.units)
        figures |= {"ratio_two_processes": min(together, per_unit) / ours, "goal_two_processes": peer.goal_both}
    return figures


def _two_processes(peer: Peer) -> float:
    """Wall seconds of two copies of the peer, each in its own process (median of three, after a warm-up)."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context, initializer=_single_threaded) as pool:

        def run():
            return [f.result() for f in [pool.submit(_discard, peer) for _ in range(2)]]

        run()
        return statistics.median(_seconds(run) for _ in range(3))


def _single_threaded() -> None:
    import threadpoolctl

    threadpoolctl.threadpool_limits(1)


def _discard(peer: Peer) -> None:
    peer.function(*peer.arguments)


def _best_threads(peer: Peer) -> int:
    if peer.threads is not None:
        return peer.threads
    times = {}
    for threads in (1, 2):
        with _blas_threads(threads):
            peer.function(*peer.arguments)
            times[threads] = _seconds(lambda: peer.function(*peer.arguments))
    return min(times, key=times.__getitem__)


def _blas_threads(count: int):
    import threadpoolctl

    return threadpoolctl.threadpool_limits(count)


def _spent(function) -> Spent:
    wall, processor = time.perf_counter(), time.process_time()
    function()
    return Spent(time.perf_counter() - wall, time.process_time() - processor)


def _seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
