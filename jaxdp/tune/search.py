"""Tuning of a test on simulated data: gradient for numbers, a grid for choices, and a check before anything is kept."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import _check, core
from jaxdp.simulate import power
from jaxdp.simulate.confounder import heteroscedastic_confounder, sine_confounder
from jaxdp.simulate.power import Design
from jaxdp.tune import descent
from jaxdp.tune.leaves import at, start_of, values_of
from jaxdp.tune.objective import Sample, SoftPower, without_effect
from jaxdp.tune.result import GAIN_DOUBT, LevelCheck, Tuned, in_words

SPREAD = 0.5  # sd of the restarts about the default, unconstrained units
CHUNK = 1000  # replicates checked at a time


def null_family(n: int) -> tuple[Design, ...]:
    """The declared nulls of continuous tests: two signs and complexities of the confounder, and skewed noise."""
    sine = functools.partial(sine_confounder, n=n, effect=0.0)
    return tuple(
        Design.of(design)
        for design in (
            functools.partial(sine, complexity=2.0, sign=-1.0),
            functools.partial(sine, complexity=4.0, sign=1.0),
            functools.partial(heteroscedastic_confounder, n=n, effect=0.0, complexity=2.0),
        )
    )


def tune(
    test,
    leaves: Sequence[str],
    *,
    design,
    key,
    nulls: Sequence[Any] | None = None,
    level: float = 0.05,
    replicates: int = 512,
    steps: int = 12,
    restarts: int = 2,
    optimizer: str = descent.LBFGS,
    grid: Mapping[str, Sequence[Any]] | None = None,
    softness: float | None = None,
    price: float = 20.0,
    check_replicates: int = 20_000,
    check_seconds: float = 30.0,
) -> Tuned:
    """Tunes numbers of a test for power at a design, at the same epsilon, and checks its level on fresh seeds.

    test: the default test. leaves: names out of `jaxdp.tune.LEAVES`. design: the alternative, a functools.partial with
    a float `effect`; simulated or public data only. key: simulation key; its halves serve tuning and the check.
    nulls: the family over which the level must hold, by default `null_family(n)` with the design's own null.
    optimizer: "lbfgs" or "adam". grid: static fields with their options, tried with common random numbers before the
    numbers are tuned. softness: of the soft decision, default the level. price: of soft false alarms; 0 leaves the
    objective unconstrained. check_replicates: of each design, for tuned and default test alike; fewer, but 2000 at
    least, where they take longer than check_seconds (a null): a quarter point of level takes 20 000 to be seen.
    Returns `Tuned`. Its test is the default where a null of the family breaks the level or no power is gained.
    Errors: ValueError, TypeError on public mistakes.
    """
    _check.in_range(0.0, 0.5, level=level)
    _check.at_least(1, replicates=replicates, restarts=restarts, check_replicates=check_replicates)
    _check.non_negative(check_seconds=check_seconds)
    design = Design.of(design)
    num_records = core.num_records(jax.eval_shape(design, jax.eval_shape(jax.random.key, 0)))
    family = _distinct(without_effect(design), *(null_family(num_records) if nulls is None else map(Design.of, nulls)))
    default_values = values_of(start_of(test, tuple(leaves), num_records)) if leaves or not grid else {}
    objective = SoftPower(level=level, softness=level if softness is None else softness, price=price)
    key_tune, key_restart, key_check = jax.random.split(key, 3)
    sample = Sample.draw((design, *family), key_tune, replicates)
    objective = dataclasses.replace(objective, baseline=_rates(objective, test, sample)[1:])
    chosen = best_option(objective, test, sample, grid or {})
    candidate = dataclasses.replace(test, **chosen)
    point, value = {}, _score(objective, candidate, sample)
    if leaves or not chosen:
        start = start_of(candidate, tuple(leaves), num_records)
        starts = descent.restarts_of(key_restart, start, restarts, SPREAD)
        points, values = _climb(objective, candidate, starts, sample, steps, optimizer)
        best = int(jnp.argmax(jnp.nan_to_num(values, nan=-jnp.inf)))
        point, value = jax.tree.map(lambda leaf: leaf[best], points), values[best]
    return _checked(
        test,
        at(candidate, point),
        (design, *family),
        level,
        key_check,
        (check_replicates, check_seconds),
        values=jax.device_get(values_of(point)),
        default_values=jax.device_get(default_values),
        options=chosen,
        objective_value=float(value),
        default_objective=float(_score(objective, test, sample)),
        tuned_on={
            "design": in_words(design),
            "nulls": [in_words(null) for null in family],
            "seed": jax.random.key_data(key).tolist(),
            "objective": f"soft power, softness {float(objective.softness):g}, false alarms at {price:g}",
            "replicates": replicates,
            "optimizer": f"{optimizer}, {steps} steps, {restarts} restarts",
        },
    )


def _distinct(*designs: Design) -> tuple[Design, ...]:
    """Each design once."""
    return tuple({in_words(design): design for design in designs}.values())


@functools.partial(jax.jit, static_argnums=(4, 5))
def _climb(objective, test, starts, sample, steps, optimizer):
    return descent.ascend(lambda point: objective(at(test, point), sample), starts, steps=steps, optimizer=optimizer)


@jax.jit
def _score(objective, test, sample):
    return objective(test, sample)


@jax.jit
def _rates(objective, test, sample):
    return objective.rates(test, sample)


def best_option(objective, test, sample, grid: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The static fields of a grid with the largest objective, all on the same replicates; {} for an empty grid."""
    options = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if len(options) == 1:
        return options[0]
    scores = [float(_score(objective, dataclasses.replace(test, **option), sample)) for option in options]
    return options[max(range(len(options)), key=scores.__getitem__)]


def _checked(test, tuned, designs, level, key, effort, *, objective_value, **facts) -> Tuned:
    """Counts on fresh replicates of both tests, and the verdict."""
    key_power, *keys = jax.random.split(key, len(designs))

    def check(design, key):
        found = _paired((tuned, test), design, key, *effort)
        return LevelCheck.of(in_words(design), found[0], found[1], level)

    checks = tuple(check(null, k) for null, k in zip(designs[1:], keys, strict=True))
    found = check(designs[0], key_power)
    broken = [part.null for part in checks if not part.holds]
    refused = f"refused: the level breaks on {', '.join(broken)}" if broken else ""
    if not refused and not found.rejects_more(GAIN_DOUBT):
        refused = "refused: no more power than the default on fresh replicates, beyond chance"
    return Tuned(
        test=test if refused else tuned,
        objective=objective_value,
        power=found.tuned,
        default_power=found.default,
        checks=checks,
        refused=refused,
        **facts,
    )


def _paired(tests, design, key, replicates: int, seconds: float):
    """P-values of both tests on the same fresh replicates, (r,) each: as many as fit into the time."""
    chunk, found, began = min(replicates, CHUNK), [], None
    for start in range(0, replicates, chunk):
        if began is not None and start >= 2 * CHUNK and time.perf_counter() - began > seconds:
            break
        each = [power.p_values(test, design, jax.random.clone(key), chunk, start=start) for test in tests]
        found.append(np.stack(jax.device_get(each)))
        began = time.perf_counter() if began is None else began  # the first chunk compiles
    return np.concatenate(found, axis=1)[:, :replicates]
