"""`jaxdp plan`: how many records, how much budget, which test? From public numbers, before anything is spent."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from jaxdp._base import arguments, csv_files
from jaxdp._base.keywords import declared
from jaxdp._base.quantities import QUANTITIES, PlanOptions, SettingOptions, unknown
from jaxdp.cli import asking, options, plan_epsilon

DEFAULT_REPLICATES = 1000
QUICK_REPLICATES = 200
MAX_STEPS = 24  # of a search by simulation, for the bar
EVERY = 10.0  # seconds between two lines about such a search, where there is no terminal
CURVE_POINTS = 15
MAX_CURVES = 8
FILES = ("power.png", "plan.json", "comparison.csv", "report.html", *plan_epsilon.FILES)
LEVEL_WARNING = 1.2  # times the level: a rate of false alarms surely above it is told
FAR_OFF = 0.05  # of a power, beyond the interval of the check
LEVEL_LOST = "loses its level"
LINES = "means of X and Y that are linear in Z: the test removes no more, and where Z bends them it rejects true nulls"
EXAMPLES = """examples:
  jaxdp plan --method partition-gcm --epsilon 1 --effect 0.25 --power 0.8      how many records?
  jaxdp plan --method partition-gcm --n 1000 --effect 0.25 --power 0.8         how small an epsilon?
  jaxdp plan --method margin-adaptive --n 500 --epsilon 1 --power 0.8          how small an effect?
  jaxdp plan --schema trial.toml --x dose --y response --given age --epsilon 1 --effect 0.2 --power 0.8
                                                                               which test?
  jaxdp plan --method partition-gcm --n 1000 --effect 0.25 --epsilon-curve     which epsilon?
  jaxdp plan --method logistic-regression --rate 0.1 --covariates 3 --epsilon 1 --effect 0.3 --power 0.8
                                                          the effect is the log odds ratio per sd of X
  jaxdp plan --method poisson-regression --rate 0.1 --covariates 1 --epsilon 1 --effect 0.2 --power 0.8
                                                          the effect is the log rate ratio per sd of X
  jaxdp plan --discover --schema survey.toml --n 20000 --epsilon 1             which search, and what will it miss?
"""


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "plan",
        help="records, budget or effect needed, before anything is spent",
        description=(
            "Give three of --n, --epsilon, --effect and --power; the fourth is the answer. No data are read. With "
            "--schema, all tests that fit its columns are compared. An effect B means that the part of Y that Z does "
            "not explain is noise plus B times that part of X, in standard deviations; columns with levels are cut "
            "from such values."
        ),
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--discover",
        action="store_true",
        help="plan a search for a causal graph instead: which search to use and which edges it will miss; needs "
        "--schema, --n and --epsilon",
    )
    plan_epsilon.add_arguments(parser)
    parser.add_argument(
        "--method",
        metavar="M",
        help="test to plan (default: with --schema all tests that fit, else the default for one continuous Z)",
    )
    asking.add_keywords(parser, PlanOptions)
    defaults = {name: said.default for name, (_, said) in declared(PlanOptions).items()}
    parser.set_defaults(**{name: value for name, value in defaults.items() if value not in (None, ())})
    parser.add_argument(
        "--replicates",
        type=arguments.count_or_zero,
        metavar="R",
        help="number of made-up data sets that check the answer, also the largest number in a step of a search by "
        f"simulation (default {DEFAULT_REPLICATES}; 0: no check)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"use {QUICK_REPLICATES} made-up data sets: powers are accurate to about 0.03, in at most a fifth of the "
        "time",
    )
    parser.add_argument(
        "--seed", type=arguments.seed, default=8, metavar="N", help="seed of the made-up data (default 8)"
    )
    options.add_json(parser)
    options.add_out(parser, "out/plan")


def run(args: argparse.Namespace) -> int:
    if args.quick and args.replicates is not None:
        raise options.UserError("give --quick or --replicates, not both.")
    if args.discover:
        from jaxdp.cli import plan_discover

        return plan_discover.run(args)
    if args.replicates is None:
        args.replicates = QUICK_REPLICATES if args.quick else DEFAULT_REPLICATES
    given = {name: getattr(args, name) for name in QUANTITIES}
    curve = args.epsilon_curve or args.studies is not None
    plan_epsilon.require(args) if curve else unknown(**given)
    require_columns(args)
    options.keep_programs(args)
    if curve:
        return plan_epsilon.run(args, setting_of(args), check, checked_lines)
    from jaxdp.plan import answer, compare
    from jaxdp.plan.compare import Row
    from jaxdp.plan.methods import default_method, plan_of
    from jaxdp.plan.solve import listening

    if args.method is not None:
        args.method = options.own_name(args.method)
        plan_of(args.method)
    setting = setting_of(args)
    folder = options.output_folder(args.out, FILES)
    steps = _tell_simulated(args, setting)
    with options.stages(3 + MAX_STEPS * steps, EVERY) as on_stage, listening(on_stage):
        on_stage("planning")
        if setting is not None and args.method is None:
            rows: list[Row] = compare(setting, **given, level=args.level, delta=args.delta, replicates=_row(args))
        else:
            method = args.method or default_method()
            how = {"level": args.level, "setting": setting, "delta": args.delta, "replicates": _step(args)}
            rows = [answer(method, **given, **how)]
        on_stage("checking the answer on made-up data")
        rows, simulated = keeping_level(rows, setting, args)
        content = {**describe(rows, setting, args), "simulated": simulated, "changes": _changes(rows[0], setting, args)}
        on_stage("drawing")
        write(folder, rows, setting, content, args)
    options.tell(args, content, summary(rows, content, folder) + options.pictures())
    return 0


def _tell_simulated(args: argparse.Namespace, setting) -> bool:
    """Whether one test is asked for and the planner has no formula for it here: then this says so on standard error."""
    from jaxdp.plan.methods import default_method, plan_of

    if args.method is None and setting is not None:
        return False
    plan = plan_of(args.method or default_method())
    if not plan.planning.slow and plan.has_formula(setting or plan.setting, args.delta):
        return False
    fewer = "" if args.quick else f"; --quick takes {QUICK_REPLICATES}"
    options.note(
        f"{plan.name} is planned by simulation, at most {_step(args)} made-up data sets at each step of a search: this "
        f"takes minutes{fewer}."
    )
    return True


def _step(args: argparse.Namespace) -> int:
    """The most replicates of a step of a search by simulation; --replicates 0 leaves out the check alone."""
    return args.replicates or DEFAULT_REPLICATES


def _most(rows, args: argparse.Namespace) -> int | None:
    """The most replicates of a step behind the best row; None for a formula."""
    if rows[0].engine != "simulation":
        return None
    return _row(args) if len(rows) > 1 else _step(args)


def _row(args: argparse.Namespace) -> int:
    """The most replicates of a step of a search by simulation where tests are compared."""
    from jaxdp.plan.compare import SIMULATED_ROW

    return min(SIMULATED_ROW, _step(args))


def require_columns(args: argparse.Namespace) -> None:
    """Raises on columns without a schema, a schema without columns, and columns that it does not have."""
    if args.schema is None:
        stray = [f"--{name.replace('_', '-')}" for name in ("x", "y", "given", *_fields(args)) if getattr(args, name)]
        if stray:
            raise options.UserError(f"{', '.join(stray)} belongs to --schema: give the schema too.")
        return
    if args.x is None or args.y is None:
        raise options.UserError("--schema needs --x and --y: name the two columns that are to be tested.")
    options.require_known(args)


def _fields(args: argparse.Namespace) -> tuple[str, ...]:
    """Of a setting that only a schema has: none where the method is planned for data of its own kind."""
    found = tuple(asking.given(args, SettingOptions))
    if not found or args.method is None:
        return found
    from jaxdp.plan.methods import plan_of

    return () if plan_of(args.method).planning.setting else found


def setting_of(args: argparse.Namespace):
    """The setting that the schema describes, or the fields of the method's own; None without either."""
    from jaxdp.plan.methods import setting_of as described

    fields = asking.given(args, SettingOptions)
    if args.schema is None:
        return described(args.method, None, None, None, (), fields)
    from jaxdp.data.schema import Schema

    schema = Schema.load(args.schema)
    args.given = options.columns(schema, *(args.given or ()))
    return described(args.method, schema, args.x, args.y, args.given, fields)


def keeping_level(rows, setting, args: argparse.Namespace):
    """The rows, the first of them a test that keeps its level and its power on made-up data, and that check.

    A test whose made-up data contradict the planned power is told, and ranked, by what they find. Tests that lose their
    level come last; the answer for a test that was asked for by name stays, with a warning.
    """
    checks: dict[str, dict | None] = {}

    def place(row):
        if row.reason:
            return 2, 0.0
        if row.found == "power":
            return 0, -row.power
        checked = checks.get(row.method)
        return int(checked is not None and _off(checked) < 0), getattr(row, row.found)

    while not rows[0].reason and rows[0].method not in checks:
        row = rows[0]
        checks[row.method] = checked = check(row, setting, args)
        if checked is None:
            break
        if _off(checked):
            row = dataclasses.replace(row, power=checked["power"], cost_of_privacy=None)
        by_name = args.method is not None or not setting
        if not by_name and _loses_level(checked, args.level):
            row = dataclasses.replace(row, reason=_lost(row, checked))
        rows = [row, *rows[1:]]
        if by_name:
            break
        rows = sorted(rows, key=place)
    return rows, None if rows[0].reason else checks[rows[0].method]


def _lost(row, checked: dict) -> str:
    """Why a test is not recommended that rejects without the effect."""
    from jaxdp.plan.methods import plan_of, plans

    text = f"{row.method} {LEVEL_LOST}: it rejects {checked['level']:.0%} of such data without the effect."
    if row.method in plans() and plan_of(row.method).planning.linear:
        text += f" Here Z bends the means of X and Y; --method {row.method} plans for means linear in Z."
    return text


def _changes(row, setting, args: argparse.Namespace) -> list[dict]:
    """The power of the answer where the data are not as planned; with --schema."""
    import jax

    from jaxdp.plan.changes import changes

    if setting is None:
        return []
    found = changes(row, setting, level=args.level, replicates=args.replicates, key=jax.random.key(args.seed))
    return [dataclasses.asdict(change) for change in found]


def _off(checked: dict) -> int:
    """1 or -1 where made-up data find the effect clearly more or less often than was planned, else 0."""
    low, high = checked["power_interval"]
    return int(low > checked["planned"] + FAR_OFF) - int(high < checked["planned"] - FAR_OFF)


def contradiction(checked: dict) -> str:
    """What to make of made-up data that find the effect clearly more or less often than was planned; "" elsewhere."""
    told = {-1: "less often than was planned: go by them, and plan for more records."}
    told[1] = "more often than was planned: go by them" + ("." if checked["note"] else "; fewer records would do.")
    off = _off(checked)
    return f"these data find the effect {told[off]}" if off else ""


def _loses_level(checked: dict, level: float) -> bool:
    return checked["level_interval"][0] > LEVEL_WARNING * level


def describe(rows, setting, args: argparse.Namespace) -> dict:
    """What plan.json holds."""
    from jaxdp import catalogue
    from jaxdp.plan.methods import default_method, plan_of

    best = rows[0]
    planned = plan_of(best.method)
    test = planned.make(setting or planned.setting, float(best.epsilon), args.level, int(best.n))
    content = {
        "title": _title(best, args),
        "answer": best.sentence,
        **dataclasses.asdict(best),
        "level": args.level,
        "built": catalogue.described(test),
        "columns": {"x": args.x, "y": args.y, "given": args.given} if args.schema is not None else None,
        "effect_is": (setting or planned.setting).effect_is(best.effect),
        "unit": _records(args, test.averages_rows),
        "rests_on": LINES if planned.rests_on_lines(setting) else "",
        "replicates_a_step": _most(rows, args),
        "default_test": "" if setting is None else default_method(setting, int(best.n)),
    }
    if len(rows) > 1:
        content["comparison"] = [dataclasses.asdict(row) for row in rows]
    return content


def _records(args: argparse.Namespace, averages_rows: bool) -> str:
    """What the schema says of a record; "" where a record is a row."""
    from jaxdp.data.schema import Schema

    schema = None if args.schema is None else Schema.load(args.schema)
    if schema is None or not schema.unit:
        return "" if schema is None else schema.protects
    every_row = schema.averages(averages_rows)
    more = ", where the test averages over all: unlike rows of a person make it find more" if every_row else ""
    return f"{schema.describe_records(every_row)} The plan takes one row of each{more}."


def _title(row, args: argparse.Namespace) -> str:
    asked = {
        "n": "How many records?",
        "epsilon": "How small an epsilon?",
        "effect": "How small an effect?",
        "power": "How much power?",
    }[row.found]
    if args.schema is None:
        return asked
    given = f" given {', '.join(args.given)}" if args.given else ""
    return f"{asked} {args.x} against {args.y}{given}"


def check(row, setting, args: argparse.Namespace) -> dict | None:
    """Replicates of the real test at the answer, with and without the effect; None if there is nothing to check."""
    import jax

    from jaxdp.plan.methods import plan_of
    from jaxdp.plan.solve import MAX_SIMULATED_N, SIMULATION, PlannedTest

    plan = plan_of(row.method)
    if row.reason or not args.replicates or plan.planning.slow:  # those are simulated to begin with
        return None
    if row.n > MAX_SIMULATED_N // (10 if plan.entry.spec.memory else 1):
        return None
    planned = PlannedTest.of(
        row.method,
        setting,
        level=args.level,
        engine=SIMULATION,
        replicates=args.replicates,
        key=jax.random.key(args.seed),
        delta=row.delta,
    )
    found, false = (planned.simulated(row.n, row.epsilon, effect) for effect in (row.effect, 0.0))
    return {
        "replicates": args.replicates,
        "seed": args.seed,
        "planned": row.power,
        "note": row.note,
        "power": found.rate,
        "power_interval": list(found.interval()),
        "level": false.rate,
        "level_interval": list(false.interval()),
    }


def write(folder: Path, rows, setting, content: dict, args: argparse.Namespace) -> None:
    """plan.json, comparison.csv, power.png and report.html."""
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    for old in ("comparison.csv", "power.png", *plan_epsilon.FILES):
        written.drop(folder, old)
    written.put_json(folder, "plan.json", content)
    if len(rows) > 1:
        names = [field.name for field in dataclasses.fields(rows[0])]
        written.put(folder, "comparison.csv", csv_files.write, names, (dataclasses.astuple(row) for row in rows))
    answered = [row for row in rows if not row.reason][:MAX_CURVES]
    if answered:
        written.put_picture(folder, "power.png", draw, answered, setting, content, args)
    write_report(folder, "Plan of a private test", FILES)


def draw(path: Path, answered, setting, content: dict, args: argparse.Namespace) -> None:
    """Power against n for the answered tests, the non-private one, and the simulated check."""
    import numpy as np

    from jaxdp._base.amounts import spent
    from jaxdp.plan.solve import FORMULA, PlannedTest
    from jaxdp.report.power_curve import power_curve

    best = answered[0]
    grid = sorted({max(20, round(n)) for n in best.n * np.geomspace(0.1, 10.0, CURVE_POINTS)})
    curves, reference = [], None
    for row in answered:
        planned = PlannedTest.of(row.method, setting, level=args.level, delta=row.delta)
        if reference is None:
            reference = (grid, [planned.reference(n, best.effect) for n in grid])
        if planned.engine == FORMULA:
            usable = [n for n in grid if n >= planned.plan.planning.min_records]
            curves.append((row.method, usable, [planned.power_or_zero(n, best.epsilon, best.effect) for n in usable]))
    measured = content["simulated"]
    title = f"epsilon {spent(best.epsilon, 3)}, effect {best.effect:.3g}"
    points = [(best.n, measured["power"], tuple(measured["power_interval"]))] if measured else []
    lines = {"level": args.level, "title": title, "wanted": args.power, "reference": reference}
    power_curve(path, curves, **lines, measured=points, simulated=best.method)


def summary(rows, content: dict, folder: Path) -> str:
    """One screen for people."""
    from jaxdp.report import sections

    lines = [content["title"], f"  answer     {content['answer']}"]
    lines.append(sections.paragraph("effect is", f"{content['effect_is']}."))
    if content["unit"]:
        lines.append(sections.paragraph("records", content["unit"]))
    lines += checked_lines(content["simulated"], content["level"])
    for change in content["changes"]:
        low, high = change["interval"]
        lines.append(f"  if instead {change['words']}: power {change['power']:.2f} [{low:.2f}, {high:.2f}]")
    usual = content["default_test"]
    if usual not in ("", rows[0].method):
        lines.append(f"  test       jaxdp test takes {usual} by default; give --method {rows[0].method}")
    if content["rests_on"]:
        lines.append(sections.paragraph("rests on", content["rests_on"]))
    lines.append(f"  computed   {_computed(content)}, level {content['level']:g}")
    if len(rows) > 1:
        wide = max(len(row.method) for row in rows)
        lines.append(f"\n  {'test':<{wide}}{'n':>10}{'epsilon':>10}{'effect':>9}{'power':>8}{'cost of privacy':>17}")
        lines.extend(_table_line(row, wide) for row in rows)
        lines.append("")
    names = ["plan.json", "power.png", "report.html", *(["comparison.csv"] if len(rows) > 1 else [])]
    lines.append(f"  files      {', '.join(str(folder / name) for name in names if (folder / name).exists())}")
    return "\n".join(lines)


def checked_lines(checked: dict | None, level: float) -> list[str]:
    """What made-up data say of an answer, with warnings."""
    from jaxdp.report import sections

    if checked is None:
        return []
    low, high = checked["power_interval"]
    lines = [
        f"  checked    power {checked['power']:.3f} [{low:.3f}, {high:.3f}], level {checked['level']:.3f} "
        f"in {checked['replicates']} made-up data sets each"
    ]
    told = contradiction(checked)
    lines += [sections.paragraph("warning", told)] if told else []
    if _loses_level(checked, level):
        lines.append(
            f"  warning    without the effect it rejects {checked['level']:.0%} of these data, not {level:.0%}: this "
            "power is partly false alarms"
        )
    return lines


def _computed(content: dict) -> str:
    """How the answer was found, and how well it is known where that was by simulation."""
    import math

    most = content["replicates_a_step"]
    if most is None:
        return "by formula"
    power = min(max(content["power"], 1.0 / most), 1.0 - 1.0 / most)
    error = 1.96 * math.sqrt(power * (1.0 - power) / most)
    return f"by simulation, at most {most} data sets a step: its power is known to +-{error:.2g}"


def _table_line(row, wide: int) -> str:
    from jaxdp._base.amounts import spent
    from jaxdp.plan.compare import BY_NAME

    if row.reason:
        short = next((told for told in (LEVEL_LOST, BY_NAME) if told in row.reason), "not within reach")
        return f"  {row.method:<{wide}}{short:>44}"
    cost = "" if row.cost_of_privacy is None else f"{row.cost_of_privacy:.3g}"
    return f"  {row.method:<{wide}}{row.n:>10}{spent(row.epsilon, 3):>10}{row.effect:>9.3g}{row.power:>8.3g}{cost:>17}"
