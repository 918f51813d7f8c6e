"""The keywords of a plan, declared once, and its four quantities; without JAX, so that a refusal costs no time."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from jaxdp._base import arguments
from jaxdp._base.keywords import Keyword

QUANTITIES = ("n", "epsilon", "effect", "power")
COARSE_CELLS = (
    "also run tests that cut Z into cells if Z has 2 or more continuous columns, at the price of false findings"
)


class SettingOptions(TypedDict, total=False):
    """Fields of `jaxdp.plan.Setting` and the settings of single methods; those with a text are options."""

    residual_sd: Annotated[
        float,
        Keyword("S", arguments.positive_number),
        "with --schema: sd of the part of a continuous column that Z does not explain, for columns scaled to "
        "[-1, 1] (default 0.2)",
    ]
    accept_coarse_cells: Annotated[bool, COARSE_CELLS]
    rate: Annotated[
        float,
        Keyword("P", arguments.probability),
        "with --method logistic-regression: share of the records with Y's second level (default 0.5); with "
        "poisson-regression: mean of Y over its upper bound (default 0.1)",
    ]
    covariates: Annotated[
        int,
        Keyword("K", arguments.count),
        "with --method logistic-regression or poisson-regression, without --schema: number of columns held fixed "
        "(default 0)",
    ]
    correlation: Annotated[
        float,
        Keyword("R", arguments.probability),
        "with --method logistic-regression or poisson-regression: correlation of any two of X and the columns held "
        "fixed (default 0.3)",
    ]
    most: float
    dispersion: float
    confounding: float
    tails: float
    bent: bool
    share: float
    events: float
    lost: float


class PlanOptions(SettingOptions, total=False):
    """The keywords of `jaxdp.plan`."""

    n: Annotated[int | None, Keyword("N", arguments.count), "number of records"]
    epsilon: Annotated[float | None, Keyword("E", arguments.budget), "privacy budget"]
    delta: Annotated[
        float,
        Keyword("D", arguments.probability, 0.0),
        "use Gaussian noise that is (epsilon, D)-DP (default: pure epsilon)",
    ]
    effect: Annotated[float | None, Keyword("B", arguments.positive_number), "effect to find"]
    power: Annotated[float | None, Keyword("P", arguments.probability), "wanted probability of finding the effect"]
    level: Annotated[float, Keyword("LEVEL", arguments.probability, 0.05), "significance level (default 0.05)"]
    schema: Annotated[Any, Keyword("S.toml"), "public knowledge about the columns (no data are read)"]
    x: Annotated[str | None, Keyword("A"), "column X of the schema"]
    y: Annotated[str | None, Keyword("B"), "column Y of the schema"]
    given: Annotated[
        str | Sequence[str],
        Keyword("C,D", arguments.names, (), more={"action": "append"}),
        "columns Z of the schema; may be repeated",
    ]
    bounds: Mapping[str, Sequence[float]] | None
    levels: Mapping[str, Sequence[Any]] | None


def unknown(**given: object) -> str:
    """The one quantity that is None. Errors: ValueError unless exactly one of four is."""
    missing = [name for name in QUANTITIES if given[name] is None]
    if len(missing) != 1:
        have = ", ".join(name for name in QUANTITIES if given[name] is not None) or "none of them"
        raise ValueError(f"give three of {', '.join(QUANTITIES)}, the fourth is the answer; got {have}.")
    return missing[0]
