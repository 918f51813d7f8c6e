"""What a search says about itself, and the searches by name: commands and the automatic choice read it here."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from jaxdp._base.printed import printed
from jaxdp._base.variants import by_variant

Levels = tuple[int, ...]  # of each column, 0 for a continuous one
HOPELESS = 0.5  # no two columns are further from independence than this share of the records, or little


def coded(levels: Levels) -> bool:
    """Every column has levels."""
    return 0 not in levels


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is public before a search: levels of the columns (0: continuous), number of records, budget.

    in_chunks: records come in chunks, so that only searches of sums can read them.
    """

    levels: Levels
    num_records: int
    epsilon: float
    delta: float = 0.0
    in_chunks: bool = False

    @property
    def num_columns(self) -> int:
        """Columns."""
        return len(self.levels)


AUDITED_DELTA = 0.05  # of audits of Gaussian noise: large, so that what it hides shows
AUDITED_Z = 2.0  # threshold of audited queries, public; attacks found more here than at the default 4, or at 1


@dataclasses.dataclass(frozen=True)
class SearchAudit:
    """One way in which a whole search is audited; its name is that of the search, with the label if there is one.

    options: arguments of the search beyond epsilon. build: epsilon -> search(key, records), or its place
    "package.module:function", where epsilon is no argument. walked: `many_runs.walk` can run it; otherwise runs are
    made one by one. delta: of the claim. pilot: name of the walked audit, fast and alike, whose runs choose among the
    pairs; default itself. neighbours: place of a fixed pair of records, in place of an attack. flawed: the claim is
    false. given: answers of the first selections, the same in all runs, so that the law of the rest is audited, which
    has less than the whole budget. one_release: a run draws noise once, for numbers that are looked at themselves.
    """

    label: str = ""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    build: Any = None
    walked: bool = True
    delta: float = 0.0
    pilot: str | None = None
    neighbours: Any = None
    flawed: bool = False
    given: tuple[int, ...] = ()
    one_release: bool = False


def _middle(setting: Setting) -> int:
    return 1


def _nothing(setting: Setting) -> str:
    return ""


@dataclasses.dataclass(frozen=True)
class SearchSpec:
    """Everything the rest of the package needs to know about a search.

    name: its only name, that of the exported function. summary: one line for people. fits: whether it takes columns of
    these levels. error: Setting -> about the weakest dependence of two columns that it finds, as the share of records
    that would have to move for independence, from public numbers alone; the automatic choice takes the least, and
    infinity says that the search is there where no other fits; None: only by name. rank: Setting -> 0 to 3;
    searches of a lower rank come first whatever weaker dependence others find. because: Setting -> why, in words for
    people, where the rank decided. needs: arguments beyond epsilon that it cannot do without.
    max_order: the largest conditioning set that it takes, to which the automatic choice keeps; None: any.
    sums: whether it takes sums of records alone, so that they may come in chunks (`RecordsInChunks`).
    variants: values of `variant=` and the function that each calls, "package.module:function", "" for this one.
    true_epsilon: of comparators and published searches (`jaxdp.published`), the epsilon that they have, in words.
    audits: of the whole search; without_audit: why there is none.
    """

    name: str
    summary: str
    fits: Callable[[Levels], bool] = coded
    error: Callable[[Setting], float] | None = None
    rank: Callable[[Setting], int] = _middle
    because: Callable[[Setting], str] = _nothing
    needs: tuple[str, ...] = ()
    max_order: int | None = None
    sums: bool = False
    variants: Mapping[str, str] = dataclasses.field(default_factory=dict)
    true_epsilon: str = ""
    audits: tuple[SearchAudit, ...] = ()
    without_audit: str = ""


def search(spec: SearchSpec):
    """Decorator: a function (key, data, *, epsilon, ...) -> Graph that carries its spec."""

    def carry(function):
        function.spec = spec
        return by_variant(function) if spec.variants else function

    return carry


@functools.cache
def searches() -> Mapping[str, Callable]:
    """All searches that `jaxdp.discovery` and `jaxdp.published` export, by name."""
    packages: list[Any] = [importlib.import_module(name) for name in ("jaxdp.discovery", "jaxdp.published")]
    found = (getattr(package, name) for package in packages for name in package.__all__)
    named = {value.spec.name: value for value in found if isinstance(getattr(value, "spec", None), SearchSpec)}
    return dict(sorted(named.items()))


def find(name: str) -> Callable:
    """The search of this name. Errors: ValueError that lists the names."""
    found = searches().get(name) if isinstance(name, str) else None
    if found is None:
        close = difflib.get_close_matches(name, searches(), 1, cutoff=0.5) if isinstance(name, str) else []
        hint = f"did you mean {close[0]!r}?" if close else f"it must be auto or one of {', '.join(searches())}."
        raise ValueError(f"there is no search called {printed(name)}; {hint}")
    return found


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a search is expected to find: edges of at least `weakest`, a share of the records; infinity: not known."""

    method: str
    weakest: float

    @property
    def misses(self) -> str:
        """What it will not find, in words."""
        if not math.isfinite(self.weakest):
            return ""
        if self.weakest >= HOPELESS:
            return "the noise is larger than any edge: expect no more than chance"
        share = f"{100.0 * self.weakest:.2g} % of the records"
        return (
            f"a relation that would vanish if about {share} changed, or fewer, will not be found; stronger ones may be "
            "missed too"
        )


def forecasts(setting: Setting) -> list[Forecast]:
    """What every search that the automatic choice may take would find, best first."""
    specs: list[SearchSpec] = [found.spec for found in searches().values()]  # type: ignore[attr-defined]
    fitting = [s for s in specs if s.error and s.fits(setting.levels) and (s.sums or not setting.in_chunks)]
    rows = [(spec.rank(setting), float(spec.error(setting)), spec.name) for spec in fitting if spec.error]
    return [Forecast(name, weakest) for _, weakest, name in sorted(rows)]


def best(setting: Setting) -> Callable:
    """The search that should find the weakest edges in this setting."""
    return find(forecasts(setting)[0].method)
