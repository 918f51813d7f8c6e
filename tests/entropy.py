"""Release keys of a test come from its name, so that a run here and one elsewhere have the same noise.

A statement about one noisy answer that holds with probability 0.999 is then true or false, not sometimes. Nightly runs,
tests marked `system_entropy`, and processes that a test starts keep the operating system's entropy.
"""

import hashlib
import types

import pytest

from jaxdp.randomness import keys


class Stream:
    """Bytes of a name: the next call gives the next bytes. In place of the module `secrets` in `jaxdp`'s keys."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def token_bytes(self, count: int) -> bytes:
        self.count += 1
        return hashlib.shake_256(f"{self.name} {self.count}".encode()).digest(count)


_system: types.ModuleType = keys.secrets


def pytest_configure(config):
    config.addinivalue_line("markers", "system_entropy: its release keys come from the operating system")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    system = item.config.getoption("--nightly") or item.get_closest_marker("system_entropy")
    keys.secrets = _system if system else Stream(item.nodeid)
    try:
        return (yield)
    finally:
        keys.secrets = _system


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """A fixture that several tests share is the same, whichever of them comes first."""
    before = keys.secrets
    if fixturedef.scope != "function" and isinstance(before, Stream):
        keys.secrets = Stream(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}")
    try:
        return (yield)
    finally:
        keys.secrets = before
