"""What every public call about a table has: the shared keywords in its signature, and that it runs in plain Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from jaxdp._base.keywords import flat
from jaxdp.randomness.host import require_host

WAY_OUT = (
    "call it in plain Python, once for each table; what JAX transforms is jaxdp.run of one test on jaxdp.Data, with a "
    "key of jax.random.key(seed)"
)


def table_call[F: Callable](options: Any) -> Callable[[F], F]:
    """Decorator of such a call: arguments as of `keywords.flat`. The call refuses a trace of JAX, first of all."""

    def decorate(function: F) -> F:
        name = f"jaxdp.{function.__qualname__.removesuffix('.__init__')}"

        @functools.wraps(function)
        def called(*arguments: Any, **how: Any) -> Any:
            require_host(name, *arguments, *how.values(), way_out=WAY_OUT)
            return function(*arguments, **how)

        return cast(F, flat(options)(called))

    return decorate
