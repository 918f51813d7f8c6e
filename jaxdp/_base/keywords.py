"""Keywords that many calls share are declared once, as a TypedDict; the calls show them as their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any


def flat[F: Callable](options: Any, *, without: Collection[str] = (), **defaults: Any) -> Callable[[F], F]:
    """Decorator: the signature of a function of `**how: Unpack[options]` lists these keywords, for help and notebooks.

    options: a TypedDict. without: its keys that the function refuses, which it does not show. defaults: of the others;
    None for those that have none. The function itself is unchanged.
    """
    kind = inspect.Parameter.KEYWORD_ONLY

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
        hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in options.__annotations__.items()}
        shared = [
            inspect.Parameter(name, kind, default=defaults.get(name), annotation=hint)
            for name, hint in hints.items()
            if name not in without
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return function

    return decorate
