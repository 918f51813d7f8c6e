"""What an epsilon means for whoever a record is about: odds, and the best guess of two versions of it."""

import math

HOUSEHOLD = 4  # records that change together, in the tables
_TWO = {  # what the one who guesses chooses between, by relation
    "replace_one": "two versions of one record",
    "replace_attribute": "two versions of one record (which agree in its public columns)",
    "add_or_remove_one": "the presence and the absence of one record",
}


def odds(epsilon: float) -> float:
    """The factor by which the odds between two versions of a record grow at most."""
    return math.exp(epsilon) if epsilon < 700.0 else math.inf


def best_guess(epsilon: float, delta: float = 0.0) -> float:
    """The largest probability of picking the right one of two equally likely versions of a record, after all that left.

    (exp(epsilon) + delta)/(exp(epsilon) + 1), the exact bound of (epsilon, delta)-DP; 1/2 at epsilon 0.
    """
    return min((1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon)), 1.0)


def of_household(epsilon: float, delta: float = 0.0, size: int = HOUSEHOLD) -> float:
    """`best_guess` where so many records change together: size epsilon, delta times 1 + e^epsilon + ...."""
    together = math.fsum(odds(step * epsilon) for step in range(size)) * delta if delta else 0.0
    return best_guess(size * epsilon, min(together, 1.0))


def of_100(right: float) -> str:
    """A probability as so many of 100 cases, rounded up; 100 is not said, since no guess is certain."""
    upper = math.ceil(1000.0 * right) / 10.0
    return f"up to {upper:.1f}" if upper < 100.0 else "more than 99.9"


def shown(right: float) -> str:
    """A probability with three decimals, rounded up, never as certainty."""
    upper = math.ceil(1000.0 * right) / 1000.0
    return f"{upper:.3f}" if upper < 1.0 else ">0.999"


def sentence(epsilon: float, delta: float, relation: str, persons: bool = False) -> str:
    """What someone who knows every other record can guess of one; "" where epsilon or the relation says nothing.

    persons: all records of a person are protected together.
    """
    if relation not in _TWO or not math.isfinite(epsilon):
        return ""
    other, two = "person's records", _TWO[relation].replace("one record", "all records of one person")
    if not persons:
        other, two = "record", _TWO[relation]
    return (
        f"Someone who knows every other {other}, and considers {two} equally likely, identifies the right "
        f"one in {of_100(best_guess(epsilon, delta))} of 100 cases after seeing what is published here; "
        "without it, in 50."
    )
