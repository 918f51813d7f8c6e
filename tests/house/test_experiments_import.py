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


def test_every_folder_is_listed():
    text = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    for room in ("evidence", "papers"):
        inside = (ROOT / "experiments" / room).iterdir()
        folders = [path for path in inside if path.is_dir() and path.name != "__pycache__"]
        assert len(folders) > 3
        missing = [path.name for path in folders if f"`{room}/{path.name}/" not in text]
        assert not missing, f"{room}: {missing} are not in experiments/README.md"


def test_the_commands_import():
    commands = [name for name in MODULES if name.endswith("__main__")]
    assert commands
    for name in commands:
        assert callable(importlib.import_module(name).main)
