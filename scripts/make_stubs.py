"""Writes `__init__.pyi` of every package whose names are imported on first use, for editors and type checkers.

python scripts/make_stubs.py: after a change of the exports of a package.
"""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = '"""Written by scripts/make_stubs.py from the exports of this package: what type checkers see."""\n'
PLAIN = {"jaxdp": ["__version__: str", "", "def exported_names() -> tuple[str, ...]: ..."]}  # what is no import


def packages() -> list[str]:
    """Names of the packages with exports."""
    files = sorted((ROOT / "jaxdp").rglob("__init__.py"))
    lazy = [path.parent for path in files if "_EXPORTS" in path.read_text(encoding="utf-8")]
    return [".".join(folder.relative_to(ROOT).parts) for folder in lazy]


def stub(package: str) -> str:
    """The text of one stub."""
    module = importlib.import_module(package)
    found = {name: f"{package}.{place}" for name, place in module._EXPORTS.items()}
    places = {name: f"{package}.{place}" for name, place in getattr(module, "_MODULES", {}).items()}
    found |= {name: place.rpartition(".")[0] for name, place in places.items()}
    lines = [
        f"from {found[name]} import {name} as {name}" for name in sorted(found, key=lambda n: (found[n], _kind(n), n))
    ]
    plain = PLAIN.get(package, [])
    return "\n".join([HEADER, *lines, *([""] if plain else []), *plain, ""])


def _kind(name: str) -> int:
    """Constants before classes before functions, as the linter sorts imports."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2


def main() -> None:
    """Writes them all."""
    sys.path.insert(0, str(ROOT))
    for package in packages():
        (ROOT.joinpath(*package.split(".")) / "__init__.pyi").write_text(stub(package), encoding="utf-8")


if __name__ == "__main__":
    main()
