"""Keywords that many calls share are declared once, as a TypedDict; the calls show them as their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def flat[F: Callable](options: Any, **defaults: Any) -> Callable[[F], F]:
    """Decorator: the signature of a function of `**how: Unpack[options]` lists these keywords, for help and notebooks.

    options: a TypedDict. defaults: of its keys; None for the others. The function itself is unchanged.
    """
    kind = inspect.Parameter.KEYWORD_ONLY

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
        hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in options.__annotations__.items()}
        shared = [inspect.Parameter(n, kind, default=defaults.get(n), annotation=hint) for n, hint in hints.items()]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return function

    return decorate
