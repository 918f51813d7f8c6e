"""Sieve-and-examine: Priv-PC with every noise scale right.

Theory: docs/theory/priv_pc.md; Algorithms 1 and 2 of the paper.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.rounding import as_fraction
from jaxdp.accounting.amplification import before_amplification
from jaxdp.core import Account, Cost, Norm, Relation, Sensitivity
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import Z, default_query, rounding
from jaxdp.discovery.engine.session import searched
from jaxdp.discovery.engine.skeleton import CIQuery, find_skeleton
from jaxdp.discovery.engine.sparse_loop import Values, perturbed, require_certificate, until_above
from jaxdp.discovery.graph import Decision, Graph
from jaxdp.discovery.spec import AUDITED_Z, SearchAudit, SearchSpec, search
from jaxdp.mechanisms import Laplace
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.noise.source import Source
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key

SIEVE_SHARE = 0.5
_START = jax.jit(SparseVector.init_opened)


@dataclasses.dataclass(frozen=True)
class RoundPlan:
    """Public noise scales of one round of sieve-and-examine, and what it truly costs.

    scale_threshold, scale_query, scale_examine: in units of the queries; of exponential noise in the sieve and Laplace
    noise in the examination. sieve, examine: the budgets behind them.
    """

    scale_threshold: float
    scale_query: float
    scale_examine: float
    epsilon: float
    sieve: float = 0.0
    examine: float = 0.0


def corrected_round(
    epsilon: float,
    rate: float | Fraction,
    bound_subset: float,
    bound_full: float,
    sieve_share: float = SIEVE_SHARE,
) -> RoundPlan:
    """Algorithm 1 with every noise scale right: the sieve's scales use the amplified budget epsilon'.

    A share of the budget for the sieve (split 1 : 2^(2/3) between threshold and query), the rest to examine.
    """
    sieve = check.share(epsilon, sieve_share)
    examine = check.share(epsilon, 1 - as_fraction(sieve_share))
    base = before_amplification(sieve, rate)
    threshold = base / (1.0 + 2.0 ** (2.0 / 3.0))
    return RoundPlan(
        scale_threshold=bound_subset / threshold,
        scale_query=2.0 * bound_subset / (base - threshold),
        scale_examine=bound_full / examine,
        epsilon=epsilon,
        sieve=base,
        examine=examine,
    )


def kept_threshold(epsilon: float, rounds: int, sieve_share: float = SIEVE_SHARE) -> RoundPlan:
    """All rounds on all rows with one threshold noise: e1 + R e2 for the sieve and R examinations make epsilon.

    Examinations see the sieve through its answers alone, so given the transcript the densities factorise and the
    costs add up, interleaved as they are (docs/theory/sparse_vector.md#refreshing).
    """
    sieve = check.share(epsilon, sieve_share)
    examine = check.share(epsilon, (1 - as_fraction(sieve_share)) / rounds)
    threshold, query = (float(scale) for scale in _sieve(sieve, 0.0, rounds).scales())
    return RoundPlan(threshold, query, 1.0 / examine, epsilon, sieve, examine)


@search(
    SearchSpec(
        "priv_pc",
        "Priv-PC: sieve and examine, corrected",
        audits=(
            SearchAudit(options={"z": AUDITED_Z, "refresh": True}, pilot="svt_pc"),
            SearchAudit("one-round", {"z": AUDITED_Z, "max_rounds": 1, "refresh": True}),
            SearchAudit("one-threshold", {"z": AUDITED_Z, "refresh": False}, pilot="svt_pc"),
            SearchAudit(
                "subset", {"z": AUDITED_Z, "subset": 50, "max_rounds": 1}, walked=False, pilot="priv_pc-one-round"
            ),
        ),
    )
)
def priv_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    z: float = Z,
    subset: int | None = None,
    max_rounds: int | None = None,
    tweak: float = 0.0,
    sieve_share: float = SIEVE_SHARE,
    refresh: bool | None = None,
    max_order: int | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
) -> Graph:
    """Priv-PC: a cheap sieve on a subset of the rows finds edges to remove; each is then examined on all rows.

    epsilon is the total, divided over max_rounds (default d(d-1)/2) equal rounds, reserved before the data
    are read. A round ends when the sieve fires, whatever examine says; subset and (with refresh) threshold noise are
    then drawn anew. When the rounds are used up the search stops with complete=False.
    subset: rows of the sieve, default all (sub-sampling saves time, never noise:
    docs/theory/priv_pc.md#rate-of-sub-sampling).
    tweak: t, by which the sieve's threshold is lower, in units of the query's sensitivity. sieve_share: of a round's
    budget, the rest examines. `jaxdp.tune.sieve_settings` chooses both from public guesses.
    refresh=False, the default on all rows and only there: the threshold noise is drawn once and the R = max_rounds
    rounds are one sparse vector, e1 + R e2 in the place of R (e1 + e2): a third of the sieve's noise at R = 20
    (docs/theory/sparse_vector.md#refreshing).
    As published: `jaxdp.published.priv_pc_paper`, which costs more than it claims.
    Privacy: epsilon-DP under replace-one (Theorem 1 with epsilon' in every sieve scale: docs/theory/priv_pc.md#round).
    A release key draws lattice noise and exactly uniform subsets (docs/theory/sparse_vector.md).
    Errors: ValueError before data are read.
    """
    mode = keys.admit(key, data)
    records = as_records(data, levels)
    check.positive(epsilon=epsilon)
    rounds = num_rounds(records, max_rounds)
    check.in_range(0.0, 1.0, sieve_share=sieve_share)
    if refresh is None:
        refresh = subset not in (None, records.num_records)
    if not refresh and subset not in (None, records.num_records):
        raise ValueError(f"refresh=False keeps one threshold for all rows: leave out subset={subset}.")
    size = subset_size(records, subset)
    # Queries are divided by their own bounds, so they move by at most 1 on the subset and on all rows.
    rate = Fraction(size, records.num_records) if records.num_records else Fraction(1)
    each = check.share(epsilon, Fraction(1, rounds))
    plan, kind = corrected_round(each, rate, 1.0, 1.0, sieve_share), Rounds
    if not refresh:
        plan, kind = kept_threshold(epsilon, rounds, sieve_share), RoundsOfOneThreshold
    error = rounding(records, z)
    require_certificate(mode, _sieve(plan.sieve, error, 1 if refresh else rounds))

    def start(source, records):
        return kind(source, records, plan, rate, rounds, tweak, _studentised(z), error)

    return searched_in_rounds("priv_pc", key, records, start, float(epsilon), max_order, ledger)


def num_rounds(records: Records, max_rounds: int | None) -> int:
    """R: as given, or one for each pair of columns."""
    rounds = max(1, records.num_pairs) if max_rounds is None else max_rounds
    check.at_least(1, max_rounds=rounds)
    return rounds


def subset_size(records: Records, subset: int | None) -> int:
    """Rows of the sieve: as given, or all."""
    subset = records.num_records if subset is None else subset
    check.at_least(1, subset=subset)
    if subset > records.num_records:
        raise ValueError(f"subset must be at most the {records.num_records} records, got {subset}.")
    return subset


def searched_in_rounds(method: str, key, records: Records, start, epsilon: float, max_order, ledger) -> Graph:
    """The search whose queries the rounds answer, which cost epsilon in all. start: (source, records) -> `Rounds`."""
    cost = Cost(epsilon=epsilon, delta=0.0, rho=epsilon**2 / 2, relation=Relation.REPLACE_ONE)

    def found(session, records):
        rounds = start(session.source, records)
        decisions: list[Decision] = []

        def ask(queries):
            answers = rounds.answers(queries)
            known = [pair for pair in zip(queries, answers, strict=False) if pair[1] is not None]
            decisions.extend(Decision.of(query, bool(answer)) for query, answer in known)
            return answers

        search = find_skeleton(len(records.columns), ask, max_order=max_order, batched=False, ahead=True)
        return session.graph(records, search, tuple(decisions))

    return searched(key, method, cost, records, found, ledger=ledger)


def _sieve(epsilon: float, error: float, above: int = 1) -> SparseVector:
    """The sieve of one round, or of all that share a threshold: exponential noise, split 1 : (2R)^(2/3)."""
    return SparseVector(epsilon=epsilon, max_above=above, error=error)


def _studentised(z: float):
    return lambda rate: lambda tables, asked: default_query(z, tables.num_records, float(rate)).values(tables, asked)


class Rounds:
    """The rounds of one search: the subset and noisy threshold in force, and how many rounds are left."""

    def __init__(
        self,
        source: Source,
        records: Records,
        plan: RoundPlan,
        rate,
        rounds: int,
        tweak: float,
        statistic,
        error: float,
    ):
        self._source, self._records, self._plan, self._rate = source, records, plan, rate
        self._counts, self._statistic, self._tweak, self._error = Counts(records), statistic, tweak, error
        self._left, self._drawn, self._above = rounds, 0, 1
        self._full = self._subset = Values(self._counts, statistic(1.0))
        self._start_round()

    def answers(self, queries: Sequence[CIQuery]) -> list[bool | None]:
        """Whether to remove the edge of each query, up to the first above-threshold answer.

        None once every round is used up.
        """
        if self._left == 0:
            return [None]
        answers: list[bool | None] = [*self._sieved(self._subset.of(queries))]
        if answers[-1]:
            fired = len(answers) - 1
            # from a joint table the values of all queries cost as much as one, and later rounds need them
            near = slice(fired, fired + 1) if self._counts.can_pad else slice(0, None)
            value = self._full.of(queries[near])[fired - (near.start or 0)]
            answers[-1] = self._examine(float(value)) >= 0.0
            self._left -= 1  # a round is paid for by the answer, also where examine says no
            if self._left:
                self._start_round()
        return answers

    def _start_round(self) -> None:
        self._draw_threshold()
        if self._rate < 1:
            size = round(self._rate * self._records.num_records)
            drawn = self._counts.subset(self._subset_source(), size, self._records)
            self._subset = Values(drawn, self._statistic(self._rate))

    def _subset_source(self) -> Source:
        return self._next()

    def _draw_threshold(self) -> None:
        self._sieve = _sieve(self._plan.sieve, self._error, self._above)
        start = _START if self._source.compiles else SparseVector.init_opened
        self._state = start(self._sieve, self._next(), -self._tweak)

    def _sieved(self, values: np.ndarray) -> list[bool]:
        """Answers of the sieve up to the first True."""
        self._state, answers = until_above(self._sieve, self._state, values)
        return answers

    def _examine(self, value: float) -> float:
        return self._laplace(self._plan.examine, value)

    def _laplace(self, epsilon: float, value: float) -> float:
        """The value, which moves by at most 1, with Laplace noise."""
        end = 16.0 * (self._records.num_records + 16.0)
        one = Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, self._error, -end, end)
        return float(perturbed(Laplace(epsilon), self._next(), jnp.asarray(value, float), one))

    def _next(self) -> Source:
        return self._source.fold_in(self._next_number())

    def _next_number(self) -> int:
        self._drawn += 1
        return self._drawn


class RoundsOfOneThreshold(Rounds):
    """Rounds on all rows that share one noisy threshold: one sparse vector that may fire once a round."""

    def _draw_threshold(self) -> None:
        if self._drawn == 0:
            self._above = self._left
            super()._draw_threshold()
