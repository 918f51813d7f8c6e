"""Configurations of the variants tests for audits and the contract: one tuple a test, by the test's name."""

from jaxdp.examples import AuditSettings, Example, PairSearch
from jaxdp.independence.variants import score_examples

best_variants = (
    Example(
        score_examples.cohort,
        null=score_examples.null_cohort,
        fields={"count": 2},
        attack_tightness=score_examples.reaches("BestVariants", chosen=True),
        worst_pairs=score_examples.worst_pairs,
        search=PairSearch(records=9, rounds=4),
        coupled=True,
    ),
)

score_test = (
    Example(
        score_examples.cohort,
        null=score_examples.null_cohort,
        attack_tightness=score_examples.reaches("ScoreTest"),
        worst_pairs=score_examples.worst_pairs,
        search=PairSearch(records=9, rounds=4),
        coupled=True,
        audit=AuditSettings(fields=score_examples.ABOUT_KNOWN_LINES, neighbours=score_examples.first_worst_pair),
    ),
    Example(
        score_examples.cohort,
        null=score_examples.null_cohort,
        label="bins",
        fields=score_examples.ABOUT_BINS,
        attack_tightness=score_examples.WITHIN_BINS,
        worst_pairs=score_examples.worst_pairs_in_bins,
        search=PairSearch(records=9, rounds=4),
        audit=AuditSettings(neighbours=score_examples.worst_pairs_in_bins),
    ),
)
