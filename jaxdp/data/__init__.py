"""Public knowledge about columns, and how files become arrays."""

from jaxdp.data.dataset import Column, Data, Domain

__all__ = ["Column", "Data", "Domain"]
