"""Audits of other libraries' estimates: claimed epsilon against a lower bound from runs on two neighbours.

    python3 -m venv /tmp/main && /tmp/main/bin/pip install -r experiments/evidence/others/requirements-main.txt
    python -m experiments.evidence.others main=/tmp/main/bin/python own=python [NAME=PYTHON ...]   # measures
    python -m experiments.evidence.others                                               # the page's tables again

Environments: main, smartnoise, tumult (requirements-NAME.txt), since their pins exclude each other, and own, jaxdp's,
for what is re-enacted; those not given are not run. The draws are made there by `draw.py`, the bounds here by
`jaxdp.audit`. Rows replace those of the same claim in others.jsonl. **A bound above a claim that nobody has reported in
public is not written there, but to --kept-back: the maintainers are told first.** --only takes parts of names.
"""

import argparse
import json
import math
import subprocess
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

from experiments.evidence.others.claims import CLAIMS, REENACTED, Claim, environment
from experiments.evidence.others.estimate import bound
from experiments.record import fill, provenance
from experiments.record import rows as read

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RECORD, LEVELS = HERE / "others.jsonl", HERE / "levels.jsonl"
PAGE = ROOT / "docs" / "evidence" / "others.md"
AUDITS = ROOT / "experiments" / "evidence" / "audit" / "audit.json"
KEPT_BACK = ROOT / "out" / "others_kept_back.jsonl"
PAPERS = {  # of the audits of flawed mechanisms
    "algorithm-2": "Priv-PC, Algorithm 2, one firing after a refresh at n/m = 20",
    "priv_pc_paper": "Priv-PC as its authors run it, one round, 1200 records",
    "algorithm-3": "Unit circle, Algorithm 3 as printed, 16 accepted tests",
    "micr-geom": "MICr-Geom, n = 8, three tables",
    "noisy-permutation": "A whole noisy permutation rank, five copies",
}


def measure(claim: Claim, python: str) -> list[dict]:
    """One row for each pair of a claim."""
    seed = zlib.crc32(" ".join(claim.key).encode()) % 2**31
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "drawn.npz"
        module = "experiments.evidence.others.draw"
        subprocess.run([python, "-m", module, *claim.key, str(seed), str(out)], cwd=ROOT, check=True)
        with np.load(out) as file:
            drawn = dict(file)
    head = dict(zip(("library", "function", "relation"), claim.key, strict=True))
    rows = []
    for place, name in enumerate(claim.pairs):
        epsilon, delta = np.maximum(drawn[f"{place},0,spent"], drawn[f"{place},1,spent"]).tolist()
        found = bound(drawn[f"{place},0"], drawn[f"{place},1"], delta=delta)
        row = head | {"version": str(drawn["version"]), "pair": name, "claimed": epsilon, "delta": delta}
        row |= {"at_least": round(found.epsilon, 4), "event": found.event, "alpha": found.alpha}
        rows.append(row | {"runs": claim.runs, "seed": seed, "known": claim.known} | provenance())
    rows[0]["seconds"] = round(time.perf_counter() - started, 1)
    return rows


def surprising(row: dict) -> bool:
    """Whether the bound passes a claim, and no public report says so."""
    return row["at_least"] > row["claimed"] and not row["known"]


def write(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def merged(path: Path, claim: Claim, fresh: list[dict]) -> None:
    """Writes these rows in place of the claim's old ones."""
    old = [row for row in read(path) if (row["library"], row["function"], row["relation"]) != claim.key]
    if fresh or len(old) < len(read(path)):
        write(path, old + fresh)


def lower(value: float) -> str:
    """A lower bound with two decimals, rounded down; quadratures are right to 1e-9."""
    return f"{math.floor((value + 1e-9) * 100) / 100:.2f}"


def table(rows: list[dict]) -> str:
    """One line for each claim: the pair that shows most."""
    lines = [
        "| library | function | neighbours | claimed | at least | pair that shows it | runs a side |",
        "|---|---|---|---|---|---|---|",
    ]
    for claim in CLAIMS:
        mine = [row for row in rows if (row["library"], row["function"], row["relation"]) == claim.key]
        if mine:
            best = max(mine, key=lambda row: row["at_least"])
            shown = lower(best["at_least"])
            if best["known"]:
                shown = f"**{shown}** ([reported]({best['known']}))"
            name, runs = f"{best['library']} {best['version']}", f"{best['runs']:,}".replace(",", " ")
            name += ", re-enacted" if best["library"] in REENACTED else ""
            cells = (name, best["function"], best["relation"], f"{best['claimed']:.3g}", shown, best["pair"], runs)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_papers(audits: dict) -> str:
    """Published mechanisms at a claim of 1, from the record of audits."""
    lines = ["| published mechanism | claimed | at least | shown by |", "|---|---|---|---|"]
    found = {row["method"]: row for row in audits["flawed"] if row["claimed"] == 1}
    for method, name in PAPERS.items():
        row = found[method]
        shown = f"{row['runs']} runs" if row["runs"] else row["mode"]
        lines.append(f"| {name} | 1 | {lower(row['lower'])} | {shown} |")
    return "\n".join(lines)


def table_of_levels(rows: list[dict]) -> str:
    lines = ["| library | p-value | null | at most 0.05 | data sets |", "|---|---|---|---|---|"]
    for row in rows:
        null = f"{row['trials']} trials, {row['p']:g}"
        rate = row["rejections"] / row["replicates"]
        name = f"{row['library']} {row['version']}"
        lines.append(f"| {name} | `{row['function']}` | {null} | {rate:.3f} | {row['replicates']} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="NAME=PYTHON", help="the interpreter of each environment")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names")
    parser.add_argument("--kept-back", type=Path, default=KEPT_BACK)
    args = parser.parse_args()
    pythons = dict(word.split("=", 1) for word in args.pythons)
    for claim in CLAIMS:
        wanted = any(part in " ".join(claim.key) for part in args.only)
        if wanted and environment(claim.library) in pythons:
            rows = measure(claim, pythons[environment(claim.library)])
            merged(RECORD, claim, [row for row in rows if not surprising(row)])
            merged(args.kept_back, claim, [row for row in rows if surprising(row)])
            largest = max(row["at_least"] for row in rows)
            print(*claim.key, f"at least {largest} of {rows[0]['claimed']:.3g}", flush=True)
    if "main" in pythons and args.only == [""]:
        module = [pythons["main"], "-m", "experiments.evidence.others.levels", "20"]
        done = subprocess.run(module, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        commit = {"commit": provenance()["commit"]}
        write(LEVELS, [json.loads(line) | commit for line in done.splitlines()])
    fill(PAGE, "claims", table(read(RECORD)))
    fill(PAGE, "levels", table_of_levels(read(LEVELS)))
    fill(PAGE, "papers", table_of_papers(json.loads(AUDITS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
