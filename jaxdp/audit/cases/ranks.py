"""Configurations of the ranks tests for audits and the contract: one tuple a test, by the test's name."""

from jaxdp.examples import Example
from jaxdp.independence.ranks import kendall_examples, kruskal_examples
from jaxdp.simulate import examples
from jaxdp.simulate.designs import confounder

conditional_kendall = kendall_examples.EXAMPLES

conditional_spearman = (
    Example(
        examples.continuous,
        null=confounder.sine_confounder,
        fields=kendall_examples.COARSE,
        attack_tightness=kendall_examples.reached(0.97, 0.73),
        worst_pairs=f"{kendall_examples.WORST}:ranks",
        audit=kendall_examples.AUDIT,
    ),
    Example(
        examples.continuous,
        fields=kendall_examples.JOINS,
        label="joins",
        attack_tightness={"u": 0.97, "v": 0.97},
        worst_pairs=f"{kendall_examples.WORST}:joining_ranks",
        search=kendall_examples.PAIRS_ALONE,
        bounds_only=True,
    ),
    Example(
        examples.pair,
        label="marginal",
        attack_tightness=kendall_examples.reached(0.97, 0.73),
        worst_pairs=f"{kendall_examples.WORST}:one_stratum",
        search=kendall_examples.PAIRS_ALONE,
        bounds_only=True,
    ),
)

kruskal_wallis = kruskal_examples.EXAMPLES
