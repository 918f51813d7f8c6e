"""Objects named by their place, "package.module:name", and imported when they are first needed."""

import importlib


def loaded(place):
    """The object at "package.module:name"; anything else as it is."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
