"""The bill of materials of the pinned environment, CycloneDX 1.6 as JSON: python scripts/sbom.py [LOCK] >sbom.cdx.json

Read from the lock file and pyproject.toml alone: no network, no clock, the same bytes from the same two files. A lock
file lists packages and not which of them needs which, so the dependencies of the project itself are stated and marked
as incomplete beyond that.
"""

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+]+)")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9._-]+")


def purl(name: str, version: str) -> str:
    """The address of a package of the public index, by its normalized name."""
    return f"pkg:pypi/{_normalized(name)}@{version}"


def pins(text: str) -> dict[str, str]:
    """Versions by normalized name, from the lines of a lock file; the hashes of their files are left out."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.partition("#")[0].strip().removesuffix("\\").rstrip()
        if not line or HASH.fullmatch(line):
            continue
        pin = PIN.fullmatch(line)
        if pin is None:
            raise ValueError(f"line {number} of the lock file is {line!r}: pin one version, as in name==1.2.3")
        found[_normalized(pin[1])] = pin[2]
    return found


def bill(lock: str, project: dict) -> dict:
    """The document: the project, what it was tested with, and which of it every installation needs."""
    versions = pins(lock)
    needed = sorted(_normalized(NAME.match(requirement)[0]) for requirement in project["dependencies"])
    missing = [name for name in needed if name not in versions]
    if missing:
        raise ValueError(f"the lock file lacks {', '.join(missing)}, which pyproject.toml needs: pin it")
    own = purl(project["name"], project["version"])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + chr(10) + json.dumps(versions))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
                "purl": own,
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": purl(name, version),
                "name": name,
                "version": version,
                "purl": purl(name, version),
            }
            for name, version in sorted(versions.items())
        ],
        "dependencies": [{"ref": own, "dependsOn": [purl(name, versions[name]) for name in needed]}],
        "compositions": [{"aggregate": "incomplete", "dependencies": [own]}],
    }


def _normalized(name: str) -> str:
    """A name as the public index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    lock = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "requirements.lock"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    try:
        document = bill(lock.read_text(encoding="utf-8"), project)
    except (OSError, ValueError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(json.dumps(document, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
