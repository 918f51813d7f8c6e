"""The measurements, one function each: rows go to the recorder as they are measured."""

import dataclasses
import functools
import time

import jax
import numpy as np

from experiments.evidence.tuning.config import (
    CASES,
    Config,
    declared_alternatives,
    declared_nulls,
    held_out,
    held_out_nulls,
    tuned_on,
)
from experiments.evidence.tuning.searches import searches
from experiments.evidence.tuning.shares import shares
from jaxdp import tune
from jaxdp.simulate import power

LEVEL = 0.05


def subsample(recorder, config: Config) -> None:
    """The sieve's noise by sub-sampling rate: gradient against closed form, and what the signal loses."""
    epsilons = np.linspace(0.02, 8.0, config.problems)
    with jax.enable_x64(True):
        tune.subsample_size(1.0, epsilons)  # compiles
        started = time.perf_counter()
        rate = np.asarray(tune.subsample_size(1.0, epsilons))
        seconds = time.perf_counter() - started
        closed = np.asarray(tune.subsample_size_closed_form(1.0, epsilons))
        recorder.add(
            figure="subsample",
            problems=config.problems,
            solve_seconds=round(seconds, 4),
            largest_error=float(np.max(np.abs(rate - closed))),
        )
        for epsilon in (0.25, 0.5, 1.0, 2.0, 3.0, 4.0):
            best = float(tune.subsample_size(1.0, epsilon))
            noise = [float(np.exp(tune.noise_objective(-np.log(r), epsilon))) for r in (best, 1.0)]
            recorder.add(
                figure="subsample",
                epsilon=epsilon,
                rate=best,
                closed_form=float(tune.subsample_size_closed_form(1.0, epsilon)),
                noise_over_all_rows=noise[0] / noise[1],
                noise_to_signal_over_all_rows=float(tune.signal_to_noise(best, epsilon)),
            )


def gains(recorder, config: Config) -> None:
    """Power and level of tuned and default tests on held-out designs, same replicates, same epsilon."""
    for number, case in enumerate(CASES):
        if config.names and case.name not in config.names:
            continue
        key_tune, key_power, key_null = jax.random.split(jax.random.key(config.seed + number), 3)
        default = case.make(case.epsilon, case.n)
        tuned = tune.tune(
            default,
            case.leaves,
            design=tuned_on(case),
            nulls=declared_nulls(case),
            alternatives=declared_alternatives(case),
            key=key_tune,
            grid=case.grid,
            replicates=config.replicates,
            steps=config.steps * case.patience,
            restarts=1,
            optimizer=case.optimizer,
            check_replicates=config.nulls,
            check_seconds=config.check_seconds,
        )
        print(case.name, case.n, case.epsilon, tuned, flush=True)
        shared = {
            "figure": "gains",
            "test": case.name,
            "n": case.n,
            "epsilon": case.epsilon,
            "tuned": plain({**tuned.tried, **tuned.tried_options}),
            "default": plain({**{name: getattr(default, name) for name in case.grid}, **tuned.default_values}),
            "accepted": tuned.accepted,
            "refused": tuned.refused,
            "refused_before": tuned.tuned_on["refused before"],
            "checks": [dataclasses.asdict(check) for check in tuned.checks],
            "tuned_on": tuned.tuned_on["design"],
            "note": case.note,
        }
        compare = functools.partial(_compare, recorder, tests=(default, tuned.test), shared=shared)
        compare("tuned on", design=tuned_on(case), key=key_power, replicates=config.alternatives)
        if not tuned.accepted:
            continue  # the default against itself
        for name, design in held_out(case).items():
            compare(name, design=design, key=key_power, replicates=config.alternatives)
        for name, design in held_out_nulls(case).items():
            compare(f"null: {name}", design=design, key=key_null, replicates=config.nulls)


def plain(values: dict) -> dict:
    """Numbers as numbers, anything else by its name."""

    def number(value):
        return isinstance(value, int | float | np.ndarray | jax.Array | np.generic)

    return {
        name: np.asarray(value).tolist() if number(value) else value if value is None else str(value)
        for name, value in values.items()
    }


def _compare(recorder, name, *, tests, design, key, replicates, shared) -> None:
    values = [power.p_values(test, design, jax.random.clone(key), replicates) for test in tests]
    check = tune.LevelCheck.of(name, values[1], values[0], LEVEL)
    recorder.add(
        **shared,
        design=name,
        replicates=replicates,
        default_rejections=check.default.rejections,
        tuned_rejections=check.tuned.rejections,
        only_tuned=check.only_tuned,
        only_default=check.only_default,
        default_rate=check.default.rate,
        tuned_rate=check.tuned.rate,
    )


FIGURES = {"subsample": subsample, "gains": gains, "searches": searches, "shares": shares}
