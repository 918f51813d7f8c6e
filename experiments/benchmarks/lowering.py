"""What a GPU would be given: every test, search kernel and compiled statistic lowered for `cuda`, without a GPU.

    python -m experiments.benchmarks.lowering     # writes results/lowering/cuda.json; about two minutes
    python -m experiments.benchmarks.lowering --extend     # only what has no row yet; the other rows stay as they are

A test's program is one replicate of an example of the catalogue: draw data of n records, statistic, noise, p-value.
Kernels are the compiled functions of `jaxdp.discovery` and `jaxdp.statistics` as every search calls them on a small
table. For each: operations with float64 in a program that was asked for in float32, calls back to the host (one to
Python stops the lowering by itself), scatters, sorts, calls of the device's libraries; flops and bytes by XLA's cost
analysis before fusion (upper bounds of what moves, good for comparing a program with itself). The figures depend on
JAX's version, which the record names. Kendall's and Spearman's tests count in float64 by intention: products of
counts reach 10^14, which float32 cannot hold.
"""

import argparse
import contextlib
import functools
import importlib
import json
import pathlib
import pkgutil
import re
import sys
from collections.abc import Container, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp import core
from jaxdp.audit import cases
from jaxdp.data.records import as_records
from jaxdp.discovery import spec as searches

PLATFORM = "cuda"
RECORD = pathlib.Path(__file__).parent / "results" / "lowering" / f"{PLATFORM}.json"
RISE = 1.1  # above this share of the record is a rise; what shares a program with another may move by one or two
COUNTED = ("float64", "host_calls", "scatters", "sorts")
PREDICTED = ("flops", "bytes")
_CALL = re.compile(r"custom_call @(\w+)")


def names() -> list[str]:
    """Examples of the catalogue that are tests: one program from data to p-value."""
    found = cases.all_examples().items()
    return [name for name, one in found if isinstance(one.build(1.0, cases.RECORDS), core.PrivateTest)]


def of_example(name: str) -> dict[str, Any]:
    """The figures of one replicate of an example."""
    found = cases.find(name)
    test = found.build(1.0, cases.RECORDS)

    def replicate(key):
        key_data, key_test = jax.random.split(key)
        return core.run(test, key_test, found.example.data(key_data, cases.RECORDS)).p_value

    return figures(jax.jit(replicate).trace(jax.eval_shape(jax.random.key, 0)))


def figures(traced) -> dict[str, Any]:
    """What the lowered program holds."""
    lowered = traced.lower(lowering_platforms=(PLATFORM,))
    lines = lowered.as_text().splitlines()
    called = sorted({name for line in lines for name in _CALL.findall(line)})
    cost = lowered.cost_analysis() or {}
    return {
        "float64": sum("f64>" in line and "stablehlo." in line for line in lines),
        "host_calls": sum("callback" in name for line in lines for name in _CALL.findall(line)),
        "scatters": sum('"stablehlo.scatter"' in line for line in lines),
        "sorts": sum('"stablehlo.sort"' in line for line in lines),
        "flops": float(cost.get("flops", 0.0)),
        "bytes": float(cost.get("bytes accessed", 0.0)),
        "libraries": [name for name in called if "callback" not in name],
    }


class _Recorder:
    """A compiled function that notes how it is called first."""

    def __init__(self, function, name: str, calls: dict[str, tuple]):
        self.function, self.name, self.calls = function, name, calls

    def __call__(self, *arguments, **named):
        if self.name not in self.calls:
            self.calls[self.name] = (self.function, _shapes(arguments), _shapes(named), jax.config.jax_enable_x64)
        return self.function(*arguments, **named)

    def __getattr__(self, name: str):
        return getattr(self.function, name)


def _shapes(tree):
    def shape(leaf):
        return jax.typeof(leaf) if isinstance(leaf, jax.Array) else leaf

    return jax.tree.map(shape, tree)


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, tuple]]:
    """name -> (function, arguments' shapes, whether in 64 bits) of the compiled functions that are called meanwhile."""
    calls: dict[str, tuple] = {}
    replaced = []
    for package in ("jaxdp.discovery", "jaxdp.statistics"):
        found = importlib.import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            replaced += [(importlib.import_module(module.name), name) for name in _compiled(module.name)]
    before = [(module, name, getattr(module, name)) for module, name in replaced]
    for module, name, function in before:
        place = f"{function.__module__.removeprefix('jaxdp.')}.{function.__name__}"
        setattr(module, name, _Recorder(function, place, calls))
    try:
        yield calls
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def _compiled(module: str) -> list[str]:
    """Names in a module that are compiled functions."""
    values = vars(importlib.import_module(module)).items()
    return [name for name, value in values if hasattr(value, "lower") and hasattr(value, "trace") and callable(value)]


def kernels(examples: Sequence[str], known: Container[str] = ()) -> dict[str, dict[str, Any]]:
    """The figures of the compiled functions that searches call, and those inside these examples' programs.

    known: kernels that are left out.
    """
    jax.clear_caches()  # a program that was traced before would not be called through the recorders
    with recorded() as calls:
        for run in searches.searches().values():
            with contextlib.suppress(ValueError, TypeError):  # one that needs more than a budget, or other columns
                run(jax.random.key(0), table(), epsilon=5.0, **({"delta": 1e-6} if "delta" in run.spec.needs else {}))
        for name in examples:
            found = cases.find(name)
            data = functools.partial(found.example.data, n=cases.RECORDS)
            jax.eval_shape(lambda key, f=found, d=data: core.run(f.build(1.0, cases.RECORDS), key, d(key)).p_value,
                           jax.random.key(0))  # fmt: skip
    result = {}
    for name, (function, arguments, named, wide) in sorted(calls.items()):
        if name in known:
            continue
        with jax.enable_x64(wide):
            result[name] = figures(function.trace(*arguments, **named)) | {"asked": "float64" if wide else "float32"}
    return result


def table():
    """Five binary columns in a chain."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 400)
    columns = [first]
    for _ in range(4):
        columns.append(np.where(rng.random(400) < 0.2, 1 - columns[-1], columns[-1]))
    return as_records(np.stack(columns, axis=1), (2,) * 5)


def rises(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Sentences on what a program has more of than the record says."""
    found = [f"{name} {before[name]} -> {now[name]}" for name in COUNTED if now[name] > RISE * before[name]]
    found += [f"{name} {before[name]:.4g} -> {now[name]:.4g}" for name in PREDICTED if now[name] > RISE * before[name]]
    return found


def extended(before: dict[str, Any]) -> dict[str, Any]:
    """The rows of before, and of what has none yet; those of examples that are gone are left out."""
    kept = {name: row for name, row in before.items() if "." not in name}
    examples = {name: kept.get(name) or of_example(name) for name in names()}
    held = {name: row for name, row in before.items() if "." in name}
    return examples | dict(sorted((held | kernels([*examples.keys() - kept.keys()], held)).items()))


def main(arguments: list[str] | None = None) -> int:
    """Writes the record and says what rose."""
    parser = argparse.ArgumentParser(prog="python -m experiments.benchmarks.lowering", description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=RECORD, help="file")
    parser.add_argument(
        "--extend", action="store_true", help="add what has no row yet, and drop examples that are gone"
    )
    given = parser.parse_args(arguments)
    out = given.out
    record = json.loads(out.read_text()) if out.exists() else {"jax": jax.__version__, "programs": {}}
    if given.extend and record["jax"] != jax.__version__:
        parser.error(f"the record is of JAX {record['jax']}, this is {jax.__version__}: run it without --extend.")
    before = record["programs"]
    programs = extended(before) if given.extend else {name: of_example(name) for name in names()} | kernels(names())
    head = {"platform": PLATFORM, "jax": jax.__version__, "records": cases.RECORDS}
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in programs.items())
    out.write_text(f'{json.dumps(head)[:-1]}, "programs": {{\n{lines}\n}}}}\n')
    for name, found in programs.items():
        for rise in rises(before.get(name, found), found):
            print(f"{name}: {rise}")
    print(f"{len(programs)} programs, wrote {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
