"""Configurations of the pairs tests for audits and the contract: one tuple a test, by the test's name."""

from jaxdp.examples import AuditSettings, Example
from jaxdp.independence.continuous import partition_examples
from jaxdp.independence.continuous.partition_gcm import PartitionGCM
from jaxdp.simulate import examples


def _of_cells(cls, epsilon, **fields):
    return cls(test=PartitionGCM(epsilon=epsilon, **fields))


all_pairs = (
    Example(
        examples.three_features,
        null=examples.separate_features,
        make=_of_cells,
        attack_tightness=partition_examples.REACHED,
        worst_pairs=f"{partition_examples.WORST}:cells_of_features",
        search=partition_examples.SEARCH,
        audit=AuditSettings(examples.two_features, neighbours=f"{partition_examples.WORST}:moved"),
        coupled=True,
    ),
)
