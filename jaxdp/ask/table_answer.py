"""What every answer to a query about a table has: one content, shown on a screen, in a notebook, on a page, as JSON."""

from __future__ import annotations

import dataclasses
import html
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from jaxdp._base.display import as_html, titled
from jaxdp._base.json_files import plain
from jaxdp.data import private_drafts
from jaxdp.report import sections
from jaxdp.report.picture import Picture


class TableAnswer:
    """An answer about a table. Noisy and public values only.

    content: what result.json holds. files: what a command writes of it, in the order of its page. page: the title of
    that, default the one of the content.
    """

    files: ClassVar[tuple[str, ...]]
    page: ClassVar[str] = ""

    content: Mapping[str, Any]

    def page_title(self) -> str:
        return self.page or self.content["title"]

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json: plain numbers, texts, lists and dicts."""
        return plain(self.content)

    def table(self) -> Sequence[str]:
        """The lines of its table on a screen, where it has one."""
        return ()

    def written(self) -> Mapping[str, tuple[Callable[..., Any], *tuple[Any, ...]]]:
        """Name of a further file -> (what writes it, called with its path, and what else it is given)."""
        return {}

    def with_drafts(self, drafts: list[dict[str, Any]], unit: str) -> Self:
        """The answer with the private drafts of its schema in its content. unit: whose records the answer protects."""
        content = {**self.content, **private_drafts.counted_in(self.content, drafts, unit)}
        return dataclasses.replace(cast(Any, self), content=content)

    @property
    def picture(self) -> str:
        """The name of its picture among the files."""
        return next(name for name in self.files if name.endswith(".png"))

    def draw(self, path: Path) -> Any:
        """Writes the picture."""
        raise NotImplementedError

    def missed(self, schema: str = "S.toml") -> dict[str, Any]:
        """What the planner adds to the content; of most kinds nothing. schema: its path, for commands that are told."""
        return {}

    def plot(self) -> Picture:
        """The picture, which notebooks show and `save(path)` writes. Needs the `plot` extra."""
        return Picture.drawn(self.draw)

    def sentences(self) -> list[str]:
        """What was asked, the answer, and what it rests on."""
        content = self.to_dict()
        named = (part for part in sections.sections(content) if part.name)
        return [content["title"], *(sentence for part in named for sentence in part.sentences)]

    def __repr__(self) -> str:
        return sections.screen(self.to_dict(), self.table())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        content, table = self.to_dict(), "\n".join(self.table())
        shown = as_html(titled(content["title"], content["mode"]), sections.paragraphs(content))
        return f"{shown}<pre>{html.escape(table)}</pre>" if table else shown


def versions() -> dict[str, str]:
    """Versions of what computed an answer."""
    import jax

    from jaxdp._base.version import version

    return {"jaxdp": version(), "jax": jax.__version__, "python": platform.python_version()}
