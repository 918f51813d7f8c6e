"""Configurations of the rank tests with data to run on, and how much of their bounds is known to be reached."""

import functools

from jaxdp.core import Relation
from jaxdp.examples import AuditSettings, BestKnown, Example, PairSearch, with_gaussian_noise
from jaxdp.simulate import examples
from jaxdp.simulate.designs import confounder

WORST = "jaxdp.independence.ranks.worst_pairs_ranks"
RANK_VARIANCE = "the part of a record that leaves is proven, not attained (docs/theory/conditional_kendall.md)"
PAIRS_ALONE = PairSearch(rounds=None)
COARSE = {"accept_coarse_cells": True}  # where the cells of a continuous z are looked at
JOINS = {"relation": Relation.ADD_OR_REMOVE_ONE, "num_cells": 4, "max_records": 1000, **COARSE}
AUDIT = AuditSettings(examples.equal_strata)


def reached(u: float, v: float):
    """Shares of both bounds, the second of which no pair attains."""
    return {"u": u, "v": BestKnown(v, RANK_VARIANCE)}


EXAMPLES = (
    Example(
        examples.continuous,
        null=confounder.sine_confounder,
        fields=COARSE,
        attack_tightness=reached(0.95, 0.91),
        worst_pairs=f"{WORST}:ranks",
        audit=AUDIT,
    ),
    Example(
        functools.partial(examples.codes, levels=(2, 3, 2)),
        null=functools.partial(examples.leaning_codes, levels=(2, 3, 2)),
        label="codes",
        attack_tightness=reached(0.93, 0.78),
        worst_pairs=f"{WORST}:binary_ranks",
    ),
    Example(
        examples.pair,
        null=examples.uniform,
        make=with_gaussian_noise,
        label="marginal-zcdp",
        attack_tightness=reached(0.96, 0.88),
        worst_pairs=f"{WORST}:one_stratum",
    ),
    Example(
        functools.partial(examples.codes, levels=(2, 2, 2)),
        label="binary",
        attack_tightness=reached(0.96, 0.66),
        worst_pairs=f"{WORST}:binary_pair",
        bounds_only=True,
    ),
    Example(
        functools.partial(examples.codes, levels=(2, 2, 0)),
        label="binary-marginal",
        attack_tightness=reached(0.93, 0.5),
        search=PairSearch(records=16),
        bounds_only=True,
    ),
    Example(
        examples.continuous,
        fields=JOINS,
        label="joins",
        attack_tightness={"u": 0.96, "v": 0.97},
        worst_pairs=f"{WORST}:joining_ranks",
        bounds_only=True,
    ),
)
