"""`jaxdp plan --epsilon-curve`: how much power for how much risk, before anything is spent."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxdp._base import arguments, csv_files
from jaxdp.cli import options

FILES = ("epsilon_curve.png", "epsilon_curve.csv")
SHOWN = ("epsilon_curve.png", "plan.json", "epsilon_curve.csv", "report.html")
OTHERS = ("power.png", "comparison.csv")  # of other plans in the same folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--epsilon-curve and --studies."""
    parser.add_argument(
        "--epsilon-curve",
        action="store_true",
        help="power and risk over a grid of epsilons, for --n and --effect; the knee is the smallest epsilon with "
        "--power (default 0.8)",
    )
    parser.add_argument(
        "--studies",
        type=arguments.count,
        metavar="R",
        help="with --epsilon-curve: number of tests that share each epsilon",
    )


def require(args: argparse.Namespace) -> None:
    """Raises on options that do not go together."""
    if not args.epsilon_curve:
        raise options.UserError("--studies belongs to --epsilon-curve: give both.")
    if args.epsilon is not None:
        raise options.UserError("--epsilon-curve runs over epsilon: leave out --epsilon.")
    if args.n is None or args.effect is None:
        raise options.UserError("--epsilon-curve needs --n and --effect: how many records, and which effect to find?")


def run(args: argparse.Namespace, setting: Any, check: Callable[..., dict | None], told: Callable) -> int:
    """Draws and tells the curve. check(row, setting, args): replicates of the test with and without the effect;
    told(check, level): lines about them."""
    from jaxdp.plan.epsilon_curve import GRID, epsilon_curve
    from jaxdp.plan.methods import plan_of
    from jaxdp.plan.solve import WANTED_POWER, listening
    from jaxdp.report import epsilon_curve as picture
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    if args.method is not None:
        args.method = options.own_name(args.method)
    folder = options.output_folder(args.out, (*SHOWN, *OTHERS))
    _tell_simulated(args, setting, len(GRID))
    with options.stages(len(GRID) + 2, 10.0) as on_stage, listening(on_stage):
        curve = epsilon_curve(
            args.method,
            n=args.n,
            effect=args.effect,
            studies=args.studies or 1,
            power=args.power or WANTED_POWER,
            level=args.level,
            setting=setting,
            delta=args.delta,
            **({"replicates": args.replicates} if args.replicates else {}),
        )
        on_stage("checking the knee on made-up data")
        content = describe(curve, setting or plan_of(curve.method).setting, check(_row(curve), setting, args), args)
        on_stage("drawing")
        for old in OTHERS:
            written.drop(folder, old)
        written.put_json(folder, "plan.json", content)
        names = [field.name for field in dataclasses.fields(curve.points[0])]
        rows = [dataclasses.astuple(point) for point in curve.points]
        written.put(folder, "epsilon_curve.csv", csv_files.write, names, rows)
        written.put_picture(folder, "epsilon_curve.png", picture.epsilon_curve, curve)
        write_report(folder, "Power and risk of a private test", SHOWN)
    checked = told(content["simulated"], args.level)
    options.tell(args, content, summary(curve, content, checked, folder) + options.pictures())
    return 0


def _tell_simulated(args: argparse.Namespace, setting: Any, points: int) -> None:
    """Says on standard error how much is simulated, where the planner has no formula."""
    from jaxdp.plan.epsilon_curve import REPLICATES
    from jaxdp.plan.methods import default_method, plan_of

    plan = plan_of(args.method or default_method(setting, args.n))
    if plan.has_formula(setting or plan.setting, args.delta):
        return
    fewer = "" if args.quick else ", fewer with --quick"
    long = "; it is slow, and this takes long" if plan.planning.slow else ""
    each = args.replicates or REPLICATES
    options.note(
        f"{plan.name} has no formula here: {each} made-up data sets at each of {points} epsilons{fewer}{long}."
    )


def _row(curve: Any) -> Any:
    """The knee as a row of the planner, or the last point where there is none."""
    from jaxdp.plan.compare import Row

    point = curve.points[-1] if curve.knee is None else curve.at(curve.knee)
    return Row(
        curve.method, "power", curve.n, point.share, curve.effect, point.power, None, curve.engine, delta=curve.delta
    )


def describe(curve: Any, setting: Any, simulated: dict | None, args: argparse.Namespace) -> dict[str, Any]:
    """What plan.json holds."""
    columns = {"x": args.x, "y": args.y, "given": args.given} if args.schema is not None else None
    own = {field.name: getattr(curve, field.name) for field in dataclasses.fields(curve) if field.name != "points"}
    return {
        "title": "How much power for how much risk?",
        "answer": curve.sentence,
        **own,
        "epsilon": curve.knee,
        "columns": columns,
        "effect_is": setting.effect_is(curve.effect),
        "simulated": simulated,
        "points": [dataclasses.asdict(point) for point in curve.points],
    }


def summary(curve: Any, content: dict[str, Any], checked: list[str], folder: Path) -> str:
    """One screen for people. checked: lines about the check."""
    from jaxdp.report import sections

    lines = [content["title"], sections.paragraph("answer", content["answer"]), *checked]
    table = "\n".join(f"  {line}" for line in curve.table().splitlines())
    files = ", ".join(str(folder / name) for name in SHOWN if (folder / name).exists())
    return "\n".join([*lines, "", table, "", f"  files      {files}"])
