"""What wheel and sdist must hold, and must not: python scripts/package_content.py DIST. Silent if all is well."""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STRANGERS = ("tests/", "experiments/", "scripts/", ".ci/", "out/", ".jax_cache/", ".venv")


def faults(wheel: set[str], sdist: set[str]) -> list[str]:
    """What is wrong with two lists of files; the sources say what must be there."""
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "jaxdp").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "theory").glob("*.md")}
    outside = {name for name in wheel if not name.startswith("jaxdp/") and ".dist-info/" not in name}
    found = [f"the wheel lacks {name}" for name in sorted(sources - wheel)]
    found += [f"the wheel holds {name}" for name in sorted(outside)]
    found += [f"the sdist lacks {name}" for name in sorted((sources | pages | {"README.md", "LICENSE"}) - sdist)]
    found += [f"the sdist holds {name}" for name in sorted(sdist) if name.startswith(STRANGERS)]
    licences = [name for name in wheel if name.endswith("LICENSE")]
    return found + ([] if licences else ["the wheel lacks its licence"])


def main() -> int:
    folder = Path(sys.argv[1])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    found = faults(in_wheel, in_sdist)
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
