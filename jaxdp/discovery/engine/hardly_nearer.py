"""A caution of searches of continuous columns where the graph is not expected to be nearer to the truth than none."""

import dataclasses
import math
from collections.abc import Callable

from jaxdp.discovery.spec import Setting

GROWTH = 1.02  # steps in which a larger epsilon is tried for the sentence that proposes one
MIN_COLUMNS = 8  # of the models on which it was measured
MAX_STEPS = 600  # of a larger epsilon, or more records


def rounded_up(value: float) -> float:
    """To two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def hardly_nearer(setting: Setting, weakest: Callable[[Setting], float], limit: float) -> str:
    """That the graph will be about as far from the truth as one without edges, and what would help; else nothing.

    weakest: setting -> the weakest line that the search just finds. limit: from which on graphs of random models were
    measured to be as far from the truth as no edges.
    """

    def first(values) -> float | None:
        return next((value for value, other in values if weakest(other) < limit), None)

    if setting.num_columns < MIN_COLUMNS or not limit <= weakest(setting) < math.inf:
        return ""
    grown = [GROWTH**step for step in range(1, MAX_STEPS)]
    epsilons = ((setting.epsilon * by, dataclasses.replace(setting, epsilon=setting.epsilon * by)) for by in grown)
    sizes = (math.ceil(setting.num_records * by) for by in grown)
    needed = first(epsilons)
    records = first((size, dataclasses.replace(setting, num_records=size)) for size in sizes)
    ways = [f"epsilon {rounded_up(needed):g}"] if needed else []
    ways += [f"{rounded_up(records):.0f} records"] if records else []
    return (
        "Expect this graph to be about as far from the truth as a graph without edges, as graphs of random models with "
        f"this much noise are (docs/discovery.md#continuous-distance). From about {' or '.join(ways)} on such graphs "
        "are nearer."
    )
