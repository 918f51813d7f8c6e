"""100 128 pairs of a gene-like table (448 columns that share a few factors, 23 rows) in one private release."""

import resource
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp

COLUMNS, RECORDS, FACTORS = 448, 23, 4


def table(seed: int) -> np.ndarray:
    """Expression-like values in [-1, 1], (RECORDS, COLUMNS)."""
    rng = np.random.default_rng(seed)
    time_course = np.sin(np.arange(RECORDS)[:, None] * rng.uniform(0.2, 1.2, FACTORS) + rng.uniform(0, 6, FACTORS))
    values = time_course @ rng.normal(size=(FACTORS, COLUMNS)) + rng.normal(size=(RECORDS, COLUMNS))
    return np.tanh(values / 4).astype(np.float32)


def measure(recorder, seed: int, rho: float = 0.5) -> None:
    """One row: seconds of the first call (with compilation) and of the second, noise, memory."""
    test = jaxdp.MICrPairs(mechanism=jaxdp.Gaussian(rho=rho))
    data, spent = jnp.asarray(table(seed)), []
    for key in (jax.random.key(seed), jax.random.key(seed + 1)):
        start = time.perf_counter(), time.process_time()
        released = jaxdp.release(test, key, data)
        values = np.asarray(released.value)
        spent.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    recorder.add(
        part="scale",
        pairs=len(values),
        n=RECORDS,
        rho=rho,
        finite=bool(np.isfinite(values).all()),
        noise_sd=float(jnp.sqrt(test.mechanism_in_force().variance(released.sensitivity))),
        first_wall=spent[0][0],
        first_processor=spent[0][1],
        second_wall=spent[1][0],
        second_processor=spent[1][1],
        peak_megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )
