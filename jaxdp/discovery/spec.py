"""What a search says about itself, and the searches by name: commands and the automatic choice read it here."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxdp._base import check
from jaxdp._base.printed import printed
from jaxdp.discovery.abilities import ABILITIES
from jaxdp.discovery.graph import Graph
from jaxdp.randomness import keys, traces
from jaxdp.randomness.host import ON_HOST, require_host

Levels = tuple[int, ...]  # of each column, 0 for a continuous one
HOPELESS = 0.5  # no two columns are further from independence than this share of the records, or little


def asked_for(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that ask for something; a delta of 0 and None do not, a largest order of 0 does."""
    meaning_zero = ("directions", "max_order")
    return {name: value for name, value in settings.items() if value or (name in meaning_zero and value is not None)}


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
    "package.module:function", where epsilon is no argument. walked: `searches.walk` can run it; otherwise runs are
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


@dataclasses.dataclass(frozen=True)
class SearchSpec:
    """Everything the rest of the package needs to know about a search.

    name: its only name, that of the exported function. summary: one line for people.
    accepts: whether it takes columns of these levels.
    error: Setting -> about the weakest dependence of two columns that it finds, as the share of records that would have
        to move for independence, from public numbers alone; the automatic choice takes the least, and
    infinity says that the search is there where no other fits; None: only by name. rank: Setting -> 0 to 3;
    searches of a lower rank come first whatever weaker dependence others find. because: Setting -> why, in words for
    people, where the rank decided. takes: those of `ABILITIES` that its function has as arguments; a test tries them.
    needs: arguments beyond epsilon that it cannot do without.
    max_order: the largest conditioning set that it takes, to which the automatic choice keeps; None: any.
    sums: whether it takes sums of records alone, so that they may come in chunks (`RecordsInChunks`).
    true_epsilon: of comparators and published searches (`jaxdp.published`), the epsilon that they have, in words.
    audits: of the whole search; without_audit: why there is none.
    """

    name: str
    summary: str
    accepts: Callable[[Levels], bool] = coded
    error: Callable[[Setting], float] | None = None
    rank: Callable[[Setting], int] = lambda setting: 1
    because: Callable[[Setting], str] = lambda setting: ""
    takes: tuple[str, ...] = ("max_order",)
    needs: tuple[str, ...] = ()
    max_order: int | None = None
    sums: bool = False
    true_epsilon: str = ""
    audits: tuple[SearchAudit, ...] = ()
    without_audit: str = ""

    def __post_init__(self):
        for name in self.takes:
            check.one_of(tuple(ABILITIES), takes=name)


def require_outside(name: str, key: Any, *given: Any) -> None:
    """Raises TypeError for a search under a transformation of JAX, RuntimeError if it has a release key."""
    if traces.is_open():
        keys.admit(key)
    if isinstance(key, keys.RecordedKey):
        return  # an audit walks a search with a batch of simulation keys, and scripts what it decides by
    require_host(name, key, *jax.tree.leaves(given), way_out=ON_HOST)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Search[**P]:
    """A search for a causal graph: its description and the function that runs it; called like that function.

    spec: its name, abilities and audits. function: (key, data, *, epsilon, ...) -> `Graph`. `search` makes one.
    """

    spec: SearchSpec
    function: Callable[P, Graph]

    def __post_init__(self):
        copied = {name: getattr(self.function, name) for name in ("__module__", "__name__", "__qualname__", "__doc__")}
        vars(self).update(copied, __wrapped__=self.function)  # so that help and editors show the function

    def __call__(self, *args: P.args, **options: P.kwargs) -> Graph:
        """The graph. Privacy and errors: as the function says.

        Errors within a program of JAX: RuntimeError for a release key, as everywhere; else TypeError.
        """
        require_outside(self.spec.name, args[0] if args else options.get("key"), args, options)
        return self.function(*args, **options)

    def takes(self, name: str) -> bool:
        """Whether the function has this argument, one of `ABILITIES`."""
        return name in self.spec.takes or name in self.spec.needs

    def __repr__(self) -> str:
        return f"<search {self.spec.name}: {self.spec.summary}>"

    def __reduce__(self) -> str:
        return self.function.__qualname__  # pickled by its name, as functions are


def search[**P](spec: SearchSpec) -> Callable[[Callable[P, Graph]], Search[P]]:
    """Decorator that makes a function (key, data, *, epsilon, ...) -> Graph a `Search`."""
    return lambda function: Search(spec, function)


@functools.cache
def searches() -> Mapping[str, Search]:
    """All searches that `jaxdp.discovery` and `jaxdp.published` export, by name."""
    packages: list[Any] = [importlib.import_module(name) for name in ("jaxdp.discovery", "jaxdp.published")]
    found = (getattr(package, name) for package in packages for name in package.__all__)
    named = {value.spec.name: value for value in found if isinstance(value, Search)}
    return dict(sorted(named.items()))


def find(name: str) -> Search:
    """The search of this name. Errors: ValueError that lists the names."""
    found = searches().get(name) if isinstance(name, str) else None
    if found is None:
        close = difflib.get_close_matches(name, searches(), 1, cutoff=0.5) if isinstance(name, str) else []
        hint = f"did you mean {close[0]!r}?" if close else f"it must be auto or one of {', '.join(searches())}."
        raise ValueError(f"there is no search called {printed(name)}; {hint}")
    return found


def takers(ability: str, levels: Levels) -> list[str]:
    """Names of the searches of columns of these levels that take one of `ABILITIES`, published ones left out."""
    fitting = (one for one in searches().values() if one.spec.accepts(levels) and not one.spec.true_epsilon)
    return [one.spec.name for one in fitting if one.takes(ability)]


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a search is expected to find: edges of strength `weakest` (a share of the records) or more.

    weakest: infinity where it is not known.
    """

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
    specs = [found.spec for found in searches().values()]
    fitting = [s for s in specs if s.error and s.accepts(setting.levels) and (s.sums or not setting.in_chunks)]
    rows = [(spec.rank(setting), float(spec.error(setting)), spec.name) for spec in fitting if spec.error]
    return [Forecast(name, weakest) for _, weakest, name in sorted(rows)]


def best(setting: Setting) -> Search:
    """The search that should find the weakest edges in this setting."""
    return find(forecasts(setting)[0].method)
