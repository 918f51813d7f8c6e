"""Tuning of a test on simulated data: gradient for numbers, a grid for choices, and a check before anything is kept."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core
from jaxdp._base import check as _check
from jaxdp.simulate import power
from jaxdp.simulate.designs.confounder import heteroscedastic_confounder, sine_confounder
from jaxdp.simulate.engine.replicates import Design
from jaxdp.tune import descent
from jaxdp.tune.objective import Sample, SoftPower, without_effect
from jaxdp.tune.result import GAIN_DOUBT, LOSS_DOUBT, LevelCheck, Tuned, in_words
from jaxdp.tune.tunable import at, start_of, values_of

SPREAD = 0.5  # sd of the restarts about the default, unconstrained units
CHUNK = 1000  # replicates checked at a time
MAX_CHOICES = 3  # of a grid that are checked one after the other


def null_family(n: int) -> tuple[Design, ...]:
    """The declared nulls of continuous tests: confounders of both signs up to a fast wave, and skewed noise.

    Wide on purpose: what is used lies inside, such as a slower wave than the fastest one.
    """
    sine = functools.partial(sine_confounder, n=n, effect=0.0)
    skewed = functools.partial(heteroscedastic_confounder, n=n, effect=0.0)
    return tuple(
        Design.of(design)
        for design in (
            functools.partial(sine, complexity=2.0, sign=-1.0),
            functools.partial(sine, complexity=4.0, sign=1.0),
            functools.partial(sine, complexity=6.0, sign=-1.0),
            functools.partial(skewed, complexity=0.5, sign=1.0),
            functools.partial(skewed, complexity=2.0, sign=-1.0),
        )
    )


def tune(
    test: Any,
    leaves: Sequence[str],
    *,
    design: Callable[..., Any],
    key: jax.Array,
    nulls: Sequence[Any] | None = None,
    alternatives: Sequence[Any] = (),
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
    alternatives: other designs on which the tuned test may not lose power, beyond chance (one in a hundred); they are
    not tuned on.
    optimizer: "lbfgs" or "adam". grid: static fields with their options, tried with common random numbers before the
    numbers are tuned. softness: of the soft decision, default the level. price: of soft false alarms; 0 leaves the
    objective unconstrained. check_replicates: of each design, for tuned and default test alike; fewer, but 2000 at
    least, where they take longer than check_seconds (a null): a quarter point of level takes 20 000 to be seen.
    Returns `Tuned`. Where a null of the family breaks the level (`LevelCheck.holds`, each and together), no power is
    gained or some is lost on an alternative, the tuned numbers are checked without the choices of the grid, then the
    choices alone; where these fail too its test is the default.
    Errors: ValueError, TypeError on public mistakes.
    """
    _check.in_range(0.0, 0.5, level=level)
    _check.at_least(1, replicates=replicates, restarts=restarts, check_replicates=check_replicates)
    _check.non_negative(check_seconds=check_seconds)
    _require_grid(test, grid or {})
    design = Design.of(design)
    num_records = core.num_records(jax.eval_shape(design, jax.eval_shape(jax.random.key, 0)))
    nulls = (without_effect(design), *(null_family(num_records) if nulls is None else map(Design.of, nulls)))
    family = {in_words(null): null for null in nulls}.values()  # each once
    default_values = values_of(start_of(test, tuple(leaves), num_records)) if leaves or not grid else {}
    objective = SoftPower(level=level, softness=level if softness is None else softness, price=price)
    key_tune, key_restart, key_check = jax.random.split(key, 3)
    sample = Sample.draw((design, *family), key_tune, replicates)
    objective = dataclasses.replace(objective, baseline=_rates(objective, test, sample)[1:])
    ranked = ranked_options(objective, test, sample, grid or {})
    chosen, default_score = ranked[0][0], float(_score(objective, test, sample))
    # what is checked in turn, until one passes: everything tuned, the numbers alone, then choices alone, best first
    tries: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (option, {}) for option, score in ranked[:MAX_CHOICES] if option and score > default_score
    ]
    if leaves or not chosen:
        candidate = dataclasses.replace(test, **chosen)
        start = start_of(candidate, tuple(leaves), num_records)
        starts = descent.restarts_of(key_restart, start, restarts, SPREAD)
        stacked, values = _climb(objective, candidate, starts, sample, steps, optimizer)
        best = int(jnp.argmax(jnp.nan_to_num(values, nan=-jnp.inf)))
        point = jax.tree.map(lambda leaf: leaf[best], stacked)
        tries = [(chosen, point), *([({}, point)] if chosen else []), *tries]
    found: list[Tuned] = []
    for number, (option, point) in enumerate(tries or [(chosen, {})]):
        tuned = at(dataclasses.replace(test, **option), point)
        found.append(
            _checked(
                test,
                tuned,
                (design, *family),
                tuple(map(Design.of, alternatives)),
                level,
                jax.random.fold_in(key_check, number),
                (check_replicates, check_seconds),
                tried=jax.device_get(values_of(point)),
                default_values=jax.device_get(default_values),
                tried_options=option,
                objective_value=float(_score(objective, tuned, sample)),
                default_objective=default_score,
                tuned_on={
                    "design": in_words(design),
                    "nulls": [in_words(null) for null in family],
                    "no power lost on": [in_words(other) for other in map(Design.of, alternatives)],
                    "seed": jax.random.key_data(key).tolist(),
                    "objective": f"soft power, softness {float(objective.softness):g}, false alarms at {price:g}",
                    "replicates": replicates,
                    "optimizer": f"{optimizer}, {steps} steps, {restarts} restarts",
                    "refused before": [in_figures(earlier) for earlier in found],
                },
            )
        )
        if found[-1].accepted:
            break
    return found[-1] if found[-1].accepted else found[0]


def _require_grid(test: Any, grid: Mapping[str, Sequence[Any]]) -> None:
    """Raises ValueError for a name that is no field of the test, and for a field without options."""
    fields = [field.name for field in dataclasses.fields(test) if field.init]
    for name, options in grid.items():
        if name not in fields:
            raise ValueError(f"grid: {type(test).__name__} has no field {name!r}; it has {', '.join(fields)}.")
        if not len(options):
            raise ValueError(f"grid: {name} has no option; give at least one, or leave it out.")


def in_figures(tuned: Tuned) -> str:
    """What was refused, and why."""
    values = {**tuned.tried, **tuned.tried_options}
    return f"{', '.join(f'{name} = {np.asarray(value).tolist()}' for name, value in values.items())}: {tuned.refused}"


@functools.partial(jax.jit, static_argnums=(4, 5))
def _climb(objective, test, starts, sample, steps, optimizer):
    return descent.ascend(lambda point: objective(at(test, point), sample), starts, steps=steps, optimizer=optimizer)


@jax.jit
def _score(objective, test, sample):
    return objective(test, sample)


@jax.jit
def _rates(objective, test, sample):
    return objective.rates(test, sample)


def ranked_options(objective, test, sample, grid: Mapping[str, Sequence[Any]]) -> list[tuple[dict[str, Any], float]]:
    """The static fields of a grid with their objectives, best first, all on the same replicates; {} for no grid."""
    options = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    scored = [
        (option, float(_score(objective, dataclasses.replace(test, **option), sample)))
        for option in _with_progress(options, "tuning: choices")
    ]
    return sorted(scored, key=lambda pair: -pair[1])


def _checked(test, tuned, designs, alternatives, level, key, effort, *, objective_value, **facts) -> Tuned:
    """Counts on fresh replicates of both tests, and the verdict: power gained, level kept, no power lost elsewhere."""
    key_power, key_null, key_other = jax.random.split(key, 3)

    def check(design, key, number):
        found = _paired((tuned, test), design, jax.random.fold_in(key, number), *effort)
        return LevelCheck.of(in_words(design), found[0], found[1], level)

    found, refused, checks = check(designs[0], key_power, 0), "", []
    if not found.rejects_more(GAIN_DOUBT):
        refused = "refused: no more power than the default on fresh replicates, beyond chance"
    for number, null in enumerate(() if refused else designs[1:]):
        checks.append(check(null, key_null, number))
        if not checks[-1].holds:
            refused = f"refused: the level breaks on {checks[-1].null}"
            break
    if checks and not refused and not LevelCheck.together(checks).holds:
        refused = "refused: the level breaks on all nulls together"
    for number, other in enumerate(() if refused else alternatives):
        if check(other, key_other, number).rejects_less(LOSS_DOUBT):
            refused = f"refused: power is lost on {in_words(other)}"
            break
    return Tuned(
        test=test if refused else tuned,
        objective=objective_value,
        power=found.tuned,
        default_power=found.default,
        checks=tuple(checks),
        refused=refused,
        **facts,
    )


def _paired(tests, design, key, replicates: int, seconds: float):
    """P-values of both tests on the same fresh replicates, (r,) each: as many as fit into the time."""
    chunk, found, began = min(replicates, CHUNK), [], None
    for start in _with_progress(range(0, replicates, chunk), "tuning: fresh replicates"):
        if began is not None and start >= 2 * CHUNK and time.perf_counter() - began > seconds:
            break
        each = [power.p_values(test, design, jax.random.clone(key), chunk, start=start) for test in tests]
        found.append(np.stack(jax.device_get(each)))
        began = time.perf_counter() if began is None else began  # the first chunk compiles
    return np.concatenate(found, axis=1)[:, :replicates]


def _with_progress(items, what: str):
    """The items, with a progress bar on a terminal once they take longer than two seconds."""
    from tqdm import tqdm

    return tqdm(items, desc=what, unit="part", delay=2.0, leave=False, disable=None)
