"""Suite-wide settings: strict keys, strict shapes, host devices for sharding tests, nightly switch."""

import jax
import pytest

jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True)
def _compile_quickly(request):
    """Most tests run their programs once, so that compiling them is what costs: they skip XLA's optimisations.

    Tests marked `optimised` (long simulations, exact noise, error bounds) and nightly runs compile as users do.
    """
    optimised = request.node.get_closest_marker("optimised") or request.config.getoption("--nightly")
    jax.config.update("jax_disable_most_optimizations", not optimised)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def pytest_addoption(parser):
    parser.addoption("--nightly", action="store_true", help="also run the long checks")


def pytest_collection_modifyitems(config, items):
    has_gpu = any(device.platform == "gpu" for device in jax.devices())
    for item in items:
        if "nightly" in item.keywords and not config.getoption("--nightly"):
            item.add_marker(pytest.mark.skip(reason="nightly size; give --nightly"))
        if "gpu" in item.keywords and not has_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))
