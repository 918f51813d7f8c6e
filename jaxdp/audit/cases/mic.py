"""Configurations of the mic tests for audits and the contract: one tuple a test, by the test's name."""

import dataclasses

from jaxdp.examples import AuditSettings, BestKnown, Example, PairSearch, in_zcdp
from jaxdp.simulate import examples

_WORST = "jaxdp.independence.mic.worst_pairs_mic"
_FEW_CELLS = {"max_cells": 6, "num_null": 39}

_OF_FEW_COLUMNS = "few columns leave no room for moves across every boundary; 30 reach it"

mice_laplace = (
    Example(
        examples.pair,
        null=examples.uniform,
        fields=_FEW_CELLS,
        attack_tightness=BestKnown(0.5, _OF_FEW_COLUMNS),
        audit=AuditSettings(examples.uniform),
        min_records=4,
    ),
    Example(
        examples.pair,
        fields={"max_cells": 60, "c": 2, "num_null": 19},
        label="columns",
        attack_tightness=0.95,
        worst_pairs=f"{_WORST}:alternating_columns",
        search=PairSearch(rounds=None),
        bounds_only=True,
    ),
)

micr_geometric = (
    Example(
        examples.pair,
        null=examples.uniform,
        fields=_FEW_CELLS,
        attack_tightness=1.0,
        worst_pairs=f"{_WORST}:corner",
        audit=AuditSettings(examples.uniform),
        min_records=4,
    ),
)

micr_laplace = (
    dataclasses.replace(
        micr_geometric[0], fields={"num_null": 39}, audit=AuditSettings(examples.uniform, fields=_FEW_CELLS)
    ),
    dataclasses.replace(
        micr_geometric[0],
        fields={**_FEW_CELLS, "range_share": 0.3},
        label="ranges",
        attack_tightness={"MarginalHistograms": 1.0, "MICrLaplace": 1.0},
        audit=None,
        coupled=True,
    ),
)

_ALL_PAIRS = Example(
    examples.features,
    null=examples.uniform_features,
    fields={"max_cells": 6},
    attack_tightness=1.0,
    worst_pairs=f"{_WORST}:corner_of_three",
    search=PairSearch(rounds=3),
    audit=AuditSettings(examples.uniform_features, neighbours=f"{_WORST}:outlier"),
    coupled=True,
)

micr_pairs = (_ALL_PAIRS, in_zcdp(_ALL_PAIRS, null=None, bounds_only=True))

micr_top_pair = (
    dataclasses.replace(
        _ALL_PAIRS,
        null=None,
        without_null="it names a pair and tests nothing: its law of selection is audited (audit.json)",
        audit=AuditSettings(examples.uniform_features, neighbours=f"{_WORST}:outlier_of_one_pair"),
    ),
)
