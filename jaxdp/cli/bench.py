"""`jaxdp bench`: how fast the tests run on this machine. Comparisons with peers: `scripts/bench` in a checkout."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from jaxdp._base import arguments
from jaxdp.cli import options

SECONDS = 3.0  # aimed at for each timing


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "bench",
        help="replicates per second of tests on this machine",
        description=(
            "Times simulated runs (draw data of the test's example or a confounder, test, p-value) on the first "
            "device: compilation apart from running, the best of three runs. Writes result.json and bench.png."
        ),
        epilog="example: jaxdp bench --method partition-gcm,private-gcm --n 300,1000 --out out/bench",
    )
    parser.add_argument(
        "--method",
        type=arguments.names,
        metavar="M",
        help="tests, or package.module:Class (default: those recommended)",
    )
    parser.add_argument(
        "--n", type=arguments.counts, default=[300, 1000], metavar="N", help="records (default 300,1000)"
    )
    parser.add_argument(
        "--replicates", type=arguments.count, metavar="R", help="replicates per run (default: about 3 s)"
    )
    options.add_epsilon(parser)
    options.add_out(parser, "out/bench")


def run(args: argparse.Namespace) -> int:
    import os

    import jax

    from jaxdp._base.amounts import spent
    from jaxdp.report import written

    folder = options.output_folder(args.out, ("result.json", "bench.png"))
    cells = [(options.own_name(method), n) for method in args.method or recommended() for n in args.n]
    rows = [
        measure(method, n, args.epsilon, args.replicates) for method, n in options.progress(cells, "timing", len(cells))
    ]
    device = jax.devices()[0]
    facts = {
        "device": f"{device.platform} {device.device_kind}",
        "cores": os.cpu_count(),
        "load_at_end": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "jax": jax.__version__,
    }
    written.put_json(folder, "result.json", {"machine": facts, "rows": rows})
    written.put_picture(folder, "bench.png", draw, rows)
    print(f"{facts['device']}, {facts['cores']} cores, jax {facts['jax']}, epsilon {spent(args.epsilon)}")
    print(f"{'method':<22}{'n':>8}{'replicates/s':>15}{'compile s':>12}")
    for row in rows:
        print(f"{row['method']:<22}{row['n']:>8}{row['per_second']:>15.4g}{row['compile_seconds']:>12.2f}")
    print(f"wrote {folder / 'result.json'}, {folder / 'bench.png'}")
    return 0


def recommended() -> list[str]:
    """Names of the tests that a user gets who names none, for two columns of a kind given none, one or two of them."""
    from jaxdp import catalogue
    from jaxdp.data.dataset import CATEGORICAL, Column, Domain

    kinds = Column(), Column(CATEGORICAL, levels=3)
    domains = [Domain((kind,), (kind,), (kind,) * given) for kind in kinds for given in range(3)]
    return list(dict.fromkeys(catalogue.default(domain).name for domain in domains))


def measure(method: str, n: int, epsilon: float, replicates: int | None) -> dict:
    """One row: the first call compiles, then the best of three runs of about `SECONDS`."""
    import functools

    import jax

    from jaxdp import catalogue
    from jaxdp.simulate import power
    from jaxdp.spec import Options

    entry = catalogue.find(method)
    design = functools.partial(design_of(entry), n)
    shapes = jax.eval_shape(design, jax.random.key(0))
    fields = {"accept_coarse_cells": True} if entry.cls.cuts_z else {}  # speed, no finding
    built = entry.build(epsilon, shapes.domain, Options(num_records=n, fields=fields))
    test = catalogue.with_balanced_groups(built, n)

    def timed(count: int, start: int) -> float:
        began = time.perf_counter()
        power.p_values(test, design, jax.random.key(1), count, start=start)
        return time.perf_counter() - began

    trial = 32 if replicates is None else replicates
    first, again = timed(trial, 0), timed(trial, trial)
    count = replicates or max(trial, int(trial * SECONDS / max(again, 1e-6)) // 32 * 32)
    if count != trial:
        timed(count, 0)  # another batch shape compiles once more
    best = min(timed(count, (i + 1) * count) for i in range(3))
    return {
        "method": method,
        "n": n,
        "epsilon": epsilon,
        "replicates": count,
        "per_second": count / best,
        "seconds": best,
        "compile_seconds": max(first - again, 0.0),
    }


def design_of(entry):
    """Data that a test is timed on: (n, key) -> Data; those of its first example where it has one."""
    from jaxdp.audit import cases
    from jaxdp.simulate import sine_confounder

    found = cases.declared(entry)
    if not found:
        return lambda n, key: sine_confounder(key, n, effect=0.25)
    return lambda n, key: found[0].data(key, n)


def draw(path: Path, rows) -> None:
    """Replicates per second against n, one line per method."""
    from jaxdp.report import figures

    figure, axes = figures.canvas(7.2, 4.0)
    markers = dict(zip(dict.fromkeys(row["method"] for row in rows), "os^Dv<>ph*", strict=False))
    for method, marker in markers.items():
        points = sorted((row["n"], row["per_second"]) for row in rows if row["method"] == method)
        axes.plot(*zip(*points, strict=True), marker=marker, label=method)
    axes.set(xscale="log", yscale="log", xlabel="records n", ylabel="replicates per second")
    axes.legend()
    figures.save(figure, path, simulation=True)
