"""Replicates of tests of slopes: one program for levels and intervals, which runs fifty data sets for any slope."""

import functools

import jax
import numpy as np

import jaxdp


def answers_of(tests, draw, num_records: int):
    """(name of a test, slope, replicates) -> p-values, lower and upper ends of intervals, arrays (replicates,).

    tests: by name. draw: (key, number of records, slope) -> Data. Replicates: a multiple of fifty.
    """

    @functools.cache
    def of_fifty(name: str):
        def one(slope, key):
            found = jaxdp.run(tests[name], key, draw(jax.random.fold_in(key, 1), num_records, slope))
            return found.p_value, *found.interval

        return jax.jit(lambda slope, keys: jax.lax.map(functools.partial(one, slope), keys, batch_size=25))

    def answers(name: str, slope: float, replicates: int):
        keys = jax.random.split(jax.random.key(6), (replicates // 50, 50))
        return map(np.concatenate, zip(*(of_fifty(name)(slope, some) for some in keys), strict=True))

    return answers
