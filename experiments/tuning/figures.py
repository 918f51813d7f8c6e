"""The measurements, one function each: rows go to the recorder as they are measured."""

import dataclasses
import functools
import time

import jax
import numpy as np

from experiments.tuning.config import CASES, Config, held_out, tuned_on
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
            nulls=() if case.family != "sine" else None,
            key=key_tune,
            grid=case.grid,
            replicates=config.replicates,
            steps=config.steps,
            restarts=1,
            optimizer="lbfgs" if case.leaves and case.name != "private-gcm" else "adam",
        )
        print(case.name, case.n, case.epsilon, tuned, flush=True)
        shared = {
            "figure": "gains",
            "test": case.name,
            "n": case.n,
            "epsilon": case.epsilon,
            "tuned": {k: np.asarray(v).tolist() for k, v in {**tuned.values, **tuned.options}.items()},
            "default": {k: np.asarray(v).tolist() for k, v in tuned.default_values.items()},
            "accepted": tuned.accepted,
            "refused": tuned.refused,
            "checks": [dataclasses.asdict(check) for check in tuned.checks],
            "tuned_on": tuned.tuned_on["design"],
        }
        compare = functools.partial(_compare, recorder, tests=(default, tuned.test), shared=shared)
        compare("tuned on", design=tuned_on(case), key=key_power, replicates=config.alternatives)
        if not tuned.accepted:
            continue  # the default against itself
        for name, design in held_out(case, case.effect).items():
            compare(name, design=design, key=key_power, replicates=config.alternatives)
        for name, design in held_out(case, 0.0).items():
            if name != "smaller effect" or case.family == "known law":
                compare(f"null: {name}", design=design, key=key_null, replicates=config.nulls)


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


FIGURES = {"subsample": subsample, "gains": gains}
