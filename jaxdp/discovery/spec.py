"""What a search says about itself, and the searches by name: commands and the automatic choice read it here."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

Levels = tuple[int, ...]  # of each column, 0 for a continuous one


def coded(levels: Levels) -> bool:
    """Every column has levels."""
    return 0 not in levels


@dataclasses.dataclass(frozen=True)
class SearchSpec:
    """Everything the rest of the package needs to know about a search.

    name: its only name, that of the exported function. summary: one line for people. fits: whether it takes columns of
    these levels. error: (levels, epsilon) -> predicted noise of one answer in records, from public numbers alone; the
    automatic choice takes the least; None: only by name. needs: arguments beyond epsilon that it cannot do without.
    """

    name: str
    summary: str
    fits: Callable[[Levels], bool] = coded
    error: Callable[[Levels, float], float] | None = None
    needs: tuple[str, ...] = ()


def search(spec: SearchSpec):
    """Decorator: a function (key, data, *, epsilon, ...) -> Graph that carries its spec."""

    def carry(function):
        function.spec = spec
        return function

    return carry


@functools.cache
def searches() -> Mapping[str, Callable]:
    """All searches that the package exports, by name."""
    package: Any = importlib.import_module("jaxdp.discovery")
    found = (getattr(package, name) for name in package.__all__)
    named = {value.spec.name: value for value in found if isinstance(getattr(value, "spec", None), SearchSpec)}
    return dict(sorted(named.items()))


def find(name: str) -> Callable:
    """The search of this name. Errors: ValueError that lists the names."""
    found = searches().get(name)
    if found is None:
        close = difflib.get_close_matches(name, searches(), 1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"it must be auto or one of {', '.join(searches())}."
        raise ValueError(f"there is no search called {name!r}; {hint}")
    return found


def best(levels: Levels, epsilon: float) -> Callable:
    """The search whose predicted noise is least for these columns and this budget."""
    fitting = [found for found in searches().values() if found.spec.error and found.spec.fits(levels)]  # type: ignore[attr-defined]
    return min(fitting, key=lambda found: found.spec.error(levels, epsilon))  # type: ignore[attr-defined]
