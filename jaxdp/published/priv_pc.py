"""Priv-PC and its Kendall test as the paper states them: Definition 6, Theorem 7, Algorithms 1 and 2.

Source: Wang, Pang and Song 2020. What is wrong: the sensitivity of Definition 6 is 2.09 whatever n is, not
4.5/sqrt(n - 1) (docs/theory/conditional_kendall.md#definition-6), so noise for the claim costs 0.46 sqrt(n - 1) times
the epsilon that is claimed. Recommended: `jaxdp.ConditionalKendall`, `jaxdp.discovery.svt_pc` and `priv_pc`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, final

import jax
import numpy as np

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.accounting.amplification import amplified, before_amplification
from jaxdp.core import Account, Interpretation, Norm, Relation, Sensitivity
from jaxdp.data.records import as_records
from jaxdp.discovery.engine.counts import batches
from jaxdp.discovery.engine.decision_query import Z, rounding
from jaxdp.discovery.engine.skeleton import AHEAD, CIQuery
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.methods.priv_pc import RoundPlan, Rounds, num_rounds, searched_in_rounds, subset_size
from jaxdp.discovery.spec import SearchAudit, SearchSpec, search
from jaxdp.independence.ranks.conditional_kendall import ConditionalKendall
from jaxdp.independence.ranks.rank_test import UNIT_ROUNDOFF, as_default_float
from jaxdp.mechanisms import Laplace
from jaxdp.noise import floats
from jaxdp.noise.source import Source
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key
from jaxdp.spec import TestSpec
from jaxdp.statistics import concordance
from jaxdp.tune.subsample import subsample_size

# Definition 6 under replace-one, sup over all strata: a row of a stratum of three turns from concordant
# to discordant with all others while every other stratum is a single record
# (docs/theory/conditional_kendall.md#definition-6).
PAPER_SENSITIVITY = 36.0 / math.sqrt(297.0)


def paper_claim(num_records: int) -> float:
    """The sensitivity of Definition 6 that the paper claims (Theorem 7), 4.5/sqrt(n - 1). It is too small."""
    return 4.5 / math.sqrt(max(num_records - 1, 1))


def paper_sensitivity(num_records: int, levels: tuple[int, int], conditional: bool) -> float:
    """An upper bound on the true sensitivity of Definition 6, attained for general data from n = 3."""
    if conditional or num_records < 2:
        return PAPER_SENSITIVITY
    n = float(num_records)
    one_stratum = 18.0 * (n - 1.0) / ((2.0 * n + 5.0) * math.sqrt(9.0 * n * (n - 1.0) / (2.0 * (2.0 * n + 5.0))))
    return one_stratum / 2.0 if all(0 < count <= 2 for count in levels) else one_stratum


def _published(*args, **fields) -> TestSpec:
    """Of Kendall's test as published, whose p-value depends on n: no null law of it is drawn."""
    return dataclasses.replace(ConditionalKendall.spec.as_published(*args, **fields), shown=None)


@final
@frozen_pytree
class PaperKendall(ConditionalKendall):
    """Definition 6 of the Priv-PC paper: weighted Kendall's tau within strata, with noise for the claimed sensitivity.

    Statistic: a scalar with signed S_i, asymptotically standard normal under the null.
    What is wrong: the claimed sensitivity 4.5/sqrt(n - 1) (docs/theory/conditional_kendall.md#definition-6).
    Privacy: Laplace noise of scale claim/epsilon, so the result carries the true epsilon, which is 2.09 sqrt(n - 1)/4.5
    times the one asked for, given z. Replace-one only. mechanism= replaces that noise, calibrated to the true bound.
    """

    spec: ClassVar[TestSpec] = _published(
        "conditional-kendall-paper",
        "Kendall's tau within strata as published; its claim is false",
        true_epsilon="0.46 sqrt(n - 1) times the one asked for, given z",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.relation is not Relation.REPLACE_ONE:
            raise ValueError("PaperKendall exists under replace_one only.")

    def specialize(self, shapes):
        test = super().specialize(shapes)
        if self.epsilon is None:
            return test
        # Noise scale claim/epsilon on a statistic of sensitivity D is D epsilon/claim-DP, no better.
        num_records = shapes.x.shape[0]
        factor = paper_sensitivity(num_records, test.levels, test.num_strata != 1) / paper_claim(num_records)
        return dataclasses.replace(test, epsilon=None, mechanism=Laplace(check.budget(self.epsilon) * factor))

    def mechanism_in_force(self):
        if self.mechanism is None:
            raise ValueError("the budget of PaperKendall depends on n: ask the resolved test, test.specialize(shapes).")
        return self.mechanism

    def statistic(self, key, data):
        """The scalar of Definition 6."""
        with jax.enable_x64(True):
            value = concordance.paper_statistic(self.summaries(data))
        return as_default_float(value)

    def finish(self, totals):
        with jax.enable_x64(True):
            return np.asarray(concordance.paper_statistic(concordance.strata_of_table(totals)))

    def sensitivity(self, num_records):
        return Sensitivity(
            bound=paper_sensitivity(num_records, self.levels, self.num_strata != 1),
            norm=Norm.L1,
            relation=Relation.REPLACE_ONE,
            error=8.0 * num_records**1.5 * UNIT_ROUNDOFF,
            lower=-1.5 * math.sqrt(num_records),
            upper=1.5 * math.sqrt(num_records),
        )

    def interpret(self, key, release):
        """The released statistic, without an effect: the sum is weighted, so that it estimates no tau."""
        p_value = self.mechanism_in_force().null_p_value(release.value, 1.0, release.sensitivity)
        return Interpretation(p_value, release.value)


def published_round(epsilon: float, num_records: int, subset: int) -> RoundPlan:
    """Algorithm 2 with the sensitivity that the paper claims, and the epsilon that is true for it.

    True cost of a round: the sieve with the real sensitivity 2.09 of Definition 6, amplified, plus examine.
    """
    base = before_amplification(epsilon / 2, subset / num_records)
    threshold, query = 2.0 * paper_claim(subset) / base, 4.0 * paper_claim(subset) / base
    examine = 2.0 * paper_claim(num_records) / epsilon
    loss = PAPER_SENSITIVITY / threshold + 2.0 * PAPER_SENSITIVITY / query
    true = amplified(loss, subset / num_records) + PAPER_SENSITIVITY / examine
    return RoundPlan(threshold, query, examine, true)


def printed_round(algorithm: int, epsilon: float, rate: float) -> float:
    """True epsilon of a round as the paper prints it, where it says epsilon; rate = m/n. Exhibits, never run.

    Algorithm 1, line 4: threshold noise 2 Delta/epsilon instead of 2 Delta/epsilon'. Algorithm 2, line 15: after
    the first round the threshold noise is that of all rows, 2 Delta_n/epsilon', while the sieve's queries move
    by Delta_m = sqrt(n/m) Delta_n (docs/theory/priv_pc.md#printed-rounds). Examine at epsilon/2 in both.
    """
    check.one_of((1, 2), algorithm=algorithm)
    base = before_amplification(epsilon / 2, rate)
    threshold_loss = epsilon / 2 if algorithm == 1 else base / (2.0 * math.sqrt(rate))
    return amplified(threshold_loss + base / 2, rate) + epsilon / 2


@search(
    SearchSpec(
        "priv_pc_paper",
        "Priv-PC as published; its claim is false; simulations only",
        true_epsilon="many times the one asked for; the graph says it",
        audits=(
            SearchAudit(
                options={"z": 0.785, "max_rounds": 1},
                walked=False,
                neighbours="jaxdp.audit.searches:triples",
                flawed=True,
            ),
        ),
    )
)
def priv_pc_paper(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    z: float = Z,
    subset: int | None = None,
    max_rounds: int | None = None,
    tweak: float = 0.0,
    max_order: int | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
) -> Graph:
    """Priv-PC as published (Algorithm 2): Definition 6, noise for the claimed 4.5/sqrt(n - 1), a threshold per round.

    Arguments as of `jaxdp.discovery.priv_pc`; subset: default by `jaxdp.tune.subsample_size`.
    Privacy: the cost is the epsilon that is true, far above the one asked for
    (docs/theory/priv_pc.md#published-statistic). Float noise: simulation keys only.
    Errors: ValueError before data are read.
    """
    mode = keys.admit(key, data)
    records = as_records(data, levels)
    check.positive(epsilon=epsilon)
    if mode == keys.RELEASE:
        raise ValueError("priv_pc_paper is an exhibit with float noise: give a simulation key, jax.random.key(seed).")
    rounds = num_rounds(records, max_rounds)
    each = check.share(epsilon, Fraction(1, rounds))
    if subset is None:
        subset = max(2, math.ceil(float(subsample_size(records.num_records, each))))
    subset = subset_size(records, subset)
    plan, error = published_round(each, records.num_records, subset), rounding(records, z)

    def start(source, records):
        rate = subset / records.num_records
        return _PublishedRounds(source, records, plan, rate, rounds, tweak, _definition_six(z), error)

    return searched_in_rounds("priv_pc_paper", key, records, start, plan.epsilon * rounds, max_order, ledger)


def _definition_six(z: float):
    """The paper's query, z - |tau|, >= 0 where the columns look independent."""

    def values(tables, queries: Sequence[CIQuery]) -> np.ndarray:
        result = np.zeros(len(queries))
        for positions, batch in batches(tables, queries):
            strata = concordance.strata_of_table(batch, kendall_only=True)
            result[positions] = z - np.abs(concordance.paper_statistic(strata))
        return result

    return lambda rate: values


class _PublishedRounds(Rounds):
    """Rounds with the noise scales that the paper prints (Laplace noise in the sieve too)."""

    def _draw_threshold(self) -> None:
        noise, self._key_of_subset = _published_draws(self._source.key, self._next_number())
        first, self._examination, *queries = np.asarray(noise, float).tolist()
        self._threshold, self._ahead = self._plan.scale_threshold * first, np.array(queries)

    def _subset_source(self) -> Source:
        return self._source.at(self._key_of_subset)

    def _sieved(self, values: np.ndarray) -> list[bool]:
        noise, self._ahead = self._ahead[: len(values)], self._ahead[len(values) :]
        if len(noise) < len(values):
            noise = np.asarray(_published_draws(self._source.key, self._next_number())[0], float)[: len(values)]
        fired = values + self._plan.scale_query * noise >= self._threshold - self._tweak
        return fired[: int(np.argmax(fired)) + 1 if fired.any() else None].tolist()

    def _examine(self, value: float) -> float:
        return value + self._plan.scale_examine * self._examination


@jax.jit
def _published_draws(key, number):
    """Laplace noise of scale 1 for one round (threshold, examination, queries ahead), and the key of its subset."""
    key_noise, key_subset = jax.random.split(jax.random.fold_in(key, number))
    return floats.laplace(key_noise, (2 + AHEAD,)), key_subset
