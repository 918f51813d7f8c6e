"""KruskalWallis: do the values of one column lie higher in some groups than in others? Rank sums in absolute values.

Theory: docs/theory/kruskal_wallis.md. Symbols: R_g, KW_abs (`statistics/rank_sums.py`), K groups, p their shares.
"""

import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, Column, Domain
from jaxdp.independence import noise_law
from jaxdp.independence.ranks.rank_test import UNIT_ROUNDOFF
from jaxdp.independence.tables.noisy_table import require_one_column
from jaxdp.mechanisms import Laplace, divide
from jaxdp.spec import LINEAR, MONOTONE, Columns, Planning, TestSpec, on_a_line, one_of_each
from jaxdp.statistics import rank_sums
from jaxdp.statistics.tables import contingency

COUNTS_SHARE = 0.1  # of the budget, for the sizes of the groups (docs/theory/kruskal_wallis.md#shares)
COUNTS_GUARD = 0.5  # noise scales added to each released size: shares nearer to equal ones have the wider null law
RANK_SUMS_MOVE = 2.0  # times n - 1: of sum |R_g|, when a record is replaced (docs/theory/kruskal_wallis.md#sensitivity)
COUNTS_MOVE = {Norm.L1: 2.0, Norm.L2: math.sqrt(2.0)}
ROUNDINGS = 4.0


def groups_of(domain: Domain) -> str:
    """Which of x and y holds the groups, "" where no column does: the other one must be on a line.

    Unordered levels are groups; else the column of fewer levels is.
    """
    if not one_of_each(domain) or domain.z:
        return ""
    x, y = domain.x[0], domain.y[0]
    sides = [name for name, groups, ranked in (("x", x, y), ("y", y, x)) if groups.levels > 1 and _on_a_line(ranked)]
    if len(sides) < 2:
        return sides[0] if sides else ""
    return "x" if x.levels <= y.levels else "y"


def _on_a_line(column: Column) -> bool:
    return not (column.kind == CATEGORICAL and column.levels > 2)


def _serves(domain: Domain) -> dict[str, int]:
    """Unordered groups: between columns on a line Kendall's test sees the trend with fewer records."""
    return {LINEAR: 2, MONOTONE: 2} if groups_of(domain) and not on_a_line(domain) else {}


@frozen_pytree
class KruskalWallis(PrivateTest):
    """Private Kruskal-Wallis test: a column with levels (the groups) and one whose values are ranked; no z.

    Statistic: KW_abs = (n - 1) sum over groups of |sum of centred ranks| / floor(n^2/4), ties at their mean rank.
    Sensitivity (docs/theory/kruskal_wallis.md#sensitivity), replace-one: 2 (n - 1)^2/floor(n^2/4), which is below 8
    for even n and 8 (n - 1)/(n + 1) for odd n; sizes of the groups 2 in L1, sqrt(2) in L2.
    Privacy: epsilon-DP (90 % for KW_abs, 10 % for the sizes), or rho-zCDP with mechanism=Gaussian(rho).
    P-value: rank among `num_null` draws of the normal limit of the rank sums at the released sizes, with fresh noise.
    Ties make it conservative. It sees groups whose values lie higher or lower, not those that are spread differently.

    group_counts: sizes of the groups in the order of their levels, where they are public: nothing is spent on them.
    """

    num_null: int = jax.tree.static(default=999)
    group_counts: tuple[int, ...] | None = jax.tree.static(default=None)
    groups: str = jax.tree.static(default="")
    num_groups: int = jax.tree.static(default=0)

    spec: ClassVar[TestSpec] = TestSpec(
        name="kruskal-wallis",
        summary="rank sums of groups; a continuous or ordered column against one with levels, without Z",
        known_as=(
            "kruskal",
            "mann-whitney",
            "mannwhitneyu",
            "wilcoxon-rank-sum",
            "ranksums",
            "anova",
            "one-way-anova",
            "f_oneway",
        ),
        columns=Columns.CODES,
        sees="groups whose values lie higher or lower than others'",
        fits=lambda domain: bool(groups_of(domain)),
        serves=_serves,
        needs_all="it ranks a column",
        planning=Planning(without_z=True),
        theory="docs/theory/kruskal_wallis.md",
    )

    def __post_init__(self):
        super().__post_init__()
        check.at_least(19, num_null=self.num_null)

    def budget(self):
        mechanism = Laplace(check.budget(self.epsilon)) if self.mechanism is None else self.mechanism
        public = self.group_counts is not None
        return divide(mechanism, {"ranks": 1.0} if public else {"ranks": 1.0 - COUNTS_SHARE, "counts": COUNTS_SHARE})

    def resolve(self, shapes):
        """Which column holds the groups, and how many there are; ValueError where none does, or sizes do not fit."""
        if shapes.z is not None:
            raise ValueError("kruskal-wallis has no conditional form: z must be None.")
        require_one_column("kruskal-wallis", shapes, "x", "y")
        domain = shapes.domain or Domain((Column(CONTINUOUS),), (Column(CONTINUOUS),))
        groups = groups_of(domain)
        if not groups:
            raise ValueError(
                "kruskal-wallis compares groups: one of x and y must have levels, and the other must be continuous, "
                "ordered or binary."
            )
        count = getattr(domain, groups)[0].levels
        sizes = self.group_counts
        if sizes is not None and (len(sizes) != count or sum(sizes) != shapes.x.shape[0] or min(sizes) < 0):
            raise ValueError(f"group_counts must be {count} sizes that add up to the number of records, got {sizes}.")
        return dataclasses.replace(self, groups=groups, num_groups=count)

    def statistic(self, key, data):
        """{"ranks": KW_abs, "counts": sizes (K,)}; sizes only where they are private."""
        del key
        groups, values = (data.x, data.y) if self.groups == "x" else (data.y, data.x)
        groups = contingency.as_codes(groups, self.num_groups)
        found = {"ranks": rank_sums.kw_abs(values, groups, self.num_groups)}
        if self.group_counts is None:
            found["counts"] = jax.ops.segment_sum(jnp.ones(values.shape[0]), groups, self.num_groups)
        return found

    def sensitivity(self, num_records):
        budget, unit = self.budget(), rank_sums.unit(num_records)
        ranks = Sensitivity(
            bound=RANK_SUMS_MOVE * (num_records - 1.0) * unit,
            norm=budget["ranks"].norm,
            relation=Relation.REPLACE_ONE,
            error=ROUNDINGS * UNIT_ROUNDOFF * num_records,
            lower=0.0,
            upper=1.0 * num_records,
        )
        if self.group_counts is not None:
            return {"ranks": ranks}
        norm = budget["counts"].norm
        bare = Sensitivity(COUNTS_MOVE[norm], norm, Relation.REPLACE_ONE)
        room = noise_law.margin(budget["counts"], bare)
        return {"ranks": ranks, "counts": dataclasses.replace(bare, lower=-room, upper=num_records + room)}

    def no_gradient(self, name):
        del name
        return null_laws.RANK

    def p_value(self, key, release):
        key_ranks, key_noise = jax.random.split(key)
        count = release.num_records
        sums = rank_sums.null_rank_sums(key_ranks, self._shares(release), count, self.num_null)
        noise = self.budget()["ranks"].noise(key_noise, release.sensitivity["ranks"], (self.num_null,))
        return null_laws.monte_carlo(release.value["ranks"], rank_sums.unit(count) * sums + noise)

    def headline(self, release):
        """The released KW_abs."""
        return release.value["ranks"]

    def _shares(self, release):
        """Shares of the groups (K,): public, or released and drawn a little towards equal ones."""
        if self.group_counts is not None:
            sizes = jnp.asarray(self.group_counts, float)
            return sizes / jnp.sum(sizes)
        sizes = jnp.asarray(release.value["counts"], float)
        sizes = sizes + (release.num_records - jnp.sum(sizes)) / self.num_groups
        scale = self.budget()["counts"].scale(release.sensitivity["counts"])
        sizes = jnp.maximum(sizes, 0.0) + COUNTS_GUARD * scale
        return sizes / jnp.sum(sizes)
