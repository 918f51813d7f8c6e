"""`jaxdp plan --discover`: which search would be chosen, and which edges it would miss, before anything is spent."""

from __future__ import annotations

import argparse
import math

from jaxdp._base.keywords import declared
from jaxdp._base.quantities import PlanOptions
from jaxdp.cli import options

FILES = ("plan.json", "report.html")
OF_SEARCHES = {"schema", "n", "epsilon", "delta"}
OF_TESTS = {"method", "power", "epsilon_curve", "studies", "replicates", "quick"}


def run(args: argparse.Namespace) -> int:
    """Answers from a schema, --n, --epsilon and --delta."""
    for name in ("schema", "n", "epsilon"):
        if getattr(args, name) is None:
            raise options.UserError(f"--discover needs --{name}: give --schema S.toml --n N --epsilon E.")
    defaults = {name: said.default for name, (_, said) in declared(PlanOptions).items() if name not in OF_SEARCHES}
    given = vars(args)
    for name, default in {**defaults, **dict.fromkeys(OF_TESTS)}.items():
        if given.get(name) not in (None, False, (), default):
            raise options.UserError(f"--{name.replace('_', '-')} is of tests, not of --discover: leave it out.")
    options.require_known(args)
    from jaxdp.discovery.choose import planned, why
    from jaxdp.discovery.spec import forecasts
    from jaxdp.report import written
    from jaxdp.report.html import write_report

    setting = planned(args.schema, n=args.n, epsilon=args.epsilon, delta=args.delta)
    rows = forecasts(setting)
    folder = options.output_folder(args.out, FILES)
    content = {
        "title": "Which search, and what will it find?",
        "answer": why(setting),
        "columns": setting.num_columns,
        "n": setting.num_records,
        "epsilon": setting.epsilon,
        "delta": setting.delta,
        "searches": [{"method": row.method, "weakest_edge": row.weakest} for row in rows],
        "weakest_edge_is": "share of the records that would have to move for independence",
    }
    if weaker := [row.method for row in rows if row.weakest < rows[0].weakest]:
        content["note"] = (
            f"The share is that of one edge by itself. By it {' and '.join(weaker)} would find weaker edges, but at so "
            f"much noise {rows[0].method} found more edges of the graphs on which they were measured."
        )
    written.put_json(folder, "plan.json", content)
    write_report(folder, "Plan of a private search", FILES)
    lines = [
        str(content["title"]),
        f"  answer     {content['answer']}",
        "",
        f"  {'search':<22}{'weakest edge found':>20}",
    ]
    lines += [f"  {row.method:<22}{_share(row.weakest):>20}" for row in rows]
    lines += ["", f"  {content['note']}"] if "note" in content else []
    options.tell(args, content, "\n".join([*lines, "", f"  files      {folder / 'report.html'}"]))
    return 0


def _share(weakest: float) -> str:
    return f"{100.0 * weakest:.2g} % of records" if math.isfinite(weakest) else "not known"
