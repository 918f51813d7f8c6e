"""Every test by its name, found from what the package exports and what other packages declare; no list is kept here.

A class is in the catalogue if `jaxdp` or `jaxdp.published` exports it and it has a `spec`, or if an installed
distribution declares it in the entry-point group "jaxdp.tests". Any other class is found as "package.module:Class".
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, NoReturn

import numpy as np

from jaxdp._base import check
from jaxdp._base.kept_programs import kept_text
from jaxdp._base.printed import is_setting, printed
from jaxdp.core import PrivateQuery, cost_of
from jaxdp.data.columns import CATEGORICAL, ORDINAL, Column, Domain
from jaxdp.spec import DECISION, KINDS_OF_ALTERNATIVES, P_VALUE, Columns, Options, TestSpec, are_times

GROUP = "jaxdp.tests"
MAX_NUMBERS = 100  # of a field that is an array, in words
ROUNDING = 2.0**-48  # relative; bounds the rounding of a sum of a few float64 shares


@dataclasses.dataclass(frozen=True)
class Entry:
    """A test of the catalogue: its spec and the class that it describes."""

    spec: TestSpec
    cls: type[PrivateQuery]

    @property
    def name(self) -> str:
        """The test's only name."""
        return self.spec.name

    def build(
        self,
        epsilon: float,
        domain: Domain | None = None,
        options: Options | None = None,
        *,
        coded: Domain | None = None,
    ):
        """The test for this budget and these public columns; the one builder of every command and search.

        domain: None for data in natural units, else the columns coded as `spec.columns` says. coded: the same columns
        as codes, which `spec.accepts` is about; default domain.
        Errors: ValueError for columns that the test does not fit, for options and fields that it does not have, and for
        what it needs and was not given.
        """
        options = options or Options()
        asked = domain if coded is None else coded
        if asked is not None:
            self.require_fits(asked)
        self.require_settings(options)
        check.in_range(0.0, 1.0, level=options.level)
        fields = checked_fields(self.cls, options.fields)
        _refuse(self, [need for need in self.spec.needs if need not in fields and getattr(options, need, None) is None])
        if set(self.spec.needs) & fields.keys():
            return self.cls(epsilon=epsilon, **fields)
        test = self.spec.from_domain(self.cls, epsilon, domain, options)
        return dataclasses.replace(test, **fields) if fields else test

    def takes(self, setting: str) -> bool:
        """Whether its builder reads this setting, a field of `Options`."""
        return setting in self.spec.options or setting in self.spec.needs

    def require_settings(self, options: Options) -> None:
        """Raises ValueError for a setting that was given and that the builder does not read."""
        for name in options.given():
            if not self.takes(name):
                fitting = ", ".join(sorted(e.name for e in entries().values() if e.takes(name)))
                raise ValueError(f"{self.name} does not use {name}; it belongs to {fitting}.")

    def require_fits(self, domain: Domain) -> None:
        """Raises ValueError if the test cannot be asked about columns of this coded domain."""
        if self.spec.accepts(domain):
            return
        told = self.spec.why_not(domain)
        if told:
            raise ValueError(f"{told}.")
        asked = _sentence(domain)
        without_z = dataclasses.replace(domain, z=())
        if domain.z and self.spec.accepts(without_z):
            why = f"{self.name} does not condition on other columns, so it cannot test {asked}: leave them out, or use"
        elif not domain.z and self.spec.accepts(dataclasses.replace(domain, z=(Column(),))):
            why = f"{self.name} is a test given other columns, so it cannot test {asked}: name what is given, or use"
        else:
            why = f"{self.name} cannot test {asked}: {_taken(self.spec, domain)}. {_has(domain)}Use"
        raise ValueError(f"{why} another method, such as {default(domain).name}.")

    def within(self, epsilon: float, data, options: Options | None = None, *, coded: Domain | None = None):
        """`build` for these data, such that the cost is at most epsilon to the last bit.

        A budget's shares add up to it only up to rounding, and a ledger counts what is above it.
        """
        return at_most(epsilon, lambda budget: self.build(budget, data.domain, options, coded=coded), data)

    def memory(self, num_records: int) -> int:
        """Bytes that the test needs beyond a few copies of the data."""
        return 0 if self.spec.memory is None else self.spec.memory(num_records)

    def instead_of(self, asked: str | None) -> str:
        """Which test was taken for a classical name, as a sentence; "" for its own name, a place or none."""
        if asked is None or asked == self.name or ":" in asked:
            return ""
        return f"{asked} is answered by {self.name}: {self.spec.summary}."


def _sentence(domain: Domain) -> str:
    """What is asked about these columns, by their names, as half a sentence."""
    x, y, z = (
        ", ".join(column.name or role for column in part)
        for role, part in (("x", domain.x), ("y", domain.y), ("z", domain.z))
    )
    return f"whether {x} and {y} are independent" + (f" given {z}" if z else "")


_KINDS = {
    "numbers": Column(),
    "ordered levels": Column(ORDINAL, 5),
    "two levels": Column(CATEGORICAL, 2),
    "more unordered levels": Column(CATEGORICAL, 5),
}
_GIVEN = {
    " without other columns": (),
    " given one column of numbers": (Column(),),
    " given levels": (Column(CATEGORICAL, 3),),
    " given several columns of numbers": (Column(), Column()),
}


def _taken(spec: TestSpec, asked: Domain) -> str:
    """Which kinds of columns x and y the test takes, as half a sentence: given the same Z if it takes any so."""
    for given, z in ({"": asked.z} | _GIVEN).items():
        partners: dict[str, list[str]] = {}
        for x, column in _KINDS.items():
            taken = [y for y, other in _KINDS.items() if spec.accepts(Domain((column,), (other,), z))]
            if taken:
                partners.setdefault(_any_of(taken), []).append(x)
        if partners:
            return f"it takes {'; or '.join(f'x of {_any_of(x)} and y of {y}' for y, x in partners.items())}{given}"
    return "ask about others"


def _has(asked: Domain) -> str:
    """Of what kind X and Y are, as a sentence; "" where there are several."""
    if len(asked.x) != 1 or len(asked.y) != 1:
        return ""
    x, y = (f"{column.name or role} has {_kind(column)}" for role, column in (("x", asked.x[0]), ("y", asked.y[0])))
    return f"{x} and {y}. "


def _kind(column: Column) -> str:
    if not column.levels:
        return "numbers"
    order = "" if column.levels <= 2 else "ordered " if column.kind == ORDINAL else "unordered "
    return f"{column.levels} {order}levels"


def _any_of(names: Sequence[str]) -> str:
    if len(names) == len(_KINDS):
        return "any kind"
    if list(names) == list(_KINDS)[1:]:
        return "levels"
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


_HINTS = {
    "probabilities": "give one for each level, --set probabilities=0.25,0.5,0.25 (in Python fields={...})",
    "law": "give the known law of X given Z, or a design that has one (sine, shah-peters)",
    "test": "use jaxdp.all_pairs(test, key, features, z)",
    "loss": 'a function of Python, which no command takes; give fields={"loss": loss} to jaxdp.test',
    "columns": "it is asked about all pairs, with --all-pairs (in Python jaxdp.test_pairs)",
}


def _refuse(entry: Entry, missing: Sequence[str]) -> None:
    """Raises ValueError if anything is missing that a test needs."""
    if missing:
        hint = _HINTS.get(missing[0], "build it in Python")
        raise ValueError(f"{entry.name} needs {' and '.join(missing)}: {hint}.")


def at_most(epsilon: float, build: Callable[[float], Any], data):
    """build(epsilon), or with a rounding less where its cost on such data would exceed epsilon by rounding alone."""
    test = build(epsilon)
    if epsilon < np.asarray(cost_of(test, data).epsilon).item() <= epsilon * (1.0 + ROUNDING):
        test = build(epsilon * (1.0 - ROUNDING))
    return test


def require_buildable(entry: Entry) -> None:
    """Raises ValueError for a test that needs more than a budget and columns."""
    _refuse(entry, entry.spec.needs)


def own_spec(cls: type) -> TestSpec | None:
    """The spec that a class itself declares."""
    found = vars(cls).get("spec")
    return found if isinstance(found, TestSpec) else None


def spec_of(test) -> TestSpec:
    """What a test, or a test of one's own, says about itself. Errors: TypeError where it says nothing."""
    spec = getattr(test, "spec", None)
    if not isinstance(spec, TestSpec):
        name = type(test).__name__
        raise TypeError(
            f"{name} does not say how its columns are coded; give the class "
            f'spec = jaxdp.TestSpec(name="my-test", summary="...", columns=jaxdp.Columns.SCORES).'
        )
    return spec


def wants_scores(test) -> bool:
    """Whether a test takes coded x and y as numbers on [-1, 1] instead of codes."""
    return not spec_of(test).columns.coded


def require_any_pair(test) -> None:
    """Raises ValueError if a test cannot be asked about any two columns: its y is a public group, or it selects.

    Errors: TypeError for what is no test.
    """
    if not issubclass(test if isinstance(test, type) else type(test), PrivateQuery):
        raise TypeError(f"test must be a private test of jaxdp, got {type(test).__name__}.")
    spec = spec_of(test)
    if spec.columns is Columns.GROUPS:
        raise ValueError(
            f"{spec.name} compares groups that are public: its y is no feature, so it cannot be asked about any "
            "pair of columns; use conditional-kendall."
        )
    if spec.publishes not in (P_VALUE, DECISION):
        raise ValueError(f"{spec.name} publishes a {spec.publishes}, no p-value of a pair of columns.")


@functools.cache
def entries() -> Mapping[str, Entry]:
    """All tests by name, in the order of their names. Errors: ValueError where two tests have one name."""
    found: dict[str, Entry] = {}
    for cls in (*_exported(), *_declared()):
        spec = own_spec(cls)
        if spec is None:
            continue
        if spec.name in found and found[spec.name].cls is not cls:
            raise ValueError(f"{cls.__name__} and {found[spec.name].cls.__name__} are both called {spec.name!r}.")
        found[spec.name] = Entry(spec, cls)
    _claims(found.values())
    return dict(sorted(found.items()))


def _claims(found: Iterable[Entry]) -> dict[str, tuple[str, Entry]]:
    """Letters and digits of each classical name -> the name and its test. Errors: ValueError where two claim one."""
    own = {_letters(entry.name): entry for entry in found}
    claimed: dict[str, tuple[str, Entry]] = {}
    for entry in own.values():
        for name in entry.spec.known_as:
            other = own.get(_letters(name)) or claimed.get(_letters(name), ("", None))[1]
            if other is not None:
                raise ValueError(f"{other.name} and {entry.name} both answer to {name!r}; leave it to one of them.")
            claimed[_letters(name)] = name, entry
    return claimed


def _letters(name: str) -> str:
    """A name without case and without marks between words."""
    return "".join(filter(str.isalnum, name.lower()))


def _exported() -> list[type]:
    """What the package exports, and its published wing."""
    packages = [importlib.import_module(name) for name in ("jaxdp", "jaxdp.published")]
    found = (getattr(package, name) for package in packages for name in package.exported_names())
    return [value for value in found if inspect.isclass(value)]


def _declared() -> list[type]:
    """Tests of other installed packages; one that cannot be imported is left out."""
    found = []
    for point in _points():
        try:
            found.append(point.load())
        except Exception:  # another package's mistake must not take our own tests away
            continue
    return [value for value in found if inspect.isclass(value)]


@functools.cache
def _points() -> metadata.EntryPoints:
    return metadata.entry_points(group=GROUP)


def look_again() -> None:
    """Forgets which tests there are, in a process in which a package of tests has been installed or removed since."""
    for known in (_points, entries):
        known.cache_clear()


def _settled(choose: Callable[..., Entry], *asked: Any) -> Entry:
    """choose(*asked); a command keeps where the class stands, so that the next one imports no other test.

    Not where other packages declare tests: by their names alone one cannot see whether they have changed.
    """
    chosen: list[Entry] = []

    def place() -> str:
        chosen.append(choose(*asked))
        return f"{chosen[0].cls.__module__}:{chosen[0].cls.__qualname__}"

    kept = place() if _points() else kept_text((choose.__qualname__, *asked), place)
    if chosen:
        return chosen[0]
    module, _, name = kept.partition(":")
    cls = getattr(importlib.import_module(module), name)
    return Entry(cls.spec, cls)


def find(name: str) -> Entry:
    """The test of this name, of the classical test of this name, or of "package.module:Class".

    Errors: ValueError that names the closest ones.
    """
    if not isinstance(name, str) or not is_setting(name):
        raise ValueError(f"a test is named by a short text, got {printed(name)}.")
    if ":" in name:
        return _imported(name)
    return _settled(_named, name)


_PAIRED = (
    "no test compares two measurements of each record: mean-difference and kruskal-wallis take two groups of different "
    "records, and are not valid here. Make a column of the differences in the data, give it bounds, and jaxdp describe "
    "releases its quartiles"
)
_WHOLE_LAWS = (
    "no test compares whole distribution functions. Of two groups kruskal-wallis compares ranks, and quantile-table "
    "counts of quantile groups, any difference of which it sees"
)
NOT_OFFERED = {  # letters and digits of names that people look for -> why there is none, and what there is
    **dict.fromkeys(("pairedttest", "ttestpaired", "ttestrel", "dependentttest"), _PAIRED),
    **dict.fromkeys(("wilcoxon", "wilcoxonsignedrank", "signedrank", "signtest"), _PAIRED),
    **dict.fromkeys(("friedman", "friedmanchisquare", "repeatedmeasuresanova", "cochranq"), _PAIRED),
    **dict.fromkeys(
        ("mcnemar", "mcnemartest"),
        "no test compares two answers of each record. Make a column of three levels in the data (first alone, second "
        "alone, alike), and jaxdp describe releases its counts",
    ),
    **dict.fromkeys(("kolmogorovsmirnov", "ks", "kstest", "ks2samp", "andersondarling"), _WHOLE_LAWS),
}


def _named(name: str) -> Entry:
    """`find` among all tests."""
    found = entries().get(name) or classical().get(_letters(name), (name, None))[1]
    if found is None and _letters(name) in NOT_OFFERED:
        raise ValueError(f"{name} is not offered: {NOT_OFFERED[_letters(name)]}.")
    if found is None:
        close = _closest(name)
        near = [] if close else _about(name)
        hint = "jaxdp methods (in Python jaxdp.catalogue) lists them all."
        hint = f"did you mean {close}? {hint}" if close else hint
        hint = f"{' and '.join(near)} are near it, and {hint}" if len(near) > 1 else hint
        hint = f"{near[0]} is near it, and {hint}" if len(near) == 1 else hint
        raise ValueError(f"there is no test called {name!r}; {hint}")
    return found


def classical() -> Mapping[str, tuple[str, Entry]]:
    """Letters and digits of each name of `TestSpec.known_as` -> the name and its test."""
    return _claims(entries().values())


def is_known(name: str) -> bool:
    """Whether `find` takes this name, which is no place."""
    return name in entries() or _letters(name) in classical()


def own_name(name: str) -> str:
    """The test's own name for a classical one; other texts as they are."""
    with contextlib.suppress(ValueError):
        return name if ":" in name else find(name).name
    return name


def _closest(name: str) -> str:
    """The closest own name of a test, or the two closest names where a classical one is closest, with its test."""
    told = {alias.lower(): f"{alias!r} ({entry.name})" for alias, entry in classical().values()}
    told |= {own: repr(own) for own in entries()}
    near = difflib.get_close_matches(name.lower(), told, 2)
    return " or ".join(told[one] for one in near[: 1 if near and near[0] in entries() else 2])


def _about(word: str, most: int = 3) -> list[str]:
    """Names of private tests that say this word of themselves, published ones last."""
    told = {
        entry.name: f"{entry.name} {entry.spec.summary} {entry.spec.alternatives} {entry.cls.__doc__ or ''}".lower()
        for entry in sorted(entries().values(), key=lambda entry: bool(entry.spec.true_epsilon))
        if entry.spec.private
    }
    return [name for name, text in told.items() if len(word) > 3 and word.lower() in text][:most]


def _imported(place: str) -> Entry:
    module, _, attribute = place.partition(":")
    cls = load(place)
    spec = own_spec(cls) if inspect.isclass(cls) else None
    if spec is None:
        raise ValueError(f"{place} is no test: {attribute} of {module} must be a class with a spec (jaxdp.TestSpec).")
    return Entry(spec, cls)


def load(place: str) -> Any:
    """The object at "package.module:attribute"; modules of the working directory are found too.

    Errors: ValueError if there is none.
    """
    module, _, attribute = place.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{place} cannot be loaded: {error}.") from None


def offered() -> dict[str, Entry]:
    """The tests that a command can build from a budget and columns alone."""
    return {name: entry for name, entry in entries().items() if not entry.spec.needs}


def default(domain: Domain, columns: Columns | None = None, sees: str | None = None) -> Entry:
    """The test that fits columns of this domain best, by the ranks that the specs give.

    domain: with columns as they are coded, or coded as `columns` says: then only tests that take them so.
    sees: "linear", "monotone" or "any", the kind of dependence that the test must be built to see; None for the test
    that is recommended to a user without a wish. Errors: ValueError where no test sees that kind in such columns.
    """
    check.one_of((None, *KINDS_OF_ALTERNATIVES), sees=sees)
    return _settled(_default, domain, columns, sees)


def _default(domain: Domain, columns: Columns | None, sees: str | None) -> Entry:
    """`default` among all tests."""
    fitting = [entry for entry in entries().values() if entry.spec.accepts(domain) and not entry.spec.needs]
    fitting = [entry for entry in fitting if columns in (None, entry.spec.columns)]
    if are_times(domain):
        fitting = [entry for entry in fitting if entry.spec.of_times] or _refuse_times(domain)
    if sees is None:
        return max(fitting, key=lambda entry: entry.spec.rank(domain))
    serving = [entry for entry in fitting if sees in entry.spec.suitability(domain)]
    if not serving:
        known = [
            kind for kind in KINDS_OF_ALTERNATIVES if any(kind in entry.spec.suitability(domain) for entry in fitting)
        ]
        raise ValueError(
            f"no test sees {sees!r} dependence in these columns; "
            + (f"there is one for {' and '.join(known)}." if known else "name one by its method.")
        )
    return max(serving, key=lambda entry: entry.spec.suitability(domain)[sees])


def _refuse_times(domain: Domain) -> NoReturn:
    """Raises ValueError for times to an event that no test of them can be asked about."""
    told = next(entry.spec.why_not(domain) for entry in entries().values() if entry.spec.of_times)
    plain = default(dataclasses.replace(domain, y=tuple(dataclasses.replace(one, event=False) for one in domain.y)))
    raise ValueError(
        f"{told}; or name a test of the time and the event as plain columns, such as {plain.name}, which takes for a "
        "dependence also that X goes with being censored."
    )


def defaults(domain: Domain) -> list[Entry]:
    """The tests that may be the default for such columns, the best first."""
    ranked = [entry for entry in entries().values() if entry.spec.accepts(domain) and not entry.spec.needs]
    ranked = [entry for entry in ranked if entry.spec.rank(domain) > 0]
    return sorted(ranked, key=lambda entry: -entry.spec.rank(domain))


BOOLEANS = (bool, bool | None, "bool", "bool | None")  # types of fields, as classes state them


def checked_fields(cls: type, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a test by name, numbers as floats where the test sweeps over them. Errors: ValueError."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    spec = own_spec(cls)
    functions = spec.needs if spec else ()
    for name, value in constants.items():
        if name not in fields or name in ("epsilon", "mechanism"):
            known = ", ".join(key for key in fields if key not in ("epsilon", "mechanism"))
            raise ValueError(f"{cls.__name__} has no constant {name!r}; it has {known}.")
        plain = isinstance(value, bool | int | float | str | list | tuple)
        if not plain and not (callable(value) and name in functions):
            raise ValueError(f"{cls.__name__}: {name} must be a number, a text or a list, got {printed(value)}.")
        if fields[name].type in BOOLEANS and not isinstance(value, bool):
            raise ValueError(f"{cls.__name__}: {name} must be true or false, got {printed(value)}.")
    static = {name for name, field in fields.items() if field.metadata.get("static")}
    return {
        name: float(value) if isinstance(value, int) and not isinstance(value, bool) and name not in static else value
        for name, value in constants.items()
    }


def with_balanced_groups(test, num_records: int):
    """A case/control test with the public group sizes of a balanced design, which a traced y cannot tell."""
    if getattr(test, "num_cases", 0) is None:
        sizes = {"num_cases": num_records // 2, "num_controls": num_records - num_records // 2}
        return dataclasses.replace(test, **sizes)
    return test


def described(test) -> dict[str, Any]:
    """The public fields that a test was built with, as plain numbers and texts: printed with results and plans."""
    shown = {}
    for field in dataclasses.fields(test):
        value = getattr(test, field.name)
        if value is not None and value != field.default and field.name not in ("epsilon", "mechanism"):
            shown[field.name] = _plain(value)
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) or (np.ndim(value) == 0 and hasattr(value, "dtype")):
        return np.asarray(value).item()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if np.ndim(value) == 1 and len(value) <= MAX_NUMBERS and check.is_concrete(value):
        return [float(str(number)) for number in np.asarray(value)]  # 0.997, not the digits that float32 adds
    return getattr(value, "__name__", type(value).__name__)
