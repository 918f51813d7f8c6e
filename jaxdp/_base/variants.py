"""`variant=` of a recommended test or search picks one of its forms; each form is a class or function of its own.

`PrivateGCM(epsilon=1.0, variant="paper")` builds `jaxdp.published.PaperGCM(epsilon=1.0)`: the spec of `PrivateGCM` says
where the form is. This is the only place that looks at `variant`.
"""

import functools
from collections.abc import Callable
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, ClassVar

from jaxdp._base import check
from jaxdp._base.places import loaded
from jaxdp._base.pytree import frozen_pytree

OWN = ""  # in a spec's `variants`, the place of the form that carries the spec


def chosen(owner: Any, variant: Any) -> Any:
    """The form of a class or function that `variant=` names; None names its own. Errors: ValueError, TypeError."""
    known = owner.spec.variants
    if variant is None:
        return owner
    if not known:
        raise TypeError(f"{owner.__name__} has no variants, got variant={variant!r}.")
    check.one_of(tuple(known), variant=variant)
    return loaded(known[variant]) if known[variant] != OWN else owner


class ByVariant(type):
    """Metaclass: calling the class with `variant=` builds the form that it names, also in `dataclasses.replace`."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        if "variant" in fields:
            return chosen(cls, fields.pop("variant"))(*args, **fields)
        return super().__call__(*args, **fields)


@frozen_pytree
class Variants(metaclass=ByVariant):
    """Base of tests that take `variant=`; no field of theirs, the class is the answer."""

    spec: ClassVar[Any]

    if TYPE_CHECKING:
        variant: InitVar[str | None] = None


def by_variant[F: Callable](function: F) -> F:
    """A function that takes `variant=` and hands its other arguments to the form that it names."""

    @functools.wraps(function)
    def call(*args, variant=None, **options):
        return chosen(function, variant)(*args, **options)

    return call  # type: ignore[return-value]


def settings_beyond_fields(cls: type) -> tuple[str, ...]:
    """Names that the class takes by keyword and that are no fields of it."""
    variants = getattr(getattr(cls, "spec", None), "variants", None)
    return ("variant",) if variants else ()
