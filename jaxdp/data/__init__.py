"""Public knowledge about columns, and how files become arrays."""

from jaxdp._base import lazy

# name -> module that holds it; imported on first use: a schema is read, and a mistake in it told, without JAX.
_EXPORTS = {"Column": "columns", "Data": "dataset", "Domain": "columns", "Schema": "schema"}

__all__, __getattr__, __dir__ = lazy.names(__name__, _EXPORTS)
