"""Configurations of the published tests for audits and the contract: one tuple a test, by the test's name."""

import dataclasses
import functools
import math

from jaxdp.audit.cases import mic, tables
from jaxdp.examples import AuditSettings, BestKnown, Example
from jaxdp.independence.ranks import kendall_examples
from jaxdp.simulate import examples
from jaxdp.simulate.designs import confounder

conditional_kendall_paper = (
    Example(
        examples.codes,
        null=functools.partial(examples.leaning_codes, levels=(3, 3, 2)),
        fields=kendall_examples.COARSE,  # the pair made by hand is without a domain
        attack_tightness=1.0,
        worst_pairs=f"{kendall_examples.WORST}:three_and_one",
        cost_ratio=(1.5, math.inf),
    ),
)

first_tables_paper = tuple(dataclasses.replace(example, cost_ratio=(1.5, math.inf)) for example in tables.first_tables)

unit_circle_paper = (dataclasses.replace(tables.unit_circle[0], cost_ratio=(0.5, 0.9)),)

_LOOSE = "the published constant is true but too large"

mice_laplace_paper = (
    dataclasses.replace(mic.mice_laplace[0], attack_tightness=BestKnown(0.05, _LOOSE), min_records=6),
)

micr_geometric_paper = tuple(dataclasses.replace(example, cost_ratio=(1.5, math.inf)) for example in mic.micr_geometric)

micr_geometric_split = mic.micr_geometric

micr_laplace_paper = (dataclasses.replace(mic.micr_laplace[0], attack_tightness=BestKnown(0.24, _LOOSE)),)

_WORST = "jaxdp.independence.continuous.worst_pairs:clusters"

private_crt_paper = (
    Example(
        examples.continuous,
        null=confounder.sine_confounder,
        fields={"law": examples.LAW},
        attack_tightness=BestKnown(0.45, _LOOSE),
        worst_pairs=_WORST,
        audit=AuditSettings(examples.strong, fields={"law": examples.LAW, "num_resamples": 19}),
        coupled=True,
    ),
)

private_gcm_paper = (
    Example(
        examples.bounded, null=confounder.sine_confounder, attack_tightness=BestKnown(0.23, _LOOSE), worst_pairs=_WORST
    ),
)
