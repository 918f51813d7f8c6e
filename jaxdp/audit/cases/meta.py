"""Configurations of the meta tests for audits and the contract: one tuple a test, by the test's name."""

from jaxdp.examples import AuditSettings, Example
from jaxdp.simulate import examples
from jaxdp.statistics.tables.association import CorrelationTest

subsample_aggregate = (
    Example(
        examples.pair,
        null=examples.normal,
        fields={"statistic_of": CorrelationTest().value, "num_blocks": 4, "num_null": 39},
        attack_tightness={"value": 1.0, "smooth": 0.99},
        audit=AuditSettings(examples.uniform),
        coupled=True,
        min_records=20,
    ),
)

test_of_tests = (
    Example(
        examples.pair,
        null=examples.normal,
        fields={"test": CorrelationTest(), "num_blocks": 4},
        attack_tightness=1.0,
        audit=AuditSettings(examples.uniform),
        coupled=True,
        min_records=20,
    ),
    Example(
        examples.pair,
        fields={"test": CorrelationTest(), "num_blocks": 4, "shuffle": False},
        label="in-order",
        attack_tightness=1.0,
        audit=AuditSettings(examples.uniform),
        min_records=20,
        bounds_only=True,
    ),
)
