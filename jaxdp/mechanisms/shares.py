"""A fraction of a mechanism's budget, for mechanisms whose budget is their epsilon."""

import dataclasses

from jaxdp._base import check


def share_of(mechanism, fraction):
    """The mechanism with this fraction of its epsilon, rounded down: shares never add up to more."""
    return dataclasses.replace(mechanism, epsilon=check.share(mechanism.epsilon, fraction))
