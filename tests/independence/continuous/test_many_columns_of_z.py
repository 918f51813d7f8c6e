"""More continuous columns of Z than the default takes are refused in a sentence that names what takes them."""

import jax
import numpy as np
import pytest

import jaxdp


@pytest.mark.parametrize("method", [None, "contrast-gcm", "contrast-features"])
@pytest.mark.parametrize("count", [6, 8])
def test_six_columns_of_z_are_too_many_and_the_way_out_takes_them(method, count):
    """It was an internal error, KeyError: 6."""
    rng, given = np.random.default_rng(1), [f"z{place}" for place in range(count)]
    table = {name: rng.normal(size=1500) for name in ("x", "y", *given)}
    schema = {"columns": {name: {"kind": "continuous", "bounds": [-4, 4]} for name in table}}
    how = {"x": "x", "y": "y", "given": given, "schema": schema, "epsilon": 1.0, "key": jax.random.key(1)}
    with pytest.raises(ValueError, match=f"{count} continuous columns of Z are too many .*--method partial-corr"):
        jaxdp.test(table, **how, **({} if method is None else {"method": method}), force=True)
    assert jaxdp.test(table, **how, method="partial-correlation", force=True).p_value <= 1.0
