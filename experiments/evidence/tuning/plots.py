"""Pictures and the table, from the rows alone."""

import csv
import json
import math
import pathlib

from experiments.evidence.tuning.config import NOTHING_TO_TUNE
from jaxdp.report import figures
from jaxdp.simulate.power import RejectionRate
from jaxdp.tune import LevelCheck

Z95, LEVEL = 1.959964, 0.05
COLUMNS = (
    "test",
    "n",
    "epsilon",
    "design",
    "replicates",
    "default_rate",
    "tuned_rate",
    "only_tuned",
    "only_default",
    "accepted",
    "default",
    "tuned",
)


def write(rows: list[dict], out: pathlib.Path) -> list[pathlib.Path]:
    """gains.csv, gains.png, gains.md, shares.md and subsample.png, as far as there are rows."""
    paths = []
    gains = [row for row in rows if row.get("figure") == "gains"]
    if gains:
        paths += [_table(gains, out / "gains.csv"), _gains(gains, out / "gains.png")]
        paths.append(out / "gains.md")
        paths[-1].write_text(gains_table(rows), encoding="utf-8")
    if any(row.get("figure") == "shares" for row in rows):
        paths.append(out / "shares.md")
        paths[-1].write_text(shares_table(rows), encoding="utf-8")
    rates = [row for row in rows if row.get("figure") == "subsample" and "rate" in row]
    if rates:
        paths.append(_subsample(rates, out / "subsample.png"))
    return paths


def read(folder: pathlib.Path) -> list[dict]:
    """Rows of every record file in a folder, as recorded."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines]


def gains_table(rows: list[dict]) -> str:
    """One line per test, as Markdown: what was tuned, power and level on held-out designs, the verdict."""
    head = "| test | default -> tuned | power, held-out designs | gain, points | level, held-out nulls | change |"
    lines = [head, "|---" * 6 + "|"]
    tests = dict.fromkeys((row["test"], row["n"], row["epsilon"]) for row in rows if row["figure"] == "gains")
    for test in tests:
        lines.append(_line([row for row in rows if row["figure"] == "gains" and _test_of(row) == test]))
    searches = dict.fromkeys(row["test"] for row in rows if row["figure"] == "searches")
    for test in searches:
        lines.append(_search_line([row for row in rows if row["figure"] == "searches" and row["test"] == test]))
    lines += ["", "Nothing to tune: " + "; ".join(f"{name} ({why})" for name, why in NOTHING_TO_TUNE.items()) + "."]
    return "\n".join(lines) + "\n"


def _test_of(row):
    return row["test"], row["n"], row["epsilon"]


def _line(rows) -> str:
    first = rows[0]
    test, *variant = first["test"].split()
    name = f"`{test}`{''.join(f' {v}' for v in variant if not v.isdigit())}, n = {first['n']}, "
    name += f"epsilon {first['epsilon']:g}"
    name += f" ({first['note']})" if first.get("note", "") not in ("", f"n = {first['n']}") else ""
    if not (first["accepted"] and _keeps_level(first)):
        kept = f"power {first['default_rate']:.3f} where tuned"
        return f"| {name} | stays: {_why(first)} | {kept} | 0 | | 0 |"
    powers = [row for row in rows if not row["design"].startswith("null") and row["design"] != "tuned on"]
    nulls = [row for row in rows if row["design"].startswith("null")]
    changed = f"{_change(first)}{_verdict(powers, nulls)}"
    return f"| {name} | {changed} | {_rates(powers)} | {_gaps(powers)} | {_rates(nulls, 4)} | {_level_gaps(nulls)} |"


def _verdict(powers, nulls) -> str:
    """What the held-out designs say against the tuned point, beyond their intervals."""
    weaker = [row["design"] for row in powers if sum(gap_of(row)) < 0.0]
    worse = [r["design"].removeprefix("null: ") for r in nulls if _lost(r)]
    parts = [f"power lost: {', '.join(weaker)}"] * bool(weaker) + [f"level lost: {', '.join(worse)}"] * bool(worse)
    return f" (keep the default; {'; '.join(parts)})" if parts else ""


def _lost(null) -> bool:
    """Whether the tuned test surely rejects more than the default, and more than the level."""
    gap, half = gap_of(null)
    rate = null["tuned_rate"]
    return gap > half and rate - Z95 * math.sqrt(rate * (1.0 - rate) / null["replicates"]) > LEVEL


def _keeps_level(row) -> bool:
    """The tuner's own check by the rule of today; a row may be older than it."""
    counts = [{**c, **{k: RejectionRate(**c[k]) for k in ("tuned", "default")}} for c in row.get("checks", [])]
    checks = [LevelCheck(**c) for c in counts]
    return not checks or all(check.holds for check in (*checks, LevelCheck.together(checks)))


def _why(row) -> str:
    if row["accepted"]:
        return "level"
    reasons = {"level": "level", "power is lost": "power lost elsewhere"}
    return next((why for word, why in reasons.items() if word in row["refused"]), "no better point")


def _change(row) -> str:
    """Only what moved."""

    def plain(value):
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    moved = {k: v for k, v in row["tuned"].items() if v != row["default"].get(k)}
    default = {k: row["default"].get(k) for k in moved}
    parts = [
        f"{k} {'default' if default[k] is None else plain(default[k])} -> {plain(value)}" for k, value in moved.items()
    ]
    return ", ".join(parts).replace("_", " ")


def _rates(rows, digits: int = 3) -> str:
    return "; ".join(f"{r['default_rate']:.{digits}f} -> {r['tuned_rate']:.{digits}f}" for r in rows)


def _gaps(rows) -> str:
    return "; ".join(f"{gap:+.2f} ± {half:.2f}" for gap, half in map(gap_of, rows))


def _level_gaps(nulls) -> str:
    """A level that rises but is not surely above the nominal one is not lost."""
    rises = [gap > half and not _lost(row) for row in nulls for gap, half in [gap_of(row)]]
    texts = [_gaps([row]) for row in nulls]
    return "; ".join(text + f" (within {LEVEL:g})" * rise for text, rise in zip(texts, rises, strict=True))


def gap_of(row) -> tuple[float, float]:
    """Difference of the rates in points and half of its paired 95 % interval."""
    only, n = (row["only_tuned"], row["only_default"]), row["replicates"]
    gap = (only[0] - only[1]) / n
    return 100.0 * gap, 100.0 * Z95 * math.sqrt(max(sum(only) / n - gap * gap, 1.0 / n**2) / n)


def _search_line(rows) -> str:
    first = rows[0]
    name = f"`{first['test']}`, {first['n']} rows, epsilon {first['epsilon']:g}"
    if not first["accepted"]:
        return f"| {name} | stays: no better point | F1 {first['default_rate']:.3f} where tuned | 0 | | |"
    changed = ", ".join(f"{key} {value:.3g}" for key, value in first["tuned"].items()).replace("_", " ")
    held_out = [row for row in rows if row["design"] != "tuned on"]
    scores = "; ".join(f"{r['design']} {r['default_rate']:.3f} -> {r['tuned_rate']:.3f}" for r in held_out)
    gaps = "; ".join(
        f"{100 * (r['tuned_rate'] - r['default_rate']):+.1f} ± {100 * Z95 * r['difference_se']:.1f}" for r in held_out
    )
    return f"| {name} | {changed} | F1: {scores} | {gaps} | | |"


def shares_table(rows: list[dict]) -> str:
    """Best share of epsilon for the sum over the table of n and epsilon, and what lies between it and 0.85."""
    columns = (
        "n",
        "epsilon",
        "tau of the test",
        "best share",
        "without the correction",
        "tau, share together",
        "power by the limit law: 0.85, best share, both",
        "power by replicates: 0.85 -> best share",
        "gain, points",
        "level by replicates: 0.85 -> best share",
    )
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in (row for row in rows if row.get("figure") == "shares"):
        law = " / ".join(f"{row[f'limit_{name}'][0]:.3f}" for name in ("default", "tuned", "both"))
        gap, half = gap_of({**row["power"], "replicates": row["replicates"]})
        both = ", ".join(f"{value:.3f}" for value in row["tau_and_share"])
        lines.append(
            f"| {row['n']} | {row['epsilon']:g} | {row['tau']:.3f} | {row['share']:.3f} | "
            f"{row['share_uncorrected']:.3f} | {both} | {law} | {_share_rates(row, 'power')} | "
            f"{gap:+.2f} ± {half:.2f} | {_share_rates(row, 'level')} |"
        )
    return "\n".join(lines) + "\n"


def _share_rates(row, name: str) -> str:
    return " -> ".join(f"{row[name][test] / row['replicates']:.3f}" for test in ("default", "tuned"))


def _table(rows, path: pathlib.Path) -> pathlib.Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    return path


def _gains(rows, path: pathlib.Path) -> pathlib.Path:
    figure, axes = figures.canvas(6.4, 5.6)
    rows = [row for row in rows if row["accepted"] and _keeps_level(row)]
    for null, colour, label in ((False, figures.BLUE, "power, held out"), (True, figures.RED, "level")):
        chosen = [row for row in rows if row["design"].startswith("null") is null and row["design"] != "tuned on"]
        axes.plot(
            [r["default_rate"] for r in chosen], [r["tuned_rate"] for r in chosen], "o", color=colour, label=label
        )
    axes.plot([0, 1], [0, 1], color=figures.GREY, linewidth=0.8)
    axes.set(xlabel="rejection rate, default", ylabel="rejection rate, tuned", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False)
    return figures.save(figure, path)


def _subsample(rows, path: pathlib.Path) -> pathlib.Path:
    figure, axes = figures.canvas(6.4, 3.6)
    epsilon = [row["epsilon"] for row in rows]
    for name, colour in (("noise_over_all_rows", figures.BLUE), ("noise_to_signal_over_all_rows", figures.RED)):
        axes.plot(epsilon, [row[name] for row in rows], "o-", color=colour, label=name.replace("_", " "))
    axes.axhline(1.0, color=figures.GREY, linewidth=0.8)
    axes.set(xlabel="epsilon of a round", ylabel="at the best rate")
    axes.legend(frameon=False)
    return figures.save(figure, path)
