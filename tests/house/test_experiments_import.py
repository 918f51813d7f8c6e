"""Every experiment still finds what it uses: a renamed constant of the package would only be seen when it is run."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "experiments").rglob("*.py")
)


@pytest.mark.parametrize("module", [name for name in MODULES if not name.endswith("__main__")])
def test_the_module_imports(module):
    importlib.import_module(module.removesuffix(".__init__"))


def test_the_commands_import():
    commands = [name for name in MODULES if name.endswith("__main__")]
    assert commands
    for name in commands:
        assert callable(importlib.import_module(name).main)
