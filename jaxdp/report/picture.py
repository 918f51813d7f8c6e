"""A picture in memory: notebooks show it, `save` writes it."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True, repr=False)
class Picture:
    """A PNG that notebooks display; `save(path)` writes it. Everything drawn is released or public."""

    png: bytes

    @classmethod
    def drawn(cls, draw: Callable[..., Any], *args: Any, **options: Any) -> Picture:
        """What draw(path, *args, **options) writes. Errors: ValueError where matplotlib is missing."""
        from jaxdp.report.figures import require_matplotlib

        require_matplotlib()
        with tempfile.TemporaryDirectory(prefix="jaxdp-") as folder:
            path = Path(folder) / "picture.png"
            draw(path, *args, **options)
            return cls(path.read_bytes())

    def save(self, path: Any) -> Path:
        """Writes the PNG; returns its path. Errors: ValueError for a name that ends like another format."""
        ending = Path(path).suffix
        if ending.lower() not in ("", ".png"):
            raise ValueError(f"a picture is a PNG: give a path that ends in .png, got a name that ends in {ending}.")
        Path(path).write_bytes(self.png)
        return Path(path)

    def savefig(self, path: Any) -> Path:
        """`save`, under the name that matplotlib's figures have."""
        return self.save(path)

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        return f"Picture({len(self.png)} bytes of PNG; save(path) writes it)"
