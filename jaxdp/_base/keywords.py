"""Keywords are declared once, as a TypedDict: the calls show them as their own, the commands have them as options."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import numbers
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from jaxdp._base.printed import printed

NUMBERS = {int, float, types.NoneType}
NO_SEED = "a simulation, which is not private, takes key=jax.random.key(1); a release takes no key."


@dataclasses.dataclass(frozen=True)
class Keyword:
    """What is said of a keyword beside its type: `Annotated[float, Keyword("D", default=0.0), "its help"]`.

    metavar: what stands for the value of the option; a switch has neither it nor choices. read: text -> value.
    default: of a keyword that is not required. gather: makes the value of an option that collects several. flag: the
    option, where it has a name of its own. more: further arguments of `add_argument`. help: the text after it; a
    keyword without one is no option.
    """

    metavar: str | None = None
    read: Callable[[str], Any] = str
    default: Any = None
    choices: tuple[str, ...] | None = None
    gather: Callable[[Any], Any] = lambda value: value
    flag: str = ""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    help: str = ""


@functools.cache
def declared(options: Any) -> dict[str, tuple[Any, Keyword]]:
    """Name -> (type, what is said of it) of the keywords of a TypedDict, its own before those of its bases."""
    bases = [
        name for base in types.get_original_bases(options) if hasattr(base, "__total__") for name in declared(base)
    ]
    own = [name for name in options.__annotations__ if name not in bases]
    return {name: _parts(options.__annotations__[name]) for name in (*own, *bases)}


def _parts(hint: Any) -> tuple[Any, Keyword]:
    """The type, and what is said beside it, of a hint such as Required[Annotated[float, Keyword(...), "help"]]."""
    if getattr(hint, "__origin__", None) is typing.Required:
        (hint,) = hint.__args__
    told = getattr(hint, "__metadata__", ())
    said = next((one for one in told if isinstance(one, Keyword)), Keyword())
    texts = [one for one in told if isinstance(one, str)]
    plain = getattr(hint, "__origin__", hint) if told else hint
    return getattr(plain, "__forward_arg__", plain), dataclasses.replace(said, help=texts[-1]) if texts else said


def complete[Options](options: type[Options], given: Mapping[str, Any]) -> Options:
    """All keywords of a TypedDict, by default those that are not given.

    Errors: TypeError for one that there is not, with what was probably meant, for a required one that is missing, and
    for what is no number where the type says number.
    """
    known: dict[str, Any] = declared(typing.cast(Any, options))
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
            raise TypeError(
                f"there is no keyword {name!r}; {NO_SEED if name in ('seed', 'random_state', 'rng') else hint}"
            )
    for name in known:
        if name in options.__required_keys__ and name not in given:  # type: ignore[attr-defined]
            raise TypeError(f"{name} is missing: give {name}=.")
    for name, value in given.items():
        kinds = set(typing.get_args(known[name][0]) or (known[name][0],))
        if kinds & {int, float} and kinds <= NUMBERS and not _is_one(value, kinds):
            raise TypeError(f"{name} must be one number, got {printed(value)}.")
    # None stands for "not given" in wrappers that pass their own arguments on (`given=None` is no Z), but for a keyword
    # whose type allows it beside another default: there it says something
    telling = {
        name
        for name, (kind, said) in known.items()
        if said.default is not None and types.NoneType in typing.get_args(kind)
    }
    used = {name for name, value in given.items() if value is not None or name in telling}
    return {name: given[name] if name in used else said.default for name, (_, said) in known.items()}  # type: ignore[return-value]


def _is_one(value: Any, kinds: set[Any]) -> bool:
    """Whether it is one number, of any library, or the None that the type allows."""
    if value is None:
        return types.NoneType in kinds
    number = isinstance(value, numbers.Number) or getattr(value, "shape", None) == ()
    return number and not isinstance(value, str | bytes)


def flat[F: Callable](options: Any) -> Callable[[F], F]:
    """Decorator: the signature of a function of `**how: Unpack[options]` lists these keywords, for help and notebooks.

    options: a TypedDict. The function itself is unchanged.
    """
    kind, nothing = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
        shared = [
            inspect.Parameter(
                name, kind, default=nothing if name in options.__required_keys__ else said.default, annotation=hint
            )
            for name, (hint, said) in declared(options).items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return function

    return decorate
