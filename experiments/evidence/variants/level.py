"""Level of `score-test` and `best-variants` where covariates bend both lines, and where variants and cases are rare.

    python -m experiments.evidence.variants.level [--out level.jsonl] [--replicates 400] [--only TEXT] [--label TEXT]
    python -m experiments.evidence.variants.level --table  # the table of docs/theory/score_test.md

One JSON line per cell; a run goes on where the file ends. Covariates are uniform on [-1, 1]; allele frequencies are
maf (1 + 0.6 f(z)), the mean of a quantity is 0.3 f(z) with a residual sd of 0.2, the log odds of cases move by 1.2 f(z)
("both"), or one of the two moves with z itself instead ("one"). f: z ("linear"), z squared, |z - 0.3|, a step at 0.3,
each of them centred and scaled to the range of z; two thirds of that step (a jump of two residual sds), and a sawtooth.
Where a cell says so, covariates are normal on bounds of 3.5 sds.
"""

import functools
import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logit, ndtri

import jaxdp
from experiments.record import append, command_line, markdown, rows
from jaxdp.data.dataset import BINARY, Column, Data, Domain

HERE = Path(__file__).parent
LEVELS = (0.05, 0.01)
SHAPES = {
    "linear": lambda z: z,
    "square": lambda z: 1.5 * (z**2 - 1.0 / 3.0),
    "abs": lambda z: 1.5 * (jnp.abs(z - 0.3) - 0.545),
    "step": lambda z: jnp.where(z > 0.3, 1.0, -1.0) + 0.3,
    "two-sd step": lambda z: (jnp.where(z > 0.3, 2.0, -2.0) + 0.6) / 3.0,
    "sawtooth": lambda z: 2.0 * jnp.abs((2.5 * z) % 2.0 - 1.0) - 1.0,
}
SIZES, BUDGETS = (2000, 10_000), (1.0, 4.0)
SDS = 3.5  # of a normal covariate, where its bounds lie


def drawn(key, n: int, covariates: int, variants: int, binary: bool, law) -> Data:
    """Up to four variants, a phenotype (binary: cases and controls) and covariates on [-1, 1].

    law: numbers shape (place in `SHAPES`), bent_x, bent_y, maf, cases (their share), effect, and normal (covariates).
    """
    key_z, key_x, key_y = jax.random.split(key, 3)
    z = jax.random.uniform(key_z, (n, covariates), minval=-1.0)
    z = jnp.where(law["normal"], jnp.clip(ndtri(0.5 + 0.5 * z) / SDS, -1.0, 1.0), z)
    curve = jax.lax.switch(law["shape"], list(SHAPES.values()), z[:, 0])
    of_x = jnp.where(law["bent_x"], curve, z[:, 0])
    of_y = jnp.where(law["bent_y"], curve, z[:, 0])
    signs = jnp.array([1.0, -1.0, 0.5, 0.0])[None, :variants]
    rate = jnp.clip(law["maf"] * (1.0 + 0.6 * of_x[:, None] * signs), 0.0, 1.0)
    x = jnp.sum(jax.random.uniform(key_x, (2, n, variants)) < rate[None], axis=0) - 1.0
    moved = law["effect"] * (x[:, 0] + 1.0 - 2.0 * law["maf"])
    columns = (Column(),) * variants, (Column(),) * covariates
    if binary:
        y = jax.random.uniform(key_y, (n,)) < jax.nn.sigmoid(logit(law["cases"]) + 1.2 * of_y + moved)
        return Data(x, y.astype(float), z, Domain(columns[0], (Column(BINARY, 2),), columns[1]))
    y = 0.3 * of_y + 0.2 * (jax.random.normal(key_y, (n,)) + moved)
    return Data(x, jnp.clip(y, -1.0, 1.0), z, Domain(columns[0], (Column(),), columns[1]))


@functools.cache
def program(test: str, epsilon: float, n: int, covariates: int, variants: int, binary: bool):
    """Least p-values of many data sets of one law, compiled once for all laws."""

    def one(key, law):
        first, second = jax.random.split(key)
        best = test == "best-variants"
        asked = jaxdp.BestVariants(epsilon=epsilon, count=2) if best else jaxdp.ScoreTest(epsilon=epsilon)
        return jnp.min(jaxdp.run(asked, second, drawn(first, n, covariates, variants, binary, law)).p_value)

    return jax.jit(lambda keys, law: jax.lax.map(lambda key: one(key, law), keys, batch_size=20))


def rejected(cell: dict, replicates: int, seed: int) -> dict:
    """Share of p-values of the family at or below each level."""
    names = ("test", "epsilon", "n", "covariates", "variants")
    law = {name: float(cell[name]) for name in ("maf", "cases", "effect")}
    law |= {"shape": list(SHAPES).index(cell["shape"]), "bent_x": cell["bent"] != "y", "bent_y": cell["bent"] != "x"}
    law["normal"] = cell.get("normal", False)
    keys = jax.random.split(jax.random.key(seed), replicates)
    found = np.asarray(program(*(cell[name] for name in names), bool(cell["cases"]))(keys, law))
    return {f"rejected {level:g}": float(np.mean(found <= level)) for level in LEVELS} | {"flags": flags(cell)}


def flags(cell: dict) -> list[str]:
    """What the answer is flagged with, by public numbers."""
    law = {"shape": 0, "bent_x": True, "bent_y": True, "maf": 0.3, "cases": 0.2, "effect": 0.0, "normal": False}
    names = (cell["n"], cell["covariates"], cell["variants"], bool(cell["cases"]))
    data = jax.eval_shape(lambda key: drawn(key, *names, law), jax.random.key(0))
    best = cell["test"] == "best-variants"
    test = jaxdp.BestVariants(epsilon=cell["epsilon"], count=2) if best else jaxdp.ScoreTest(epsilon=cell["epsilon"])
    return list(test.validity(data).flags)


def cells():
    """Every cell: covariates that bend, then rare variants and cases, then power."""
    base = {
        "test": "score-test",
        "variants": 1,
        "bent": "both",
        "maf": 0.3,
        "cases": 0.0,
        "covariates": 1,
        "effect": 0.0,
    }
    for n in SIZES:
        for epsilon in BUDGETS:
            setting = base | {"n": n, "epsilon": epsilon}
            for shape in ("linear", "square", "abs", "step"):
                yield {**setting, "shape": shape}
            for shape in ("square", "step"):
                yield {**setting, "shape": shape, "cases": 0.2}
            yield {**setting, "shape": "square", "bent": "x"}
            for shape in ("linear", "square"):
                yield {**setting, "shape": shape, "covariates": 3}
            for shape in ("linear", "square"):
                yield {**setting, "shape": shape, "test": "best-variants", "variants": 4}
            for maf in (0.02, 0.05):
                for cases in (0.05, 0.2, 0.5):
                    yield {**setting, "shape": "linear", "maf": maf, "cases": cases}
                yield {**setting, "shape": "linear", "maf": maf}
            yield {**setting, "shape": "linear", "cases": 0.05}
            rare = {"test": "best-variants", "variants": 4, "maf": 0.02, "cases": 0.05}
            yield {**setting, "shape": "linear", **rare}
            strong = 0.02 if n > 2000 else 0.06
            yield {**setting, "shape": "linear", "effect": 2.0 * strong if epsilon < 2.0 else strong}
            yield {
                **setting,
                "shape": "linear",
                "cases": 0.2,
                "effect": 4.0 * strong if epsilon < 2.0 else 3.0 * strong,
            }
    for n, maf, cases in itertools.product(SIZES, (0.02, 0.05), (0.05, 0.2, 0.5)):
        # little noise hides the law of few carriers
        yield {**base, "n": n, "epsilon": 20.0, "shape": "linear", "maf": maf, "cases": cases}
    for n, epsilon in itertools.product((1000, 10_000, 50_000), (0.5, 1.0, 4.0)):
        setting = base | {"n": n, "epsilon": epsilon, "normal": True}
        for covariates in (1, 2):
            for shape in ("linear", "square", "abs", "two-sd step", "sawtooth"):
                yield {**setting, "shape": shape, "covariates": covariates}
        effect = {1000: 0.2, 10_000: 0.06, 50_000: 0.03}[n] * (1.0 if epsilon > 1.0 else 1.2 / epsilon**0.5)
        yield {**setting, "shape": "linear", "effect": effect}


def describe(cell: dict) -> str:
    """The law of a cell in words."""
    phenotype = f"{100 * cell['cases']:g} % cases" if cell["cases"] else "quantity"
    bent = {"both": "", "x": ", frequency alone", "y": ", phenotype alone"}[cell["bent"]]
    parts = [cell["test"], f"{cell['shape']}{bent}", phenotype, f"MAF {cell['maf']:g}"]
    parts += [f"{cell['covariates']} covariates"] if cell["covariates"] > 1 else []
    parts += ["normal"] if cell.get("normal") else []
    parts += ["effect"] if cell["effect"] else []
    return ", ".join(parts)


def table(rows: list[dict], normal: bool) -> str:
    """Markdown: p-values of at most 0.05 before and after, each with its flags in brackets, by setting.

    normal: of the cells with normal covariates, or of the others.
    """
    rows = [row for row in rows if row["cell"].get("normal", False) == normal]
    settings = sorted({(row["cell"]["n"], row["cell"]["epsilon"]) for row in rows})
    found: dict = {}
    for row in rows:
        place = describe(row["cell"]), row["cell"]["n"], row["cell"]["epsilon"]
        found.setdefault(place, {})[row["code"]] = row
    names = dict.fromkeys(place[0] for place in found)
    lines = ([name, *(shown(found.get((name, *setting), {})) for setting in settings)] for name in names)
    return markdown(["law", *(f"n = {n}, epsilon {epsilon:g}" for n, epsilon in settings)], lines)


def shown(codes: dict) -> str:
    """One entry of the table."""
    if "after" not in codes:
        return ""
    before, after = (
        f"{codes[code]['rejected 0.05']:.3f}" + flagged(codes[code]["flags"]) if code in codes else ""
        for code in ("before", "after")
    )
    return f"{before} → {after}".strip()


def flagged(flags: list[str]) -> str:
    """Flags in brackets, by their first words."""
    return f" [{', '.join(flag.partition(' for ')[0] for flag in flags)}]" if flags else ""


def main() -> None:
    """Measures what is missing from the record, or prints its table."""
    parser = command_line(__doc__, 400)
    parser.add_argument("--out", type=Path, default=HERE / "level.jsonl")
    parser.add_argument("--only", default="")
    parser.add_argument("--label", default="after")
    args = parser.parse_args()
    found = rows(args.out)
    if args.table:
        return print(table(found, False), table(found, True), sep="\n\n")
    known = {json.dumps([row["code"], row["cell"]], sort_keys=True) for row in found}
    for cell in cells():
        if json.dumps([args.label, cell], sort_keys=True) in known or args.only not in json.dumps(cell):
            continue
        known.add(json.dumps([args.label, cell], sort_keys=True))
        row = {"code": args.label, "cell": cell, "replicates": args.replicates, **rejected(cell, args.replicates, 7)}
        append(args.out, [row])


if __name__ == "__main__":
    main()
