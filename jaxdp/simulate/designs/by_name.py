"""Designs by name, for grids: how the design of a name is built from n, an effect and further constants."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from jaxdp.catalogue import load
from jaxdp.simulate.designs import confounder, discrete, functions21
from jaxdp.simulate.designs.confounder import SineLaw
from jaxdp.simulate.engine.replicates import Design

# Group sizes are public to the tests too, which only know the balanced ones of a grid.
NO_CONSTANTS = ("effect", "num_cases")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One design: make(n=, effect=, **constants) -> callable key -> Data; effect 0 is the null hypothesis.

    constants: names and defaults of what else may be set. law: constants -> the known law of X given Z, where
    there is one for model-X tests.
    """

    name: str
    summary: str
    make: Callable[..., Any]
    constants: Mapping[str, Any]
    law: Callable[[Mapping[str, Any]], Any] | None = None

    def build(self, n: int, effect: float, constants: Mapping[str, Any] | None = None) -> Design:
        """The design. Errors: ValueError for a constant that it does not have or a value of the wrong kind."""
        return Design.of(self.make(n=n, effect=float(effect), **self.settings(constants)))

    def settings(self, constants: Mapping[str, Any] | None) -> dict[str, Any]:
        """The constants, checked and in the type of their defaults."""
        settings = {}
        for name, value in (constants or {}).items():
            if name not in self.constants:
                raise ValueError(f"design {self.name} has no constant {name!r}; it has {', '.join(self.constants)}.")
            settings[name] = _like(f"{self.name}: {name}", self.constants[name], value)
        return settings


def _like(what: str, default: Any, value: Any) -> Any:
    """The value in the type of the default: floats become arguments of the program, whole numbers its shape."""
    kinds: dict[type, tuple] = {bool: (bool,), int: (int,), float: (int, float), str: (str,), tuple: (tuple, list)}
    wanted = kinds.get(type(default))
    if wanted is None:
        return value
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise ValueError(f"{what} must be of the kind of {default!r}, got {value!r}.")
    return type(default)(value)


def _entry(name: str, function: Callable, summary: str, law=None, make=None) -> Entry:
    parameters = inspect.signature(function).parameters
    constants = {
        key: parameter.default
        for key, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and key not in NO_CONSTANTS
    }
    return Entry(name, summary, make or functools.partial(functools.partial, function), constants, law)


def _sine_law(defaults: Mapping[str, Any]):
    def law(constants: Mapping[str, Any]):
        merged = {**defaults, **constants}
        return SineLaw(complexity=float(merged["complexity"]), noise_sd=float(merged["noise_sd"]))

    return law


def _network(n: int, effect: float, network: str = "asia", x: str = "", y: str = "", given: tuple[str, ...] = ()):
    """effect 0 asks a query whose answer is independence, any other effect one whose answer is dependence."""
    if not x or not y:
        if x or y or network != "asia" or given:
            raise ValueError("design network needs x= and y=, names of two variables.")
        x, y = ("asia", "smoke") if effect == 0 else ("smoke", "bronc")
    if discrete.separated(network, x, y, given) != (effect == 0):
        truth = "independent" if effect else "dependent"
        wanted = 0 if effect else 1
        raise ValueError(f"{x} and {y} are {truth} in {network}, so effect must be {wanted}, got {effect:g}.")
    return functools.partial(discrete.network_query, n=n, network=network, x=x, y=y, given=given)


DESIGNS = {
    entry.name: entry
    for entry in (
        _entry(
            "sine",
            confounder.sine_confounder,
            "sine confounder of the GCM paper, normal noise",
            law=_sine_law({"complexity": 2.0, "noise_sd": 1.0}),
        ),
        _entry(
            "shah-peters",
            confounder.shah_peters,
            "the same with the constants of Shah and Peters",
            law=_sine_law({"complexity": 2.0, "noise_sd": 0.3}),
        ),
        _entry("post-nonlinear", confounder.post_nonlinear, "increasing functions applied after the noise"),
        _entry("heteroscedastic", confounder.heteroscedastic_confounder, "skewed noise that grows with |Z|"),
        _entry("heavy-tailed", confounder.heavy_tailed_confounder, "Student noise"),
        _entry("discrete", discrete.discrete_confounder, "ordered codes, discrete Z"),
        _entry("mixed", discrete.mixed_confounder, "continuous X, ordered Y, one Z of each kind"),
        _entry("case-control", discrete.case_control, "2x2 table, public groups; effect: difference of the two rates"),
        Entry(
            "functions21",
            "the 21 relations of the MIC literature; effect: R^2",
            lambda n, effect, **constants: functions21.relation(n, effect=effect, **constants),
            {"function": 12, "null_level": 0.5},
        ),
        Entry(
            "network",
            "a query about a Bayesian network; effect 0 for a separated pair, 1 for a dependent one",
            _network,
            {"network": "asia", "x": "", "y": "", "given": ()},
        ),
    )
}


def design(name: str) -> Entry:
    """The design of this name, or of "package.module:function", a function (key, n, effect, ...) -> Data.

    Keyword-only parameters of such a function are its constants; an attribute `law`, constants -> the law of X given Z,
    serves model-X tests. Errors: ValueError that lists the names.
    """
    if ":" in name:
        return of_function(load(name), name)
    if name not in DESIGNS:
        raise ValueError(f"design must be one of {', '.join(DESIGNS)}, got {name!r}.")
    return DESIGNS[name]


def of_function(function: Any, place: str = "") -> Entry:
    """A design from a function (key, n, effect, ...) -> Data, named by its place."""
    place = place or f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', repr(function))}"
    parameters = inspect.signature(function).parameters if callable(function) else {}
    if not {"n", "effect"} <= set(parameters):
        raise ValueError(f"{place} is no design: it must be a function (key, n, effect) -> Data; effect 0 is the null.")
    summary = (inspect.getdoc(function) or place).partition("\n")[0]
    return _entry(place, function, summary, law=getattr(function, "law", None))
