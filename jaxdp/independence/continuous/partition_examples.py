"""Configurations of the partition tests with data to run on, and how much of their bounds is known to be reached."""

import functools

import numpy as np

from jaxdp.examples import AuditSettings, BestKnown, Example, PairSearch, with_gaussian_noise
from jaxdp.simulate import examples
from jaxdp.simulate.designs import confounder

WORST = "jaxdp.independence.continuous.worst_pairs"
ONE_CELL = "one cell: the bound of V is that of a record that moves between two cells, which data without z have not"
REACHED = {"covariance": 0.97, "variance": 1.0}
SEARCH = PairSearch(records=81)


def after(stage: str, **shares):
    """What is reached where another stage comes first, whose bounds are reached to these shares."""
    found = {f"PartitionGCM.{name}": share for name, share in REACHED.items()}
    return found | {f"{stage}.{name}".rstrip("."): share for name, share in shares.items()}


_example = functools.partial(
    Example,
    data=examples.continuous,
    null=confounder.sine_confounder,
    attack_tightness=REACHED,
    worst_pairs=f"{WORST}:cells",
    search=SEARCH,
)

EXAMPLES = (
    _example(),
    _example(
        data=examples.several_columns,
        null=examples.separate_columns,
        label="columns",
        worst_pairs=f"{WORST}:cells_with_columns",
    ),
    _example(make=with_gaussian_noise, label="zcdp"),
    _example(fields={"num_regions": 3, "num_null": 99}, label="regions"),
    _example(fields={"num_cells": 5, "weights": np.ones(5)}, label="weights"),
    _example(
        fields={"by_person": True}, label="persons", attack_tightness=REACHED | {"persons": 1.0}, audit=AuditSettings()
    ),
    Example(
        examples.without_z,
        null=examples.normal,
        label="marginal",
        attack_tightness={"covariance": 0.98, "variance": BestKnown(0.56, ONE_CELL)},
        worst_pairs=f"{WORST}:one_cell",
    ),
    _example(
        data=functools.partial(examples.continuous, dim=5),
        null=functools.partial(confounder.sine_confounder, dim=5),
        fields={"accept_coarse_cells": True},
        label="axes",
        attack_tightness=after("AxisSelection", x=0.98, y=0.98),
        worst_pairs=f"{WORST}:cells_with_axes",
        coupled=True,
        audit=AuditSettings(),
    ),
    _example(
        data=examples.bounded,
        null=examples.scaled,
        fields={"standardize": True},
        label="standardized",
        attack_tightness=after("Standardization", count=1.0, sum_x=1.0, sum_y=1.0),
        coupled=True,
    ),
)
