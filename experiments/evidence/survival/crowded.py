"""`log-rank` where most of the events lie in a small part of the bounds of the time (docs/theory/log_rank.md#crowded).

    python -m experiments.evidence.survival.crowded [--replicates 200]
    python -m experiments.evidence.survival.crowded --table     # the tables of the page, from the record

One JSON line per cell: event times are exponential, of one law in both groups ("null") or with proportional hazards;
censoring is independent of them and may differ between the groups. `rejected`: share of p < .05; `answered`: share with
an interval, `covered`: share of these that hold the true log ratio. `width`: median, of the intervals.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.record import append, command_line, fill, markdown, rows, settings
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.spec import Options

RECORD = Path(__file__).parent / "crowded.jsonl"
BEFORE = Path(__file__).parent / "crowded_before.jsonl"  # by the code of commit 0625b778: bins of equal width
PAGE = Path(__file__).parents[3] / "docs" / "theory" / "log_rank.md"
DOMAIN = Domain((Column(BINARY, 2),), (Column(), Column(BINARY, 2)))
SETTINGS = [(4000, 0.5), (4000, 1.0), (10_000, 4.0)]
HEAD = ("censoring", "mean", "most", "ratio", "n", "epsilon")
NEVER, SEED = 1e9, 77
CENSORING = {
    "the same for both": lambda group, u, e: 10.0 * e,
    "uniform(0, 12) against none": lambda group, u, e: jnp.where(group == 1, 12.0 * u, NEVER),
    "mean 8 against mean 60": lambda group, u, e: jnp.where(group == 1, 8.0 * e, 60.0 * e),
    "uniform(0, 26) against uniform(26, 52)": lambda group, u, e: 26.0 * u + jnp.where(group == 1, 0.0, 26.0),
    "mean 20 against none": lambda group, u, e: jnp.where(group == 1, 20.0 * e, NEVER),
    "none": lambda group, u, e: NEVER + u,
}
NULLS = [(name, 6.0, most, 1.0) for most in (182.0, 520.0) for name in CENSORING if name != "none"]
RATIOS = [("none", mean, 182.0, 2.0) for mean in (8.0, 15.0, 30.0, 60.0)]


def draw(key, n: int, censoring: str, mean: float, most: float, ratio: float) -> Data:
    """Groups of a half; times on [0, most]."""
    keys = jax.random.split(key, 4)
    group = jax.random.bernoulli(keys[0], 0.5, (n,)).astype(int)
    time_of = mean * jax.random.exponential(keys[1], (n,)) / jnp.where(group == 1, ratio, 1.0)
    until = CENSORING[censoring](group, jax.random.uniform(keys[2], (n,)), jax.random.exponential(keys[3], (n,)))
    scaled = jnp.clip(2.0 * jnp.minimum(time_of, until) / most - 1.0, -1.0, 1.0)
    return Data(group, jnp.stack([scaled, 1.0 * (time_of <= until)], axis=1), None, DOMAIN)


def measure(censoring: str, mean: float, most: float, ratio: float, n: int, epsilon: float, replicates: int) -> dict:
    """One row."""
    return simulated(epsilon, DOMAIN, n, lambda key: draw(key, n, censoring, mean, most, ratio), ratio, replicates)


def simulated(epsilon: float, domain: Domain, n: int, drawn, ratio: float, replicates: int) -> dict:
    """What the test for this domain says of data sets that `drawn` makes of keys."""
    started = time.process_time()
    test = catalogue.find("log-rank").build(epsilon, domain, Options(num_records=n))

    def one(key):
        key_data, key_run = jax.random.split(key)
        result = core.run(test, key_run, drawn(key_data))
        return result.p_value, *result.interval

    keys = jax.random.split(jax.random.key(SEED), replicates)
    p, low, high = map(np.asarray, jax.jit(lambda all_of: jax.lax.map(one, all_of, batch_size=10))(keys))
    answered, true = np.isfinite(low), np.log(ratio)
    inside = ((low <= true) & (true <= high))[answered]
    some = bool(answered.any())
    return {
        "rejected": round(float(np.mean(p < 0.05)), 4),
        "answered": round(float(answered.mean()), 4),
        "covered": round(float(inside.mean()), 4) if some else None,
        "width": round(float(np.median((high - low)[answered])), 4) if some else None,
        "replicates": replicates,
        "seconds": round(time.process_time() - started, 1),
    }


def _by_cell(path: Path) -> dict:
    return {tuple(row[name] for name in HEAD): row for row in rows(path)}


def _of_cells(head: str, cells, name, told) -> str:
    """Of each cell, and in brackets what it was before."""
    now, before = _by_cell(RECORD), _by_cell(BEFORE)
    lines = []
    for cell in cells:
        both = [(now.get((*cell, *setting)), before.get((*cell, *setting))) for setting in SETTINGS]
        lines.append(
            [name(cell), *(told(new) + (f" ({told(old)})" if old else "") if new else "" for new, old in both)]
        )
    return markdown([head, *settings(SETTINGS)], lines)


def table() -> str:
    """Both tables of the page."""

    def of_ratio(row) -> str:
        share = "" if row["answered"] > 0.995 else f" of {row['answered']:.2f}"
        return f"{row['covered']:.3f}{share}; {row['width']:.2f}; {row['rejected']:.2f}"

    nulls = _of_cells("censoring, upper bound", NULLS, lambda c: f"{c[0]}, {c[2]:g}", lambda r: f"{r['rejected']:.3f}")
    return f"{nulls}\n\n{_of_cells('mean time', RATIOS, lambda c: f'{c[1]:g}', of_ratio)}\n"


def main() -> None:
    parser = command_line(__doc__, 200)
    parser.add_argument("--out", type=Path, default=RECORD)
    asked = parser.parse_args()
    if asked.table:
        return fill(PAGE, "crowded", table())
    done = _by_cell(asked.out)
    todo = [(*cell, *setting) for setting in SETTINGS for cell in (*RATIOS, *NULLS) if (*cell, *setting) not in done]
    with jax.enable_x64(True):
        append(asked.out, (dict(zip(HEAD, key, strict=True)) | measure(*key, asked.replicates) for key in todo))


if __name__ == "__main__":
    main()
