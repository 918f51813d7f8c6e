"""Remarks for the person who holds a table: they depend on its records, so they are never part of an answer."""

import warnings
from pathlib import Path

OWNER = "for the owner of the file, not for release"
PACKAGE = str(Path(__file__).parents[1])


class OwnerWarning(UserWarning):
    """What the owner of a table should know about it. Private: not for release."""


def warn_owner(text: str) -> None:
    """Warns in the line that called the package; the command line writes the text on standard error."""
    warnings.warn(text, OwnerWarning, skip_file_prefixes=(PACKAGE,))
