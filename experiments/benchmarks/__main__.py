"""Command line of the benchmark suite."""

import argparse
import datetime
import importlib
import json
import os
import pathlib
import pkgutil
import sys

# Read by BLAS, the allocator and XLA when they load, so the process starts anew if they differ. Overrides of the
# core type halve the speed of NumPy's matrix products, which would flatter every ratio.
SET = {"OPENBLAS_NUM_THREADS": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
PLATFORMS = {"cpu": "cpu", "gpu": "cuda,cpu"}
# NPROC is for several host devices (scripts/test); with one, XLA would cut a step into more tasks than cores.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "NPROC")
HERE = pathlib.Path(__file__).parent


def main() -> int:
    arguments = _parser().parse_args()
    if arguments.command == "list":
        for name in row_names():
            print(name, *_row(name).CASES)
        return 0
    if arguments.command == "measured":
        return 0 if is_measured(arguments.name, arguments.json) else 1
    if arguments.command == "compare":
        from experiments.benchmarks import compare

        return compare.main(arguments.old, arguments.new, arguments.factor, arguments.table)
    _restart_in_clean_environment(arguments.device)
    names = row_names() if arguments.name == "all" else [arguments.name]
    failures = 0
    for name in names:
        failures += run_row(name, arguments)
    return 1 if failures else 0


def run_row(name: str, arguments) -> int:
    """Measures the chosen cases of a row, prints them, writes the JSON; returns how many failed."""
    from experiments.benchmarks import harness, machine

    row = _row(name)
    report = {"row": name, "date": datetime.date.today().isoformat(), "machine": machine.facts()}
    report["ceilings"] = machine.ceilings()
    path = _path(name, arguments.json)
    # one case at a time adds to what the file holds
    earlier = json.loads(path.read_text()) if arguments.case and path and path.exists() else {}
    report["cases"] = earlier.get("cases", {})
    chosen = [arguments.case] if arguments.case else (row.QUICK if arguments.quick else row.CASES)
    failures = 0
    for case in chosen:
        load = os.getloadavg()[0]
        try:
            report["cases"][case] = harness.measure(row.build(**row.CASES[case]), arguments.reps)
        except harness.Disagreement as problem:
            failures += 1
            report["cases"][case] = {"failed": str(problem)}
        report["cases"][case] |= {"load_at_start": load, "commit": report["machine"]["commit"]}
        print(_line(name, case, report["cases"][case]), flush=True)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(report, indent=1, default=float) + "\n")
    return failures


def is_measured(name: str, where: str) -> bool:
    """Whether the file of a row holds all of its cases, measured at the commit that is checked out."""
    from experiments.benchmarks import machine

    path, now = _path(name, where), machine.commit()
    cases = json.loads(path.read_text())["cases"] if path and path.exists() else {}
    return bool(now) and all(cases.get(case, {}).get("commit") == now for case in _row(name).CASES)


def _path(name: str, wanted: str | None):
    if not wanted:
        return None
    path = pathlib.Path(wanted)
    return path if path.suffix == ".json" else path / f"{name}.json"


def row_names() -> list[str]:
    """All rows: the modules of `rows/`."""
    return sorted(module.name for module in pkgutil.iter_modules([str(HERE / "rows")]))


def _row(name: str):
    if name not in row_names():
        raise SystemExit(f"unknown row {name!r}; known: {', '.join(row_names())}")
    return importlib.import_module(f"experiments.benchmarks.rows.{name}")


def _line(name: str, case: str, figures: dict) -> str:
    if "failed" in figures:
        return f"{name}/{case}: FAILED, {figures['failed']}"
    parts = [f"{figures['seconds_per_unit'] * 1e3:.4g} ms per {figures['unit']}"]
    if "compile_seconds" in figures:
        memory = figures["temporary_megabytes"]
        parts.append(
            f"compile {figures['compile_seconds']:.2f} s, {memory:.3g} MB" if memory is not None else "compile"
        )
    parts += [_peer_part(peer, found) for peer, found in figures["peers"].items()]
    parts.append(f"error {figures['agreement']['error']:.2g} <= {figures['agreement']['tolerance']:.2g}")
    return f"{name}/{case}: " + "; ".join(parts)


def _peer_part(peer: str, found: dict) -> str:
    text = f"{peer} {found['ratio']:.4g}x"
    if "ratio_two_processes" in found:
        text += f" / {found['ratio_two_processes']:.3g}x on both cores"
    text += f", processor {found['processor_ratio']:.4g}x"
    if found["goal"]:
        text += f" (goal {found['goal']:g}x)"
    return text + (", extrapolated" if found["extrapolated"] else "")


def _restart_in_clean_environment(device: str | None) -> None:
    wanted = SET | ({} if device is None else {"JAX_PLATFORMS": PLATFORMS[device]})
    if all(os.environ.get(name) == value for name, value in wanted.items()) and not any(n in os.environ for n in UNSET):
        return
    environment = {name: value for name, value in os.environ.items() if name not in UNSET} | wanted
    os.execve(sys.executable, [sys.executable, "-m", "experiments.benchmarks", *sys.argv[1:]], environment)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="rows and their cases")
    run = commands.add_parser("run", help="measure a row: python -m experiments.benchmarks run krr_cv --reps 5")
    run.add_argument("name", help="row, or 'all'")
    run.add_argument("--case", help="one case of the row (default: all)")
    run.add_argument("--quick", action="store_true", help="only the cases that finish in seconds")
    run.add_argument("--reps", type=int, default=3, help="interleaved repetitions (default 3)")
    run.add_argument("--device", choices=sorted(PLATFORMS), help="where to run (default: JAX's choice)")
    run.add_argument("--json", help="file, or folder for <row>.json")
    held = commands.add_parser("measured", help="exit code 0 if every case of a row was measured at this commit")
    held.add_argument("name")
    held.add_argument("--json", required=True, help="file, or folder with <row>.json")
    versus = commands.add_parser("compare", help="what got slower: compare OLD NEW, files or folders of results")
    versus.add_argument("old")
    versus.add_argument("new")
    versus.add_argument("--factor", type=float, default=1.25, help="above this a case counts as slower (default 1.25)")
    versus.add_argument("--table", help="file for a Markdown table of every case, before and after")
    return parser


if __name__ == "__main__":
    sys.exit(main())
