"""Writes README.md from results/*.json: python -m experiments.benchmarks.table."""

import json
import pathlib

HERE = pathlib.Path(__file__).parent
INTRODUCTION = """# Benchmarks

Measured by `scripts/bench` or `python -m experiments.benchmarks run ROW --case CASE --json FOLDER`
(this table is written from `results/*.json` by `python -m experiments.benchmarks.table`). What is measured and how:
`__init__.py`, `harness.py`. Ratio: time of the peer over ours for the same work, by wall time (peer at the better of
one and two BLAS threads / peer in two processes) and by processor time summed over cores. Load: processes running on
the two cores when the case started; above 1 the machine was shared, wall ratios are noisy, and processor ratios are
the ones to read. "Met" compares the smaller of the two kinds of ratio with the goal.

| row/case | per unit | peer | wall ratio | processor ratio | goal | met | load |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    """Writes the table."""
    lines = [
        line for path in sorted((HERE / "results").glob("*.json")) for line in _lines(json.loads(path.read_text()))
    ]
    (HERE / "README.md").write_text(INTRODUCTION + "\n".join(lines) + "\n")


def _lines(report):
    for case, figures in report["cases"].items():
        name, load = f"{report['row']}/{case}", f"{figures['load_at_start']:.1f}"
        if "failed" in figures:
            yield f"| {name} | | | | | | failed: {figures['failed']} | {load} |"
            continue
        unit = f"{figures['seconds_per_unit'] * 1e3:.3g} ms/{figures['unit']}"
        if figures.get("goal_per_second"):
            rate, goal = figures["units_per_second"], figures["goal_per_second"]
            yield f"| {name} | {unit} | {rate:.3g} per second | | | {goal:.3g} | {_word(rate >= goal)} | {load} |"
        for peer, found in figures["peers"].items():
            yield f"| {name} | {unit} | {peer} | {_peer(found)} | {load} |"
        if not figures["peers"]:
            agreement = figures["agreement"]
            facts = ", ".join(f"{key} {value:.3g}" for key, value in agreement.items() if key != "tolerance")
            goal = f"error at most {agreement['tolerance']:.3g}"
            met = _word(agreement["error"] <= agreement["tolerance"] and agreement.get("within_goal", True))
            yield f"| {name} | {unit} | {facts} | | | {goal} | {met} | {load} |"


def _peer(found) -> str:
    both = found.get("ratio_two_processes")
    wall = (
        f"{found['ratio']:.3g}"
        + (f" / {both:.3g}" if both else "")
        + (" (extrapolated)" if found["extrapolated"] else "")
    )
    goals = [goal for goal in (found["goal"], found.get("goal_two_processes")) if goal]
    met = not goals or (
        min(found["ratio"], found["processor_ratio"]) >= (found["goal"] or 0.0)
        and (both or found["ratio"]) >= (found.get("goal_two_processes") or 0.0)
    )
    goal = " / ".join(f"{goal:g}" for goal in goals)
    return f"{wall} | {found['processor_ratio']:.3g} | {goal} | {_word(met) if goals else ''}"


def _word(met: bool) -> str:
    return "yes" if met else "NO"


if __name__ == "__main__":
    main()
