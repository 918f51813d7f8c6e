"""What one column holds, and private bounds of it: jaxdp beside the libraries of others, in their own environments.

    python3 -m venv /tmp/main && /tmp/main/bin/pip install -r experiments/evidence/others/requirements-main.txt
    python -m experiments.evidence.compared.columns own=python main=/tmp/main/bin/python [NAME=PYTHON ...]

Environments: own (jaxdp's), main (OpenDP, diffprivlib), smartnoise: requirements-NAME.txt of
`experiments/evidence/others`; those not given are not run. One JSON line per (part, n, law, method); a run goes on
where the file ends. Parts: "counts" of six levels and of missing cells, "quartiles" on public bounds, both at epsilon
1, and "bounds" of the columns of `experiments.evidence.bounds` at epsilon 0.2, all for the replacement of one record;
`packages.py` says how a library's own relation is converted, `spent` is its own account. `error`: the median distance
to the count, or to the quartile of the records in sd of the law; `covered` of `answered` stated 95 % intervals hold
it. Of bounds `usable` and `width` (median, over the central 98 %) are those of that experiment. The noise of OpenDP
and SmartNoise has no seed.
"""

import argparse
import dataclasses
import json
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import jaxdp
from experiments.evidence.bounds.__main__ import KINDS, usable
from experiments.record import append, rows

HERE = Path(__file__).parent
RECORD = HERE / "columns.jsonl"
LIBRARIES = {  # of each environment, as `packages.py` and as the page call them
    "own": {"jaxdp": "jaxdp"},
    "main": {"opendp": "OpenDP", "diffprivlib": "diffprivlib"},
    "smartnoise": {"smartnoise": "SmartNoise"},
}
SHARES = (0.39, 0.29, 0.15, 0.09, 0.04, 0.01, 0.03)  # of six levels, and of missing cells
LETTERS = "abcdef"
WIDE = (-1e6, 1e6)  # where bounds may lie, for peers that have to be given a range: it holds all values here


@dataclasses.dataclass(frozen=True)
class Part:
    """laws: name -> (generator, n) -> values; deviations: of a law, the unit of errors."""

    what: str
    sizes: tuple[int, ...]
    epsilon: float
    laws: dict[str, Callable]
    ends: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    deviations: dict[str, float] = dataclasses.field(default_factory=dict)


PARTS = {
    "counts": Part("counts", (1000,), 1.0, {"six levels": lambda g, n: g.choice(len(SHARES), n, p=SHARES)}),
    "quartiles": Part(
        "quartiles",
        (1000, 10_000),
        1.0,
        {
            "normal": lambda g, n: np.clip(g.normal(50.0, 10.0, n), 0.0, 100.0),
            "skewed": lambda g, n: np.clip(g.lognormal(0.0, 0.8, n), 0.0, 20.0),
        },
        {"normal": (0.0, 100.0), "skewed": (0.0, 20.0)},
        {"normal": 10.0, "skewed": float(np.exp(0.32) * np.sqrt(np.expm1(0.64)))},
    ),
    "bounds": Part("bounds", (1000, 10_000), 0.2, KINDS),
}


def described(values, epsilon: float, column: dict, key):
    """What `jaxdp.describe` says of one column."""
    found = jaxdp.describe({"x": values}, schema={"columns": {"x": column}}, epsilon=epsilon, key=key)
    return found.columns[0]


def own(part: Part, law: str, sets, seed: int):
    """What `theirs` is of the others."""
    if part.what == "counts":
        words = np.array([*LETTERS, ""], dtype=object)  # an empty cell is missing
        tables, column = [words[one] for one in sets], {"kind": "categorical", "levels": [*LETTERS]}
        read = lambda found: [*found["levels"], found["missing"]]  # noqa: E731
        value = "count"
    else:
        tables, column = list(sets), {"kind": "continuous", "bounds": list(part.ends.get(law, ()))}
        read, value = (lambda found: found["quantiles"]), "value"

    def answer(table, key):
        if part.what == "bounds":
            drafted = jaxdp.draft_schema({"x": table}, columns=["x"], epsilon=part.epsilon, key=key)
            return [drafted.columns["x"].get("bounds") or (np.nan, np.nan)]
        cells = read(described(table, part.epsilon, column, key))
        return [[cell[name] for cell in cells] for name in (value, "low", "high")]

    first, *keys = jax.random.split(jax.random.key(seed), len(sets) + 1)
    answer(tables[0], first)  # compiles
    start = time.perf_counter()
    found = [answer(*both) for both in zip(tables, keys, strict=True)]
    seconds = (time.perf_counter() - start) / len(sets)
    method = "draft-schema" if part.what == "bounds" else "describe"
    yield f"jaxdp: {method}", np.swapaxes(np.array(found, float), 0, 1), seconds, {}


def theirs(python: str, library: str, title: str, part: Part, law: str, sets, seed: int):
    """(method, answers and the ends of their intervals if there are some, seconds of one, what else is recorded)."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "asked.npz", Path(folder) / "drawn.npz"
        about = {"what": part.what, "epsilon": part.epsilon, "levels": len(SHARES), "seed": seed}
        np.savez(source, sets=sets, ends=part.ends.get(law, WIDE), **about)
        module = "experiments.evidence.compared.packages"
        subprocess.run([python, "-m", module, library, source, out], cwd=HERE.parents[2], check=True)
        with np.load(out) as file:
            drawn = dict(file)
    version = str(drawn.pop("version"))
    for method in (name for name in drawn if not name.endswith(",about")):
        seconds, reach, spent = drawn[f"{method},about"].tolist()
        values = drawn[method]
        ends = [values - reach, values + reach] if np.isfinite(reach) else []
        more = {"version": version} | ({"spent": round(spent, 6)} if np.isfinite(spent) else {})
        yield f"{title}, {method}", np.stack([values, *ends]), seconds, more


def truth_of(part: Part, one: np.ndarray) -> np.ndarray:
    """Counts, or the three quartiles of the records."""
    if part.what == "counts":
        return np.bincount(one, minlength=len(SHARES)).astype(float)
    return np.quantile(one, (0.25, 0.5, 0.75), method="inverted_cdf")


def summary(part: Part, law: str, sets, found: np.ndarray) -> dict:
    """The numbers of a row; found: answers, and the ends of their intervals where there are some."""
    if part.what == "bounds":
        pairs = [None if np.isnan(pair).any() else pair for pair in found[0]]
        widths = [
            (pair[1] - pair[0]) / np.subtract(*np.quantile(one, (0.99, 0.01)))
            for one, pair in zip(sets, pairs, strict=True)
            if pair is not None
        ]
        good = sum(usable(one, pair) for one, pair in zip(sets, pairs, strict=True))
        return {"usable": good, "answered": len(widths), "width": _rounded(np.median(widths)) if widths else None}
    truth, unit = np.array([truth_of(part, one) for one in sets]), part.deviations.get(law, 1.0)
    row = {"error": _rounded(np.nanmedian(np.abs(found[0] - truth)) / unit)}
    if len(found) == 1:
        return row | {"answered": 0}
    low, high = found[1:]
    inside = int(np.sum((low <= truth) & (truth <= high)))
    return row | {"answered": truth.size, "covered": inside, "width": _rounded(np.median(high - low) / unit)}


def _rounded(value) -> float:
    return float(f"{value:.4g}")


def measured(environments: dict[str, str], replicates: int, names, done):
    """One row for each method that is not done."""
    for name in names:
        part = PARTS[name]
        for n, law in ((n, law) for n in part.sizes for law in part.laws):
            head = {"part": name, "n": n, "epsilon": part.epsilon, "law": law}
            seed = zlib.crc32(json.dumps(head).encode())
            rng = np.random.default_rng(seed)
            sets = np.stack([part.laws[law](rng, n) for _ in range(replicates)])
            for environment, python in environments.items():
                for library, title in LIBRARIES[environment].items():
                    if (name, n, law, title) in done:
                        continue
                    asked = part, law, sets, seed
                    answers = own(*asked) if library == "jaxdp" else theirs(python, library, title, *asked)
                    for method, found, seconds, more in answers:
                        yield {
                            **head,
                            "method": method,
                            "seed": seed,
                            "replicates": len(sets),
                            **summary(part, law, sets, found),
                            "seconds": float(f"{seconds:.2g}"),
                            **more,
                        }


def library_of(method: str) -> str:
    """As the page calls it."""
    return method.split(":")[0].split(",")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    environments = dict(one.split("=", 1) for one in args.environments)
    done = {(row["part"], row["n"], row["law"], library_of(row["method"])) for row in rows(args.out)}
    append(args.out, measured(environments, args.replicates, args.parts, done))


if __name__ == "__main__":
    main()
