"""Rejection rates over simulated replicates, in one call or chunk by chunk in a folder."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.layout import device_list
from jaxdp.randomness import keys
from jaxdp.simulate.engine import grid
from jaxdp.simulate.engine.fingerprints import fingerprint
from jaxdp.simulate.engine.replicates import Design, RejectionRate, p_values
from jaxdp.simulate.engine.settings import Setting

__all__ = ["Design", "RejectionRate", "p_values", "rejection_rate"]


def rejection_rate(
    test: Any,
    design: Callable[..., Any],
    key: jax.Array,
    replicates: int,
    *,
    level: float = 0.05,
    batch_size: int | str | None = None,
    devices: Any = None,
    memory: int | None = None,
    folder: str | os.PathLike | None = None,
) -> RejectionRate:
    """Counts p-values <= level over replicates; arguments as in `p_values`.

    memory: limit in bytes; the batch is made to fit by the compiler's own account. folder: keeps finished chunks of
    1000 replicates there and goes on with what it holds, so that the call may be interrupted at any time and repeated.
    The counts are the same with and without; what the folder holds beyond `replicates` is counted too. A folder knows
    test and design by their numbers and by what their functions compute (docs/simulation.md#folder).
    Errors: ValueError for a function that uses what cannot be told apart, such as an open file.
    """
    check.in_range(0.0, 1.0, level=level)
    if memory is None and folder is None and not isinstance(batch_size, str):
        values = p_values(test, design, key, replicates, batch_size=batch_size, devices=devices)
        return RejectionRate(rejections(values, level), replicates, level)
    keys.require_simulation(key)
    design, devices = Design.of(design), device_list(devices) or tuple(jax.devices()[:1])
    config = {}  # of a folder that is deleted, nothing has to be told apart
    if folder is not None:
        named = {"test": fingerprint(test), "design": fingerprint(design)}
        config = {**named, "key": np.asarray(jax.random.key_data(key)).tolist()}
    precision = "float64" if jnp.result_type(float) == jnp.float64 else "float32"
    setting = Setting(config, test, design, level, precision, key=key)
    place = contextlib.nullcontext(folder) if folder is not None else tempfile.TemporaryDirectory()
    with place as path:
        rows = grid.run(
            [setting],
            path,
            grid.Plan(replicates),
            resume=True,
            batch_size=batch_size or "auto",
            memory=memory,
            devices=devices,
        )
    row = next(row for row in rows if row.hash == setting.hash)
    return RejectionRate(row.rejections, row.replicates, level)


def rejections(values: Any, level: float) -> int:
    """How many p-values reject at the level."""
    # float32 p-values of rank tests may sit a rounding above the level they equal
    return int(np.sum(np.asarray(values) <= level * (1 + 1e-6)))
