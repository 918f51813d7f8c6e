"""Configurations of the tables tests for audits and the contract: one tuple a test, by the test's name."""

import dataclasses
import functools
import math

from jaxdp.examples import AuditSettings, Example, PairSearch, in_zcdp
from jaxdp.independence.tables.gwas import Tables
from jaxdp.independence.tables.unit_circle import UnitCircle
from jaxdp.simulate import examples


def _counts(key, n: int) -> Tables:
    """n tables, a tenth of them with an effect."""
    return Tables(*examples.case_control_counts(key, n))


def _equal_counts(key, n: int) -> Tables:
    """n tables of 100 cases and 100 controls, none with an effect."""
    return Tables(*examples.equal_counts(key, n))


def _equal_counts_of_an_audit(key, n: int) -> Tables:
    """n small tables, none with an effect."""
    return Tables(*examples.equal_counts(key, n, examples.GROUP))


def _audit(neighbours: str, view: str | None = None, **fields) -> AuditSettings:
    """An audit on four tables, by the names of a pair and of what is looked at."""
    return AuditSettings(
        _equal_counts_of_an_audit,
        records=4,
        neighbours=f"{_WORST}:{neighbours}",
        view=view and f"{_WORST}:{view}",
        fields={**_GROUPS, **fields} if fields else None,
    )


_WORST = "jaxdp.independence.tables.worst_pairs_tables"

_GENOTYPES = PairSearch(replace=f"{_WORST}:genotype")

_GROUPS = {"num_cases": examples.GROUP, "num_controls": examples.GROUP, "kind": UnitCircle}

_tables = functools.partial(Example, _counts, null=_equal_counts, search=_GENOTYPES, coupled=True)

best_tables = (
    _tables(
        fields={**_GROUPS, "count": 2},
        attack_tightness={"TableSelection": 1.0, "ChosenTables": 0.99},
        audit=_audit("one_rare_genotype", "chosen"),
    ),
)

every_table = (_tables(fields=_GROUPS, attack_tightness=1.0, audit=_audit("one_genotype"), cost_ratio=(1.5, math.inf)),)

first_tables = (
    _tables(fields={**_GROUPS, "count": 2}, attack_tightness=0.99, audit=_audit("one_genotype", "answers", count=1)),
)

_TWO_GROUPS = Example(
    examples.groups, null=examples.equal_groups, attack_tightness=1.0, audit=AuditSettings(examples.attacked_groups)
)

chi2_laplace = (_TWO_GROUPS,)

distance_score = (_TWO_GROUPS,)

goodness_of_fit = (
    Example(
        functools.partial(examples.codes, levels=(3, 3, 0)),
        null=examples.quarter_half_quarter,
        fields={"probabilities": [0.25, 0.5, 0.25], "num_null": 39},
        attack_tightness=1.0,
        audit=AuditSettings(functools.partial(examples.equal_strata, levels=(3, 3, 0))),
    ),
)


def _coded(levels: tuple[int, int, int], audited: tuple[int, int, int]) -> Example:
    """Columns of so many levels. audited: those of an audit."""
    return Example(
        functools.partial(examples.codes, levels=levels),
        null=functools.partial(examples.leaning_codes, levels=levels),
        fields={"num_null": 39},
        attack_tightness=1.0,
        audit=AuditSettings(functools.partial(examples.equal_strata, levels=audited)),
    )


projected_chi2 = (_coded((2, 3, 0), audited=(3, 3, 0)),)

margin_adaptive = (dataclasses.replace(_TWO_GROUPS, attack_tightness=0.99),)

noisy_proportions = (_TWO_GROUPS,)

noisy_table = (_coded((3, 3, 0), audited=(3, 3, 0)),)

_WORST_pair_contrasts = "jaxdp.independence.tables.worst_pairs_contrasts"

_PAIRS = Example(
    examples.four_columns,
    null=examples.four_separate_columns,
    fields={"num_null": 39, "classes": 4},
    attack_tightness={**{f"ClassChoice.x0_{cut}": 1.0 for cut in range(3)}, "PairContrasts": 1.0},
    worst_pairs=f"{_WORST_pair_contrasts}:opposite_records",
    coupled=True,
    audit=AuditSettings(
        fields={"num_null": 19, "classes": 2},
        neighbours=f"{_WORST_pair_contrasts}:one_of_two_corners",
        view=f"{_WORST_pair_contrasts}:loss",
    ),
)

pair_contrasts = (_PAIRS, in_zcdp(_PAIRS))

stratified_table = (_coded((3, 3, 2), audited=(3, 3, 2)),)

_WORST_quantile_table = "jaxdp.independence.tables.worst_pairs_bins"

_QUANTILES = Example(
    examples.without_z,
    null=examples.normal,
    fields={"num_null": 39, "num_bins": 3},
    attack_tightness={**{f"QuantileCuts.{cut}": 1.0 for cut in ("x1", "x2", "y1", "y2")}, "QuantileTable": 1.0},
    coupled=True,
    audit=AuditSettings(
        fields={"num_null": 19, "num_bins": 2},
        neighbours=f"{_WORST_quantile_table}:opposite_corners",
        view=f"{_WORST_quantile_table}:loss",
    ),
)

quantile_table = (_QUANTILES, in_zcdp(_QUANTILES))

unit_circle = (
    dataclasses.replace(_TWO_GROUPS, attack_tightness=0.99),
    dataclasses.replace(
        _TWO_GROUPS,
        fields={"null": "estimated"},
        label="estimated",
        attack_tightness={"norm": 0.99, "margin": 1.0},
        audit=None,
    ),
)
