"""Configurations of the survival tests for audits and the contract: one tuple a test, by the test's name."""

from jaxdp.independence.survival import survival_examples

log_rank = survival_examples.EXAMPLES
