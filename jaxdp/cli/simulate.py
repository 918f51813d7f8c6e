"""`jaxdp simulate`: rejection rates of private tests over a grid, resumable, on any number of devices and tasks."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from jaxdp._base import arguments
from jaxdp.cli import options

EXAMPLE = (
    "example: jaxdp simulate --method partition-gcm --design sine --n 100,1000 --epsilon 0.5,1 --effect 0,0.5 "
    "--replicates 10000 --out out/power"
)
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
MAX_REPLICATES = 2**31 - 1
SCREEN_ROWS = 24
AUTO = "auto"


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "simulate",
        help="rejection rates of tests on simulated designs (type-I error, power)",
        description=(
            "Simulates a grid: every method on every design at every n, epsilon and effect. Effect 0 is the null "
            "hypothesis. A run may be interrupted at any time and continued with --resume. All results are simulated."
        ),
        epilog=EXAMPLE,
    )
    grid = parser.add_argument_group("grid")
    grid.add_argument(
        "--method", type=arguments.names, default=[], metavar="M", help="tests, or package.module:Class (see --list)"
    )
    grid.add_argument(
        "--design",
        type=arguments.names,
        default=[],
        metavar="D",
        help="designs, or package.module:function (see --list)",
    )
    grid.add_argument(
        "--n", type=arguments.counts, default=[1000], metavar="N", help="numbers of records (default 1000)"
    )
    grid.add_argument(
        "--epsilon",
        type=lambda text: [arguments.budget(part) for part in text.split(",")],
        default=[1.0],
        metavar="E",
        help="budgets (default 1)",
    )
    grid.add_argument("--effect", type=_effects, default=[0.0], metavar="F", help="effects (default 0, the null)")
    grid.add_argument("--level", type=arguments.probability, default=0.05, help="significance level (default 0.05)")
    grid.add_argument("--seed", type=arguments.seed, default=0, metavar="S", help="seed of the root key (default 0)")
    grid.add_argument("--precision", choices=("float32", "float64"), default="float32", help="precision of all arrays")
    grid.add_argument("--schema", metavar="S.toml", help="simulate data shaped like this schema, in place of --design")
    for role in ("x", "y", "given"):
        grid.add_argument(
            f"--{role}", type=arguments.names, default=[], metavar="A,B", help=f"with --schema: columns {role}"
        )
    for kind in ("method", "design"):
        grid.add_argument(
            f"--{kind}-option",
            type=arguments.setting,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"a further constant of the {kind}, such as {'num_cells=60' if kind == 'method' else 'complexity=8'}",
        )
    grid.add_argument("--list", action="store_true", help="list methods and designs, and stop")
    add_run(parser.add_argument_group("run"))
    add_cluster(parser.add_argument_group("cluster"))


def add_run(group) -> None:
    """How long, how much memory, where to."""
    group.add_argument(
        "--replicates",
        type=arguments.whole_number(1, MAX_REPLICATES),
        default=1000,
        metavar="R",
        help="replicates of each setting (default 1000)",
    )
    group.add_argument(
        "--chunk",
        type=lambda text: AUTO if text.strip().lower() == AUTO else arguments.count(text),
        default=AUTO,
        metavar="C",
        help="replicates in one launch and record (default auto: 1000 or more on a CPU, 100000 on an accelerator)",
    )
    group.add_argument(
        "--interval-width",
        type=arguments.probability,
        metavar="W",
        help="end a setting when its interval is this narrow",
    )
    group.add_argument("--keep-p-values", action="store_true", help="store every p-value, 4 bytes each")
    group.add_argument(
        "--memory",
        type=_bytes,
        metavar="BYTES",
        help="memory limit, such as 2GB (default: none on a CPU, a quarter of an accelerator's)",
    )
    group.add_argument("--batch-size", type=arguments.count, metavar="B", help="replicates in flight (default: auto)")
    group.add_argument(
        "--devices", type=arguments.count, metavar="K", help="number of devices (default: all; on a CPU two per core)"
    )
    group.add_argument(
        "--estimate", action="store_true", help="print the programs, launches, bytes and time that are needed, and stop"
    )
    group.add_argument("--resume", action="store_true", help="continue with the results in --out")
    options.add_out(group, "out/simulate")


def add_cluster(group) -> None:
    """Job arrays and meshes of several processes."""
    group.add_argument("--task", type=_index, default=0, metavar="I", help="number of this task in a job array, from 0")
    group.add_argument("--of", type=arguments.count, default=1, metavar="N", help="number of tasks in the job array")
    group.add_argument(
        "--distributed", action="store_true", help="use one mesh over the processes of the cluster's job"
    )
    group.add_argument(
        "--coordinator", metavar="HOST:PORT", help="address of process 0, if the cluster is not detected"
    )
    group.add_argument("--processes", type=arguments.count, metavar="P", help="with --coordinator: number of processes")
    group.add_argument("--process", type=_index, metavar="I", help="with --coordinator: number of this process, from 0")
    add_submit(group)


def add_submit(group) -> None:
    """Options of a submission."""
    group.add_argument(
        "--submit", choices=("slurm", "local"), help="run as --tasks jobs through submitit, by slurm or on this machine"
    )
    group.add_argument("--tasks", type=arguments.count, metavar="N", help="with --submit: number of jobs")
    group.add_argument(
        "--wait", action="store_true", help="with --submit: wait for the jobs, then draw and print as usual"
    )
    group.add_argument(
        "--submit-option",
        type=arguments.setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of the jobs by submitit's name, such as timeout_min=600, cpus_per_task=4 or slurm_partition=long",
    )


def run(args: argparse.Namespace) -> int:
    if args.list:
        print(listing())
        return 0
    from jaxdp.cli import submit

    submit.check(args)
    require_axes(args)
    if not args.submit:  # each task looks for the cores of its own machine
        prepare_devices(args)
    options.keep_programs(args)
    from jaxdp.simulate.engine import grid as engine
    from jaxdp.simulate.engine import pages, results

    settings = make_settings(args)
    plan = engine.Plan(
        replicates=args.replicates,
        chunk=_chunk_of(args, len(settings)),
        interval_width=args.interval_width,
        keep_p_values=args.keep_p_values,
        task=args.task,
        of=args.of,
    )
    if args.estimate:
        from jaxdp.simulate.engine.estimate import estimated

        print(estimated(settings, args.out, plan, **_how(args)))
        return 0
    folder, started = options.output_folder(args.out, pages.FILES), time.monotonic()
    first = _is_first_process()
    if args.submit:
        engine.prepare(settings, folder, plan, resume=args.resume)
        jobs = submit.submit(args, run)
        if not args.wait:
            print(submit.describe(args, jobs))
            return 0
        submit.wait(jobs)
        rows = results.read_rows(folder)
    else:
        rows = simulate(args, settings, folder, plan, first)
    if first:
        drawn = args.of == 1 or all(row.complete for row in rows)  # the last task of an array draws
        if drawn:
            pages.write_pages(folder)
        print(summary(rows, folder, time.monotonic() - started, drawn))
        if args.keep_p_values and (told := _without_p_values(rows)):
            print(f"jaxdp: {told}", file=sys.stderr)
    return 0


def simulate(args: argparse.Namespace, settings: list, folder: Path, plan, first: bool) -> list:
    """Runs this process's share of the grid; rows of the folder."""
    from jaxdp.simulate.engine import grid as engine

    with progress(settings, plan, first) as advance:
        return engine.run(settings, folder, plan, resume=args.resume, advance=advance, **_how(args))


def _how(args: argparse.Namespace) -> dict[str, Any]:
    return {"batch_size": args.batch_size or AUTO, "memory": args.memory, "devices": _devices(args)}


def prepare_devices(args: argparse.Namespace) -> None:
    """Host devices for the cores and the process group, both before JAX looks for devices."""
    from jaxdp.simulate.engine.chunks import host_devices

    devices = args.devices or host_devices()
    if devices > 1:  # they would wait for each other for ever; one device is faster with as many threads as cores
        os.environ.setdefault("NPROC", str(max(16, 2 * devices)))
    import jax

    # refused once the devices are known, as in a notebook; then those are used
    with contextlib.suppress(RuntimeError):
        if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
            jax.config.update("jax_num_cpu_devices", devices)
    if args.distributed or args.coordinator:
        from jaxdp import cluster

        cluster.initialize(args.coordinator, args.processes, args.process)


def _devices(args: argparse.Namespace):
    import jax

    found = jax.devices()
    if args.devices is not None and args.devices > len(found):
        raise options.UserError(f"--devices {args.devices}: this process has {len(found)}.")
    return found if args.devices is None or jax.process_count() > 1 else found[: args.devices]


def _is_first_process() -> bool:
    import jax

    return jax.process_index() == 0


def require_axes(args: argparse.Namespace) -> None:
    """Raises on what is missing or does not go together, and on columns that the schema does not have."""
    if not args.method:
        raise options.UserError("--method is missing: `jaxdp simulate --list` shows the names.")
    if bool(args.schema) == bool(args.design):
        raise options.UserError("give --design (see --list) or --schema S.toml with --x and --y, one of the two.")
    unknown = sorted(dict(args.design_option).keys() - {"strength", "residual_sd", "complexity"})
    if args.schema and unknown:
        raise options.UserError(f"--design-option {unknown[0]}: a schema has strength, residual_sd and complexity.")
    options.require_known(args)


def make_settings(args: argparse.Namespace) -> list:
    """The settings of the grid, in the order of the options."""
    from jaxdp.data.schema import Schema
    from jaxdp.simulate import grids

    constants = dict(args.design_option)
    if args.schema:
        roles = {"x": args.x, "y": args.y, "given": args.given}
        designs = [grids.shaped(Schema.load(args.schema), roles, constants)]
    else:
        designs = [grids.named(design, constants) for design in args.design]
    return grids.make_settings(
        [options.own_name(method) for method in args.method],
        designs,
        n=args.n,
        epsilon=args.epsilon,
        effect=args.effect,
        level=args.level,
        seed=args.seed,
        precision=args.precision,
        fields=dict(args.method_option),
    )


def _chunk_of(args: argparse.Namespace, settings: int) -> int:
    """As asked; else that of the folder that is resumed, or the one for this platform."""
    from jaxdp.simulate.engine import grid as engine

    if args.chunk not in (None, AUTO):
        return args.chunk
    return engine.auto_chunk(args.replicates, settings, args.out, _devices(args)[0].platform)


@contextlib.contextmanager
def progress(settings, plan, shown: bool):
    """Gives advance(setting, replicates); on a terminal a bar with the rate and the time left."""
    if not (shown and sys.stderr.isatty()):
        yield lambda setting, replicates: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda setting, replicates: None
        return
    total = -(-len(settings) * plan.replicates // plan.of)
    with tqdm(total=total, unit="rep", unit_scale=True, leave=False, smoothing=0.1) as bar:
        names: list[str] = []
        bar.set_description_str("compiling")

        def advance(setting, replicates: int) -> None:
            if setting.hash not in names:
                names.append(setting.hash)
                bar.set_description_str(f"setting {len(names)}/{len(settings)}")
            bar.update(replicates)

        yield advance


def summary(rows, folder: Path, seconds: float, drawn: bool = True) -> str:
    """One screen; drawn: whether the page is there."""
    from jaxdp._base.amounts import spent

    shown = rows[:SCREEN_ROWS]
    lines = [f"{'method':22s} {'design':14s} {'n':>7s} {'epsilon':>8s} {'effect':>7s}  rejection rate [95 %]"]
    for row in shown:
        low, high = row.interval
        setting = row.identity
        epsilon = "-" if setting["epsilon"] is None else spent(setting["epsilon"])
        note = "" if row.complete else "  not finished: --resume"
        note += f"  {row.failures} p-values are NaN" if row.failures else ""
        lines.append(
            f"{setting['method']:22s} {setting['design']:14s} {setting['n']:7d} {epsilon:>8s} {setting['effect']:7g}  "
            f"{row.rate:.4f} [{low:.4f}, {high:.4f}]  {row.replicates} replicates{note}"
        )
    if len(rows) > len(shown):
        lines.append(f"... {len(rows) - len(shown)} more settings in {folder / 'results.csv'}")
    total = sum(row.replicates for row in rows)
    lines.append(f"{total} replicates in the folder; this run took {seconds:.1f} s")
    page = folder / "report.html" if drawn else f"and when all tasks have ended: jaxdp report {folder}"
    lines.append(f"files: {folder / 'results.csv'}, {page}")
    return "\n".join([*lines, "NOT PRIVATE: everything here is simulated."])


def _without_p_values(rows) -> str:
    """Which settings have no p-values although they are asked for; "" where all have."""
    lacking = [row for row in rows if row.replicates and not row.p_values.size]
    if not lacking:
        return ""
    return (
        f"--keep-p-values: {len(lacking)} of {len(rows)} settings have replicates that were counted without it and are "
        "not computed again; no p-values are shown of these settings. Name another folder to keep them all."
    )


def listing() -> str:
    """Methods and designs."""
    from jaxdp import catalogue
    from jaxdp.simulate.designs.by_name import DESIGNS

    lines = ["methods (or package.module:Class of your own)"]
    for name, entry in catalogue.entries().items():
        if set(entry.spec.needs) <= {"law"}:
            told = entry.spec.summary.partition("; needs --seed")[0]
            lines.append(f"  {name:22s} {told}{'; needs sine or shah-peters' if entry.spec.needs else ''}")
    lines.append("designs (or package.module:function of (key, n, effect)), and their constants for --design-option")
    for design in DESIGNS.values():
        constants = ", ".join(f"{key}={value!r}" for key, value in design.constants.items())
        lines.append(f"  {design.name:22s} {design.summary}\n{'':25s}{constants}")
    return "\n".join(lines)


def _effects(text: str) -> list[float]:
    values = arguments.numbers(text)
    if not all(math.isfinite(value) for value in values):
        raise argparse.ArgumentTypeError(f"must be finite numbers, got {text!r}")
    return values


def _index(text: str) -> int:
    return int(text) if text.isdecimal() else arguments.count(text) - 1


def _bytes(text: str) -> int:
    number = text.strip().upper().rstrip("KMGIB")
    unit = text.strip().upper()[len(number) :]
    try:
        value = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"must be a size such as 500MB or 2GB, got {text!r}") from None
    if not 1 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"must be a size of at least one byte, got {text!r}")
    return int(value)
