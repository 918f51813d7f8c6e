"""Public knowledge about columns, and how files become arrays."""

from jaxdp.data.dataset import Column, Data, Domain
from jaxdp.data.schema import Schema

__all__ = ["Column", "Data", "Domain", "Schema"]
