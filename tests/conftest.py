"""Suite-wide settings: strict keys, strict shapes, and the tiers: everyday tests, `--full`, `--nightly`."""

import gc
import signal
import sys
from pathlib import Path

import jax
import pytest

pytest_plugins = ["compiled_programs", "cpu_times", "entropy", "exact_noise"]

# Tracing makes so many objects that the usual collections take a tenth of the suite's time.
gc.set_threshold(200_000, 20, 20)

jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

# Tests stand in the rooms of the package; some share helpers that are written in another room's file.
sys.path.extend(str(folder) for folder in sorted(Path(__file__).parent.rglob("*")) if folder.is_dir())

TIERS = ["full", "nightly"]  # each includes the ones before it


@pytest.fixture(autouse=True)
def _compile_quickly(request):
    """Most tests run their programs once, so that compiling them is what costs: they skip XLA's optimisations.

    Tests marked `optimised` (long simulations, exact noise, error bounds) and nightly runs compile as users do.
    """
    optimised = request.node.get_closest_marker("optimised") or request.config.getoption("--nightly")
    jax.config.update("jax_disable_most_optimizations", not optimised)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def x64():
    """Double precision throughout the test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, which a suite that runs in the background ignores."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def some_checks(monkeypatch):
    """`check_contract` with the named checks alone: a fault that one check must find needs none of the others."""
    from jaxdp.audit import contract

    every = contract.CHECKS

    def checked(test, *names):
        monkeypatch.setattr(contract, "CHECKS", {name: every[name] for name in names})
        return contract.check_contract(test)

    return checked


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="also run what takes long: every guard there is, as in CI")
    parser.addoption("--interop", action="store_true", help="run the plug-ins in the real libraries, and nothing else")
    parser.addoption("--nightly", action="store_true", help="also run the nightly sizes; includes --full")


def pytest_collection_modifyitems(config, items):
    asked = max((place for place, tier in enumerate(TIERS) if config.getoption(f"--{tier}")), default=-1)
    has_gpu = any(device.platform == "gpu" for device in jax.devices())
    for item in items:
        # the marks, not the keywords, which a folder of this name gives to all of its tests
        for tier in TIERS[asked + 1 :]:
            if item.get_closest_marker(tier):
                item.add_marker(pytest.mark.skip(reason=f"of the {tier} tier; give --{tier}"))
        if bool(item.get_closest_marker("interop")) != config.getoption("--interop"):
            item.add_marker(pytest.mark.skip(reason="plug-ins in the real libraries: scripts/test-plugins"))
        if item.get_closest_marker("gpu") and not has_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))
