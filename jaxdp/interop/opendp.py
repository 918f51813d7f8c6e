"""OpenDP: a private test as a measurement, for pipelines that OpenDP accounts for.

    measure = jaxdp.interop.opendp_measurement(jaxdp.PartitionGCM(epsilon=1.0), data)
    result = measure(data)            # a fresh release each time
    measure.map(1)                    # 1.0: what it costs for one replaced record

`enable_features("contrib", "honest-but-curious")` comes first: OpenDP can't check a proof that is not its own.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from jaxdp.core import Cost, PrivateQuery, Relation, cost_of, method_of, num_records, run
from jaxdp.randomness.keys import fresh_key


def opendp_measurement(test: PrivateQuery, data: Any) -> Any:
    """An OpenDP measurement whose output is the release of `test`. Of `data` only shapes and types are read here.

    Its domain are data of these shapes; its metric is OpenDP's change-one distance (replace-one neighbours; the number
    of records is public). Its measure follows the test's cost: max divergence, or zero-concentrated for a test that is
    only rho-zCDP. d_in replaced records cost d_in times epsilon, and d_in^2 times rho.
    Errors: ValueError for add-or-remove-one tests, and for a delta; ModuleNotFoundError without opendp.
    """
    import opendp.prelude as dp

    measure, privacy_map = _priced(dp, test, cost_of(test, data))
    wanted = _form(data)

    def release(given):
        if _form(given) != wanted:  # OpenDP asks no domain of the user about its members
            raise ValueError("these data have not the form that the measurement was made for: make one for them.")
        return run(test, fresh_key(), given)

    domain = dp.user_domain(f"jaxdp data of {num_records(data)} records", lambda given: _form(given) == wanted)
    return dp.m.make_user_measurement(
        input_domain=domain,
        input_metric=dp.change_one_distance(),
        output_measure=measure,
        function=release,
        privacy_map=privacy_map,
    )


def _form(data) -> tuple:
    """What is public about data: structure and shapes."""
    leaves, structure = jax.tree.flatten(data)
    return structure, tuple(map(np.shape, leaves))


def _priced(dp, test, cost: Cost):
    """OpenDP's measure of privacy for this cost, and what d_in replaced records cost in it."""
    epsilon, delta, rho = (float(np.asarray(value)) for value in (cost.epsilon, cost.delta, cost.rho))
    if cost.relation is not Relation.REPLACE_ONE or delta > 0:
        raise ValueError(
            f"{method_of(test)} costs {cost}: only replace-one tests without delta become measurements; "
            "charge this one to a jaxdp.Ledger."
        )
    if math.isfinite(epsilon):
        return dp.max_divergence(), lambda d_in: _up(d_in * epsilon, d_in)
    if math.isfinite(rho):
        return dp.zero_concentrated_divergence(), lambda d_in: _up(d_in * d_in * rho, d_in)
    raise ValueError(f"{method_of(test)} is not private ({cost}) and can't be a measurement.")


def _up(value: float, d_in: int) -> float:
    """Rounded up where a product was rounded."""
    return value if d_in <= 1 else math.nextafter(math.nextafter(value, math.inf), math.inf)
