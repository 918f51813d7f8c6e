"""EM-PC as published: a greedy score without a useful sensitivity, so no epsilon is true for it.

Source: Xu, Yuan and Wu 2017. The score of a conditioning set counts greedy deletions until the test changes its mind;
neighbouring data sets change it by n + 1 (docs/theory/em_pc.md#what-was-wrong); the exponential mechanism needs 1.
"""


def greedy_em_pc(key, data, **options):
    """Refused: epsilon is infinite. Errors: ValueError."""
    del key, data, options
    raise ValueError(
        "the greedy score of EM-PC is NOT PRIVATE at any stated epsilon (one record changes it by n + 1); "
        "use variant='lipschitz'."
    )
