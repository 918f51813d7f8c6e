"""The four quantities of a plan, of which three give the fourth; without JAX, so that a refusal costs no time."""

QUANTITIES = ("n", "epsilon", "effect", "power")


def unknown(**given: object) -> str:
    """The one quantity that is None. Errors: ValueError unless exactly one of four is."""
    missing = [name for name in QUANTITIES if given[name] is None]
    if len(missing) != 1:
        have = ", ".join(name for name in QUANTITIES if given[name] is not None) or "none of them"
        raise ValueError(f"give three of {', '.join(QUANTITIES)}, the fourth is the answer; got {have}.")
    return missing[0]
